//! Whether a container that has ended is started again: by the rules of the container, else by
//! its own policy, else by its Pod's (KEP-5307).

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, PodSpec};

/// When a container is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestartPolicy {
    rules: Vec<Rule>,
    otherwise: Otherwise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Otherwise {
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    is_in: bool,
    codes: Vec<i32>,
    after: After,
}

/// What follows the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It stays ended.
    Nothing,
    /// It is started again.
    Again,
    /// All containers of its Pod are, from the first (KEP-5532).
    AllAgain,
}

impl RestartPolicy {
    /// That of a container.
    pub(crate) fn of(spec: &PodSpec, container: &Container, is_init: bool) -> Self {
        let of_pod = match spec.restart_policy.as_deref() {
            Some("OnFailure") => Otherwise::OnFailure,
            Some("Never") => Otherwise::Never,
            // An init container that has done its work is done.
            _ if is_init => Otherwise::OnFailure,
            _ => Otherwise::Always,
        };
        let (otherwise, rules) = match container.restart_policy.as_deref() {
            None => return RestartPolicy { rules: Vec::new(), otherwise: of_pod },
            Some("Always") => (Otherwise::Always, &container.restart_policy_rules),
            Some("OnFailure") => (Otherwise::OnFailure, &container.restart_policy_rules),
            Some("Never") => (Otherwise::Never, &container.restart_policy_rules),
            Some(_) => (of_pod, &container.restart_policy_rules),
        };
        let rules = rules.iter().flatten().filter_map(Rule::read).collect();
        RestartPolicy { rules, otherwise }
    }

    /// What follows this exit code.
    pub(crate) fn after(&self, code: i32) -> After {
        if let Some(rule) = self.rules.iter().find(|rule| rule.matches(code)) {
            return rule.after;
        }
        let restarts = match self.otherwise {
            Otherwise::Always => true,
            Otherwise::OnFailure => code != 0,
            Otherwise::Never => false,
        };
        if restarts { After::Again } else { After::Nothing }
    }

    /// What follows this exit code if the container was stopped for a probe: it did not find its own
    /// end, so that even a success is none (`computePodActions` of a kubelet).
    pub(crate) fn after_probe(&self, code: i32) -> After {
        match self.after(code) {
            After::Nothing if !self.is_never() => After::Again,
            after => after,
        }
    }

    /// Whether nothing but a rule starts it again.
    pub(crate) fn is_never(&self) -> bool {
        self.otherwise == Otherwise::Never
    }
}

impl Rule {
    fn read(rule: &ContainerRestartRule) -> Option<Self> {
        let codes = rule.exit_codes.as_ref()?;
        let after = match rule.action.as_str() {
            "Restart" => After::Again,
            "RestartAllContainers" => After::AllAgain,
            _ => return None,
        };
        let is_in = codes.operator == "In";
        Some(Rule { is_in, codes: codes.values.clone().unwrap_or_default(), after })
    }

    fn matches(&self, code: i32) -> bool {
        self.codes.contains(&code) == self.is_in
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_come_before_the_container_and_the_container_before_the_pod() {
        let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
        let unless =
            json!([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}}]);
        // The Pod's policy, the container's, its rules, whether it is an init container, and
        // whether it is started again after 0, 1 and 42.
        let rows = [
            ("Always", json!(null), json!(null), false, [true, true, true]),
            ("Always", json!(null), json!(null), true, [false, true, true]),
            ("OnFailure", json!(null), json!(null), false, [false, true, true]),
            ("Never", json!(null), json!(null), false, [false, false, false]),
            ("Never", json!("Always"), json!(null), true, [true, true, true]),
            ("Never", json!("OnFailure"), json!(null), false, [false, true, true]),
            ("Always", json!("Never"), json!(null), false, [false, false, false]),
            ("Never", json!("Never"), rules.clone(), false, [false, false, true]),
            ("Always", json!("Never"), unless, false, [true, false, true]),
            // Without a policy of its own a container has no rules.
            ("Never", json!(null), rules, false, [false, false, false]),
        ];
        for (of_pod, own, rules, is_init, expected) in rows {
            let spec = json!({"restartPolicy": of_pod, "containers": []});
            let container = json!({"name": "c", "restartPolicy": own, "restartPolicyRules": rules});
            let spec: PodSpec = serde_json::from_value(spec).expect("a spec");
            let container: Container = serde_json::from_value(container).expect("a container");
            let policy = RestartPolicy::of(&spec, &container, is_init);
            let restarts = |code| policy.after(code) == After::Again;
            assert_eq!([0, 1, 42].map(restarts), expected, "{container:?}");
        }
    }
}
