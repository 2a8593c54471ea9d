//! The documents hold together, and say of every kind what is served.

use super::*;
use crate::discovery::all_resources;
use crate::kinds;

fn part(name: &str) -> Value {
    let part = V3.parts.get(name).unwrap_or_else(|| panic!("there is no {name}"));
    serde_json::from_slice(&part.bytes).expect("JSON")
}

fn v2() -> Value {
    serde_json::from_slice(&V2.bytes).expect("JSON")
}

#[test]
fn every_verb_of_every_resource_is_told_of() {
    let whole = v2();
    let mut told = Vec::new();
    for (path, item) in whole["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("a path") {
            if let Some(action) = operation["x-kubernetes-action"].as_str() {
                told.push((path.clone(), method.clone(), action.to_owned()));
            }
        }
    }
    for resource in all_resources() {
        for verb in resource.verbs.iter().filter(|verb| **verb != "watch") {
            let method = match *verb {
                "create" => "post",
                "update" => "put",
                "list" => "get",
                "deletecollection" => "delete",
                other => other,
            };
            let action = match (resource.part, *verb) {
                (Some("exec" | "attach"), _) => "connect",
                (_, "create" | "update") => method,
                (_, other) => other,
            };
            let end = match (resource.part, *verb) {
                (Some(part), _) => format!("/{}/{{name}}/{part}", resource.plural),
                (None, "get" | "update" | "patch" | "delete") => {
                    format!("/{}/{{name}}", resource.plural)
                }
                (None, _) => format!("/{}", resource.plural),
            };
            let is_told = told.iter().any(|(path, of_method, known)| {
                path.ends_with(&end) && of_method == method && known == action
            });
            assert!(is_told, "{verb} of {} is not told of", resource.path_name());
        }
    }
    let mut ids: Vec<&str> = whole["paths"]
        .as_object()
        .expect("paths")
        .values()
        .flat_map(|item| item.as_object().expect("a path").values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an operation's name is given twice");
}

#[test]
fn every_kind_has_a_type_that_says_so() {
    for kind in kinds::ALL {
        let names = kind.names();
        let name = match names.group {
            "" => "api/v1".to_owned(),
            group => format!("apis/{group}/v1"),
        };
        let document = part(&name);
        let own = definitions::type_name(names.group, names.version, names.kind);
        let found = &document["components"]["schemas"][&own];
        assert_eq!(
            found["x-kubernetes-group-version-kind"],
            json!([{"group": names.group, "version": names.version, "kind": names.kind}])
        );
        assert_eq!(found["properties"]["metadata"]["default"], json!({}), "{own}");
    }
}

#[test]
fn what_v2_refers_to_is_there() {
    fn check(value: &Value, known: &Map<String, Value>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let name = reference.strip_prefix("#/definitions/").expect("a definition");
                    assert!(known.contains_key(name), "{name} is not there");
                }
                assert!(!members.contains_key("allOf"), "{value}");
                members.values().for_each(|member| check(member, known));
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, known)),
            _ => {}
        }
    }
    let whole = v2();
    check(&whole, whole["definitions"].as_object().expect("definitions"));
}

#[test]
fn facts_stand_where_kubernetes_has_them() {
    let core = part("api/v1");
    let batch = part("apis/batch/v1");
    let of = |document: &Value, name: &str, field: &str| {
        document["components"]["schemas"][name]["properties"][field].clone()
    };
    let containers = of(&core, "io.k8s.api.core.v1.PodSpec", "containers");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(
        containers["items"],
        json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}],
               "default": {}})
    );
    let template = of(&batch, "io.k8s.api.batch.v1.JobSpec", "template");
    assert_eq!(template["default"], json!({}));
    assert!(template["description"].as_str().is_some_and(|text| text.contains("pod")));
    let port = &core["components"]["schemas"]["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(port["format"], "int-or-string");
    assert_eq!(port["oneOf"], json!([{"type": "integer"}, {"type": "string"}]));
    let selector =
        &batch["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
}

#[test]
fn every_fact_is_of_something() {
    let all = definitions::definitions();
    let has = |short: &str, field: &str| {
        all.iter().any(|(name, definition)| {
            name.rsplit('.').next() == Some(short) && definition["properties"][field].is_object()
        })
    };
    let facts = facts::DEFAULTS.iter().map(|(of, field, _)| (of, field));
    let patches = facts::PATCHES.iter().map(|(of, field, ..)| (of, field));
    let objects = facts::OBJECTS.iter().map(|(of, field)| (of, field));
    let lists = facts::BARE_LISTS.iter().map(|(of, field)| (of, field));
    let unions = facts::UNIONS.iter().map(|(of, _, fields)| (of, &fields[0].0));
    let optional = facts::OPTIONAL.iter().map(|(of, field)| (of, field));
    assert!(all.contains_key(facts::NEEDS_METADATA) && all.contains_key(facts::NEEDS_MORE.0));
    let enums = facts::ENUMS.iter().map(|(of, field, _)| (of, field));
    for (of, field) in
        facts.chain(patches).chain(enums).chain(objects).chain(lists).chain(unions).chain(optional)
    {
        assert!(has(of, field), "{of} has no {field}");
    }
}

#[test]
fn the_index_leads_to_every_part_by_its_hash() {
    let index: Value = serde_json::from_slice(&V3.index.bytes).expect("JSON");
    for (name, place) in index["paths"].as_object().expect("paths") {
        let hash = V3.parts[name].hash();
        let expected = format!("/openapi/v3/{name}?hash={hash}");
        assert_eq!(place["serverRelativeURL"], expected.as_str());
        assert_eq!(hash.len(), 128);
    }
}

#[test]
fn the_first_way_to_write_v2_that_a_client_takes_is_taken() {
    let rows = [
        ("*/*", Some(JSON)),
        ("", Some(JSON)),
        (V2_PROTOBUF, Some(V2_PROTOBUF)),
        (V2_PROTOBUF_BEFORE, Some(V2_PROTOBUF)),
        ("text/html,application/json;q=0.5", Some(JSON)),
        ("text/html", None),
    ];
    for (accept, expected) in rows {
        let found = match find("/openapi/v2", Some(accept)) {
            Some(Found::Document(document)) => Some(document.media_type),
            Some(Found::NotAcceptable) => None,
            Some(Found::Part(_)) | None => panic!("v2 is a document"),
        };
        assert_eq!(found, expected, "{accept}");
    }
}
