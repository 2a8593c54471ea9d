//! What limits a namespace: ResourceQuotas and LimitRanges.

use super::Type::{Atomic, Object, Quantity, Text};
use super::{METADATA, Message, always, list, map, one, shown};

pub(super) const RESOURCE_QUOTA: Message = &[
    METADATA,
    always(2, "spec", Object(RESOURCE_QUOTA_SPEC)),
    always(3, "status", Object(RESOURCE_QUOTA_STATUS)),
];

const RESOURCE_QUOTA_SPEC: Message = &[
    map(1, "hard", Quantity),
    list(2, "scopes", Text),
    one(3, "scopeSelector", Atomic(SCOPE_SELECTOR)),
];

const SCOPE_SELECTOR: Message = &[list(1, "matchExpressions", Object(SCOPE_REQUIREMENT))];

const SCOPE_REQUIREMENT: Message =
    &[always(1, "scopeName", Text), always(2, "operator", Text), list(3, "values", Text)];

const RESOURCE_QUOTA_STATUS: Message = &[map(1, "hard", Quantity), map(2, "used", Quantity)];

pub(super) const LIMIT_RANGE: Message = &[METADATA, always(2, "spec", Object(LIMIT_RANGE_SPEC))];

const LIMIT_RANGE_SPEC: Message = &[shown(list(1, "limits", Object(LIMIT_RANGE_ITEM)))];

const LIMIT_RANGE_ITEM: Message = &[
    always(1, "type", Text),
    map(2, "max", Quantity),
    map(3, "min", Quantity),
    map(4, "default", Quantity),
    map(5, "defaultRequest", Quantity),
    map(6, "maxLimitRequestRatio", Quantity),
];
