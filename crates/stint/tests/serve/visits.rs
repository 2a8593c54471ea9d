//! Visits to containers by the real kubectl: exec, attach, cp and run, and how they end.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::kit::home::{Home, as_everybody};
use crate::kit::{Kubectl, eventually, is_anybody_marked, peak_bytes, text};

/// A Pod whose containers wait; more of its first container as JSON.
fn pod(name: &str, script: &str, more: serde_json::Value) -> String {
    let mut main = json!({"name": "main", "image": "unused", "command": ["sh", "-c", script]});
    for (field, value) in more.as_object().expect("fields") {
        main[field] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main],
        },
    })
    .to_string()
}

fn run_pod(kubectl: &Kubectl, name: &str, script: &str, more: serde_json::Value) {
    kubectl.give(&pod(name, script, more), "create -f -");
    kubectl.run(&format!("wait --for=condition=Ready pod/{name} --timeout=60s"));
}

/// Runs kubectl with arguments of which the last is a script for a shell.
fn shell(kubectl: &Kubectl, input: &str, arguments: &str, script: &str) -> Output {
    let mut command = kubectl.command(arguments);
    command.args(["--", "sh", "-c", script]);
    kubectl.finish(command, input)
}

fn begin(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Reads until a line is there; what was read, and who reads the rest.
fn wait_for(child: &mut Child, line: &str) -> (String, BufReader<impl Read + use<>>) {
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut read = String::new();
    while !read.ends_with(&format!("{line}\n")) && !read.ends_with(&format!("{line}\r\n")) {
        let count = stdout.read_line(&mut read).expect("it writes text");
        assert!(count > 0, "it ended before {line:?} came: {read}");
    }
    (read, stdout)
}

fn kill(child: &Child) {
    kill_process(Pid::from_child(child), Signal::KILL).expect("it runs");
}

/// A mark that no other process has.
fn mark(home: &Home) -> String {
    format!("VISIT_OF={}", home.path("data").display())
}

#[test]
fn programs_run_beside_a_container_as_in_it() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let here = home.folder("working");
        let more = json!({
            "env": [{"name": "GREETING", "value": "hello"}],
            "workingDir": here.to_str().expect("UTF-8"),
        });
        run_pod(&kubectl, "a", "exec sleep 1000", more);
        let out = shell(&kubectl, "", "exec a", "echo $GREETING; pwd; echo no >&2");
        let expected = format!("hello\n{}\n", here.display());
        assert_eq!((text(&out.stdout), text(&out.stderr)), (expected, "no\n".to_owned()));
        assert!(out.status.success());

        // What is typed goes in, and its end, too.
        let lines = "one\ntwo\n".repeat(20_000);
        let out = shell(&kubectl, &lines, "exec -i a", "cat; echo done");
        assert!(text(&out.stdout) == format!("{lines}done\n"), "{} bytes", out.stdout.len());
        // Without -i there is nothing to read.
        assert_eq!(text(&shell(&kubectl, "typed", "exec a", "cat").stdout), "");

        for (script, code, said) in [
            ("exit 7", 7, "command terminated with exit code 7\n"),
            ("kill -9 $$", 137, "command terminated with exit code 137\n"),
            ("kill -TERM $$", 143, "command terminated with exit code 143\n"),
        ] {
            let out = shell(&kubectl, "", "exec a", script);
            assert_eq!((out.status.code(), text(&out.stderr)), (Some(code), said.to_owned()));
        }
        // And kubectl has not fallen back to anything else.
        let talk = kubectl.output("", "exec a -v=8 -- true");
        let said = text(&talk.stderr);
        assert!(talk.status.success() && !said.contains("fallback"), "{said}");
        assert!(!said.to_lowercase().contains("spdy/3.1"), "{said}");
        let missing = kubectl.fail("", "exec a -- no-such-program");
        let expected = "error executing command in container: exec: \"no-such-program\": ";
        assert!(missing.contains(expected) && missing.contains("Internal error"), "{missing}");
    });
}

#[test]
fn a_terminal_has_a_size_a_name_and_an_exit_code() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        run_pod(&kubectl, "a", "exec sleep 1000", json!({}));
        let kubectl_exec = kubectl.command("exec -it a");
        let program = kubectl_exec.get_program().to_str().expect("UTF-8").to_owned();
        // As in Kubernetes the size comes when the program runs already.
        let inner = "test -t 0 && test -t 1 && test -t 2 && echo all three; \
                     while [ \"$(stty size)\" != \"33 77\" ]; do sleep 0.05; done; echo $TERM; \
                     read line; echo got:$line; exit 3";
        let line = format!("stty rows 33 cols 77; {program} exec -it a -- sh -c '{inner}'");
        // `script` is a terminal for kubectl.
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        for (name, value) in kubectl_exec.get_envs() {
            command.env(name, value.expect("a value"));
        }
        let mut child = begin(command);
        // Nothing is typed before it is there: a terminal that is being set up may lose it.
        let (shown, mut stdout) = wait_for(&mut child, "xterm");
        assert!(shown.contains("all three\r\n"), "{shown:?}");
        child.stdin.as_mut().expect("it is piped").write_all(b"typed\n").expect("it reads");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("text");
        assert!(rest.contains("got:typed\r\n"), "{rest:?}");
        assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest:?}");
    });
}

#[test]
fn what_cannot_be_visited_is_refused_in_the_words_of_kubernetes() {
    let home = Home::mine();
    let (_server, kubectl) = home.server();
    run_pod(&kubectl, "a", "exec sleep 1000", json!({}));
    kubectl.give(&pod("over", "true", json!({})), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.phase}=Succeeded pod/over --timeout=60s");
    for (arguments, expected) in [
        ("exec none -- true", "pods \"none\" not found"),
        ("exec a -c x -- true", "container x is not valid for pod a"),
        ("exec over -- true", "cannot exec into a container in a completed pod"),
        ("attach over", "cannot attach a container in a completed pod"),
        ("--context stint-view exec a -- true", "cannot create resource \"pods/exec\""),
        ("--context stint-view attach a", "cannot create resource \"pods/attach\""),
        ("port-forward a 1:1", "the server could not find the requested resource"),
    ] {
        let said = kubectl.fail("", arguments);
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    assert_eq!(kubectl.run("--context stint-edit exec a -- echo yes"), "yes\n");
}

#[test]
fn files_are_copied_both_ways() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let inside = home.folder("inside");
        run_pod(&kubectl, "a", "exec sleep 1000", json!({}));
        let outside = home.path("outside");
        let content: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(&outside, &content).expect("it is ours");
        let (inside, outside) = (inside.display(), outside.display());
        kubectl.run(&format!("cp {outside} a:{inside}/copy"));
        assert!(fs::read(home.path("inside/copy")).expect("it is there") == content);
        kubectl.run(&format!("cp a:{inside}/copy {outside}.back"));
        assert!(fs::read(home.path("outside.back")).expect("it is there") == content);
    });
}

#[test]
fn who_attaches_hears_the_container_and_is_heard() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let more = json!({"stdin": true, "stdinOnce": true});
        run_pod(&kubectl, "a", "echo before; while read l; do echo got $l; done; echo end", more);
        let out = kubectl.give("one\ntwo\n", "attach -i a");
        assert!(out.ends_with("got one\ngot two\nend\n"), "{out}");
        kubectl.run("wait --for=jsonpath={.status.phase}=Succeeded pod/a --timeout=60s");
        assert_eq!(kubectl.run("logs a"), "before\ngot one\ngot two\nend\n");
        // A Pod that is there for one visit.
        let ran = kubectl.give(
            "three\n",
            "run b -i --rm --quiet --restart=Never --image=unused --command -- sed s/^/said-/",
        );
        assert!(ran.contains("said-three\n"), "{ran}");
        assert!(kubectl.fail("", "get pod b").contains("not found"));
    });
}

#[test]
fn a_container_with_a_terminal_is_attached_to_as_one() {
    let home = Home::mine();
    let (_server, kubectl) = home.server();
    let more = json!({"stdin": true, "tty": true});
    run_pod(&kubectl, "a", "test -t 0 && echo tty; while read l; do echo got $l; done", more);
    let mut child = begin(kubectl.command("attach -i a"));
    child.stdin.as_mut().expect("it is piped").write_all(b"x\n").expect("it reads");
    drop(wait_for(&mut child, "got x"));
    kill(&child);
    child.wait().expect("it ends");
    // Who leaves does not end it.
    let said = kubectl.run("logs a").replace('\r', "");
    assert!(said.starts_with("tty\n") && said.contains("got x\n"), "{said}");
    assert_eq!(kubectl.run("get pod a -o jsonpath={.status.phase}"), "Running");
}

#[test]
fn a_visit_ends_with_its_client_with_its_pod_and_with_the_server() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        let mark = mark(home);
        let visit = |pod: &str| {
            let mut command = kubectl.command(&format!("exec -i {pod}"));
            // With children of its own, which do not end for the asking.
            let script =
                format!("export {mark}; trap '' HUP TERM; sleep 1000 & echo begun; sleep 1000");
            command.args(["--", "sh", "-c", &script]);
            let mut child = begin(command);
            drop(wait_for(&mut child, "begun"));
            eventually("it runs", || is_anybody_marked(&mark));
            child
        };
        let is_gone = || eventually("nothing is left of it", || !is_anybody_marked(&mark));
        run_pod(&kubectl, "a", "exec sleep 1000", json!({}));
        run_pod(&kubectl, "b", "exec sleep 1000", json!({}));
        let mut killed = visit("a");
        kill(&killed);
        killed.wait().expect("it ends");
        is_gone();
        let of_pod = visit("b");
        kubectl.run("delete pod b");
        let out = of_pod.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(137), "{}", text(&out.stderr));
        is_gone();
        let of_server = visit("a");
        server.kill();
        assert!(!of_server.wait_with_output().expect("it ends").status.success());
        is_gone();
        let (server, kubectl) = home.server();
        run_pod(&kubectl, "c", "exec sleep 1000", json!({}));
        let mut command = kubectl.command("exec c");
        command.args(["--", "sh", "-c", &format!("export {mark}; echo begun; exec sleep 1000")]);
        let mut child = begin(command);
        drop(wait_for(&mut child, "begun"));
        assert_eq!(server.stop().code(), Some(0));
        assert!(!child.wait().expect("it ends").success());
        is_gone();
    });
}

#[test]
fn a_lot_of_output_and_of_input_costs_no_memory() {
    const BYTES: usize = 50_000_000;
    let home = Home::mine();
    let (server, kubectl) = home.server();
    run_pod(&kubectl, "a", "exec sleep 1000", json!({}));
    shell(&kubectl, "warm", "exec -i a", "cat");
    let before = peak_bytes(server.pid()).expect("it runs");
    let out = shell(&kubectl, "", "exec a", &format!("head -c {BYTES} /dev/zero"));
    assert!(out.status.success() && out.stdout.len() == BYTES, "{} bytes", out.stdout.len());
    let input = "x".repeat(BYTES);
    let out = shell(&kubectl, &input, "exec -i a", "wc -c");
    assert_eq!(text(&out.stdout).trim(), BYTES.to_string());
    let grown = peak_bytes(server.pid()).expect("it runs").saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
}
