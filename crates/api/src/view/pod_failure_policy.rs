//! The Pod failure policy, parsed.

use k8s_openapi::api::batch::v1 as wire;

use super::{JobViewError, known};
use crate::closed_set::{ConditionStatus, ExitCodeOperator, PodFailurePolicyAction};

/// What to do about particular failures: the first rule that matches decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailurePolicy {
    /// The rules in order.
    pub rules: Vec<PodFailureRule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailureRule {
    /// What it does.
    pub action: PodFailurePolicyAction,
    /// Which failures it is about.
    pub requirement: PodFailureRequirement,
}

/// Which failures a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodFailureRequirement {
    /// Those with certain exit codes.
    OnExitCodes(ExitCodeRequirement),
    /// Those of Pods with any of certain conditions.
    OnPodConditions(Vec<ConditionPattern>),
}

/// Certain exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCodeRequirement {
    /// The container whose exit code is looked at; all if none is named.
    pub container: Option<String>,
    /// How the exit code is compared.
    pub operator: ExitCodeOperator,
    /// What it is compared with, in increasing order.
    pub values: Vec<i32>,
}

/// A Pod condition to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionPattern {
    /// Its type.
    pub condition_type: String,
    /// Its status.
    pub status: ConditionStatus,
}

impl PodFailurePolicy {
    pub(super) fn parse(policy: &wire::PodFailurePolicy) -> Result<Self, JobViewError> {
        let rules = policy.rules.iter().map(PodFailureRule::parse).collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }
}

impl PodFailureRule {
    fn parse(rule: &wire::PodFailurePolicyRule) -> Result<Self, JobViewError> {
        const ACTION: &str = "spec.podFailurePolicy.rules.action";
        let action = known(ACTION, &rule.action, PodFailurePolicyAction::parse)?;
        let requirement = match &rule.on_exit_codes {
            Some(codes) => PodFailureRequirement::OnExitCodes(ExitCodeRequirement::parse(codes)?),
            None => PodFailureRequirement::OnPodConditions(
                rule.on_pod_conditions
                    .iter()
                    .flatten()
                    .map(ConditionPattern::parse)
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Self { action, requirement })
    }
}

impl ExitCodeRequirement {
    fn parse(codes: &wire::PodFailurePolicyOnExitCodesRequirement) -> Result<Self, JobViewError> {
        const OPERATOR: &str = "spec.podFailurePolicy.rules.onExitCodes.operator";
        Ok(Self {
            container: codes.container_name.clone(),
            operator: known(OPERATOR, &codes.operator, ExitCodeOperator::parse)?,
            values: codes.values.clone(),
        })
    }

    /// Whether a failed container's exit code is one of those. 0 never is.
    pub fn matches(&self, exit_code: i32) -> bool {
        // Validation demands increasing order.
        let listed = self.values.binary_search(&exit_code).is_ok();
        match self.operator {
            ExitCodeOperator::In => listed && exit_code != 0,
            ExitCodeOperator::NotIn => !listed && exit_code != 0,
        }
    }
}

impl ConditionPattern {
    fn parse(pattern: &wire::PodFailurePolicyOnPodConditionsPattern) -> Result<Self, JobViewError> {
        const STATUS: &str = "spec.podFailurePolicy.rules.onPodConditions.status";
        let status = match pattern.status.as_deref() {
            // A pattern without a status means True (job-semantics section 2).
            None | Some("") => ConditionStatus::True,
            Some(text) => known(STATUS, text, ConditionStatus::parse)?,
        };
        Ok(Self { condition_type: pattern.type_.clone(), status })
    }
}
