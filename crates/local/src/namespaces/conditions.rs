//! What a namespace that is being deleted says of itself: upstream's five conditions, in its
//! words.

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::contents::Remaining;

/// A condition as it is when nothing is wrong.
struct Good {
    kind: &'static str,
    reason: &'static str,
    message: &'static str,
}

const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
const CONTENT_REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";

/// All of them, in the order in which upstream writes them. The first two can be nothing but
/// good here: the kinds are known, not discovered.
const GOOD: [Good; 5] = [
    Good {
        kind: "NamespaceDeletionDiscoveryFailure",
        reason: "ResourcesDiscovered",
        message: "All resources successfully discovered",
    },
    Good {
        kind: "NamespaceDeletionGroupVersionParsingFailure",
        reason: "ParsedGroupVersions",
        message: "All legacy kube types successfully parsed",
    },
    Good {
        kind: CONTENT_FAILURE,
        reason: "ContentDeleted",
        message: "All content successfully deleted, may be waiting on finalization",
    },
    Good {
        kind: CONTENT_REMAINING,
        reason: "ContentRemoved",
        message: "All content successfully removed",
    },
    Good {
        kind: FINALIZERS_REMAINING,
        reason: "ContentHasNoFinalizers",
        message: "All content-preserving finalizers finished",
    },
];

/// Brings the conditions up to date. `true` if they have changed.
pub(super) fn update(
    conditions: &mut Vec<NamespaceCondition>,
    remaining: &Remaining,
    now: &Time,
) -> bool {
    let mut has_changed = false;
    for good in &GOOD {
        let new = bad(good.kind, remaining).unwrap_or_else(|| condition(good, "False"));
        match conditions.iter_mut().find(|old| old.type_ == good.kind) {
            None => {
                let last_transition_time = Some(now.clone());
                conditions.push(NamespaceCondition { last_transition_time, ..new });
                has_changed = true;
            }
            Some(old)
                if (&old.status, &old.reason, &old.message)
                    != (&new.status, &new.reason, &new.message) =>
            {
                let is_same_status = old.status == new.status;
                let since = if is_same_status { old.last_transition_time.take() } else { None };
                let last_transition_time = since.or_else(|| Some(now.clone()));
                *old = NamespaceCondition { last_transition_time, ..new };
                has_changed = true;
            }
            Some(_) => {}
        }
    }
    has_changed
}

/// The condition if something is wrong.
fn bad(kind: &'static str, remaining: &Remaining) -> Option<NamespaceCondition> {
    let (reason, message) = match kind {
        CONTENT_FAILURE if !remaining.errors.is_empty() => {
            let mut errors = remaining.errors.clone();
            errors.sort();
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                errors.len(),
                errors.join(", ")
            );
            ("ContentDeletionFailed", message)
        }
        CONTENT_REMAINING if !remaining.kinds.is_empty() => {
            let mut kinds: Vec<String> = remaining
                .kinds
                .iter()
                .map(|left| {
                    let names = left.names;
                    // Upstream writes the dot without a group, too.
                    format!(
                        "{}.{} has {} resource instances",
                        names.plural, names.group, left.count
                    )
                })
                .collect();
            kinds.sort();
            let message = format!("Some resources are remaining: {}", kinds.join(", "));
            ("SomeResourcesRemain", message)
        }
        FINALIZERS_REMAINING if !remaining.finalizers.is_empty() => {
            let finalizers: Vec<String> = remaining
                .finalizers
                .iter()
                .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
                .collect();
            let message = format!(
                "Some content in the namespace has finalizers remaining: {}",
                finalizers.join(", ")
            );
            ("SomeFinalizersRemain", message)
        }
        _ => return None,
    };
    let bad = Good { kind, reason, message: "" };
    Some(NamespaceCondition { message: Some(message), ..condition(&bad, "True") })
}

fn condition(good: &Good, status: &str) -> NamespaceCondition {
    NamespaceCondition {
        last_transition_time: None,
        message: Some(good.message.to_owned()),
        reason: Some(good.reason.to_owned()),
        status: status.to_owned(),
        type_: good.kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::contents::Left;
    use jiff::Timestamp;
    use std::collections::BTreeMap;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).expect("a time"))
    }

    fn lines(conditions: &[NamespaceCondition]) -> String {
        let line = |condition: &NamespaceCondition| {
            let NamespaceCondition { type_, status, message, last_transition_time, .. } = condition;
            let since = last_transition_time.as_ref().map_or(-1, |time| time.0.as_second());
            format!("{since} {type_}={status}: {}\n", message.as_deref().unwrap_or(""))
        };
        conditions.iter().skip(2).map(line).collect()
    }

    #[test]
    fn conditions_say_what_remains_and_since_when() {
        let names = crate::resource::namespaced().next().expect("there is one");
        assert_eq!(names.plural, "configmaps");
        let mut remaining = Remaining {
            kinds: vec![Left { names, count: 2, version: String::new() }],
            finalizers: BTreeMap::from([("example.com/hold".to_owned(), 2)]),
            errors: Vec::new(),
        };
        let mut conditions = Vec::new();
        assert!(update(&mut conditions, &remaining, &at(1)));
        assert!(!update(&mut conditions, &remaining, &at(2)));
        remaining.kinds[0].count = 1;
        remaining.finalizers.clear();
        remaining.errors = vec!["b".to_owned(), "a".to_owned()];
        assert!(update(&mut conditions, &remaining, &at(3)));
        assert_eq!(
            lines(&conditions),
            "3 NamespaceDeletionContentFailure=True: Failed to delete all resource types, 2 \
             remaining: a, b\n\
             1 NamespaceContentRemaining=True: Some resources are remaining: configmaps. has 1 \
             resource instances\n\
             3 NamespaceFinalizersRemaining=False: All content-preserving finalizers finished\n"
        );
        assert!(update(&mut conditions, &Remaining::default(), &at(4)));
        assert!(conditions.iter().all(|condition| condition.status == "False"));
        assert_eq!(conditions.len(), 5);
    }
}
