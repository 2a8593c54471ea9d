//! Rows: what happens, line by line, and what the graph asks for after each.

mod model;

use std::collections::HashMap;
use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};

use super::*;

fn kinds() -> Vec<GraphKind> {
    let kind = |api_version: &str, kind, is_namespaced| GraphKind {
        api_version: api_version.to_owned(),
        kind,
        is_namespaced,
    };
    vec![kind("batch/v1", "Job", true), kind("v1", "Pod", true), kind("v1", "Node", false)]
}

const KINDS: [&str; 3] = ["job", "pod", "node"];

/// A graph, and what it was told.
struct Rows {
    graph: Graph,
    version: u64,
    now: Instant,
    /// The ops under way, by their lines.
    ops: HashMap<String, Item>,
}

/// Plays the steps, and compares what the graph asks for with what follows `->`.
///
/// - `+pod a/p uid=p job/j@j! job/k@k`: a Pod in the namespace `a` is seen, whose owners are the
///   Jobs `j` and `k`, and blocks the deletion of the first; `deleted`, `orphan`, `foreground`
///   say how it is being deleted
/// - `-p`: the object with this uid is gone
/// - `list pod`, `end pod`: a list of Pods begins, ends
/// - `done LINE`, `gone LINE`, `absent LINE`, `present LINE`, `refused LINE`: what came of an op;
///   `later LINE`: it was done, and is seen with the next but one
/// - `wait`: time passes
fn check(steps: &str) {
    let mut rows =
        Rows { graph: Graph::new(kinds()), version: 0, now: Instant::now(), ops: HashMap::new() };
    for kind in 0..KINDS.len() {
        rows.graph.begin(KindId(kind));
        rows.graph.complete(KindId(kind));
    }
    let lines = steps.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut played = String::new();
    let mut expected = String::new();
    for line in lines {
        writeln!(expected, "{line}").expect("a string takes text");
        if line.starts_with("->") {
            continue;
        }
        writeln!(played, "{line}").expect("a string takes text");
        rows.step(line);
        for op in rows.drain() {
            writeln!(played, "-> {op}").expect("a string takes text");
        }
    }
    assert_eq!(played, expected);
}

impl Rows {
    fn step(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "list" => self.graph.begin(kind(rest)),
            "end" => self.graph.complete(kind(rest)),
            "wait" => self.now += std::time::Duration::from_secs(60),
            "done" => {
                self.version += 1;
                self.settle(rest, Outcome::Done(self.version));
            }
            "later" => self.settle(rest, Outcome::Done(self.version + 2)),
            "gone" => self.settle(rest, Outcome::Gone),
            "absent" => self.settle(rest, Outcome::Absent),
            "present" => self.settle(rest, Outcome::Present),
            "refused" => self.settle(rest, Outcome::Refused),
            _ => match line.split_at(1) {
                ("+", object) => {
                    self.version += 1;
                    let (kind, meta) = read(object, self.version);
                    self.graph.see(kind, &meta);
                }
                ("-", uid) => self.graph.remove(&Uid::new(uid)),
                _ => panic!("no such step: {line}"),
            },
        }
    }

    fn settle(&mut self, line: &str, outcome: Outcome) {
        let item = self.ops.remove(line).unwrap_or_else(|| panic!("{line} is not under way"));
        self.graph.settle(item, outcome, self.now);
    }

    fn drain(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(op) = self.graph.next(self.now) {
            let line = print(&op);
            self.ops.insert(line.clone(), op.item());
            lines.push(line);
        }
        lines.sort();
        lines
    }
}

fn kind(word: &str) -> KindId {
    KindId(KINDS.iter().position(|kind| *kind == word).expect("a kind"))
}

fn read(text: &str, version: u64) -> (KindId, ObjectMeta) {
    let mut words = text.split(' ');
    let kind = kind(words.next().expect("a kind"));
    let (namespace, name) = match words.next().expect("a name").split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text.split(' ').nth(1).expect("a name")),
    };
    let mut meta = json!({
        "name": name, "namespace": namespace, "uid": name, "resourceVersion": version.to_string(),
        "ownerReferences": [], "finalizers": [],
    });
    for word in words {
        let mut finalize = |finalizer: &str| {
            meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            meta["finalizers"] = json!([finalizer]);
        };
        match word {
            "deleted" => finalize("example.com/other"),
            "orphan" => finalize(ORPHAN),
            "foreground" => finalize(FOREGROUND_DELETION),
            "keeps-orphan" => meta["finalizers"] = json!([ORPHAN]),
            "keeps-foreground" => meta["finalizers"] = json!([FOREGROUND_DELETION]),
            _ => match word.strip_prefix("uid=") {
                Some(uid) => meta["uid"] = json!(uid),
                None => meta["ownerReferences"].as_array_mut().expect("a list").push(owner(word)),
            },
        }
    }
    (kind, serde_json::from_value(meta).expect("metadata"))
}

fn owner(word: &str) -> serde_json::Value {
    let (word, blocks) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
    let (kind, rest) = word.split_once('/').expect("an owner");
    let (name, uid) = rest.split_once('@').expect("an owner with a uid");
    let (api_version, kind) = match kind {
        "job" => ("batch/v1", "Job"),
        "pod" => ("v1", "Pod"),
        "node" => ("v1", "Node"),
        "cron" => ("batch/v1", "CronJob"),
        "oldjob" => ("batch/v1beta1", "Job"),
        _ => panic!("no such kind: {kind}"),
    };
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": blocks})
}

fn print(op: &Op) -> String {
    let join = |uids: &[Uid]| uids.iter().map(Uid::to_string).collect::<Vec<_>>().join(",");
    match op {
        Op::Ask(id) => {
            let namespace = id.namespace().unwrap_or("-");
            format!("ask {} {namespace}/{}@{}", KINDS[id.kind.0], id.name(), id.uid)
        }
        Op::Delete { id, propagation, .. } => format!("delete {} {propagation:?}", id.uid),
        Op::DropOwners { id, owners } => format!("drop {} {}", id.uid, join(owners)),
        Op::Unblock { id, owners } => format!("unblock {} {}", id.uid, join(owners)),
        Op::Release { id, finalizer } => format!("release {} {finalizer}", id.uid),
    }
}

#[test]
fn dependents_go_after_their_owner_once_it_was_looked_up() {
    check(
        "+job a/j
         +pod a/p job/j@j
         +pod a/q job/j@j
         -j
         -> ask job a/j@j
         absent ask job a/j@j
         -> delete p Background
         -> delete q Background
         done delete p Background
         -p
         gone delete q Background
         -q",
    );
}

#[test]
fn a_dependent_of_the_dead_that_comes_late_goes_without_another_look() {
    check(
        "+pod a/p job/j@j
         -> ask job a/j@j
         absent ask job a/j@j
         -> delete p Background
         +pod a/q job/j@j
         -> delete q Background",
    );
}

#[test]
fn an_owner_that_is_there_but_not_seen_is_looked_up_again_later() {
    check(
        "+pod a/p job/j@j
         -> ask job a/j@j
         present ask job a/j@j
         wait
         -> ask job a/j@j
         refused ask job a/j@j
         +job a/j
         wait
         -j
         -> ask job a/j@j",
    );
}

#[test]
fn an_owner_that_is_seen_after_its_dependent_ends_the_wait() {
    check(
        "+pod a/p job/gone@g job/j@j
         -> ask job a/gone@g
         -> ask job a/j@j
         absent ask job a/gone@g
         refused ask job a/j@j
         +job a/j
         -> drop p g",
    );
}

#[test]
fn a_reference_with_a_strangers_uid_is_not_taken_off() {
    check(
        "+pod a/p cron/c@c job/j@c job/k@k
         -> ask job a/j@c
         -> ask job a/k@k
         absent ask job a/j@c
         absent ask job a/k@k
         -> drop p k",
    );
}

#[test]
fn a_dependent_of_another_living_owner_loses_the_dead_one_only() {
    check(
        "+job a/j
         +job a/k
         +pod a/p job/j@j job/k@k
         -j
         -> ask job a/j@j
         absent ask job a/j@j
         -> drop p j
         done drop p j
         +pod a/p job/k@k
         -k
         -> ask job a/k@k
         absent ask job a/k@k
         -> delete p Background",
    );
}

#[test]
fn who_has_the_same_name_and_another_uid_is_nobody() {
    check(
        "+job a/j uid=new
         +pod a/p job/j@old
         -> ask job a/j@old
         absent ask job a/j@old
         -> delete p Background
         +pod a/q job/j@new",
    );
}

#[test]
fn an_owner_in_another_namespace_or_under_another_name_is_nobody() {
    check(
        "+job a/j
         +pod b/p job/j@j
         -> ask job b/j@j
         +pod a/q job/k@j
         -> ask job a/k@j
         absent ask job b/j@j
         -> delete p Background
         absent ask job a/k@j
         -> delete q Background
         +pod a/r job/j@j",
    );
}

#[test]
fn a_reference_with_a_living_owners_uid_is_not_taken_off() {
    check(
        "+job a/j
         +pod a/p job/j@j job/wrong@j job/gone@g
         -> ask job a/gone@g
         -> ask job a/wrong@j
         absent ask job a/wrong@j
         absent ask job a/gone@g
         -> drop p g",
    );
}

#[test]
fn owners_of_the_whole_cluster_own_in_every_namespace() {
    check(
        "+node n
         +pod a/p node/n@n
         +pod b/q node/n@n
         +node m node/n@n
         -n
         -> ask node -/n@n
         absent ask node -/n@n
         -> delete m Background
         -> delete p Background
         -> delete q Background",
    );
}

#[test]
fn what_cannot_be_judged_is_left_alone() {
    check(
        "+pod a/p cron/c@c
         +pod a/q oldjob/j@j
         +node n job/j@j
         +pod a/r cron/c@c job/j@j
         -> ask job a/j@j
         absent ask job a/j@j
         -> drop r j",
    );
}

#[test]
fn dependents_that_block_go_first_in_the_foreground() {
    check(
        "+job a/j
         +pod a/p job/j@j!
         +pod a/q job/j@j
         +job a/j foreground
         -> delete p Background
         -> delete q Background
         done delete p Background
         +pod a/p job/j@j! deleted
         -p
         -> release j foregroundDeletion
         gone release j foregroundDeletion
         -j
         -> ask job a/j@j",
    );
}

#[test]
fn an_owner_without_dependents_is_released_at_once() {
    check(
        "+job a/j foreground
         -> release j foregroundDeletion
         refused release j foregroundDeletion
         wait
         -> release j foregroundDeletion
         +job a/k orphan
         -> release k orphan",
    );
}

#[test]
fn the_foreground_goes_on_through_a_chain() {
    check(
        "+job a/j
         +pod a/p job/j@j!
         +pod a/x pod/p@p!
         +job a/j foreground
         -> delete p Foreground
         done delete p Foreground
         +pod a/p job/j@j! foreground
         -> delete x Background
         gone delete x Background
         -x
         -> release p foregroundDeletion
         gone release p foregroundDeletion
         -p
         -> release j foregroundDeletion",
    );
}

#[test]
fn a_dependent_of_another_living_owner_does_not_hold_up_the_foreground() {
    check(
        "+job a/j
         +job a/k
         +pod a/p job/j@j! job/k@k!
         +job a/j foreground
         -> drop p j
         done drop p j
         +pod a/p job/k@k!
         -> release j foregroundDeletion",
    );
}

#[test]
fn a_dependent_that_stops_blocking_lets_its_owner_go() {
    check(
        "+job a/j
         +pod a/p job/j@j! deleted
         +job a/j foreground
         +pod a/p job/j@j deleted
         -> release j foregroundDeletion",
    );
}

#[test]
fn a_circle_is_cut() {
    check(
        "+pod a/p pod/q@q!
         -> ask pod a/q@q
         +pod a/q pod/p@p!
         present ask pod a/q@q
         +pod a/p pod/q@q! foreground
         -> unblock q p
         done unblock q p
         +pod a/q pod/p@p
         -> delete q Foreground
         -> release p foregroundDeletion
         done delete q Foreground
         +pod a/q pod/p@p foreground
         gone release p foregroundDeletion
         -p
         -> ask pod a/p@p
         -> release q foregroundDeletion",
    );
}

#[test]
fn orphans_lose_their_owner_before_it_goes() {
    check(
        "+job a/j
         +pod a/p job/j@j!
         +pod a/q job/j@j deleted
         +job a/j orphan
         -> drop p j
         -> drop q j
         done drop p j
         +pod a/p
         refused drop q j
         wait
         -> drop q j
         done drop q j
         +pod a/q deleted
         -> release j orphan
         gone release j orphan
         -j",
    );
}

#[test]
fn a_dependent_that_appears_while_orphans_are_made_becomes_one() {
    check(
        "+job a/j orphan
         -> release j orphan
         +pod a/p job/j@j
         -> drop p j
         refused release j orphan
         wait
         done drop p j
         +pod a/p
         -> release j orphan",
    );
}

#[test]
fn finalizers_that_are_there_already_say_how_a_dependent_goes() {
    check(
        "+pod a/p job/j@j keeps-orphan
         -> ask job a/j@j
         +pod a/q job/j@j keeps-foreground
         absent ask job a/j@j
         -> delete p Orphan
         -> delete q Foreground",
    );
}

#[test]
fn nothing_is_done_before_all_lists_are_complete() {
    check(
        "list pod
         +job a/j orphan
         +pod a/p job/j@j
         end pod
         -> drop p j",
    );
}

#[test]
fn what_a_new_list_lacks_is_gone() {
    check(
        "+job a/j
         +pod a/p job/j@j
         +pod a/q pod/p@p
         list pod
         +pod a/q pod/p@p
         end pod
         -> ask pod a/p@p
         list job
         end job",
    );
}

#[test]
fn what_was_done_is_not_done_again_before_it_is_seen() {
    check(
        "+job a/j
         +pod a/p job/j@j!
         -j
         -> ask job a/j@j
         absent ask job a/j@j
         -> delete p Background
         gone delete p Background
         +pod a/p job/j@j
         -p",
    );
}

#[test]
fn what_is_seen_before_what_was_done_is_judged_after_it() {
    check(
        "+job a/j foreground
         -> release j foregroundDeletion
         later release j foregroundDeletion
         +job a/j orphan
         +job a/j orphan
         -> release j orphan",
    );
}

#[test]
fn the_records_of_many_dependents_are_small() {
    assert!(size_of::<Record>() <= 96, "{}", size_of::<Record>());
    assert!(size_of::<ObjectId>() <= 64, "{}", size_of::<ObjectId>());
}
