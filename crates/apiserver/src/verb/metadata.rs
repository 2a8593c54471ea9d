//! What the server does to the metadata of every object, whatever its kind.

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

use crate::chance;
use crate::decode::MAX_WARNINGS;
use crate::kind::Names;
use crate::status::Status;

/// Puts an object into the namespace of its request, which it may name itself.
pub(crate) fn set_namespace(
    meta: &mut ObjectMeta,
    names: &Names,
    namespace: Option<&str>,
) -> Result<(), Status> {
    let given = meta.namespace.as_deref().unwrap_or("");
    match namespace {
        Some(namespace) if given.is_empty() => meta.namespace = Some(namespace.to_owned()),
        Some(namespace) if given != namespace => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        Some(_) => {}
        None if names.is_namespaced => {
            return Err(Status::bad_request("an empty namespace may not be set during creation"));
        }
        // Kubernetes forgets a namespace that makes no sense.
        None => meta.namespace = None,
    }
    Ok(())
}

/// Gives a new object what it gets from the server. `true` if its name was generated.
pub(super) fn begin(meta: &mut ObjectMeta, now: Timestamp) -> bool {
    meta.creation_timestamp = Some(Time(now));
    meta.uid = Some(chance::uid());
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
    meta.self_link = None;
    // The version is the store's to say.
    meta.resource_version = None;
    drop_empty(meta);
    let is_nameless = meta.name.as_deref().unwrap_or("").is_empty();
    match meta.generate_name.as_deref() {
        Some(base) if is_nameless && !base.is_empty() => {
            meta.name = Some(chance::name(base));
            true
        }
        _ => false,
    }
}

/// Keeps in a changed object what a client may leave out or cannot change. What it must not
/// change is left for validation to refuse.
pub(super) fn carry_over(new: &mut ObjectMeta, old: &ObjectMeta) {
    if new.uid.as_deref().unwrap_or("").is_empty() {
        new.uid.clone_from(&old.uid);
    }
    new.creation_timestamp.clone_from(&old.creation_timestamp);
    // A deletion is asked for by deleting, and cannot be taken back.
    if old.deletion_timestamp.is_some() {
        new.deletion_timestamp.clone_from(&old.deletion_timestamp);
    }
    if new.deletion_grace_period_seconds.is_none() {
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
    new.generation = old.generation;
    new.self_link = None;
    drop_empty(new);
}

/// Takes owners out that are there already, as Kubernetes does; what the client should know of it.
pub(super) fn drop_repeated_owners(meta: &mut ObjectMeta) -> Option<String> {
    let owners = meta.owner_references.as_mut().filter(|owners| owners.len() > 1)?;
    let mut known = HashSet::new();
    let is_new: Vec<bool> = owners
        .iter()
        .map(|owner| {
            let OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } =
                owner;
            known.insert((api_version, kind, name, uid, controller, block_owner_deletion))
        })
        .collect();
    let repeated = owners.iter().zip(&is_new).filter(|(_, is_new)| !**is_new);
    let repeated: Vec<String> =
        repeated.map(|(owner, _)| owner.uid.clone()).take(MAX_WARNINGS).collect();
    if repeated.is_empty() {
        return None;
    }
    let mut is_new = is_new.into_iter();
    owners.retain(|_| is_new.next().expect("there is one for each"));
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in \
         1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate \
         UID(s) observed: {}",
        repeated.join(", ")
    ))
}

/// Leaves out what is empty, as Kubernetes does: otherwise a client that sends `{}` for what it
/// was shown as absent would change an object.
fn drop_empty(meta: &mut ObjectMeta) {
    meta.labels.take_if(|labels| labels.is_empty());
    meta.annotations.take_if(|annotations| annotations.is_empty());
    meta.finalizers.take_if(|finalizers| finalizers.is_empty());
    meta.owner_references.take_if(|owners| owners.is_empty());
    meta.generate_name.take_if(|base| base.is_empty());
}

/// Whether nothing keeps a deleted object any longer.
pub(super) fn is_released(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
}
