//! Events, the old ones of the core and those of events.k8s.io.

use super::Type::{Atomic, Int32, MicroTime, Object, Text, Time};
use super::core::OBJECT_REFERENCE;
use super::{METADATA, Message, always, nonzero, one};

pub(super) const CORE_EVENT: Message = &[
    METADATA,
    always(2, "involvedObject", Atomic(OBJECT_REFERENCE)),
    nonzero(3, "reason", Text),
    nonzero(4, "message", Text),
    always(5, "source", Object(EVENT_SOURCE)),
    always(6, "firstTimestamp", Time),
    always(7, "lastTimestamp", Time),
    nonzero(8, "count", Int32),
    nonzero(9, "type", Text),
    always(10, "eventTime", MicroTime),
    one(11, "series", Object(CORE_EVENT_SERIES)),
    nonzero(12, "action", Text),
    one(13, "related", Atomic(OBJECT_REFERENCE)),
    always(14, "reportingComponent", Text),
    always(15, "reportingInstance", Text),
];

const EVENT_SOURCE: Message = &[nonzero(1, "component", Text), nonzero(2, "host", Text)];

const CORE_EVENT_SERIES: Message =
    &[nonzero(1, "count", Int32), always(2, "lastObservedTime", MicroTime)];

pub(super) const EVENT: Message = &[
    METADATA,
    always(2, "eventTime", MicroTime),
    one(3, "series", Object(EVENT_SERIES)),
    nonzero(4, "reportingController", Text),
    nonzero(5, "reportingInstance", Text),
    nonzero(6, "action", Text),
    nonzero(7, "reason", Text),
    always(8, "regarding", Atomic(OBJECT_REFERENCE)),
    one(9, "related", Atomic(OBJECT_REFERENCE)),
    nonzero(10, "note", Text),
    nonzero(11, "type", Text),
    always(12, "deprecatedSource", Object(EVENT_SOURCE)),
    always(13, "deprecatedFirstTimestamp", Time),
    always(14, "deprecatedLastTimestamp", Time),
    nonzero(15, "deprecatedCount", Int32),
];

const EVENT_SERIES: Message =
    &[always(1, "count", Int32), always(2, "lastObservedTime", MicroTime)];
