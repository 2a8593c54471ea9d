//! The owners that a Job names. One whose owners are all gone is removed by the cluster as soon as
//! it is there, and the run would wait for it in vain.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::calls::{CallError, Calls};

/// The field that names them.
pub(crate) const FIELD: &str = "metadata.ownerReferences";

/// The first owner of a Job in this namespace, if none of them is there. Those of kinds that a
/// cluster here does not have cannot be missed.
pub(crate) async fn missed<'a>(
    calls: &Calls,
    job: &'a Job,
    namespace: &str,
) -> Result<Option<&'a OwnerReference>, CallError> {
    let owners = job.metadata.owner_references.as_deref().unwrap_or_default();
    for owner in owners {
        let Some(folder) = folder(owner, namespace) else { return Ok(None) };
        let found = calls.get(&format!("{folder}/{}", owner.name)).await?;
        if found.is_some_and(|found| found["metadata"]["uid"] == owner.uid) {
            return Ok(None);
        }
    }
    Ok(owners.first())
}

/// Where an owner would be, of the kinds that objects of a manifest may have.
fn folder(owner: &OwnerReference, namespace: &str) -> Option<String> {
    let (group, plural) = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ConfigMap") => ("api/v1", "configmaps"),
        ("v1", "Pod") => ("api/v1", "pods"),
        ("v1", "Secret") => ("api/v1", "secrets"),
        ("v1", "Service") => ("api/v1", "services"),
        ("v1", "ServiceAccount") => ("api/v1", "serviceaccounts"),
        ("batch/v1", "Job") => ("apis/batch/v1", "jobs"),
        _ => return None,
    };
    Some(format!("/{group}/namespaces/{namespace}/{plural}"))
}
