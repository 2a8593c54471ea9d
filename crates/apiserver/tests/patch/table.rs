//! The table of merge keys against the types of k8s-openapi: every field it names has to
//! exist, and hold what the table says.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, Pod, PodTemplate, ResourceQuota,
    Secret, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as NewEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use stint_apiserver::patch::schema::{Field, KINDS, Type};

#[test]
fn every_field_of_the_table_is_one_of_its_type() {
    for (api_version, of) in KINDS {
        let filled = filled(of);
        let typed = match (*api_version, of.name) {
            ("v1", "ConfigMap") => through::<ConfigMap>(&filled),
            ("v1", "Endpoints") => through::<Endpoints>(&filled),
            ("v1", "Event") => through::<Event>(&filled),
            ("v1", "LimitRange") => through::<LimitRange>(&filled),
            ("v1", "Namespace") => through::<Namespace>(&filled),
            ("v1", "Node") => through::<Node>(&filled),
            ("v1", "Pod") => through::<Pod>(&filled),
            ("v1", "PodTemplate") => through::<PodTemplate>(&filled),
            ("v1", "ResourceQuota") => through::<ResourceQuota>(&filled),
            ("v1", "Secret") => through::<Secret>(&filled),
            ("v1", "Service") => through::<Service>(&filled),
            ("v1", "ServiceAccount") => through::<ServiceAccount>(&filled),
            ("batch/v1", "Job") => through::<Job>(&filled),
            ("coordination.k8s.io/v1", "Lease") => through::<Lease>(&filled),
            ("discovery.k8s.io/v1", "EndpointSlice") => through::<EndpointSlice>(&filled),
            ("events.k8s.io/v1", "Event") => through::<NewEvent>(&filled),
            unknown => panic!("no type to check {unknown:?} with"),
        };
        missing(&filled, &typed, of.name);
    }
}

#[test]
fn no_field_and_no_kind_is_there_twice() {
    let mut open: Vec<&Type> = KINDS.iter().map(|(_, of)| *of).collect();
    while let Some(of) = open.pop() {
        for (position, (name, field)) in of.fields.iter().enumerate() {
            let twice = of.fields[..position].iter().any(|(before, _)| before == name);
            assert!(!twice, "{}.{name}", of.name);
            match field {
                Field::Object(of) | Field::Keyed(_, of) => open.push(of),
                Field::Set => {}
            }
        }
    }
    for (position, (api_version, of)) in KINDS.iter().enumerate() {
        let same = |(group, other): &(&str, &Type)| group == api_version && other.name == of.name;
        assert!(!KINDS[..position].iter().any(same), "{api_version} {}", of.name);
    }
}

/// An object with every field of the table, one item in every list.
fn filled(of: &Type) -> Value {
    let fields = of.fields.iter().map(|(name, field)| {
        let value = match field {
            Field::Object(of) => filled(of),
            Field::Set => json!(["x"]),
            Field::Keyed(key, of) => {
                let mut item = filled(of);
                // The only keys that are numbers; a text in their place is not decoded.
                let number = ["port", "containerPort"].contains(key);
                item[*key] = if number { json!(1) } else { json!("x") };
                if *name == "conditions" {
                    // Every condition has one, and a Service's cannot do without.
                    item["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
                }
                json!([item])
            }
        };
        ((*name).to_owned(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// What is left of an object once it was decoded as its type, which ignores unknown fields.
fn through<T: DeserializeOwned + Serialize>(value: &Value) -> Value {
    let typed: T = serde_json::from_value(value.clone()).expect("it is decoded");
    serde_json::to_value(typed).expect("it is encoded")
}

fn missing(filled: &Value, typed: &Value, at: &str) {
    match filled {
        Value::Object(fields) => {
            for (name, field) in fields {
                missing(field, &typed[name], &format!("{at}.{name}"));
            }
        }
        Value::Array(items) => missing(&items[0], &typed[0], at),
        scalar => assert_eq!(scalar, typed, "no such field: {at}"),
    }
}
