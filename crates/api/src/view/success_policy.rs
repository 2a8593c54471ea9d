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
    /// The indexes it looks at, those below completions; all if there is no list. A rule
    /// with an empty list is never met.
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
            .map(|rule| SuccessRule::parse(rule, completions))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }
}

impl SuccessRule {
    /// The policy is immutable, completions are not: of an elastic Job that was scaled
    /// down, only the indexes that are left count.
    fn parse(rule: &wire::SuccessPolicyRule, completions: u32) -> Result<Self, JobViewError> {
        let indexes = rule.succeeded_indexes.as_deref();
        Ok(Self {
            indexes: indexes.map(|text| IndexSet::parse_lenient(text, completions)),
            count: super::count("spec.successPolicy.rules.succeededCount", rule.succeeded_count)?,
        })
    }
}
