//! What a document says it is.

use std::borrow::Cow;

use super::error_at;
use super::findings::Findings;
use crate::decode::suggest::closest;
use crate::decode::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Span};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::names::{BATCH_V1, JOB_KIND, JOB_LIST_KIND};

/// The kinds that matter here.
pub(super) enum Kind {
    /// A Job, or something that was clearly meant to be one.
    Job,
    /// A list of objects, such as `kubectl get -o yaml` prints.
    List,
    /// Any other object.
    Other,
    /// Nothing that says what it is.
    Unknown,
}

/// The two fields that say what an object is, as far as they are there.
pub(super) struct Said<'n> {
    pub(super) api_version: Option<&'n str>,
    pub(super) kind: Option<&'n str>,
}

/// Groups that a Job is never in, and in which nobody else has a kind of that name.
const NEVER_A_JOB_GROUP: &[&str] = &["", "apps", "batch", "extensions"];

/// What the object says it is, or what its list says if it says nothing.
pub(super) fn said<'n>(node: &'n Node, implied: Option<(&'n str, &'n str)>) -> Said<'n> {
    let text = |name: &str| {
        node.get(name).and_then(|entry| entry.value.as_str()).filter(|text| !text.is_empty())
    };
    match (text("apiVersion"), text("kind"), implied) {
        (None, None, Some((api_version, kind))) => {
            Said { api_version: Some(api_version), kind: Some(kind) }
        }
        (api_version, kind, _) => Said { api_version, kind },
    }
}

/// Tells what a document is, and adds what is wrong with its `apiVersion` and `kind`.
pub(super) fn of(node: &Node, said: &Said<'_>, in_list: bool, found: &mut Findings) -> Kind {
    if !matches!(node.value, NodeValue::Map(_)) {
        let message = "a manifest is a mapping with apiVersion, kind and metadata";
        let help = matches!(node.value, NodeValue::List(_)).then(|| {
            "for several objects write one document each, or one of kind: List with items"
                .to_owned()
        });
        found.add(Diagnostic { help, ..error_at(start_of(node), message) });
        return Kind::Unknown;
    }
    match (said.api_version, said.kind) {
        (Some(_), Some(kind @ ("List" | JOB_LIST_KIND))) if in_list => {
            let error =
                FieldError::invalid(&Path::field("kind"), kind, "a list cannot stand in a list");
            let help = "put the items of the inner list into the outer one".to_owned();
            found.add(field_error(error, place(node, "kind"), help));
            Kind::Unknown
        }
        (Some(version), Some(JOB_LIST_KIND))
            if version != BATCH_V1 && is_misplaced_job(version) =>
        {
            found.add(unsupported(node, "apiVersion", version, BATCH_V1));
            Kind::List
        }
        (Some("v1"), Some("List")) | (Some(BATCH_V1), Some(JOB_LIST_KIND)) => Kind::List,
        (Some(BATCH_V1), Some(JOB_KIND)) => Kind::Job,
        (Some(version), Some(kind))
            if (version == BATCH_V1 || is_misplaced_job(version))
                && (kind == JOB_KIND || is_misspelt_job(kind)) =>
        {
            if version != BATCH_V1 {
                found.add(unsupported(node, "apiVersion", version, BATCH_V1));
            }
            if kind != JOB_KIND {
                found.add(unsupported(node, "kind", kind, JOB_KIND));
            }
            Kind::Job
        }
        (Some(version), Some(_)) if version.matches('/').count() > 1 => {
            let path = Path::field("apiVersion");
            let error = FieldError::invalid(&path, version, "unexpected GroupVersion string");
            let help = "write GROUP/VERSION, such as batch/v1".to_owned();
            found.add(field_error(error, place(node, "apiVersion"), help));
            Kind::Unknown
        }
        (Some(_), Some(_)) => Kind::Other,
        (None, Some(JOB_KIND)) => {
            found.add(required(node, "apiVersion", &format!("a Job has apiVersion: {BATCH_V1}")));
            Kind::Job
        }
        (version, kind) => {
            if version.is_none() {
                found.add(required(node, "apiVersion", "say which version of the API this is"));
            }
            if kind.is_none() {
                found.add(required(node, "kind", "say what this is: a Job has kind: Job"));
            }
            Kind::Unknown
        }
    }
}

/// `metadata.name`, or `metadata.generateName` with a `*` for the part to come.
pub(super) fn name(node: &Node) -> Option<String> {
    let metadata = &node.get("metadata")?.value;
    let text = |key: &str| {
        metadata.get(key).and_then(|entry| entry.value.as_str()).filter(|text| !text.is_empty())
    };
    text("name").map(str::to_owned).or_else(|| text("generateName").map(|name| format!("{name}*")))
}

/// The node without an `apiVersion` and `kind` that are not a Job's.
pub(super) fn without_wrong_type(node: &Node) -> Cow<'_, Node> {
    let is_right = |name: &str, right: &str| {
        node.get(name).is_none_or(|entry| entry.value.as_str() == Some(right))
    };
    if is_right("apiVersion", BATCH_V1) && is_right("kind", JOB_KIND) {
        return Cow::Borrowed(node);
    }
    let mut node = node.clone();
    if let NodeValue::Map(entries) = &mut node.value {
        entries.retain(|entry| entry.key != "apiVersion" && entry.key != "kind");
    }
    Cow::Owned(node)
}

/// Others have Jobs too (`batch.volcano.sh/v1alpha1`), so only Kubernetes' own groups
/// are taken for a mistake.
fn is_misplaced_job(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    NEVER_A_JOB_GROUP.contains(&group)
}

fn is_misspelt_job(kind: &str) -> bool {
    const KINDS: [&str; 3] = [JOB_KIND, "CronJob", JOB_LIST_KIND];
    !KINDS.contains(&kind) && closest(kind, KINDS.into_iter()) == Some(JOB_KIND)
}

/// A field that is missing, is no string, or has another name by mistake (`Kind`).
fn required(node: &Node, field: &'static str, help: &str) -> Diagnostic {
    if let Some(entry) = node.get(field)
        && !matches!(entry.value.value, NodeValue::Null | NodeValue::String(_))
    {
        let path = Path::field(field).to_field_path();
        let message = format!("expected a string, found {}", entry.value);
        let help = Some(help.to_owned());
        return Diagnostic { path, help, ..error_at(entry.value.span, message) };
    }
    let NodeValue::Map(entries) = &node.value else {
        unreachable!("only the fields of a mapping are asked for");
    };
    let similar = entries
        .iter()
        .find(|entry| entry.key != field && closest(&entry.key, [field].into_iter()).is_some());
    let error = FieldError::required(&Path::field(field), "");
    match similar {
        Some(entry) => field_error(error, entry.key_span, format!("did you mean \"{field}\"?")),
        None => field_error(error, place(node, field), help.to_owned()),
    }
}

fn unsupported(node: &Node, field: &'static str, text: &str, meant: &str) -> Diagnostic {
    let error = FieldError::not_supported(&Path::field(field), text, &[meant]);
    field_error(error, place(node, field), format!("write {field}: {meant}"))
}

fn field_error(error: FieldError, span: Span, help: String) -> Diagnostic {
    let message = error.body();
    Diagnostic { path: error.path, help: Some(help), ..error_at(span, message) }
}

fn place(node: &Node, field: &str) -> Span {
    node.get(field).map_or_else(|| start_of(node), |entry| entry.value.span)
}

/// A document as a whole is pointed at by its first key, or its first character.
fn start_of(node: &Node) -> Span {
    match &node.value {
        NodeValue::Map(entries) if !entries.is_empty() => entries[0].key_span,
        _ => Span { start: node.span.start, end: node.span.start },
    }
}
