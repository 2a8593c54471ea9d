//! Who a container runs as, and what it may use.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use stint_api::quantity::Quantity;

use crate::calls::PodRef;
use crate::runtime::Limits;

/// Who a container runs as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunAs {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) groups: Vec<u32>,
}

impl RunAs {
    /// That of a container; `own_user` is who runs this process.
    ///
    /// # Errors
    ///
    /// Why it is root and must not be.
    pub(crate) fn of(spec: &PodSpec, container: &Container, own_user: u32) -> Result<Self, IsRoot> {
        let (of_pod, own) = (spec.security_context.as_ref(), container.security_context.as_ref());
        let user = own.and_then(|it| it.run_as_user).or(of_pod.and_then(|it| it.run_as_user));
        let group = own.and_then(|it| it.run_as_group).or(of_pod.and_then(|it| it.run_as_group));
        let non_root =
            own.and_then(|it| it.run_as_non_root).or(of_pod.and_then(|it| it.run_as_non_root));
        let user = user.and_then(|user| u32::try_from(user).ok());
        if non_root == Some(true) && user.unwrap_or(own_user) == 0 {
            return Err(if user.is_some() { IsRoot::ByName } else { IsRoot::AsTheNode });
        }
        let listed = of_pod.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
        let fs_group = of_pod.and_then(|it| it.fs_group);
        let mut groups: Vec<u32> =
            listed.into_iter().chain(fs_group).filter_map(|id| u32::try_from(id).ok()).collect();
        groups.dedup();
        Ok(RunAs { user, group: group.and_then(|group| u32::try_from(group).ok()), groups })
    }
}

/// Why a container that must not be root would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsRoot {
    /// It is said to run as user 0.
    ByName,
    /// Nobody is named, and this process is root's.
    AsTheNode,
}

impl IsRoot {
    /// What a kubelet says of it, and what to do here.
    pub(crate) fn told(self, pod: &Pod, container: &str) -> String {
        let PodRef { namespace, name, uid } = PodRef::of(pod);
        let said = match self {
            IsRoot::ByName => "container's runAsUser breaks non-root policy",
            IsRoot::AsTheNode => "container has runAsNonRoot and image will run as root",
        };
        let whose = format!("(pod: \"{name}_{namespace}({uid})\", container: {container})");
        format!("{said} {whose}; {}", self.help())
    }

    pub(crate) fn why(self) -> &'static str {
        match self {
            IsRoot::ByName => "has runAsUser 0",
            IsRoot::AsTheNode => "would: stint runs as root, and it has no runAsUser",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            IsRoot::ByName => "give it another runAsUser, or take out runAsNonRoot",
            IsRoot::AsTheNode => "give it a runAsUser, or do not run stint as root",
        }
    }
}

/// Whose this process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// The others.
    pub(crate) groups: Vec<u32>,
}

impl Own {
    pub(crate) fn of_this_process() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        Own {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(rustix::process::Gid::as_raw).collect(),
        }
    }

    /// What it cannot become: the field that asks for it, and who that is. Root may be anybody, as far
    /// as can be said beforehand.
    pub(crate) fn lacks(&self, run_as: &RunAs) -> Option<(&'static str, String)> {
        if self.user == 0 {
            return None;
        }
        let RunAs { user, group, groups } = run_as;
        if let Some(user) = user.filter(|user| *user != self.user) {
            return Some(("runAsUser", format!("user {user}")));
        }
        if let Some(group) = group.filter(|group| *group != self.group) {
            return Some(("runAsGroup", format!("group {group}")));
        }
        let is_held = |it: &&u32| **it == self.group || self.groups.contains(it);
        let other = groups.iter().find(|it| !is_held(it))?;
        Some(("supplementalGroups", format!("group {other}")))
    }
}

/// What a container may use.
pub(crate) fn container_limits(container: &Container) -> Limits {
    limits(container.resources.as_ref())
}

/// What all containers of a Pod may use together: what the Pod says, else the sum of theirs if
/// each has a limit.
pub(crate) fn pod_limits(spec: &PodSpec) -> Limits {
    let own = limits(spec.resources.as_ref());
    let all = || spec.init_containers.iter().flatten().chain(&spec.containers);
    let sum = |of: fn(Limits) -> Option<u64>| {
        all().try_fold(0_u64, |sum, it| Some(sum.saturating_add(of(container_limits(it))?)))
    };
    Limits {
        cpu_millis: own.cpu_millis.or_else(|| sum(|it| it.cpu_millis)),
        memory_bytes: own.memory_bytes.or_else(|| sum(|it| it.memory_bytes)),
    }
}

fn limits(resources: Option<&ResourceRequirements>) -> Limits {
    let limit = |name: &str, of: fn(&Quantity) -> i64| {
        let text = resources?.limits.as_ref()?.get(name)?;
        let amount = of(&text.0.parse::<Quantity>().ok()?);
        u64::try_from(amount).ok().filter(|amount| *amount > 0)
    };
    Limits {
        cpu_millis: limit("cpu", Quantity::milli_value),
        memory_bytes: limit("memory", Quantity::value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(pod: Value, container: Value) -> (PodSpec, Container) {
        let mut spec = pod;
        spec["containers"] = json!([]);
        let mut container = container;
        container["name"] = json!("c");
        (
            serde_json::from_value(spec).expect("a spec"),
            serde_json::from_value(container).expect("a container"),
        )
    }

    #[test]
    fn the_container_comes_before_the_pod_and_root_is_refused_where_it_must_not_be() {
        let pod = json!({"securityContext": {"runAsUser": 5, "runAsGroup": 6,
            "supplementalGroups": [7], "fsGroup": 8}});
        let (spec, container) = read(pod, json!({"securityContext": {"runAsUser": 9}}));
        let run_as = RunAs::of(&spec, &container, 0).expect("it may run");
        assert_eq!(run_as, RunAs { user: Some(9), group: Some(6), groups: vec![7, 8] });
        let non_root = json!({"securityContext": {"runAsNonRoot": true}});
        let rows = [(json!({}), 0, false), (json!({}), 1000, true)];
        for (container, own_user, may) in rows {
            let (spec, container) = read(non_root.clone(), container);
            assert_eq!(RunAs::of(&spec, &container, own_user).is_ok(), may);
        }
        let root = json!({"securityContext": {"runAsUser": 0}});
        let (spec, container) = read(non_root, root);
        let refused = RunAs::of(&spec, &container, 1000).expect_err("it is root");
        assert_eq!(refused, IsRoot::ByName);
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}});
        let pod: Pod = serde_json::from_value(pod).expect("a Pod");
        assert_eq!(
            IsRoot::AsTheNode.told(&pod, "c"),
            "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: c); \
             give it a runAsUser, or do not run stint as root"
        );
    }

    #[test]
    fn a_pod_is_limited_if_all_its_containers_are() {
        let limited =
            json!({"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1Mi"}}});
        let half = json!({"name": "b", "resources": {"limits": {"cpu": "1"}}});
        let spec = json!({"containers": [limited, half]});
        let spec: PodSpec = serde_json::from_value(spec).expect("a spec");
        let expected = Limits { cpu_millis: Some(1500), memory_bytes: None };
        assert_eq!(pod_limits(&spec), expected);
    }
}
