//! An Event of events.k8s.io/v1, judged as it is stored: as an Event of core/v1
//! ([`super::event::from_events_v1`]), in whose words the API server speaks of it.
//!
//! This API takes nothing but the new style, and lets nothing but the series and the
//! metadata change.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Serialize;
use serde_json::Value;

use super::event::{self, is_new_style, is_no_time};
use super::{once, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::semantic_equality::{json, semantically_equal};
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update,
};
use crate::validation::text;

pub use super::event::{
    CREATES_ON_UPDATE, UPDATES_UNCONDITIONALLY, prepare_for_create, prepare_for_update,
};

const TYPES: [&str; 2] = ["Normal", "Warning"];
/// An Event that happens once is no series.
const SERIES_MIN_COUNT: i32 = 2;
const NANOS_PER_MICRO: i128 = 1000;

/// Validates a prepared new Event of events.k8s.io/v1.
pub fn validate_create(event: &Event) -> Vec<FieldError> {
    let mut errors = Vec::new();
    event::validate(event, "reportingController", &mut errors);
    validate_object_meta(&event.metadata, &Path::field("metadata"), &mut errors);
    validate_series(event, &mut errors);
    if !is_new_style(event) {
        errors.push(FieldError::required(&Path::field("eventTime"), ""));
    }
    let type_ = text(&event.type_);
    if !TYPES.contains(&type_) {
        let detail = format!("has invalid value: {type_}");
        errors.push(FieldError::invalid(&Path::field("type"), "", detail));
    }
    let source = event.source.as_ref();
    let has_source = source.is_some_and(|source| {
        !text(&source.component).is_empty() || !text(&source.host).is_empty()
    });
    for (field, is_set) in [
        ("firstTimestamp", event.first_timestamp.is_some()),
        ("lastTimestamp", event.last_timestamp.is_some()),
        ("count", event.count.unwrap_or(0) != 0),
        ("source", has_source),
    ] {
        if is_set {
            errors.push(FieldError::invalid(&Path::field(field), "", "needs to be unset"));
        }
    }
    errors
}

/// Validates a prepared update of events.k8s.io/v1 against the stored Event.
pub fn validate_update(new: &Event, old: &Event) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    event::validate(new, "reportingController", &mut errors);
    let metadata = Path::field("metadata");
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    if new.series != old.series {
        validate_series(new, &mut errors);
    }
    let mut keep = |field: &'static str, new: Value, old: Value| {
        if !semantically_equal(&new, &old) {
            errors.push(FieldError::invalid(&Path::field(field), new, "field is immutable"));
        }
    };
    let word = |field: &Option<String>| json(text(field));
    let count = |field: Option<i32>| json(field.unwrap_or(0));
    keep("involvedObject", json(&new.involved_object), json(&old.involved_object));
    keep("reason", word(&new.reason), word(&old.reason));
    keep("message", word(&new.message), word(&old.message));
    keep("source", or_empty(&new.source), or_empty(&old.source));
    keep("firstTimestamp", json(&new.first_timestamp), json(&old.first_timestamp));
    keep("lastTimestamp", json(&new.last_timestamp), json(&old.last_timestamp));
    keep("count", count(new.count), count(old.count));
    keep("type", word(&new.type_), word(&old.type_));
    if micros(&new.event_time) != micros(&old.event_time) {
        keep("eventTime", json(&new.event_time), json(&old.event_time));
    }
    keep("action", word(&new.action), word(&old.action));
    keep("related", json(&new.related), json(&old.related));
    let (new_controller, old_controller) = (&new.reporting_component, &old.reporting_component);
    keep("reportingController", word(new_controller), word(old_controller));
    keep("reportingInstance", word(&new.reporting_instance), word(&old.reporting_instance));
    once(errors)
}

/// What a field selector of events.k8s.io/v1 sees of an Event.
pub fn field<'a>(event: &'a Event, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "reportingController" => event::field(event, "reportingComponent"),
        "reason" | "type" | "metadata.name" | "metadata.namespace" => event::field(event, name),
        _ => {
            let name = name.strip_prefix("regarding.")?;
            event::field(event, &format!("involvedObject.{name}"))
        }
    }
}

fn validate_series(event: &Event, errors: &mut Vec<FieldError>) {
    let Some(series) = &event.series else {
        return;
    };
    let path = Path::field("series");
    if series.count.unwrap_or(0) < SERIES_MIN_COUNT {
        errors.push(FieldError::invalid(&path.child("count"), "", "should be at least 2"));
    }
    if series.last_observed_time.as_ref().is_none_or(is_no_time) {
        errors.push(FieldError::required(&path.child("lastObservedTime"), ""));
    }
}

/// The whole microseconds of a time: what is finer comes and goes with serialisation.
fn micros(time: &Option<MicroTime>) -> Option<i128> {
    time.as_ref().map(|time| time.0.as_nanosecond().div_euclid(NANOS_PER_MICRO))
}

fn or_empty<T: Serialize + Default>(value: &Option<T>) -> Value {
    value.as_ref().map_or_else(|| json(T::default()), json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_api_selects_by_its_own_names() {
        let event: Event = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a.1", "namespace": "b"},
            "involvedObject": {"kind": "Job"}, "reportingComponent": "stint.dev/controller",
        }))
        .expect("an Event");
        assert_eq!(field(&event, "regarding.kind").as_deref(), Some("Job"));
        assert_eq!(field(&event, "reportingController").as_deref(), Some("stint.dev/controller"));
        assert_eq!(field(&event, "metadata.name").as_deref(), Some("a.1"));
        for name in ["involvedObject.kind", "reportingComponent", "source", "regarding.x"] {
            assert_eq!(field(&event, name), None, "{name}");
        }
    }
}
