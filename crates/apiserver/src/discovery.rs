//! What there is to ask for: groups, versions, resources, and who is asked. It knows kinds by
//! their names only.

use serde_json::{Value, json};

use crate::kind::{AnyKind, PartOf};
use crate::kinds;

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
            let groups: Vec<Value> = groups().into_iter().map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => groups().contains(name).then(|| {
            let mut found = group(name);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            found
        }),
        ["api", "v1"] => Some(resources("", "v1")),
        ["apis", name, "v1"] if groups().contains(name) => Some(resources(name, "v1")),
        _ => None,
    }
}

/// Which version of Kubernetes clients may take this server for: the one whose rules it keeps.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.3+stint-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform(),
    })
}

fn platform() -> String {
    // As Go names processors.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{arch}", std::env::consts::OS)
}

/// The groups besides the core, in the order of their first kind.
fn groups() -> Vec<&'static str> {
    let mut groups = Vec::new();
    for kind in kinds::ALL {
        let group = kind.names().group;
        if !group.is_empty() && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The resources of a group and version, in the order of their names.
fn resources(group: &str, version: &str) -> Value {
    let mut found: Vec<Value> = Vec::new();
    for kind in kinds::ALL {
        let names = kind.names();
        if names.group != group || names.version != version {
            continue;
        }
        let mut resource = json!({
            "name": names.plural,
            "singularName": names.singular,
            "namespaced": names.is_namespaced,
            "kind": names.kind,
            "verbs": VERBS,
        });
        if !names.short_names.is_empty() {
            resource["shortNames"] = json!(names.short_names);
        }
        if !names.categories.is_empty() {
            resource["categories"] = json!(names.categories);
        }
        if !kind.manners().deletes_collections {
            let verbs: Vec<&str> =
                VERBS.iter().copied().filter(|verb| *verb != "deletecollection").collect();
            resource["verbs"] = json!(verbs);
        }
        found.push(resource);
        for (part, kind, verbs) in parts(*kind) {
            let mut resource = json!({
                "name": format!("{}/{part}", names.plural),
                "singularName": "",
                "namespaced": names.is_namespaced,
                "kind": kind,
                "verbs": verbs,
            });
            if part == "eviction" {
                resource["group"] = "policy".into();
                resource["version"] = "v1".into();
            }
            found.push(resource);
        }
    }
    if group.is_empty() {
        found.push(json!({
            "name": "bindings",
            "singularName": "binding",
            "namespaced": true,
            "kind": "Binding",
            "verbs": ["create"],
        }));
    }
    found.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let group_version = crate::kind::group_version(group, version);
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": found,
    });
    // The core's list is older than this field.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    list
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
    for group in groups() {
        paths.push(format!("/apis/{group}"));
        paths.push(format!("/apis/{group}/v1"));
    }
    let others = ["/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"];
    paths.extend(others.map(str::to_owned));
    paths
}
