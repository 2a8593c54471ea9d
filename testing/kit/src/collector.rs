//! Follows the owner references of Pods, for servers that nobody else does it on: deletes the Pods
//! of Jobs that are gone or never were, and takes apart those of Jobs that go in the foreground or
//! leave orphans behind.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch};
use kube::core::WatchEvent;
use serde_json::json;
use tokio::task::JoinSet;

use crate::answered::answered;
use crate::follow::follow;
use crate::stage::NAMESPACE;

/// The uids of the Jobs that were seen, and of those that are gone.
#[derive(Clone, Default)]
struct Jobs {
    seen: Arc<Mutex<HashSet<String>>>,
    gone: Arc<Mutex<HashSet<String>>>,
}

impl Jobs {
    fn note(&self, uid: &str, is_gone: bool) {
        self.seen.lock().expect("nobody panics here").insert(uid.to_owned());
        if is_gone {
            self.gone.lock().expect("nobody panics here").insert(uid.to_owned());
        }
    }

    fn is_there(&self, uid: &str) -> bool {
        let (seen, gone) = (self.seen.lock(), self.gone.lock());
        let has = |uids: &HashSet<String>| uids.contains(uid);
        has(&seen.expect("nobody panics here")) && !has(&gone.expect("nobody panics here"))
    }
}

/// Collects as long as `background` lives.
pub fn start(background: &mut JoinSet<()>, client: Client) {
    let known = Jobs::default();
    background.spawn(collect(client.clone(), known.clone()));
    background.spawn(delete_late(client, known));
}

async fn collect(client: Client, known: Jobs) {
    let mut going: HashSet<String> = HashSet::new();
    let mut calls = JoinSet::new();
    let look = |event: WatchEvent<Job>| match event {
        WatchEvent::Added(job) => {
            known.note(job.metadata.uid.as_deref().unwrap_or_default(), false)
        }
        WatchEvent::Deleted(job) => {
            let uid = job.metadata.uid.unwrap_or_default();
            known.note(&uid, true);
            calls.spawn(delete_pods(client.clone(), uid));
        }
        WatchEvent::Modified(job)
            if job.metadata.deletion_timestamp.is_some()
                && going.insert(job.metadata.uid.clone().unwrap_or_default()) =>
        {
            calls.spawn(take_apart(client.clone(), job));
        }
        _ => {}
    };
    follow::<Job>(client.clone(), "/apis/batch/v1/jobs", look).await;
}

/// Deletes the Pods that somebody creates who has not heard yet that their Job is gone, however
/// late that is.
async fn delete_late(client: Client, known: Jobs) {
    let mut calls = JoinSet::new();
    let look = |event: WatchEvent<Pod>| {
        let WatchEvent::Added(pod) = event else { return };
        let mut owners = pod.metadata.owner_references.iter().flatten();
        if owners.any(|owner| owner.kind == "Job" && !known.is_there(&owner.uid)) {
            calls.spawn(delete_dangling(client.clone(), pod));
        }
    };
    follow::<Pod>(client.clone(), "/api/v1/pods", look).await;
}

/// Deletes a Pod, unless its owner is there and was not heard of yet.
async fn delete_dangling(client: Client, pod: Pod) {
    let jobs: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    for owner in pod.metadata.owner_references.iter().flatten() {
        let Ok(job) = answered(|| jobs.get_opt(&owner.name)).await else { return };
        if job.is_some_and(|job| job.metadata.uid.as_ref() == Some(&owner.uid)) {
            return;
        }
    }
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    let (name, params) = (pod.metadata.name.unwrap_or_default(), DeleteParams::background());
    let _ = answered(|| pods.delete(&name, &params)).await;
}

/// The Pods that a Job owns.
async fn owned(pods: &Api<Pod>, uid: &str) -> Vec<Pod> {
    let all = pods.list(&Default::default()).await.expect("Pods can be listed");
    let is_owned =
        |pod: &Pod| pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
    all.items.into_iter().filter(is_owned).collect()
}

async fn delete_pods(client: Client, uid: String) {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    for pod in owned(&pods, &uid).await {
        let name = pod.metadata.name.unwrap_or_default();
        let _ = pods.delete(&name, &DeleteParams::background()).await;
    }
}

/// Deletes the Pods of a Job or makes them orphans, and then lets it go.
async fn take_apart(client: Client, job: Job) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let jobs: Api<Job> = Api::namespaced(client, NAMESPACE);
    let uid = job.metadata.uid.unwrap_or_default();
    let finalizers = job.metadata.finalizers.unwrap_or_default();
    let is_orphaning = finalizers.iter().any(|it| it == "orphan");
    loop {
        let owned = owned(&pods, &uid).await;
        if owned.is_empty() {
            break;
        }
        for pod in owned {
            let name = pod.metadata.name.unwrap_or_default();
            if is_orphaning {
                let patch = json!({"metadata": {
                    "ownerReferences": [{"$patch": "delete", "uid": uid}],
                }});
                let _ = pods.patch(&name, &Default::default(), &Patch::Strategic(patch)).await;
            } else if pod.metadata.deletion_timestamp.is_none() {
                let _ = pods.delete(&name, &DeleteParams::background()).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let patch = json!({"metadata": {"uid": uid, "finalizers": null}});
    let name = job.metadata.name.unwrap_or_default();
    let _ = jobs.patch(&name, &Default::default(), &Patch::Merge(patch)).await;
}
