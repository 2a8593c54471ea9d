//! Which ledger is told of what, on a router of its own.

use jiff::SignedDuration;
use serde_json::{Value, json};
use stint_api::view::ManagedBy;
use stint_ledger::op::{OpKind, Refusal};
use stint_ledger::pod_facts::PodPhase;

use super::*;
use crate::job::WireJob;
use crate::pod::WirePod;

const FINALIZER: &str = "f";

fn router() -> Router {
    Router::new(Settings::default(), FINALIZER.into(), [None])
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).expect("a time")
}

/// A Job that somebody has begun.
fn job(uid: &str, more: Value) -> SeenJob {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "ns", "uid": uid, "resourceVersion": "5"},
        "spec": {
            "completions": 3,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": {"spec": {"restartPolicy": "Never", "containers": []}},
        },
        "status": {"startTime": "1970-01-01T00:00:00Z"},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    let job: WireJob = serde_json::from_value(job).expect("the test's own Job");
    SeenJob::read(&job)
}

/// A Pod of the Job `owner`, or nobody's.
fn pod(uid: &str, version: u64, owner: Option<&str>, labels: Value) -> SeenPod {
    let owners = owner.map(|uid| {
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": true}])
    });
    let pod: WirePod = serde_json::from_value(json!({"metadata": {
        "name": uid, "namespace": "ns", "uid": uid, "resourceVersion": version.to_string(),
        "labels": labels, "finalizers": [FINALIZER], "ownerReferences": owners,
    }}))
    .expect("the test's own Pod");
    pod.read(FINALIZER)
}

fn made_for(uid: &str) -> Value {
    json!({"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "j"})
}

fn seen<T>(items: Vec<T>) -> Vec<Change<T>> {
    items.into_iter().map(Change::Seen).collect()
}

fn list_jobs(router: &mut Router, jobs: Vec<SeenJob>, version: u64) {
    for news in [News::Began, News::Items(seen(jobs)), News::Listed(version)] {
        router.take_jobs(0, news);
    }
}

fn list_pods(router: &mut Router, pods: Vec<SeenPod>, version: u64) {
    for news in [News::Began, News::Items(seen(pods)), News::Listed(version)] {
        router.take_pods(0, news);
    }
}

fn known(router: &Router, uid: &str) -> Vec<String> {
    let mut uids = router.jobs.get(uid).map(|entry| entry.ledger.pod_uids()).unwrap_or_default();
    uids.sort_unstable();
    uids
}

fn ask(router: &mut Router, uid: &str) -> Vec<OpKind> {
    let uid = router.uid_of(uid);
    let asked = router.ask(&uid, now());
    asked.into_iter().flat_map(|asked| asked.ops).map(|op| op.kind).collect()
}

#[test]
fn a_pod_that_a_later_list_does_not_show_is_gone() {
    let mut router = router();
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    let pods = [7, 8].map(|version| pod(&format!("p{version}"), version, Some("a"), made_for("a")));
    list_pods(&mut router, pods.to_vec(), 9);
    assert_eq!(known(&router, "a"), ["p7", "p8"]);
    list_pods(&mut router, pods[..1].to_vec(), 12);
    assert_eq!((known(&router, "a"), router.pods_held()), (vec!["p7".to_owned()], 1));
}

#[test]
fn a_pod_that_has_been_seen_since_the_time_of_a_list_is_not_gone() {
    let mut router = router();
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    list_pods(&mut router, Vec::new(), 7);
    let seen = pod("p", 20, Some("a"), made_for("a"));
    router.take_pods(0, News::Changes(vec![Change::Seen(seen)]));
    list_pods(&mut router, Vec::new(), 10);
    assert_eq!((known(&router, "a"), router.pods_held()), (vec!["p".to_owned()], 1));
}

#[test]
fn a_list_that_breaks_off_is_told_whole_or_not_at_all() {
    let mut router = router();
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("a"), made_for("a"))], 8);
    router.take_pods(0, News::Began);
    let half = pod("q", 9, Some("a"), made_for("a"));
    router.take_pods(0, News::Items(seen(vec![half.clone()])));
    assert_eq!(known(&router, "a"), ["p"], "half of a list says nothing");
    list_pods(&mut router, vec![half], 10);
    assert_eq!(known(&router, "a"), ["q"]);
}

#[test]
fn a_status_of_counts_waits_longer_the_more_jobs_have_something_to_tell() {
    let settings =
        Settings { status_interval: SignedDuration::from_millis(250), ..Settings::default() };
    let mut router = Router::new(settings, FINALIZER.into(), [None]);
    list_jobs(&mut router, vec![job("a", json!({"parallelism": 3}))], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("a"), made_for("a"))], 8);
    let uid = router.uid_of("a");
    let mut version = 8;
    // Whether a status is written then, with all that is asked for before it.
    let mut writes_at = |router: &mut Router, millis| {
        let now = now() + SignedDuration::from_millis(millis);
        while let Some(asked) = router.ask(&uid, now).filter(|asked| !asked.ops.is_empty()) {
            for op in asked.ops {
                version += 1;
                let SeenJob { view, .. } = job("a", json!({"parallelism": 3}));
                let mut view = view.expect("a view");
                view.resource_version = version.to_string();
                let applied = match &op.kind {
                    OpKind::WriteStatus { status, .. } => {
                        view.status.active = status.active.unwrap_or_default() as u32;
                        router.settle(
                            &uid,
                            Asker { ledger: asked.target.ledger, op: op.id },
                            Outcome::Applied(Applied::Job(view)),
                        );
                        return true;
                    }
                    OpKind::LookUpJob => Applied::Job(view),
                    OpKind::LookUpPods => {
                        let pods = vec![(pod("p", 7, Some("a"), made_for("a")).facts, true)];
                        Applied::Pods { pods, version }
                    }
                    _ => continue,
                };
                let asker = Asker { ledger: asked.target.ledger, op: op.id };
                router.settle(&uid, asker, Outcome::Applied(applied));
            }
        }
        false
    };
    let more = |router: &mut Router, name: &str, version| {
        let pod = pod(name, version, Some("a"), made_for("a"));
        router.take_pods(0, News::Changes(vec![Change::Seen(pod)]));
    };
    let others = |router: &mut Router, count: usize, millis| {
        let at = now() + SignedDuration::from_millis(millis);
        (0..count).for_each(|number| router.crowd.tells(&format!("other-{number}").into(), at));
    };
    assert!(writes_at(&mut router, 0));
    // With itself these are one too many for a few.
    others(&mut router, 8, 0);
    more(&mut router, "q", 50);
    assert!(!writes_at(&mut router, 499));
    assert!(writes_at(&mut router, 500));
    others(&mut router, 1_000, 500);
    more(&mut router, "r", 51);
    assert!(!writes_at(&mut router, 3_499));
    assert!(writes_at(&mut router, 3_500), "it is alone again");
}

#[test]
fn an_orphan_is_told_to_a_job_that_comes_later_and_selects_it() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 1);
    list_pods(&mut router, vec![pod("p", 2, None, json!({"app": "x"}))], 3);
    assert_eq!(known(&router, "a"), [] as [&str; 0]);
    let selector = json!({"selector": {"matchLabels": {"app": "x"}}});
    router.take_jobs(0, News::Changes(vec![Change::Seen(job("a", selector))]));
    assert_eq!(known(&router, "a"), ["p"]);
    let other = pod("q", 6, None, json!({"app": "y"}));
    router.take_pods(0, News::Changes(vec![Change::Seen(other)]));
    assert_eq!(known(&router, "a"), ["p"]);
}

#[test]
fn the_job_of_a_pod_that_is_not_known_is_looked_up() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 1);
    let orphan = pod("q", 3, None, made_for("b"));
    list_pods(&mut router, vec![pod("p", 2, Some("a"), made_for("a")), orphan], 4);
    for uid in ["a", "b"] {
        assert_eq!(ask(&mut router, uid), [OpKind::LookUpJob], "{uid}");
    }
}

#[test]
fn the_pods_of_a_job_of_another_controller_are_not_held() {
    let mut router = router();
    let managed_by = json!({"managedBy": "example.com/other"});
    list_jobs(&mut router, vec![job("a", managed_by)], 1);
    list_pods(&mut router, vec![pod("p", 2, Some("a"), made_for("a"))], 3);
    assert_eq!((router.jobs_held(), router.pods_held()), (0, 0));
    assert_eq!(router.take_external().len(), 1);
}

/// A router of a controller with a finalizer of its own.
fn router_beside() -> Router {
    let manages = ManagedBy::External("stint.dev/job-controller".to_owned());
    Router::new(Settings { manages, ..Settings::default() }, FINALIZER.into(), [None])
}

/// What is wanted once it is known that there is no such Job.
fn ask_without_job(router: &mut Router, uid: &str) -> Asked {
    let uid = router.uid_of(uid);
    let asked = router.ask(&uid, now()).expect("somebody looks after it");
    let [op] = &asked.ops[..] else { panic!("{:?}", asked.ops) };
    assert_eq!(op.kind, OpKind::LookUpJob);
    let asker = Asker { ledger: asked.target.ledger, op: op.id };
    router.settle(&uid, asker, Outcome::Applied(Applied::NoJob));
    router.ask(&uid, now()).expect("somebody looks after it")
}

/// The one op, which takes a finalizer off this Pod.
fn removal<'a>(asked: &'a Asked, pod: &str) -> &'a Op {
    let [op] = &asked.ops[..] else { panic!("{:?}", asked.ops) };
    assert!(matches!(&op.kind, OpKind::RemoveFinalizer(it) if it.uid == pod), "{op:?}");
    op
}

#[test]
fn a_pod_with_the_finalizer_that_nobody_speaks_for_loses_it() {
    for mut router in [router(), router_beside()] {
        list_jobs(&mut router, Vec::new(), 1);
        list_pods(&mut router, vec![pod("p", 2, None, json!({"app": "x"}))], 3);
        let asked = ask_without_job(&mut router, "p");
        let mut freed = pod("p", 4, None, json!({"app": "x"}));
        freed.facts.is_tracked = false;
        let asker = Asker { ledger: asked.target.ledger, op: removal(&asked, "p").id };
        let outcome = Outcome::Applied(Applied::Pod(Box::new(freed.facts)));
        router.settle(&router.uid_of("p"), asker, outcome);
        let _ = ask(&mut router, "p");
        assert_eq!(router.jobs_held(), 0, "there is nothing left to do");
    }
}

#[test]
fn a_finalizer_of_our_own_is_taken_off_the_pods_of_strangers() {
    let taken = || pod("p", 7, Some("b"), json!({"app": "x"}));
    let mut known_before = router_beside();
    list_jobs(&mut known_before, vec![job("b", json!({}))], 6);
    list_pods(&mut known_before, vec![taken()], 9);
    let mut known_later = router_beside();
    list_jobs(&mut known_later, Vec::new(), 4);
    list_pods(&mut known_later, vec![taken()], 9);
    known_later.take_jobs(0, News::Changes(seen(vec![job("b", json!({}))])));
    let mut of_another_kind = router_beside();
    list_jobs(&mut of_another_kind, Vec::new(), 6);
    list_pods(&mut of_another_kind, vec![SeenPod { owner_job: None, ..taken() }], 9);
    for mut router in [known_before, known_later, of_another_kind] {
        removal(&ask_without_job(&mut router, "p"), "p");
    }
}

#[test]
fn the_finalizer_of_the_built_in_controller_is_left_to_owners_of_other_kinds() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 6);
    let pod = pod("p", 7, Some("b"), json!({"app": "x"}));
    list_pods(&mut router, vec![SeenPod { owner_job: None, ..pod }], 9);
    assert_eq!(router.jobs_held(), 0);
}

#[test]
fn a_stranger_found_out_late_does_not_keep_the_finalizer_of_a_pod_that_was_ours() {
    let mut router = router_beside();
    let ours = json!({"managedBy": "stint.dev/job-controller"});
    list_jobs(&mut router, vec![job("a", ours)], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("a"), made_for("a"))], 9);
    let _ = ask(&mut router, "a");
    let taken = pod("p", 11, Some("b"), made_for("a"));
    router.take_pods(0, News::Changes(seen(vec![taken])));
    let _ = ask(&mut router, "a");
    router.take_jobs(0, News::Changes(seen(vec![job("b", json!({}))])));
    removal(&ask_without_job(&mut router, "p"), "p");
}

#[test]
fn a_pod_that_a_stranger_has_given_up_is_left_to_the_job_that_selects_it() {
    let mut router = router_beside();
    let ours = json!({"managedBy": "stint.dev/job-controller"});
    list_jobs(&mut router, vec![job("a", ours), job("b", json!({}))], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("b"), made_for("a"))], 9);
    let asked = ask_without_job(&mut router, "p");
    let asker = Asker { ledger: asked.target.ledger, op: removal(&asked, "p").id };
    router.settle(&router.uid_of("p"), asker, Outcome::Refused(Refusal::Conflict));
    let given_up = pod("p", 11, None, made_for("a"));
    router.take_pods(0, News::Changes(seen(vec![given_up])));
    assert_eq!(ask(&mut router, "p"), []);
    assert_eq!(known(&router, "a"), ["p"], "the Job knows of it");
}

#[test]
fn a_job_that_is_gone_does_not_come_back_by_an_older_list() {
    let mut router = router();
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    list_pods(&mut router, Vec::new(), 7);
    list_jobs(&mut router, Vec::new(), 8);
    let uid = router.uid_of("a");
    assert!(router.ask(&uid, now()).expect("it is held").is_over);
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    assert_eq!(router.jobs_held(), 0);
    let mut left = pod("p", 9, Some("a"), made_for("a"));
    left.facts.is_tracked = false;
    router.take_pods(0, News::Changes(vec![Change::Seen(left.clone())]));
    assert_eq!(router.jobs_held(), 0, "there is nothing to do for it");
    left.facts.is_tracked = true;
    router.take_pods(0, News::Changes(vec![Change::Seen(left)]));
    assert_eq!(router.jobs_held(), 1, "nobody else takes its finalizer off");
}

#[test]
fn a_job_has_the_name_that_it_says_itself() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 1);
    let mut forged = pod("p", 2, Some("a"), made_for("a"));
    forged.owner_job = Some("other".to_owned());
    list_pods(&mut router, vec![forged], 3);
    router.take_jobs(0, News::Changes(vec![Change::Seen(job("a", json!({})))]));
    assert_eq!(&*router.jobs["a"].name, "j");
}

#[test]
fn a_pod_that_goes_while_a_list_is_told_hides_no_other() {
    let mut router = router();
    list_jobs(&mut router, vec![job("a", json!({}))], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("a"), made_for("a"))], 9);
    let _ = ask(&mut router, "a");
    router.take_pods(0, News::Began);
    let other = pod("q", 40, Some("a"), made_for("a"));
    let gone = pod("p", 50, Some("a"), made_for("a"));
    let brief = pod("r", 45, Some("a"), made_for("a"));
    router.take_pods(0, News::Items(seen(vec![other, brief.clone()])));
    router.take_pods(0, News::Items(vec![Change::Gone(gone), Change::Gone(brief)]));
    let _ = ask(&mut router, "a");
    router.take_pods(0, News::Listed(60));
    assert_eq!(known(&router, "a"), ["q"]);
}

#[test]
fn a_job_that_a_list_lacks_is_gone_even_after_an_older_list_lacked_it() {
    let mut router = router();
    let mut it = job("a", json!({}));
    list_jobs(&mut router, vec![it.clone()], 6);
    it.version = 20;
    it.view.as_mut().expect("a view").resource_version = "20".to_owned();
    router.take_jobs(0, News::Changes(vec![Change::Seen(it)]));
    list_pods(&mut router, Vec::new(), 21);
    list_jobs(&mut router, Vec::new(), 10);
    assert!(router.jobs.contains_key("a"), "the list is older than what is known");
    list_jobs(&mut router, Vec::new(), 40);
    let uid = router.uid_of("a");
    assert!(router.ask(&uid, now()).expect("it is held").is_over);
}

#[test]
fn a_job_that_an_answer_has_shown_first_meets_orphans_later() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 1);
    list_pods(&mut router, vec![pod("p", 2, Some("a"), json!({"app": "x"}))], 3);
    let selector = json!({"selector": {"matchLabels": {"app": "x"}}});
    let uid = router.uid_of("a");
    let asked = router.ask(&uid, now()).expect("it is held");
    let SeenJob { view, template, .. } = job("a", selector.clone());
    let view = view.expect("a view");
    let asker = Asker { ledger: asked.target.ledger, op: asked.ops[0].id };
    router.settle_with(&uid, asker, Outcome::Applied(Applied::Job(view)), Some(&template));
    router.take_jobs(0, News::Changes(seen(vec![job("a", selector)])));
    let orphan = pod("q", 6, None, json!({"app": "x"}));
    router.take_pods(0, News::Changes(seen(vec![orphan])));
    assert_eq!(known(&router, "a"), ["p", "q"]);
}

#[test]
fn a_pod_of_another_namespace_is_not_the_jobs() {
    let alien = || {
        let mut alien = pod("p", 7, Some("a"), made_for("a"));
        alien.namespace = "elsewhere".to_owned();
        alien
    };
    let mut after = router();
    list_jobs(&mut after, vec![job("a", json!({}))], 6);
    list_pods(&mut after, vec![alien()], 9);
    assert_eq!(known(&after, "a"), [] as [&str; 0]);
    // It may be seen first, and no Job of that uid be found where it is.
    let mut before = router();
    list_jobs(&mut before, Vec::new(), 5);
    list_pods(&mut before, vec![alien()], 9);
    let uid = before.uid_of("a");
    let asked = before.ask(&uid, now()).expect("somebody looks");
    for op in asked.ops {
        let asker = Asker { ledger: asked.target.ledger, op: op.id };
        let outcome = match op.kind {
            OpKind::LookUpJob => Applied::NoJob,
            _ => Applied::Pods { pods: Vec::new(), version: 9 },
        };
        before.settle(&uid, asker, Outcome::Applied(outcome));
    }
    let _ = before.ask(&uid, now());
    before.take_jobs(0, News::Changes(seen(vec![job("a", json!({}))])));
    assert_eq!(&*before.jobs["a"].namespace, "ns");
    assert_eq!(known(&before, "a"), [] as [&str; 0]);
}

#[test]
fn a_job_of_another_controller_is_left_alone_even_if_it_cannot_be_read() {
    let mut router = router();
    let more = json!({"managedBy": "example.com/other", "completionMode": "Future"});
    list_jobs(&mut router, vec![job("a", more)], 6);
    list_pods(&mut router, Vec::new(), 9);
    assert!(!router.jobs.contains_key("a"));
    // It is forgotten when a list lacks it.
    list_jobs(&mut router, Vec::new(), 12);
    assert!(router.foreign.is_empty());
}

#[test]
fn an_answer_to_a_ledger_that_is_no_more_is_not_for_its_successor() {
    let mut router = router();
    list_jobs(&mut router, Vec::new(), 1);
    let mut forged = pod("p", 2, Some("a"), made_for("a"));
    forged.owner_job = Some("other".to_owned());
    list_pods(&mut router, vec![forged], 3);
    let uid = router.uid_of("a");
    let old = router.ask(&uid, now()).expect("it is held");
    assert_eq!(old.ops[0].kind, OpKind::LookUpJob);
    router.take_jobs(0, News::Changes(seen(vec![job("a", json!({}))])));
    let new = router.ask(&uid, now()).expect("it is held");
    // There is no Job "other".
    let asker = Asker { ledger: old.target.ledger, op: old.ops[0].id };
    router.settle(&uid, asker, Outcome::Applied(Applied::NoJob));
    for op in &new.ops {
        let asker = Asker { ledger: new.target.ledger, op: op.id };
        let pods = Applied::Pods { pods: Vec::new(), version: 4 };
        router.settle(&uid, asker, Outcome::Applied(pods));
    }
    let asked = router.ask(&uid, now()).expect("it is held");
    assert!(router.jobs.contains_key("a") && !asked.is_over, "the Job is taken for gone");
}

#[test]
fn a_finished_job_is_held_without_its_ledger_until_there_is_news() {
    let mut router = router();
    let finished = || {
        let mut it = job("a", json!({}));
        let condition = json!({"type": "Complete", "status": "True"});
        let mut whole = json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": "a", "resourceVersion": "5"},
            "spec": {"selector": {}, "template": {"spec": {"restartPolicy": "Never", "containers": []}}},
        });
        whole["status"] = json!({"conditions": [condition], "startTime": "1970-01-01T00:00:00Z"});
        let whole: WireJob = serde_json::from_value(whole).expect("one");
        it.view = SeenJob::read(&whole).view;
        it
    };
    list_jobs(&mut router, vec![finished()], 6);
    let counted = || {
        let mut it = pod("p", 7, Some("a"), made_for("a"));
        it.facts.is_tracked = false;
        it.facts.phase = PodPhase::Succeeded;
        it
    };
    list_pods(&mut router, vec![counted()], 9);
    assert_eq!(ask(&mut router, "a"), []);
    assert!(router.jobs.is_empty() && router.finished.contains_key("a"));
    // Nothing of this is news.
    router.take_jobs(0, News::Changes(seen(vec![finished()])));
    router.take_pods(0, News::Changes(seen(vec![counted()])));
    assert!(router.jobs.is_empty());
    // A Pod that bears the finalizer is.
    let late = pod("q", 12, Some("a"), made_for("a"));
    router.take_pods(0, News::Changes(seen(vec![late])));
    assert_eq!(known(&router, "a"), ["q"]);
}

#[test]
fn while_a_list_is_gathered_nothing_is_kept_of_what_is_nobodys_business() {
    let mut router = router();
    let others = || json!({"managedBy": "example.com/other"});
    list_jobs(&mut router, vec![job("a", json!({})), job("b", others())], 6);
    list_pods(&mut router, vec![pod("p", 7, Some("a"), made_for("a"))], 9);
    let of = |uid: &str, owner: &str, is_job: bool| {
        let mut it = pod(uid, 8, Some(owner), json!({"app": "x"}));
        it.facts.is_tracked = false;
        it.owner_job = it.owner_job.filter(|_| is_job);
        it
    };
    router.take_pods(0, News::Began);
    let pods = vec![
        of("of-a-set", "s", false),
        of("of-another", "b", true),
        of("gone", "b", true),
        pod("p", 7, Some("a"), made_for("a")),
        pod("orphan", 8, None, json!({})),
        pod("tracked", 8, Some("b"), json!({})),
    ];
    router.take_pods(0, News::Items(seen(pods)));
    router.take_pods(0, News::Items(vec![Change::Gone(of("gone", "b", true))]));
    // It is let go of before the list is whole: nobody is told of what it was.
    let mut let_go = of("let-go", "b", true);
    let_go.facts.is_tracked = true;
    let before = let_go.clone();
    (let_go.facts.is_tracked, let_go.facts.version) = (false, 9);
    router.take_pods(0, News::Items(seen(vec![before, let_go])));
    let Listed::Gathering(held) = &router.scopes[0].pods else { panic!("it is not whole") };
    let whole: Vec<&str> = held.whole.iter().map(|pod| &*pod.facts.uid).collect();
    assert_eq!(whole, ["p", "orphan", "tracked", "let-go"]);
    assert_eq!(held.bare.len(), 3);
    router.take_pods(0, News::Listed(10));
    assert!(!router.routes.contains_key("let-go"), "nobody is told of it");
    assert_eq!((known(&router, "a"), router.orphans.len()), (vec!["p".to_owned()], 1));

    router.take_jobs(0, News::Began);
    let jobs = vec![job("a", json!({})), job("b", others()), job("c", others())];
    router.take_jobs(0, News::Items(seen(jobs)));
    let Listed::Gathering(held) = &router.scopes[0].jobs else { panic!("it is not whole") };
    assert_eq!((held.whole.len(), held.bare.len()), (1, 2));
    router.take_jobs(0, News::Listed(11));
    assert_eq!((router.jobs_held(), router.foreign.len()), (2, 2), "a, and a stray Pod");
}
