//! What callers ask about themselves. Of these only the questions are read: the answers are the
//! server's, whatever a client sends.

use super::Type::{Object, Text};
use super::{METADATA, Message, list, nonzero, one};

/// Every review, by its apiVersion.
pub(super) static REVIEWS: &[(&str, &str, Message)] = &[
    ("authentication.k8s.io/v1", "SelfSubjectReview", &[METADATA]),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview", SELF_SUBJECT_ACCESS_REVIEW),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview", SELF_SUBJECT_RULES_REVIEW),
];

const SELF_SUBJECT_ACCESS_REVIEW: Message =
    &[METADATA, one(2, "spec", Object(SELF_SUBJECT_ACCESS_REVIEW_SPEC))];

const SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = &[
    one(1, "resourceAttributes", Object(RESOURCE_ATTRIBUTES)),
    one(2, "nonResourceAttributes", Object(NON_RESOURCE_ATTRIBUTES)),
];

const RESOURCE_ATTRIBUTES: Message = &[
    nonzero(1, "namespace", Text),
    nonzero(2, "verb", Text),
    nonzero(3, "group", Text),
    nonzero(4, "version", Text),
    nonzero(5, "resource", Text),
    nonzero(6, "subresource", Text),
    nonzero(7, "name", Text),
    one(8, "fieldSelector", Object(SELECTOR_ATTRIBUTES)),
    one(9, "labelSelector", Object(SELECTOR_ATTRIBUTES)),
];

const NON_RESOURCE_ATTRIBUTES: Message = &[nonzero(1, "path", Text), nonzero(2, "verb", Text)];

/// Of fields or of labels: they are written the same.
const SELECTOR_ATTRIBUTES: Message =
    &[nonzero(1, "rawSelector", Text), list(2, "requirements", Object(SELECTOR_REQUIREMENT))];

const SELECTOR_REQUIREMENT: Message =
    &[one(1, "key", Text), one(2, "operator", Text), list(3, "values", Text)];

const SELF_SUBJECT_RULES_REVIEW: Message =
    &[METADATA, one(2, "spec", Object(SELF_SUBJECT_RULES_REVIEW_SPEC))];

const SELF_SUBJECT_RULES_REVIEW_SPEC: Message = &[nonzero(1, "namespace", Text)];
