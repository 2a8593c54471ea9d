//! From text to checked Jobs: decode, default, prepare, validate, advise.
//!
//! ```text
//!   text ─▶ documents ─▶ of what kind? ─ Job ──▶ decode ─▶ default ─▶ validate ─▶ advise
//!                            │  List ──▶ each item in turn
//!                            └─ other ─▶ named and passed over
//! ```
//!
//! Everything found is turned into a [`Diagnostic`] with its place in the text. There
//! is no IO here: the caller reads the file.

mod findings;
mod kind;
mod list;
mod place;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use k8s_openapi::api::batch::v1::Job;

use crate::advice::{self, Advice, advise};
use crate::decode::{self, Document, Node, Problem, ProblemKind};
use crate::defaults::job::default_job;
use crate::diagnostic::{CheckedDocument, Diagnostic, DocumentKind, Severity, Span};
use crate::feature_gates::FeatureGates;
use crate::field_error::FieldError;
use crate::prepare;
use crate::validation::job::validate_job;
use findings::Findings;
use kind::Kind;

/// The namespace a manifest without one is checked for. Any would do: the request
/// decides in the end.
const NAMESPACE: &str = "default";
/// Stands for the uid that the API server will choose.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Findings that are kept of one file, in all. A text of 64 MiB can hold millions of
/// mistakes; at half a kilobyte each, this many take 50 MB.
const MAX_FINDINGS_PER_FILE: usize = 100_000;

/// Checks manifests, file by file.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    gates: FeatureGates,
    allowed: Vec<String>,
    keeps_jobs: bool,
    image_was_mentioned: bool,
    /// Namespaces and names of the Jobs of this file so far.
    names: HashSet<(String, String)>,
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

    /// The same checker, which hands out each Job with its defaults as well.
    #[must_use]
    pub fn keep_jobs(mut self) -> Self {
        self.keeps_jobs = true;
        self
    }

    /// Checks every document of a file and hands each out before the next is read, so
    /// that a file of many documents takes no more memory than its largest.
    pub fn check(&mut self, text: &str, mut hand_out: impl FnMut(CheckedDocument)) {
        let mut room = MAX_FINDINGS_PER_FILE;
        self.names.clear();
        for document in decode::documents(text) {
            self.check_document(document, &mut |mut checked: CheckedDocument| {
                findings::fit(&mut checked.diagnostics, room);
                room = room.saturating_sub(checked.diagnostics.len());
                hand_out(checked);
            });
        }
    }

    fn check_document(&mut self, document: Document, hand_out: &mut impl FnMut(CheckedDocument)) {
        match &document.root {
            Some(root) => {
                self.check_node(root, document.span, Within::File, document.problems, hand_out);
            }
            None => hand_out(CheckedDocument {
                span: document.span,
                kind: DocumentKind::Unreadable,
                api_version: None,
                kind_name: None,
                name: None,
                diagnostics: Findings::from_problems(document.problems).finish(),
            }),
        }
    }

    /// Checks one object.
    fn check_node(
        &mut self,
        node: &Node,
        span: Span,
        within: Within,
        problems: Vec<Problem>,
        hand_out: &mut impl FnMut(CheckedDocument),
    ) {
        let implied = match within {
            Within::File => None,
            Within::List(implied) => implied,
        };
        let said = kind::said(node, implied);
        let mut found = Findings::default();
        let kind = kind::of(node, &said, within != Within::File, &mut found);
        // What is passed over is not judged: a text that cannot be read is another matter.
        let is_ours = !matches!(kind, Kind::Other);
        let is_told = |problem: &Problem| is_ours || problem.kind != ProblemKind::Duplicate;
        found.add_problems(problems.into_iter().filter(is_told));
        let kind = match kind {
            Kind::Job => DocumentKind::Job(self.check_job(node, &mut found).map(Box::new)),
            Kind::List => return self.check_list(node, span, &said, found, hand_out),
            Kind::Other => DocumentKind::Other,
            Kind::Unknown => DocumentKind::Unreadable,
        };
        hand_out(CheckedDocument {
            span,
            kind,
            api_version: said.api_version.map(str::to_owned),
            kind_name: said.kind.map(str::to_owned),
            name: kind::name(node),
            diagnostics: found.finish(),
        });
    }

    /// The items of a list are checked like documents of their own; the list itself is
    /// handed out only if something is wrong with it.
    fn check_list(
        &mut self,
        node: &Node,
        span: Span,
        said: &kind::Said<'_>,
        mut found: Findings,
        hand_out: &mut impl FnMut(CheckedDocument),
    ) {
        let items = list::items(node, &mut found);
        if !found.is_empty() {
            hand_out(CheckedDocument {
                span,
                kind: DocumentKind::Unreadable,
                api_version: said.api_version.map(str::to_owned),
                kind_name: said.kind.map(str::to_owned),
                name: None,
                diagnostics: found.finish(),
            });
        }
        for item in items {
            let within = Within::List(list::implied_kind(said));
            self.check_node(item, item.span, within, Vec::new(), hand_out);
        }
    }

    fn check_job(&mut self, node: &Node, found: &mut Findings) -> Option<Job> {
        // What is wrong with apiVersion and kind has been said already.
        let decoded = decode::decode::<Job>(&kind::without_wrong_type(node));
        found.add_problems(decoded.problems);
        let written = decoded.value?;
        let errors = self.validate(&written);
        // A name that is generated from something wrong is wrong as well.
        let is_at = |error: &FieldError, path: &str| error.path.to_string() == path;
        let has_bad_prefix = errors.iter().any(|error| is_at(error, "metadata.generateName"));
        for error in &errors {
            if !(has_bad_prefix && is_at(error, "metadata.name")) {
                found.add_error(error, node);
            }
        }
        let is_valid = found.is_empty();
        let name_taken = self.is_name_taken(&written).then(advice::name_taken);
        for advice in advise(&written, &self.gates).into_iter().chain(name_taken) {
            if self.is_worth_saying(&advice, is_valid) {
                found.add_advice(&advice, node);
            }
        }
        self.keeps_jobs.then(|| self.with_defaults(written))
    }

    /// What the API server would find wrong with this Job.
    fn validate(&self, written: &Job) -> Vec<FieldError> {
        let mut job = written.clone();
        let meta = &mut job.metadata;
        if meta.namespace.as_deref().unwrap_or("").is_empty() {
            meta.namespace = Some(NAMESPACE.to_owned());
        }
        meta.uid = Some(UID.to_owned());
        if let Some(name) = advice::generated_name(meta) {
            meta.name = Some(name);
        }
        prepare::prepare_for_create(&mut job, &self.gates);
        validate_job(&job)
    }

    /// The Job with its defaults, as far as they do not depend on its uid.
    fn with_defaults(&self, mut job: Job) -> Job {
        default_job(&mut job, &self.gates);
        prepare::reset_server_fields(&mut job.metadata);
        prepare::drop_disabled_fields(job.spec.get_or_insert_default(), &self.gates);
        job.status = None;
        job
    }

    fn is_name_taken(&mut self, job: &Job) -> bool {
        let Some(name) = job.metadata.name.clone().filter(|name| !name.is_empty()) else {
            return false;
        };
        let namespace = job.metadata.namespace.clone().unwrap_or_default();
        !self.names.insert((namespace, name))
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

/// Where an object stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// In a document of its own.
    File,
    /// In a list, which may give it a kind.
    List(Option<(&'static str, &'static str)>),
}

/// A plain error about the text at a place.
fn error_at(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        name: None,
        path: crate::field_path::FieldPath::root(),
        message: message.into(),
        span,
        help: None,
        related: None,
    }
}
