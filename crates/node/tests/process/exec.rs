//! Programs that run beside a container.

use std::time::Duration;

use stint_node::{Ending, ExecOutcome, RuntimeError, Signal};

use crate::kit::{in_each_setting, mount, start, start_with, unique, who_has};

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn outcome(ending: Ending, output: &str) -> ExecOutcome {
    ExecOutcome { ending: Some(ending), output: output.into() }
}

#[test]
fn it_has_the_containers_environment_mounts_namespaces_and_folder() {
    in_each_setting(async |node| {
        let volume = node.volume("volume");
        let here = node.volume("here");
        let sandbox = node.sandbox_with(|spec| spec.hostname = Some("inside".into())).await;
        let mut started = start_with(&*sandbox, "echo $$; exec sleep 1000", |spec| {
            if node.has_namespaces() {
                spec.mounts = vec![mount(&volume, "/stint-volume")];
            }
            spec.env.push(("GREETING".into(), "hello".into()));
            spec.working_dir = Some(here.clone());
        })
        .await
        .unwrap();
        let first = started.line().await;
        let run = |script: &'static str| {
            started.container.exec(command(&["sh", "-c", script]), None, 1000)
        };
        let done = |output: &str| outcome(Ending::Code(0), output);
        assert_eq!(run("echo $GREETING").await.unwrap(), done("hello\n"));
        assert_eq!(run("pwd").await.unwrap(), done(&format!("{}\n", here.display())));
        assert_eq!(run("exit 3").await.unwrap(), outcome(Ending::Code(3), ""));
        assert_eq!(run("kill -9 $$").await.unwrap(), outcome(Ending::Signal(9), ""));
        assert_eq!(run("echo out; echo err >&2").await.unwrap(), done("out\nerr\n"));
        assert_eq!(run("cat").await.unwrap(), done(""));
        // It sees the container's first process by the number that this has for itself.
        let same = format!("kill -0 {first} && echo there");
        let seen = started.container.exec(command(&["sh", "-c", &same]), None, 100).await;
        assert_eq!(seen.unwrap(), done("there\n"));
        if node.has_namespaces() {
            assert_eq!(run("cat /proc/sys/kernel/hostname").await.unwrap(), done("inside\n"));
            assert_eq!(run("echo x > /stint-volume/new").await.unwrap(), done(""));
            assert!(volume.join("new").exists());
        }
        sandbox.close().await;
    });
}

#[test]
fn when_its_time_is_up_it_is_ended() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let unique = unique();
        let script = format!("echo begun; trap '' TERM; sleep {unique} & sleep {unique}");
        let limit = Duration::from_millis(300);
        let outcome = started
            .container
            .exec(command(&["sh", "-c", &script]), Some(limit), 100)
            .await
            .unwrap();
        assert_eq!(outcome, ExecOutcome { ending: None, output: b"begun\n".to_vec() });
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn only_the_first_bytes_are_kept_and_the_rest_does_not_block_it() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let script = "i=0; while [ $i -lt 30000 ]; do echo 0123456789; i=$((i+1)); done";
        for keep in [0, 7, 10_000] {
            let outcome =
                started.container.exec(command(&["sh", "-c", script]), None, keep).await.unwrap();
            assert_eq!(outcome.ending, Some(Ending::Code(0)));
            let whole = "0123456789\n".repeat(keep / 11 + 1);
            assert_eq!(outcome.output, whole.as_bytes()[..keep]);
        }
        sandbox.close().await;
    });
}

#[test]
fn who_holds_its_output_is_not_waited_for() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let unique = unique();
        let script = format!("setsid sleep {unique} & echo begun");
        let outcome =
            started.container.exec(command(&["sh", "-c", &script]), None, 100).await.unwrap();
        assert_eq!(outcome, self::outcome(Ending::Code(0), "begun\n"));
        // What it leaves behind ends with the container at the latest.
        started.container.signal(Signal::Kill);
        started.end().await;
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

/// A process of its group that has ended, of which its parent, who has left the group, takes no
/// note.
#[test]
fn who_has_ended_and_is_forgotten_by_its_parent_is_not_waited_for() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let (left, stays) = (unique(), unique());
        let script = format!(
            "sleep {stays} & (true & exec setsid sleep {left}) &\n\
             while read -r _ _ _ _ group _ < /proc/$!/stat && [ $group = $$ ]; do :; done; echo done"
        );
        let began = std::time::Instant::now();
        let outcome =
            started.container.exec(command(&["sh", "-c", &script]), None, 100).await.unwrap();
        assert_eq!(outcome, self::outcome(Ending::Code(0), "done\n"));
        assert!(began.elapsed() < Duration::from_secs(9), "it is not waited for: {began:?}");
        assert_eq!(who_has(&stays), [] as [i32; 0], "nobody of the group is left");
        // And the next one runs as if nothing had been.
        let next = started.container.exec(command(&["true"]), None, 100).await.unwrap();
        assert_eq!(next, self::outcome(Ending::Code(0), ""));
        started.container.signal(Signal::Kill);
        started.end().await;
        assert_eq!(who_has(&left), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn it_ends_with_its_container() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let unique = unique();
        let sleep = started.container.exec(command(&["sleep", &unique]), None, 100);
        let end = async {
            crate::kit::eventually("it runs", || who_has(&unique).len() == 1).await;
            started.container.signal(Signal::Kill);
        };
        let (outcome, ()) = tokio::join!(sleep, end);
        assert_eq!(outcome.unwrap(), self::outcome(Ending::Signal(9), ""));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn what_cannot_run_is_an_error() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let refused = started.container.exec(command(&["nope"]), None, 100).await;
        match refused {
            Err(RuntimeError::CannotRun { message, .. }) => {
                assert_eq!(message, "exec: \"nope\": executable file not found in $PATH");
            }
            other => panic!("{other:?}"),
        }
        started.container.signal(Signal::Kill);
        started.container.wait().await;
        match started.container.exec(command(&["true"]), None, 100).await {
            Err(RuntimeError::CannotRun { message, .. }) => {
                assert_eq!(message, "the container has ended");
            }
            other => panic!("{other:?}"),
        }
        sandbox.close().await;
    });
}
