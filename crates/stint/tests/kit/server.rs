//! The binary under test: started on a free port, stopped at the end whatever happens.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use tempfile::TempDir;

/// Failed Pods are replaced soon: nobody wants to wait ten seconds for each.
const SOON: [&str; 2] = ["--pod-failure-backoff-base", "100ms"];

/// A server that runs.
pub(crate) struct Server {
    child: Child,
    /// What it says on standard output when it is ready.
    pub(crate) greeting: String,
    /// Where it keeps what it writes, if nobody else said so.
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Server {
    /// A server that keeps nothing.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let path = kubeconfig.to_str().expect("it is UTF-8");
        let arguments = ["--in-memory", "--no-node", "--kubeconfig", path];
        Self::start(&arguments, kubeconfig.clone(), folder)
    }

    /// A server that keeps nothing, and runs Pods.
    pub(crate) fn with_node() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let path = kubeconfig.to_str().expect("it is UTF-8");
        let arguments = [SOON[0], SOON[1], "--in-memory", "--kubeconfig", path];
        Self::start(&arguments, kubeconfig.clone(), folder)
    }

    /// A server that keeps everything in a folder.
    pub(crate) fn in_folder(data: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = data.to_str().expect("it is UTF-8");
        Self::start(&[SOON[0], SOON[1], "--data-dir", path], data.join("kubeconfig"), folder)
    }

    fn start(arguments: &[&str], kubeconfig: PathBuf, folder: TempDir) -> Self {
        let mut command = command(arguments);
        // What it makes for the time being goes with the test, even if it is killed.
        command.env("TMPDIR", folder.path());
        Self::launch(command, kubeconfig, folder)
    }

    /// Runs a command that serves, and waits until it does.
    pub(crate) fn launch(mut command: Command, kubeconfig: PathBuf, folder: TempDir) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut greeting = String::new();
        for line in lines.by_ref() {
            let line = line.expect("it writes text");
            greeting.push_str(&line);
            greeting.push('\n');
            if line.contains("Ctrl-C stops it") {
                break;
            }
        }
        assert!(greeting.contains("Ctrl-C stops it"), "it did not start: {greeting}");
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, greeting, folder, kubeconfig }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file by which clients find it.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// A folder that is gone with the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it ends")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    /// Ends it without a chance to do anything about it.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `stint serve` on a free port.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]).args(arguments);
    command.stdin(Stdio::null());
    command
}

/// Runs it where it is expected to refuse: its exit code and what it says.
pub(crate) fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it writes text");
    (child.wait().expect("it ends").code(), said)
}
