//! The little of OpenAPI v3 that kubectl reads before it writes: which resources take
//! `fieldValidation`, so that it leaves validation to the server.

use serde_json::{Map, Value, json};

use crate::kinds;

/// What a path below `/openapi/v3` tells; `None` if there is nothing there.
pub(crate) fn document(path: &str) -> Option<Value> {
    match path.trim_end_matches('/') {
        "/openapi/v3" => Some(index()),
        path => {
            let group_path = path.strip_prefix("/openapi/v3/")?;
            group_paths().contains(&group_path.to_owned()).then(|| group_document(group_path))
        }
    }
}

/// The paths that are told of.
pub(crate) fn paths() -> Vec<String> {
    vec!["/openapi/v3".to_owned()]
}

fn group_paths() -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for kind in kinds::ALL {
        let path = group_path(kind.names().group, kind.names().version);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn index() -> Value {
    let paths: Map<String, Value> = group_paths()
        .into_iter()
        .map(|path| {
            let url = format!("/openapi/v3/{path}");
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn group_document(group_path: &str) -> Value {
    let mut paths = Map::new();
    for kind in kinds::ALL {
        let names = kind.names();
        if self::group_path(names.group, names.version) != group_path {
            continue;
        }
        let within = if names.is_namespaced { "namespaces/{namespace}/" } else { "" };
        let path = format!("/{group_path}/{within}{}/{{name}}", names.plural);
        let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"]
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        let operation = json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind":
                {"group": names.group, "version": names.version, "kind": names.kind},
        });
        paths.insert(path, json!({"patch": operation}));
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": {}},
    })
}
