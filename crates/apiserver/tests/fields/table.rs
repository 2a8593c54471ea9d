//! What applying and updating comes to, without a store.

use serde_json::{Value, json};
use stint_apiserver::fields::FieldSet;
use stint_apiserver::fields::apply::{Applied, Apply, Conflict};
use stint_apiserver::fields::managed::Author;
use stint_apiserver::schema::{self, Message};

/// When all of this happens.
pub(crate) const NOW: &str = "2026-05-01T12:00:00Z";

/// The message of a kind of the core.
pub(crate) fn message(kind: &str) -> Message {
    schema::of_kind("v1", kind).expect("a kind")
}

/// Somebody who writes whole objects of the core.
pub(crate) fn author(name: &str) -> Author<'_> {
    static NOTHING: FieldSet<'static> = FieldSet::EMPTY;
    Author { name, api_version: "v1", subresource: "", resets: &NOTHING, now: NOW }
}

/// An object and who owns what in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    pub(crate) object: Value,
    pub(crate) managed: Option<String>,
}

impl Owned {
    /// Nothing of a kind.
    pub(crate) fn none(kind: &str) -> Self {
        Owned { object: json!({"apiVersion": "v1", "kind": kind}), managed: None }
    }

    /// What applying an object makes of it.
    pub(crate) fn apply(
        &self,
        applied: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Owned, Vec<Conflict>> {
        let kind = self.object["kind"].as_str().expect("a kind");
        let author = author(manager);
        let apply = Apply {
            live: &self.object,
            managed: self.managed.as_deref(),
            applied,
            message: message(kind),
            author,
            force,
            in_version: &|_, _, _| None,
        };
        let Applied { object, managed } = apply.run()?;
        Ok(Owned { object: object.unwrap_or_else(|| self.object.clone()), managed })
    }
}

/// An object without what is null in it, as a type would read it.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), without_nulls(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
