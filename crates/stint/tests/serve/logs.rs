//! `stint logs`, the real binary, against the real server and without one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{Kubectl, Server};
use crate::look::{Look, bare, ended, indexed, job};

/// Fails the first time that it runs.
fn once(server: &Server, name: &str) -> String {
    let mark = server.folder().join(name);
    let mark = mark.display();
    format!("if [ -e {mark} ]; then echo second; else touch {mark}; echo first; exit 1; fi")
}

fn next(lines: &mut std::io::Lines<BufReader<ChildStdout>>) -> Option<String> {
    lines.next().map(|line| line.expect("it writes text"))
}

#[test]
fn every_attempt_of_the_indexes_that_are_asked_for_is_shown_in_order() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let fails = once(&server, "mark");
    let script = format!("case $JOB_COMPLETION_INDEX in 1) {fails};; *) echo one; echo two;; esac");
    kubectl.give(&indexed("work", 4, "  backoffLimitPerIndex: 1\n", &script), "create -f -");
    kubectl.run("wait --for=condition=complete job/work --timeout=120s");
    let all = "[work/0] one\n[work/0] two\n[work/1] first\n[work/1] second\n[work/2] one\n\
               [work/2] two\n[work/3] one\n[work/3] two\n";
    assert_eq!(look.shown("logs work"), all);
    assert_eq!(look.shown("logs job.batch/work -f"), all);
    assert_eq!(look.shown("logs work --index 3,0 --tail 1"), "[work/0] two\n[work/3] two\n");
    assert_eq!(look.shown("logs work --index 2"), "one\ntwo\n");
    let attempts = look.run("logs work --index 1");
    assert_eq!(attempts.stdout, "[work/1] first\n[work/1] second\n", "{attempts:?}");
    assert!(attempts.stderr.contains("index 1, attempt 1 of 2: Pod work-1-"), "{attempts:?}");
    assert!(attempts.stderr.contains("failed: exit code 1\n"), "{attempts:?}");
    let timed = look.shown("logs work --index 2 --timestamps --since 1h -c main");
    assert!(timed.lines().all(|line| line.starts_with("20") && line.contains("Z ")), "{timed}");
    assert_eq!(look.shown("logs work --context stint-view --index 0"), "one\ntwo\n");
    let rows = [
        ("logs wrok", 1, "no Job wrok in namespace default; did you mean work?"),
        ("logs work -n other", 1, "no Job work in namespace other"),
        ("logs ../x", 1, "no Job ../x in namespace default; there are: work"),
        ("logs work --index 4", 2, "has the indexes 0 to 3, and --index asks for 4"),
        ("logs work -c man", 2, "no container man; did you mean main?"),
        ("logs work --context none", 2, "none"),
        ("logs work --since 5", 2, "500ms"),
        ("logs work -f --previous", 2, "cannot be used with"),
    ];
    for (arguments, code, said) in rows {
        let ended = look.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments}: {ended:?}");
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{arguments}: {ended:?}");
    }
    kubectl.run("delete pods -l batch.kubernetes.io/job-completion-index=2");
    let gone = look.run("logs work --index 2");
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("no Pod is left of the indexes 2\n"), "{gone:?}");
    let rest = look.run("logs work --index 2,3");
    assert_eq!((rest.code, rest.stdout.as_str()), (Some(0), "one\ntwo\n"), "{rest:?}");
}

#[test]
fn pods_that_come_later_are_followed_until_the_job_ends() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let gate = server.folder().join("gate");
    let script = format!(
        "echo begun; while [ ! -e {} ]; do sleep 0.05; done; {}",
        gate.display(),
        once(&server, "mark")
    );
    let more = "  completions: 2\n  parallelism: 1\n  completionMode: Indexed\n";
    kubectl.give(&job("later", more, "Never", &script), "create -f -");
    let mut child = Look::at(&server).command("logs later -f").spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert_eq!(next(&mut lines).as_deref(), Some("[later/0] begun"));
    fs::write(&gate, "").expect("it can be written");
    let rest: Vec<String> = std::iter::from_fn(|| next(&mut lines)).collect();
    let expected = ["0] first", "0] begun", "0] second", "1] begun", "1] second"];
    assert_eq!(rest, expected.map(|line| format!("[later/{line}")));
    let ended = ended(child);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // It may have come before the first container had begun, and says so then.
    let waits = ["has not begun", "no Pod has been made yet", "waiting for a container to begin"];
    let is_wait = |line: &str| waits.iter().any(|text| line.contains(text));
    assert!(ended.stderr.lines().all(is_wait), "{ended:?}");
    kubectl.run("wait --for=condition=complete job/later --timeout=60s");
}

#[test]
fn lines_of_many_pods_are_whole() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let script = "for n in 1 2 3 4 5 6 7 8 9 10; do for part in a b c d; do printf \
                  \"$JOB_COMPLETION_INDEX$part\"; done; echo; done";
    kubectl.give(&indexed("many", 12, "", script), "create -f -");
    let text = Look::at(&server).shown("logs many -f");
    let mut counts = [0; 12];
    for line in text.lines() {
        let (index, said) = line.strip_prefix("[many/").expect(line).split_once("] ").expect(line);
        assert_eq!(said, format!("{index}a{index}b{index}c{index}d"));
        counts[index.parse::<usize>().expect(line)] += 1;
    }
    assert_eq!(counts, [10; 12]);
}

#[test]
fn what_a_container_printed_before_its_restart_is_shown() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let script = once(&server, "mark");
    kubectl.give(&job("again", "", "OnFailure", &script), "create -f -");
    kubectl.run("wait --for=condition=complete job/again --timeout=60s");
    assert_eq!(look.shown("logs again"), "second\n");
    assert_eq!(look.shown("logs again --previous"), "first\n");
    let gate = server.folder().join("gate");
    let waits = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let script = format!("echo begun; {waits}; {}", once(&server, "other-mark"));
    kubectl.give(&job("live", "", "OnFailure", &script), "create -f -");
    let mut child = look.command("logs live -f").spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert_eq!(next(&mut lines).as_deref(), Some("begun"));
    fs::write(&gate, "").expect("it can be written");
    let rest: Vec<String> = std::iter::from_fn(|| next(&mut lines)).collect();
    assert_eq!(rest, ["first", "begun", "second"]);
    assert_eq!(ended(child).code, Some(0));
    let indexed = look.run("logs again --index 0");
    assert_eq!(indexed.code, Some(2), "{indexed:?}");
    assert!(indexed.stderr.contains("has no indexes"), "{indexed:?}");
}

/// The second run begins at once after the first, so that the Pod may never be seen in that.
#[test]
fn what_quickly_restarted_containers_print_is_followed_whole() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let mark = server.folder().join("quick").display().to_string();
    let script = format!(
        "m={mark}-$JOB_COMPLETION_INDEX; if [ -e $m ]; then echo second; else touch $m; \
         echo first; exit 1; fi"
    );
    let more = "  completions: 12\n  parallelism: 12\n  completionMode: Indexed\n  suspend: true\n";
    kubectl.give(&job("quick", more, "OnFailure", &script), "create -f -");
    let mut child = Look::at(&server).command("logs quick -f").spawn().expect("it starts");
    let mut notes = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let is_waiting = |note: std::io::Result<String>| note.is_ok_and(|it| it.contains("waiting"));
    assert!(notes.any(is_waiting), "it says that it waits");
    kubectl.run("patch job quick -p {\"spec\":{\"suspend\":false}}");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut told: Vec<String> = std::iter::from_fn(|| next(&mut lines)).collect();
    // Of each index in order.
    told.sort_by_key(|line| line.split_once(' ').expect("it has a prefix").0.to_owned());
    let mut expected: Vec<String> = Vec::new();
    for index in 0..12 {
        expected.extend(["first", "second"].map(|word| format!("[quick/{index}] {word}")));
    }
    expected.sort_by_key(|line| line.split_once(' ').expect("it has a prefix").0.to_owned());
    assert_eq!(told, expected);
    assert_eq!(ended(child).code, Some(0));
}

#[test]
fn several_containers_are_told_apart_and_pods_without_indexes_by_name() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    let two = job("two", "", "Never", "echo main")
        + "      - {name: side, image: x, command: [echo, side]}\n";
    kubectl.give(&two, "create -f -");
    kubectl.give(&job("pair", "  completions: 2\n", "Never", "echo hi"), "create -f -");
    kubectl.run("wait --for=condition=complete job/two job/pair --timeout=60s");
    let pod = kubectl.run("get pods -l job-name=two -o jsonpath={.items[0].metadata.name}");
    let mut lines: Vec<String> = look.shown("logs two").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, [format!("[{pod} main] main"), format!("[{pod} side] side")]);
    assert_eq!(look.shown("logs two -c side"), "side\n");
    let pair = look.shown("logs pair");
    assert!(
        pair.lines().all(|line| line.starts_with("[pair-") && line.ends_with("] hi")),
        "{pair}"
    );
    assert_eq!(pair.lines().count(), 2);
    kubectl.run("delete pods -l job-name=two");
    let gone = look.run("logs two");
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("1 Pod is gone"), "{gone:?}");
}

#[test]
fn a_reader_that_leaves_and_an_interrupt_end_it() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let look = Look::at(&server);
    kubectl.give(&job("loud", "", "Never", "seq 200000; sleep 1000"), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=1 job/loud --timeout=60s");
    let mut child = look.command("logs loud -f").spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert_eq!(next(&mut lines).as_deref(), Some("1"));
    drop(lines);
    let left = ended(child);
    assert_eq!((left.code, left.stderr.as_str()), (Some(141), ""));
    let mut child = look.command("logs loud -f --tail 1").spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    // The rest of them may still be on their way.
    while next(&mut lines).expect("more is to come") != "200000" {}
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(ended(child).code, Some(130));
    // It waits for more when its server goes.
    let mut child = look.command("logs loud -f --tail 1").spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    while next(&mut lines).expect("more is to come") != "200000" {}
    server.kill();
    let lost = ended(child);
    assert_eq!(lost.code, Some(3), "{lost:?}");
    assert!(lost.stderr.contains("does not answer any more"), "{lost:?}");
}

#[test]
fn a_cluster_that_is_not_there_is_told() {
    let home = tempfile::tempdir().expect("a folder");
    let server = Server::in_memory();
    let kubeconfig = home.path().join("kubeconfig");
    fs::copy(server.kubeconfig(), &kubeconfig).expect("it is there");
    let strange = home.path().join("strange");
    let text = fs::read_to_string(&kubeconfig).expect("it is there");
    let text = text.lines().filter(|line| !line.contains("client-")).map(|line| {
        let place = line.find("token:").map_or(line.len(), |place| place + "token:".len());
        format!("{}{}\n", &line[..place], if place < line.len() { " strange" } else { "" })
    });
    fs::write(&strange, text.collect::<String>()).expect("it is ours");
    let arguments = format!("status --kubeconfig {}", strange.display());
    let stranger = ended(bare(&arguments, home.path()).spawn().expect("it starts"));
    assert_eq!(stranger.code, Some(2), "{stranger:?}");
    assert!(stranger.stderr.contains("does not know who is asking"), "{stranger:?}");
    server.kill();
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let locked = home.path().join("locked");
    fs::create_dir(&locked).expect("it is ours");
    let lock = File::create(locked.join("stint.lock")).expect("it is ours");
    lock.lock().expect("it is ours");
    let locked = locked.to_str().expect("UTF-8");
    let rows = [
        (format!("logs work --kubeconfig {kubeconfig}"), 3, "no cluster at https://127.0.0.1:"),
        (format!("status --kubeconfig {kubeconfig}"), 3, "start one with `stint serve`"),
        ("status --kubeconfig /nowhere".to_owned(), 2, "cannot use the kubeconfig /nowhere"),
        ("status --data-dir /nowhere".to_owned(), 3, "no cluster at /nowhere; start one with"),
        ("status".to_owned(), 3, "/.local/share/stint; start one with `stint serve`"),
        (format!("status --data-dir {locked}"), 3, "by a stint that serves no API"),
    ];
    for (arguments, code, said) in rows {
        let ended = ended(bare(&arguments, home.path()).spawn().expect("it starts"));
        assert_eq!(ended.code, Some(code), "{arguments}: {ended:?}");
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{arguments}: {ended:?}");
    }
    assert!(!home.path().join(".local").exists(), "looking makes nothing");
}

#[test]
fn a_data_folder_is_looked_at_whether_it_is_served_or_not() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    let file = home.path().join("job.yaml");
    let script = "echo said $JOB_COMPLETION_INDEX; test $JOB_COMPLETION_INDEX = 0";
    let manifest = indexed("kept", 2, "  backoffLimitPerIndex: 0\n", script);
    fs::write(&file, manifest).expect("it is ours");
    let look = |arguments: &str| ended(bare(arguments, home.path()).spawn().expect("it starts"));
    let (data_dir, file) = (format!("--data-dir {}", data.display()), file.display());
    let run = look(&format!("run {data_dir} {file}"));
    assert_eq!(run.code, Some(1), "{run:?}");
    let check = |is_served: bool| {
        let logs = look(&format!("logs kept {data_dir}"));
        assert_eq!(logs.stdout, "[kept/0] said 0\n[kept/1] said 1\n", "{logs:?}");
        assert_eq!((logs.code, logs.stderr.as_str()), (Some(0), ""));
        let followed = look(&format!("logs kept --index 1 -f {data_dir}"));
        assert_eq!((followed.code, followed.stdout.as_str()), (Some(0), "said 1\n"));
        let page = look(&format!("status kept {data_dir}"));
        assert_eq!(page.code, Some(0), "{page:?}");
        assert!(page.stdout.contains("  failed     1 index: 1\n"), "{page:?}");
        assert!(page.stdout.contains("    | said 1\n"), "{page:?}");
        let next = format!("next: stint logs kept --index 1 {data_dir}\n");
        assert!(page.stdout.ends_with(&next), "{page:?}");
        assert_eq!(page.stderr.contains("nobody runs the cluster"), !is_served, "{page:?}");
    };
    check(false);
    let server = Server::in_folder(&data);
    check(true);
    let viewed = look(&format!("status {data_dir} --context stint-view -o name"));
    assert_eq!((viewed.code, viewed.stdout.as_str()), (Some(0), "job.batch/kept\n"));
    let unknown = look(&format!("status {data_dir} --context none"));
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(server.stop().success());
    check(false);
    // The folder of whoever names none.
    let mut command = bare("logs kept --index 0", home.path());
    let ended = ended(command.env("STINT_DATA_DIR", &data).spawn().expect("it starts"));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "said 0\n"));
}
