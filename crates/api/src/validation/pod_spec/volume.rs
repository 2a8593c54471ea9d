//! Volumes: unique names, exactly one source each, and what the sources in
//! common use hold.
//!
//! Whether what a source names exists is not known here.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    CSIVolumeSource, ConfigMapVolumeSource, DownwardAPIVolumeFile, DownwardAPIVolumeSource,
    EmptyDirVolumeSource, HostPathVolumeSource, ImageVolumeSource, KeyToPath, NFSVolumeSource,
    PersistentVolumeClaimVolumeSource, PodSpec, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::container::validate_pull_policy;
use super::field_ref::{validate_field_ref, validate_resource_ref};
use super::local_path::{validate_local_path, validate_no_backsteps};
use super::{items, push_invalid, text};
use super::{legacy_volume as legacy, projected_volume, volume_claim};
use crate::field_error::{FieldError, quote};
use crate::field_path::Path;
use crate::identifier;
use crate::quantity::Quantity;
use crate::validation::{validate_given, validate_one_of_or_empty};

const FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const MODE_MAX: i32 = 0o777;
const CSI_DRIVER_MAX_BYTES: usize = 63;

/// Validates the Pod's volumes and returns those that are valid, by name: only
/// they can be mounted. `pod` is the metadata of a real Pod.
pub(super) fn validate_volumes<'a>(
    spec: &'a PodSpec,
    pod: Option<&ObjectMeta>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> BTreeMap<&'a str, &'a Volume> {
    let mut valid = BTreeMap::new();
    let volumes = items(&spec.volumes);
    let made_claims: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| volume.ephemeral.is_some())
        .filter_map(|volume| made_claim(&volume.name, pod?))
        .collect();
    for (i, volume) in volumes.iter().enumerate() {
        let here = path.index(i);
        let name_path = here.child("name");
        let before = errors.len();
        validate_source(volume, pod, &here, errors);
        if volume.name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else {
            let wrong = identifier::dns1123_label(&volume.name);
            push_invalid(&name_path, &volume.name, wrong, errors);
        }
        if valid.contains_key(volume.name.as_str()) {
            errors.push(FieldError::duplicate(&name_path, &volume.name));
        }
        if errors.len() == before {
            valid.insert(volume.name.as_str(), volume);
        }
        if let Some(claim) = &volume.persistent_volume_claim
            && made_claims.contains(&claim.claim_name)
        {
            let source = here.child("persistentVolumeClaim");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            let at = source.child("claimName");
            errors.push(FieldError::invalid(&at, &claim.claim_name, detail));
        }
    }
    valid
}

/// Mode bits of a file.
pub(super) fn validate_mode(mode: Option<i32>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(mode) = mode
        && !(0..=MODE_MAX).contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path, mode, detail));
    }
}

/// A key of a ConfigMap or Secret and the file it becomes.
pub(super) fn validate_key_to_path(
    item: &KeyToPath,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_given(&item.key, &path.child("key"), errors);
    let at = path.child("path");
    validate_given(&item.path, &at, errors);
    validate_local_path(&item.path, &at, errors);
    validate_mode(item.mode, &path.child("mode"), errors);
}

/// A field or resource and the file it becomes.
pub(super) fn validate_downward_file(
    file: &DownwardAPIVolumeFile,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("path");
    validate_given(&file.path, &at, errors);
    validate_local_path(&file.path, &at, errors);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            validate_field_ref(field, &FIELDS, &path.child("fieldRef"), errors);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            validate_resource_ref(resource, true, &path.child("resourceFieldRef"), errors);
        }
        (None, None) => {
            let detail = "one of fieldRef and resourceFieldRef is required";
            errors.push(FieldError::required(path, detail));
        }
    }
    validate_mode(file.mode, &path.child("mode"), errors);
}

/// Walks the sources in upstream's order; the first one given is the volume's,
/// the others are too many.
fn validate_source(
    volume: &Volume,
    pod: Option<&ObjectMeta>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut sources = Sources { path, errors, has_one: false };
    sources.take(&volume.empty_dir, "emptyDir", validate_empty_dir);
    sources.take(&volume.host_path, "hostPath", validate_host_path);
    sources.take(&volume.git_repo, "gitRepo", legacy::validate_git_repo);
    sources.take_as(
        &volume.gce_persistent_disk,
        "gcePersistentDisk",
        "persistentDisk",
        legacy::validate_gce_disk,
    );
    sources.take(
        &volume.aws_elastic_block_store,
        "awsElasticBlockStore",
        legacy::validate_aws_disk,
    );
    sources.take(&volume.secret, "secret", validate_secret);
    sources.take(&volume.nfs, "nfs", validate_nfs);
    sources.take(&volume.iscsi, "iscsi", legacy::validate_iscsi);
    if let Some(iscsi) = &volume.iscsi {
        legacy::validate_iscsi_name(&volume.name, iscsi, path, sources.errors);
    }
    sources.take(&volume.glusterfs, "glusterfs", legacy::validate_glusterfs);
    sources.take(&volume.flocker, "flocker", legacy::validate_flocker);
    sources.take(&volume.persistent_volume_claim, "persistentVolumeClaim", validate_claim);
    sources.take(&volume.rbd, "rbd", legacy::validate_rbd);
    sources.take(&volume.cinder, "cinder", legacy::validate_cinder);
    sources.take_as(&volume.cephfs, "cephFS", "cephfs", legacy::validate_cephfs);
    sources.take(&volume.quobyte, "quobyte", legacy::validate_quobyte);
    // Upstream misspells the first of these two.
    sources.take_as(&volume.downward_api, "downwarAPI", "downwardAPI", validate_downward_api);
    sources.take(&volume.fc, "fc", legacy::validate_fc);
    sources.take(&volume.flex_volume, "flexVolume", legacy::validate_flex);
    sources.take(&volume.config_map, "configMap", validate_config_map);
    sources.take(&volume.azure_file, "azureFile", legacy::validate_azure_file);
    sources.take(&volume.vsphere_volume, "vsphereVolume", legacy::validate_vsphere);
    sources.take(&volume.photon_persistent_disk, "photonPersistentDisk", legacy::validate_photon);
    sources.take(&volume.portworx_volume, "portworxVolume", legacy::validate_portworx);
    sources.take(&volume.azure_disk, "azureDisk", legacy::validate_azure_disk);
    sources.take(&volume.storageos, "storageos", legacy::validate_storage_os);
    sources.take(&volume.projected, "projected", projected_volume::validate_projected);
    sources.take(&volume.scale_io, "scaleIO", legacy::validate_scale_io);
    sources.take(&volume.csi, "csi", validate_csi);
    let makes_claim = !sources.has_one && volume.ephemeral.is_some();
    sources.take(&volume.ephemeral, "ephemeral", volume_claim::validate_ephemeral);
    if let Some(pod) = pod
        && makes_claim
    {
        validate_made_claim(&volume.name, pod, path, sources.errors);
    }
    let validate_image = if pod.is_some() { validate_pod_image } else { validate_image };
    sources.take(&volume.image, "image", validate_image);
    if !sources.has_one {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// The claim that is made for an ephemeral volume is named after the Pod and the volume.
/// What is missing from the two names is reported elsewhere.
fn validate_made_claim(
    volume: &str,
    pod: &ObjectMeta,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(claim) = made_claim(volume, pod)
        && !volume.is_empty()
    {
        for wrong in identifier::dns1123_subdomain(&claim) {
            let detail = format!("PVC name {}: {wrong}", quote(&claim));
            errors.push(FieldError::invalid(&path.child("name"), volume, detail));
        }
    }
}

fn made_claim(volume: &str, pod: &ObjectMeta) -> Option<String> {
    let name = text(&pod.name);
    (!name.is_empty()).then(|| format!("{name}-{volume}"))
}

/// The sources of one volume, as they are walked.
struct Sources<'a> {
    path: &'a Path<'a>,
    errors: &'a mut Vec<FieldError>,
    has_one: bool,
}

impl Sources<'_> {
    fn take<T>(
        &mut self,
        source: &Option<T>,
        field: &'static str,
        validate: fn(&T, &Path<'_>, &mut Vec<FieldError>),
    ) {
        self.take_as(source, field, field, validate);
    }

    /// Takes a source that upstream calls by two names: one when it is too
    /// many, one in errors about its content.
    fn take_as<T>(
        &mut self,
        source: &Option<T>,
        extra_field: &'static str,
        field: &'static str,
        validate: fn(&T, &Path<'_>, &mut Vec<FieldError>),
    ) {
        let Some(source) = source else { return };
        if self.has_one {
            let at = self.path.child(extra_field);
            let detail = "may not specify more than 1 volume type";
            self.errors.push(FieldError::forbidden(&at, detail));
        } else {
            self.has_one = true;
            validate(source, &self.path.child(field), self.errors);
        }
    }
}

fn validate_empty_dir(
    source: &EmptyDirVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(size) = &source.size_limit else {
        return;
    };
    let at = path.child("sizeLimit");
    match size.0.trim().parse::<Quantity>() {
        Ok(size) if size.is_negative() => {
            let detail = "SizeLimit field must be a valid resource quantity";
            errors.push(FieldError::forbidden(&at, detail));
        }
        Ok(_) => {}
        Err(error) => errors.push(FieldError::invalid(&at, &size.0, error.to_string())),
    }
}

fn validate_host_path(
    source: &HostPathVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("path");
    if source.path.is_empty() {
        errors.push(FieldError::required(&at, ""));
        return;
    }
    validate_no_backsteps(&source.path, &at, errors);
    let kind = text(&source.type_);
    validate_one_of_or_empty(kind, &HOST_PATH_TYPES, &path.child("type"), errors);
}

fn validate_secret(source: &SecretVolumeSource, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_given(text(&source.secret_name), &path.child("secretName"), errors);
    validate_mode(source.default_mode, &path.child("defaultMode"), errors);
    let items_path = path.child("items");
    for (i, item) in items(&source.items).iter().enumerate() {
        validate_key_to_path(item, &items_path.index(i), errors);
    }
}

fn validate_config_map(
    source: &ConfigMapVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_given(&source.name, &path.child("name"), errors);
    validate_mode(source.default_mode, &path.child("defaultMode"), errors);
    let items_path = path.child("items");
    for (i, item) in items(&source.items).iter().enumerate() {
        validate_key_to_path(item, &items_path.index(i), errors);
    }
}

fn validate_nfs(source: &NFSVolumeSource, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_given(&source.server, &path.child("server"), errors);
    let at = path.child("path");
    validate_given(&source.path, &at, errors);
    if !source.path.starts_with('/') {
        let error = FieldError::invalid(&at, &source.path, "must be an absolute path");
        errors.push(error);
    }
}

fn validate_claim(
    source: &PersistentVolumeClaimVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_given(&source.claim_name, &path.child("claimName"), errors);
}

/// Upstream gives the files of a downward API volume no index.
fn validate_downward_api(
    source: &DownwardAPIVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_mode(source.default_mode, &path.child("defaultMode"), errors);
    for file in items(&source.items) {
        validate_downward_file(file, path, errors);
    }
}

fn validate_csi(source: &CSIVolumeSource, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let driver_path = path.child("driver");
    if source.driver.is_empty() {
        errors.push(FieldError::required(&driver_path, ""));
    } else {
        if source.driver.len() > CSI_DRIVER_MAX_BYTES {
            errors.push(FieldError::too_long(&driver_path, CSI_DRIVER_MAX_BYTES));
        }
        let wrong = identifier::dns1123_subdomain(&source.driver.to_lowercase());
        push_invalid(&driver_path, &source.driver, wrong, errors);
    }
    if let Some(secret) = &source.node_publish_secret_ref {
        if secret.name.is_empty() {
            let secret_path = path.child("nodePublishSecretRef");
            errors.push(FieldError::required(&secret_path.child("name"), ""));
        } else {
            // Upstream leaves the reference out of this path.
            let wrong = identifier::dns1123_subdomain(&secret.name);
            push_invalid(&path.child("name"), &secret.name, wrong, errors);
        }
    }
}

/// In a template the reference may still be missing: whoever makes the Pod
/// may fill it in.
/// An image volume of a real Pod. In a template the reference may still be missing.
fn validate_pod_image(source: &ImageVolumeSource, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_given(text(&source.reference), &path.child("reference"), errors);
    validate_image(source, path, errors);
}

fn validate_image(source: &ImageVolumeSource, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_pull_policy(text(&source.pull_policy), &path.child("pullPolicy"), errors);
}
