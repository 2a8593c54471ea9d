//! Each op as an API call, and its answer as an outcome.
//!
//! Every write names the very object it means, by uid or version, so that one that comes late
//! cannot touch another. A finalizer and an owner are added and removed alone: others may have
//! theirs.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::batch::v1::JobStatus;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use stint_api::identifier::dns1123_subdomain;
use stint_api::view::{JobView, JobViewError};
use stint_ledger::op::{Applied, NewPod, OpKind, Outcome, PodRef, Refusal};
use stint_ledger::pod_facts::PodFacts;

use crate::answer::{Failure, Weather, send};
use crate::events::EventCall;
use crate::job::{SeenJob, WireJob};
use crate::mould::{Mould, owner_reference};
use crate::odd::{Lenient, Wire};
use crate::path;
use crate::pod::{SeenPod, WirePod};
use crate::selection::{Selection, Selections};
use crate::term::Term;

/// How many Pods of a list come at once: at 3 KB each some 3 MB.
const PAGE: usize = 1000;

/// How long a node gives a Pod to end is the Pod's own business.
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";

/// Why a Pod is not adopted whose Job goes: that is no refusal of the API.
pub(crate) const JOB_LEAVES: &str = "the Job is gone or being deleted";

/// Carries calls to the API.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) client: Client,
    pub(crate) finalizer: Arc<str>,
    pub(crate) timeout: Duration,
    /// Nothing is written when it is over.
    pub(crate) term: Term,
}

/// Whose call it is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) namespace: Arc<str>,
    pub(crate) job_name: Arc<str>,
    pub(crate) job_uid: Arc<str>,
    /// Which of the Job's ledgers asks.
    pub(crate) ledger: u64,
    /// There once the Job has been seen, without which no Pod is asked for.
    pub(crate) mould: Option<Arc<Mould>>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) weather: Weather,
    /// A Job that was found and cannot be read.
    pub(crate) unreadable: Option<Box<SeenJob>>,
    /// What the Pods of a Job that was found are made from.
    pub(crate) template: Option<Arc<Value>>,
}

/// The Pods of some Jobs of a namespace, as of one version.
#[derive(Debug)]
pub(crate) struct Listing {
    /// For each of the Jobs, in the order they were asked for.
    pub(crate) pods: Vec<Vec<(PodFacts, bool)>>,
    pub(crate) version: u64,
    /// How many pages it came in.
    pub(crate) pages: u32,
}

type Done = Result<Applied, Failure>;

impl Calls {
    /// Carries out an op.
    pub(crate) async fn run(&self, target: &Target, kind: &OpKind) -> Answer {
        let done = match kind {
            OpKind::CreatePod(pod) => self.create(target, pod).await,
            OpKind::DeletePod(pod) => self.delete(target, pod).await,
            OpKind::RemoveFinalizer(pod) => self.remove_finalizer(target, pod).await,
            OpKind::AdoptPod(pod) => self.adopt(target, pod).await,
            OpKind::ReleasePod(pod) => self.release(target, pod).await,
            OpKind::WriteStatus { version, status } => {
                return self.write_status(target, *version, status).await;
            }
            OpKind::LookUpJob => return self.look_up_job(target).await,
            OpKind::LookUpPod(name) => self.look_up_pod(target, name).await,
            OpKind::LookUpPods | OpKind::EmitEvent(_) | OpKind::Record(_) => {
                unreachable!("these are not calls of one Job")
            }
        };
        match done {
            Ok(applied) => Answer::fine(Outcome::Applied(applied)),
            Err(failure) => Answer::failed(failure),
        }
    }

    async fn create(&self, target: &Target, pod: &NewPod) -> Done {
        let Some(mould) = &target.mould else {
            let reason = "the Job is not known, or has finished".to_owned();
            return Err(Failure::Refused(Refusal::TryLater(reason), Weather::Fine));
        };
        let path = path::pods(&target.namespace);
        let body = self.send(Method::POST, &path, path::JSON, mould.cast(pod)).await?;
        self.read_pod(&body)
    }

    async fn delete(&self, target: &Target, pod: &PodRef) -> Done {
        let mut preconditions = json!({"uid": pod.uid});
        if let Some(version) = pod.version {
            preconditions["resourceVersion"] = version.to_string().into();
        }
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Background", "preconditions": preconditions,
        });
        let path = path::pod(&target.namespace, &pod.name);
        let body = self.send(Method::DELETE, &path, path::JSON, bytes_of(&options)).await?;
        // A Pod that goes at once is answered as it was before, or with a Status.
        let pod = self.decode(&body)?;
        match pod.is_gone || pod.facts.uid.is_empty() || !pod.facts.is_deleted {
            true => Ok(Applied::NoPod),
            false => Ok(Applied::Pod(Box::new(pod.facts))),
        }
    }

    async fn remove_finalizer(&self, target: &Target, pod: &PodRef) -> Done {
        let mut patch = json!({"metadata": guard(pod)});
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([&*self.finalizer]);
        self.patch_pod(target, &pod.name, &patch).await
    }

    async fn adopt(&self, target: &Target, pod: &PodRef) -> Done {
        let path = path::job(&target.namespace, &target.job_name);
        let body = self.send(Method::GET, &path, path::JSON, Vec::new()).await;
        let lives = match body {
            Ok(body) => {
                let job: JobHead = decode(&body)?;
                job.metadata.uid.as_deref() == Some(&*target.job_uid)
                    && job.metadata.deletion_timestamp.is_none()
            }
            Err(Failure::Refused(Refusal::NotFound, _)) => false,
            Err(failure) => return Err(failure),
        };
        if !lives {
            let reason = JOB_LEAVES.to_owned();
            return Err(Failure::Refused(Refusal::Rejected(reason), Weather::Fine));
        }
        let mut patch = json!({"metadata": guard(pod)});
        let owner = owner_reference(&target.job_name, &target.job_uid);
        patch["metadata"]["ownerReferences"] = json!([owner]);
        patch["metadata"]["finalizers"] = json!([&*self.finalizer]);
        self.patch_pod(target, &pod.name, &patch).await
    }

    async fn release(&self, target: &Target, pod: &PodRef) -> Done {
        let mut patch = json!({"metadata": guard(pod)});
        patch["metadata"]["ownerReferences"] =
            json!([{"$patch": "delete", "uid": &*target.job_uid}]);
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([&*self.finalizer]);
        self.patch_pod(target, &pod.name, &patch).await
    }

    async fn patch_pod(&self, target: &Target, name: &str, patch: &Value) -> Done {
        let path = path::pod(&target.namespace, name);
        let body = self.send(Method::PATCH, &path, STRATEGIC, bytes_of(patch)).await?;
        self.read_pod(&body)
    }

    /// Replaces the status and nothing else: a PUT would need labels, annotations and whatever
    /// others put into the metadata, or take it away.
    async fn write_status(&self, target: &Target, version: u64, status: &JobStatus) -> Answer {
        let patch = json!({
            "metadata": {"uid": &*target.job_uid, "resourceVersion": version.to_string()},
            "status": whole_status(status),
        });
        let path = format!("{}/status", path::job(&target.namespace, &target.job_name));
        let written = self.send(Method::PATCH, &path, MERGE, bytes_of(&patch)).await;
        let job: WireJob = match written.and_then(|body| decode(&body)) {
            Ok(job) => job,
            Err(failure) => return Answer::failed(failure),
        };
        let lost = |error: JobViewError| Answer::failed(Failure::Lost(error.to_string()));
        job.view().map_or_else(lost, |view| Answer::with_job(view, &job))
    }

    async fn look_up_job(&self, target: &Target) -> Answer {
        // Whoever makes a Pod writes what its owner is called: by a name like `..` another path would be
        // asked for, and refused for ever.
        if !dns1123_subdomain(&target.job_name).is_empty() {
            return Answer::fine(Outcome::Applied(Applied::NoJob));
        }
        let path = path::job(&target.namespace, &target.job_name);
        let found = self.send(Method::GET, &path, path::JSON, Vec::new()).await;
        let job: WireJob = match found.and_then(|body| decode(&body)) {
            Ok(job) => job,
            Err(Failure::Refused(Refusal::NotFound, _)) => {
                return Answer::fine(Outcome::Applied(Applied::NoJob));
            }
            Err(failure) => return Answer::failed(failure),
        };
        match job.view() {
            Ok(view) => Answer::with_job(view, &job),
            // Another Job has the name, whatever it is.
            Err(_) if job.uid() != Some(&*target.job_uid) => {
                Answer::fine(Outcome::Applied(Applied::NoJob))
            }
            Err(_) => {
                let seen = Box::new(SeenJob::read(&job));
                Answer { unreadable: Some(seen), ..Answer::fine(Outcome::InDoubt) }
            }
        }
    }

    async fn look_up_pod(&self, target: &Target, name: &str) -> Done {
        let path = path::pod(&target.namespace, name);
        match self.send(Method::GET, &path, path::JSON, Vec::new()).await {
            Ok(body) => self.read_pod(&body),
            Err(Failure::Refused(Refusal::NotFound, _)) => Ok(Applied::NoPod),
            Err(failure) => Err(failure),
        }
    }

    /// The Pods of some Jobs of a namespace, past every cache. For one Job alone that is much, but no
    /// selector finds the Pods that a Job controls and does not select; so all Jobs of a
    /// namespace that ask at the same time share one.
    pub(crate) async fn list_pods(
        &self,
        namespace: &str,
        jobs: &[Selection],
    ) -> Result<Listing, Failure> {
        let mut listing = Listing { pods: vec![Vec::new(); jobs.len()], version: 0, pages: 0 };
        let jobs = Selections::new(jobs);
        let mut token = String::new();
        loop {
            let path = path::page(&path::pods(namespace), PAGE, &token);
            let body = self.send(Method::GET, &path, path::JSON, Vec::new()).await?;
            let (pods, meta) = match decode::<Page<WirePod>>(&body) {
                Ok(page) => (page.items, page.metadata),
                // The feed has said which of them cannot be read.
                Err(_) => {
                    let page: Page<Lenient<WirePod>> = decode(&body)?;
                    let pods = page.items.into_iter().filter_map(|pod| pod.open().ok());
                    (pods.collect(), page.metadata)
                }
            };
            listing.pages += 1;
            listing.version = path::version(meta.resource_version.as_deref());
            for pod in pods.into_iter().map(|pod| pod.read(&self.finalizer)) {
                for (place, picked) in jobs.pick(&pod) {
                    listing.pods[place].push(picked);
                }
            }
            token = meta.r#continue.unwrap_or_default();
            if token.is_empty() {
                return Ok(listing);
            }
        }
    }

    /// Tells those who watch a Job.
    pub(crate) async fn tell(&self, call: &EventCall) -> Result<(), Failure> {
        let (method, path, kind, body) = match call {
            EventCall::Create { namespace, body, .. } => {
                (Method::POST, path::events(namespace), path::JSON, body)
            }
            EventCall::Count { namespace, name, body } => {
                (Method::PATCH, path::event(namespace, name), MERGE, body)
            }
        };
        self.send(method, &path, kind, bytes_of(body)).await.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Vec<u8>,
    ) -> Result<bytes::Bytes, Failure> {
        // At the last moment: this process may have been stopped since the call was begun.
        if method != Method::GET && !self.term.is_on() {
            let reason = "this replica does not lead any more".to_owned();
            return Err(Failure::Refused(Refusal::TryLater(reason), Weather::Fine));
        }
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, path::JSON)
            .header(http::header::CONTENT_TYPE, content)
            .body(Body::from(body))
            .expect("paths are made of names that the API has accepted");
        send(&self.client, request, self.timeout).await
    }

    fn read_pod(&self, body: &[u8]) -> Done {
        let pod = self.decode(body)?;
        match pod.is_gone {
            true => Ok(Applied::NoPod),
            false => Ok(Applied::Pod(Box::new(pod.facts))),
        }
    }

    fn decode(&self, body: &[u8]) -> Result<SeenPod, Failure> {
        let pod: WirePod = decode(body)?;
        Ok(pod.read(&self.finalizer))
    }
}

impl Answer {
    fn fine(outcome: Outcome) -> Self {
        Answer { outcome, weather: Weather::Fine, unreadable: None, template: None }
    }

    fn with_job(view: Box<JobView>, job: &WireJob) -> Self {
        let template = Some(job.template().clone());
        Answer { template, ..Answer::fine(Outcome::Applied(Applied::Job(view))) }
    }

    fn failed(failure: Failure) -> Self {
        let weather = failure.weather();
        Answer { weather, ..Answer::fine(failure.outcome()) }
    }
}

/// The head of a Job: whether it lives.
#[derive(Debug, Deserialize)]
struct JobHead {
    metadata: JobMeta,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobMeta {
    uid: Option<String>,
    deletion_timestamp: Option<Value>,
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) metadata: PageMeta,
    #[serde(default = "Vec::new")]
    pub(crate) items: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PageMeta {
    pub(crate) resource_version: Option<String>,
    pub(crate) r#continue: Option<String>,
}

/// An answer that cannot be read does not say what was done.
fn decode<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::Lost(error.to_string()))
}

fn bytes_of(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("JSON is JSON")
}

/// What makes a patch mean one Pod, at one version where that matters.
fn guard(pod: &PodRef) -> Value {
    let mut guard = json!({"uid": pod.uid});
    if let Some(version) = pod.version {
        guard["resourceVersion"] = version.to_string().into();
    }
    guard
}

/// A status as a merge patch that leaves nothing of the one before: what is not there is null.
fn whole_status(status: &JobStatus) -> Value {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    json!({
        "active": status.active,
        "ready": status.ready,
        "terminating": status.terminating,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "completedIndexes": status.completed_indexes,
        "failedIndexes": status.failed_indexes,
        "uncountedTerminatedPods": uncounted.map(|pods| {
            json!({"succeeded": pods.succeeded, "failed": pods.failed})
        }),
        "startTime": status.start_time,
        "completionTime": status.completion_time,
        "conditions": status.conditions,
    })
}
