//! The success policy, parsed.

use k8s_openapi::api::batch::v1 as wire;

use super::JobViewError;
use crate::index_set::IndexSet;

/// When some successes are enough: the first rule that is met decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessPolicy {
    /// The rules in order.
    pub rules: Vec<SuccessRule>,
}

/// One rule of a success policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessRule {
    /// The indexes it looks at; all if there is no list.
    pub indexes: Option<IndexSet>,
    /// How many of them must have succeeded; all of the list if there is no count.
    pub count: Option<u32>,
}

impl SuccessPolicy {
    pub(super) fn parse(
        policy: &wire::SuccessPolicy,
        completions: u32,
    ) -> Result<Self, JobViewError> {
        let rules = policy
            .rules
            .iter()
            .enumerate()
            .map(|(rule_index, rule)| SuccessRule::parse(rule, rule_index, completions))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }
}

impl SuccessRule {
    fn parse(
        rule: &wire::SuccessPolicyRule,
        rule_index: usize,
        completions: u32,
    ) -> Result<Self, JobViewError> {
        // An elastic Job may have been scaled below the indexes its immutable policy
        // names; such a rule can then never be met, and is not an error.
        let no_limit = completions.max(i32::MAX as u32);
        let indexes = rule
            .succeeded_indexes
            .as_deref()
            .map(|text| IndexSet::parse_strict(text, no_limit))
            .transpose()
            .map_err(|source| JobViewError::SucceededIndexes { rule_index, source })?;
        let count = super::count("spec.successPolicy.rules.succeededCount", rule.succeeded_count)?;
        Ok(Self { indexes, count })
    }
}
