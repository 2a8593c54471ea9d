//! Reading the conditions of a Job.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};

use crate::closed_set::{ConditionStatus, JobConditionType};

/// The first condition of this type.
pub fn find(conditions: &[JobCondition], kind: JobConditionType) -> Option<&JobCondition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// Whether a condition of this type has this status.
pub fn has(conditions: &[JobCondition], kind: JobConditionType, status: ConditionStatus) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == kind.as_str() && condition.status == status.as_str())
}

/// Whether a condition of this type is true.
pub fn is_true(conditions: &[JobCondition], kind: JobConditionType) -> bool {
    has(conditions, kind, ConditionStatus::True)
}

/// Whether the Job has completed or failed.
pub fn is_finished(conditions: &[JobCondition]) -> bool {
    is_true(conditions, JobConditionType::Complete) || is_true(conditions, JobConditionType::Failed)
}

/// The conditions of a status that may not be there yet.
pub fn of(status: Option<&JobStatus>) -> &[JobCondition] {
    status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str) -> JobCondition {
        JobCondition { type_: kind.to_owned(), status: status.to_owned(), ..Default::default() }
    }

    #[test]
    fn only_a_true_terminal_condition_finishes_a_job() {
        assert!(!is_finished(&[]));
        assert!(!is_finished(&[
            condition("Complete", "False"),
            condition("FailureTarget", "True")
        ]));
        assert!(is_finished(&[condition("Suspended", "False"), condition("Failed", "True")]));
        assert!(is_finished(&[condition("Complete", "True")]));
    }
}
