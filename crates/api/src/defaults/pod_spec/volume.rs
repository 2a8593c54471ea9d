//! Defaults of volumes.

use k8s_openapi::api::core::v1::{
    AzureDiskVolumeSource, DownwardAPIVolumeFile, EmptyDirVolumeSource, ProjectedVolumeSource,
    RBDVolumeSource, Volume,
};

use super::image::default_pull_policy;
use super::{default_divisor, default_text, rewrite, round_up};

/// `rw-r--r--`, for files made from objects.
const FILE_MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 60 * 60;

/// Fills in what a volume leaves out.
pub(super) fn default_volume(volume: &mut Volume) {
    if has_no_source(volume) {
        volume.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    if let Some(source) = &mut volume.empty_dir
        && let Some(size) = &mut source.size_limit
    {
        rewrite(size);
    }
    if let Some(source) = &mut volume.image {
        let image = source.reference.as_deref().unwrap_or("");
        default_text(&mut source.pull_policy, default_pull_policy(image));
    }
    if let Some(source) = &mut volume.host_path {
        source.type_.get_or_insert_default();
    }
    if let Some(source) = &mut volume.secret {
        source.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(source) = &mut volume.config_map {
        source.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(source) = &mut volume.downward_api {
        source.default_mode.get_or_insert(FILE_MODE);
        default_files(&mut source.items);
    }
    if let Some(source) = &mut volume.projected {
        default_projected(source);
    }
    if let Some(source) = &mut volume.ephemeral
        && let Some(claim) = &mut source.volume_claim_template
    {
        claim.metadata.get_or_insert_default();
        claim.spec.volume_mode.get_or_insert("Filesystem".to_owned());
        if let Some(resources) = &mut claim.spec.resources {
            round_up(&mut resources.limits);
            round_up(&mut resources.requests);
        }
    }
    default_legacy(volume);
}

fn has_no_source(volume: &Volume) -> bool {
    let nameless = Volume { name: String::new(), ..volume.clone() };
    nameless == Volume::default()
}

fn default_files(files: &mut Option<Vec<DownwardAPIVolumeFile>>) {
    for file in files.iter_mut().flatten() {
        if let Some(reference) = &mut file.field_ref {
            default_text(&mut reference.api_version, "v1");
        }
        if let Some(reference) = &mut file.resource_field_ref {
            default_divisor(reference);
        }
    }
}

fn default_projected(source: &mut ProjectedVolumeSource) {
    source.default_mode.get_or_insert(FILE_MODE);
    for projection in source.sources.iter_mut().flatten() {
        if let Some(downward) = &mut projection.downward_api {
            default_files(&mut downward.items);
        }
        if let Some(token) = &mut projection.service_account_token {
            token.expiration_seconds.get_or_insert(TOKEN_SECONDS);
        }
    }
}

fn default_legacy(volume: &mut Volume) {
    if let Some(source) = &mut volume.iscsi {
        default_text(&mut source.iscsi_interface, "default");
    }
    if let Some(source) = &mut volume.rbd {
        default_rbd(source);
    }
    if let Some(source) = &mut volume.azure_disk {
        default_azure_disk(source);
    }
    if let Some(source) = &mut volume.scale_io {
        default_text(&mut source.storage_mode, "ThinProvisioned");
        default_text(&mut source.fs_type, "xfs");
    }
}

fn default_rbd(source: &mut RBDVolumeSource) {
    default_text(&mut source.pool, "rbd");
    default_text(&mut source.user, "admin");
    default_text(&mut source.keyring, "/etc/ceph/keyring");
}

/// These are pointers in Go, where an empty text is not absent.
fn default_azure_disk(source: &mut AzureDiskVolumeSource) {
    source.caching_mode.get_or_insert("ReadWrite".to_owned());
    source.fs_type.get_or_insert("ext4".to_owned());
    source.read_only.get_or_insert(false);
    source.kind.get_or_insert("Shared".to_owned());
}
