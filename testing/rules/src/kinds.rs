//! The rules of kinds beside Jobs and Pods, row by row: `rules/kinds/*.yaml`.
//!
//! `object` is merged into the base of the file's kind (`rules/kinds_base.yaml`) and
//! created. Or `old` is created so, `deleted` if the row says it is being deleted, and
//! changed: `new` is merged into it and sent, `status` is sent as its status, with `spec`
//! merged into its spec, or `finalize` is merged into it and sent to that subresource.
//! Every row goes the way a request goes: decode, prepare, validate.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, ResourceQuota, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stint_api::field_error::FieldError;
use stint_api::kinds;

use crate::case::Played;
use crate::exchange::Exchange;
use crate::rows;

/// The keys that a row may have.
pub const KEYS: [&str; 8] =
    ["object", "old", "deleted", "new", "status", "spec", "finalize", "stored"];

/// Stands in requests for the version of the stored object: Leases need it.
const VERSION: &str = "VERSION";

/// What becomes of an object of a kind, as JSON, and what is wrong with it.
type Answer = (Value, Vec<FieldError>);
type Create = fn(&Value) -> Answer;
type Update = fn(&Value, &Value) -> Answer;

/// A kind: where it is, and what is done to it.
struct Kind {
    /// The name of its file.
    file: &'static str,
    /// Where its objects are; `{}` stands for the namespace.
    collection: &'static str,
    create: Create,
    update: Update,
    update_status: Option<Update>,
    finalize: Option<Update>,
}

/// The functions of a kind's module, on JSON.
macro_rules! kind {
    ($module:ident, $type:ty, $collection:literal) => {
        Kind {
            file: stringify!($module),
            collection: $collection,
            create: |body| {
                let mut object: $type = typed(body);
                kinds::$module::prepare_for_create(&mut object);
                let mut again = object.clone();
                kinds::$module::prepare_for_create(&mut again);
                assert_eq!(again, object, "preparing twice is not once");
                (json(&object), kinds::$module::validate_create(&object))
            },
            update: |body, old| {
                let (mut new, old): ($type, $type) = (typed(body), typed(old));
                kinds::$module::prepare_for_update(&mut new, &old);
                (json(&new), kinds::$module::validate_update(&new, &old))
            },
            update_status: None,
            finalize: None,
        }
    };
    ($module:ident, $type:ty, $collection:literal, status) => {
        Kind {
            update_status: Some(|body, old| {
                let (mut new, old): ($type, $type) = (typed(body), typed(old));
                kinds::$module::prepare_for_status_update(&mut new, &old);
                (json(&new), kinds::$module::validate_status_update(&new, &old))
            }),
            ..kind!($module, $type, $collection)
        }
    };
}

/// The kind of a file of rows.
fn kind(file: &str) -> Kind {
    match file {
        "config_map.yaml" => kind!(config_map, ConfigMap, "/api/v1/namespaces/{}/configmaps"),
        "secret.yaml" => kind!(secret, Secret, "/api/v1/namespaces/{}/secrets"),
        "service_account.yaml" => {
            kind!(service_account, ServiceAccount, "/api/v1/namespaces/{}/serviceaccounts")
        }
        "endpoints.yaml" => kind!(endpoints, Endpoints, "/api/v1/namespaces/{}/endpoints"),
        "endpoint_slice.yaml" => {
            let collection = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices";
            Kind { collection, ..kind!(endpoint_slice, EndpointSlice, "") }
        }
        "lease.yaml" => {
            kind!(lease, Lease, "/apis/coordination.k8s.io/v1/namespaces/{}/leases")
        }
        "limit_range.yaml" => {
            kind!(limit_range, LimitRange, "/api/v1/namespaces/{}/limitranges")
        }
        "resource_quota.yaml" => {
            let collection = "/api/v1/namespaces/{}/resourcequotas";
            Kind { collection, ..kind!(resource_quota, ResourceQuota, "", status) }
        }
        "node.yaml" => kind!(node, Node, "/api/v1/nodes", status),
        "namespace.yaml" => namespaces(),
        "event.yaml" => kind!(event, Event, "/api/v1/namespaces/{}/events"),
        "events_v1.yaml" => events_of_the_newer_api(),
        "service.yaml" => services(),
        _ => panic!("{file}: no such kind"),
    }
}

/// Namespaces have finalizers of their own.
fn namespaces() -> Kind {
    let finalize: Update = |body, old| {
        let (mut new, old): (Namespace, Namespace) = (typed(body), typed(old));
        kinds::namespace::prepare_for_finalize(&mut new, &old);
        (json(&new), kinds::namespace::validate_finalize(&new, &old))
    };
    let kind = kind!(namespace, Namespace, "/api/v1/namespaces", status);
    Kind { finalize: Some(finalize), ..kind }
}

/// Events of the newer API are stored as Events of the older one.
fn events_of_the_newer_api() -> Kind {
    Kind {
        file: "events_v1",
        collection: "/apis/events.k8s.io/v1/namespaces/{}/events",
        create: |body| {
            let mut event = kinds::event::from_events_v1(typed(body));
            kinds::events_v1::prepare_for_create(&mut event);
            let errors = kinds::events_v1::validate_create(&event);
            (json(&kinds::event::to_events_v1(event)), errors)
        },
        update: |body, old| {
            let mut new = kinds::event::from_events_v1(typed(body));
            let old = kinds::event::from_events_v1(typed(old));
            kinds::events_v1::prepare_for_update(&mut new, &old);
            let errors = kinds::events_v1::validate_update(&new, &old);
            (json(&kinds::event::to_events_v1(new)), errors)
        },
        update_status: None,
        finalize: None,
    }
}

/// Services need an address.
fn services() -> Kind {
    Kind {
        file: "service",
        collection: "/api/v1/namespaces/{}/services",
        create: |body| {
            let mut service: Service = typed(body);
            kinds::service::prepare_for_create(&mut service, &mut address);
            let mut again = service.clone();
            kinds::service::prepare_for_create(&mut again, &mut || panic!("it has an address"));
            assert_eq!(again, service, "preparing twice is not once");
            (json(&service), kinds::service::validate_create(&service))
        },
        update: |body, old| {
            let (mut new, old): (Service, Service) = (typed(body), typed(old));
            kinds::service::prepare_for_update(&mut new, &old, &mut address);
            (json(&new), kinds::service::validate_update(&new, &old))
        },
        update_status: Some(|body, old| {
            let (mut new, old): (Service, Service) = (typed(body), typed(old));
            kinds::service::prepare_for_status_update(&mut new, &old);
            (json(&new), kinds::service::validate_status_update(&new, &old))
        }),
        finalize: None,
    }
}

/// The address that Services get.
fn address() -> Option<String> {
    Some("10.0.0.99".to_owned())
}

/// Plays a row of a file.
pub fn play(file: &str, row: &Value) -> Played {
    let (exchange, (stored, errors)) = ask(&kind(file), row);
    Played { exchange, stored, errors: errors.iter().map(ToString::to_string).collect() }
}

fn ask(kind: &Kind, row: &Value) -> (Exchange, Answer) {
    let object = |patch: &Value| {
        let mut object = rows::read("kinds_base.yaml")[kind.file].clone();
        rows::patch(&mut object, patch);
        object
    };
    if let Some(patch) = row.get("object") {
        let body = object(patch);
        let request = json!({"method": "POST", "path": kind.path(&body), "body": body});
        return (Exchange::only(request), (kind.create)(&body));
    }
    let body = object(&row["old"]);
    let path = format!("{}/{}", kind.path(&body), body["metadata"]["name"].as_str().unwrap());
    let mut setup = vec![json!({"method": "POST", "path": kind.path(&body), "body": body})];
    let (mut before, errors) = (kind.create)(&body);
    assert!(errors.is_empty(), "{}: what is stored is invalid: {errors:?}", row["name"]);
    before["metadata"]["resourceVersion"] = json!(VERSION);
    before["metadata"]["creationTimestamp"] = json!("2026-01-02T03:04:05Z");
    if row.get("deleted").is_some() {
        setup.push(json!({"method": "DELETE", "path": path}));
        before["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        before["status"]["phase"] = json!("Terminating");
    }
    let mut body = before.clone();
    let (update, subresource) = if let Some(patch) = row.get("new") {
        rows::patch(&mut body, patch);
        (kind.update, "")
    } else if let Some(patch) = row.get("finalize") {
        rows::patch(&mut body, patch);
        (kind.finalize.expect("the kind has finalize"), "/finalize")
    } else {
        body["status"] = row["status"].clone();
        rows::patch(&mut body["spec"], &row["spec"]);
        (kind.update_status.expect("the kind has a status"), "/status")
    };
    let path = format!("{path}{subresource}");
    let request = json!({"method": "PUT", "path": path, "body": body});
    let exchange = Exchange { setup, before: Some(before.clone()), request };
    (exchange, update(&body, &before))
}

impl Kind {
    /// Where the object's collection is.
    fn path(&self, object: &Value) -> String {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.collection.replace("{}", namespace)
    }
}

fn typed<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("the rows are well typed")
}

fn json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("an object is JSON")
}
