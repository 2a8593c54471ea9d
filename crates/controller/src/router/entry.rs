//! A Job that is held: its ledger, and what is needed to bring it news and carry out its ops.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use stint_api::view::{Completion, JobView};
use stint_ledger::ledger::JobLedger;

use super::JobUid;
use crate::calls::Target;
use crate::job::Standing;
use crate::mould::Mould;
use crate::path;
use crate::selection::Selection;

/// A Job that is held.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ledger: JobLedger,
    /// Tells it from the ledgers that the Job had before.
    pub(super) number: u64,
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) scope: usize,
    /// Whether a list or watch has told of it, and not of its end.
    pub(super) is_listed: bool,
    pub(super) is_dirty: bool,
    /// Whether it was told of the Pods without an owner that it selects.
    pub(super) has_met_orphans: bool,
    pub(super) selection: Selection,
    pub(super) mode: &'static str,
    /// What its Pods are made from; none if it is not known, or has finished.
    pub(super) mould: Option<Arc<Mould>>,
    pub(super) generation: i64,
    pub(super) standing: Option<Standing>,
    /// The version that it was last known to stand so at.
    pub(super) version: u64,
    pub(super) wake: Option<Timestamp>,
}

/// Where a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

impl Place {
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        *self.namespace == *namespace && *self.name == *name
    }
}

/// A Job that has finished, without its ledger.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) place: Place,
    pub(super) scope: usize,
    pub(super) version: u64,
}

impl Entry {
    pub(super) fn place(&self) -> Place {
        Place { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    pub(super) fn target(&self, uid: &JobUid) -> Target {
        Target {
            namespace: self.namespace.clone(),
            job_name: self.name.clone(),
            job_uid: uid.clone(),
            ledger: self.number,
            mould: self.mould.clone(),
        }
    }

    /// Takes note of how the Job stands, and of what its Pods are made from.
    pub(super) fn note(&mut self, job: &JobView, template: &Value, uid: &JobUid, finalizer: &str) {
        let version = path::version(Some(&job.resource_version));
        if version < self.version {
            return;
        }
        self.version = version;
        if self.selection.selector.is_none() {
            self.selection.selector = Some(Arc::new(job.selector.clone()));
        }
        self.mode = match &job.completion {
            Completion::Indexed(_) => "Indexed",
            Completion::WorkQueue | Completion::Count(_) => "NonIndexed",
        };
        if job.status.is_finished() {
            self.mould = None;
        } else if self.mould.is_none() || job.generation != self.generation {
            self.generation = job.generation;
            self.mould = Some(Arc::new(Mould::of(job, template, finalizer)));
        }
        let (standing, reason) = Standing::of(job);
        if self.standing.is_none_or(|known| known != standing) {
            self.standing = Some(standing);
            let (namespace, name, state) = (&*self.namespace, &*self.name, standing.as_str());
            let status = &job.status;
            let (active, succeeded, failed) = (status.active, status.succeeded, status.failed);
            tracing::info!(
                namespace,
                job = name,
                uid = &**uid,
                state,
                reason,
                active,
                succeeded,
                failed,
                "job"
            );
        }
    }
}
