//! Events of events.k8s.io/v1: the same events as those of the core, in other words. They are
//! stored and judged as those.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::events::v1::Event;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::kinds::event::{from_events_v1, to_events_v1};
use stint_api::kinds::events_v1 as rules;
use stint_store::Revision;

use super::event::Events as CoreEvents;
use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::object;
use crate::table::{self, Column};

/// Events of events.k8s.io/v1.
#[derive(Debug)]
pub(super) struct EventsEvents;

impl Kind for EventsEvents {
    type Object = Event;

    const NAMES: Names = Names { group: "events.k8s.io", ..CoreEvents::NAMES };

    const JUDGED_IN: &'static str = CoreEvents::NAMES.group;

    const MANNERS: Manners = CoreEvents::MANNERS;

    const STORED_UNDER: &'static str = CoreEvents::STORED_UNDER;

    const IS_STORED_AS_IS: bool = false;

    const FIELDS: &'static [&'static str] = &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ];

    fn prepare_for_create(event: &mut Event, _context: &Context<'_>) {
        as_core(event, rules::prepare_for_create);
    }

    fn prepare_for_update(new: &mut Event, old: &Event, _part: Part, _context: &Context<'_>) {
        let old = from_events_v1(old.clone());
        as_core(new, |core| rules::prepare_for_update(core, &old));
    }

    fn validate_create(event: &Event, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(&from_events_v1(event.clone()))
    }

    fn validate_update(
        new: &Event,
        old: &Event,
        _part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        rules::validate_update(&from_events_v1(new.clone()), &from_events_v1(old.clone()))
    }

    fn field<'o>(event: &'o Event, name: &str) -> Cow<'o, str> {
        let core = from_events_v1(event.clone());
        let value = rules::field(&core, name).unwrap_or_default();
        Cow::Owned(value.into_owned())
    }

    fn columns() -> &'static [Column] {
        table::events_event::COLUMNS
    }

    fn cells(event: &Event, now: Timestamp) -> Vec<Value> {
        table::events_event::cells(event, now)
    }

    fn to_stored(event: &Event) -> Vec<u8> {
        object::to_stored(&from_events_v1(event.clone()))
    }

    fn reads_back(stored: &[u8]) -> bool {
        serde_json::from_slice::<core::Event>(stored).is_ok()
    }

    fn from_stored(stored: &[u8], revision: Revision) -> Event {
        to_events_v1(object::from_stored::<core::Event>(stored, revision))
    }
}

fn as_core(event: &mut Event, change: impl FnOnce(&mut core::Event)) {
    let mut core = from_events_v1(event.clone());
    change(&mut core);
    *event = to_events_v1(core);
}
