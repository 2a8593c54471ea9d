//! The manifests of a run: the Jobs, and what stands beside them.
//!
//! Jobs are checked as `stint check` does; the other kinds are left to the API server. What is
//! wrong becomes text; nothing is printed here.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;
use stint_api::advice::IMAGE_IGNORED;
use stint_api::decode;
use stint_api::diagnostic::{CheckedDocument, DocumentKind, Span};
use stint_api::feature_gates::FeatureGates;
use stint_api::manifest::Checker;

use super::origin::{Origin, items};
use crate::input;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::report::Report;
use crate::source::Source;

/// An object and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    /// The file and the document in it, for people.
    pub(crate) place: String,
    pub(crate) origin: Origin,
    pub(crate) object: T,
}

/// What there is to run.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) jobs: Vec<Written<Job>>,
    /// Objects of other kinds, with the kind that each is.
    pub(crate) others: Vec<Written<(Beside, Value)>>,
}

/// The kinds that a Job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Beside {
    Namespace,
    ServiceAccount,
    ConfigMap,
    Secret,
    Service,
}

impl Beside {
    fn read(api_version: Option<&str>, kind: Option<&str>) -> Option<Self> {
        if api_version != Some("v1") {
            return None;
        }
        match kind? {
            "Namespace" => Some(Beside::Namespace),
            "ServiceAccount" => Some(Beside::ServiceAccount),
            "ConfigMap" => Some(Beside::ConfigMap),
            "Secret" => Some(Beside::Secret),
            "Service" => Some(Beside::Service),
            _ => None,
        }
    }

    /// How the kind is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Beside::Namespace => "Namespace",
            Beside::ServiceAccount => "ServiceAccount",
            Beside::ConfigMap => "ConfigMap",
            Beside::Secret => "Secret",
            Beside::Service => "Service",
        }
    }

    /// How the kind is called in paths.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Beside::Namespace => "namespaces",
            Beside::ServiceAccount => "serviceaccounts",
            Beside::ConfigMap => "configmaps",
            Beside::Secret => "secrets",
            Beside::Service => "services",
        }
    }
}

/// Reads and checks everything: what to say about it, and the manifests if they can be run.
pub(crate) fn read(
    files: &[PathBuf],
    recursive: bool,
    gates: FeatureGates,
    report: Report,
) -> (String, Option<Manifests>) {
    let mut reading = Reading {
        checker: Checker::new(gates).keep_jobs().allow([IMAGE_IGNORED.to_owned()]),
        report,
        said: String::new(),
        is_wrong: false,
        manifests: Manifests::default(),
    };
    for input in input::find(files, recursive) {
        match input.and_then(|input| input::read(&input)) {
            Ok(source) => reading.file(source),
            Err(error) => {
                reading.is_wrong = true;
                reading.said += &reading.report.input_error(&error);
            }
        }
    }
    if !reading.is_wrong && reading.manifests.jobs.is_empty() {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let names = printable(&names.join(", "), MAX_MESSAGE_CHARS);
        reading.refuse(&format!("there is no Job in {names}"), "name a file with a batch/v1 Job");
    }
    reading.refuse_twins();
    let manifests = (!reading.is_wrong).then_some(reading.manifests);
    (reading.said, manifests)
}

struct Reading {
    checker: Checker,
    report: Report,
    said: String,
    is_wrong: bool,
    manifests: Manifests,
}

impl Reading {
    fn file(&mut self, source: Source) {
        let source = Arc::new(source);
        let mut documents = Vec::new();
        self.checker.check(source.text(), |document| documents.push(document));
        self.said += &self.report.diagnostics(&source, &documents);
        self.is_wrong |= documents.iter().any(|document| !document.is_valid());
        let has_others = documents.iter().any(|document| document.kind == DocumentKind::Other);
        let mut trees = if has_others { trees(source.text()) } else { HashMap::new() };
        for (number, document) in documents.into_iter().enumerate() {
            let line = source.position(document.span.start).line;
            let name = printable(source.name(), MAX_MESSAGE_CHARS);
            let place = format!("{name}:{line}, document {}", number + 1);
            let origin = Origin::new(source.clone(), document.span);
            self.document(place, origin, document, &mut trees);
        }
    }

    fn document(
        &mut self,
        place: String,
        origin: Origin,
        document: CheckedDocument,
        trees: &mut HashMap<Span, Value>,
    ) {
        match document.kind {
            DocumentKind::Job(Some(job)) => {
                self.manifests.jobs.push(Written { place, origin, object: *job });
            }
            DocumentKind::Job(None) | DocumentKind::Unreadable => {}
            DocumentKind::Other => {
                let (version, kind) =
                    (document.api_version.as_deref(), document.kind_name.as_deref());
                let value = trees.get(&document.span).cloned();
                match (Beside::read(version, kind), value) {
                    (Some(beside), Some(value)) => {
                        let object = (beside, value);
                        self.manifests.others.push(Written { place, origin, object });
                    }
                    _ => {
                        let kind = printable(kind.unwrap_or("object without a kind"), 253);
                        let message = format!("{place}: stint run does not run a {kind}");
                        let help = "run Jobs with ConfigMaps, Secrets, Services, ServiceAccounts \
                                    and Namespaces; take this document out, or put it into \
                                    another file";
                        self.refuse(&message, help);
                    }
                }
            }
        }
    }

    /// Two objects of one kind and name cannot be there at once; the checker sees only Jobs, and
    /// those in one file. Files that each begin with the same Namespace or the like are common, so
    /// that what is word for word the same is one object.
    fn refuse_twins(&mut self) {
        let mut known = HashSet::new();
        self.manifests.others.retain(|Written { object: (beside, object), .. }| {
            // Each one without a name is an object of its own.
            object["metadata"]["name"].is_null() || known.insert((*beside, object.to_string()))
        });
        let jobs = self.manifests.jobs.iter().map(|Written { place, object, .. }| {
            let meta = &object.metadata;
            ("Job", meta.namespace.as_deref(), meta.name.as_deref(), place)
        });
        let others = self.manifests.others.iter().map(|Written { place, object, .. }| {
            let (beside, object) = object;
            let meta = &object["metadata"];
            (beside.name(), meta["namespace"].as_str(), meta["name"].as_str(), place)
        });
        let mut places: HashMap<(&str, &str, &str), &str> = HashMap::new();
        let mut messages = Vec::new();
        for (kind, namespace, name, place) in jobs.chain(others) {
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            let namespace = namespace.filter(|name| !name.is_empty()).unwrap_or("default");
            if let Some(first) = places.insert((kind, namespace, name), place) {
                let shown = printable(name, 253);
                let message =
                    format!("{place}: {kind} {shown} has the name of another, at {first}");
                let help = match kind {
                    "Job" => "give one of them another name, or use metadata.generateName",
                    _ => "give one of them another name, or take one out",
                };
                messages.push((message, help));
            }
        }
        for (message, help) in messages {
            self.refuse(&message, help);
        }
    }

    fn refuse(&mut self, message: &str, help: &str) {
        self.is_wrong = true;
        self.said += &format!("error: {message}\n  = help: {help}\n\n");
    }
}

/// Every document and every item of a list as JSON, by its place.
fn trees(text: &str) -> HashMap<Span, Value> {
    let mut trees = HashMap::new();
    for document in decode::documents(text) {
        let Some(root) = document.root else { continue };
        for item in items(&root) {
            trees.insert(item.span, item.to_json());
        }
        trees.insert(document.span, root.to_json());
    }
    trees
}
