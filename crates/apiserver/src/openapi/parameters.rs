//! The parameters of requests, and what is said of them.

use serde_json::{Value, json};

/// A parameter. They are told of in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    name: &'static str,
    of: &'static str,
    /// Whether it is a part of the path rather than of the query.
    is_in_path: bool,
    /// What it is for; of names: of what.
    text: &'static str,
}

const fn query(name: &'static str, of: &'static str, text: &'static str) -> Parameter {
    Parameter { name, of, is_in_path: false, text }
}

impl Parameter {
    /// The name of an object of a kind.
    pub(super) fn name_of(kind: &'static str) -> Self {
        Parameter { name: "name", of: "string", is_in_path: true, text: kind }
    }

    /// Whether it means nothing but to a watch.
    pub(super) fn is_of_watches(&self) -> bool {
        ["allowWatchBookmarks", "watch"].contains(&self.name)
    }

    fn write(&self) -> Value {
        let place = if self.is_in_path { "path" } else { "query" };
        let text = match self.name {
            "name" => format!("name of the {}", self.text),
            _ => self.text.to_owned(),
        };
        let mut parameter = json!({
            "description": text,
            "in": place,
            "name": self.name,
            "schema": {"type": self.of, "uniqueItems": true},
        });
        if self.is_in_path {
            parameter["required"] = true.into();
        }
        parameter
    }
}

/// Parameters as a document has them.
pub(super) fn write(parameters: &[&Parameter]) -> Value {
    parameters.iter().map(|parameter| parameter.write()).collect()
}

/// The namespace in a path.
pub(super) const NAMESPACE: Parameter = Parameter {
    name: "namespace",
    of: "string",
    is_in_path: true,
    text: "the namespace that the object is in",
};

/// How an answer is laid out.
pub(super) const PRETTY: Parameter =
    query("pretty", "string", "If it is true, the answer is laid out for people.");

/// Of lists and watches.
pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean", "Whether a watch may tell of versions alone."),
    query("continue", "string", "Where to go on: what the last page of the list said."),
    query("fieldSelector", "string", "Which objects are meant, by their fields."),
    query("labelSelector", "string", "Which objects are meant, by their labels."),
    query("limit", "integer", "The most objects of a page."),
    query("resourceVersion", "string", "Which version the answer is to be of."),
    query("resourceVersionMatch", "string", "How the version is meant: Exact, or NotOlderThan."),
    query(
        "sendInitialEvents",
        "boolean",
        "Whether a watch begins with the objects that there are, and a bookmark after them.",
    ),
    query("timeoutSeconds", "integer", "When a watch or a list ends, whatever happens."),
    query("watch", "boolean", "Whether changes are told as they come, rather than a list."),
];

/// Of everything that writes.
pub(super) const WRITE: &[Parameter] = &[
    DRY_RUN,
    query("fieldManager", "string", "Who writes, as the owner of the fields."),
    query(
        "fieldValidation",
        "string",
        "What becomes of fields that are unknown or given twice: Ignore, Warn (as if it were not \
         given) or Strict.",
    ),
];

const DRY_RUN: Parameter =
    query("dryRun", "string", "Whether nothing is to be stored: All, or not given.");

/// Of patches besides.
pub(super) const PATCH: &[Parameter] = &[query(
    "force",
    "boolean",
    "Whether an apply takes fields from their owners. Other patches do not have it.",
)];

/// Of deletions.
pub(super) const DELETE: &[Parameter] = &[
    DRY_RUN,
    query("gracePeriodSeconds", "integer", "How long the object may take to end; zero: at once."),
    query(
        "orphanDependents",
        "boolean",
        "Whether dependents stay. Deprecated: propagationPolicy says it, too.",
    ),
    query(
        "propagationPolicy",
        "string",
        "What becomes of dependents: Orphan, Background or Foreground.",
    ),
];

/// Of logs.
pub(super) const LOG: &[Parameter] = &[
    query("container", "string", "Whose log, if the Pod has several containers."),
    query("follow", "boolean", "Whether to go on with what is written from now on."),
    query(
        "insecureSkipTLSVerifyBackend",
        "boolean",
        "Whether the node need not prove who it is. Logs do not go over a network here.",
    ),
    query("limitBytes", "integer", "The most bytes of the answer."),
    query("previous", "boolean", "Whether the log of the run before is meant."),
    query("sinceSeconds", "integer", "How old the first line may be."),
    query("stream", "string", "Which stream: All, Stdout or Stderr."),
    query("tailLines", "integer", "How many lines from the end."),
    query("timestamps", "boolean", "Whether each line begins with its time."),
];

/// Of what is run beside a container.
pub(super) const COMMAND: &[Parameter] =
    &[query("command", "string", "The program, and each of its arguments. No shell is run.")];

/// Of visits to containers.
pub(super) const VISIT: &[Parameter] = &[
    query("container", "string", "Which container, if the Pod has several."),
    query("stderr", "boolean", "Whether the standard error is to be read."),
    query("stdin", "boolean", "Whether something is to be written to the standard input."),
    query("stdout", "boolean", "Whether the standard output is to be read."),
    query("tty", "boolean", "Whether there is to be a terminal."),
];
