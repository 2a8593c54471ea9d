//! What of a Pod can never run on this node, however long anybody waits and however often it is
//! tried: known from its spec, before it is tried. It must not know what else is wrong with a Pod.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use crate::namespace_needs::{self, REMEDY};
use crate::runtime::Runtime;
use crate::security::{Own, RunAs};
use crate::volumes;

/// Something that a Pod asks for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrunnable {
    /// The fields of the Pod that may ask for it, the likeliest first.
    pub fields: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// All that a Pod asks for in vain of a node with this runtime, run by the user of this process.
pub fn unrunnable(pod: &Pod, runtime: &dyn Runtime) -> Vec<Unrunnable> {
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let mut found = unmountable(pod, runtime);
    for (i, volume) in spec.volumes.iter().flatten().enumerate() {
        found.extend(volumes::unsupported(volume).map(|(message, help)| Unrunnable {
            fields: vec![format!("spec.volumes[{i}]")],
            message: format!("volume {}: {message}", volume.name),
            help: help.to_owned(),
        }));
    }
    let own = Own::of_this_process();
    for (list, containers) in [
        ("spec.initContainers", spec.init_containers.as_deref().unwrap_or_default()),
        ("spec.containers", &spec.containers),
    ] {
        for (i, container) in containers.iter().enumerate() {
            let field = format!("{list}[{i}]");
            found.extend(of_user(spec, container, &field, &own));
            found.extend(of_program(container, &field, runtime));
        }
    }
    found
}

/// Mounts and names where there are none to be had.
fn unmountable(pod: &Pod, runtime: &dyn Runtime) -> Vec<Unrunnable> {
    let Some(message) = runtime.no_mounts() else { return Vec::new() };
    // Of fields that all need the same, the first shows where.
    let fields = namespace_needs::of(pod);
    if fields.is_empty() {
        return Vec::new();
    }
    vec![Unrunnable { fields, message, help: REMEDY.to_owned() }]
}

fn of_user(spec: &PodSpec, container: &Container, field: &str, own: &Own) -> Option<Unrunnable> {
    let name = &container.name;
    let named = |field_name: &str| {
        let of_container = format!("{field}.securityContext.{field_name}");
        let of_pod = [field_name, "fsGroup"].map(|name| format!("spec.securityContext.{name}"));
        [of_container].into_iter().chain(of_pod).collect()
    };
    match RunAs::of(spec, container, own.user) {
        Err(root) => Some(Unrunnable {
            fields: named("runAsNonRoot"),
            message: format!("container {name} must not run as root, and {}", root.why()),
            help: root.help().to_owned(),
        }),
        Ok(run_as) => own.lacks(&run_as).map(|(field_name, wanted)| Unrunnable {
            fields: named(field_name),
            message: format!(
                "container {name} is to run as {wanted}, and user {} may not",
                own.user
            ),
            help: format!(
                "name user {} and group {}, leave it out, or run it as root",
                own.user, own.group
            ),
        }),
    }
}

fn of_program(container: &Container, field: &str, runtime: &dyn Runtime) -> Option<Unrunnable> {
    let name = &container.name;
    if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
        return Some(Unrunnable {
            fields: vec![format!("{field}.volumeDevices")],
            message: format!("container {name}: volumeDevices are not supported here"),
            help: "use volumeMounts".to_owned(),
        });
    }
    let has_command = container.command.as_ref().is_some_and(|command| !command.is_empty());
    (!has_command && !runtime.uses_images()).then(|| Unrunnable {
        fields: vec![format!("{field}.command"), field.to_owned()],
        message: format!("container {name} has no command, and images are not used here"),
        help: "give it the command that its image would run".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::runtime::{RuntimeError, Sandbox, SandboxSpec};

    /// A runtime that is only asked what it can do.
    #[derive(Debug)]
    struct Bare {
        mounts: bool,
    }

    impl Runtime for Bare {
        fn make_sandbox(
            &self,
            _: SandboxSpec,
        ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>> {
            unreachable!("nothing is tried")
        }

        fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
            unreachable!("nothing is tried")
        }

        fn uses_images(&self) -> bool {
            false
        }

        fn no_mounts(&self) -> Option<String> {
            (!self.mounts).then(|| "no mounts here".to_owned())
        }

        fn name(&self) -> &'static str {
            "bare"
        }
    }

    fn found(spec: Value, mounts: bool) -> Vec<(String, String)> {
        let pod = serde_json::from_value(json!({"spec": spec})).expect("a Pod");
        let found = unrunnable(&pod, &Bare { mounts });
        assert!(found.iter().all(|it| !it.help.is_empty()), "{found:?}");
        found.into_iter().map(|it| (it.fields[0].clone(), it.message)).collect()
    }

    #[test]
    fn only_what_can_never_run_is_found() {
        let mounting = json!({"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
            {"name": "c", "command": ["x"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]});
        assert_eq!(found(mounting.clone(), true), []);
        let text = |field: &str, message: &str| (field.to_owned(), message.to_owned());
        let expected = [text("spec.containers[0].volumeMounts", "no mounts here")];
        assert_eq!(found(mounting, false), expected);
        let plain = json!({"name": "c", "command": ["x"]});
        assert_eq!(found(json!({"containers": [plain]}), false), []);
        let odd = json!({"containers": [plain, {"name": "d", "args": ["x"]}], "volumes": [
            {"name": "v", "nfs": {"server": "s", "path": "/"}},
            {"name": "w", "projected": {"sources": [{"configMap": {"name": "m"}},
                {"serviceAccountToken": {"path": "t"}}]}},
            {"name": "x", "hostPath": {"path": "/"}}]});
        let fields: Vec<String> = found(odd, true).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["spec.volumes[0]", "spec.volumes[1]", "spec.containers[1].command"]);
    }

    #[test]
    fn whoever_must_not_be_root_is_not() {
        let of_pod = json!({"containers": [{"name": "c", "command": ["x"]}],
            "securityContext": {"runAsNonRoot": true, "runAsUser": 0}});
        let [(field, message)] = &found(of_pod, true)[..] else { panic!("one thing is wrong") };
        assert_eq!(field, "spec.containers[0].securityContext.runAsNonRoot");
        assert_eq!(message, "container c must not run as root, and has runAsUser 0");
        let own = Own { user: 5, group: 6, groups: vec![7] };
        let run_as = |user, group, groups: &[u32]| RunAs { user, group, groups: groups.to_vec() };
        let rows = [
            (run_as(None, None, &[]), None),
            (run_as(Some(5), Some(6), &[6, 7]), None),
            (run_as(Some(8), None, &[]), Some(("runAsUser", "user 8".to_owned()))),
            (run_as(Some(5), Some(8), &[]), Some(("runAsGroup", "group 8".to_owned()))),
        ];
        for (run_as, expected) in rows {
            assert_eq!(own.lacks(&run_as), expected, "{run_as:?}");
            let root = Own { user: 0, ..own.clone() };
            assert_eq!(root.lacks(&run_as), None);
        }
    }
}
