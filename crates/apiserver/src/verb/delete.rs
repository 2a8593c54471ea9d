//! Delete and deletecollection: who removes an object, and when.
//!
//! ```text
//!   delete ─▶ grace > 0 ─────────▶ deletionTimestamp in the future; whoever runs it deletes it
//!        │                         again with grace 0
//!        ├▶ finalizers ──────────▶ deletionTimestamp now; the update that takes the last one
//!        │                         off removes it
//!        └▶ nothing keeps it ────▶ removed at once
//! ```

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};
use stint_api::pod_deletion::Deletion;
use stint_store::{Condition, Entry, Revision, StoreError, Write};

use super::metadata;
use super::update::Which;
use crate::api::{Api, Current, store_failed};
use crate::kind::{AnyKind, Part};
use crate::object::Object;
use crate::request::delete_options::{DeleteOptions, Propagation};
use crate::request::list_options::ListOptions;
use crate::status::Status;

/// How often a delete is tried again because somebody else was faster.
const ATTEMPTS: usize = 200;

/// How many objects of a collection are deleted at once: enough to share a commit.
const DELETIONS_AT_ONCE: usize = 64;

/// What a delete came to.
#[derive(Debug)]
pub(crate) struct Deleted {
    /// The object in its last form, or as it is now.
    pub(crate) stored: Bytes,
    pub(crate) revision: Revision,
    pub(crate) uid: String,
    /// Whether it is gone.
    pub(crate) is_gone: bool,
}

impl Api {
    /// Deletes an object, or marks it so that it will be.
    pub(crate) async fn delete(
        &self,
        which: Which<'_>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        for _ in 0..ATTEMPTS {
            let current = self.current(which.kind, which.namespace, which.name)?;
            if let Some(deleted) = self.try_delete(which, &current, options).await? {
                return Ok(deleted);
            }
        }
        Err(Status::modified(which.kind.names(), which.name))
    }

    /// Deletes what is selected, one by one, and answers what there was.
    pub(crate) async fn delete_collection(
        &self,
        kind: &'static dyn AnyKind,
        namespace: Option<&str>,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<super::list::Listed, Status> {
        let listed = self.list(kind, namespace, list).await?;
        // Many at once, so that the store commits them together.
        for entries in listed.entries.chunks(DELETIONS_AT_ONCE) {
            let read = |entry: &Arc<Entry>| kind.read_stored(&entry.value, entry.modified);
            let objects: Vec<Box<dyn Object>> = entries.iter().map(read).collect();
            let deletions =
                objects.iter().map(|object| self.delete_object(kind, object.meta(), options));
            try_join_all(deletions.collect::<Vec<_>>()).await?;
        }
        Ok(listed)
    }

    /// Deletes one of many, if nobody else has done so meanwhile.
    async fn delete_object(
        &self,
        kind: &'static dyn AnyKind,
        meta: &ObjectMeta,
        options: &DeleteOptions,
    ) -> Result<(), Status> {
        let name = meta.name.as_deref().expect("everything stored has a name");
        let which = Which { kind, namespace: meta.namespace.as_deref(), name, part: Part::Whole };
        match self.delete(which, options).await {
            Err(status) if status.code() != 404 => Err(status),
            _ => Ok(()),
        }
    }

    async fn try_delete(
        &self,
        which: Which<'_>,
        current: &Current,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, Status> {
        let kind = which.kind;
        let version = current.entry.modified.to_string();
        check_preconditions(kind, current.object.as_ref(), &version, options)?;
        kind.may_delete(current.object.as_ref())?;
        let now = self.now();
        let mut object = current.object.copy();
        let uid = object.meta().uid.clone().unwrap_or_default();
        let is_first = object.meta().deletion_timestamp.is_none();
        let grace = kind.begin_deletion(object.as_mut(), options.grace_period_seconds, now);
        if grace == Some(Deletion::Pending) {
            let stored = current.entry.value.clone();
            let revision = current.entry.modified;
            return Ok(Some(Deleted { stored, revision, uid, is_gone: false }));
        }
        if kind.manners().has_dependents {
            set_dependents_finalizer(kind, object.meta_mut(), options.propagation);
        }
        if grace.is_none() {
            mark(object.meta_mut(), now);
        }
        kind.mark_deleted(object.as_mut());
        let is_only_marked = is_first && kind.manners().is_marked_first;
        let is_gone = !is_only_marked
            && metadata::is_released(object.meta())
            && !kind.is_held(object.as_ref());
        object.meta_mut().resource_version = None;
        let at = current.entry.modified;
        // What knows no grace and is removed at once was never marked, and what had no time left
        // was marked before: its last form is the one that was stored.
        let had_none = current.object.meta().deletion_grace_period_seconds == Some(0);
        let stored = if is_gone && (grace.is_none() || had_none) {
            current.entry.value.clone()
        } else {
            kind.to_stored(object.as_ref(), current.managed.as_deref())?
        };
        let is_same = !is_gone && stored == current.entry.value;
        if options.is_dry_run || is_same {
            return Ok(Some(Deleted { stored, revision: at, uid, is_gone }));
        }
        let key = current.entry.key.clone();
        let write = if is_gone {
            Write::delete(key, Condition::At(at))
        } else {
            Write::put(key, Condition::At(at), stored.clone())
        };
        match self.store.write(write).await {
            Ok(change) => Ok(Some(Deleted { stored, revision: change.revision, uid, is_gone })),
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(store_failed(error)),
        }
    }
}

/// Marks an object that gets no time of its own.
fn mark(meta: &mut ObjectMeta, now: Timestamp) {
    if meta.deletion_timestamp.is_none() {
        bump_generation(meta);
    }
    if meta.deletion_timestamp.as_ref().is_none_or(|time| time.0 > now) {
        meta.deletion_timestamp = Some(Time(now));
    }
    meta.deletion_grace_period_seconds = Some(0);
}

fn bump_generation(meta: &mut ObjectMeta) {
    if let Some(generation) = meta.generation.filter(|generation| *generation > 0) {
        // Of many kinds clients choose it, and one below zero could never be written again.
        meta.generation = Some(generation.saturating_add(1));
    }
}

/// Says by a finalizer what is to become of the dependents before the object may go.
fn set_dependents_finalizer(kind: &dyn AnyKind, meta: &mut ObjectMeta, asked: Option<Propagation>) {
    let mut finalizers = meta.finalizers.take().unwrap_or_default();
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let propagation = asked.unwrap_or_else(|| {
        if has(ORPHAN) {
            Propagation::Orphan
        } else if has(FOREGROUND_DELETION) {
            Propagation::Foreground
        } else if kind.manners().orphans_by_default {
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    });
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND_DELETION);
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND_DELETION.to_owned()),
        Propagation::Background => {}
    }
    meta.finalizers = (!finalizers.is_empty()).then_some(finalizers);
}

pub(crate) fn check_preconditions(
    kind: &dyn AnyKind,
    object: &dyn Object,
    version: &str,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or("");
    let uid = meta.uid.as_deref().unwrap_or("");
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        let why = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        );
        return Err(Status::precondition_failed(kind.names(), name, why));
    }
    if let Some(asked) = options.resource_version.as_deref().filter(|asked| *asked != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the \
             ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::precondition_failed(kind.names(), name, why));
    }
    Ok(())
}
