//! The end of a namespace: its content goes, its conditions say what is left, and when nothing
//! is, its finalizer goes too.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, PostParams};
use stint_api::kinds::namespace::{KUBERNETES_FINALIZER, TERMINATING};
use stint_apiserver::Clock;

use super::conditions;
use super::contents::{self, Remaining};
use crate::refusal::Refusal;
use crate::resource;

/// Deletes what is in a namespace that is being deleted, and says so there. If anything is
/// left, it is what must be waited for.
pub(super) async fn empty(
    client: &Client,
    mut namespace: Namespace,
    clock: &Clock,
) -> kube::Result<Option<Remaining>> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    if !is_ours(&namespace) {
        return Ok(None);
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let now = clock.now();
    let remaining = delete_content(client, &name, now).await;
    let status = namespace.status.get_or_insert_default();
    let was_terminating = status.phase.as_deref() == Some(TERMINATING);
    status.phase = Some(TERMINATING.to_owned());
    let list = status.conditions.get_or_insert_default();
    let now = Time(Timestamp::from_second(now.as_second()).expect("a time without its fraction"));
    if conditions::update(list, &remaining, &now) || !was_terminating {
        namespace = match replace(&namespaces, "status", &namespace).await? {
            Some(namespace) => namespace,
            None => return Ok(None),
        };
    }
    if !remaining.is_empty() {
        return Ok(Some(remaining));
    }
    let finalizers = namespace.spec.get_or_insert_default().finalizers.get_or_insert_default();
    finalizers.retain(|finalizer| finalizer != KUBERNETES_FINALIZER);
    replace(&namespaces, "finalize", &namespace).await?;
    Ok(None)
}

/// Whether the namespace waits to be emptied.
fn is_ours(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == KUBERNETES_FINALIZER))
}

/// Pods go first, and only when none is left the rest: they may still use it (KEP-5080,
/// ordered namespace deletion).
async fn delete_content(client: &Client, namespace: &str, now: Timestamp) -> Remaining {
    let mut remaining = Remaining::default();
    let (pods, others): (Vec<_>, Vec<_>) =
        resource::namespaced().partition(|names| names.kind == "Pod");
    for names in pods {
        contents::delete(client, names, namespace, now, &mut remaining).await;
    }
    if remaining.kinds.is_empty() {
        for names in others {
            contents::delete(client, names, namespace, now, &mut remaining).await;
        }
    }
    remaining
}

/// Writes a part of a namespace; `None` if it is gone.
async fn replace(
    namespaces: &Api<Namespace>,
    part: &str,
    namespace: &Namespace,
) -> kube::Result<Option<Namespace>> {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    match namespaces.replace_subresource(part, name, &PostParams::default(), namespace).await {
        Ok(namespace) => Ok(Some(namespace)),
        Err(error) if Refusal::of(&error) == Refusal::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
