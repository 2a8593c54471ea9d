//! Pods, and the templates that Jobs make them from.

use super::Type::{Atomic, Bool, Int32, Int64, Object, Quantity, Text};
use super::container::{
    APP_ARMOR_PROFILE, CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS, SE_LINUX_OPTIONS,
    SECCOMP_PROFILE, WINDOWS_SECURITY_CONTEXT_OPTIONS,
};
use super::core::LOCAL_OBJECT_REFERENCE;
use super::pod_status::POD_STATUS;
use super::scheduling::{AFFINITY, TOLERATION, TOPOLOGY_SPREAD_CONSTRAINT};
use super::volume::VOLUME;
use super::{METADATA, Message, always, atomic_map, keyed, list, map, nonzero, one, shown, text};

pub(super) const POD: Message =
    &[METADATA, always(2, "spec", Object(POD_SPEC)), always(3, "status", Object(POD_STATUS))];

const POD_SPEC: Message = &[
    keyed(1, "volumes", Object(VOLUME), &[text("name")]),
    shown(keyed(2, "containers", Object(CONTAINER), &[text("name")])),
    nonzero(3, "restartPolicy", Text),
    one(4, "terminationGracePeriodSeconds", Int64),
    one(5, "activeDeadlineSeconds", Int64),
    nonzero(6, "dnsPolicy", Text),
    atomic_map(7, "nodeSelector", Text),
    nonzero(8, "serviceAccountName", Text),
    nonzero(9, "serviceAccount", Text),
    nonzero(10, "nodeName", Text),
    nonzero(11, "hostNetwork", Bool),
    nonzero(12, "hostPID", Bool),
    nonzero(13, "hostIPC", Bool),
    one(14, "securityContext", Object(POD_SECURITY_CONTEXT)),
    keyed(15, "imagePullSecrets", Atomic(LOCAL_OBJECT_REFERENCE), &[text("name")]),
    nonzero(16, "hostname", Text),
    nonzero(17, "subdomain", Text),
    one(18, "affinity", Object(AFFINITY)),
    nonzero(19, "schedulerName", Text),
    keyed(20, "initContainers", Object(CONTAINER), &[text("name")]),
    one(21, "automountServiceAccountToken", Bool),
    list(22, "tolerations", Object(TOLERATION)),
    keyed(23, "hostAliases", Object(HOST_ALIAS), &[text("ip")]),
    nonzero(24, "priorityClassName", Text),
    one(25, "priority", Int32),
    one(26, "dnsConfig", Object(POD_DNS_CONFIG)),
    one(27, "shareProcessNamespace", Bool),
    list(28, "readinessGates", Object(POD_READINESS_GATE)),
    one(29, "runtimeClassName", Text),
    one(30, "enableServiceLinks", Bool),
    one(31, "preemptionPolicy", Text),
    map(32, "overhead", Quantity),
    keyed(
        33,
        "topologySpreadConstraints",
        Object(TOPOLOGY_SPREAD_CONSTRAINT),
        &[text("topologyKey"), text("whenUnsatisfiable")],
    ),
    keyed(34, "ephemeralContainers", Object(EPHEMERAL_CONTAINER), &[text("name")]),
    one(35, "setHostnameAsFQDN", Bool),
    one(36, "os", Object(POD_OS)),
    one(37, "hostUsers", Bool),
    keyed(38, "schedulingGates", Object(POD_SCHEDULING_GATE), &[text("name")]),
    keyed(39, "resourceClaims", Object(POD_RESOURCE_CLAIM), &[text("name")]),
    one(40, "resources", Object(RESOURCE_REQUIREMENTS)),
    one(41, "hostnameOverride", Text),
    one(43, "schedulingGroup", Object(POD_SCHEDULING_GROUP)),
];

const POD_SECURITY_CONTEXT: Message = &[
    one(1, "seLinuxOptions", Object(SE_LINUX_OPTIONS)),
    one(2, "runAsUser", Int64),
    one(3, "runAsNonRoot", Bool),
    list(4, "supplementalGroups", Int64),
    one(5, "fsGroup", Int64),
    one(6, "runAsGroup", Int64),
    list(7, "sysctls", Object(SYSCTL)),
    one(8, "windowsOptions", Object(WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    one(9, "fsGroupChangePolicy", Text),
    one(10, "seccompProfile", Object(SECCOMP_PROFILE)),
    one(11, "appArmorProfile", Object(APP_ARMOR_PROFILE)),
    one(12, "supplementalGroupsPolicy", Text),
    one(13, "seLinuxChangePolicy", Text),
];

const SYSCTL: Message = &[always(1, "name", Text), always(2, "value", Text)];

const HOST_ALIAS: Message = &[always(1, "ip", Text), list(2, "hostnames", Text)];

const POD_DNS_CONFIG: Message = &[
    list(1, "nameservers", Text),
    list(2, "searches", Text),
    list(3, "options", Object(POD_DNS_CONFIG_OPTION)),
];

const POD_DNS_CONFIG_OPTION: Message = &[nonzero(1, "name", Text), one(2, "value", Text)];

const POD_READINESS_GATE: Message = &[always(1, "conditionType", Text)];

const POD_OS: Message = &[always(1, "name", Text)];

const POD_SCHEDULING_GATE: Message = &[always(1, "name", Text)];

const POD_RESOURCE_CLAIM: Message = &[
    always(1, "name", Text),
    one(3, "resourceClaimName", Text),
    one(4, "resourceClaimTemplateName", Text),
];

const POD_SCHEDULING_GROUP: Message = &[one(1, "podGroupName", Text)];

pub(super) const POD_TEMPLATE_SPEC: Message = &[METADATA, always(2, "spec", Object(POD_SPEC))];
