//! Volumes that are files with content from the API.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, VolumeProjection};

use super::{give_to, said, set_mode};
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
    ) -> Result<(), String> {
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
                let what = match source {
                    _ if source.service_account_token.is_some() => "serviceAccountToken",
                    _ if source.cluster_trust_bundle.is_some() => "clusterTrustBundle",
                    _ => "this projection",
                };
                return Err(format!(
                    "{what} is not supported on this node; put what the Pod needs into a Secret"
                ));
            }
        }
        Ok(())
    }
}

/// Writes the files of a volume.
pub(super) fn write_files(
    folder: &Path,
    files: &Files,
    default_mode: i32,
    group: Option<u32>,
) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| said("create", folder, &error))?;
    for (name, (content, mode)) in &files.files {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if name.is_empty() || !Path::new(name).components().all(is_plain) {
            return Err(format!("the path {name:?} leaves the volume"));
        }
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| said("create", parent, &error))?;
        }
        // A file of an earlier try may not be writable.
        let _ = fs::remove_file(&path);
        fs::write(&path, content).map_err(|error| said("write", &path, &error))?;
        let mode = u32::try_from(mode.unwrap_or(default_mode)).unwrap_or(0o644);
        // As a kubelet: a group that the files are for may read them.
        let mode = if group.is_some() { mode | 0o440 } else { mode };
        give_to(&path, group);
        set_mode(&path, mode)?;
    }
    Ok(())
}
