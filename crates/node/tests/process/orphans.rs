//! Whatever dies, nothing that a node has started survives it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use stint_node::{Ending, ProcessRuntime, Runtime};

use crate::kit::{
    self, block_on, eventually, helper_of, in_each_setting, kill, new_folder, options,
    sandbox_spec, settings, start, unique, who_has,
};

/// What is started in the server that dies: a process, one in the background, one that has left
/// its session and lost its parents.
fn family(unique: &str) -> String {
    format!(
        "trap '' TERM HUP; sleep {unique} & (setsid sh -c 'sleep {unique} & echo up' &); sleep {unique}"
    )
}

/// How many the family has that sleep.
const FAMILY: usize = 3;

#[test]
fn everything_ends_when_the_server_is_killed() {
    for (at, setting) in settings().into_iter().enumerate() {
        eprintln!("in {setting:?}");
        let folder = new_folder(setting);
        let unique = unique();
        let mut server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "orphans::a_server_that_is_killed", "--ignored", "--nocapture"])
            .env("STINT_TEST_SETTING", at.to_string())
            .env("STINT_TEST_FOLDER", folder.path())
            .env("STINT_TEST_UNIQUE", &unique)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("serving")), "the server starts");
        assert_eq!(who_has(&unique).len(), FAMILY);
        server.kill().unwrap();
        server.wait().unwrap();
        block_on(async {
            // A new server finds what is left, or waits until it is gone.
            let runtime = ProcessRuntime::start(options(setting, folder.path())).await.unwrap();
            runtime.end_leftovers().await.unwrap();
            assert_eq!(who_has(&unique), [] as [i32; 0]);
            assert_eq!(runtime.end_leftovers().await.unwrap(), Vec::<String>::new());
            runtime.stop().await;
        });
    }
}

#[test]
#[ignore = "run by others, in a process of its own that is killed"]
fn a_server_that_is_killed() {
    let variable = |name: &str| std::env::var(name).expect("it is run by another test");
    let setting = settings()[variable("STINT_TEST_SETTING").parse::<usize>().unwrap()];
    let folder = std::path::PathBuf::from(variable("STINT_TEST_FOLDER"));
    let unique = variable("STINT_TEST_UNIQUE");
    block_on(async {
        let runtime = ProcessRuntime::start(options(setting, &folder)).await.unwrap();
        let sandbox = runtime.make_sandbox(sandbox_spec()).await.unwrap();
        let mut started = start(&*sandbox, &family(&unique)).await;
        assert_eq!(started.line().await, "up");
        eventually("all of them sleep", || who_has(&unique).len() == FAMILY).await;
        println!("serving");
        std::future::pending::<()>().await;
    });
}

#[test]
fn when_the_helper_is_killed_its_containers_are_and_a_new_one_takes_over() {
    in_each_setting(async |node| {
        let unique = unique();
        let sandbox = node.sandbox().await;
        let mut started = start(&*sandbox, &family(&unique)).await;
        assert_eq!(started.line().await, "up");
        eventually("all of them sleep", || who_has(&unique).len() == FAMILY).await;
        let helper = helper_of(node);
        kill(helper);
        let exit = started.container.wait().await;
        assert_eq!(exit.ending, Ending::Lost);
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        let beside = started.container.exec(vec!["true".into()], None, 0).await;
        assert!(beside.unwrap_err().to_string().contains("the process helper has ended"));
        // The same sandbox, in another helper.
        let (exit, _) = start(&*sandbox, "exit 6").await.end().await;
        assert_eq!(exit.ending, Ending::Code(6));
        assert_ne!(helper_of(node), helper);
        sandbox.close().await;
    });
}

#[test]
fn when_a_keeper_is_killed_so_is_what_it_kept() {
    in_each_setting(async |node| {
        let unique = unique();
        let sandbox = node.sandbox().await;
        let mut other = start(&*sandbox, "echo up; exec sleep 1000").await;
        let mut started = start(&*sandbox, &family(&unique)).await;
        assert_eq!(started.line().await, "up");
        assert_eq!(other.line().await, "up");
        eventually("all of them sleep", || who_has(&unique).len() == FAMILY).await;
        kill(keeper_of(&unique, helper_of(node)));
        assert_eq!(started.container.wait().await.ending, Ending::Signal(9));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        let beside = other.container.exec(vec!["true".into()], None, 0).await.unwrap();
        assert_eq!(beside.ending, Some(Ending::Code(0)), "the other one still runs");
        sandbox.close().await;
    });
}

#[test]
fn what_may_have_begun_when_the_helper_was_killed_has_been_started_and_lost() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let helper = helper_of(node);
        let pid = rustix::process::Pid::from_raw(helper).unwrap();
        // The request is on its way when the helper ends: what came of it nobody can tell.
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let starting = start(&*sandbox, "exec sleep 1000");
        let killing = async {
            tokio::task::yield_now().await;
            kill(helper);
        };
        let (started, ()) = tokio::join!(starting, killing);
        assert_eq!(started.end().await.0.ending, Ending::Lost);
        sandbox.close().await;
    });
}

/// The helper's child above who has this argument.
fn keeper_of(unique: &str, helper: i32) -> i32 {
    let parent = |pid: i32| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let mut pid = who_has(unique)[0];
    while parent(pid) != helper {
        pid = parent(pid);
    }
    pid
}

#[test]
fn dropping_the_runtime_ends_everything() {
    for setting in settings() {
        block_on(async {
            let folder = new_folder(setting);
            let runtime = ProcessRuntime::start(options(setting, folder.path())).await.unwrap();
            let unique = unique();
            let sandbox = runtime.make_sandbox(sandbox_spec()).await.unwrap();
            let mut started = start(&*sandbox, &family(&unique)).await;
            assert_eq!(started.line().await, "up");
            eventually("all of them sleep", || who_has(&unique).len() == FAMILY).await;
            drop(runtime);
            assert_eq!(started.end().await.0.ending, Ending::Signal(9));
            assert_eq!(who_has(&unique), [] as [i32; 0]);
            let refused = kit::start_with(&*sandbox, "true", |_| {}).await.err();
            assert!(refused.unwrap().to_string().contains("was stopped"));
        });
    }
}

/// Without helper and keepers nothing but the mark tells whose they are.
#[test]
fn what_is_left_of_an_earlier_server_is_found_by_its_mark() {
    for setting in settings() {
        block_on(async {
            let folder = new_folder(setting);
            let node = node_name(folder.path());
            let runtime = ProcessRuntime::start(options(setting, folder.path())).await.unwrap();
            let (left, others) = (unique(), unique());
            let _at_the_end = [KillAll(left.clone()), KillAll(others.clone())];
            let leave = |mark: String, unique: &str| {
                Command::new("/bin/sh")
                    // Who has lost the mark is found below who has it.
                    .args(["-c", &format!("env -i sleep {unique} & sleep {unique}")])
                    .env("STINT_POD", mark)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            };
            let mut one = leave(format!("{node}/earlier/uid-1"), &left);
            let mut two = leave(format!("{node}/much-earlier/uid-2"), &left);
            let mut other = leave("another-node/earlier/uid-3".into(), &others);
            eventually("all of them run", || who_has(&left).len() + who_has(&others).len() >= 6)
                .await;
            let sandbox = runtime.make_sandbox(sandbox_spec()).await.unwrap();
            let mut own = start(&*sandbox, "echo up; exec sleep 1000").await;
            assert_eq!(own.line().await, "up");

            // Who has ended is no process of this test's until it has taken note of it.
            let reaper = std::thread::spawn(move || [one.wait().unwrap(), two.wait().unwrap()]);
            let found = runtime.end_leftovers().await.unwrap();
            assert_eq!(found, ["uid-1", "uid-2"]);
            for status in reaper.join().unwrap() {
                // Killed, or told by its child's end that this was.
                assert!(!status.success(), "{status}");
            }
            let sleeping = |unique: &str| who_has(unique).len();
            assert_eq!(sleeping(&left), 0);
            assert_eq!(sleeping(&others), 2, "another node's are left alone");
            let beside = own.container.exec(vec!["true".into()], None, 0).await.unwrap();
            assert_eq!(beside.ending, Some(Ending::Code(0)), "and so are the node's own");
            runtime.stop().await;
            who_has(&others).into_iter().for_each(kill);
            kill(other.id() as i32);
            other.wait().unwrap();
        });
    }
}

/// Ends who has this argument, however the test goes.
struct KillAll(String);

impl Drop for KillAll {
    fn drop(&mut self) {
        who_has(&self.0).into_iter().for_each(kill);
    }
}

fn node_name(folder: &std::path::Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder).unwrap();
    format!("{:x}-{:x}", metadata.dev(), metadata.ino())
}

#[test]
fn a_terminal_does_not_reach_the_helper() {
    in_each_setting(async |node| {
        let helper = helper_of(node);
        let stat = std::fs::read_to_string(format!("/proc/{helper}/stat")).unwrap();
        let group: i32 =
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap().parse().unwrap();
        assert_eq!(group, helper, "a process group of its own");
        // And what is sent to it by name it does not take either: the server decides.
        for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
            let pid = rustix::process::Pid::from_raw(helper).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        }
        assert_eq!(node.prints("echo still").await, "still\n");
        assert_eq!(helper_of(node), helper);
    });
}
