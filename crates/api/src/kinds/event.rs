//! An Event of core/v1, which is also how an Event of events.k8s.io/v1 is stored, and the
//! way from one to the other and back.
//!
//! An Event with an `eventTime` is of the new style, and must say who reports what.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Event, EventSeries, ObjectReference};
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

use super::{
    keep_identity, meta_field, once, shown, validate_meta_of_any_kind,
    validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::MetaRules;
use crate::validation::{push_invalid, text, validate_given};

/// Whether a PUT may create an Event.
pub const CREATES_ON_UPDATE: bool = true;
/// Whether an Event may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// What a reporter may say of itself, its action and its reason; upstream's limit.
const WORD_MAX_BYTES: usize = 128;
/// What a message may say in the new style; upstream's limit.
const MESSAGE_MAX_BYTES: usize = 1024;
/// The seconds of Go's zero time, 0001-01-01T00:00:00Z, which stands for no time.
const NO_TIME_SECONDS: i64 = -62_135_596_800;

/// Prepares a new Event, which has no defaults.
pub fn prepare_for_create(event: &mut Event) {
    reset_server_fields(&mut event.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut Event, old: &Event) {
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new Event of core/v1.
pub fn validate_create(event: &Event) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(event, "reportingComponent", &mut errors);
    if errors.is_empty() {
        validate_meta_of_any_kind(&MetaRules::NAMESPACED, &event.metadata, &mut errors);
    }
    errors
}

/// Validates a prepared update of core/v1, in which anything may change.
pub fn validate_update(new: &Event, old: &Event) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate(new, "reportingComponent", &mut errors);
    once(errors)
}

/// What a field selector of core/v1 sees of an Event.
pub fn field<'a>(event: &'a Event, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "reason" => shown(&event.reason),
        "reportingComponent" => shown(&event.reporting_component),
        "source" => {
            let component = event.source.as_ref().map_or("", |source| text(&source.component));
            match component {
                "" => shown(&event.reporting_component),
                component => Some(Cow::Borrowed(component)),
            }
        }
        "type" => shown(&event.type_),
        _ => match name.strip_prefix("involvedObject.") {
            Some(name) => reference_field(&event.involved_object, name),
            None => meta_field(&event.metadata, name),
        },
    }
}

/// The Event of events.k8s.io/v1 as it is stored.
pub fn from_events_v1(event: events::Event) -> Event {
    let series = event.series.map(|series| EventSeries {
        count: Some(series.count),
        last_observed_time: Some(series.last_observed_time).filter(|time| !is_no_time(time)),
    });
    Event {
        action: event.action,
        count: event.deprecated_count,
        event_time: event.event_time,
        first_timestamp: event.deprecated_first_timestamp,
        involved_object: event.regarding.unwrap_or_default(),
        last_timestamp: event.deprecated_last_timestamp,
        message: event.note,
        metadata: event.metadata,
        reason: event.reason,
        related: event.related,
        reporting_component: event.reporting_controller,
        reporting_instance: event.reporting_instance,
        series,
        source: event.deprecated_source,
        type_: event.type_,
    }
}

/// A stored Event as events.k8s.io/v1 shows it. A series that was never observed, which
/// that type cannot say, is shown at Go's zero time.
pub fn to_events_v1(event: Event) -> events::Event {
    let series = event.series.map(|series| events::EventSeries {
        count: series.count.unwrap_or(0),
        last_observed_time: series.last_observed_time.unwrap_or_else(no_time),
    });
    events::Event {
        action: event.action,
        deprecated_count: event.count,
        deprecated_first_timestamp: event.first_timestamp,
        deprecated_last_timestamp: event.last_timestamp,
        deprecated_source: event.source,
        event_time: event.event_time,
        metadata: event.metadata,
        note: event.message,
        reason: event.reason,
        regarding: Some(event.involved_object),
        related: event.related,
        reporting_controller: event.reporting_component,
        reporting_instance: event.reporting_instance,
        series,
        type_: event.type_,
    }
}

/// What is wrong with an Event of either style. `reporter` is what the API that was asked
/// calls the field.
pub(super) fn validate(event: &Event, reporter: &'static str, errors: &mut Vec<FieldError>) {
    validate_namespace(event, errors);
    if is_new_style(event) {
        validate_new_style(event, reporter, errors);
    }
    // Upstream judges the namespace as a subdomain, and leaves out `metadata`.
    let namespace = text(&event.metadata.namespace);
    let wrong = identifier::dns1123_subdomain(namespace);
    push_invalid(&Path::field("namespace"), namespace, wrong, errors);
}

/// Whether the Event has an `eventTime`.
pub(super) fn is_new_style(event: &Event) -> bool {
    event.event_time.as_ref().is_some_and(|time| !is_no_time(time))
}

/// Whether a time stands for none.
pub(super) fn is_no_time(time: &MicroTime) -> bool {
    time.0.as_second() == NO_TIME_SECONDS
}

fn no_time() -> MicroTime {
    MicroTime(Timestamp::from_second(NO_TIME_SECONDS).expect("year 1 is a time"))
}

/// An Event is where its object is. That of an object without a namespace is in
/// `default`, or in `kube-system` if it is of the new style.
fn validate_namespace(event: &Event, errors: &mut Vec<FieldError>) {
    let namespace = text(&event.metadata.namespace);
    let involved = text(&event.involved_object.namespace);
    let is_right = match (is_new_style(event), involved) {
        (false, "") => matches!(namespace, "" | "default"),
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (false, involved) => involved == namespace,
        (true, _) => true,
    };
    if !is_right {
        let involved_object = Path::field("involvedObject");
        let at = involved_object.child("namespace");
        errors.push(FieldError::invalid(&at, involved, "does not match event.namespace"));
    }
}

fn validate_new_style(event: &Event, reporter: &'static str, errors: &mut Vec<FieldError>) {
    let controller = text(&event.reporting_component);
    let at = Path::field(reporter);
    validate_given(controller, &at, errors);
    push_invalid(&at, controller, identifier::qualified_name(controller), errors);
    let words = [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ];
    for (field, value) in words {
        let at = Path::field(field);
        validate_given(text(value), &at, errors);
        validate_length(text(value), WORD_MAX_BYTES, &at, errors);
    }
    let message = text(&event.message);
    validate_length(message, MESSAGE_MAX_BYTES, &Path::field("message"), errors);
}

/// Upstream counts bytes, says characters, and does not print the text.
fn validate_length(value: &str, max_bytes: usize, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.len() > max_bytes {
        let detail = format!("can have at most {max_bytes} characters");
        errors.push(FieldError::invalid(at, "", detail));
    }
}

fn reference_field<'a>(reference: &'a ObjectReference, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "apiVersion" => shown(&reference.api_version),
        "fieldPath" => shown(&reference.field_path),
        "kind" => shown(&reference.kind),
        "name" => shown(&reference.name),
        "namespace" => shown(&reference.namespace),
        "resourceVersion" => shown(&reference.resource_version),
        "uid" => shown(&reference.uid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_comes_back_as_it_was() {
        let reference = json!({"kind": "Job", "name": "a", "namespace": "b", "uid": "1"});
        let event: Event = serde_json::from_value(json!({
            "metadata": {"name": "a.1", "namespace": "b", "labels": {"x": "y"}},
            "involvedObject": reference,
            "related": {"kind": "Pod", "name": "p"},
            "reason": "Created", "message": "Created pod: p", "type": "Normal", "action": "Create",
            "reportingComponent": "stint.dev/controller", "reportingInstance": "one",
            "source": {"component": "job-controller", "host": "here"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z",
            "count": 2,
            "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.000007Z"},
        }))
        .expect("an Event");
        let shown = to_events_v1(event.clone());
        assert_eq!(shown.note.as_deref(), Some("Created pod: p"));
        assert_eq!(shown.reporting_controller.as_deref(), Some("stint.dev/controller"));
        assert_eq!(serde_json::to_value(&shown.regarding).expect("JSON"), reference);
        assert_eq!(shown.deprecated_count, Some(2));
        assert_eq!(from_events_v1(shown), event);
    }

    #[test]
    fn a_series_that_was_never_observed_comes_back_so() {
        let event: Event = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "b"}, "involvedObject": {},
            "series": {"count": 2},
        }))
        .expect("an Event");
        assert_eq!(from_events_v1(to_events_v1(event.clone())), event);
    }

    #[test]
    fn an_event_is_selected_by_its_object_and_its_reporter() {
        let mut event: Event = serde_json::from_value(json!({
            "metadata": {"name": "a.1", "namespace": "b"},
            "involvedObject": {"kind": "Job", "name": "a", "namespace": "b", "uid": "1",
                "apiVersion": "batch/v1", "resourceVersion": "7", "fieldPath": "spec"},
            "reason": "Created", "type": "Normal", "reportingComponent": "stint.dev/controller",
        }))
        .expect("an Event");
        for (name, value) in [
            ("metadata.name", "a.1"),
            ("metadata.namespace", "b"),
            ("involvedObject.kind", "Job"),
            ("involvedObject.name", "a"),
            ("involvedObject.namespace", "b"),
            ("involvedObject.uid", "1"),
            ("involvedObject.apiVersion", "batch/v1"),
            ("involvedObject.resourceVersion", "7"),
            ("involvedObject.fieldPath", "spec"),
            ("reason", "Created"),
            ("type", "Normal"),
            ("reportingComponent", "stint.dev/controller"),
            ("source", "stint.dev/controller"),
        ] {
            assert_eq!(field(&event, name).as_deref(), Some(value), "{name}");
        }
        event.source.get_or_insert_default().component = Some("other".to_owned());
        assert_eq!(field(&event, "source").as_deref(), Some("other"));
        for name in ["message", "involvedObject.x", "regarding.kind"] {
            assert_eq!(field(&event, name), None, "{name}");
        }
    }
}
