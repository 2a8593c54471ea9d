//! What is wrong with a success policy.

use k8s_openapi::api::batch::v1::{SuccessPolicy, SuccessPolicyRule};

use super::validate_non_negative;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::index_set::IndexSet;

/// The most rules a policy may have.
const MAX_RULES: usize = 20;
/// The longest list of indexes a rule may have, so that twenty of them still fit into
/// an object (KEP-3998, "Risks and Mitigations").
const MAX_SUCCEEDED_INDEXES_BYTES: usize = 64 * 1024;

/// Validates the success policy of an Indexed Job. Without completions, which is an
/// error of its own, the rules that depend on them are not judged.
pub(super) fn validate_success_policy(
    policy: &SuccessPolicy,
    completions: Option<i32>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let rules = path.child("rules");
    if policy.rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&rules, detail));
    }
    if policy.rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&rules, policy.rules.len(), MAX_RULES));
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        validate_rule(rule, completions, &rules.index(index), errors);
    }
}

fn validate_rule(
    rule: &SuccessPolicyRule,
    completions: Option<i32>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let listed = rule.succeeded_indexes.as_deref().map(|indexes| {
        validate_indexes(indexes, completions, &path.child("succeededIndexes"), errors)
    });
    if let Some(count) = rule.succeeded_count {
        validate_count(count, completions, listed, &path.child("succeededCount"), errors);
    }
}

/// Returns how many indexes are listed; none if the list cannot be read.
fn validate_indexes(
    indexes: &str,
    completions: Option<i32>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> u64 {
    if indexes.len() > MAX_SUCCEEDED_INDEXES_BYTES {
        errors.push(FieldError::too_long(path, MAX_SUCCEEDED_INDEXES_BYTES));
    }
    let limit = completions.map_or(i32::MAX as u32, |count| u32::try_from(count).unwrap_or(0));
    match IndexSet::parse_strict(indexes, limit) {
        Ok(set) => set.count(),
        Err(error) => {
            let detail = format!("error parsing succeededIndexes: {error}");
            errors.push(FieldError::invalid(path, indexes, detail));
            0
        }
    }
}

fn validate_count(
    count: i32,
    completions: Option<i32>,
    listed: Option<u64>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_non_negative(i64::from(count), path, errors);
    if let Some(completions) = completions.filter(|&completions| count > completions) {
        let detail = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        errors.push(FieldError::invalid(path, count, detail));
    }
    if let Some(listed) = listed.filter(|&listed| i64::from(count) > listed as i64) {
        let detail = format!(
            "must be less than or equal to {listed} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(FieldError::invalid(path, count, detail));
    }
}
