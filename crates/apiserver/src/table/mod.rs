//! What kubectl prints: objects as rows of a meta.k8s.io/v1 Table, with the columns and the
//! cells of kube-apiserver 1.36.
//!
//! A Table answers `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`. Each kind has a
//! file with its columns and its cells; [`kind::of`] finds them by name. Everything here is a
//! function of an object and `now`. It must not know HTTP or the store: which objects there
//! are, and how much of each goes with its row, is the server's to say.

pub mod config_map;
pub mod duration;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
pub mod events_event;
pub mod job;
pub mod kind;
pub mod lease;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod resource_quota;
pub mod secret;
pub mod selector;
pub mod service;
pub mod service_account;
mod short_list;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde_json::{Value, json};

/// The column every kind is named in.
pub const NAME: Column = Column { format: "name", ..Column::new("Name", NAME_DESCRIPTION) };

/// The column of the time since an object was created.
pub const AGE: Column = Column::new("Age", AGE_DESCRIPTION);

/// What stands in a cell when there is nothing to show.
const NONE: &str = "<none>";

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The head of the column.
    pub name: &'static str,
    /// The OpenAPI type of the cells, as upstream declares it: it says `string` of some
    /// columns that have integers in them.
    pub column_type: &'static str,
    /// `name` for the column that has the object's name, else empty.
    pub format: &'static str,
    /// 0 for a column that is always printed, 1 for one that `-o wide` adds.
    pub priority: i32,
    /// What the column is about: the documentation of the field behind it.
    pub description: &'static str,
}

impl Column {
    /// A column of text that is always printed.
    const fn new(name: &'static str, description: &'static str) -> Self {
        Column { name, column_type: "string", format: "", priority: 0, description }
    }

    /// A column of text that only `-o wide` prints.
    const fn wide(name: &'static str, description: &'static str) -> Self {
        Column { priority: 1, ..Column::new(name, description) }
    }
}

/// Something about a row that is not in its cells. The only type that Kubernetes defines is
/// `Completed`, for what has run to its end and may be shown less prominently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCondition {
    /// `Completed`.
    pub condition_type: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: &'static str,
}

/// The `columnDefinitions` of a table.
pub fn definitions(columns: &[Column]) -> Value {
    columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.column_type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        })
        .collect()
}

/// A row of a table. `object` is what `includeObject` asks for: [`partial_object_metadata`]
/// for `Metadata` and for nothing, the whole object for `Object`, null for `None`.
pub fn row(cells: Vec<Value>, conditions: &[RowCondition], object: Value) -> Value {
    let mut row = json!({ "cells": cells, "object": object });
    if !conditions.is_empty() {
        row["conditions"] = conditions
            .iter()
            .map(|condition| {
                json!({
                    "type": condition.condition_type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                })
            })
            .collect();
    }
    row
}

/// A table. Its metadata is that of the list it shows; of a single object it is the object's
/// resourceVersion. Of the tables in a watch only the first has its columns, the others have
/// none.
pub fn table(columns: Option<&[Column]>, metadata: &ListMeta, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns.map(definitions),
        "rows": rows,
    })
}

/// The metadata of an object, and nothing else of it, as an object of its own.
pub fn partial_object_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// A text that may be absent; an empty one is as good as none.
fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

/// A text, or another if it is empty.
fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although some \
     resources may allow a client to request the generation of an appropriate name \
     automatically. Name is primarily intended for creation idempotence and configuration \
     definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. \
     It is not guaranteed to be set in happens-before order across separate operations. Clients \
     may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by \
     the system. Read-only. Null for lists. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
