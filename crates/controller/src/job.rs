//! A Job as the controller reads it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use stint_api::closed_set::JobConditionType;
use stint_api::view::{JobView, JobViewError, ManagedBy};

use crate::odd::{Odd, OddMeta};
use crate::path;
use crate::rival;

/// A Job on the wire. Its Pods' template is kept as the API has it: it may have fields that were
/// made after this program was, and its Pods need them.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Parts")]
pub(crate) struct WireJob {
    /// The Job, with no more of its template than a ledger looks at.
    job: Job,
    template: Arc<Value>,
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    metadata: ObjectMeta,
    spec: Option<Value>,
    status: Option<JobStatus>,
}

impl TryFrom<Parts> for WireJob {
    type Error = serde_json::Error;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        let Parts { metadata, mut spec, status } = parts;
        let mut template = Value::Null;
        if let Some(given) = spec.as_mut().and_then(|spec| spec.get_mut("template")) {
            let policy = given.pointer("/spec/restartPolicy").cloned();
            let rest = json!({"spec": {"restartPolicy": policy}});
            template = std::mem::replace(given, rest);
        }
        let spec = spec.map(JobSpec::deserialize).transpose()?;
        Ok(WireJob { job: Job { metadata, spec, status }, template: Arc::new(template) })
    }
}

impl WireJob {
    /// Its version.
    pub(crate) fn version(&self) -> u64 {
        path::version(self.job.metadata.resource_version.as_deref())
    }

    /// Its uid.
    pub(crate) fn uid(&self) -> Option<&str> {
        self.job.metadata.uid.as_deref()
    }

    /// The Job as a ledger sees it.
    pub(crate) fn view(&self) -> Result<Box<JobView>, JobViewError> {
        JobView::parse(&self.job).map(Box::new)
    }

    /// What its Pods are made from.
    pub(crate) fn template(&self) -> &Arc<Value> {
        &self.template
    }
}

/// A Job that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenJob {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
    /// Whose it is, also where the rest cannot be read.
    pub(crate) managed_by: ManagedBy,
    pub(crate) view: Result<Box<JobView>, JobViewError>,
    /// What its Pods are made from, as the API has it.
    pub(crate) template: Arc<Value>,
    /// When the built-in controller last wrote its status.
    pub(crate) rival_wrote: Option<Timestamp>,
}

impl SeenJob {
    /// Reads a Job as the API sends it.
    pub(crate) fn read(whole: &WireJob) -> Self {
        let job = &whole.job;
        let meta = &job.metadata;
        let managed_by = job.spec.as_ref().and_then(|spec| spec.managed_by.as_ref());
        let view = whole.view();
        // It will have no more Pods, and there can be very many of them.
        let is_over = view.as_ref().is_ok_and(|view| view.status.is_finished());
        let template = if is_over { Arc::default() } else { whole.template.clone() };
        SeenJob {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            version: whole.version(),
            managed_by: ManagedBy::parse(managed_by.map(String::as_str)),
            view,
            template,
            rival_wrote: rival::wrote(job),
        }
    }
}

impl From<Odd> for SeenJob {
    fn from(odd: Odd) -> Self {
        let (version, managed_by) = (odd.version(), ManagedBy::parse(odd.managed_by()));
        let OddMeta { namespace, name, uid, .. } = odd.metadata;
        let view = Err(JobViewError::Malformed);
        let template = Arc::default();
        SeenJob { namespace, name, uid, version, managed_by, view, template, rival_wrote: None }
    }
}

/// How a Job stands, for a line in the log whenever that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has begun it.
    New,
    /// It runs.
    Running,
    /// It is held.
    Suspended,
    /// It has what it takes to be complete.
    Completing,
    /// It will fail.
    Failing,
    /// It is complete.
    Complete,
    /// It has failed.
    Failed,
    /// It is being deleted.
    Deleted,
}

impl Standing {
    /// How this Job stands, and why.
    pub(crate) fn of(job: &JobView) -> (Self, &str) {
        use JobConditionType as Type;
        let standings = [
            (Type::Complete, Standing::Complete),
            (Type::Failed, Standing::Failed),
            (Type::SuccessCriteriaMet, Standing::Completing),
            (Type::FailureTarget, Standing::Failing),
            (Type::Suspended, Standing::Suspended),
        ];
        let (kind, standing) = match standings.iter().find(|(kind, _)| job.status.is_true(*kind)) {
            Some((kind, standing)) => (Some(*kind), *standing),
            None if job.deleted.is_some() => (None, Standing::Deleted),
            None if job.status.start_time.is_none() => (None, Standing::New),
            None => (None, Standing::Running),
        };
        let is_meant = |name: &str| kind.is_some_and(|kind| kind.as_str() == name);
        let condition = job.status.conditions.iter().find(|condition| is_meant(&condition.type_));
        let reason = condition.and_then(|condition| condition.reason.as_deref());
        (standing, reason.unwrap_or_default())
    }

    /// What a log says.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Standing::New => "new",
            Standing::Running => "running",
            Standing::Suspended => "suspended",
            Standing::Completing => "completing",
            Standing::Failing => "failing",
            Standing::Complete => "complete",
            Standing::Failed => "failed",
            Standing::Deleted => "being deleted",
        }
    }
}
