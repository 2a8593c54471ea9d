//! From a container of a Pod to what a runtime is asked for.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use crate::env::environment;
use crate::expand::expand;
use crate::field::Surroundings;
use crate::life::NotStarted;
use crate::runtime::{ContainerSpec, Mount};
use crate::security::{RunAs, container_limits};
use crate::sources::Sources;
use crate::volumes::{Volumes, mounts};

/// The path of the termination message of a container that names none.
const DEFAULT_MESSAGE_PATH: &str = "/dev/termination-log";

/// What a container is made from, beside its Pod.
#[derive(Debug)]
pub(crate) struct Ingredients<'i> {
    pub(crate) base_env: &'i [(String, String)],
    pub(crate) hostname: &'i str,
    pub(crate) sources: &'i Sources,
    pub(crate) volumes: &'i Volumes,
    pub(crate) around: &'i Surroundings,
    /// Who runs this process.
    pub(crate) own_user: u32,
    /// The file of the termination message, where there is one.
    pub(crate) message_file: Option<PathBuf>,
}

/// What a runtime is asked for.
pub(crate) fn container_spec(
    pod: &Pod,
    container: &Container,
    run: u32,
    with: &Ingredients<'_>,
) -> Result<ContainerSpec, NotStarted> {
    let unready =
        |message: String| NotStarted::Later { reason: "CreateContainerConfigError", message };
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let run_as = RunAs::of(spec, container, with.own_user)
        .map_err(|root| unready(root.told(pod, &container.name)))?;
    let mut base = with.base_env.to_vec();
    base.push(("HOSTNAME".to_owned(), with.hostname.to_owned()));
    let env = environment(pod, container, &base, with.sources, with.volumes, with.around)
        .map_err(unready)?;
    if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
        return Err(NotStarted::never(format!(
            "container {}: volumeDevices are not supported on this node; use volumeMounts",
            container.name
        )));
    }
    let mut mounts = mounts(container, with.volumes, &env).map_err(unready)?;
    if let Some(file) = &with.message_file {
        let target = container.termination_message_path.as_deref();
        let target = PathBuf::from(target.unwrap_or(DEFAULT_MESSAGE_PATH));
        mounts.push(Mount { source: file.clone(), target, read_only: false });
    }
    let lookup =
        |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let written = container.command.iter().flatten();
    let mut command: Vec<String> = written.map(|text| expand(text, lookup)).collect();
    if command.is_empty() {
        // In a cluster such a container would wait for ever; here nobody could ever help it.
        let name = &container.name;
        return Err(NotStarted::never(format!(
            "container {name} has no command: images are not used by this runtime, give it one"
        )));
    }
    command.extend(container.args.iter().flatten().map(|text| expand(text, lookup)));
    let working_dir = container.working_dir.as_deref().filter(|dir| !dir.is_empty());
    Ok(ContainerSpec {
        name: container.name.clone(),
        restarts: run,
        command,
        working_dir: working_dir.map(PathBuf::from),
        mounts,
        user: run_as.user,
        group: run_as.group,
        groups: run_as.groups,
        limits: container_limits(container),
        env,
    })
}
