//! The plan, step by step.

mod model;

use serde_json::{Value, json};

use super::*;

/// A plan that is told things in steps, with the time in seconds.
struct Bench {
    plan: Plan,
    start: Instant,
    version: u64,
}

impl Bench {
    fn new(nodes: &[(&str, &str, i64)]) -> Self {
        let start = Instant::now();
        let mut bench = Bench { plan: Plan::new(start), start, version: 0 };
        bench.plan.begin_nodes();
        for (name, cpu, pods) in nodes {
            bench.plan.see_node(node(name, cpu, *pods));
        }
        bench.plan.complete_nodes();
        bench.plan.begin_jobs();
        bench.plan.complete_jobs();
        bench.plan.begin_pods();
        bench.plan.complete_pods(start);
        bench
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn see(&mut self, pod: Value) {
        self.version += 1;
        let mut pod = pod;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.plan.see_pod(sight(pod), self.start);
    }

    /// The bindings that are to be made now.
    fn binds(&mut self) -> Vec<String> {
        let next = std::iter::from_fn(|| self.plan.next());
        next.map(|bind| format!("{} {}", bind.key.name, bind.node)).collect()
    }

    fn gone(&mut self, name: &str) {
        self.plan.pod_gone(&sight(pod(name, "0")).metadata);
    }
}

fn node(name: &str, cpu: &str, pods: i64) -> NodeSight {
    let allocatable = json!({"cpu": cpu, "memory": "1Gi", "pods": pods.to_string()});
    let node = json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}});
    serde_json::from_value(node).expect("a node")
}

fn sight(pod: Value) -> PodSight {
    serde_json::from_value(pod).expect("a Pod")
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "n",
            "name": name,
            "uid": format!("uid of {name}"),
            "creationTimestamp": "2026-01-01T00:00:10Z",
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
    })
}

fn owned(name: &str, owner: &str, created: &str) -> Value {
    let mut pod = pod(name, "1");
    pod["metadata"]["creationTimestamp"] = json!(created);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": true,
    }]);
    pod
}

fn job(name: &str, created: &str) -> ObjectMeta {
    let meta =
        json!({"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": created});
    serde_json::from_value(meta).expect("metadata")
}

fn on(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

fn ended(mut pod: Value) -> Value {
    pod["status"] = json!({"phase": "Succeeded"});
    pod
}

#[test]
fn nothing_is_bound_before_everything_is_known() {
    let start = Instant::now();
    let mut plan = Plan::new(start);
    plan.begin_pods();
    plan.see_pod(sight(pod("waiting", "1")), start);
    plan.begin_nodes();
    plan.see_node(node("a", "1", 10));
    plan.complete_nodes();
    assert_eq!(plan.next(), None);
    plan.see_pod(sight(on(pod("x", "1"), "a")), start);
    plan.complete_pods(start);
    assert_eq!(plan.next(), None, "the room is taken");
    plan.pod_gone(&sight(pod("x", "1")).metadata);
    assert_eq!(plan.next(), None, "an older Job may have Pods");
    plan.begin_jobs();
    plan.complete_jobs();
    assert_eq!(plan.next().map(|bind| bind.key.name), Some("waiting".into()));
}

#[test]
fn what_does_not_fit_waits_for_room_and_holds_up_nobody() {
    let mut bench = Bench::new(&[("a", "2", 10)]);
    bench.see(pod("large", "2"));
    bench.see(on(pod("there", "1"), "a"));
    bench.see(pod("small", "1"));
    bench.see(pod("small-2", "1"));
    assert_eq!(bench.binds(), ["small a"]);
    bench.see(ended(on(pod("there", "1"), "a")));
    assert_eq!(bench.binds(), ["small-2 a"]);
    bench.gone("small");
    assert!(bench.binds().is_empty());
    bench.gone("small-2");
    assert_eq!(bench.binds(), ["large a"]);
    assert!(bench.plan.lines.is_empty() && bench.plan.tells.is_empty());
}

#[test]
fn the_number_of_pods_is_limited_too() {
    let mut bench = Bench::new(&[("a", "2", 1)]);
    bench.see(pod("one", "0"));
    bench.see(pod("two", "0"));
    assert_eq!(bench.binds(), ["one a"]);
    bench.gone("one");
    assert_eq!(bench.binds(), ["two a"]);
}

#[test]
fn priority_goes_first_then_the_older_owner_then_the_older_pod_then_the_lower_number() {
    let mut bench = Bench::new(&[]);
    bench.see(owned("old-1", "old", "2026-01-01T00:00:01Z"));
    bench.see(owned("young-1", "young", "2026-01-01T00:00:02Z"));
    bench.see(owned("old-10", "old", "2026-01-01T00:00:03Z"));
    bench.see(owned("old-9", "old", "2026-01-01T00:00:03Z"));
    bench.see(owned("young-0", "young", "2026-01-01T00:00:03Z"));
    let mut urgent = pod("urgent", "1");
    urgent["spec"]["priority"] = json!(7);
    bench.see(urgent);
    assert!(bench.binds().is_empty());
    bench.plan.see_node(node("a", "100", 100));
    let order = ["urgent a", "old-1 a", "old-9 a", "old-10 a", "young-1 a", "young-0 a"];
    assert_eq!(bench.binds(), order);
}

#[test]
fn an_owner_is_as_old_as_its_oldest_pod_on_a_list() {
    let mut bench = Bench::new(&[("a", "100", 100)]);
    bench.plan.begin_pods();
    bench.see(owned("a-new", "old", "2026-01-01T00:00:09Z"));
    bench.see(owned("m-young", "young", "2026-01-01T00:00:05Z"));
    bench.see(ended(owned("z-old", "old", "2026-01-01T00:00:01Z")));
    assert!(bench.binds().is_empty());
    bench.plan.complete_pods(bench.start);
    assert_eq!(bench.binds(), ["a-new a", "m-young a"]);
}

#[test]
fn the_pods_of_the_job_that_was_created_first_go_first_whenever_they_come() {
    let mut bench = Bench::new(&[]);
    bench.plan.see_job(&job("old", "2026-01-01T00:00:01Z"));
    bench.plan.see_job(&job("young", "2026-01-01T00:00:02Z"));
    // The old one is resumed when the other is at work.
    bench.see(owned("young-0", "young", "2026-01-01T00:00:03Z"));
    bench.see(owned("old-0", "old", "2026-01-01T00:00:04Z"));
    // All its Pods are gone for a while.
    bench.gone("old-0");
    bench.see(owned("old-1", "old", "2026-01-01T00:00:05Z"));
    // What a Job has is taken over from another that is older.
    bench.see(owned("young-1", "young", "2026-01-01T00:00:00Z"));
    bench.plan.job_gone(&job("young", "2026-01-01T00:00:02Z"));
    bench.see(owned("other-0", "other", "2026-01-01T00:00:03Z"));
    bench.plan.see_node(node("a", "100", 100));
    assert_eq!(bench.binds(), ["old-1 a", "young-1 a", "young-0 a", "other-0 a"]);
}

#[test]
fn a_job_that_is_told_after_its_pods_gives_them_their_place() {
    let mut bench = Bench::new(&[("a", "1", 100)]);
    bench.see(on(pod("there", "1"), "a"));
    bench.see(owned("young-0", "young", "2026-01-01T00:00:03Z"));
    bench.see(owned("old-0", "old", "2026-01-01T00:00:04Z"));
    assert!(bench.binds().is_empty());
    bench.plan.see_job(&job("old", "2026-01-01T00:00:01Z"));
    bench.plan.see_job(&job("young", "2026-01-01T00:00:02Z"));
    assert!(bench.binds().is_empty());
    bench.gone("there");
    assert_eq!(bench.binds(), ["old-0 a"]);
    bench.gone("old-0");
    assert_eq!(bench.binds(), ["young-0 a"]);
    // After a restart nothing is known of the Pods that an older Job had.
    let mut again = Bench::new(&[("a", "1", 100)]);
    again.plan.begin_jobs();
    again.plan.begin_pods();
    again.see(owned("a-young", "young", "2026-01-01T00:00:03Z"));
    again.see(owned("z-old", "old", "2026-01-01T00:00:04Z"));
    again.plan.complete_pods(again.start);
    again.plan.see_job(&job("young", "2026-01-01T00:00:02Z"));
    again.plan.see_job(&job("old", "2026-01-01T00:00:01Z"));
    assert!(again.binds().is_empty());
    again.plan.complete_jobs();
    assert_eq!(again.binds(), ["z-old a"]);
}

#[test]
fn jobs_of_one_second_go_as_they_came_and_before_those_by_their_names() {
    let mut bench = Bench::new(&[]);
    // What is left of an earlier process: the last writes came in another order than the Jobs.
    bench.plan = Plan::new(bench.start);
    let second = "2026-01-01T00:00:01Z";
    let of = |name: &str, version: u64| ObjectMeta {
        resource_version: Some(version.to_string()),
        ..job(name, second)
    };
    bench.plan.begin_jobs();
    bench.plan.see_job(&of("a", 90));
    bench.plan.see_job(&of("b", 80));
    bench.plan.complete_jobs();
    bench.plan.see_job(&of("z", 91));
    bench.plan.see_job(&of("c", 92));
    bench.plan.see_job(&of("z", 93));
    bench.plan.begin_pods();
    bench.plan.complete_pods(bench.start);
    bench.plan.begin_nodes();
    bench.plan.complete_nodes();
    for name in ["a", "b", "c", "z"] {
        bench.see(owned(&format!("{name}-0"), name, second));
    }
    bench.plan.see_node(node("n", "100", 100));
    assert_eq!(bench.binds(), ["a-0 n", "b-0 n", "z-0 n", "c-0 n"]);
}

#[test]
fn pods_go_where_most_is_left() {
    let mut bench = Bench::new(&[("a", "4", 10), ("b", "8", 10)]);
    for name in ["p0", "p1", "p2", "p3"] {
        bench.see(pod(name, "2"));
    }
    assert_eq!(bench.binds(), ["p0 b", "p1 a", "p2 b", "p3 b"]);
}

#[test]
fn news_from_before_a_binding_change_nothing() {
    let mut bench = Bench::new(&[("a", "1", 10)]);
    bench.see(pod("p", "1"));
    let bind = bench.plan.next().expect("there is room");
    bench.see(pod("p", "1"));
    assert!(bench.binds().is_empty());
    bench.plan.settle(&bind, Outcome::Bound, bench.start);
    bench.see(pod("p", "1"));
    assert!(bench.binds().is_empty());
    bench.see(pod("q", "1"));
    assert!(bench.binds().is_empty(), "p has the room");
    bench.see(on(pod("p", "1"), "a"));
    bench.see(ended(on(pod("p", "1"), "a")));
    assert_eq!(bench.binds(), ["q a"]);
}

#[test]
fn a_refused_binding_gives_its_room_back_and_is_judged_by_what_the_pod_is() {
    let mut bench = Bench::new(&[("a", "1", 10), ("b", "1", 10)]);
    type Change = fn(&mut Value);
    let cases: [(Change, &[&str]); 4] = [
        (|pod| pod["spec"]["nodeName"] = json!("b"), &["q a"]),
        (|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:11Z"), &["q a"]),
        (|pod| pod["spec"]["schedulingGates"] = json!([{"name": "g"}]), &["q a"]),
        (|_| {}, &["p a", "q b"]),
    ];
    for (change, then) in cases {
        bench.see(pod("p", "1"));
        let bind = bench.plan.next().expect("there is room");
        assert_eq!(&*bind.node, "a");
        let mut found = pod("p", "1");
        found["metadata"]["resourceVersion"] = json!("1");
        change(&mut found);
        bench.plan.settle(&bind, Outcome::Refused(Box::new(sight(found))), bench.start);
        bench.see(pod("q", "1"));
        assert_eq!(bench.binds(), then);
        bench.gone("p");
        bench.gone("q");
        assert!(bench.plan.pods.is_empty() && bench.plan.used.is_empty());
    }
}

#[test]
fn an_answer_for_a_pod_that_was_replaced_says_nothing_of_its_successor() {
    let mut bench = Bench::new(&[("a", "1", 10)]);
    bench.see(pod("p", "1"));
    let bind = bench.plan.next().expect("there is room");
    let mut second = pod("p", "1");
    second["metadata"]["uid"] = json!("another");
    bench.see(second.clone());
    bench.plan.settle(&bind, Outcome::Gone, bench.start);
    assert_eq!(bench.binds(), ["p a"]);
    bench.gone("p");
    assert_eq!(bench.plan.pods.len(), 1, "that was the first one's end");
}

#[test]
fn gated_deleted_and_foreign_pods_are_left_alone() {
    let mut bench = Bench::new(&[("a", "9", 10)]);
    let mut gated = pod("gated", "1");
    gated["spec"]["schedulingGates"] = json!([{"name": "g"}]);
    bench.see(gated);
    let mut foreign = pod("foreign", "1");
    foreign["spec"]["schedulerName"] = json!("mine");
    bench.see(foreign);
    let mut deleted = pod("deleted", "1");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:11Z");
    bench.see(deleted);
    assert!(bench.binds().is_empty());
    bench.see(pod("gated", "1"));
    assert_eq!(bench.binds(), ["gated a"]);
}

#[test]
fn who_waits_in_vain_is_told_once_and_again_when_the_reason_changes() {
    let mut bench = Bench::new(&[]);
    bench.see(pod("p", "2"));
    assert!(bench.binds().is_empty());
    assert_eq!(bench.plan.next_tell(bench.at(0)), None);
    let told = |bench: &mut Bench, seconds| {
        let at = bench.at(seconds);
        bench.plan.next_tell(at).map(|tell| (tell.message, tell.says_it_has_no_node))
    };
    assert_eq!(bench.plan.wake_at(), Some(bench.at(1)));
    let none = "no nodes available to schedule pods".to_owned();
    assert_eq!(told(&mut bench, 1), Some((none, false)));
    assert_eq!(told(&mut bench, 60), None);
    bench.plan.see_node(node("a", "1", 10));
    bench.plan.see_node(node("b", "1", 0));
    assert!(bench.binds().is_empty());
    let why = "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu.".to_owned();
    assert_eq!(told(&mut bench, 120), Some((why.clone(), true)));
    assert_eq!(told(&mut bench, 180), None);
    // A new process finds it written.
    let mut again = Bench::new(&[("a", "1", 10), ("b", "1", 0)]);
    let mut marked = pod("p", "2");
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": why});
    marked["status"] = json!({"phase": "Pending", "conditions": [condition]});
    again.see(marked);
    assert!(again.binds().is_empty());
    assert_eq!(told(&mut again, 60), None);
}

#[test]
fn who_only_waits_for_a_turn_is_told_nothing() {
    let mut bench = Bench::new(&[("a", "1", 10)]);
    bench.see(pod("p", "1"));
    assert_eq!(bench.plan.next_tell(bench.at(5)), None);
    assert_eq!(bench.binds(), ["p a"]);
    assert_eq!(bench.plan.wake_at(), None);
}
