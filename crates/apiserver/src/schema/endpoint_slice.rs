//! EndpointSlices.

use super::Type::{Atomic, Bool, Int32, Object, Text};
use super::core::OBJECT_REFERENCE;
use super::{METADATA, Message, always, list, map, one, set, shown};

pub(super) const ENDPOINT_SLICE: Message = &[
    METADATA,
    shown(list(2, "endpoints", Object(ENDPOINT))),
    shown(list(3, "ports", Atomic(ENDPOINT_PORT))),
    always(4, "addressType", Text),
];

const ENDPOINT: Message = &[
    shown(set(1, "addresses", Text)),
    always(2, "conditions", Object(ENDPOINT_CONDITIONS)),
    one(3, "hostname", Text),
    one(4, "targetRef", Atomic(OBJECT_REFERENCE)),
    map(5, "deprecatedTopology", Text),
    one(6, "nodeName", Text),
    one(7, "zone", Text),
    one(8, "hints", Object(ENDPOINT_HINTS)),
];

const ENDPOINT_CONDITIONS: Message =
    &[one(1, "ready", Bool), one(2, "serving", Bool), one(3, "terminating", Bool)];

const ENDPOINT_HINTS: Message =
    &[list(1, "forZones", Object(FOR_ZONE)), list(2, "forNodes", Object(FOR_NODE))];

const FOR_ZONE: Message = &[always(1, "name", Text)];

const FOR_NODE: Message = &[always(1, "name", Text)];

const ENDPOINT_PORT: Message = &[
    one(1, "name", Text),
    one(2, "protocol", Text),
    one(3, "port", Int32),
    one(4, "appProtocol", Text),
];
