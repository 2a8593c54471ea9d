//! What Kubernetes says of its types that neither their schemas nor the tables of fields say:
//! the facts of the `default`, `enum`, `patchStrategy` and `unionDiscriminator` markers in
//! k8s.io/api v0.36.3. Types are named without their packages.

/// Values that a field has if it is not given: type, field, value.
pub(super) const DEFAULTS: &[(&str, &str, Value)] = &[
    ("AzureDiskVolumeSource", "cachingMode", Value::Text("ReadWrite")),
    ("AzureDiskVolumeSource", "fsType", Value::Text("ext4")),
    ("AzureDiskVolumeSource", "kind", Value::Text("Shared")),
    ("AzureDiskVolumeSource", "readOnly", Value::False),
    ("ConfigMapEnvSource", "name", Value::Text("")),
    ("ConfigMapKeySelector", "name", Value::Text("")),
    ("ConfigMapProjection", "name", Value::Text("")),
    ("ConfigMapVolumeSource", "name", Value::Text("")),
    ("ContainerPort", "protocol", Value::Text("TCP")),
    ("FileKeySelector", "optional", Value::False),
    ("GRPCAction", "service", Value::Text("")),
    ("ISCSIVolumeSource", "iscsiInterface", Value::Text("default")),
    ("LocalObjectReference", "name", Value::Text("")),
    ("NodeRuntimeHandler", "name", Value::Text("")),
    ("RBDVolumeSource", "keyring", Value::Text("/etc/ceph/keyring")),
    ("RBDVolumeSource", "pool", Value::Text("rbd")),
    ("RBDVolumeSource", "user", Value::Text("admin")),
    ("ScaleIOVolumeSource", "fsType", Value::Text("xfs")),
    ("ScaleIOVolumeSource", "storageMode", Value::Text("ThinProvisioned")),
    ("SecretEnvSource", "name", Value::Text("")),
    ("SecretKeySelector", "name", Value::Text("")),
    ("SecretProjection", "name", Value::Text("")),
    ("ServicePort", "protocol", Value::Text("TCP")),
];

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// A text.
    Text(&'static str),
    /// Not so.
    False,
}

/// Lists of which a strategic merge patch also keeps the keys that it names, or that are never
/// merged where this server patches, but would be: type, field, key, strategy.
pub(super) const PATCHES: &[(&str, &str, &str, &str)] = &[
    ("PodSpec", "resourceClaims", "name", "merge,retainKeys"),
    ("PodSpec", "volumes", "name", "merge,retainKeys"),
];

/// Unions: type, the field that says which, and the other fields with what they are called there.
pub(super) const UNIONS: &[(&str, &str, Fields)] = &[
    ("AppArmorProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
    ("SeccompProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
];

type Fields = &'static [(&'static str, &'static str)];

/// Fields that are objects and always there, of types that are in no table: type, field.
pub(super) const OBJECTS: &[(&str, &str)] = &[("SelfSubjectReviewStatus", "userInfo")];

/// Lists of types that are in no table, of which Kubernetes does not say what they are.
pub(super) const BARE_LISTS: &[(&str, &str)] = &[("APIResource", "verbs")];
