//! The lives of Pods as tables: what happens at which second, and what is wished for then. No
//! runtime, no API.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

/// What happens, at which second.
#[derive(Clone)]
enum Happens {
    Prepared,
    Started(usize),
    Ended(usize, i32),
    Refused(usize),
    Probed(usize, ProbeKind, bool),
    Hooked(usize, bool),
    Stopped(usize),
    Deleted(u64),
    Vanished,
    Closed,
    Nothing,
}

/// Lives a Pod through what happens; all wishes, a line for each step that has any.
fn lived(spec: Value, steps: &[(i64, Happens)]) -> Vec<String> {
    let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a Pod");
    let mut life = Life::new(Plan::of(&pod), BackoffOptions::default(), at(0));
    let mut lines = Vec::new();
    let mut note = |second: i64, wishes: Vec<Wish>| {
        let words: Vec<String> = wishes.into_iter().map(word).collect();
        if !words.is_empty() {
            lines.push(format!("{second}: {}", words.join(", ")));
        }
    };
    note(0, life.next(at(0)));
    for (second, happens) in steps {
        let now = at(*second);
        if let Some(fact) = fact(happens, &life, now) {
            life.observe(fact, now);
        }
        note(*second, life.next(now));
        assert!(life.wake_at(now).is_none_or(|at| at > now), "it would wake without end");
    }
    lines
}

fn fact(happens: &Happens, life: &Life, now: Timestamp) -> Option<Fact> {
    let answer = |is_good: bool| if is_good { Ok(()) } else { Err("no".to_owned()) };
    let run = |cell: usize| life.cells[cell].run;
    Some(match *happens {
        Happens::Prepared => Fact::Prepared,
        Happens::Started(cell) => Fact::Started { cell, at: now },
        Happens::Ended(cell, code) => Fact::Ended {
            cell,
            end: End {
                code,
                signal: None,
                reason: "Error".to_owned(),
                message: None,
                started_at: Some(now),
                at: now,
                run: run(cell),
            },
        },
        Happens::Refused(cell) => {
            let why = NotStarted::Later { reason: "CreateContainerError", message: String::new() };
            Fact::NotStarted { cell, why }
        }
        Happens::Probed(cell, kind, is_good) => {
            Fact::Probed { cell, run: run(cell), kind, answer: answer(is_good) }
        }
        Happens::Hooked(cell, is_good) => {
            Fact::PostStarted { cell, run: run(cell), answer: answer(is_good) }
        }
        Happens::Stopped(cell) => Fact::PreStopped { cell, run: run(cell), answer: Ok(()) },
        Happens::Deleted(grace) => Fact::Deleted { grace: Duration::from_secs(grace) },
        Happens::Vanished => Fact::Vanished,
        Happens::Closed => Fact::Closed,
        Happens::Nothing => return None,
    })
}

fn word(wish: Wish) -> String {
    match wish {
        Wish::Prepare => "prepare".to_owned(),
        Wish::Start { cell } => format!("start {cell}"),
        Wish::Signal { cell, signal } => format!("{signal:?} {cell}"),
        Wish::Probe { cell, kind } => format!("{kind:?} {cell}"),
        Wish::PostStart { cell } => format!("post-start {cell}"),
        Wish::PreStop { cell } => format!("pre-stop {cell}"),
        Wish::Close => "close".to_owned(),
        Wish::Tell(said) => format!("tell {}", said.reason),
    }
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

#[test]
fn a_container_that_ends_ends_its_pod() {
    use Happens::*;
    let spec = json!({"restartPolicy": "Never", "containers": named(&["a"])});
    let steps = [(0, Prepared), (1, Started(0)), (5, Ended(0, 0)), (6, Closed), (7, Nothing)];
    assert_eq!(lived(spec, &steps), ["0: prepare", "0: start 0", "5: close"]);
}

#[test]
fn nothing_is_started_while_a_start_is_under_way_or_after_an_ending() {
    use Happens::*;
    let spec = json!({"restartPolicy": "Always", "containers": named(&["a", "b"])});
    let steps = [
        (0, Prepared),
        (1, Nothing),
        (2, Started(0)),
        (3, Deleted(30)),
        // The other was being started: it is stopped once it runs.
        (4, Started(1)),
        (5, Ended(0, 143)),
        (6, Ended(1, 143)),
    ];
    assert_eq!(
        lived(spec, &steps),
        ["0: prepare", "0: start 0, start 1", "3: Terminate 0", "4: Terminate 1", "6: close"]
    );
}

#[test]
fn the_first_ending_stays_and_a_later_one_may_only_hasten_it() {
    use Happens::*;
    let spec = json!({"restartPolicy": "Never", "containers": named(&["a"])});
    let steps = [
        (0, Prepared),
        (0, Started(0)),
        (10, Deleted(100)),
        (20, Deleted(500)),
        (30, Deleted(5)),
        (34, Nothing),
        (35, Nothing),
        (36, Vanished),
        (37, Ended(0, 137)),
    ];
    assert_eq!(
        lived(spec, &steps),
        ["0: prepare", "0: start 0", "10: Terminate 0", "35: Kill 0", "37: close"]
    );
}

#[test]
fn whoever_is_killed_was_asked_before_and_had_two_seconds() {
    use Happens::*;
    let mut containers = named(&["a"]);
    type Row<'r> = (bool, &'r [(i64, Happens)], &'r [&'r str]);
    let rows: [Row<'_>; 5] = [
        // A hook that takes all the time.
        (
            true,
            &[(10, Deleted(5)), (14, Nothing), (15, Nothing), (16, Stopped(0)), (17, Nothing)],
            &["10: pre-stop 0", "15: Terminate 0", "17: Kill 0"],
        ),
        // A hook that leaves less than two seconds.
        (
            true,
            &[(10, Deleted(5)), (14, Stopped(0)), (15, Nothing), (16, Nothing)],
            &["10: pre-stop 0", "14: Terminate 0", "16: Kill 0"],
        ),
        // One that is forced out of the API: its hook has a second.
        (
            true,
            &[(10, Vanished), (11, Nothing), (12, Nothing), (13, Nothing)],
            &["10: pre-stop 0", "11: Terminate 0", "13: Kill 0"],
        ),
        (
            false,
            &[(10, Deleted(0)), (11, Nothing), (12, Nothing)],
            &["10: Terminate 0", "12: Kill 0"],
        ),
        // One that was asked before has two seconds from then on.
        (
            false,
            &[(10, Deleted(30)), (20, Vanished), (21, Nothing), (22, Nothing)],
            &["10: Terminate 0", "22: Kill 0"],
        ),
    ];
    for (has_hook, steps, expected) in rows {
        containers[0]["lifecycle"] = match has_hook {
            true => json!({"preStop": {"exec": {"command": ["x"]}}}),
            false => json!({}),
        };
        let spec = json!({"restartPolicy": "Never", "containers": containers});
        let steps: Vec<_> =
            [(0, Prepared), (0, Started(0))].into_iter().chain(steps.iter().cloned()).collect();
        assert_eq!(lived(spec, &steps)[2..], *expected);
    }
}

#[test]
fn a_sidecar_is_asked_when_the_grace_is_over_although_others_still_need_it() {
    use Happens::*;
    let mut init = named(&["side"]);
    init[0]["restartPolicy"] = json!("Always");
    let spec = json!({"restartPolicy": "Never", "initContainers": init,
        "containers": named(&["main"])});
    let steps = [
        (0, Prepared),
        (1, Started(0)),
        (2, Started(1)),
        (10, Deleted(5)),
        (15, Nothing),
        (16, Ended(1, 137)),
        (17, Nothing),
    ];
    assert_eq!(
        lived(spec, &steps)[3..],
        ["10: Terminate 1", "15: Kill 1, Terminate 0", "17: Kill 0"]
    );
}

#[test]
fn hooks_hold_back_what_comes_after_them() {
    use Happens::*;
    let mut containers = named(&["a"]);
    containers[0]["lifecycle"] = json!({
        "postStart": {"exec": {"command": ["x"]}}, "preStop": {"exec": {"command": ["x"]}}});
    containers[0]["livenessProbe"] = json!({"exec": {"command": ["x"]}});
    let spec = json!({"restartPolicy": "Never", "containers": containers});
    let steps = [
        (0, Prepared),
        (1, Started(0)),
        (5, Nothing),
        (6, Hooked(0, true)),
        (7, Deleted(30)),
        (9, Stopped(0)),
    ];
    assert_eq!(
        lived(spec, &steps),
        [
            "0: prepare",
            "0: start 0",
            "1: post-start 0",
            "6: Liveness 0",
            "7: pre-stop 0",
            "9: Terminate 0"
        ]
    );
}

#[test]
fn an_answer_of_an_earlier_run_says_nothing_of_this_one() {
    use Happens::*;
    let mut containers = named(&["a"]);
    containers[0]["livenessProbe"] = json!({"exec": {"command": ["x"]}, "failureThreshold": 1});
    let pod = json!({"spec": {"restartPolicy": "Always", "containers": containers}});
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let mut life = Life::new(Plan::of(&pod), BackoffOptions::default(), at(0));
    life.next(at(0));
    for happens in [Prepared, Started(0), Ended(0, 1), Nothing, Started(0)] {
        if let Some(fact) = fact(&happens, &life, at(1)) {
            life.observe(fact, at(1));
        }
        life.next(at(1));
    }
    assert_eq!(life.cells[0].run, 1);
    let stale =
        Fact::Probed { cell: 0, run: 0, kind: ProbeKind::Liveness, answer: Err("no".to_owned()) };
    life.observe(stale, at(2));
    assert!(life.next(at(2)).is_empty());
    let fresh = Probed(0, ProbeKind::Liveness, false);
    life.observe(fact(&fresh, &life, at(2)).expect("a fact"), at(2));
    let words: Vec<String> = life.next(at(2)).into_iter().map(word).collect();
    assert_eq!(words, ["tell Killing", "tell Unhealthy", "Terminate 0"]);
}

#[test]
fn what_is_missing_is_tried_again_less_and_less_often() {
    use Happens::*;
    let spec = json!({"restartPolicy": "Never", "containers": named(&["a"])});
    let steps: Vec<(i64, Happens)> = (0..60)
        .map(|second| match second {
            0 => (second, Prepared),
            1 | 3 | 5 | 10 | 20 => (second, Refused(0)),
            _ => (second, Nothing),
        })
        .collect();
    let starts: Vec<String> =
        lived(spec, &steps).into_iter().filter(|line| line.contains("start")).collect();
    assert_eq!(
        starts,
        ["0: start 0", "2: start 0", "4: start 0", "7: start 0", "14: start 0", "28: start 0"]
    );
}

#[test]
fn a_life_wakes_when_something_is_due() {
    let mut containers = named(&["a"]);
    containers[0]["readinessProbe"] = json!(
        {"exec": {"command": ["x"]}, "initialDelaySeconds": 7, "periodSeconds": 3});
    let pod = json!({"spec": {"activeDeadlineSeconds": 100, "containers": containers}});
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let mut life = Life::new(Plan::of(&pod), BackoffOptions::default(), at(0));
    assert_eq!(life.wake_at(at(0)), Some(at(100)));
    life.next(at(0));
    life.observe(Fact::Prepared, at(1));
    life.next(at(1));
    life.observe(Fact::Started { cell: 0, at: at(2) }, at(2));
    life.next(at(2));
    assert_eq!(life.wake_at(at(2)), Some(at(9)));
    assert_eq!(life.next(at(9)), [Wish::Probe { cell: 0, kind: ProbeKind::Readiness }]);
    assert_eq!(life.wake_at(at(9)), Some(at(100)), "one probe at a time");
    life.next(at(100));
    assert_eq!(life.ending(), Some(&Ending::Deadline));
    assert_eq!(life.wake_at(at(100)), Some(at(130)), "the grace");
}

#[test]
fn one_end_may_start_all_containers_again_from_the_first() {
    use Happens::*;
    let mut containers = named(&["main", "other"]);
    containers[0]["restartPolicy"] = json!("Never");
    containers[0]["restartPolicyRules"] = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    let mut init = named(&["init", "side"]);
    init[1]["restartPolicy"] = json!("Always");
    let spec = json!({"restartPolicy": "Never", "initContainers": init, "containers": containers});
    let steps = [
        (0, Prepared),
        (1, Started(0)),
        (2, Ended(0, 0)),
        (3, Started(1)),
        (4, Started(2)),
        (5, Ended(2, 42)),
        (6, Started(3)),
        // They have no grace, but two seconds all the same.
        (7, Ended(1, 143)),
        (8, Ended(3, 137)),
        (9, Started(0)),
        (10, Ended(0, 0)),
        (11, Started(1)),
        (12, Ended(1, 0)),
    ];
    assert_eq!(
        lived(spec, &steps),
        [
            "0: prepare",
            "0: start 0",
            "2: start 1",
            "3: start 2, start 3",
            // What was being started is stopped as soon as it runs.
            "5: Terminate 1",
            "6: Terminate 3",
            "8: start 0",
            "10: start 1",
            "11: start 2, start 3",
            "12: start 1",
        ]
    );
}

/// Its exit code says nothing then: it was not the container that found an end.
#[test]
fn a_container_that_a_probe_has_stopped_runs_again_unless_it_never_does() {
    use Happens::*;
    // The Pod's policy, the container's own, and whether it runs again after it exited with 0.
    let rows = [
        ("OnFailure", None, true),
        ("Always", None, true),
        ("Never", None, false),
        ("Never", Some("OnFailure"), true),
        ("OnFailure", Some("Never"), false),
    ];
    for (of_pod, own, runs_again) in rows {
        for kind in [ProbeKind::Liveness, ProbeKind::Startup] {
            let mut containers = named(&["a"]);
            let field = format!("{}Probe", kind.word().to_lowercase());
            containers[0][field] = json!({"exec": {"command": ["x"]}, "failureThreshold": 1});
            containers[0]["restartPolicy"] = json!(own);
            let spec = json!({"restartPolicy": of_pod, "containers": containers});
            let steps = [(0, Prepared), (0, Started(0)), (5, Probed(0, kind, false))];
            let steps = steps.into_iter().chain([(6, Ended(0, 0)), (7, Nothing)]);
            let steps: Vec<_> = steps.collect();
            let after = if runs_again { "6: start 0" } else { "6: close" };
            let lived = lived(spec, &steps);
            assert_eq!(lived.last().expect("some"), after, "{of_pod} {own:?} {kind:?}");
        }
    }
}

#[test]
fn what_a_probe_has_stopped_once_is_not_started_again_after_its_next_end() {
    use Happens::*;
    let mut containers = named(&["a"]);
    containers[0]["livenessProbe"] = json!({"exec": {"command": ["x"]}, "failureThreshold": 1});
    let spec = json!({"restartPolicy": "OnFailure", "containers": containers});
    let steps = [
        (0, Prepared),
        (0, Started(0)),
        (5, Probed(0, ProbeKind::Liveness, false)),
        (6, Ended(0, 0)),
        (7, Started(0)),
        (8, Ended(0, 0)),
    ];
    assert_eq!(lived(spec, &steps).last().expect("there are some"), "8: close");
}

#[test]
fn a_pod_that_is_being_ended_is_not_ready_when_its_hook_has_ended() {
    let mut containers = named(&["a"]);
    containers[0]["lifecycle"] = json!({"postStart": {"exec": {"command": ["x"]}}});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let mut life = Life::new(Plan::of(&pod), BackoffOptions::default(), at(0));
    life.next(at(0));
    for happens in
        [Happens::Prepared, Happens::Started(0), Happens::Deleted(30), Happens::Hooked(0, true)]
    {
        life.observe(fact(&happens, &life, at(1)).expect("a fact"), at(1));
        life.next(at(1));
    }
    assert!(!life.cells[0].is_ready && !life.cells[0].is_started);
}
