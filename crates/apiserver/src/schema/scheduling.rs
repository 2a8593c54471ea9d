//! Where a Pod may run: affinity, spread and tolerations.

use super::Type::{Atomic, Int32, Int64, Object, Text, Time};
use super::meta::LABEL_SELECTOR;
use super::{Message, always, list, nonzero, one, shown};

pub(super) const AFFINITY: Message = &[
    one(1, "nodeAffinity", Object(NODE_AFFINITY)),
    one(2, "podAffinity", Object(POD_AFFINITY)),
    one(3, "podAntiAffinity", Object(POD_ANTI_AFFINITY)),
];

const NODE_AFFINITY: Message = &[
    one(1, "requiredDuringSchedulingIgnoredDuringExecution", Atomic(NODE_SELECTOR)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(PREFERRED_SCHEDULING_TERM)),
];

pub(super) const NODE_SELECTOR: Message =
    &[shown(list(1, "nodeSelectorTerms", Atomic(NODE_SELECTOR_TERM)))];

pub(super) const NODE_SELECTOR_TERM: Message = &[
    list(1, "matchExpressions", Object(NODE_SELECTOR_REQUIREMENT)),
    list(2, "matchFields", Object(NODE_SELECTOR_REQUIREMENT)),
];

const NODE_SELECTOR_REQUIREMENT: Message =
    &[always(1, "key", Text), always(2, "operator", Text), list(3, "values", Text)];

const PREFERRED_SCHEDULING_TERM: Message =
    &[always(1, "weight", Int32), always(2, "preference", Atomic(NODE_SELECTOR_TERM))];

const POD_AFFINITY: Message = &[
    list(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(POD_AFFINITY_TERM)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(WEIGHTED_POD_AFFINITY_TERM)),
];

const POD_AFFINITY_TERM: Message = &[
    one(1, "labelSelector", Atomic(LABEL_SELECTOR)),
    list(2, "namespaces", Text),
    always(3, "topologyKey", Text),
    one(4, "namespaceSelector", Atomic(LABEL_SELECTOR)),
    list(5, "matchLabelKeys", Text),
    list(6, "mismatchLabelKeys", Text),
];

const WEIGHTED_POD_AFFINITY_TERM: Message =
    &[always(1, "weight", Int32), always(2, "podAffinityTerm", Object(POD_AFFINITY_TERM))];

const POD_ANTI_AFFINITY: Message = &[
    list(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(POD_AFFINITY_TERM)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(WEIGHTED_POD_AFFINITY_TERM)),
];

pub(super) const TOPOLOGY_SPREAD_CONSTRAINT: Message = &[
    always(1, "maxSkew", Int32),
    always(2, "topologyKey", Text),
    always(3, "whenUnsatisfiable", Text),
    one(4, "labelSelector", Atomic(LABEL_SELECTOR)),
    one(5, "minDomains", Int32),
    one(6, "nodeAffinityPolicy", Text),
    one(7, "nodeTaintsPolicy", Text),
    list(8, "matchLabelKeys", Text),
];

pub(super) const TOLERATION: Message = &[
    nonzero(1, "key", Text),
    nonzero(2, "operator", Text),
    nonzero(3, "value", Text),
    nonzero(4, "effect", Text),
    one(5, "tolerationSeconds", Int64),
];

pub(super) const TAINT: Message = &[
    always(1, "key", Text),
    nonzero(2, "value", Text),
    always(3, "effect", Text),
    one(4, "timeAdded", Time),
];
