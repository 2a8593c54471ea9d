//! From text to checked Jobs: decode, default, prepare, validate, advise.
//!
//! ```text
//!   text ─read─▶ documents ─▶ of what kind? ─ Job ──▶ decode ─▶ default ─▶ validate ─▶ advise
//!                                 │  List ──▶ each item in turn
//!                                 └─ other ─▶ named and passed over
//! ```
//!
//! Everything found is turned into a [`Diagnostic`] with its place in the text. There
//! is no IO here: the caller reads the file.

mod kind;
mod place;
#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::Job;

use crate::advice::{self, Advice, advise};
use crate::decode::{self, Document, Node, NodeValue, Problem};
use crate::defaults::job::default_job;
use crate::diagnostic::{CheckedDocument, Diagnostic, DocumentKind, Severity, Span};
use crate::feature_gates::FeatureGates;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;
use crate::prepare;
use crate::remedy::remedy;
use crate::validation::job::validate_job;
use kind::Kind;
use place::{blame, place_of};

/// The namespace a manifest without one is checked for. Any would do: the request
/// decides in the end.
const NAMESPACE: &str = "default";
/// Stands for the uid that the API server will choose.
const UID: &str = "00000000-0000-0000-0000-000000000000";
/// Stands for the five characters that the API server appends to a generateName.
const GENERATED_SUFFIX: &str = "xxxxx";
/// The longest generateName that is used whole: 63 characters less the suffix.
const MAX_GENERATED_PREFIX_BYTES: usize = 58;

/// Checks manifests, file by file.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    gates: FeatureGates,
    allowed: Vec<String>,
    image_was_mentioned: bool,
}

impl Checker {
    /// A checker for an API with these feature gates.
    pub fn new(gates: FeatureGates) -> Self {
        Self { gates, ..Self::default() }
    }

    /// The same checker, silent about the advice of these names ([`advice::NAMES`]).
    #[must_use]
    pub fn allow(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.allowed.extend(names);
        self
    }

    /// Checks every document of a file.
    pub fn check(&mut self, text: &str) -> Vec<CheckedDocument> {
        let documents = decode::read_str(text);
        documents.into_iter().flat_map(|document| self.check_document(document)).collect()
    }

    fn check_document(&mut self, document: Document) -> Vec<CheckedDocument> {
        let found = document.problems.into_iter().map(Diagnostic::from).collect();
        match &document.root {
            Some(root) => self.check_node(root, document.span, found),
            None => vec![CheckedDocument {
                span: document.span,
                kind: DocumentKind::Unreadable,
                name: None,
                diagnostics: found,
            }],
        }
    }

    fn check_node(
        &mut self,
        node: &Node,
        span: Span,
        mut found: Vec<Diagnostic>,
    ) -> Vec<CheckedDocument> {
        let kind = kind::of(node, &mut found);
        let document =
            |kind, diagnostics| CheckedDocument { span, kind, name: kind::name(node), diagnostics };
        match kind {
            Kind::Job => {
                let (job, diagnostics) = self.check_job(node, found);
                vec![document(DocumentKind::Job(job.map(Box::new)), diagnostics)]
            }
            Kind::List => self.check_list(node, found),
            Kind::Other { api_version, kind } => {
                vec![document(DocumentKind::Other { api_version, kind }, found)]
            }
            Kind::Unknown => vec![document(DocumentKind::Unreadable, found)],
        }
    }

    /// The items of a list are checked like documents of their own. What is wrong with
    /// the text of the list is told with its first item.
    fn check_list(&mut self, node: &Node, found: Vec<Diagnostic>) -> Vec<CheckedDocument> {
        let items = match node.get("items").map(|entry| &entry.value.value) {
            Some(NodeValue::List(items)) => &items[..],
            _ => &[],
        };
        let mut found = Some(found);
        let mut checked = Vec::new();
        for item in items {
            checked.extend(self.check_node(item, item.span, found.take().unwrap_or_default()));
        }
        checked
    }

    fn check_job(
        &mut self,
        node: &Node,
        mut found: Vec<Diagnostic>,
    ) -> (Option<Job>, Vec<Diagnostic>) {
        // What is wrong with apiVersion and kind has been said already.
        let decoded = decode::decode::<Job>(&kind::without_wrong_type(node));
        found.extend(decoded.problems.into_iter().map(Diagnostic::from));
        let Some(written) = decoded.value else {
            return (None, in_order(found));
        };
        // A field that could not be read is told once: what its absence leads to is noise.
        let unread: Vec<FieldPath> = found.iter().map(|found| found.path.clone()).collect();
        let is_news = |path: &FieldPath| {
            !unread.iter().any(|unread| {
                !unread.segments().is_empty()
                    && (path.starts_with(unread) || is_required_by(path, unread))
            })
        };
        for error in self.validate(&written).iter().filter(|error| is_news(&error.path)) {
            let diagnostic = from_error(error, node);
            if !found.contains(&diagnostic) {
                found.push(diagnostic);
            }
        }
        let advised = advise(&written, &self.gates);
        let is_valid = found.is_empty();
        for advice in advised.iter().filter(|advice| is_news(&advice.path)) {
            if self.is_worth_saying(advice, is_valid) {
                found.push(from_advice(advice, node));
            }
        }
        (Some(self.with_defaults(written)), in_order(found))
    }

    /// What the API server would find wrong with this Job.
    fn validate(&self, written: &Job) -> Vec<FieldError> {
        let mut job = written.clone();
        let meta = &mut job.metadata;
        meta.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
        meta.uid = Some(UID.to_owned());
        let no_name = meta.name.as_deref().unwrap_or("").is_empty();
        if let (true, Some(prefix)) = (no_name, meta.generate_name.as_deref()) {
            let end = prefix.floor_char_boundary(MAX_GENERATED_PREFIX_BYTES);
            meta.name = Some(format!("{}{GENERATED_SUFFIX}", &prefix[..end]));
        }
        prepare::prepare_for_create(&mut job, &self.gates);
        validate_job(&job)
    }

    /// The Job with its defaults, as far as they do not depend on its uid.
    fn with_defaults(&self, mut job: Job) -> Job {
        default_job(&mut job, &self.gates);
        prepare::drop_disabled_fields(job.spec.get_or_insert_default(), &self.gates);
        job.status = None;
        job
    }

    /// Images are mentioned once, with the first Job that has nothing worse.
    fn is_worth_saying(&mut self, advice: &Advice, is_valid: bool) -> bool {
        if self.allowed.iter().any(|name| name == advice.name) {
            return false;
        }
        if advice.name == advice::IMAGE_IGNORED {
            return is_valid && !std::mem::replace(&mut self.image_was_mentioned, true);
        }
        true
    }
}

/// Whether an error at `path` only says that `unread`, a part of it, is missing: with
/// an unreadable image, "image is required" is no news, nor is "one rule must be given"
/// when the rule could not be read.
fn is_required_by(path: &FieldPath, unread: &FieldPath) -> bool {
    !path.segments().is_empty()
        && unread.starts_with(path)
        && unread.segments().len() == path.segments().len() + 1
}

fn from_error(error: &FieldError, node: &Node) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        name: None,
        path: error.path.clone(),
        message: error.body(),
        span: blame(node, error),
        help: remedy(error),
        related: None,
    }
}

fn from_advice(advice: &Advice, node: &Node) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        name: Some(advice.name),
        path: advice.path.clone(),
        message: advice.message.clone(),
        span: place_of(node, &advice.path),
        help: Some(advice.help.clone()),
        related: None,
    }
}

impl From<Problem> for Diagnostic {
    fn from(problem: Problem) -> Self {
        Self {
            severity: Severity::Error,
            name: None,
            path: problem.path,
            message: problem.message,
            span: problem.span,
            help: problem.help,
            related: problem.related,
        }
    }
}

/// In the order of the text; errors before warnings at the same place.
fn in_order(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
    found
}
