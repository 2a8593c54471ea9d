//! What a controller needs to be allowed to do, and what of it the cluster does not allow.
//!
//! The list is the same that `deploy/` grants: each line is used by a call of `calls`, `feed` or
//! `election`, and nothing else is.

use std::fmt;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};

use crate::config::Config;
use crate::election::ElectionConfig;

/// Verbs on a resource of a group.
struct Right {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verbs: &'static [&'static str],
}

const fn right(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { group, resource, subresource, verbs }
}

/// What is done to Jobs and around them, wherever Jobs are run.
const RIGHTS: &[Right] = &[
    // The feed; looking a Job up, also before a Pod is adopted.
    right("batch", "jobs", "", &["get", "list", "watch"]),
    right("batch", "jobs", "status", &["patch"]),
    // Owners that block: where OwnerReferencesPermissionEnforcement is on, a Pod with such an
    // owner reference can be written only by those who may change the owner's finalizers.
    right("batch", "jobs", "finalizers", &["update"]),
    // The feed; looking a Pod up; the finalizer, adopting and releasing.
    right("", "pods", "", &["get", "list", "watch", "create", "patch", "delete"]),
    // A new Event, and its count.
    right("", "events", "", &["create", "patch"]),
];

/// What is done to the Lease.
const LEASE_RIGHTS: &[Right] = &[right("coordination.k8s.io", "leases", "", &["get", "update"])];

/// A right that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    verb: &'static str,
    resource: String,
    group: &'static str,
    namespace: String,
}

impl fmt::Display for MissingRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &*self.namespace {
            "" => f.write_str(" in all namespaces"),
            namespace => write!(f, " in {namespace}"),
        }
    }
}

/// What the API server was asked about who is asking.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who is asking; empty if the server does not tell.
    pub user: String,
    /// What is not allowed.
    pub missing: Vec<MissingRight>,
}

impl Access {
    /// Asks the API server. Where it does not answer such questions, nothing counts as missing.
    pub async fn ask(
        client: &Client,
        config: &Config,
        election: Option<&ElectionConfig>,
    ) -> Result<Access, kube::Error> {
        let everywhere = [String::new()];
        let namespaces: Vec<&String> = match config.namespaces.is_empty() {
            true => everywhere.iter().collect(),
            false => config.namespaces.iter().collect(),
        };
        let mut missing = Vec::new();
        for namespace in namespaces {
            for right in RIGHTS {
                ask_right(client, right, namespace, "", &mut missing).await?;
            }
        }
        if let Some(ElectionConfig { namespace, name, .. }) = election {
            for right in LEASE_RIGHTS {
                ask_right(client, right, namespace, name, &mut missing).await?;
            }
            let create = right("coordination.k8s.io", "leases", "", &["create"]);
            ask_right(client, &create, namespace, "", &mut missing).await?;
        }
        Ok(Access { user: user(client).await, missing })
    }
}

async fn ask_right(
    client: &Client,
    right: &Right,
    namespace: &str,
    name: &str,
    missing: &mut Vec<MissingRight>,
) -> Result<(), kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    for verb in right.verbs {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            group: Some(right.group.to_owned()),
            resource: Some(right.resource.to_owned()),
            subresource: given(right.subresource),
            verb: Some((*verb).to_owned()),
            namespace: Some(namespace.to_owned()),
            name: given(name),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let is_allowed = match reviews.create(&PostParams::default(), &review).await {
            Ok(answer) => answer.status.is_some_and(|status| status.allowed),
            // It is not served, or not to us: the calls themselves will tell.
            Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => true,
            Err(error) => return Err(error),
        };
        if !is_allowed {
            let resource = match right.subresource {
                "" => right.resource.to_owned(),
                subresource => format!("{}/{subresource}", right.resource),
            };
            let namespace = namespace.to_owned();
            missing.push(MissingRight { verb, resource, group: right.group, namespace });
        }
    }
    Ok(())
}

async fn user(client: &Client) -> String {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = SelfSubjectReview::default();
    let answer = reviews.create(&PostParams::default(), &review).await;
    let info = answer.ok().and_then(|answer| answer.status?.user_info);
    info.and_then(|info| info.username).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named_as_rbac_names_it() {
        let missing = |resource: &str, group, namespace: &str| MissingRight {
            verb: "patch",
            resource: resource.to_owned(),
            group,
            namespace: namespace.to_owned(),
        };
        let rows = [
            (missing("jobs/status", "batch", ""), "patch jobs/status.batch in all namespaces"),
            (missing("pods", "", "team"), "patch pods in team"),
        ];
        for (right, text) in rows {
            assert_eq!(right.to_string(), text);
        }
    }
}
