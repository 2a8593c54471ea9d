//! kubectl, the real one: built once from its modules if this machine has none.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use super::server::Server;

/// kubectl for one server.
pub(crate) struct Kubectl {
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(server: &Server) -> Self {
        Self::of(server.kubeconfig(), server.folder())
    }

    /// kubectl with this kubeconfig, and a home of its own.
    pub(crate) fn of(kubeconfig: &Path, home: &Path) -> Self {
        Kubectl { kubeconfig: kubeconfig.to_owned(), home: home.to_owned() }
    }

    /// Runs it and expects it to succeed: what it prints. Arguments are parted by spaces.
    pub(crate) fn run(&self, arguments: &str) -> String {
        self.give("", arguments)
    }

    /// The same with something on its standard input.
    pub(crate) fn give(&self, input: &str, arguments: &str) -> String {
        let output = self.output(input, arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments}\n{out}\n{err}");
        assert!(!err.contains("Warning"), "kubectl {arguments}\n{err}");
        out
    }

    /// Runs it and expects it to fail: what it says.
    pub(crate) fn fail(&self, input: &str, arguments: &str) -> String {
        let output = self.output(input, arguments);
        assert!(!output.status.success(), "kubectl {arguments}\n{}", text(&output.stdout));
        text(&output.stderr)
    }

    pub(crate) fn json(&self, arguments: &str) -> Value {
        let printed = self.run(&format!("{arguments} -o json"));
        serde_json::from_str(&printed).expect("kubectl prints JSON")
    }

    pub(crate) fn output(&self, input: &str, arguments: &str) -> Output {
        self.finish(self.command(arguments), input)
    }

    /// Runs a command of its own to the end.
    pub(crate) fn finish(&self, mut command: Command, input: &str) -> Output {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // It may have ended without reading.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("kubectl ends")
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(program());
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.home);
        command.args(arguments.split(' ').filter(|argument| !argument.is_empty()));
        command
    }
}

/// kubectl, built once from its modules if this machine has none.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let get = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/peers/get");
        let output = Command::new(get).arg("kubectl").output().expect("the script runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        PathBuf::from(text(&output.stdout).trim())
    })
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
