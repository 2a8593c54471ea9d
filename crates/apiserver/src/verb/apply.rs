//! Server-side apply: an object as somebody wants it, laid over the one that there is, or a new
//! one. It knows no HTTP, and no kind by name.

use bytes::BytesMut;
use serde_json::{Value, json};
use stint_api::decode::{Problem, ProblemKind};
use stint_api::field_error::quote;

use super::track::{message_of, resets_of, same_kind_in};
use super::update::Which;
use crate::api::{Api, Current};
use crate::decode::{Decoded, FieldValidation, check_node};
use crate::fields::apply::{Applied, Apply, Conflict, conflict_message};
use crate::fields::check;
use crate::fields::managed::Author;
use crate::kind::AnyKind;
use crate::object::{self, Head, Object};
use crate::patch::limits::{MAX_PATCH_BYTES, check_depth};
use crate::status::Status;

/// The most keys given twice that are told: more than anybody reads.
const MAX_REPEATED: usize = 20;

/// The body of an apply.
#[derive(Debug)]
pub(crate) struct ApplyPatch {
    object: Value,
    /// What it says twice, as the client is told.
    repeated: Vec<String>,
    /// Whether fields of others are taken from them.
    force: bool,
    /// Who applies it.
    manager: String,
    /// Whether whoever applies it may make what is not there.
    pub(super) may_create: Result<(), Status>,
}

impl ApplyPatch {
    /// What a request has to say to mean it.
    pub(crate) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

    /// Reads a body: YAML, or JSON, which is YAML.
    pub(crate) fn read(
        body: &[u8],
        manager: String,
        force: bool,
        may_create: Result<(), Status>,
    ) -> Result<Self, Status> {
        if body.len() > MAX_PATCH_BYTES {
            return Err(Status::too_large(MAX_PATCH_BYTES));
        }
        let refused = |why: String| Status::bad_request(format!("error decoding YAML: {why}"));
        let document = stint_api::decode::read(body).into_iter().next();
        let (root, problems) =
            document.map_or((None, Vec::new()), |document| (document.root, document.problems));
        let (repeated, fatal): (Vec<Problem>, Vec<Problem>) =
            problems.into_iter().partition(|problem| problem.kind == ProblemKind::Duplicate);
        if !fatal.is_empty() {
            let fatal: Vec<String> = fatal.iter().map(Problem::to_string).collect();
            return Err(refused(format!("error converting YAML to JSON: {}", fatal.join(", "))));
        }
        if let Some(root) = &root {
            check_node(root)?;
        }
        let mut object = root.map_or(Value::Null, |root| root.to_json());
        if !repeated.is_empty()
            && let Ok(json) = serde_json::from_slice(body)
        {
            // Of what JSON gives twice, the last counts.
            object = json;
        }
        let of_go = match &object {
            Value::Object(_) => None,
            Value::Null => None,
            Value::Array(_) => Some("array"),
            Value::String(_) => Some("string"),
            Value::Number(_) => Some("number"),
            Value::Bool(_) => Some("bool"),
        };
        if let Some(of_go) = of_go {
            return Err(refused(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {of_go} into \
                 Go value of type map[string]interface {{}}"
            )));
        }
        check_depth(&object).map_err(|error| Status::bad_request(error.to_string()))?;
        let line = |problem: &Problem| {
            let path = problem.path.to_string();
            let key = path.rsplit('.').next().unwrap_or_default();
            let before = &body[..problem.span.start.min(body.len())];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            format!("line {line}: key {} already set in map", quote(key))
        };
        let repeated = repeated.iter().take(MAX_REPEATED).map(line).collect();
        Ok(ApplyPatch { object, repeated, force, manager, may_create })
    }
}

/// An object that an apply came to, and its managedFields.
pub(super) struct Made {
    pub(super) decoded: Decoded<Box<dyn Object>>,
    pub(super) managed: Option<String>,
}

impl Api {
    /// What an apply makes of what is stored, or of nothing.
    pub(super) fn make_applied(
        &self,
        which: Which<'_>,
        current: Option<&Current>,
        patch: &ApplyPatch,
        validation: FieldValidation,
    ) -> Result<Made, Status> {
        let Which { kind, part, .. } = which;
        let names = kind.names();
        check_type(&patch.object, kind)?;
        if patch.object.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        let message = message_of(kind);
        if let Some(why) = check::problems(&patch.object, message) {
            let meta = |name: &str| {
                let value = patch.object.pointer(&format!("/metadata/{name}"));
                value.and_then(Value::as_str).unwrap_or("").to_owned()
            };
            return Err(Status::bad_request(format!(
                "failed to create typed patch object ({}/{}; {}): {why}",
                meta("namespace"),
                meta("name"),
                names.group_version_kind(),
            )));
        }
        let live = match current {
            Some(current) => live_value(kind, current),
            None => json!({"apiVersion": names.api_version(), "kind": names.kind}),
        };
        let (resets, now) = (resets_of(kind, part), self.now().to_string());
        let api_version = names.api_version();
        let author = Author {
            name: &patch.manager,
            api_version: &api_version,
            subresource: part.subresource(),
            resets: &resets,
            now: &now,
        };
        let managed = current.and_then(|current| current.managed.as_deref());
        let apply = Apply {
            live: &live,
            managed: managed.map(super::track::text),
            applied: &patch.object,
            message,
            author,
            force: patch.force,
            in_version: &|object, from, to| in_version(kind, object, from, to),
        };
        let Applied { object, managed } = apply.run().map_err(|conflicts| refused(&conflicts))?;
        let mut decoded =
            kind.decode_value(object.unwrap_or(live), &[], FieldValidation::Ignore)?;
        match validation {
            FieldValidation::Strict if !patch.repeated.is_empty() => {
                let lines = patch.repeated.join("\n  ");
                return Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                     errors:\n  {lines}"
                )));
            }
            FieldValidation::Warn => decoded.warnings.extend_from_slice(&patch.repeated),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        Ok(Made { decoded, managed })
    }
}

/// What is stored, as a client is shown it, without who owns what.
fn live_value(kind: &dyn AnyKind, current: &Current) -> Value {
    let stored = kind.as_stored(&current.entry);
    let stored = object::without_managed(&stored);
    let mut text = BytesMut::new();
    let head = kind.type_head();
    object::put(&mut text, Head::Typed(&head), &stored, Some(current.entry.modified));
    serde_json::from_slice(&text).expect("what was stored can be read")
}

fn check_type(object: &Value, kind: &dyn AnyKind) -> Result<(), Status> {
    let said = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    let (version, name) = (said("apiVersion"), said("kind"));
    let names = kind.names();
    if version == names.api_version() && name == names.kind {
        return Ok(());
    }
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={name}")))
}

fn refused(conflicts: &[Conflict]) -> Status {
    let causes = conflicts
        .iter()
        .map(|conflict| (format!("conflict with {}", conflict.manager), conflict.path.clone()));
    Status::apply_conflict(conflict_message(conflicts), causes)
}

/// An object of a kind as another version has it.
fn in_version(kind: &dyn AnyKind, object: &Value, from: &str, to: &str) -> Option<Value> {
    let (from, to) = (same_kind_in(kind, from)?, same_kind_in(kind, to)?);
    let mut object = object.clone();
    // The type is that of the other version.
    for (field, value) in
        [("apiVersion", from.names().api_version()), ("kind", from.names().kind.into())]
    {
        object.as_object_mut()?.insert(field.to_owned(), value.into());
    }
    let version = object.pointer("/metadata/resourceVersion").cloned();
    let decoded = from.decode_value(object, &[], FieldValidation::Ignore).ok()?;
    let stored = from.to_stored(decoded.object.as_ref(), None).ok()?;
    let own = to.restored(&stored, stint_store::Revision::EMPTY);
    let mut value: Value = serde_json::from_slice(&own).expect("what was stored can be read");
    let members = value.as_object_mut()?;
    members.insert("apiVersion".to_owned(), to.names().api_version().into());
    members.insert("kind".to_owned(), to.names().kind.into());
    if let (Some(version), Some(Value::Object(meta))) = (version, members.get_mut("metadata")) {
        meta.insert("resourceVersion".to_owned(), version);
    }
    Some(value)
}
