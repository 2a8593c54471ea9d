//! How containers are ended, and that nothing of them is left.

use std::time::{Duration, Instant};

use stint_node::{Ending, Signal};

use crate::kit::{container_spec, in_each_setting, start, start_spec, unique, who_has};

#[test]
fn a_container_that_does_not_care_for_signals_ends_by_them() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        for (signal, number) in [
            (Signal::Terminate, 15),
            (Signal::Kill, 9),
            (Signal::Other(10), 10),
            (Signal::Other(40), 40),
        ] {
            let spec = container_spec(&["sleep", &unique()]);
            let started = start_spec(&*sandbox, spec).await.unwrap();
            started.container.signal(signal);
            assert_eq!(started.end().await.0.ending, Ending::Signal(number), "{signal:?}");
        }
        sandbox.close().await;
    });
}

#[test]
fn a_signal_reaches_all_processes_of_its_container_and_no_other() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        // The shells speak for themselves only, not of their children's ends.
        let script = |name: &str| {
            format!(
                "exec 2> /dev/null; \
                 setsid sh -c 'trap \"echo {name} child; exit\" TERM; echo up; \
                               while :; do sleep 0.05; done' & \
                 trap 'wait; echo {name} parent; exit 3' TERM; \
                 while :; do sleep 0.05; done"
            )
        };
        let mut one = start(&*sandbox, &script("one")).await;
        let mut other = start(&*sandbox, &script("other")).await;
        assert_eq!((one.line().await, other.line().await), ("up".into(), "up".into()));
        one.container.signal(Signal::Other(0));
        one.container.signal(Signal::Terminate);
        let (exit, output) = one.end().await;
        assert_eq!((exit.ending, &*output), (Ending::Code(3), "one child\none parent\n"));
        other.container.signal(Signal::Kill);
        let (exit, rest) = other.end().await;
        assert_eq!((exit.ending, &*rest), (Ending::Signal(9), ""));
        sandbox.close().await;
    });
}

#[test]
fn who_ignores_being_asked_is_ended_by_force() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let unique = unique();
        let script = format!("trap '' TERM; echo up; sleep {unique}; sleep {unique}");
        let mut started = start(&*sandbox, &script).await;
        assert_eq!(started.line().await, "up");
        started.container.signal(Signal::Terminate);
        started.container.signal(Signal::Terminate);
        started.container.signal(Signal::Kill);
        assert_eq!(started.end().await.0.ending, Ending::Signal(9));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn what_a_finished_container_leaves_behind_goes_and_others_stay() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let stays = unique();
        let mut other = start(&*sandbox, &format!("sleep {stays} & echo up; wait")).await;
        assert_eq!(other.line().await, "up");
        for script in [
            // In the background, in a session of its own, and twice forked.
            "sleep {} & echo up",
            "setsid sleep {} & echo up",
            "(setsid sh -c 'sleep {} & sleep {} & echo up' &) ; sleep 0.05",
            "setsid setsid sh -c '(sleep {} &) & trap \"\" TERM HUP INT; echo up' < /dev/null &",
            // With its outputs closed, nobody would wait for it.
            "sleep {} > /dev/null 2>&1 & echo up",
        ] {
            let unique = unique();
            let started = start(&*sandbox, &script.replace("{}", &unique)).await;
            let (exit, output) = started.end().await;
            assert_eq!(exit.ending, Ending::Code(0), "{script}: {output}");
            assert_eq!(who_has(&unique), [] as [i32; 0], "{script}");
        }
        crate::kit::eventually("the other one sleeps", || who_has(&stays).len() == 1).await;
        sandbox.close().await;
        assert_eq!(who_has(&stays), [] as [i32; 0]);
    });
}

#[test]
fn closing_a_sandbox_ends_everything_in_it_at_once() {
    in_each_setting(async |node| {
        let (sandbox, other) = (node.sandbox().await, node.sandbox().await);
        let (ends, stays) = (unique(), unique());
        let mut kept = Vec::new();
        for _ in 0..3 {
            let script = format!("trap '' TERM; setsid sleep {ends} & echo up; sleep {ends}");
            let mut started = start(&*sandbox, &script).await;
            assert_eq!(started.line().await, "up");
            kept.push(started);
        }
        let mut staying = start(&*other, &format!("echo up; sleep {stays}; exit 1")).await;
        assert_eq!(staying.line().await, "up");
        sandbox.close().await;
        assert_eq!(who_has(&ends), [] as [i32; 0]);
        for started in kept {
            assert_eq!(started.end().await.0.ending, Ending::Signal(9));
        }
        crate::kit::eventually("the other one sleeps", || who_has(&stays).len() == 1).await;
        // Dropping is closing without waiting; what ran can still be asked.
        drop(other);
        assert_eq!(staying.end().await.0.ending, Ending::Signal(9));
        assert_eq!(who_has(&stays), [] as [i32; 0]);
    });
}

#[test]
fn a_container_without_any_descriptor_ends_like_others() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let unique = unique();
        let script = format!("exec 0<&- 1>&- 2>&-; exec sleep {unique}");
        let started = start(&*sandbox, &script).await;
        started.container.signal(Signal::Terminate);
        assert_eq!(started.end().await.0.ending, Ending::Signal(15));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn thousands_of_descendants_end_quickly() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let unique = unique();
        let script = format!(
            "i=0; while [ $i -lt 1000 ]; do sleep {unique} & i=$((i+1)); done; echo up; wait"
        );
        let mut started = start(&*sandbox, &script).await;
        assert_eq!(started.line().await, "up");
        crate::kit::eventually("all of them sleep", || who_has(&unique).len() == 1000).await;
        let before = Instant::now();
        started.container.signal(Signal::Kill);
        assert_eq!(started.end().await.0.ending, Ending::Signal(9));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        assert!(before.elapsed() < Duration::from_secs(20), "{:?}", before.elapsed());
        sandbox.close().await;
    });
}

#[test]
fn a_bounded_fork_bomb_is_put_out() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let unique = unique();
        // Each process starts two more and ends, or one if there are 60 more than before: nobody
        // is there for long, and their parents are gone.
        let bomb = "bomb() { n=$(ls -d /proc/[0-9]*/task 2>/dev/null | wc -l); \
                    if [ $n -lt $limit ]; then setsid sh \"$0\" & fi; setsid sh \"$0\" & }; bomb";
        let file = node.file("bomb", bomb);
        let mut spec = container_spec(&["sh", "-c", "sh $bomb; echo up; sleep $unique"]);
        let running = std::fs::read_dir("/proc").unwrap().count();
        spec.env.push(("limit".into(), (running + 60).to_string()));
        spec.env.push(("bomb".into(), file.to_str().unwrap().into()));
        spec.env.push(("unique".into(), unique.clone()));
        let mut started = start_spec(&*sandbox, spec).await.unwrap();
        assert_eq!(started.line().await, "up");
        let bombs = || who_has(file.to_str().unwrap());
        crate::kit::eventually("it burns", || bombs().len() >= 20).await;
        started.container.signal(Signal::Kill);
        assert_eq!(started.end().await.0.ending, Ending::Signal(9));
        assert_eq!(bombs(), [] as [i32; 0]);
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        sandbox.close().await;
    });
}

#[test]
fn a_signal_to_what_has_ended_harms_nobody() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exit 3").await;
        let exit = started.container.wait().await;
        for signal in [Signal::Terminate, Signal::Kill, Signal::Other(-5), Signal::Other(9999)] {
            started.container.signal(signal);
        }
        assert_eq!(started.end().await.0, exit);
        let (exit, _) = start(&*sandbox, "exit 4").await.end().await;
        assert_eq!(exit.ending, Ending::Code(4));
        sandbox.close().await;
    });
}

#[test]
fn a_start_that_nobody_waits_for_any_more_is_undone() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let unique = unique();
        {
            let script = format!("exec sleep {unique}");
            let starting = start(&*sandbox, &script);
            tokio::pin!(starting);
            // It is asked for, and given up before there is an answer.
            let first = futures_util::future::poll_immediate(&mut starting).await;
            assert!(first.is_none(), "the helper cannot have answered yet");
        }
        // The helper does one after the other, so that after this the first is there or gone.
        let (exit, _) = start(&*sandbox, "exit 0").await.end().await;
        assert_eq!(exit.ending, Ending::Code(0));
        crate::kit::eventually("the first is gone", || who_has(&unique).is_empty()).await;
        sandbox.close().await;
    });
}
