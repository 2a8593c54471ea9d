//! Everything that discovery has to tell in one document, for clients that ask for it so
//! (KEP-3352). It knows what is served, and nothing of how.

use serde_json::{Value, json};

use super::{GROUP_VERSION, GROUPS, ServedResource, resources};
use crate::request::media::{AnswerFormat, MediaRange};

/// Whether a client wants the one document, and how it is written: the first of its media types
/// that can be made decides. There was a v2beta1, which kube-apiserver makes no more.
pub(crate) fn wants_aggregated(accept: Option<&str>) -> Option<AnswerFormat> {
    for range in MediaRange::read_all(accept?) {
        let Some(format) = range.format() else { continue };
        match (range.parameter("as"), range.parameter("g"), range.parameter("v")) {
            (None, ..) => return None,
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => {
                return Some(format);
            }
            _ => {}
        }
    }
    None
}

/// The document of `/api` or of `/apis`.
pub(crate) fn aggregated(path: &str) -> Option<Value> {
    let items: Vec<Value> = match path {
        "api" => vec![group("")],
        "apis" => GROUPS.into_iter().map(group).collect(),
        _ => return None,
    };
    Some(json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }))
}

fn group(name: &str) -> Value {
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    let served = resources(name);
    let wholes = served.iter().filter(|resource| resource.part.is_none());
    let found: Vec<Value> = wholes.map(|whole| whole_entry(whole, &served)).collect();
    let version = json!({"version": GROUP_VERSION, "resources": found, "freshness": "Current"});
    json!({"metadata": metadata, "versions": [version]})
}

fn whole_entry(resource: &ServedResource, served: &[ServedResource]) -> Value {
    let scope = if resource.is_namespaced { "Namespaced" } else { "Cluster" };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(resource),
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let parts: Vec<Value> = served
        .iter()
        .filter(|part| part.plural == resource.plural)
        .filter_map(|part| {
            let name = part.part?;
            let kind = response_kind(part);
            Some(json!({"subresource": name, "responseKind": kind, "verbs": part.verbs}))
        })
        .collect();
    if !parts.is_empty() {
        entry["subresources"] = parts.into();
    }
    entry
}

/// An empty group and version are those of the document around it.
fn response_kind(resource: &ServedResource) -> Value {
    let (group, version) = resource.kind_from.unwrap_or_default();
    json!({"group": group, "version": version, "kind": resource.kind})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_media_type_that_can_be_made_decides() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let json = Some(AnswerFormat::Json);
        let rows = [
            (v2.to_owned(), json),
            (format!("{v2};profile=nopeer,{v2},{beta},application/json"), json),
            (format!("{beta},{v2}"), json),
            (format!("application/json,{v2}"), None),
            (format!("{beta},application/json"), None),
            (format!("application/vnd.kubernetes.protobuf,{v2}"), json),
            (v2.replace("json", "yaml"), Some(AnswerFormat::Yaml)),
            (String::new(), None),
            ("*/*".to_owned(), None),
        ];
        for (accept, expected) in rows {
            assert_eq!(wants_aggregated(Some(&accept)), expected, "{accept}");
        }
        assert_eq!(wants_aggregated(None), None);
    }
}
