//! Events as rows. An Event of events.k8s.io is printed as the core Event it is stored as.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, NAME, duration, or, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    Column::new(
        "Last Seen",
        "The time at which the most recent occurrence of this event was recorded.",
    ),
    Column::new(
        "Type",
        "Type of this event (Normal, Warning), new types could be added in the future",
    ),
    Column::new(
        "Reason",
        "This should be a short, machine understandable string that gives the reason for the \
         transition into the object's current status.",
    ),
    Column::new("Object", "The object that this event is about."),
    Column::wide(
        "Subobject",
        "If referring to a piece of an object instead of an entire object, this string should \
         contain a valid JSON/Go field access statement, such as \
         desiredState.manifest.containers[2]. For example, if the object reference is to a \
         container within a pod, this would take on a value like: \"spec.containers{name}\" \
         (where \"name\" refers to the name of the container that triggered the event) or if no \
         container name is specified \"spec.containers[2]\" (container with index 2 in this \
         pod). This syntax is chosen only to have some well-defined way of referencing a part of \
         an object.",
    ),
    Column::wide(
        "Source",
        "The component reporting this event. Should be a short machine understandable string.",
    ),
    Column::new("Message", "A human-readable description of the status of this operation."),
    Column::wide(
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in \
         TypeMeta.)",
    ),
    Column::wide("Count", "The number of times this event has occurred."),
    Column { priority: 1, ..NAME },
];

/// The cells of an Event.
pub fn cells(event: &Event, now: Timestamp) -> Vec<Value> {
    let report = Report {
        metadata: &event.metadata,
        event_type: text(&event.type_),
        reason: text(&event.reason),
        message: text(&event.message),
        about: Some(&event.involved_object),
        source: event.source.as_ref(),
        controller: text(&event.reporting_component),
        instance: text(&event.reporting_instance),
        first: event.first_timestamp.as_ref(),
        last: event.last_timestamp.as_ref(),
        at: event.event_time.as_ref(),
        count: event.count.unwrap_or(0),
        series: event.series.as_ref().map(|series| Series {
            count: series.count.unwrap_or(0),
            last: series.last_observed_time.as_ref(),
        }),
    };
    report.cells(now)
}

/// What both kinds of Events say.
pub(super) struct Report<'a> {
    pub(super) metadata: &'a ObjectMeta,
    pub(super) event_type: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) about: Option<&'a ObjectReference>,
    pub(super) source: Option<&'a EventSource>,
    pub(super) controller: &'a str,
    pub(super) instance: &'a str,
    pub(super) first: Option<&'a Time>,
    pub(super) last: Option<&'a Time>,
    pub(super) at: Option<&'a MicroTime>,
    pub(super) count: i32,
    pub(super) series: Option<Series<'a>>,
}

/// An Event that happened again and again.
pub(super) struct Series<'a> {
    pub(super) count: i32,
    pub(super) last: Option<&'a MicroTime>,
}

impl Report<'_> {
    pub(super) fn cells(&self, now: Timestamp) -> Vec<Value> {
        let first_seen = if is_set(self.first) {
            duration::since(self.first, now)
        } else {
            duration::since_micro(self.at, now)
        };
        let last_seen = match &self.series {
            Some(series) => duration::since_micro(series.last, now),
            None if is_set(self.last) => duration::since(self.last, now),
            None => first_seen.clone(),
        };
        let count = match &self.series {
            Some(series) => series.count,
            // An Event that happened once has no count in the newer API.
            None if self.count == 0 => 1,
            None => self.count,
        };
        vec![
            json!(last_seen),
            json!(self.event_type),
            json!(self.reason),
            json!(self.object()),
            json!(self.about.map_or("", |about| text(&about.field_path))),
            json!(self.source()),
            json!(self.message.trim()),
            json!(first_seen),
            json!(count),
            json!(text(&self.metadata.name)),
        ]
    }

    fn object(&self) -> String {
        let Some(about) = self.about else {
            return String::new();
        };
        let kind = text(&about.kind).to_lowercase();
        match text(&about.name) {
            "" => kind,
            name => format!("{kind}/{name}"),
        }
    }

    fn source(&self) -> String {
        let field = |of: fn(&EventSource) -> &Option<String>| {
            self.source.map_or("", |source| text(of(source)))
        };
        let component = or(field(|source| &source.component), self.controller);
        match or(field(|source| &source.host), self.instance) {
            "" => component.to_owned(),
            instance => format!("{component}, {instance}"),
        }
    }
}

fn is_set(time: Option<&Time>) -> bool {
    time.is_some_and(|time| duration::is_set(time.0))
}
