//! `stint status`, the real binary, against the real server.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::kit::{Kubectl, Server, eventually};
use crate::look::{Look, bare, ended, indexed, job};

fn cells(line: &str) -> Vec<&str> {
    line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn jobs_are_a_table_and_what_other_tools_read() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let none = look.run("status");
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.stderr.contains("no Jobs in namespace default"), "{none:?}");
    let fails = "echo oh $JOB_COMPLETION_INDEX; test $JOB_COMPLETION_INDEX != 2";
    kubectl.give(&indexed("bad", 4, "  backoffLimitPerIndex: 1\n", fails), "create -f -");
    kubectl.give(&job("good", "", "Never", "true"), "create -f -");
    kubectl.run("create namespace other");
    kubectl.give(&job("held", "  suspend: true\n", "Never", "true"), "create -n other -f -");
    kubectl.run("wait --for=condition=failed job/bad --timeout=60s");
    kubectl.run("wait --for=condition=complete job/good --timeout=60s");
    let table = look.shown("status");
    let lines: Vec<Vec<&str>> = table.lines().map(cells).collect();
    let head = ["NAME", "STATE", "DONE", "FAILED", "RUNNING", "WAITING", "AGE", "DURATION"];
    assert_eq!(lines[0], head);
    assert_eq!(lines[1][..6], ["bad", "Failed: FailedIndexes", "3/4", "1", "0", "0"]);
    assert_eq!(lines[2][..6], ["good", "Complete", "1/1", "0", "0", "0"]);
    assert_eq!(lines.len(), 3);
    let all = look.shown("status -A --context stint-view");
    let held: Vec<Vec<&str>> = all.lines().map(cells).filter(|it| it[0] == "other").collect();
    assert_eq!(held[0][1..7], ["held", "Suspended", "0/1", "0", "0", "1"], "{all}");
    assert!(all.starts_with("NAMESPACE   NAME"), "{all}");
    assert!(look.shown("status -n other held").contains("spec.suspend"));
    let silent = look.run("logs -n other held");
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(1), ""), "{silent:?}");
    let said = "other/held: no Pod has been made yet: it has spec.suspend: true\n";
    assert!(silent.stderr.contains(said), "{silent:?}");
    assert_eq!(look.shown("status -o name"), "job.batch/bad\njob.batch/good\n");
    let list: Value = serde_json::from_str(&look.shown("status -n other -o json")).expect("JSON");
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&"List".into(), &"Job".into()));
    let one: Value = serde_json::from_str(&look.shown("status bad -o json")).expect("JSON");
    assert_eq!((&one["kind"], &one["status"]["failedIndexes"]), (&"Job".into(), &"2".into()));
    assert!(look.shown("status bad -o yaml").contains("\n  failedIndexes: "));
    assert!(look.shown("status --color always").contains("\u{1b}[1;31mFailed: FailedIndexes"));
    let absent = look.run("status bda");
    assert_eq!(absent.code, Some(1), "{absent:?}");
    assert!(absent.stderr.contains("did you mean bad?"), "{absent:?}");
    let page = look.shown("status bad");
    let said = [
        "bad: Failed after ",
        ": FailedIndexes: Job has failed indexes\n",
        "  completed  3 of 4: 0,1,3\n  failed     1 index: 2\n  Pods       3 succeeded, 2 failed; 1 retry\n",
        "  index 2 failed in container main, 2 times: exit code 1\n    | oh 2\n",
        " ago: FailureTarget: FailedIndexes: Job has failed indexes\n",
        "next: stint logs bad --index 2\n",
    ];
    for text in said {
        assert!(page.contains(text), "{text:?} in {page}");
    }
}

#[test]
fn what_runs_and_what_waits_is_told_with_the_reason() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let huge = job("huge", "", "Never", "true") + "        resources: {requests: {cpu: 9000}}\n";
    kubectl.give(&huge, "create -f -");
    kubectl.give(&indexed("long", 2, "", "sleep 1000"), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=2 job/long --timeout=60s");
    kubectl.run("wait --for=condition=PodScheduled=false pod -l job-name=huge --timeout=60s");
    let long = look.shown("status long");
    assert!(long.contains("long: Running for "), "{long}");
    assert!(long.contains(": 0 of 2 done, 2 running\n"), "{long}");
    assert!(long.contains("  running    index 1 on stint for "), "{long}");
    assert!(
        long.contains(": Pod long-1-") && long.ends_with("next: stint logs long -f\n"),
        "{long}"
    );
    let huge = look.shown("status huge");
    assert!(huge.contains("huge: Waiting for "), "{huge}");
    assert!(
        huge.contains("  waiting    Pod huge-") && huge.contains(": Unschedulable: "),
        "{huge}"
    );
    assert!(huge.contains("next: it runs when a node has what its Pods ask for; "), "{huge}");
    let waiting = look.run("logs huge");
    assert_eq!((waiting.code, waiting.stdout.as_str()), (Some(1), ""), "{waiting:?}");
    assert!(waiting.stderr.contains("has not begun: Unschedulable: "), "{waiting:?}");
    let mut followed = look.command("logs huge -f").spawn().expect("it starts");
    let mut said = BufReader::new(followed.stderr.take().expect("it is piped")).lines();
    let mut next = || said.next().expect("a line").expect("text");
    assert!(next().contains("has not begun: Unschedulable: "));
    assert_eq!(next(), "huge: waiting for a container to begin");
    kubectl.run("delete job huge");
    assert_eq!(followed.wait().expect("it ends").code(), Some(0));
}

#[test]
fn nothing_is_said_to_run_where_nobody_runs_the_cluster() {
    let data = tempfile::tempdir().expect("a folder");
    let shown = |arguments: &str| {
        let arguments = format!("status {arguments} --data-dir {}", data.path().display());
        let shown = ended(bare(&arguments, data.path()).spawn().expect("it starts"));
        assert_eq!(shown.code, Some(0), "{shown:?}");
        shown.stdout
    };
    let server = Server::in_folder(data.path());
    let kubectl = Kubectl::new(&server);
    kubectl.give(&indexed("long", 2, "", "sleep 1000"), "create -f -");
    let runs = "wait --for=jsonpath={.status.ready}=2 job/long --timeout=60s";
    kubectl.run(runs);
    server.kill();
    let check = || {
        let table = shown("");
        let row = cells(table.lines().nth(1).expect("a row"));
        assert_eq!(row[..6], ["long", "Waiting", "0/2", "0", "0", "2"], "{table}");
        let page = shown("long");
        assert!(page.contains(": 0 of 2 done, 2 waiting\n"), "{page}");
        assert!(!page.contains("\n  running ") && !page.contains("\n  backoff "), "{page}");
        assert!(page.contains(" goes on from here\n"), "{page}");
    };
    check();
    let server = Server::in_folder(data.path());
    Kubectl::new(&server).run(runs);
    assert!(server.stop().success());
    check();
}

#[test]
fn what_a_pod_waits_for_that_has_a_node_is_told() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let with = |name: &str, pod: &str, container: &str| {
        let text = job(name, "", "Never", "true") + container;
        text.replace("      containers:\n", &format!("{pod}      containers:\n"))
    };
    let volume = "      volumes: [{name: v, configMap: {name: words}}]\n";
    let mount = "        volumeMounts: [{name: v, mountPath: /mnt/words}]\n";
    let variable = "        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: k}}}]\n";
    let root = "        securityContext: {runAsNonRoot: true, runAsUser: 0}\n";
    kubectl.run("create configmap here --from-literal=a=b");
    let rows = [
        (
            "mounts",
            with("mounts", volume, mount),
            ": ContainerCreating: FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"words\" not found",
        ),
        (
            "reads",
            with("reads", "", variable),
            "CreateContainerConfigError: couldn't find key k in ConfigMap default/here",
        ),
        (
            "root",
            with("root", "", root),
            "CreateContainerConfigError: container's runAsUser breaks non-root policy (pod: \"root-",
        ),
    ];
    for (name, text, said) in rows {
        kubectl.give(&text, "create -f -");
        let mut page = String::new();
        eventually(said, || {
            page = look.shown(&format!("status {name}"));
            page.contains("  waiting    Pod ") && page.contains(said)
        });
        assert!(page.contains(&format!("{name}: Waiting for ")), "{page}");
        assert!(page.contains(": 0 of 1 done, 1 waiting\n"), "{page}");
        assert!(page.contains("next: its Pods begin when what they wait for is there; "), "{page}");
    }
}

#[test]
fn a_watch_ends_with_the_job_or_an_interrupt() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let gate = server.folder().join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    kubectl.give(&job("slow", "", "Never", &script), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=1 job/slow --timeout=60s");
    let mut all = look.command("status -w").spawn().expect("it starts");
    let mut all_lines = BufReader::new(all.stdout.take().expect("it is piped")).lines();
    let mut one = look.command("status slow -w").spawn().expect("it starts");
    let mut lines = BufReader::new(one.stdout.take().expect("it is piped")).lines();
    let row = |line: Option<std::io::Result<String>>| {
        let line = line.expect("a line").expect("text");
        cells(&line).into_iter().take(3).collect::<Vec<_>>().join(" ")
    };
    for expected in ["NAME STATE DONE", "slow Running 0/1"] {
        assert_eq!(row(lines.next()), expected);
        assert_eq!(row(all_lines.next()), expected);
    }
    std::fs::write(&gate, "").expect("it can be written");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let is_end = |line: &&String| cells(line).starts_with(&["slow", "Complete", "1/1"]);
    assert_eq!(rest.iter().filter(is_end).count(), 1, "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("slow: Complete in ")), "{rest:?}");
    assert_eq!(ended(one).code, Some(0));
    while row(all_lines.next()) != "slow Complete 1/1" {}
    kubectl.run("delete job slow");
    while row(all_lines.next()) != "slow Deleted 1/1" {}
    kill_process(Pid::from_child(&all), Signal::INT).expect("it runs");
    assert_eq!(ended(all).code, Some(130));
}

#[test]
fn a_job_cannot_drive_the_terminal() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    kubectl.give(
        &job("sly", "  backoffLimit: 0\n", "Never", "printf 'a\\033[2Jb\\n'; exit 1"),
        "create -f -",
    );
    // Nobody but the one who is named has a say in its status.
    let other = job("odd", "  managedBy: example.com/other\n", "Never", "true");
    kubectl.give(&other, "create -f -");
    let patch = "{\"status\":{\"conditions\":[{\"type\":\"Odd\",\"status\":\"True\",\
                 \"reason\":\"Why\",\"message\":\"x\\u001b[2J\\u202ey\"}]}}";
    let mut command = kubectl.command("patch job odd --subresource=status --type=merge -p");
    let patched = command.arg(patch).output().expect("kubectl runs");
    assert!(patched.status.success(), "{}", String::from_utf8_lossy(&patched.stderr));
    let uid = kubectl.run("get job odd -o jsonpath={.metadata.uid}");
    let event = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{{\"name\":\"odd.1\",\
         \"namespace\":\"default\"}},\"involvedObject\":{{\"kind\":\"Job\",\"name\":\"odd\",\
         \"namespace\":\"default\",\"uid\":\"{uid}\"}},\"type\":\"Warning\",\
         \"reason\":\"FailedCreate\",\"message\":\"quota\\u001b[2J\"}}"
    );
    kubectl.give(&event, "create -f -");
    let odd = look.shown("status odd");
    assert!(odd.contains("  warning    FailedCreate: quota\\u{1b}[2J\n"), "{odd}");
    assert!(odd.contains("Odd: Why: x\\u{1b}[2J\\u{202e}y\n"), "{odd}");
    assert!(odd.contains("for the controller example.com/other by its spec.managedBy"), "{odd}");
    let hostile = look.run("status x\u{1b}[2J");
    assert_eq!(hostile.code, Some(1), "{hostile:?}");
    assert!(hostile.stderr.contains("no Job x\\u{1b}[2J in"), "{hostile:?}");
    let bytes = "printf 'one\\n\\377bad\\n'; exit 1";
    kubectl.give(&job("bytes", "  backoffLimit: 0\n", "Never", bytes), "create -f -");
    kubectl.run("wait --for=condition=failed job/sly job/bytes --timeout=60s");
    let sly = look.shown("status sly");
    assert!(sly.contains("    | a\\u{1b}[2Jb\n"), "{sly}");
    let bytes = look.shown("status bytes");
    assert!(bytes.contains("    | one\n    | \u{fffd}bad\n"), "{bytes}");
}

#[test]
fn colours_are_for_terminals_whose_owner_wants_them() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(&job("held", "  suspend: true\n", "Never", "true"), "create -f -");
    let painted = "\u{1b}[1;33mSuspended\u{1b}[0m";
    let shown = |arguments: &str, no_color: &str| {
        let (mut master, terminal) = terminal();
        let mut command = Look::at(&server).command(arguments);
        command.env("TERM", "xterm").env("NO_COLOR", no_color).stdout(terminal);
        let mut child = command.spawn().expect("the binary starts");
        // The terminal is at its end when nobody holds its other side any more.
        drop(command);
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = master.read(&mut piece) {
            shown.extend_from_slice(&piece[..count]);
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        String::from_utf8(shown).expect("it is UTF-8")
    };
    for arguments in ["status", "status held"] {
        assert!(shown(arguments, "").contains(painted), "{arguments}");
        assert!(!shown(arguments, "1").contains('\u{1b}'), "{arguments}");
        assert!(!Look::at(&server).shown(arguments).contains('\u{1b}'), "{arguments}");
    }
}

/// A terminal, from both sides.
fn terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has one");
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    let terminal = File::options().read(true).write(true).open(path).expect("it is ours");
    (File::from(master), terminal)
}
