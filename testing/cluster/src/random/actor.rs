//! Gives a script on a stage: creates the Job, and takes each step when the Job is at rest.

use futures_util::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};
use stint_kit::job::{end, is_tracked};
use stint_kit::{End, Fate, Stage, be_seen_by_the_collector};

use super::board::{Board, Sheet, has_ended, is_owned, place};
use super::fates::Fates;
use super::script::{Script, Turn};
use super::step::{Place, Step};
use crate::picture::Picture;

/// Who gives scripts on a stage.
pub(crate) struct Actor {
    /// Whom every other Job names as its controller; none: nobody.
    pub(crate) manager: Option<&'static str>,
    pub(crate) stage: Stage,
    pub(crate) board: Board,
    pub(crate) fates: Fates,
}

impl Actor {
    /// Gives a script: how it looked at each rest.
    pub(crate) async fn give(&self, script: &Script) -> Vec<Picture> {
        let name = script.name();
        let mut manifest = script.manifest.clone();
        if let Some(manager) = self.manager.filter(|_| script.names_its_manager()) {
            manifest["spec"]["managedBy"] = manager.into();
        }
        let job = serde_json::from_value(manifest).expect("a Job");
        let made = self.stage.jobs().create(&PostParams::default(), &job).await;
        made.expect("the Job is valid");
        let mut pictures = Vec::new();
        for (position, turn) in script.turns.iter().enumerate() {
            let Turn { rest, step, terminating } = turn;
            let what = format!("rests before step {position}, {step:?}, as {rest:?}");
            let keeps = self.stage.keeps_start_time;
            self.board.until(&name, &what, |sheet| sheet.is_at(rest, keeps)).await;
            // Where it is open which indexes have Pods, it is open which Pods there are.
            let is_indexed = script.manifest["spec"]["completionMode"] == "Indexed";
            let knows_pods = !is_indexed || rest.indexes.is_some();
            pictures.push(self.board.sheet(&name).picture_at_rest(rest, knows_pods));
            self.take(script, &name, step).await;
            if let Some(count) = terminating {
                let what = format!("has {count} that terminate after step {position}, {step:?}");
                let is_so = |sheet: &Sheet| sheet.terminating() == *count;
                self.board.until(&name, &what, is_so).await;
            }
        }
        self.await_end(script, &name).await;
        pictures
    }

    async fn await_end(&self, script: &Script, name: &str) {
        if script.end.is_empty() {
            self.board.until(name, "goes", |sheet| sheet.is_gone).await;
            let is_free = |pod: &Pod| !is_owned(pod) && !is_tracked(pod);
            let (what, left) = ("lets go of its Pods", script.orphans());
            let is_so = |it: &Sheet| {
                it.pods.values().all(is_free) && left.is_none_or(|left| it.pods.len() == left)
            };
            return self.board.until(name, what, is_so).await;
        }
        let ended = |sheet: &Sheet| sheet.job.as_ref().and_then(end);
        let what = format!("ends as {}", script.end);
        self.board.until(name, &what, |sheet| ended(sheet).is_some()).await;
        let sheet = self.board.sheet(name);
        assert_eq!(ended(&sheet).as_ref(), Some(&script.end), "{}", sheet.told());
        if script.is_fleeting {
            self.board.until(name, "goes after its TTL", |sheet| sheet.is_gone).await;
        }
    }

    async fn take(&self, script: &Script, name: &str, step: &Step) {
        match step {
            Step::Finish { place, end } => {
                let uid =
                    self.end(name, *place, Fate { end: end.clone(), ..Fate::succeeds() }).await;
                let has_ended = |pod: &Pod| has_ended(pod);
                self.see(name, &uid, "ends", has_ended).await;
            }
            Step::Restart { place, count } => {
                let count = *count as i32;
                let fate = Fate { end: End::Restarts(count), ..Fate::succeeds() };
                let uid = self.end(name, *place, fate).await;
                self.see(name, &uid, "restarts", |pod| restarts(pod) == count).await;
            }
            Step::Evict { place } => {
                let pod = self.pod(name, *place);
                let pod_name = pod.metadata.name.as_deref().expect("a name");
                let deleted = self.stage.pods().delete(pod_name, &DeleteParams::default()).await;
                deleted.expect("it can be deleted");
                let is_deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
                self.see(name, &uid(&pod), "is deleted", is_deleted).await;
            }
            Step::Relabel => self.relabel(script, name).await,
            Step::Suspend => self.change(name, json!({"suspend": true})).await,
            Step::Resume => self.change(name, json!({"suspend": false})).await,
            Step::Scale { parallelism } => {
                self.change(name, json!({"parallelism": parallelism})).await;
            }
            Step::Resize { completions } => {
                let both = json!({"parallelism": completions, "completions": completions});
                self.change(name, both).await;
            }
            Step::BackoffLimit { limit } => self.change(name, json!({"backoffLimit": limit})).await,
            Step::MaxFailedIndexes { most } => {
                self.change(name, json!({"maxFailedIndexes": most})).await;
            }
            Step::Deadline => self.change(name, json!({"activeDeadlineSeconds": 1})).await,
            Step::Ttl { seconds } => {
                self.change(name, json!({"ttlSecondsAfterFinished": seconds})).await;
            }
            Step::Label => {
                let metadata =
                    json!({"labels": {"edited": "yes"}, "annotations": {"edited": "yes"}});
                self.patch(name, json!({"metadata": metadata})).await;
            }
            Step::Template => {
                let template = json!({
                    "metadata": {"labels": {"edited": "yes"}, "annotations": {"edited": "yes"}},
                    "spec": {"nodeSelector": {"disk": "fast"}},
                });
                self.change(name, json!({"template": template})).await;
            }
            Step::TryTemplate => {
                if let Some(job) = self.stage.try_template(name).await {
                    self.be_known(name, &job).await;
                }
            }
            Step::Delete { propagation } => self.delete(name, propagation).await,
            Step::Release => self.release(name).await,
        }
    }

    async fn change(&self, name: &str, spec: Value) {
        self.patch(name, json!({"spec": spec})).await;
    }

    /// Changes a Job, and waits until that is known here.
    async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let changed = self.stage.jobs().patch(name, &PatchParams::default(), &patch).await;
        self.be_known(name, &changed.expect("it can be changed")).await;
    }

    /// Waits until a Job is known here as it was changed.
    async fn be_known(&self, name: &str, changed: &Job) {
        let is_known =
            |sheet: &Sheet| sheet.job.as_ref().is_some_and(|it| version(it) >= version(changed));
        self.board.until(name, "is known as it was changed", is_known).await;
    }

    async fn delete(&self, name: &str, propagation: &PropagationPolicy) {
        if *propagation == PropagationPolicy::Orphan {
            be_seen_by_the_collector(&self.stage, name).await;
        }
        let params = DeleteParams {
            propagation_policy: Some(propagation.clone()),
            ..DeleteParams::default()
        };
        self.stage.jobs().delete(name, &params).await.expect("it can be deleted");
    }

    async fn relabel(&self, script: &Script, name: &str) {
        let pod = self.pod(name, None);
        let labels = match script.manifest["spec"]["manualSelector"] == true {
            true => json!({"app": "released"}),
            false => json!({
                "batch.kubernetes.io/controller-uid": "released", "controller-uid": "released",
            }),
        };
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let pod_name = pod.metadata.name.as_deref().expect("a name");
        let changed = self.stage.pods().patch(pod_name, &PatchParams::default(), &patch).await;
        changed.expect("it can be changed");
        self.see(name, &uid(&pod), "is let go", |pod| !is_owned(pod)).await;
    }

    async fn release(&self, name: &str) {
        let sheet = self.board.sheet(name);
        let pods: Vec<Pod> = sheet.live().cloned().collect();
        let places: Vec<Place> = pods.iter().map(place).collect();
        let fates = self.fates.release(name, &places);
        join_all(pods.into_iter().zip(fates).map(|(pod, fate)| {
            // It has got its node already.
            self.stage.end_pod(pod, Fate { farewell: None, ..fate })
        }))
        .await;
    }

    /// Gives a Pod that runs its end.
    async fn end(&self, name: &str, place: Place, fate: Fate) -> String {
        let pod = self.pod(name, place);
        let uid = uid(&pod);
        self.stage.end_pod(pod, fate).await;
        uid
    }

    /// A Pod that runs.
    fn pod(&self, name: &str, wanted: Place) -> Pod {
        let sheet = self.board.sheet(name);
        let pod = sheet.live().find(|pod| place(pod) == wanted).cloned();
        pod.unwrap_or_else(|| panic!("no Pod of {wanted:?} runs:\n{}", sheet.told()))
    }

    /// Waits until what was done to a Pod is known here, or it is gone.
    async fn see(&self, name: &str, uid: &str, what: &str, is_so: impl Fn(&Pod) -> bool) {
        let what = format!("has the Pod that {what}");
        self.board.until(name, &what, |sheet| sheet.pods.get(uid).is_none_or(&is_so)).await;
    }
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

fn version(job: &Job) -> u64 {
    let version = job.metadata.resource_version.as_deref().unwrap_or_default();
    version.parse().expect("a version")
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|it| it.restart_count).sum()
}
