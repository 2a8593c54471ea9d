//! What is known of Jobs and Pods on a stage, without asking the server: many scripts wait at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::WatchEvent;
use stint_api::names::label;
use stint_api::view::StatusView;
use stint_kit::follow;
use stint_kit::job::is_tracked;
use tokio::task::JoinSet;

use super::model::Rest;
use super::step::Place;
use crate::picture::Picture;

/// How long something may take to come true: longer than the longest backoff of a script (70 s),
/// twice over.
const PATIENCE: Duration = Duration::from_secs(180);

/// How soon it is looked at again.
const AGAIN: Duration = Duration::from_millis(50);

/// What is known. Clones are the same board.
#[derive(Clone, Default)]
pub(crate) struct Board {
    sheets: Arc<Mutex<HashMap<String, Sheet>>>,
}

/// What is known of one Job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    /// As it was last.
    pub(crate) job: Option<Job>,
    pub(crate) is_gone: bool,
    /// By uid.
    pub(crate) pods: BTreeMap<String, Pod>,
    /// The names of all Pods that ever were, and what is put in their place.
    names: BTreeMap<String, String>,
}

impl Board {
    /// Takes note as long as `background` lives.
    pub(crate) fn start(background: &mut JoinSet<()>, client: Client) -> Self {
        let board = Board::default();
        let (jobs, pods) = (board.clone(), board.clone());
        let other = client.clone();
        background.spawn(async move {
            follow::<Job>(other, "/apis/batch/v1/jobs", |event| jobs.note_job(event)).await;
        });
        background.spawn(async move {
            follow::<Pod>(client, "/api/v1/pods", |event| pods.note_pod(event)).await;
        });
        board
    }

    /// What is known of a Job.
    pub(crate) fn sheet(&self, name: &str) -> Sheet {
        let sheets = self.sheets.lock().expect("nobody panics here");
        sheets.get(name).cloned().unwrap_or_default()
    }

    /// Waits until something is so of a Job.
    pub(crate) async fn until(&self, name: &str, what: &str, is_so: impl Fn(&Sheet) -> bool) {
        let began = Instant::now();
        loop {
            let sheet = self.sheet(name);
            if is_so(&sheet) {
                return;
            }
            if began.elapsed() > PATIENCE {
                panic!("{name} never {what}:\n{}", sheet.told());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn note_job(&self, event: WatchEvent<Job>) {
        let (job, is_gone) = match event {
            WatchEvent::Added(job) | WatchEvent::Modified(job) => (job, false),
            WatchEvent::Deleted(job) => (job, true),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return,
        };
        let name = job.metadata.name.clone().unwrap_or_default();
        let mut sheets = self.sheets.lock().expect("nobody panics here");
        let sheet = sheets.entry(name).or_default();
        (sheet.job, sheet.is_gone) = (Some(job), is_gone);
    }

    fn note_pod(&self, event: WatchEvent<Pod>) {
        let (pod, is_gone) = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
            WatchEvent::Deleted(pod) => (pod, true),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return,
        };
        let Some(job) =
            pod.metadata.labels.as_ref().and_then(|all| all.get(label::LEGACY_JOB_NAME))
        else {
            return;
        };
        let mut sheets = self.sheets.lock().expect("nobody panics here");
        let sheet = sheets.entry(job.clone()).or_default();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if let (Some(name), Some(stem)) = (&pod.metadata.name, &pod.metadata.generate_name) {
            sheet.names.insert(name.clone(), format!("{stem}*"));
        }
        if is_gone {
            sheet.pods.remove(&uid)
        } else {
            sheet.pods.insert(uid, pod)
        };
    }
}

/// Whether no index is in the lists of a Job that it does not have any more: of a Job that was scaled
/// down nothing else may tell that somebody has looked at it since.
fn has_no_others(job: &Job) -> bool {
    let completions = job.spec.as_ref().and_then(|spec| spec.completions);
    let status = StatusView::parse(job.status.as_ref(), completions.map(|count| count as u32));
    completions.is_none() || status.is_canonical
}

impl Sheet {
    /// Whether the Job is at rest, and there. Who runs it may keep the start time of a Job that is
    /// suspended.
    pub(crate) fn is_at(&self, rest: &Rest, keeps_start_time: bool) -> bool {
        let Some(job) = &self.job else { return false };
        let Some(status) = &job.status else { return false };
        let number = |field: Option<i32>| field.unwrap_or(0) as u32;
        let counts =
            [status.active, status.ready, status.terminating, status.succeeded, status.failed];
        let expected = [rest.active, rest.active, 0, rest.succeeded, rest.failed];
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let is_counted = uncounted.succeeded.is_none_or(|all| all.is_empty())
            && uncounted.failed.is_none_or(|all| all.is_empty());
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let is_suspended =
            conditions.iter().any(|it| it.type_ == "Suspended" && it.status == "True");
        let live: Vec<&Pod> = self.live().collect();
        let indexes: BTreeSet<u32> = live.iter().filter_map(|pod| place(pod)).collect();
        // Also a sign that somebody has looked at it since it was created or resumed.
        let has_start_time = !rest.is_suspended || (rest.has_started && keeps_start_time);
        counts.map(number) == expected
            && status.start_time.is_some() == has_start_time
            && is_counted
            && has_no_others(job)
            && is_suspended == rest.is_suspended
            && live.len() as u32 == rest.active
            && self.pods.values().filter(|pod| has_ended(pod)).count() as u32 == rest.ended
            && rest.indexes.as_ref().is_none_or(|expected| *expected == indexes)
            && self.pods.values().all(is_settled)
    }

    /// How many Pods terminate, by the status of the Job.
    pub(crate) fn terminating(&self) -> u32 {
        let status = self.job.as_ref().and_then(|job| job.status.as_ref());
        status.and_then(|status| status.terminating).unwrap_or(0) as u32
    }

    /// The Pods of the Job that run.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().filter(|pod| {
            is_owned(pod) && !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()
        })
    }

    /// A picture of the Job at a rest, and of its Pods. When it has a start time was looked at.
    pub(crate) fn picture_at_rest(&self, rest: &Rest, with_pods: bool) -> Picture {
        let mut sheet = self.clone();
        let status = sheet.job.as_mut().and_then(|job| job.status.as_mut());
        if let Some(status) = status.filter(|_| rest.is_suspended) {
            status.start_time = None;
        }
        sheet.picture(with_pods)
    }

    /// A picture of the Job as it was last, and of its Pods.
    pub(crate) fn picture(&self, with_pods: bool) -> Picture {
        let mut job = self.job.clone();
        let conditions =
            job.as_mut().and_then(|job| job.status.as_mut()).and_then(|it| it.conditions.as_mut());
        // A message may name a Pod that is gone.
        for message in conditions.into_iter().flatten().filter_map(|it| it.message.as_mut()) {
            for (name, stem) in &self.names {
                *message = message.replace(name, stem);
            }
        }
        Picture::of(job.as_ref(), &if with_pods { self.pods() } else { Vec::new() })
    }

    /// A picture of the Pods alone.
    pub(crate) fn picture_of_pods(&self) -> Picture {
        Picture::of(None, &self.pods())
    }

    fn pods(&self) -> Vec<Pod> {
        self.pods.values().cloned().collect()
    }

    /// All of it, for people.
    pub(crate) fn told(&self) -> String {
        let status = self.job.as_ref().map(|job| &job.status);
        let status = serde_json::to_string(&status).expect("JSON");
        let gone = if self.is_gone { " (gone)" } else { "" };
        let mut lines = vec![format!("{status}{gone}")];
        lines.extend(self.pods.values().map(|pod| {
            let meta = &pod.metadata;
            format!(
                "{} {} finalizers {:?} deleted {} owned {} annotations {:?}",
                meta.name.as_deref().unwrap_or_default(),
                pod.status.as_ref().and_then(|it| it.phase.as_deref()).unwrap_or_default(),
                meta.finalizers,
                meta.deletion_timestamp.is_some(),
                is_owned(pod),
                meta.annotations,
            )
        }));
        lines.join("\n")
    }
}

/// The index of a Pod.
pub(crate) fn place(pod: &Pod) -> Place {
    let labels = pod.metadata.labels.as_ref()?;
    labels.get("batch.kubernetes.io/job-completion-index")?.parse().ok()
}

/// Whether a Pod has ended.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a Job owns a Pod.
pub(crate) fn is_owned(pod: &Pod) -> bool {
    pod.metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
}

/// Whether nothing is to happen to a Pod by itself.
fn is_settled(pod: &Pod) -> bool {
    let is_running = pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    pod.metadata.deletion_timestamp.is_none()
        && if has_ended(pod) { !is_tracked(pod) } else { is_running }
}
