//! Somebody who uses stint, with a home of their own that is gone with the test.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::kit::{Ended, Kubectl, Server, ended};

/// A user who is not root, for tests that root runs.
const ORDINARY_USER: u32 = 54321;

/// Where nothing may appear but what a user puts there.
const KEPT_CLEAN: [&str; 3] = ["home", "tmp", "here"];

/// Failed Pods are replaced soon: nobody wants to wait ten seconds for each.
const SOON: [&str; 2] = ["--pod-failure-backoff-base", "100ms"];

/// Does something as whoever runs the tests, and as an ordinary user if that is root.
pub(crate) fn as_everybody(test: impl Fn(&Home)) {
    test(&Home::mine());
    if is_root() {
        test(&Home::of_an_ordinary_user());
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder with everything that somebody has, and what they run.
pub(crate) struct Home {
    folder: TempDir,
    /// Who it is, if not whoever runs the tests.
    user: Option<u32>,
    program: PathBuf,
}

impl Home {
    /// Whoever runs the tests.
    pub(crate) fn mine() -> Self {
        Self::new(None)
    }

    /// Somebody else than root, who can be played by root only.
    pub(crate) fn of_an_ordinary_user() -> Self {
        Self::new(Some(ORDINARY_USER))
    }

    fn new(user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let built = Path::new(env!("CARGO_BIN_EXE_stint"));
        let program = match user {
            None => built.to_owned(),
            // Where programs are built may be closed to others.
            Some(_) => reachable(built, &folder.path().join("stint")),
        };
        let home = Home { folder, user, program };
        home.give_away(home.folder.path());
        for name in KEPT_CLEAN {
            home.folder(name);
        }
        eprintln!("as {}", user.map_or("myself".to_owned(), |user| format!("user {user}")));
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a folder of this user's.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).expect("it is ours");
        self.give_away(&path);
        path
    }

    /// Writes a file of this user's.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("it is ours");
        self.give_away(&path);
        path
    }

    fn give_away(&self, path: &Path) {
        if let Some(user) = self.user {
            chown(path, Some(user), Some(user)).expect("root can");
        }
    }

    /// Any program, as this user, who has a home, temporary files and a folder to be in.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        command.env_remove("XDG_DATA_HOME").env_remove("STINT_DATA_DIR");
        command.current_dir(self.path("here")).stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// How this user is named to `setpriv`, if it is somebody else.
    pub(crate) fn user(&self) -> Option<u32> {
        self.user
    }

    /// `stint serve` on a free port, with its data in the folder `data`.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]).args(SOON);
        command.arg("--data-dir").arg(self.path("data")).args(arguments);
        command
    }

    /// Serves, and waits until it does.
    pub(crate) fn server(&self) -> (Server, Kubectl) {
        self.launch(self.serve(&[]))
    }

    /// Serves by this command, and waits until it does.
    pub(crate) fn launch(&self, command: Command) -> (Server, Kubectl) {
        let clients_home = tempfile::tempdir().expect("a folder");
        let server = Server::launch(command, self.path("data/kubeconfig"), clients_home);
        let kubectl = Kubectl::new(&server);
        (server, kubectl)
    }

    /// `stint run`, both outputs piped.
    pub(crate) fn run_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.program);
        command.arg("run").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `stint run` of a manifest to its end.
    pub(crate) fn run(&self, manifest: &str, arguments: &[&str]) -> Ended {
        let file = self.file("job.yaml", manifest);
        let mut command = self.run_command(arguments);
        ended(command.arg(file).spawn().expect("the binary starts"))
    }

    /// What has appeared where nothing should.
    pub(crate) fn strays(&self) -> Vec<PathBuf> {
        let within = |name| fs::read_dir(self.path(name)).expect("it is there");
        let entries = KEPT_CLEAN.into_iter().flat_map(within);
        entries.map(|entry| entry.expect("it can be read").path()).collect()
    }
}

/// The same program where everybody can run it. It is not written by this process, from which
/// others could inherit it open, and then it would be too busy to be run.
fn reachable(built: &Path, link: &Path) -> PathBuf {
    let is_linked = |arguments: &[&str]| {
        let status = Command::new("cp").args(arguments).args([built, link]).status();
        status.expect("cp is there").success()
    };
    assert!(is_linked(&["--link"]) || is_linked(&[]), "a copy of {}", built.display());
    let everybodys = fs::Permissions::from_mode(0o755);
    fs::set_permissions(link, everybodys).expect("it is ours");
    link.to_owned()
}

/// A text that is in the environment of the Pods of one test only, as name and value.
pub(crate) fn marker(home: &Home) -> String {
    format!("CHAOS={}", home.path("mark").display())
}

/// An Indexed Job of shell scripts that are told apart from all others by `marker`; more of the
/// Job's spec as YAML lines.
pub(crate) fn job(home: &Home, name: &str, completions: u32, more: &str, script: &str) -> String {
    let marker = marker(home);
    let (variable, value) = marker.split_once('=').expect("it has one");
    let script = serde_json::to_string(script).expect("text is JSON");
    format!(
        "\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: {completions}
  completionMode: Indexed
{more}  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: unused
        env: [{{name: {variable}, value: {value}}}]
        command: [sh, -c, {script}]
"
    )
}
