//! What is over goes: Jobs when their time to live is over, Pods when there are too many or
//! their node is gone, Events after a while.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use stint_apiserver::Clock;
use stint_local::{Cluster, Kept, Options, Storage};

use crate::kit::{self, Still, at};

async fn start(still: &Still, kept: Kept) -> (Cluster, Client) {
    kit::start_with(Options { clock: still.clock(), kept, ..Options::default() }).await
}

pub(crate) fn mortal(name: &str, ttl: i32) -> Value {
    let mut job = kit::held(kit::job(name));
    job["spec"]["ttlSecondsAfterFinished"] = json!(ttl);
    job
}

/// Says that a Job has ended, as its controller would.
pub(crate) async fn finish(jobs: &Api<Job>, name: &str, kind: &str, second: i64) {
    let (interim, counts) = match kind {
        "Complete" => ("SuccessCriteriaMet", json!({"succeeded": 1})),
        _ => ("FailureTarget", json!({"failed": 1})),
    };
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at(second)});
    let mut status = json!({
        "startTime": at(0),
        "conditions": [condition(interim), condition(kind)],
    });
    let fields = status.as_object_mut().expect("an object");
    fields.extend(counts.as_object().expect("an object").clone());
    if kind == "Complete" {
        fields.insert("completionTime".to_owned(), json!(at(second)));
    }
    let patch = Patch::Merge(json!({"status": status}));
    jobs.patch_status(name, &PatchParams::default(), &patch).await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_when_its_time_is_over_and_not_a_second_before() {
    let still = Still::new();
    let (cluster, client) = start(&still, Kept::default()).await;
    still
        .watched(&cluster, async {
            let jobs: Api<Job> = Api::default_namespaced(client.clone());
            for (name, ttl) in [("failed", 100), ("done", 50), ("longer", 50), ("never", 50)] {
                kit::create(&jobs, mortal(name, ttl)).await;
            }
            kit::create(&jobs, kit::job("immortal")).await;
            still.go_to(10).await;
            finish(&jobs, "failed", "Failed", 10).await;
            finish(&jobs, "done", "Complete", 10).await;
            finish(&jobs, "longer", "Complete", 10).await;
            finish(&jobs, "immortal", "Complete", 10).await;
            let ttl = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": 70}}));
            jobs.patch("longer", &PatchParams::default(), &ttl).await.expect("a longer life");
            // The first is deleted when the clock shows its time: the others are not.
            for (second, name) in [(60, "done"), (80, "longer"), (110, "failed")] {
                still.go_to(second - 1).await;
                let all = jobs.list(&Default::default()).await.expect("a list");
                let job = all.items.iter().find(|job| job.name_any() == name);
                assert!(job.expect("it is there").metadata.deletion_timestamp.is_none());
                still.go_to(second).await;
                let all = kit::until(&jobs, name, |all| kit::is_deleted(all, name)).await;
                let when = all[name].metadata.deletion_timestamp.as_ref();
                assert_eq!(when, Some(&at(i64::try_from(second).expect("small"))), "{name}");
                kit::let_go(&jobs, name).await;
                kit::until_gone(&jobs, name).await;
            }
            let left = jobs.list(&Default::default()).await.expect("a list").items;
            let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
            assert_eq!(left, ["immortal", "never"]);
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_job_whose_time_is_over_goes_with_its_pods_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |second: i64| {
        let storage = Storage::Folder(folder.path().to_owned());
        let clock = Clock::new(move || at(second).0);
        kit::start_with(Options { storage, clock, ..Options::default() })
    };
    let (cluster, client) = start(10).await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut job = kit::job("j");
    job["spec"]["ttlSecondsAfterFinished"] = json!(60);
    let job = kit::create(&jobs, job).await;
    kit::create(&pods, kit::pod("p", &[kit::owned_by(&job)])).await;
    finish(&jobs, "j", "Complete", 10).await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = start(70).await;
    kit::watched(&cluster, async {
        kit::until_gone(&Api::<Job>::default_namespaced(client.clone()), "j").await;
        kit::until_gone(&Api::<Pod>::default_namespaced(client.clone()), "p").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn of_pods_that_have_ended_the_newest_that_failed_are_kept_and_those_that_are_held() {
    let still = Still::new();
    let (cluster, client) = start(&still, Kept { finished_pods: 3, ..Kept::default() }).await;
    still
        .watched(&cluster, async {
            let pods: Api<Pod> = Api::default_namespaced(client.clone());
            kit::create(&pods, kit::pod("waiting", &[])).await;
            kit::create(&pods, kit::held(kit::pod("held", &[]))).await;
            kit::report(&pods, "held", json!({"phase": "Failed"})).await;
            for index in 0..6 {
                still.go_to(index).await;
                let name = format!("p{index}");
                kit::create(&pods, kit::pod(&name, &[])).await;
                let phase = if index % 2 == 0 { "Succeeded" } else { "Failed" };
                kit::report(&pods, &name, json!({"phase": phase})).await;
            }
            let all =
                kit::until(&pods, "three left", |all| all.len() == 5 && all.contains_key("p5"))
                    .await;
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            // The newest of those that succeeded goes before the oldest that failed.
            assert_eq!(names, ["held", "p1", "p3", "p5", "waiting"]);
            // Once nobody holds it, it is the oldest that failed.
            kit::let_go(&pods, "held").await;
            kit::until_gone(&pods, "held").await;
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_that_is_gone_have_failed() {
    let still = Still::new();
    let (cluster, client) = start(&still, Kept::default()).await;
    still
        .watched(&cluster, async {
            let nodes: Api<Node> = Api::all(client.clone());
            let pods: Api<Pod> = Api::default_namespaced(client.clone());
            kit::create(&nodes, kit::node("gone", "1", 10)).await;
            kit::create(&nodes, kit::node("here", "1", 10)).await;
            let named =
                [("running", "gone"), ("ended", "gone"), ("fine", "here"), ("astray", "never")];
            for (name, node) in named {
                let mut pod = kit::held(kit::pod(name, &[]));
                pod["spec"]["nodeName"] = json!(node);
                kit::create(&pods, pod).await;
            }
            kit::report(&pods, "running", json!({"phase": "Running"})).await;
            kit::report(&pods, "ended", json!({"phase": "Succeeded"})).await;
            still.go_to(5).await;
            kit::delete(&nodes, "gone", &DeleteParams::default()).await;
            let all = still
                .pass_until(&pods, |all| {
                    ["running", "ended", "astray"].iter().all(|name| kit::is_deleted(all, name))
                })
                .await;
            let when = all["running"].metadata.deletion_timestamp.as_ref().expect("it goes");
            assert!(*when >= at(45), "a node may come back: {when:?}");
            assert_eq!(kit::phase(&all["running"]), "Failed");
            assert_eq!(kit::phase(&all["ended"]), "Succeeded");
            assert_eq!(kit::phase(&all["astray"]), "Failed", "its node has never been");
            let conditions = all["running"].status.clone().and_then(|status| status.conditions);
            let conditions = conditions.expect("there are some");
            let disrupted = conditions.iter().find(|it| it.type_ == "DisruptionTarget");
            let disrupted = disrupted.expect("it was disrupted");
            assert_eq!(disrupted.status, "True");
            assert_eq!(disrupted.reason.as_deref(), Some("DeletionByPodGC"));
            assert_eq!(disrupted.message.as_deref(), Some("PodGC: node no longer exists"));
            assert!(!kit::is_deleted(&all, "fine"));
            assert_ne!(kit::phase(&all["fine"]), "Failed");
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_without_a_node_has_failed_after_a_while() {
    let still = Still::new();
    let (cluster, client) = start(&still, Kept::default()).await;
    still
        .watched(&cluster, async {
            let pods: Api<Pod> = Api::default_namespaced(client.clone());
            kit::create(&pods, kit::held(kit::pod("p", &[]))).await;
            kit::delete(&pods, "p", &DeleteParams::default()).await;
            still.go_to(19).await;
            assert_eq!(kit::phase(&pods.get("p").await.expect("it is held")), "Pending");
            let all = still.pass_until(&pods, |all| kit::phase(&all["p"]) == "Failed").await;
            assert!(kit::is_deleted(&all, "p"));
            kit::let_go(&pods, "p").await;
            kit::until_gone(&pods, "p").await;
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn events_go_an_hour_after_they_were_last_said() {
    let still = Still::new();
    let (cluster, client) = start(&still, Kept { events: 3, ..Kept::default() }).await;
    still
        .watched(&cluster, async {
            let events: Api<Event> = Api::default_namespaced(client.clone());
            let event = |name: &str, second: i64| {
                json!({
                    "metadata": {"name": name},
                    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
                    "reason": "Tested",
                    "firstTimestamp": at(0),
                    "lastTimestamp": at(second),
                })
            };
            kit::create(&events, event("once", 0)).await;
            kit::create(&events, event("again", 0)).await;
            let patch = Patch::Merge(json!({"lastTimestamp": at(600), "count": 2}));
            events.patch("again", &PatchParams::default(), &patch).await.expect("said again");
            still.go_to(3_599).await;
            assert_eq!(events.list(&Default::default()).await.expect("a list").items.len(), 2);
            still.go_to(3_600).await;
            kit::until(&events, "the end of one", |all| all.keys().eq(["again"])).await;
            // One more than there may be: the oldest goes.
            for name in ["a", "b", "c"] {
                kit::create(&events, event(name, 3_600)).await;
            }
            kit::until(&events, "the end of the oldest", |all| all.keys().eq(["a", "b", "c"]))
                .await;
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}
