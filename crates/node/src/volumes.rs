//! The volumes of a Pod as folders and files of this machine, and where containers see them.
//! Everything here blocks.
//!
//! What a volume is made from is written when the Pod is prepared, and again when it has changed.

mod files;
mod host_path;
mod sub_path;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

use self::files::{Files, put};
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

/// Why a volume is not there: a sentence that says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotMade {
    /// Not yet: what it is made of is missing.
    Later(String),
    /// Never: this node has nothing of the kind.
    Never(String),
}

impl NotMade {
    fn of(self, volume: &str) -> Self {
        let named = |why: &str| format!("MountVolume.SetUp failed for volume \"{volume}\" : {why}");
        match self {
            NotMade::Later(why) => NotMade::Later(named(&why)),
            NotMade::Never(why) => NotMade::Never(named(&why)),
        }
    }
}

/// Most of what goes wrong may come right.
impl From<String> for NotMade {
    fn from(why: String) -> Self {
        NotMade::Later(why)
    }
}

/// Makes the volumes of a Pod below a folder.
///
/// # Errors
///
/// A sentence that names the volume.
pub(crate) fn make(
    pod: &Pod,
    folder: &Path,
    sources: &Sources,
    around: &Surroundings,
) -> Result<Volumes, NotMade> {
    let spec = pod.spec.as_ref();
    let group = fs_group(pod);
    let mut volumes = Volumes::new();
    for volume in spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten() {
        let made = make_one(pod, volume, folder, group, sources, around);
        let ready = made.map_err(|why| why.of(&volume.name))?;
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
) -> Result<Ready, NotMade> {
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
    let Some((files, mode)) = content(pod, volume, sources, around)? else {
        return Err(NotMade::Never(not_supported(&kind_of(volume), OTHER_KINDS)));
    };
    fs::create_dir_all(&path).map_err(|error| said("create", &path, &error))?;
    set_mode(&path, 0o755)?;
    put(&path, &files, mode, group)?;
    Ok(Ready { path, is_read_only: true })
}

/// What this node has.
const OTHER_KINDS: &str =
    "use emptyDir, hostPath, configMap, secret, downwardAPI or projected volumes";

fn not_supported(kind: &str, help: &str) -> String {
    format!("{kind} is not supported on this node; {help}")
}

/// Why this node can never have a volume, and what to do about it; none if it may.
pub(crate) fn unsupported(volume: &Volume) -> Option<(String, &'static str)> {
    let is_made = volume.host_path.is_some() || volume.empty_dir.is_some() || has_content(volume);
    let (kind, help) = if is_made {
        let projected = volume.projected.as_ref().and_then(|it| it.sources.as_deref());
        (projected.unwrap_or_default().iter().find_map(files::unsupported)?, files::OTHER_SOURCES)
    } else {
        (kind_of(volume), OTHER_KINDS)
    };
    Some((format!("{kind} is not supported here"), help))
}

/// Whether a volume has content of the API.
fn has_content(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

/// Whether a Pod has volumes whose content may change while it runs.
pub(crate) fn may_change(pod: &Pod) -> bool {
    changing(pod).next().is_some()
}

/// The volumes with content of the API. One within which something else is mounted stays as it
/// is: there a container has a copy of its folders.
fn changing(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let spec = pod.spec.as_ref();
    let containers = move || {
        let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
        init.chain(spec.into_iter().flat_map(|spec| &spec.containers))
    };
    let is_whole = move |volume: &Volume| {
        containers().all(|container| {
            let mounts = || container.volume_mounts.iter().flatten();
            let own = || mounts().filter(|mount| mount.name == volume.name);
            own().all(|own| {
                let is_below = |path: &str| {
                    path != own.mount_path && Path::new(path).starts_with(&own.mount_path)
                };
                !mounts().any(|mount| is_below(&mount.mount_path))
            })
        })
    };
    let volumes = spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    volumes.filter(move |volume| has_content(volume) && is_whole(volume))
}

/// Writes what has changed into the volumes of a Pod that runs. Where something is missing now,
/// what was there stays.
///
/// # Errors
///
/// A sentence that names the volume.
pub(crate) fn refresh(
    pod: &Pod,
    folder: &Path,
    sources: &Sources,
    around: &Surroundings,
) -> Result<(), NotMade> {
    let group = fs_group(pod);
    let mut result = Ok(());
    for volume in changing(pod) {
        let path = folder.join("volumes").join(&volume.name);
        let fresh = content(pod, volume, sources, around).and_then(|content| match content {
            Some((files, mode)) => Ok(put(&path, &files, mode, group)?),
            None => Ok(()),
        });
        result = result.and(fresh.map_err(|why| why.of(&volume.name)));
    }
    result
}

/// The files of a volume with content of the API, and their mode.
fn content(
    pod: &Pod,
    volume: &Volume,
    sources: &Sources,
    around: &Surroundings,
) -> Result<Option<(Files, i32)>, NotMade> {
    let mut files = Files::default();
    let mode = if let Some(source) = &volume.config_map {
        let optional = source.optional == Some(true);
        files.add_config_map(sources, &source.name, source.items.as_deref(), optional)?;
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
        return Ok(None);
    };
    Ok(Some((files, mode.unwrap_or(DEFAULT_MODE))))
}

/// What a volume is made from, as the manifest calls it.
fn kind_of(volume: &Volume) -> String {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let mut names = fields.as_object().into_iter().flat_map(|fields| fields.keys());
    names
        .find(|name| *name != "name")
        .map_or_else(|| "a volume of no kind".to_owned(), Clone::clone)
}

/// Where a container sees its volumes, in the order in which they are mounted.
///
/// # Errors
///
/// A sentence that names the mount.
pub(crate) fn mounts(
    container: &Container,
    volumes: &Volumes,
    env: &[(String, String)],
) -> Result<Vec<Mount>, String> {
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
    mounts.sort_by_key(Mount::depth);
    Ok(mounts)
}

/// A file of a volume, if it is there.
///
/// # Errors
///
/// A sentence that names the volume.
pub(crate) fn file(volumes: &Volumes, name: &str, path: &str) -> Result<Option<PathBuf>, String> {
    let ready = volumes.get(name).ok_or_else(|| format!("volume \"{name}\" is not there"))?;
    let found = sub_path::find(&ready.path, path);
    found.map_err(|why| format!("file {path:?} of volume \"{name}\": {why}"))
}

/// The group that volumes are given to.
fn fs_group(pod: &Pod) -> Option<u32> {
    let security = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    security.and_then(|it| it.fs_group).and_then(|group| u32::try_from(group).ok())
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
