//! Events of events.k8s.io as rows: the columns and cells of core Events.

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::event::{Report, Series};
use super::text;

pub use super::event::COLUMNS;

/// The cells of an Event.
pub fn cells(event: &Event, now: Timestamp) -> Vec<Value> {
    let report = Report {
        metadata: &event.metadata,
        event_type: text(&event.type_),
        reason: text(&event.reason),
        message: text(&event.note),
        about: event.regarding.as_ref(),
        source: event.deprecated_source.as_ref(),
        controller: text(&event.reporting_controller),
        instance: text(&event.reporting_instance),
        first: event.deprecated_first_timestamp.as_ref(),
        last: event.deprecated_last_timestamp.as_ref(),
        at: event.event_time.as_ref(),
        count: event.deprecated_count.unwrap_or(0),
        series: event
            .series
            .as_ref()
            .map(|series| Series { count: series.count, last: Some(&series.last_observed_time) }),
    };
    report.cells(now)
}
