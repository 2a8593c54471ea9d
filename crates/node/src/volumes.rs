//! The volumes of a Pod as folders and files of this machine, and where containers see them.
//! Everything here blocks.
//!
//! What a volume is made from is written once, when the Pod is prepared: a ConfigMap that changes
//! is seen by the next Pod.

mod files;
mod host_path;
mod sub_path;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use self::files::{Files, write_files};
use crate::expand::expand;
use crate::field::Surroundings;
use crate::runtime::Mount;
use crate::sources::Sources;

/// The mode of files that nobody gave one.
const DEFAULT_MODE: i32 = 0o644;

/// A volume that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    path: PathBuf,
    /// Whether nobody may write to it whatever the mount says.
    is_read_only: bool,
}

/// The volumes of a Pod, by name.
pub(crate) type Volumes = BTreeMap<String, Ready>;

/// Makes the volumes of a Pod below a folder.
///
/// # Errors
///
/// A sentence that names the volume, and what to do about it.
pub(crate) fn make(
    pod: &Pod,
    folder: &Path,
    sources: &Sources,
    around: &Surroundings,
) -> Result<Volumes, String> {
    let spec = pod.spec.as_ref();
    let security = spec.and_then(|spec| spec.security_context.as_ref());
    let group = security.and_then(|it| it.fs_group).and_then(|group| u32::try_from(group).ok());
    let mut volumes = Volumes::new();
    for volume in spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten() {
        let made = make_one(pod, volume, folder, group, sources, around);
        let ready = made.map_err(|why| {
            format!("MountVolume.SetUp failed for volume \"{}\" : {why}", volume.name)
        })?;
        volumes.insert(volume.name.clone(), ready);
    }
    Ok(volumes)
}

fn make_one(
    pod: &Pod,
    volume: &Volume,
    folder: &Path,
    group: Option<u32>,
    sources: &Sources,
    around: &Surroundings,
) -> Result<Ready, String> {
    let path = folder.join("volumes").join(&volume.name);
    if let Some(source) = &volume.host_path {
        let path = host_path::make(&source.path, source.type_.as_deref().unwrap_or(""))?;
        return Ok(Ready { path, is_read_only: false });
    }
    if volume.empty_dir.is_some() {
        fs::create_dir_all(&path).map_err(|error| said("create", &path, &error))?;
        // As a kubelet: whoever the containers run as may write.
        let mode = if group.is_some() { 0o2777 } else { 0o777 };
        set_mode(&path, mode)?;
        give_to(&path, group);
        return Ok(Ready { path, is_read_only: false });
    }
    let mut files = Files::default();
    let default_mode = if let Some(source) = &volume.config_map {
        files.add_config_map(
            sources,
            &source.name,
            source.items.as_deref(),
            source.optional == Some(true),
        )?;
        source.default_mode
    } else if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or("");
        let optional = source.optional == Some(true);
        files.add_secret(sources, name, source.items.as_deref(), optional)?;
        source.default_mode
    } else if let Some(source) = &volume.downward_api {
        files.add_fields(pod, source.items.as_deref().unwrap_or_default(), around)?;
        source.default_mode
    } else if let Some(source) = &volume.projected {
        files.add_projected(pod, source.sources.as_deref().unwrap_or_default(), sources, around)?;
        source.default_mode
    } else {
        return Err("this kind of volume is not supported on this node; use emptyDir, hostPath, \
                    configMap, secret, downwardAPI or projected"
            .to_owned());
    };
    write_files(&path, &files, default_mode.unwrap_or(DEFAULT_MODE), group)?;
    Ok(Ready { path, is_read_only: true })
}

/// Where a container sees its volumes.
///
/// # Errors
///
/// A sentence that names the mount.
pub(crate) fn mounts(
    container: &Container,
    volumes: &Volumes,
    env: &[(String, String)],
) -> Result<Vec<Mount>, String> {
    if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
        return Err("volumeDevices are not supported on this node; use volumeMounts".to_owned());
    }
    let lookup =
        |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let ready = volumes
            .get(&mount.name)
            .ok_or_else(|| format!("volume \"{}\" is not there", mount.name))?;
        let sub_path = match (&mount.sub_path, &mount.sub_path_expr) {
            (Some(path), _) if !path.is_empty() => path.clone(),
            (_, Some(text)) if !text.is_empty() => {
                let path = expand(text, lookup);
                if path.contains("$(") {
                    return Err(format!("subPathExpr {text:?} has a variable that is not set"));
                }
                path
            }
            _ => String::new(),
        };
        let is_read_only = ready.is_read_only || mount.read_only == Some(true);
        let source = if sub_path.is_empty() {
            ready.path.clone()
        } else {
            sub_path::resolve(&ready.path, &sub_path, !ready.is_read_only).map_err(|why| {
                format!(
                    "failed to prepare subPath {sub_path:?} of volume \"{}\": {why}",
                    mount.name
                )
            })?
        };
        let target = Path::new("/").join(&mount.mount_path);
        mounts.push(Mount { source, target, read_only: is_read_only });
    }
    Ok(mounts)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| said("set the mode of", path, &error))
}

/// Gives a file to a group. Only some may do that; for the others the mode has to do.
fn give_to(path: &Path, group: Option<u32>) {
    if let Some(group) = group {
        let changed = std::os::unix::fs::chown(path, None, Some(group));
        if let Err(error) = changed {
            tracing::debug!(path = %path.display(), group, %error, "cannot change the group");
        }
    }
}

fn said(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests;
