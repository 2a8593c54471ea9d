//! The process itself: how it starts, stops, refuses, and keeps what it was given.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kit::{Kubectl, Server, command, eventually, refused};

#[test]
fn what_was_created_is_there_after_a_stop_and_after_a_kill() {
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::in_folder(data.path());
    Kubectl::new(&server).run("create configmap first --from-literal=a=1");
    assert!(server.stop().success());
    let server = Server::in_folder(data.path());
    let kubectl = Kubectl::new(&server);
    assert_eq!(kubectl.run("get configmap first -o jsonpath={.data.a}"), "1");
    kubectl.run("create configmap second --from-literal=b=2");
    server.kill();
    let server = Server::in_folder(data.path());
    assert_eq!(Kubectl::new(&server).run("get configmap second -o jsonpath={.data.b}"), "2");
}

#[test]
fn secrets_are_for_their_owner_only() {
    let data = tempfile::tempdir().expect("a folder");
    let folder = data.path().join("made");
    let server = Server::in_folder(&folder);
    let mode = |path: &str| {
        let path = folder.join(path);
        std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(mode("."), 0o700);
    assert_eq!(mode("kubeconfig"), 0o600);
    assert_eq!(mode("pki"), 0o700);
    assert_eq!(mode("tokens"), 0o700);
    drop(server);
}

#[test]
fn a_second_server_on_the_same_folder_is_refused() {
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::in_folder(data.path());
    let path = data.path().to_str().expect("UTF-8");
    let (code, said) = refused(&["--data-dir", path]);
    assert_eq!(code, Some(3), "{said}");
    let holder = format!("in use by another stint (process {})", server.process());
    assert!(said.contains(&holder), "{said}");
}

#[test]
fn a_folder_of_somebody_elses_is_left_alone() {
    let data = tempfile::tempdir().expect("a folder");
    std::fs::write(data.path().join("thesis.txt"), "mine").expect("it is written");
    let mode = || std::fs::metadata(data.path()).expect("it is there").permissions().mode();
    std::fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let before = mode();
    let (code, said) = refused(&["--data-dir", data.path().to_str().expect("UTF-8")]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("not stint's"), "{said}");
    assert_eq!(mode(), before);
}

#[test]
fn a_folder_that_was_open_to_others_is_closed() {
    let data = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(data.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let _server = Server::in_folder(data.path());
    let mode = std::fs::metadata(data.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn who_asked_for_what_is_written_down_if_that_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (kubeconfig, log) = (path("kubeconfig"), path("audit.log"));
    let mut command = command(&["--in-memory", "--no-node"]);
    command.arg("--kubeconfig").arg(&kubeconfig).arg("--audit-log").arg(&log);
    let temporary = tempfile::tempdir().expect("a folder");
    command.env("TMPDIR", temporary.path());
    let server = Server::launch(command, kubeconfig, temporary);
    let kubectl = Kubectl::new(&server);
    kubectl.run("create secret generic hidden --from-literal=word=seldom-said");
    kubectl.fail("", "delete job not-there");
    assert!(server.stop().success());
    let text = std::fs::read_to_string(&log).expect("it is written");
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let find = |verb: &str, resource: &str| {
        let is_it = |it: &&Value| it["verb"] == verb && it["objectRef"]["resource"] == resource;
        events.iter().find(is_it).unwrap_or_else(|| panic!("no {verb} of {resource} in {text}"))
    };
    let created = find("create", "secrets");
    assert_eq!(created["user"]["username"], "admin");
    assert_eq!(created["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(created["objectRef"]["namespace"], "default");
    assert_eq!(created["responseStatus"]["code"], 201);
    assert!(created["userAgent"].as_str().is_some_and(|it| it.starts_with("kubectl")), "{created}");
    assert_eq!(find("delete", "jobs")["responseStatus"]["reason"], "NotFound");
    // The cluster's own watches have ended with it.
    let begun = find("watch", "pods");
    assert_eq!(begun["stage"], "ResponseStarted");
    let is_its_end =
        |it: &&Value| it["auditID"] == begun["auditID"] && it["stage"] == "ResponseComplete";
    assert_eq!(events.iter().filter(is_its_end).count(), 1, "{text}");
    assert!(!text.contains("seldom-said"), "what is sent is nobody's business");
}

#[test]
fn the_greeting_says_how_to_use_it() {
    let server = Server::in_memory();
    let kubeconfig = server.kubeconfig().to_str().expect("UTF-8");
    assert!(server.greeting.contains(&format!("export KUBECONFIG={kubeconfig}")));
    assert!(server.greeting.contains("https://127.0.0.1:"), "{}", server.greeting);
}

#[test]
fn a_bearer_token_of_the_kubeconfig_lets_in() {
    let server = Server::in_memory();
    let text = std::fs::read_to_string(server.kubeconfig()).expect("it is there");
    // As a client that knows no certificates would.
    let without: String = text
        .lines()
        .filter(|line| !line.contains("client-"))
        .fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(server.kubeconfig(), without).expect("it is ours");
    let kubectl = Kubectl::new(&server);
    assert!(kubectl.run("get namespaces -o name").contains("namespace/default"));
}

#[test]
fn wrong_usage_is_told() {
    let (code, said) = refused(&["--in-memory", "--data-dir", "x"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = refused(&["--in-memory", "--feature-gates", "NoSuchGate=true"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_found_out_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let others = folder.path().join("others");
    std::fs::write(&others, "clusters: [{name: production}]\n").expect("it is written");
    let data_text = data.to_str().expect("UTF-8");
    for path in [folder.path().join("none/kubeconfig"), folder.path().to_owned(), others] {
        let path = path.to_str().expect("UTF-8");
        let (code, said) = refused(&["--data-dir", data_text, "--kubeconfig", path]);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(path) && said.contains("--kubeconfig"), "{said}");
        assert!(!data.exists(), "{path}");
    }
    // In the data folder itself nothing but the lock is there before it is known.
    let within = data.join("none/kubeconfig");
    let within = within.to_str().expect("UTF-8");
    let (code, said) = refused(&["--data-dir", data_text, "--kubeconfig", within]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains(within), "{said}");
    let made: Vec<_> = std::fs::read_dir(&data).expect("it is made").collect();
    assert_eq!(made.len(), 1, "{made:?}");
}

#[test]
fn other_machines_are_let_in_only_if_told_so() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stint"));
    command.args(["serve", "--in-memory", "--listen", "0.0.0.0:0"]);
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--allow-remote"), "{said}");
}

#[test]
fn a_taken_port_and_a_folder_that_cannot_be_written_are_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stint"));
    command.args(["serve", "--in-memory", "--listen", &address]);
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
    let (code, said) = refused(&["--data-dir", "/proc/nowhere"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("/proc/nowhere"), "{said}");
}

/// What a server has left in the folder for temporary files.
fn left(server: &Server) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(server.folder()).expect("it is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    names.filter(|name| name.to_string_lossy().starts_with("stint-")).collect()
}

#[test]
fn a_terminal_that_is_closed_stops_it_like_any_other_request() {
    let mut server = Server::with_node();
    assert!(!left(&server).is_empty());
    server.signal(Signal::HUP);
    let mut status = None;
    eventually("it ends", || {
        status = server.ended();
        status.is_some()
    });
    assert_eq!(status.expect("it has ended").code(), Some(0));
    assert!(left(&server).is_empty(), "{:?}", left(&server));
}

#[test]
fn a_second_request_to_stop_leaves_nothing_behind_even_if_pods_write() {
    let mut server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let job = "\
apiVersion: batch/v1
kind: Job
metadata: {name: writers}
spec:
  completions: 4
  parallelism: 4
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 3600
      containers:
      - name: main
        image: unused
        command: [sh, -c, \"trap '' TERM; i=0; while :; do i=$((i+1)); echo $i > /scratch/$i; done\"]
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes: [{name: scratch, emptyDir: {}}]
";
    kubectl.give(job, "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=4 job/writers --timeout=60s");
    server.signal(Signal::TERM);
    let mut status = None;
    eventually("it ends", || {
        server.signal(Signal::TERM);
        status = server.ended();
        status.is_some()
    });
    assert_eq!(status.expect("it has ended").code(), Some(130));
    assert!(left(&server).is_empty(), "{:?}", left(&server));
}
