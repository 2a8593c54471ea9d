//! The volumes of Pods, from every source there ever was.

use super::Type::{Atomic, Bool, Int32, Int64, Object, Quantity, Text};
use super::container::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR};
use super::core::{LOCAL_OBJECT_REFERENCE, TYPED_LOCAL_OBJECT_REFERENCE, TYPED_OBJECT_REFERENCE};
use super::meta::LABEL_SELECTOR;
use super::{METADATA, Message, always, inline, list, map, nonzero, one, shown};

pub(super) const VOLUME: Message = &[always(1, "name", Text), inline(2, VOLUME_SOURCE)];

const VOLUME_SOURCE: Message = &[
    one(1, "hostPath", Object(HOST_PATH_VOLUME_SOURCE)),
    one(2, "emptyDir", Object(EMPTY_DIR_VOLUME_SOURCE)),
    one(3, "gcePersistentDisk", Object(GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
    one(4, "awsElasticBlockStore", Object(AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    one(5, "gitRepo", Object(GIT_REPO_VOLUME_SOURCE)),
    one(6, "secret", Object(SECRET_VOLUME_SOURCE)),
    one(7, "nfs", Object(NFS_VOLUME_SOURCE)),
    one(8, "iscsi", Object(ISCSI_VOLUME_SOURCE)),
    one(9, "glusterfs", Object(GLUSTERFS_VOLUME_SOURCE)),
    one(10, "persistentVolumeClaim", Object(PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
    one(11, "rbd", Object(RBD_VOLUME_SOURCE)),
    one(12, "flexVolume", Object(FLEX_VOLUME_SOURCE)),
    one(13, "cinder", Object(CINDER_VOLUME_SOURCE)),
    one(14, "cephfs", Object(CEPH_FS_VOLUME_SOURCE)),
    one(15, "flocker", Object(FLOCKER_VOLUME_SOURCE)),
    one(16, "downwardAPI", Object(DOWNWARD_API_VOLUME_SOURCE)),
    one(17, "fc", Object(FC_VOLUME_SOURCE)),
    one(18, "azureFile", Object(AZURE_FILE_VOLUME_SOURCE)),
    one(19, "configMap", Object(CONFIG_MAP_VOLUME_SOURCE)),
    one(20, "vsphereVolume", Object(VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
    one(21, "quobyte", Object(QUOBYTE_VOLUME_SOURCE)),
    one(22, "azureDisk", Object(AZURE_DISK_VOLUME_SOURCE)),
    one(23, "photonPersistentDisk", Object(PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
    one(24, "portworxVolume", Object(PORTWORX_VOLUME_SOURCE)),
    one(25, "scaleIO", Object(SCALE_IO_VOLUME_SOURCE)),
    one(26, "projected", Object(PROJECTED_VOLUME_SOURCE)),
    one(27, "storageos", Object(STORAGE_OS_VOLUME_SOURCE)),
    one(28, "csi", Object(CSI_VOLUME_SOURCE)),
    one(29, "ephemeral", Object(EPHEMERAL_VOLUME_SOURCE)),
    one(30, "image", Object(IMAGE_VOLUME_SOURCE)),
];

const HOST_PATH_VOLUME_SOURCE: Message = &[always(1, "path", Text), one(2, "type", Text)];

const EMPTY_DIR_VOLUME_SOURCE: Message =
    &[nonzero(1, "medium", Text), one(2, "sizeLimit", Quantity)];

const GCE_PERSISTENT_DISK_VOLUME_SOURCE: Message = &[
    always(1, "pdName", Text),
    nonzero(2, "fsType", Text),
    nonzero(3, "partition", Int32),
    nonzero(4, "readOnly", Bool),
];

const AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Message = &[
    always(1, "volumeID", Text),
    nonzero(2, "fsType", Text),
    nonzero(3, "partition", Int32),
    nonzero(4, "readOnly", Bool),
];

const GIT_REPO_VOLUME_SOURCE: Message =
    &[always(1, "repository", Text), nonzero(2, "revision", Text), nonzero(3, "directory", Text)];

const SECRET_VOLUME_SOURCE: Message = &[
    nonzero(1, "secretName", Text),
    list(2, "items", Object(KEY_TO_PATH)),
    one(3, "defaultMode", Int32),
    one(4, "optional", Bool),
];

const KEY_TO_PATH: Message =
    &[always(1, "key", Text), always(2, "path", Text), one(3, "mode", Int32)];

const NFS_VOLUME_SOURCE: Message =
    &[always(1, "server", Text), always(2, "path", Text), nonzero(3, "readOnly", Bool)];

const ISCSI_VOLUME_SOURCE: Message = &[
    always(1, "targetPortal", Text),
    always(2, "iqn", Text),
    always(3, "lun", Int32),
    nonzero(4, "iscsiInterface", Text),
    nonzero(5, "fsType", Text),
    nonzero(6, "readOnly", Bool),
    list(7, "portals", Text),
    nonzero(8, "chapAuthDiscovery", Bool),
    one(10, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
    nonzero(11, "chapAuthSession", Bool),
    one(12, "initiatorName", Text),
];

const GLUSTERFS_VOLUME_SOURCE: Message =
    &[always(1, "endpoints", Text), always(2, "path", Text), nonzero(3, "readOnly", Bool)];

const PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Message =
    &[always(1, "claimName", Text), nonzero(2, "readOnly", Bool)];

const RBD_VOLUME_SOURCE: Message = &[
    shown(list(1, "monitors", Text)),
    always(2, "image", Text),
    nonzero(3, "fsType", Text),
    nonzero(4, "pool", Text),
    nonzero(5, "user", Text),
    nonzero(6, "keyring", Text),
    one(7, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
    nonzero(8, "readOnly", Bool),
];

const FLEX_VOLUME_SOURCE: Message = &[
    always(1, "driver", Text),
    nonzero(2, "fsType", Text),
    one(3, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
    nonzero(4, "readOnly", Bool),
    map(5, "options", Text),
];

const CINDER_VOLUME_SOURCE: Message = &[
    always(1, "volumeID", Text),
    nonzero(2, "fsType", Text),
    nonzero(3, "readOnly", Bool),
    one(4, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
];

const CEPH_FS_VOLUME_SOURCE: Message = &[
    shown(list(1, "monitors", Text)),
    nonzero(2, "path", Text),
    nonzero(3, "user", Text),
    nonzero(4, "secretFile", Text),
    one(5, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
    nonzero(6, "readOnly", Bool),
];

const FLOCKER_VOLUME_SOURCE: Message =
    &[nonzero(1, "datasetName", Text), nonzero(2, "datasetUUID", Text)];

const DOWNWARD_API_VOLUME_SOURCE: Message =
    &[list(1, "items", Object(DOWNWARD_API_VOLUME_FILE)), one(2, "defaultMode", Int32)];

const DOWNWARD_API_VOLUME_FILE: Message = &[
    always(1, "path", Text),
    one(2, "fieldRef", Atomic(OBJECT_FIELD_SELECTOR)),
    one(3, "resourceFieldRef", Atomic(RESOURCE_FIELD_SELECTOR)),
    one(4, "mode", Int32),
];

const FC_VOLUME_SOURCE: Message = &[
    list(1, "targetWWNs", Text),
    one(2, "lun", Int32),
    nonzero(3, "fsType", Text),
    nonzero(4, "readOnly", Bool),
    list(5, "wwids", Text),
];

const AZURE_FILE_VOLUME_SOURCE: Message =
    &[always(1, "secretName", Text), always(2, "shareName", Text), nonzero(3, "readOnly", Bool)];

const CONFIG_MAP_VOLUME_SOURCE: Message = &[
    inline(1, LOCAL_OBJECT_REFERENCE),
    list(2, "items", Object(KEY_TO_PATH)),
    one(3, "defaultMode", Int32),
    one(4, "optional", Bool),
];

const VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Message = &[
    always(1, "volumePath", Text),
    nonzero(2, "fsType", Text),
    nonzero(3, "storagePolicyName", Text),
    nonzero(4, "storagePolicyID", Text),
];

const QUOBYTE_VOLUME_SOURCE: Message = &[
    always(1, "registry", Text),
    always(2, "volume", Text),
    nonzero(3, "readOnly", Bool),
    nonzero(4, "user", Text),
    nonzero(5, "group", Text),
    nonzero(6, "tenant", Text),
];

const AZURE_DISK_VOLUME_SOURCE: Message = &[
    always(1, "diskName", Text),
    always(2, "diskURI", Text),
    one(3, "cachingMode", Text),
    one(4, "fsType", Text),
    one(5, "readOnly", Bool),
    one(6, "kind", Text),
];

const PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Message =
    &[always(1, "pdID", Text), nonzero(2, "fsType", Text)];

const PORTWORX_VOLUME_SOURCE: Message =
    &[always(1, "volumeID", Text), nonzero(2, "fsType", Text), nonzero(3, "readOnly", Bool)];

const SCALE_IO_VOLUME_SOURCE: Message = &[
    always(1, "gateway", Text),
    always(2, "system", Text),
    one(3, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
    nonzero(4, "sslEnabled", Bool),
    nonzero(5, "protectionDomain", Text),
    nonzero(6, "storagePool", Text),
    nonzero(7, "storageMode", Text),
    nonzero(8, "volumeName", Text),
    nonzero(9, "fsType", Text),
    nonzero(10, "readOnly", Bool),
];

const PROJECTED_VOLUME_SOURCE: Message =
    &[shown(list(1, "sources", Object(VOLUME_PROJECTION))), one(2, "defaultMode", Int32)];

const VOLUME_PROJECTION: Message = &[
    one(1, "secret", Object(SECRET_PROJECTION)),
    one(2, "downwardAPI", Object(DOWNWARD_API_PROJECTION)),
    one(3, "configMap", Object(CONFIG_MAP_PROJECTION)),
    one(4, "serviceAccountToken", Object(SERVICE_ACCOUNT_TOKEN_PROJECTION)),
    one(5, "clusterTrustBundle", Object(CLUSTER_TRUST_BUNDLE_PROJECTION)),
    one(6, "podCertificate", Object(POD_CERTIFICATE_PROJECTION)),
];

const SECRET_PROJECTION: Message = &[
    inline(1, LOCAL_OBJECT_REFERENCE),
    list(2, "items", Object(KEY_TO_PATH)),
    one(4, "optional", Bool),
];

const DOWNWARD_API_PROJECTION: Message = &[list(1, "items", Object(DOWNWARD_API_VOLUME_FILE))];

const CONFIG_MAP_PROJECTION: Message = &[
    inline(1, LOCAL_OBJECT_REFERENCE),
    list(2, "items", Object(KEY_TO_PATH)),
    one(4, "optional", Bool),
];

const SERVICE_ACCOUNT_TOKEN_PROJECTION: Message =
    &[nonzero(1, "audience", Text), one(2, "expirationSeconds", Int64), always(3, "path", Text)];

const CLUSTER_TRUST_BUNDLE_PROJECTION: Message = &[
    one(1, "name", Text),
    one(2, "signerName", Text),
    one(3, "labelSelector", Atomic(LABEL_SELECTOR)),
    always(4, "path", Text),
    one(5, "optional", Bool),
];

const POD_CERTIFICATE_PROJECTION: Message = &[
    nonzero(1, "signerName", Text),
    nonzero(2, "keyType", Text),
    one(3, "maxExpirationSeconds", Int32),
    nonzero(4, "credentialBundlePath", Text),
    nonzero(5, "keyPath", Text),
    nonzero(6, "certificateChainPath", Text),
    map(7, "userAnnotations", Text),
];

const STORAGE_OS_VOLUME_SOURCE: Message = &[
    nonzero(1, "volumeName", Text),
    nonzero(2, "volumeNamespace", Text),
    nonzero(3, "fsType", Text),
    nonzero(4, "readOnly", Bool),
    one(5, "secretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
];

const CSI_VOLUME_SOURCE: Message = &[
    always(1, "driver", Text),
    one(2, "readOnly", Bool),
    one(3, "fsType", Text),
    map(4, "volumeAttributes", Text),
    one(5, "nodePublishSecretRef", Atomic(LOCAL_OBJECT_REFERENCE)),
];

const EPHEMERAL_VOLUME_SOURCE: Message =
    &[one(1, "volumeClaimTemplate", Object(PERSISTENT_VOLUME_CLAIM_TEMPLATE))];

const PERSISTENT_VOLUME_CLAIM_TEMPLATE: Message =
    &[METADATA, always(2, "spec", Object(PERSISTENT_VOLUME_CLAIM_SPEC))];

const PERSISTENT_VOLUME_CLAIM_SPEC: Message = &[
    list(1, "accessModes", Text),
    always(2, "resources", Object(VOLUME_RESOURCE_REQUIREMENTS)),
    nonzero(3, "volumeName", Text),
    one(4, "selector", Atomic(LABEL_SELECTOR)),
    one(5, "storageClassName", Text),
    one(6, "volumeMode", Text),
    one(7, "dataSource", Atomic(TYPED_LOCAL_OBJECT_REFERENCE)),
    one(8, "dataSourceRef", Object(TYPED_OBJECT_REFERENCE)),
    one(9, "volumeAttributesClassName", Text),
];

const VOLUME_RESOURCE_REQUIREMENTS: Message =
    &[map(1, "limits", Quantity), map(2, "requests", Quantity)];

const IMAGE_VOLUME_SOURCE: Message =
    &[nonzero(1, "reference", Text), nonzero(2, "pullPolicy", Text)];
