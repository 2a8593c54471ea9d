//! `stint controller` as its users meet it: the real binary, on the socket of a `stint serve`,
//! whose own controller leaves Jobs with a managedBy alone.

mod kit;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Instant;

use kit::{Kubectl, Server, eventually, text};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A controller that runs.
struct Controller {
    child: Child,
    log: PathBuf,
}

impl Controller {
    fn start(server: &Server, name: &str, arguments: &[&str]) -> Self {
        let log = server.folder().join(format!("{name}.log"));
        let mut command = controller(arguments);
        command.args(["--listen", "127.0.0.1:0", "--lease-namespace", "default"]);
        command.arg("--kubeconfig").arg(server.kubeconfig());
        let child = command.stderr(File::create(&log).expect("a log")).spawn();
        Controller { child: child.expect("the binary starts"), log }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is there")
    }

    /// What it answers: the code and the text.
    fn get(&self, path: &str) -> (u16, String) {
        let said = self.said();
        let address = said.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let Some(address) = address else { return (0, String::new()) };
        let address: SocketAddr = address.parse().expect("an address");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        (code.expect("a code"), body.to_owned())
    }

    fn is_ready(&self, with: &str) -> bool {
        let (code, body) = self.get("/readyz");
        code == 200 && body.contains(with)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().expect("it ends")
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command with nothing of the surroundings in it.
fn controller(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
    command.arg("controller").args(arguments).env_clear().env("HOME", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut command: Command) -> Output {
    command.output().expect("the binary starts")
}

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  managedBy: stint.dev/job-controller
  completions: 3
  parallelism: 3
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: none, command: [\"true\"]}
";

#[test]
fn jobs_that_name_it_are_run_and_a_standby_takes_over_at_once() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let first = Controller::start(&server, "first", &[]);
    eventually("it leads", || first.is_ready("leading"));
    let second = Controller::start(&server, "second", &["--log-format", "text"]);
    eventually("it stands by", || second.is_ready("standby"));
    kubectl.give(&JOB.replace("NAME", "one"), "create -f -");
    kubectl.run("wait --for=condition=complete --timeout=60s job/one");

    let (code, metrics) = first.get("/metrics");
    assert_eq!(code, 200);
    for line in
        ["leader_election_master_status{name=\"stint-job-controller\"} 1", "stint_build_info{"]
    {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert_eq!(first.get("/healthz").0, 200);
    assert!(first.said().contains("stint controller starts"), "{}", first.said());
    assert!(first.said().contains("state=\"complete\""), "{}", first.said());

    let began = Instant::now();
    assert_eq!(first.stop().code(), Some(0));
    eventually("the other leads", || second.is_ready("leading"));
    // Twice the time on a machine that does nothing else; the exact time is tested without sockets.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    kubectl.give(&JOB.replace("NAME", "two"), "create -f -");
    kubectl.run("wait --for=condition=complete --timeout=60s job/two");
    assert_eq!(second.stop().code(), Some(0));
    let lease = kubectl.json("get lease stint-job-controller");
    assert_eq!(lease["spec"]["holderIdentity"], "");
}

#[test]
fn a_leader_that_was_stopped_past_its_lease_stands_by_when_it_goes_on() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let short = ["--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "500ms"];
    let first = Controller::start(&server, "first", &short);
    eventually("it leads", || first.is_ready("leading"));
    let second = Controller::start(&server, "second", &short);
    eventually("it stands by", || second.is_ready("standby"));
    first.signal(Signal::STOP);
    eventually("the other leads", || second.is_ready("leading"));
    first.signal(Signal::CONT);
    eventually("it stands by", || first.is_ready("standby"));
    assert!(first.said().contains("leading no more"), "{}", first.said());
    kubectl.give(&JOB.replace("NAME", "one"), "create -f -");
    kubectl.run("wait --for=condition=complete --timeout=60s job/one");
    assert!(second.is_ready("leading"));
}

#[test]
fn a_server_that_is_away_is_waited_for_and_named() {
    let server = Server::in_memory();
    let kubeconfig = server.folder().join("copy");
    fs::copy(server.kubeconfig(), &kubeconfig).expect("a copy");
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("kubeconfig");
    fs::copy(&kubeconfig, &copy).expect("a copy");
    server.stop();
    let log = folder.path().join("log");
    let mut command = controller(&["--listen", "127.0.0.1:0", "--kubeconfig"]);
    let child = command.arg(&copy).stderr(File::create(&log).expect("a log")).spawn();
    let running = Controller { child: child.expect("the binary starts"), log };
    eventually("it says so", || running.said().contains("the API server cannot be used"));
    let (code, body) = running.get("/readyz");
    assert_eq!(code, 503);
    assert!(body.contains("Connection refused"), "{body}");
    assert_eq!(running.get("/healthz").0, 200);
    assert_eq!(running.stop().code(), Some(0));
}

#[test]
fn a_kubeconfig_of_the_environment_goes_before_the_service_account_and_has_contexts() {
    let server = Server::in_memory();
    let start = |name: &str, arguments: &[&str]| {
        let log = server.folder().join(format!("{name}.log"));
        let mut command = controller(&["--listen", "127.0.0.1:0"]);
        command.args(arguments).env("KUBECONFIG", server.kubeconfig());
        // As in a Pod, whose API server is another one.
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "1");
        command.stderr(File::create(&log).expect("a log"));
        Controller { child: command.spawn().expect("the binary starts"), log }
    };
    let plain = start("plain", &["--leader-elect=false"]);
    eventually("it leads", || plain.is_ready("leading"));
    assert_eq!(plain.stop().code(), Some(0));
    let mut other = start("other", &["--context", "nowhere"]);
    assert_eq!(other.child.wait().expect("it ends").code(), Some(2));
    assert!(other.said().contains("has no context \"nowhere\""), "{}", other.said());
    assert!(other.said().contains("name one that it has with --context: "), "{}", other.said());
}

#[test]
fn a_list_of_kubeconfigs_may_name_one_that_is_not_there() {
    let server = Server::in_memory();
    let empty = server.folder().join("empty");
    fs::write(&empty, "{apiVersion: v1, kind: Config}").expect("it can be written");
    let missing = server.folder().join("missing");
    let list = [empty.as_path(), missing.as_path(), server.kubeconfig()];
    let log = server.folder().join("list.log");
    let mut command = controller(&["--listen", "127.0.0.1:0", "--leader-elect=false"]);
    command.env("KUBECONFIG", std::env::join_paths(list).expect("a list"));
    command.stderr(File::create(&log).expect("a log"));
    let running = Controller { child: command.spawn().expect("the binary starts"), log };
    eventually("it leads", || running.is_ready("leading"));
    assert_eq!(running.stop().code(), Some(0));
}

#[test]
fn a_token_file_may_end_with_a_line_break() {
    let server = Server::in_memory();
    let text = fs::read_to_string(server.kubeconfig()).expect("it can be read");
    // The user of the current context by a token alone, in a file.
    let (_, user) = text.split_once("- name: stint-admin\n").expect("a user");
    let quoted = user.lines().find_map(|line| line.trim().strip_prefix("token: "));
    let token = quoted.expect("it has one").trim_matches('"').to_owned();
    let file = server.folder().join("token");
    fs::write(&file, format!("{token}\n")).expect("it can be written");
    let is_certificate = |line: &&str| line.trim().starts_with("client-");
    let kept: Vec<&str> = text.lines().filter(|line| !is_certificate(line)).collect();
    let inline = format!("token: \"{token}\"");
    let told = kept.join("\n").replace(&inline, &format!("tokenFile: {}", file.display()));
    let kubeconfig = server.folder().join("by-token");
    fs::write(&kubeconfig, told).expect("it can be written");
    let log = server.folder().join("token.log");
    let mut command = controller(&["--listen", "127.0.0.1:0", "--leader-elect=false"]);
    command.arg("--kubeconfig").arg(&kubeconfig).stderr(File::create(&log).expect("a log"));
    let running = Controller { child: command.spawn().expect("the binary starts"), log };
    eventually("it leads", || running.is_ready("leading"));
    assert_eq!(running.stop().code(), Some(0));
}

#[test]
fn a_context_is_refused_where_there_is_no_kubeconfig() {
    let mut command = controller(&["--context", "mine"]);
    command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", "1");
    let ended = ended(command);
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("no context \"mine\"") && said.contains("--kubeconfig"), "{said}");
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_remedy() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let config = file("config.yaml", "# ours\nmax-inflite: 3\n");
    let kubeconfig = file("kubeconfig", "{}");
    let rows: [(&[&str], &str); 9] = [
        (&["--managed-by", "kubernetes.io/job-controller"], "--replace-builtin"),
        (&["--managed-by", "nobody"], "domain-prefixed path"),
        (&["--managed-by", "a.io/b", "--replace-builtin"], "cannot be used with"),
        (&["--lease-duration", "5s"], "longer than the renew deadline"),
        (
            &["--config", &config],
            "line 2: unknown field \"max-inflite\"; did you mean \"max-inflight\"?",
        ),
        (&["--config", "/nonexistent"], "cannot read the configuration"),
        (&["--kubeconfig", &kubeconfig], "has no current context; it has none at all"),
        (&["--kubeconfig", "/nonexistent"], "cannot use the kubeconfig /nonexistent"),
        (&[], "name a kubeconfig with --kubeconfig or KUBECONFIG"),
    ];
    for (arguments, expected) in rows {
        let ended = ended(controller(arguments));
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn what_it_all_comes_to_is_printed_with_where_it_comes_from() {
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config.yaml");
    fs::write(&config, "qps: 5\nmax-inflight: 7\n").expect("it can be written");
    let mut command = controller(&["--print-config", "--qps", "9"]);
    command.env("STINT_CONFIG", Path::new(&config)).env("STINT_MAX_INFLIGHT", "8");
    let ended = ended(command);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let printed = text(&ended.stdout);
    for line in ["qps: 9 # command line\n", "max-inflight: 8 # environment\n"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
