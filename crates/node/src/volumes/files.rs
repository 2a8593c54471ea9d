//! Volumes that are files with content from the API.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, VolumeProjection};

use super::{NotMade, give_to, said, set_mode};
use crate::field::{Surroundings, field, resource};
use crate::sources::Sources;

/// Files by their path in the volume.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<String, (Vec<u8>, Option<i32>)>,
}

impl Files {
    pub(super) fn add_config_map(
        &mut self,
        sources: &Sources,
        name: &str,
        items: Option<&[KeyToPath]>,
        is_optional: bool,
    ) -> Result<(), String> {
        self.add_data("configmap", name, sources.config_map(name), items, is_optional)
    }

    pub(super) fn add_secret(
        &mut self,
        sources: &Sources,
        name: &str,
        items: Option<&[KeyToPath]>,
        is_optional: bool,
    ) -> Result<(), String> {
        self.add_data("secret", name, sources.secret(name), items, is_optional)
    }

    fn add_data(
        &mut self,
        kind: &str,
        name: &str,
        data: Option<BTreeMap<&str, &[u8]>>,
        items: Option<&[KeyToPath]>,
        is_optional: bool,
    ) -> Result<(), String> {
        let Some(data) = data else {
            return match is_optional {
                true => Ok(()),
                false => Err(format!("{kind} \"{name}\" not found")),
            };
        };
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            for (key, value) in data {
                self.files.insert(key.to_owned(), (value.to_vec(), None));
            }
            return Ok(());
        };
        for item in items {
            match data.get(item.key.as_str()) {
                Some(value) => {
                    self.files.insert(item.path.clone(), (value.to_vec(), item.mode));
                }
                None if is_optional => {}
                None => {
                    let key = &item.key;
                    return Err(format!("{kind} \"{name}\" has no key {key:?}"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn add_fields(
        &mut self,
        pod: &Pod,
        items: &[DownwardAPIVolumeFile],
        around: &Surroundings,
    ) -> Result<(), String> {
        for item in items {
            let text = match (&item.field_ref, &item.resource_field_ref) {
                (Some(reference), _) => field(pod, &reference.field_path, around)?,
                (None, Some(reference)) => resource(pod, None, reference, around)?,
                (None, None) => continue,
            };
            self.files.insert(item.path.clone(), (text.into_bytes(), item.mode));
        }
        Ok(())
    }

    pub(super) fn add_projected(
        &mut self,
        pod: &Pod,
        projections: &[VolumeProjection],
        sources: &Sources,
        around: &Surroundings,
    ) -> Result<(), NotMade> {
        for source in projections {
            if let Some(it) = &source.config_map {
                let optional = it.optional == Some(true);
                self.add_config_map(sources, &it.name, it.items.as_deref(), optional)?;
            } else if let Some(it) = &source.secret {
                let optional = it.optional == Some(true);
                self.add_secret(sources, &it.name, it.items.as_deref(), optional)?;
            } else if let Some(it) = &source.downward_api {
                self.add_fields(pod, it.items.as_deref().unwrap_or_default(), around)?;
            } else {
                let kind = unsupported(source).unwrap_or_default();
                return Err(NotMade::Never(super::not_supported(&kind, OTHER_SOURCES)));
            }
        }
        Ok(())
    }
}

/// What to do in place of a source that there is not.
pub(super) const OTHER_SOURCES: &str = "put what the Pod needs into a Secret";

/// What a source is called that this node does not have; none if it has.
pub(super) fn unsupported(source: &VolumeProjection) -> Option<String> {
    let VolumeProjection { config_map, secret, downward_api, .. } = source;
    if config_map.is_some() || secret.is_some() || downward_api.is_some() {
        return None;
    }
    let fields = serde_json::to_value(source).unwrap_or_default();
    let kind = fields.as_object().and_then(|fields| fields.keys().next().cloned());
    Some(format!("projected {}", kind.unwrap_or_else(|| "a source of no kind".to_owned())))
}

/// Puts files into a volume that has others, or none yet. Whoever looks sees all of the old ones or
/// all of the new: what is at a name leads through one link, which is replaced.
///
/// ```text
///   key ──▶ ..data/key        ..data ──▶ ..2        ..2/key
/// ```
///
/// Nothing is done if they are there already; the volume's folder must be.
pub(super) fn put(
    folder: &Path,
    files: &Files,
    default_mode: i32,
    group: Option<u32>,
) -> Result<(), String> {
    let old = fs::read_link(folder.join(DATA)).ok();
    if old.as_ref().is_some_and(|old| files.are_in(&folder.join(old))) {
        return Ok(());
    }
    let number = |old: &PathBuf| old.to_str()?.strip_prefix("..")?.parse::<u64>().ok();
    let new = PathBuf::from(format!("..{}", old.as_ref().and_then(number).unwrap_or(0) + 1));
    // An earlier try may have come to nothing.
    let _ = fs::remove_dir_all(folder.join(&new));
    files.write(&folder.join(&new), default_mode, group)?;
    let next = folder.join("..data_next");
    let _ = fs::remove_file(&next);
    symlink(&new, &next).map_err(|error| said("create", &next, &error))?;
    let data = folder.join(DATA);
    fs::rename(&next, &data).map_err(|error| said("replace", &data, &error))?;
    lead(folder, &files.tops())?;
    if let Some(old) = old {
        let path = folder.join(old);
        fs::remove_dir_all(&path).map_err(|error| said("remove", &path, &error))?;
    }
    Ok(())
}

/// The link that leads to the files that hold.
const DATA: &str = "..data";

/// Makes a link for each name at the top of a volume, and removes those of names that are no more.
fn lead(folder: &Path, tops: &BTreeSet<&OsStr>) -> Result<(), String> {
    for top in tops {
        let link = folder.join(top);
        match symlink(Path::new(DATA).join(top), &link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(said("create", &link, &error));
            }
            _ => {}
        }
    }
    let entries = fs::read_dir(folder).map_err(|error| said("read", folder, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_own = name.as_encoded_bytes().starts_with(b"..");
        if !is_own && !tops.contains(name.as_os_str()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|error| said("remove", &path, &error))?;
        }
    }
    Ok(())
}

impl Files {
    /// The first parts of their paths.
    fn tops(&self) -> BTreeSet<&OsStr> {
        let first = |name| Path::new(name).components().next().map(Component::as_os_str);
        self.files.keys().filter_map(first).collect()
    }

    /// Whether a folder has these files and no others. Their modes cannot have changed.
    fn are_in(&self, folder: &Path) -> bool {
        let is_there = |(name, (content, _)): (&String, &(Vec<u8>, Option<i32>))| {
            fs::read(folder.join(name)).is_ok_and(|found| found == *content)
        };
        self.files.iter().all(is_there) && count_files(folder) == self.files.len()
    }

    fn write(&self, folder: &Path, default_mode: i32, group: Option<u32>) -> Result<(), String> {
        make_folder(folder)?;
        for (name, (content, mode)) in &self.files {
            let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
            let is_below = Path::new(name).components().all(is_plain);
            if name.is_empty() || name.starts_with("..") || !is_below {
                return Err(format!("the path {name:?} leaves the volume"));
            }
            let path = folder.join(name);
            for parent in Path::new(name).ancestors().skip(1).collect::<Vec<_>>().iter().rev() {
                make_folder(&folder.join(parent))?;
            }
            let mode = u32::try_from(mode.unwrap_or(default_mode)).unwrap_or(0o644);
            // As a kubelet: a group that the files are for may read them.
            let mode = if group.is_some() { mode | 0o440 } else { mode };
            // There is nothing in it until only those can read it who may.
            let new =
                OpenOptions::new().write(true).create_new(true).mode(mode & 0o700).open(&path);
            let mut file = new.map_err(|error| said("create", &path, &error))?;
            give_to(&path, group);
            set_mode(&path, mode)?;
            file.write_all(content).map_err(|error| said("write", &path, &error))?;
        }
        Ok(())
    }
}

/// Makes a folder that everybody may read, whatever this process's umask is.
fn make_folder(path: &Path) -> Result<(), String> {
    match fs::create_dir(path) {
        Ok(()) => set_mode(path, 0o755),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(said("create", path, &error)),
    }
}

fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => count_files(&entry.path()),
            _ => 1,
        })
        .sum()
}
