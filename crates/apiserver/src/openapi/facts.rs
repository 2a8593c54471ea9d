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
    ("ContainerStatus", "allocatedResourcesStatus", "name", "merge"),
    ("ContainerStatus", "volumeMounts", "mountPath", "merge"),
    ("PodSpec", "resourceClaims", "name", "merge,retainKeys"),
    ("PodSpec", "volumes", "name", "merge,retainKeys"),
    ("PodStatus", "resourceClaimStatuses", "name", "merge,retainKeys"),
];

/// Unions: type, the field that says which, if there is one, and the other fields with what they
/// are called there.
pub(super) const UNIONS: &[(&str, &str, Fields)] = &[
    ("AppArmorProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
    ("PodSchedulingGroup", "", &[("podGroupName", "PodGroupName")]),
    ("SeccompProfile", "type", &[("localhostProfile", "LocalhostProfile")]),
];

type Fields = &'static [(&'static str, &'static str)];

/// Fields that are objects and always there, of types that are in no table: type, field.
pub(super) const OBJECTS: &[(&str, &str)] =
    &[("APIGroup", "preferredVersion"), ("SelfSubjectReviewStatus", "userInfo")];

/// Fields that need not be there, which k8s-openapi has as if they had to: type, field. Metadata is
/// another, in all types but one.
pub(super) const OPTIONAL: &[(&str, &str)] = &[
    ("ConfigMapEnvSource", "name"),
    ("ConfigMapKeySelector", "name"),
    ("ConfigMapProjection", "name"),
    ("ConfigMapVolumeSource", "name"),
    ("LocalObjectReference", "name"),
    ("SecretEnvSource", "name"),
    ("SecretKeySelector", "name"),
    ("SecretProjection", "name"),
];

/// The one type whose metadata has to be there.
pub(super) const NEEDS_METADATA: &str = "io.k8s.api.core.v1.Event";

/// The one type with a field that has to be there though k8s-openapi does not say so, and the field.
pub(super) const NEEDS_MORE: (&str, &str) = ("io.k8s.api.events.v1.Event", "eventTime");

/// Lists of types that are in no table, of which Kubernetes does not say what they are.
pub(super) const BARE_LISTS: &[(&str, &str)] = &[("APIResource", "verbs")];

/// The values of enumerations, in the order of their letters: type, field, values. A space at the
/// start: an empty text is one of them. Of a list they are those of its items.
pub(super) const ENUMS: &[(&str, &str, &str)] = &[
    ("AppArmorProfile", "type", "Localhost RuntimeDefault Unconfined"),
    ("AzureDiskVolumeSource", "cachingMode", "None ReadOnly ReadWrite"),
    ("AzureDiskVolumeSource", "kind", "Dedicated Managed Shared"),
    ("Container", "imagePullPolicy", "Always IfNotPresent Never"),
    ("Container", "terminationMessagePolicy", "FallbackToLogsOnError File"),
    ("ContainerPort", "protocol", "SCTP TCP UDP"),
    ("ContainerStatus", "stopSignal", SIGNALS),
    ("EndpointPort", "protocol", "SCTP TCP UDP"),
    ("EndpointSlice", "addressType", "FQDN IPv4 IPv6"),
    ("EphemeralContainer", "imagePullPolicy", "Always IfNotPresent Never"),
    ("EphemeralContainer", "terminationMessagePolicy", "FallbackToLogsOnError File"),
    ("HTTPGetAction", "scheme", "HTTP HTTPS"),
    (
        "HostPathVolumeSource",
        "type",
        " BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket",
    ),
    ("ImageVolumeSource", "pullPolicy", "Always IfNotPresent Never"),
    ("JobSpec", "completionMode", "Indexed NonIndexed"),
    ("JobSpec", "podReplacementPolicy", "Failed TerminatingOrFailed"),
    ("Lifecycle", "stopSignal", SIGNALS),
    ("NamespaceStatus", "phase", "Active Terminating"),
    ("NodeSelectorRequirement", "operator", "DoesNotExist Exists Gt In Lt NotIn"),
    ("NodeStatus", "phase", "Pending Running Terminated"),
    (
        "PersistentVolumeClaimSpec",
        "accessModes",
        "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod",
    ),
    ("PersistentVolumeClaimSpec", "volumeMode", "Block Filesystem"),
    ("PodFailurePolicyOnExitCodesRequirement", "operator", "In NotIn"),
    ("PodFailurePolicyRule", "action", "Count FailIndex FailJob Ignore"),
    ("PodSecurityContext", "fsGroupChangePolicy", "Always OnRootMismatch"),
    ("PodSecurityContext", "supplementalGroupsPolicy", "Merge Strict"),
    ("PodSpec", "dnsPolicy", "ClusterFirst ClusterFirstWithHostNet Default None"),
    ("PodSpec", "preemptionPolicy", "Never PreemptLowerPriority"),
    ("PodSpec", "restartPolicy", "Always Never OnFailure"),
    ("PodStatus", "phase", "Failed Pending Running Succeeded Unknown"),
    ("PodStatus", "qosClass", "BestEffort Burstable Guaranteed"),
    ("PortStatus", "protocol", "SCTP TCP UDP"),
    (
        "ResourceQuotaSpec",
        "scopes",
        "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass \
         Terminating VolumeAttributesClass",
    ),
    (
        "ScopedResourceSelectorRequirement",
        "scopeName",
        "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass \
         Terminating VolumeAttributesClass",
    ),
    ("ScopedResourceSelectorRequirement", "operator", "DoesNotExist Exists In NotIn"),
    ("SeccompProfile", "type", "Localhost RuntimeDefault Unconfined"),
    ("SecurityContext", "procMount", "Default Unmasked"),
    ("ServicePort", "protocol", "SCTP TCP UDP"),
    ("ServiceSpec", "externalTrafficPolicy", "Cluster Local"),
    ("ServiceSpec", "internalTrafficPolicy", "Cluster Local"),
    ("ServiceSpec", "ipFamilies", " IPv4 IPv6"),
    ("ServiceSpec", "ipFamilyPolicy", "PreferDualStack RequireDualStack SingleStack"),
    ("ServiceSpec", "sessionAffinity", "ClientIP None"),
    ("ServiceSpec", "type", "ClusterIP ExternalName LoadBalancer NodePort"),
    ("Taint", "effect", "NoExecute NoSchedule PreferNoSchedule"),
    ("Toleration", "effect", "NoExecute NoSchedule PreferNoSchedule"),
    ("Toleration", "operator", "Equal Exists Gt Lt"),
    ("TopologySpreadConstraint", "nodeAffinityPolicy", "Honor Ignore"),
    ("TopologySpreadConstraint", "nodeTaintsPolicy", "Honor Ignore"),
    ("TopologySpreadConstraint", "whenUnsatisfiable", "DoNotSchedule ScheduleAnyway"),
    ("VolumeMount", "mountPropagation", "Bidirectional HostToContainer None"),
];

/// The signals that can end a container.
const SIGNALS: &str = "\
    SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT \
    SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMAX-1 SIGRTMAX-10 \
    SIGRTMAX-11 SIGRTMAX-12 SIGRTMAX-13 SIGRTMAX-14 SIGRTMAX-2 SIGRTMAX-3 SIGRTMAX-4 \
    SIGRTMAX-5 SIGRTMAX-6 SIGRTMAX-7 SIGRTMAX-8 SIGRTMAX-9 SIGRTMIN SIGRTMIN+1 SIGRTMIN+10 \
    SIGRTMIN+11 SIGRTMIN+12 SIGRTMIN+13 SIGRTMIN+14 SIGRTMIN+15 SIGRTMIN+2 SIGRTMIN+3 \
    SIGRTMIN+4 SIGRTMIN+5 SIGRTMIN+6 SIGRTMIN+7 SIGRTMIN+8 SIGRTMIN+9 SIGSEGV SIGSTKFLT \
    SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM \
    SIGWINCH SIGXCPU SIGXFSZ";
