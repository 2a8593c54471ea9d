//! `stint logs` and `stint status` against a server, and Jobs to look at.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kit::Server;

/// The binary, as somebody runs it who has no kubectl.
pub(crate) struct Look {
    kubeconfig: PathBuf,
    home: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Look {
    pub(crate) fn at(server: &Server) -> Self {
        let (kubeconfig, home) = (server.kubeconfig().to_owned(), server.folder().to_owned());
        Look { kubeconfig, home }
    }

    /// Runs it to its end. Arguments are parted by spaces.
    pub(crate) fn run(&self, arguments: &str) -> Ended {
        ended(self.command(arguments).spawn().expect("the binary starts"))
    }

    /// Runs it and expects it to succeed: what it prints.
    pub(crate) fn shown(&self, arguments: &str) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        ended.stdout
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = bare(arguments, &self.home);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }
}

/// The binary in a home of its own, where nothing says which cluster is meant.
pub(crate) fn bare(arguments: &str, home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
    command.args(arguments.split(' ').filter(|argument| !argument.is_empty()));
    command.env("HOME", home).env("TMPDIR", home);
    for name in ["KUBECONFIG", "STINT_DATA_DIR", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// An Indexed Job of one container that runs a script; more of its spec as YAML lines.
pub(crate) fn indexed(name: &str, completions: u32, more: &str, script: &str) -> String {
    let more = format!(
        "  completions: {completions}\n  parallelism: {completions}\n  completionMode: \
         Indexed\n{more}"
    );
    job(name, &more, "Never", script)
}

/// A Job of one container that runs a script.
pub(crate) fn job(name: &str, more: &str, restart_policy: &str, script: &str) -> String {
    let script = serde_json::to_string(script).expect("text is JSON");
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n{more}  template:\n    \
         spec:\n      restartPolicy: {restart_policy}\n      terminationGracePeriodSeconds: 1\n      \
         containers:\n      - name: main\n        image: busybox\n        command: [sh, -c, \
         {script}]\n"
    )
}
