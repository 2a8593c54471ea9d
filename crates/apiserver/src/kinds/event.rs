//! Events: what happened to objects.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::kinds::event as rules;

use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::table::{self, Column};

/// Events.
#[derive(Debug)]
pub(super) struct Events;

impl Kind for Events {
    type Object = Event;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Event",
        plural: "events",
        singular: "event",
        short_names: &["ev"],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners =
        Manners { creates_on_update: true, has_dependents: false, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "events";

    const FIELDS: &'static [&'static str] = &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ];

    fn prepare_for_create(object: &mut Event, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(new: &mut Event, old: &Event, part: Part, _context: &Context<'_>) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &Event, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Event,
        old: &Event,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o Event, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::event::COLUMNS
    }

    fn cells(object: &Event, now: Timestamp) -> Vec<Value> {
        table::event::cells(object, now)
    }
}
