//! One object as a client wants to see it: whole, its metadata, or a row of a table.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde_json::Value;
use stint_store::{Entry, Revision};

use crate::clock::Clock;
use crate::kind::AnyKind;
use crate::object::{self, Head, type_head};
use crate::request::media::{Include, View};
use crate::table;

/// How the objects of one answer are shown.
pub(crate) struct Shown {
    pub(crate) kind: &'static dyn AnyKind,
    pub(crate) view: View,
    /// Whether they say who owns their fields.
    pub(crate) managed: Managed,
    /// Ages are told as of when a row is made: a watch may go on for an hour.
    clock: Clock,
    head: String,
    metadata_head: String,
}

/// Whether objects say who owns their fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Managed {
    /// As everybody is answered.
    Shown,
    /// For callers within this process that have no use for it: it is half of a Pod.
    LeftOut,
    /// For those that have no use for it in the objects of one kind.
    LeftOutOf(&'static str),
}

impl Managed {
    /// Whether those of this kind do.
    fn of(self, kind: &dyn AnyKind) -> Self {
        match self {
            Managed::LeftOutOf(plural) if kind.names().plural == plural => Managed::LeftOut,
            Managed::LeftOutOf(_) | Managed::Shown => Managed::Shown,
            Managed::LeftOut => Managed::LeftOut,
        }
    }
}

impl Shown {
    pub(crate) fn new(
        kind: &'static dyn AnyKind,
        view: View,
        managed: Managed,
        clock: Clock,
    ) -> Self {
        let metadata_head = type_head("meta.k8s.io/v1", "PartialObjectMetadata");
        let managed = managed.of(kind);
        Shown { kind, view, managed, clock, head: kind.type_head(), metadata_head }
    }

    /// All of an object.
    fn put_whole(
        &self,
        answer: &mut BytesMut,
        head: Head<'_>,
        stored: &[u8],
        revision: Option<Revision>,
    ) {
        match self.managed {
            Managed::Shown | Managed::LeftOutOf(_) => object::put(answer, head, stored, revision),
            Managed::LeftOut => object::put_without_managed(answer, head, stored, revision),
        }
    }

    /// The metadata of an object.
    fn put_metadata(&self, answer: &mut BytesMut, stored: &[u8], revision: Option<Revision>) {
        let head = Head::Typed(&self.metadata_head);
        match self.managed {
            Managed::Shown | Managed::LeftOutOf(_) => {
                object::put_metadata(answer, head, stored, revision)
            }
            Managed::LeftOut => {
                object::put_metadata_without_managed(answer, head, stored, revision);
            }
        }
    }

    /// An object as an answer of its own.
    pub(crate) fn one(&self, stored: &Bytes, revision: Option<Revision>) -> Bytes {
        let mut answer = BytesMut::new();
        match self.view {
            View::Whole => {
                self.put_whole(&mut answer, Head::Typed(&self.head), stored, revision);
            }
            View::Metadata(_) => self.put_metadata(&mut answer, stored, revision),
            View::Table(include) => {
                let resource_version = revision.map(|revision| revision.to_string());
                let metadata = ListMeta { resource_version, ..ListMeta::default() };
                let rows = vec![self.row(stored, revision, include)];
                let table = table::table(Some(self.kind.columns()), &metadata, rows);
                answer.extend_from_slice(&to_json(&table));
            }
        }
        answer.freeze()
    }

    /// An item of a list, or a row of a table.
    pub(crate) fn put_item(&self, answer: &mut BytesMut, entry: &Arc<Entry>) {
        let stored = self.kind.as_stored(entry);
        match self.view {
            View::Whole => self.put_whole(answer, Head::Item, &stored, Some(entry.modified)),
            View::Metadata(_) => self.put_metadata(answer, &stored, Some(entry.modified)),
            View::Table(include) => {
                let row = self.row(&stored, Some(entry.modified), include);
                answer.extend_from_slice(&to_json(&row));
            }
        }
    }

    /// An object as part of a watch. Of tables only the first has columns.
    pub(crate) fn watched(&self, entry: &Entry, revision: Revision, is_first: bool) -> Bytes {
        self.watched_stored(&self.kind.as_stored(entry), revision, is_first)
    }

    /// The same, of something that need not be stored.
    pub(crate) fn watched_stored(
        &self,
        stored: &Bytes,
        revision: Revision,
        is_first: bool,
    ) -> Bytes {
        match self.view {
            View::Whole | View::Metadata(_) => self.one(stored, Some(revision)),
            View::Table(include) => {
                let resource_version = Some(revision.to_string());
                let metadata = ListMeta { resource_version, ..ListMeta::default() };
                let rows = vec![self.row(stored, Some(revision), include)];
                let columns = is_first.then(|| self.kind.columns());
                to_json(&table::table(columns, &metadata, rows)).into()
            }
        }
    }

    /// A row of a table.
    pub(crate) fn row(
        &self,
        stored: &Bytes,
        revision: Option<Revision>,
        include: Include,
    ) -> Value {
        let version = revision.unwrap_or(Revision::EMPTY);
        let decoded = self.kind.read_own(stored, version);
        let cells = self.kind.cells(decoded.as_ref(), self.clock.now());
        let conditions = self.kind.row_conditions(decoded.as_ref());
        let mut text = BytesMut::new();
        match include {
            Include::None => {}
            Include::Metadata => self.put_metadata(&mut text, stored, revision),
            Include::Object => {
                self.put_whole(&mut text, Head::Typed(&self.head), stored, revision);
            }
        }
        let object = if text.is_empty() {
            Value::Null
        } else {
            // Nothing but who owns its fields can be too deep to be read again.
            serde_json::from_slice(&text).unwrap_or_else(|_| {
                text.clear();
                let head = Head::Typed(&self.metadata_head);
                object::put_metadata_without_managed(&mut text, head, stored, revision);
                serde_json::from_slice(&text).expect("it is JSON")
            })
        };
        table::row(cells, conditions, object)
    }
}

pub(crate) fn to_json(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("JSON serialises")
}
