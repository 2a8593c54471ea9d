//! Volume sources from before CSI: what each requires.
//!
//! Nobody should need them for a Job, but the API still takes them.

use k8s_openapi::api::core::v1::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource,
    CephFSVolumeSource, CinderVolumeSource, FCVolumeSource, FlexVolumeSource, FlockerVolumeSource,
    GCEPersistentDiskVolumeSource, GitRepoVolumeSource, GlusterfsVolumeSource, ISCSIVolumeSource,
    LocalObjectReference, PhotonPersistentDiskVolumeSource, PortworxVolumeSource,
    QuobyteVolumeSource, RBDVolumeSource, ScaleIOVolumeSource, StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
};

use super::local_path::validate_descending_path;
use super::{items, push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::{validate_given, validate_one_of_or_empty};

type Errors = Vec<FieldError>;

const ISCSI_NAME_MAX_BYTES: usize = 64;
const LUN_MAX: i32 = 255;
const PARTITION_MAX: i32 = 255;
const TENANT_MAX_BYTES: usize = 64;

pub(super) fn validate_git_repo(
    source: &GitRepoVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.repository, &path.child("repository"), errors);
    let directory = text(&source.directory);
    validate_descending_path(directory, &path.child("directory"), errors);
}

pub(super) fn validate_gce_disk(
    source: &GCEPersistentDiskVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.pd_name, &path.child("pdName"), errors);
    validate_partition(source.partition, path, errors);
}

pub(super) fn validate_aws_disk(
    source: &AWSElasticBlockStoreVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.volume_id, &path.child("volumeID"), errors);
    validate_partition(source.partition, path, errors);
}

pub(super) fn validate_iscsi(source: &ISCSIVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    validate_given(&source.target_portal, &path.child("targetPortal"), errors);
    let at = path.child("iqn");
    if source.iqn.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        validate_initiator(&source.iqn, &at, errors);
    }
    if !(0..=LUN_MAX).contains(&source.lun) {
        let detail = "must be between 0 and 255, inclusive";
        errors.push(FieldError::invalid(&path.child("lun"), source.lun, detail));
    }
    let uses_chap =
        source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if uses_chap && source.secret_ref.is_none() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if let Some(initiator) = &source.initiator_name {
        validate_initiator(initiator, &path.child("initiatorname"), errors);
    }
}

/// With an initiator's name, volume name and portal together name the session.
pub(super) fn validate_iscsi_name(
    volume_name: &str,
    source: &ISCSIVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let bytes = volume_name.len() + 1 + source.target_portal.len();
    if source.initiator_name.is_some() && bytes > ISCSI_NAME_MAX_BYTES {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
            characters if iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid(&path.child("name"), volume_name, detail));
    }
}

pub(super) fn validate_glusterfs(
    source: &GlusterfsVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.endpoints, &path.child("endpoints"), errors);
    validate_given(&source.path, &path.child("path"), errors);
}

pub(super) fn validate_flocker(source: &FlockerVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    if name.is_empty() && uuid.is_empty() {
        let detail = "one of datasetName and datasetUUID is required";
        errors.push(FieldError::required(path, detail));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        let at = path.child("datasetName");
        errors.push(FieldError::invalid(&at, name, "must not contain '/'"));
    }
}

pub(super) fn validate_rbd(source: &RBDVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    if source.monitors.is_empty() {
        errors.push(FieldError::required(&path.child("monitors"), ""));
    }
    validate_given(&source.image, &path.child("image"), errors);
}

pub(super) fn validate_cinder(source: &CinderVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    validate_given(&source.volume_id, &path.child("volumeID"), errors);
    validate_secret_ref(source.secret_ref.as_ref(), path, errors);
}

pub(super) fn validate_cephfs(source: &CephFSVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    if source.monitors.is_empty() {
        errors.push(FieldError::required(&path.child("monitors"), ""));
    }
}

pub(super) fn validate_quobyte(source: &QuobyteVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    let at = path.child("registry");
    if source.registry.is_empty() {
        errors.push(FieldError::required(&at, pairs));
    } else if text(&source.tenant).len() > TENANT_MAX_BYTES {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        for pair in source.registry.split(',') {
            if !is_host_and_port(pair) {
                errors.push(FieldError::invalid(&at, &source.registry, pairs));
            }
        }
    }
    validate_given(&source.volume, &path.child("volume"), errors);
}

pub(super) fn validate_fc(source: &FCVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    let (names, ids) = (items(&source.target_wwns), items(&source.wwids));
    let at = path.child("targetWWNs");
    if names.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(&at, detail));
    }
    if !names.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&at, names, detail));
    }
    if names.is_empty() {
        return;
    }
    let at = path.child("lun");
    match source.lun {
        None => {
            let detail = "lun is required if targetWWNs is specified";
            errors.push(FieldError::required(&at, detail));
        }
        Some(lun) if !(0..=LUN_MAX).contains(&lun) => {
            let detail = "must be between 0 and 255, inclusive";
            errors.push(FieldError::invalid(&at, lun, detail));
        }
        Some(_) => {}
    }
}

pub(super) fn validate_flex(source: &FlexVolumeSource, path: &Path<'_>, errors: &mut Errors) {
    validate_given(&source.driver, &path.child("driver"), errors);
    let options_path = path.child("options");
    for key in source.options.iter().flatten().map(|(key, _)| key) {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&options_path.key(key), key, detail));
        }
    }
}

pub(super) fn validate_azure_file(
    source: &AzureFileVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.secret_name, &path.child("secretName"), errors);
    validate_given(&source.share_name, &path.child("shareName"), errors);
}

pub(super) fn validate_vsphere(
    source: &VsphereVirtualDiskVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.volume_path, &path.child("volumePath"), errors);
}

pub(super) fn validate_photon(
    source: &PhotonPersistentDiskVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.pd_id, &path.child("pdID"), errors);
}

pub(super) fn validate_portworx(
    source: &PortworxVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.volume_id, &path.child("volumeID"), errors);
}

pub(super) fn validate_azure_disk(
    source: &AzureDiskVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.disk_name, &path.child("diskName"), errors);
    let uri_path = path.child("diskURI");
    validate_given(&source.disk_uri, &uri_path, errors);
    if let Some(mode) = &source.caching_mode {
        let modes = ["None", "ReadOnly", "ReadWrite"];
        validate_one_of_or_empty(mode, &modes, &path.child("cachingMode"), errors);
    }
    let Some(kind) = &source.kind else { return };
    let kinds = ["Dedicated", "Managed", "Shared"];
    validate_one_of_or_empty(kind, &kinds, &path.child("kind"), errors);
    let (start, form) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !source.disk_uri.starts_with(start) {
        errors.push(FieldError::not_supported(&uri_path, &source.disk_uri, &[form]));
    }
}

pub(super) fn validate_storage_os(
    source: &StorageOSVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let name = text(&source.volume_name);
    let at = path.child("volumeName");
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        push_invalid(&at, name, identifier::dns1123_label(name), errors);
    }
    let namespace = text(&source.volume_namespace);
    if !namespace.is_empty() {
        let wrong = identifier::dns1123_label(namespace);
        push_invalid(&path.child("volumeNamespace"), namespace, wrong, errors);
    }
    validate_secret_ref(source.secret_ref.as_ref(), path, errors);
}

pub(super) fn validate_scale_io(
    source: &ScaleIOVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_given(&source.gateway, &path.child("gateway"), errors);
    validate_given(&source.system, &path.child("system"), errors);
    validate_given(text(&source.volume_name), &path.child("volumeName"), errors);
}

fn validate_partition(partition: Option<i32>, path: &Path<'_>, errors: &mut Errors) {
    let partition = partition.unwrap_or(0);
    if !(0..=PARTITION_MAX).contains(&partition) {
        // Zero is taken too, whatever the message says.
        let detail = "must be between 1 and 255, inclusive";
        errors.push(FieldError::invalid(&path.child("partition"), partition, detail));
    }
}

fn validate_secret_ref(
    reference: Option<&LocalObjectReference>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(reference) = reference {
        let secret_path = path.child("secretRef");
        validate_given(&reference.name, &secret_path.child("name"), errors);
    }
}

fn validate_initiator(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let detail = match name.get(..3) {
        Some("iqn") if !is_iqn(name) => "must be valid format",
        Some("eui") if !is_hex_name(name, 16) => "must be valid format",
        Some("naa") if !is_hex_name(name, 32) => "must be valid format",
        Some("iqn" | "eui" | "naa") => return,
        _ => "must be valid format starting with iqn, eui, or naa",
    };
    errors.push(FieldError::invalid(path, name, detail));
}

/// `iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`, for a text that starts
/// with `iqn`.
fn is_iqn(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else {
        return false;
    };
    let Some((date, rest)) = rest.split_once('.') else {
        return false;
    };
    let Some((authority, unique)) = rest.split_once(':') else {
        return false;
    };
    let is_date = date.len() == 7
        && date.bytes().enumerate().all(|(i, b)| match i {
            4 => b == b'-',
            _ => b.is_ascii_digit(),
        });
    let in_authority = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let in_unique =
        |c: char| !",;*&$|".contains(c) && !matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r');
    is_date
        && !authority.is_empty()
        && authority.bytes().all(in_authority)
        && !unique.is_empty()
        && unique.chars().all(in_unique)
}

/// Three letters, any character and so many letters or digits.
fn is_hex_name(name: &str, digits: usize) -> bool {
    let mut rest = name[3..].chars();
    rest.next().is_some_and(|c| c != '\n')
        && rest.as_str().len() == digits
        && rest.as_str().bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Whether Go's `net.SplitHostPort` would split it.
fn is_host_and_port(pair: &str) -> bool {
    match pair.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").is_some_and(|(host, port)| {
            !host.contains(['[', ']']) && !port.contains([':', '[', ']'])
        }),
        None => pair.split_once(':').is_some_and(|(host, port)| {
            !port.contains(':') && !host.contains(['[', ']']) && !port.contains(['[', ']'])
        }),
    }
}
