//! Pods that do not end when they are asked to.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::{Home, as_everybody, job, marker};
use crate::kit::{Kubectl, ended, eventually, marked};

/// It ignores what asks it to end, and so does a child that has left its session and lost its
/// parent. All of the family are there once both files are.
const SCRIPT: &str = "\
trap '' TERM INT HUP
(setsid sh -c 'touch /shared/child; while :; do sleep 1; done' &)
touch /shared/parent; while :; do sleep 1; done
";

fn manifest(home: &Home) -> String {
    let text = job(home, "stubborn", 1, "  backoffLimit: 0\n", SCRIPT);
    let shared = home.path("shared");
    format!(
        "{text}        volumeMounts: [{{name: shared, mountPath: /shared}}]\n      \
         volumes: [{{name: shared, hostPath: {{path: {}}}}}]\n",
        shared.display()
    )
}

fn wait_for_family(home: &Home) {
    let is_there = |name: &str| home.path("shared").join(name).exists();
    eventually("it runs", || is_there("parent") && is_there("child"));
    assert!(marked(&marker(home)).len() >= 2);
}

/// How its Pod ended; the one that comes after it runs, or waits.
fn exit_code(kubectl: &Kubectl) -> Value {
    let pods = kubectl.json("get pods -l job-name=stubborn");
    let end = |pod: &Value| {
        let state = &pod["status"]["containerStatuses"][0]["state"];
        state["terminated"]["exitCode"].clone()
    };
    let pods = pods["items"].as_array().expect("a list");
    pods.iter().map(end).find(|code| !code.is_null()).unwrap_or_default()
}

#[test]
fn a_job_that_is_deleted_takes_its_stubborn_pods_with_it() {
    as_everybody(|home| {
        home.folder("shared");
        let (server, kubectl) = home.server();
        kubectl.give(&manifest(home), "create -f -");
        wait_for_family(home);
        // What is seen of the Pod before it goes.
        let pod = kubectl.run("get pods -o name");
        kubectl.run(&format!("patch {} -p {}", pod.trim(), HOLD));
        kubectl.run("delete job stubborn --cascade=background --timeout=60s");
        eventually("it has ended", || exit_code(&kubectl) == 137);
        assert!(marked(&marker(home)).is_empty());
        kubectl.run(&format!("patch {} -p {}", pod.trim(), LET_GO));
        kubectl.run(&format!("wait --for=delete {} --timeout=60s", pod.trim()));
        assert!(server.stop().success());
    });
}

/// Keeps the object of a Pod after its end.
const HOLD: &str = r#"{"metadata":{"finalizers":["example.com/hold"]}}"#;
const LET_GO: &str = r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/hold"]}}"#;

#[test]
fn a_server_that_stops_ends_stubborn_pods() {
    as_everybody(|home| {
        home.folder("shared");
        let (server, kubectl) = home.server();
        kubectl.give(&manifest(home), "create -f -");
        wait_for_family(home);
        assert!(server.stop().success());
        assert!(marked(&marker(home)).is_empty());
        let (server, kubectl) = home.server();
        assert_eq!(exit_code(&kubectl), 137);
        assert!(server.stop().success());
    });
}

#[test]
fn an_interrupted_run_ends_stubborn_pods() {
    as_everybody(|home| {
        home.folder("shared");
        let file = home.file("job.yaml", &manifest(home));
        let mut command = home.run_command(&["-o", "json"]);
        let run = command.arg(file).spawn().expect("it starts");
        wait_for_family(home);
        interrupt(&run);
        let ended = ended(run);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(marked(&marker(home)).is_empty());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
}
