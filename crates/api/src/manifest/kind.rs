//! What a document says it is.

use std::borrow::Cow;

use crate::decode::suggest::closest;
use crate::decode::{Node, NodeValue};
use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::field_error::FieldError;
use crate::field_path::{FieldPath, Path};
use crate::names::{BATCH_V1, JOB_KIND};

/// The kinds that matter here.
pub(super) enum Kind {
    /// A Job, or something that was clearly meant to be one.
    Job,
    /// A list of objects, such as `kubectl get -o yaml` prints.
    List,
    /// Any other object.
    Other {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// Nothing that says what it is.
    Unknown,
}

/// Groups that a Job is never in, and in which nobody else has a kind of that name.
const NEVER_A_JOB_GROUP: &[&str] = &["", "apps", "batch", "extensions"];

/// Tells what a document is, and adds what is wrong with its `apiVersion` and `kind`.
pub(super) fn of(node: &Node, found: &mut Vec<Diagnostic>) -> Kind {
    if !matches!(node.value, NodeValue::Map(_)) {
        found.push(Diagnostic {
            severity: Severity::Error,
            name: None,
            path: FieldPath::root(),
            message: "a manifest is a mapping with apiVersion, kind and metadata".to_owned(),
            span: first_line_of(node),
            help: None,
            related: None,
        });
        return Kind::Unknown;
    }
    let (api_version, kind) = (member(node, "apiVersion"), member(node, "kind"));
    match (api_version.text, kind.text) {
        (Some(api_version), Some(kind)) if is_list(api_version, kind) => Kind::List,
        (Some(BATCH_V1), Some(JOB_KIND)) => Kind::Job,
        (Some(version), Some(JOB_KIND)) if is_misplaced_job(version) => {
            found.push(api_version.unsupported(version, BATCH_V1));
            Kind::Job
        }
        (Some(BATCH_V1), Some(text)) if is_misspelt_job(text) => {
            found.push(kind.unsupported(text, JOB_KIND));
            Kind::Job
        }
        (Some(api_version), Some(kind)) => {
            Kind::Other { api_version: api_version.to_owned(), kind: kind.to_owned() }
        }
        (None, Some(JOB_KIND)) => {
            found.push(api_version.required(&format!("a Job has apiVersion: {BATCH_V1}")));
            Kind::Job
        }
        (None, _) if kind.text.is_some() => {
            found.push(api_version.required("say which version of the API this is"));
            Kind::Unknown
        }
        (version, _) => {
            if version.is_none() {
                found.push(api_version.required("say which version of the API this is"));
            }
            found.push(kind.required("say what this is: a Job has kind: Job"));
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

fn is_list(api_version: &str, kind: &str) -> bool {
    matches!((api_version, kind), ("v1", "List") | (BATCH_V1, "JobList"))
}

/// Others have Jobs too (`batch.volcano.sh/v1alpha1`), so only Kubernetes' own groups
/// are taken for a mistake.
fn is_misplaced_job(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    NEVER_A_JOB_GROUP.contains(&group)
}

fn is_misspelt_job(kind: &str) -> bool {
    const KINDS: [&str; 3] = ["Job", "CronJob", "JobList"];
    !KINDS.contains(&kind) && closest(kind, KINDS.into_iter()) == Some(JOB_KIND)
}

/// One of the two fields that say what an object is.
struct Member<'a> {
    name: &'static str,
    text: Option<&'a str>,
    span: Span,
}

fn member<'a>(node: &'a Node, name: &'static str) -> Member<'a> {
    let entry = node.get(name);
    let text = entry.and_then(|entry| entry.value.as_str()).filter(|text| !text.is_empty());
    let span = entry.map_or_else(|| first_line_of(node), |entry| entry.value.span);
    Member { name, text, span }
}

impl Member<'_> {
    fn required(&self, help: &str) -> Diagnostic {
        self.error(FieldError::required(&Path::field(self.name), ""), help.to_owned())
    }

    fn unsupported(&self, text: &str, meant: &str) -> Diagnostic {
        let error = FieldError::not_supported(&Path::field(self.name), text, &[meant]);
        self.error(error, format!("write {}: {meant}", self.name))
    }

    fn error(&self, error: FieldError, help: String) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            name: None,
            message: error.body(),
            path: error.path,
            span: self.span,
            help: Some(help),
            related: None,
        }
    }
}

/// A document as a whole is pointed at by its first key, or its first character.
fn first_line_of(node: &Node) -> Span {
    match &node.value {
        NodeValue::Map(entries) if !entries.is_empty() => entries[0].key_span,
        _ => Span { start: node.span.start, end: node.span.start },
    }
}
