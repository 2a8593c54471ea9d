//! Where a container sees its volumes: mounts and raw block devices.
//!
//! A mount must lead to a volume that is itself valid, so a broken volume also
//! makes its mounts unknown, as upstream has it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::local_path::{has_backsteps, validate_descending_path};
use super::{PodContext, items, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::validation::{validate_given, validate_one_of_or_empty};

/// Validates `volumeMounts`.
pub(super) fn validate_mounts(
    container: &Container,
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let devices = items(&container.volume_devices).iter();
    let devices = Places::new(devices.map(|device| (&*device.name, &*device.device_path)));
    let mut mount_paths = BTreeSet::new();
    for (i, mount) in items(&container.volume_mounts).iter().enumerate() {
        let here = path.index(i);
        let (name_path, mount_path) = (here.child("name"), here.child("mountPath"));
        validate_given(&mount.name, &name_path, errors);
        if !pod.volumes.contains_key(mount.name.as_str()) {
            errors.push(FieldError::not_found(&name_path, &mount.name));
        }
        validate_given(&mount.mount_path, &mount_path, errors);
        if !mount_paths.insert(&mount.mount_path) {
            let error = FieldError::invalid(&mount_path, &mount.mount_path, "must be unique");
            errors.push(error);
        }
        if devices.names.contains(&*mount.name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&name_path, &mount.name, detail));
        }
        if devices.paths.contains(&*mount.mount_path) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&mount_path, &mount.mount_path, detail));
        }
        validate_sub_path(mount, path, &here, errors);
        validate_propagation(mount, container, &path.child("mountPropagation"), errors);
        validate_recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
    }
}

/// Validates `volumeDevices`.
pub(super) fn validate_devices(
    container: &Container,
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mounts = items(&container.volume_mounts).iter();
    let mounts = Places::new(mounts.map(|mount| (&*mount.name, &*mount.mount_path)));
    let (mut names, mut device_paths) = (BTreeSet::new(), BTreeSet::new());
    for (i, device) in items(&container.volume_devices).iter().enumerate() {
        let here = path.index(i);
        let (name_path, device_path) = (here.child("name"), here.child("devicePath"));
        validate_given(&device.name, &name_path, errors);
        if names.contains(&device.name) {
            errors.push(FieldError::invalid(&name_path, &device.name, "must be unique"));
        }
        match pod.volumes.get(device.name.as_str()) {
            Some(volume)
                if volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none() =>
            {
                let detail = "can only use volume source type of PersistentVolumeClaim or \
                    Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, &device.name, detail));
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(&name_path, &device.name)),
        }
        validate_given(&device.device_path, &device_path, errors);
        if device_paths.contains(&device.device_path) {
            let error = FieldError::invalid(&device_path, &device.device_path, "must be unique");
            errors.push(error);
        }
        if has_backsteps(&device.device_path) {
            let detail = "can not contain backsteps ('..')";
            errors.push(FieldError::invalid(&device_path, &device.device_path, detail));
        } else {
            device_paths.insert(&device.device_path);
        }
        if mounts.names.contains(&*device.name) {
            let detail = "must not already exist in volumeMounts";
            errors.push(FieldError::invalid(&name_path, &device.name, detail));
        }
        if mounts.paths.contains(&*device.device_path) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&device_path, &device.device_path, detail));
        }
        if !device.name.is_empty() {
            names.insert(&device.name);
        }
    }
}

/// Which volumes a container sees in one of the two ways, and where. Of two with one name
/// the later counts, as in upstream's map.
struct Places<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<&'a str>,
}

impl<'a> Places<'a> {
    fn new(places: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let by_name: BTreeMap<&str, &str> = places.collect();
        Places { names: by_name.keys().copied().collect(), paths: by_name.into_values().collect() }
    }
}

/// Upstream reports most of these at the list, without the index.
fn validate_sub_path(
    mount: &VolumeMount,
    list: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (sub_path, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
    if !sub_path.is_empty() {
        validate_descending_path(sub_path, &list.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub_path.is_empty() {
            let at = path.child("subPathExpr");
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(&at, expression, detail));
        }
        validate_descending_path(expression, &list.child("subPathExpr"), errors);
    }
}

fn validate_propagation(
    mount: &VolumeMount,
    container: &Container,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(propagation) = &mount.mount_propagation else {
        return;
    };
    let modes = ["Bidirectional", "HostToContainer", "None"];
    validate_one_of_or_empty(propagation, &modes, path, errors);
    let context = container.security_context.as_ref();
    let is_privileged = context.and_then(|context| context.privileged) == Some(true);
    if propagation == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_recursive_read_only(
    mount: &VolumeMount,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                let detail = "may only be specified when readOnly is true";
                errors.push(FieldError::forbidden(path, detail));
            }
            if mount.mount_propagation.as_deref().unwrap_or("None") != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        Some(other) => {
            let supported = ["Disabled", "Enabled", "IfPossible"];
            errors.push(FieldError::not_supported(path, other, &supported));
        }
    }
}
