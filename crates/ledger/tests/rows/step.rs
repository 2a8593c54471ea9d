//! The steps of a script: what Pods, users and the weather do.

use k8s_openapi::jiff::SignedDuration;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::names::pod_condition;
use stint_ledger::event::Event;
use stint_ledger::pod_facts::{ContainerExit, Owner, PodCondition, PodFacts, PodPhase};

use crate::api::JOB_UID;
use crate::player::{Fault, Player};
use crate::print;
use crate::row;

/// Plays a step and returns what came of it, one a line.
pub(crate) fn play(player: &mut Player, step: &str) -> Vec<String> {
    let words: Vec<&str> = step.split_whitespace().collect();
    if !arms(player, &words) {
        act(player, step, &words);
        player.run();
    }
    player.take_lines()
}

/// Steps that change nothing by themselves.
fn arms(player: &mut Player, words: &[&str]) -> bool {
    let fault = match words {
        ["refuse", ..] => (1, Fault::Refuse),
        ["reject", ..] => (1, Fault::Reject),
        ["bury", ..] => (1, Fault::Bury),
        ["lose", "request", "of", ..] => (3, Fault::LoseRequest),
        ["lose", "answer", "of", ..] => (3, Fault::LoseAnswer),
        ["crash", "before", ..] => (2, Fault::CrashBefore),
        ["crash", "after", ..] => (2, Fault::CrashAfter),
        ["hold", what @ ..] => {
            player.held.insert(what.join(" "));
            return true;
        }
        ["tick", duration] => {
            player.tick(parse_duration(duration));
            return true;
        }
        ["show", "status"] => {
            player.lines = print::status(&player.api);
            return true;
        }
        ["show", "pods"] => {
            player.lines = print::pods(&player.api);
            return true;
        }
        ["show", "whether", "anything", "is", "left"] => {
            let line = if player.is_empty() { "nothing is left to do" } else { "more may come" };
            player.lines.push(line.to_owned());
            return true;
        }
        _ => return false,
    };
    player.faults.push((words[fault.0..].join(" "), fault.1));
    true
}

/// Steps that something comes of.
fn act(player: &mut Player, step: &str, words: &[&str]) {
    match words {
        ["start" | "crash"] => player.restart(),
        ["gate", gates] => {
            let gates = FeatureGates::parse(gates).expect("gates that are known");
            player.api.gates = gates;
            player.restart();
        }
        ["send", "what", "is", "wanted"] => player.withdraw_creations(),
        ["release", "one", what @ ..] => player.release_one(&what.join(" ")),
        ["release", what @ ..] => player.release(&what.join(" ")),
        ["old", "news"] => player.tell_again(),
        ["old", "list", "without", "the", "job"] => {
            player.api.job_news.push(Event::JobGone { version: 1 });
        }
        ["delete", "job"] => player.api.delete_job(),
        ["job", "gone"] => {
            player.api.job = None;
            player.api.version += 1;
            let event = player.api.job_event();
            player.api.job_news.push(event);
        }
        ["job", "unreadable"] => {
            let mut job = player.api.job.clone().expect("there is a Job");
            job.spec.as_mut().expect("a Job has a spec").completion_mode = Some("Ring".to_owned());
            player.api.put_job(job);
        }
        ["job", ..] => player.api.change_spec(&pairs(&words[1..])),
        ["status", ..] => player.api.change_status(&row::yaml(&step["status".len()..])),
        ["pod", label, "appears:", traits @ ..] => appear(player, label, traits),
        ["pod", labels, does @ ..] => {
            for name in names(player, labels) {
                change(player, &name, does);
            }
        }
        _ => panic!("no such step: {step}"),
    }
}

/// `all` are those that have not ended; otherwise labels with commas between them.
fn names(player: &Player, labels: &str) -> Vec<String> {
    if labels == "all" {
        let active = player.api.pods.values().filter(|pod| pod.facts.is_active());
        return active.map(|pod| pod.facts.name.clone()).collect();
    }
    labels.split(',').map(|label| player.api.labels.name(label)).collect()
}

/// Something happens to a Pod.
fn change(player: &mut Player, name: &str, does: &[&str]) {
    let now = player.api.now;
    let pod = player.api.pods.get_mut(name).unwrap_or_else(|| panic!("{name} is not there"));
    let facts = &mut pod.facts;
    match does {
        ["runs"] => (facts.phase, facts.ready_since) = (PodPhase::Running, Some(now)),
        ["runs", "unready"] => facts.phase = PodPhase::Running,
        ["succeeds"] => end(facts, PodPhase::Succeeded, 0),
        ["fails", code] => end(facts, PodPhase::Failed, code.parse().expect("an exit code")),
        ["restarts", count] => facts.restart_count = count.parse().expect("a count"),
        ["deleted"] => facts.is_deleted = true,
        ["evicted"] => {
            facts.is_deleted = true;
            facts.conditions.push(condition("DisruptionTarget"));
        }
        ["ended", "by", "its", "node"] => {
            let reason = pod_condition::TERMINATION_BY_KUBELET.to_owned();
            facts.conditions.push(PodCondition { reason, ..condition("DisruptionTarget") });
            end(facts, PodPhase::Failed, 143);
        }
        ["has", "condition", kind] => facts.conditions.push(condition(kind)),
        ["loses", "its", "finalizer"] => facts.is_tracked = false,
        ["stops", "matching"] => pod.is_selected = false,
        ["given", "away"] => facts.owner = Owner::Controller("another".to_owned()),
        ["taken", "by", "a", "stranger"] => facts.owner = Owner::Foreign("stranger".to_owned()),
        ["given", "back"] => facts.owner = Owner::Controller(JOB_UID.to_owned()),
        ["gone"] => {
            let uid = facts.uid.clone();
            return player.api.vanish(name, uid);
        }
        _ => panic!("no Pod does this: {}", does.join(" ")),
    }
    let facts = &mut pod.facts;
    if facts.is_finished() || facts.is_deleted {
        facts.finished_at = now;
    }
    player.api.publish(name);
}

fn end(facts: &mut PodFacts, phase: PodPhase, exit_code: i32) {
    facts.phase = phase;
    facts.ready_since = None;
    facts.exits = vec![ContainerExit { name: "main".to_owned(), exit_code }];
}

fn condition(kind: &str) -> PodCondition {
    let reason = String::new();
    PodCondition { condition_type: kind.to_owned(), status: "True".to_owned(), reason }
}

/// A Pod that the ledger did not ask for: the Job's own and tracked, unless said otherwise.
fn appear(player: &mut Player, label: &str, traits: &[&str]) {
    let name = player.api.labels.introduce(label);
    assert!(!player.api.pods.contains_key(&name), "{label} is there already");
    player.api.add(label, &name, None);
    let now = player.api.now;
    let pod = player.api.pods.get_mut(&name).expect("it was just added");
    let facts = &mut pod.facts;
    for quality in traits.join(" ").split(", ") {
        match quality.split(' ').collect::<Vec<_>>()[..] {
            ["orphan"] => facts.owner = Owner::Nobody,
            ["foreign"] => facts.owner = Owner::Controller("another".to_owned()),
            ["stranger's"] => facts.owner = Owner::Foreign("stranger".to_owned()),
            ["own"] => facts.owner = Owner::Controller(JOB_UID.to_owned()),
            ["untracked"] => facts.is_tracked = false,
            ["unselected"] => pod.is_selected = false,
            ["unscheduled"] => facts.is_scheduled = false,
            ["deleted"] => facts.is_deleted = true,
            ["running"] => facts.phase = PodPhase::Running,
            ["ready", "since", age] => {
                facts.phase = PodPhase::Running;
                facts.ready_since = now.checked_sub(parse_duration(age)).ok();
            }
            ["succeeded"] => end(facts, PodPhase::Succeeded, 0),
            ["failed", code] => end(facts, PodPhase::Failed, code.parse().expect("a code")),
            ["index", index] => facts.index = Some(index.parse().expect("an index")),
            ["failures", count] => facts.failure_count = count.parse().expect("a count"),
            ["restarts", count] => facts.restart_count = count.parse().expect("a count"),
            ["age", age] => facts.created = now.checked_sub(parse_duration(age)).expect("a time"),
            ["finished", age, "ago"] => {
                facts.finished_at = now.checked_sub(parse_duration(age)).expect("a time");
            }
            _ => panic!("no Pod appears like this: {quality}"),
        }
    }
    player.api.publish(&name);
}

/// `10s`, `5m`, `2h` or `100ms`.
fn parse_duration(text: &str) -> SignedDuration {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `suspend=true parallelism=2` as an object.
fn pairs(words: &[&str]) -> Value {
    let pair = |word: &&str| {
        let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("no value: {word}"));
        (key.to_owned(), row::yaml(value))
    };
    Value::Object(words.iter().map(pair).collect())
}
