//! The small kinds of the core, and what refers to other objects.

use super::Type::{Atomic, Bool, Bytes, Int32, Object, Text, Time};
use super::{METADATA, Message, always, bare, keyed, list, map, nonzero, one, text};

pub(super) const CONFIG_MAP: Message =
    &[METADATA, map(2, "data", Text), map(3, "binaryData", Bytes), one(4, "immutable", Bool)];

pub(super) const SECRET: Message = &[
    METADATA,
    map(2, "data", Bytes),
    nonzero(3, "type", Text),
    map(4, "stringData", Text),
    one(5, "immutable", Bool),
];

pub(super) const SERVICE_ACCOUNT: Message = &[
    METADATA,
    keyed(2, "secrets", Atomic(OBJECT_REFERENCE), &[bare("name")]),
    list(3, "imagePullSecrets", Atomic(LOCAL_OBJECT_REFERENCE)),
    one(4, "automountServiceAccountToken", Bool),
];

pub(super) const OBJECT_REFERENCE: Message = &[
    nonzero(1, "kind", Text),
    nonzero(2, "namespace", Text),
    nonzero(3, "name", Text),
    nonzero(4, "uid", Text),
    nonzero(5, "apiVersion", Text),
    nonzero(6, "resourceVersion", Text),
    nonzero(7, "fieldPath", Text),
];

pub(super) const LOCAL_OBJECT_REFERENCE: Message = &[nonzero(1, "name", Text)];

pub(super) const NAMESPACE: Message = &[
    METADATA,
    always(2, "spec", Object(NAMESPACE_SPEC)),
    always(3, "status", Object(NAMESPACE_STATUS)),
];

const NAMESPACE_SPEC: Message = &[list(1, "finalizers", Text)];

const NAMESPACE_STATUS: Message = &[
    nonzero(1, "phase", Text),
    keyed(2, "conditions", Object(NAMESPACE_CONDITION), &[text("type")]),
];

const NAMESPACE_CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    always(4, "lastTransitionTime", Time),
    nonzero(5, "reason", Text),
    nonzero(6, "message", Text),
];

pub(super) const ENDPOINTS: Message = &[METADATA, list(2, "subsets", Object(ENDPOINT_SUBSET))];

const ENDPOINT_SUBSET: Message = &[
    list(1, "addresses", Atomic(ENDPOINT_ADDRESS)),
    list(2, "notReadyAddresses", Atomic(ENDPOINT_ADDRESS)),
    list(3, "ports", Atomic(ENDPOINT_PORT)),
];

const ENDPOINT_ADDRESS: Message = &[
    always(1, "ip", Text),
    one(2, "targetRef", Atomic(OBJECT_REFERENCE)),
    nonzero(3, "hostname", Text),
    one(4, "nodeName", Text),
];

const ENDPOINT_PORT: Message = &[
    nonzero(1, "name", Text),
    always(2, "port", Int32),
    nonzero(3, "protocol", Text),
    one(4, "appProtocol", Text),
];

pub(super) const BINDING: Message = &[METADATA, always(2, "target", Atomic(OBJECT_REFERENCE))];

pub(super) const TYPED_LOCAL_OBJECT_REFERENCE: Message =
    &[one(1, "apiGroup", Text), always(2, "kind", Text), always(3, "name", Text)];

pub(super) const TYPED_OBJECT_REFERENCE: Message = &[
    one(1, "apiGroup", Text),
    always(2, "kind", Text),
    always(3, "name", Text),
    one(4, "namespace", Text),
];
