//! Where a Pod may run: affinity, spread and tolerations.

use super::Type::{Int32, Int64, Object, Text, Time};
use super::meta::LABEL_SELECTOR;
use super::{Message, list, nonzero, one};

pub(super) const AFFINITY: Message = &[
    one(1, "nodeAffinity", Object(NODE_AFFINITY)),
    one(2, "podAffinity", Object(POD_AFFINITY)),
    one(3, "podAntiAffinity", Object(POD_ANTI_AFFINITY)),
];

const NODE_AFFINITY: Message = &[
    one(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(NODE_SELECTOR)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(PREFERRED_SCHEDULING_TERM)),
];

pub(super) const NODE_SELECTOR: Message =
    &[list(1, "nodeSelectorTerms", Object(NODE_SELECTOR_TERM))];

pub(super) const NODE_SELECTOR_TERM: Message = &[
    list(1, "matchExpressions", Object(NODE_SELECTOR_REQUIREMENT)),
    list(2, "matchFields", Object(NODE_SELECTOR_REQUIREMENT)),
];

const NODE_SELECTOR_REQUIREMENT: Message =
    &[one(1, "key", Text), one(2, "operator", Text), list(3, "values", Text)];

const PREFERRED_SCHEDULING_TERM: Message =
    &[one(1, "weight", Int32), one(2, "preference", Object(NODE_SELECTOR_TERM))];

const POD_AFFINITY: Message = &[
    list(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(POD_AFFINITY_TERM)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(WEIGHTED_POD_AFFINITY_TERM)),
];

const POD_AFFINITY_TERM: Message = &[
    one(1, "labelSelector", Object(LABEL_SELECTOR)),
    list(2, "namespaces", Text),
    one(3, "topologyKey", Text),
    one(4, "namespaceSelector", Object(LABEL_SELECTOR)),
    list(5, "matchLabelKeys", Text),
    list(6, "mismatchLabelKeys", Text),
];

const WEIGHTED_POD_AFFINITY_TERM: Message =
    &[one(1, "weight", Int32), one(2, "podAffinityTerm", Object(POD_AFFINITY_TERM))];

const POD_ANTI_AFFINITY: Message = &[
    list(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(POD_AFFINITY_TERM)),
    list(2, "preferredDuringSchedulingIgnoredDuringExecution", Object(WEIGHTED_POD_AFFINITY_TERM)),
];

pub(super) const TOPOLOGY_SPREAD_CONSTRAINT: Message = &[
    one(1, "maxSkew", Int32),
    one(2, "topologyKey", Text),
    one(3, "whenUnsatisfiable", Text),
    one(4, "labelSelector", Object(LABEL_SELECTOR)),
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
    one(1, "key", Text),
    nonzero(2, "value", Text),
    one(3, "effect", Text),
    one(4, "timeAdded", Time),
];
