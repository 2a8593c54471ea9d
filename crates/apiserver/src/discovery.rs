//! What there is to ask for: groups, versions, resources, and who is asked. It knows kinds by
//! their names only.

mod aggregated;
mod resource;

pub(crate) use aggregated::{aggregated, wants_aggregated};
pub(crate) use resource::{ServedResource, all_resources, resources};

use serde_json::{Value, json};

use crate::kind::{AnyKind, PartOf};

/// What a discovery path tells; `None` if there is nothing there.
pub(crate) fn discover(path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["api"] => Some(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => {
            let groups: Vec<Value> = GROUPS.iter().map(|name| group(name)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => GROUPS.contains(name).then(|| {
            let mut found = group(name);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            found
        }),
        ["api", "v1"] => Some(resource_list("")),
        ["apis", name, "v1"] if GROUPS.contains(name) => Some(resource_list(name)),
        _ => None,
    }
}

/// Which version of Kubernetes clients may take this server for: the one whose rules it keeps.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform(),
    })
}

/// The version as one word.
pub(crate) const VERSION: &str = concat!("v1.36.3+stint-", env!("CARGO_PKG_VERSION"));

fn platform() -> String {
    // As Go names processors.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{arch}", std::env::consts::OS)
}

/// The groups besides the core, in the order of kube-apiserver.
pub(crate) const GROUPS: [&str; 6] = [
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// The one version that every group has.
pub(crate) const GROUP_VERSION: &str = "v1";

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

/// The resources of a group, in the order of their names.
fn resource_list(group: &str) -> Value {
    let found: Vec<Value> = resources(group).iter().map(resource_entry).collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": crate::kind::group_version(group, GROUP_VERSION),
        "resources": found,
    });
    // The core's list is older than this field.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    list
}

fn resource_entry(resource: &ServedResource) -> Value {
    let mut entry = json!({
        "name": resource.path_name(),
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if let Some((group, version)) = resource.kind_from {
        entry["group"] = group.into();
        entry["version"] = version.into();
    }
    entry
}

/// The subresources of a kind.
pub(crate) fn parts(kind: &dyn AnyKind) -> Vec<PartOf> {
    let status: PartOf = ("status", kind.names().kind, &["get", "patch", "update"]);
    let mut parts = kind.parts().to_vec();
    if kind.manners().has_status {
        parts.push(status);
    }
    parts
}

/// What there is besides resources.
pub(crate) fn paths() -> Vec<String> {
    let mut paths: Vec<String> = ["/api", "/api/v1", "/apis"].map(str::to_owned).to_vec();
    for group in GROUPS {
        paths.push(format!("/apis/{group}"));
        paths.push(format!("/apis/{group}/v1"));
    }
    let others = ["/healthz", "/livez", "/metrics"].map(str::to_owned);
    paths.extend(others);
    paths.extend(crate::openapi::paths());
    paths.extend(["/readyz", "/version"].map(str::to_owned));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_kind_is_in_a_group_that_is_told_of() {
        for kind in kinds::ALL {
            let names = kind.names();
            let is_known = names.group.is_empty() || GROUPS.contains(&names.group);
            assert!(is_known, "{names:?} is in no group");
            assert_eq!(names.version, GROUP_VERSION, "{names:?}");
        }
        for group in GROUPS {
            assert!(!resources(group).is_empty(), "{group} is empty");
        }
    }
}
