//! Metadata, selectors, conditions, and the options of requests.

use super::Type::{Atomic, Bool, Int64, Object, RawJson, Text, Time};
use super::{METADATA, Message, always, keyed, list, map, nonzero, one, set, text};

pub(super) const OBJECT_META: Message = &[
    nonzero(1, "name", Text),
    nonzero(2, "generateName", Text),
    nonzero(3, "namespace", Text),
    nonzero(4, "selfLink", Text),
    nonzero(5, "uid", Text),
    nonzero(6, "resourceVersion", Text),
    nonzero(7, "generation", Int64),
    nonzero(8, "creationTimestamp", Time),
    one(9, "deletionTimestamp", Time),
    one(10, "deletionGracePeriodSeconds", Int64),
    map(11, "labels", Text),
    map(12, "annotations", Text),
    keyed(13, "ownerReferences", Atomic(OWNER_REFERENCE), &[text("uid")]),
    set(14, "finalizers", Text),
    list(17, "managedFields", Object(MANAGED_FIELDS_ENTRY)),
];

const OWNER_REFERENCE: Message = &[
    always(1, "kind", Text),
    always(3, "name", Text),
    always(4, "uid", Text),
    always(5, "apiVersion", Text),
    one(6, "controller", Bool),
    one(7, "blockOwnerDeletion", Bool),
];

const MANAGED_FIELDS_ENTRY: Message = &[
    nonzero(1, "manager", Text),
    nonzero(2, "operation", Text),
    nonzero(3, "apiVersion", Text),
    one(4, "time", Time),
    nonzero(6, "fieldsType", Text),
    one(7, "fieldsV1", RawJson),
    nonzero(8, "subresource", Text),
];

pub(super) const LABEL_SELECTOR: Message =
    &[map(1, "matchLabels", Text), list(2, "matchExpressions", Object(LABEL_SELECTOR_REQUIREMENT))];

const LABEL_SELECTOR_REQUIREMENT: Message =
    &[always(1, "key", Text), always(2, "operator", Text), list(3, "values", Text)];

pub(super) const CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    nonzero(3, "observedGeneration", Int64),
    always(4, "lastTransitionTime", Time),
    always(5, "reason", Text),
    always(6, "message", Text),
];

pub(super) const DELETE_OPTIONS: Message = &[
    one(1, "gracePeriodSeconds", Int64),
    one(2, "preconditions", Object(PRECONDITIONS)),
    one(3, "orphanDependents", Bool),
    one(4, "propagationPolicy", Text),
    list(5, "dryRun", Text),
    one(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool),
];

const PRECONDITIONS: Message = &[one(1, "uid", Text), one(2, "resourceVersion", Text)];

pub(super) const EVICTION: Message = &[METADATA, one(2, "deleteOptions", Object(DELETE_OPTIONS))];
