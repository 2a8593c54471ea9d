//! What the ledger asks for, and what came of it.
//!
//! An op is data: whoever runs it tells the ledger the outcome. An outcome in doubt is
//! said to be so, never guessed.

use std::borrow::Cow;

use k8s_openapi::api::batch::v1::JobStatus;
use stint_api::view::JobView;

use crate::metric::Metric;
use crate::pod_facts::PodFacts;

/// Names an op until its outcome is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its name.
    pub id: OpId,
    /// What it is.
    pub kind: OpKind,
}

/// What there is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// Create a Pod from the Job's template.
    CreatePod(NewPod),
    /// Delete a Pod, if it is still the one with this uid.
    DeletePod(PodRef),
    /// Take the tracking finalizer off a Pod, if it is still the one with this uid, and
    /// still at this version if one is given: a Pod that has ended meanwhile counts.
    RemoveFinalizer(PodRef),
    /// Make a Pod ours, with owner reference and finalizer in one patch, after an uncached
    /// check that the Job lives and is not being deleted.
    AdoptPod(PodRef),
    /// Give a Pod up: owner reference and finalizer in one patch.
    ReleasePod(PodRef),
    /// Write the Job's status, if the Job is still at this version.
    WriteStatus {
        /// The version that the status was computed from.
        version: u64,
        /// The whole status.
        status: Box<JobStatus>,
    },
    /// Look the Job up, past every cache.
    LookUpJob,
    /// Look a Pod up by its name, past every cache.
    LookUpPod(String),
    /// Look all Pods of the Job up, past every cache: those it controls, those its
    /// selector matches, and those that bear the finalizer and its uid as a label.
    LookUpPods,
    /// Tell those who watch the Job. Needs no outcome.
    EmitEvent(JobEvent),
    /// Add to a counter. Needs no outcome.
    Record(Metric),
}

/// A Pod to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPod {
    /// Its name.
    pub name: String,
    /// Its completion index.
    pub index: Option<u32>,
    /// The failures of its index before it, where those are counted.
    pub failure_count: Option<u32>,
    /// The ignored failures of its index before it.
    pub ignored_failure_count: u32,
    /// The Pods of its index before it that were forgiven, as their node ended them.
    pub interruption_count: u32,
}

/// One particular Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version it must be at, where that matters.
    pub version: Option<u64>,
}

/// An event on the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// Whether it is a Warning.
    pub is_warning: bool,
    /// Its reason.
    pub reason: Cow<'static, str>,
    /// Its message.
    pub message: String,
}

/// What came of an op.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was done.
    Applied(Applied),
    /// It was refused and has changed nothing.
    Refused(Refusal),
    /// Nobody knows: no answer, or one that does not tell.
    InDoubt,
}

/// What is there after an op was done.
#[derive(Clone, Debug)]
pub enum Applied {
    /// A Pod, as it is now.
    Pod(Box<PodFacts>),
    /// No Pod of that name and uid.
    NoPod,
    /// The Job's Pods, each with whether the Job's selector matches it.
    Pods {
        /// The Pods.
        pods: Vec<(PodFacts, bool)>,
        /// The version of the list.
        version: u64,
    },
    /// The Job, as it is now.
    Job(Box<JobView>),
    /// No Job of that name and uid.
    NoJob,
}

/// Why an op was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is a Pod of that name.
    AlreadyExists,
    /// The object is at another version, or another object has its name.
    Conflict,
    /// The object is gone.
    NotFound,
    /// Not now, for the reason the API gave: too many requests, a quota, a server in
    /// trouble.
    TryLater(String),
    /// Not in this form, for the reason the API gave: the request is invalid or forbidden.
    Rejected(String),
    /// Never again, in the words of the API: the namespace is being deleted, and nothing new comes
    /// into it. What is there may still be changed and deleted.
    NamespaceGoes(String),
}
