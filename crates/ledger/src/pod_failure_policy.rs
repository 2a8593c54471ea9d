//! What the Pod failure policy says about a failed Pod.

use stint_api::closed_set::PodFailurePolicyAction;
use stint_api::names::message;
use stint_api::view::{ExitCodeRequirement, PodFailurePolicy, PodFailureRequirement};

use crate::pod_facts::{ContainerExit, PodCondition, PodFacts};

/// What a failure means for the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts, as without a policy; `by_rule` if a rule said so.
    Count {
        /// Whether a Count rule matched.
        by_rule: bool,
    },
    /// It does not count.
    Ignore,
    /// It does not count, nothing waits for it, and no rule of the Job said so: the node went
    /// down, and the controller has been told that this is nobody's fault.
    Forgive,
    /// It counts, and its index has failed.
    FailIndex,
    /// It counts, and the Job fails with this message.
    FailJob(String),
}

impl Verdict {
    /// Whether the failure counts towards the limits.
    pub fn counts(&self) -> bool {
        match self {
            Verdict::Count { .. } | Verdict::FailIndex | Verdict::FailJob(_) => true,
            Verdict::Ignore | Verdict::Forgive => false,
        }
    }

    /// The action of the rule that matched, for the metrics.
    pub fn action(&self) -> Option<PodFailurePolicyAction> {
        match self {
            Verdict::Count { by_rule: false } | Verdict::Forgive => None,
            Verdict::Count { by_rule: true } => Some(PodFailurePolicyAction::Count),
            Verdict::Ignore => Some(PodFailurePolicyAction::Ignore),
            Verdict::FailIndex => Some(PodFailurePolicyAction::FailIndex),
            Verdict::FailJob(_) => Some(PodFailurePolicyAction::FailJob),
        }
    }
}

/// Judges a failed Pod: the first rule that matches decides. With
/// `fail_index_is_on` false (the feature gate is off) FailIndex rules match nothing.
pub fn judge(
    policy: &PodFailurePolicy,
    namespace: &str,
    pod: &PodFacts,
    fail_index_is_on: bool,
) -> Verdict {
    for (rule_index, rule) in policy.rules.iter().enumerate() {
        let Some(found) = find(&rule.requirement, pod) else {
            continue;
        };
        match rule.action {
            PodFailurePolicyAction::Count => return Verdict::Count { by_rule: true },
            PodFailurePolicyAction::Ignore => return Verdict::Ignore,
            PodFailurePolicyAction::FailIndex if fail_index_is_on => return Verdict::FailIndex,
            PodFailurePolicyAction::FailIndex => {}
            PodFailurePolicyAction::FailJob => {
                return Verdict::FailJob(found.message(namespace, &pod.name, rule_index));
            }
        }
    }
    Verdict::Count { by_rule: false }
}

/// What made a rule match.
enum Found<'a> {
    Exit(&'a ContainerExit),
    Condition(&'a PodCondition),
}

impl Found<'_> {
    fn message(&self, namespace: &str, pod: &str, rule_index: usize) -> String {
        match self {
            Found::Exit(exit) => {
                message::failed_by_exit_code(&exit.name, namespace, pod, exit.exit_code, rule_index)
            }
            Found::Condition(condition) => {
                message::failed_by_condition(namespace, pod, &condition.condition_type, rule_index)
            }
        }
    }
}

fn find<'a>(requirement: &PodFailureRequirement, pod: &'a PodFacts) -> Option<Found<'a>> {
    match requirement {
        PodFailureRequirement::OnExitCodes(codes) => {
            pod.exits.iter().find(|exit| is_meant(codes, exit)).map(Found::Exit)
        }
        PodFailureRequirement::OnPodConditions(patterns) => pod
            .conditions
            .iter()
            .find(|condition| {
                patterns.iter().any(|pattern| {
                    pattern.condition_type == condition.condition_type
                        && pattern.status.as_str() == condition.status
                })
            })
            .map(Found::Condition),
    }
}

fn is_meant(codes: &ExitCodeRequirement, exit: &ContainerExit) -> bool {
    codes.container.as_ref().is_none_or(|name| *name == exit.name) && codes.matches(exit.exit_code)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stint_api::view::JobView;

    use super::*;

    /// Judges a Pod by rules in the form of a manifest.
    fn verdict(rules: Value, status: Value, fail_index_is_on: bool) -> Verdict {
        let job = json!({
            "metadata": {"name": "j", "uid": "u"},
            "spec": {
                "selector": {}, "podFailurePolicy": {"rules": rules},
                "template": {"spec": {"restartPolicy": "Never", "containers": []}},
            },
        });
        let job = serde_json::from_value(job).expect("the test's own Job is well typed");
        let policy = JobView::parse(&job).expect("a Job").failure_policy.expect("a policy");
        let pod = json!({"metadata": {"name": "p"}, "status": status});
        let pod = serde_json::from_value(pod).expect("the test's own Pod is well typed");
        judge(&policy, "ns", &PodFacts::of(&pod, "f"), fail_index_is_on)
    }

    fn exited(codes: &[(&str, i32)]) -> Value {
        let status = |&(name, code): &(&str, i32)| {
            json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                   "state": {"terminated": {"exitCode": code}}})
        };
        json!({"containerStatuses": codes.iter().map(status).collect::<Vec<_>>()})
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = json!([
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3, 4]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [5]}},
        ]);
        let on = |code: i32| verdict(rules.clone(), exited(&[("a", code)]), true);
        assert_eq!(on(3), Verdict::Ignore);
        let message =
            "Container a for pod ns/p failed with exit code 4 matching FailJob rule at index 1";
        assert_eq!(on(4), Verdict::FailJob(message.to_owned()));
        assert_eq!(on(9), Verdict::Count { by_rule: true });
        assert_eq!(on(5), Verdict::Count { by_rule: false });
    }

    #[test]
    fn a_container_that_ended_well_matches_nothing() {
        let rules =
            json!([{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1]}}]);
        assert_eq!(
            verdict(rules.clone(), exited(&[("a", 0)]), true),
            Verdict::Count { by_rule: false }
        );
        let both = verdict(rules, exited(&[("a", 0), ("b", 2)]), true);
        assert!(matches!(both, Verdict::FailJob(message) if message.starts_with("Container b ")));
    }

    #[test]
    fn a_named_container_is_the_only_one_looked_at() {
        let rules = json!([
            {"action": "Ignore", "onExitCodes": {"containerName": "b", "operator": "In", "values": [1]}},
        ]);
        let on = |codes: &[(&str, i32)]| verdict(rules.clone(), exited(codes), true);
        assert_eq!(on(&[("a", 1), ("b", 2)]), Verdict::Count { by_rule: false });
        assert_eq!(on(&[("a", 2), ("b", 1)]), Verdict::Ignore);
    }

    #[test]
    fn a_condition_matches_by_type_and_status() {
        let rules =
            json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]);
        let on = |status: &str| {
            let conditions = json!([{"type": "DisruptionTarget", "status": status}]);
            verdict(rules.clone(), json!({"conditions": conditions}), true)
        };
        let message = "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0";
        assert_eq!(on("True"), Verdict::FailJob(message.to_owned()));
        assert_eq!(on("False"), Verdict::Count { by_rule: false });
    }

    #[test]
    fn a_fail_index_rule_is_passed_over_while_its_gate_is_off() {
        let rules = json!([
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}},
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}},
        ]);
        assert_eq!(verdict(rules.clone(), exited(&[("a", 1)]), true), Verdict::FailIndex);
        assert_eq!(verdict(rules, exited(&[("a", 1)]), false), Verdict::Ignore);
    }

    #[test]
    fn only_an_ignored_failure_does_not_count() {
        assert!(!Verdict::Ignore.counts());
        for verdict in
            [Verdict::Count { by_rule: false }, Verdict::FailIndex, Verdict::FailJob(String::new())]
        {
            assert!(verdict.counts(), "{verdict:?}");
        }
    }
}
