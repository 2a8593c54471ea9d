//! What the tests share: a runtime in each setting that this user can have, containers, and
//! looking for processes.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stint_node::{
    Container, ContainerSpec, Ending, Exit, HelperCommand, Isolation, Limits, Mount,
    ProcessOptions, ProcessRuntime, Runtime, RuntimeError, Sandbox, SandboxSpec, Stdio,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

/// No test waits longer than this. It is reached only if something is broken.
const BACKSTOP: Duration = Duration::from_secs(120);

/// A user who is not root, for tests that root runs.
const ORDINARY_USER: u32 = 54321;

/// How a runtime is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) isolation: Isolation,
    /// Whether the helper is an ordinary user although the test is root.
    pub(crate) lowered: bool,
}

/// All settings that are possible for who runs the tests.
pub(crate) fn settings() -> Vec<Setting> {
    let plain = |isolation| Setting { isolation, lowered: false };
    if !is_root() {
        return vec![plain(Isolation::User), plain(Isolation::None)];
    }
    vec![
        plain(Isolation::Root),
        Setting { isolation: Isolation::User, lowered: true },
        Setting { isolation: Isolation::None, lowered: true },
        plain(Isolation::None),
    ]
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a test in each setting, one after the other.
pub(crate) fn in_each_setting(test: impl AsyncFn(&Node)) {
    in_settings(settings(), test);
}

/// Runs a test in each setting with namespaces.
pub(crate) fn in_each_namespace(test: impl AsyncFn(&Node)) {
    let apart = |setting: &Setting| setting.isolation != Isolation::None;
    in_settings(settings().into_iter().filter(apart).collect(), test);
}

fn in_settings(settings: Vec<Setting>, test: impl AsyncFn(&Node)) {
    assert!(!settings.is_empty(), "there is no setting for this user");
    for setting in settings {
        eprintln!("in {setting:?}");
        block_on(async {
            let node = Node::start(setting).await;
            test(&node).await;
            node.stop().await;
        });
    }
}

pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an executor");
    executor.block_on(async {
        tokio::time::timeout(BACKSTOP, test).await.expect("this takes too long")
    })
}

/// A runtime on a folder of its own.
pub(crate) struct Node {
    pub(crate) runtime: ProcessRuntime,
    pub(crate) setting: Setting,
    pub(crate) folder: TempDir,
}

impl Node {
    pub(crate) async fn start(setting: Setting) -> Node {
        let folder = new_folder(setting);
        let runtime = ProcessRuntime::start(options(setting, folder.path()))
            .await
            .expect("the runtime starts");
        assert_eq!(runtime.isolation(), setting.isolation);
        Node { runtime, setting, folder }
    }

    pub(crate) async fn stop(self) {
        self.runtime.stop().await;
    }

    pub(crate) async fn sandbox(&self) -> Box<dyn Sandbox> {
        self.sandbox_with(|_| {}).await
    }

    pub(crate) async fn sandbox_with(
        &self,
        change: impl FnOnce(&mut SandboxSpec),
    ) -> Box<dyn Sandbox> {
        let mut spec = sandbox_spec();
        change(&mut spec);
        self.runtime.make_sandbox(spec).await.expect("a sandbox")
    }

    /// Runs a script in a sandbox of its own to its end.
    pub(crate) async fn run(&self, script: &str) -> (Exit, String) {
        self.run_with(script, |_| {}).await
    }

    pub(crate) async fn run_with(
        &self,
        script: &str,
        change: impl FnOnce(&mut ContainerSpec),
    ) -> (Exit, String) {
        let sandbox = self.sandbox().await;
        let result = start_with(&*sandbox, script, change).await.expect("it starts").end().await;
        sandbox.close().await;
        result
    }

    /// What a script in a sandbox of its own prints. It must succeed.
    pub(crate) async fn prints(&self, script: &str) -> String {
        let (exit, output) = self.run(script).await;
        assert_eq!(exit.ending, Ending::Code(0), "{script}: {output}");
        output
    }

    /// A file of the node's, which containers' users can read.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("a file");
        self.give_away(&path);
        path
    }

    /// A file of the node's that can be run.
    pub(crate) fn program(&self, name: &str, content: &str) -> PathBuf {
        let original = self.file(&format!("original-of-{name}"), content);
        fs::set_permissions(&original, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let path = self.folder.path().join(name);
        copy_program(&original, &path);
        path
    }

    /// A folder of the node's.
    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(&path).expect("a folder");
        self.give_away(&path);
        path
    }

    fn give_away(&self, path: &Path) {
        if self.setting.lowered {
            chown(path, Some(ORDINARY_USER), Some(ORDINARY_USER)).expect("root can");
        }
    }

    /// Who containers run as.
    pub(crate) fn user(&self) -> u32 {
        if self.setting.lowered { ORDINARY_USER } else { rustix::process::geteuid().as_raw() }
    }

    /// Who containers' primary group is.
    pub(crate) fn group(&self) -> u32 {
        if self.setting.lowered { ORDINARY_USER } else { rustix::process::getegid().as_raw() }
    }

    pub(crate) fn has_namespaces(&self) -> bool {
        self.setting.isolation != Isolation::None
    }
}

/// A folder that the helper's user can use.
pub(crate) fn new_folder(setting: Setting) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    if setting.lowered {
        chown(folder.path(), Some(ORDINARY_USER), Some(ORDINARY_USER)).expect("root can");
    }
    folder
}

pub(crate) fn options(setting: Setting, folder: &Path) -> ProcessOptions {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_stint-process-helper"));
    let mut options = ProcessOptions::new(folder);
    options.isolation = Some(setting.isolation);
    options.helper = HelperCommand { program: helper.clone(), args: vec![] };
    if setting.lowered {
        // A copy, since where programs are built may be closed to others.
        let copy = folder.join("helper");
        if !copy.exists() {
            copy_program(&helper, &copy);
        }
        let user = ORDINARY_USER.to_string();
        let args = ["--reuid", &user, "--regid", &user, "--clear-groups", "--inh-caps=-all", "--"];
        options.helper.program = "/usr/bin/setpriv".into();
        options.helper.args = args.iter().map(Into::into).collect();
        options.helper.args.push(copy.into());
    }
    options
}

/// Copies a file by another process: one that this process writes to could be inherited, open, by
/// what another thread starts meanwhile, and would be too busy to be run.
fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().expect("cp is there");
    assert!(copied.success(), "a copy of {}", from.display());
}

pub(crate) fn sandbox_spec() -> SandboxSpec {
    SandboxSpec {
        uid: format!("pod-{}", unique()),
        hostname: None,
        hosts_file: None,
        address: Ipv4Addr::LOCALHOST,
        shares_processes: false,
        limits: Limits::default(),
    }
}

pub(crate) fn container_spec(command: &[&str]) -> ContainerSpec {
    ContainerSpec {
        name: "main".into(),
        restarts: 0,
        command: command.iter().map(ToString::to_string).collect(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into())],
        working_dir: None,
        mounts: vec![],
        user: None,
        group: None,
        groups: vec![],
        limits: Limits::default(),
    }
}

pub(crate) fn mount(source: &Path, target: impl Into<PathBuf>) -> Mount {
    Mount { source: source.to_owned(), target: target.into(), read_only: false }
}

/// A container and what it writes, both outputs together.
pub(crate) struct Started {
    pub(crate) container: Box<dyn Container>,
    output: BufReader<pipe::Receiver>,
}

pub(crate) async fn start(sandbox: &dyn Sandbox, script: &str) -> Started {
    start_with(sandbox, script, |_| {}).await.expect("it starts")
}

pub(crate) async fn start_with(
    sandbox: &dyn Sandbox,
    script: &str,
    change: impl FnOnce(&mut ContainerSpec),
) -> Result<Started, RuntimeError> {
    let mut spec = container_spec(&["sh", "-c", script]);
    change(&mut spec);
    start_spec(sandbox, spec).await
}

pub(crate) async fn start_spec(
    sandbox: &dyn Sandbox,
    spec: ContainerSpec,
) -> Result<Started, RuntimeError> {
    let (read, write) = std::io::pipe().expect("a pipe");
    let stdout = OwnedFd::from(write.try_clone().expect("a descriptor"));
    let stdio = Stdio { stdin: None, stdout, stderr: write.into(), is_terminal: false };
    let container = sandbox.start(spec, stdio).await?;
    let read = pipe::Receiver::from_owned_fd(read.into()).expect("a pipe");
    Ok(Started { container, output: BufReader::new(read) })
}

impl Started {
    /// The next line that it writes.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).await.expect("a line");
        line.trim_end().to_owned()
    }

    /// How it ends, and all that it writes until then. Its output must end with it.
    pub(crate) async fn end(mut self) -> (Exit, String) {
        let mut output = String::new();
        let (exit, read) =
            tokio::join!(self.container.wait(), self.output.read_to_string(&mut output));
        read.expect("text");
        (exit, output)
    }
}

/// A number of seconds, to sleep for, that no other process has among its arguments.
pub(crate) fn unique() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let count = LAST.fetch_add(1, Ordering::Relaxed);
    format!("7{:07}{count:04}", std::process::id())
}

/// Who has this among its arguments. Nobody who has ended does.
pub(crate) fn who_has(argument: &str) -> Vec<i32> {
    processes()
        .into_iter()
        .filter(|pid| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).any(|found| found == argument.as_bytes())
        })
        .collect()
}

pub(crate) fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Waits for something that nobody reports.
pub(crate) async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !is_true() {
        assert!(tokio::time::Instant::now() < deadline, "{what}: not within 30 seconds");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The process of a node's helper.
pub(crate) fn helper_of(node: &Node) -> i32 {
    let folder = node.folder.path().to_owned();
    let metadata = fs::metadata(&folder).expect("the folder is there");
    let mark = {
        use std::os::unix::fs::MetadataExt;
        format!("STINT_PROCESS_HELPER={:x}-{:x}/", metadata.dev(), metadata.ino())
    };
    let own = std::process::id() as i32;
    let is_helper = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let parent = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent =
            parent.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        environment.starts_with(mark.as_bytes()) && parent == Some(own)
    };
    let found: Vec<i32> = processes().into_iter().filter(is_helper).collect();
    assert_eq!(found.len(), 1, "one helper: {found:?}");
    found[0]
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a number of a process");
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
