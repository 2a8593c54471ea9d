//! Containers: their environment, resources, probes and rights.

use super::Type::{Atomic, Bool, Int32, Int64, IntOrString, Object, Quantity, Text};
use super::core::LOCAL_OBJECT_REFERENCE;
use super::{Message, always, inline, keyed, list, map, nonzero, one, port, set, text};

pub(super) const CONTAINER: Message = &[
    always(1, "name", Text),
    nonzero(2, "image", Text),
    list(3, "command", Text),
    list(4, "args", Text),
    nonzero(5, "workingDir", Text),
    keyed(6, "ports", Object(CONTAINER_PORT), &port("containerPort")),
    keyed(7, "env", Object(ENV_VAR), &[text("name")]),
    always(8, "resources", Object(RESOURCE_REQUIREMENTS)),
    keyed(9, "volumeMounts", Object(VOLUME_MOUNT), &[text("mountPath")]),
    one(10, "livenessProbe", Object(PROBE)),
    one(11, "readinessProbe", Object(PROBE)),
    one(12, "lifecycle", Object(LIFECYCLE)),
    nonzero(13, "terminationMessagePath", Text),
    nonzero(14, "imagePullPolicy", Text),
    one(15, "securityContext", Object(SECURITY_CONTEXT)),
    nonzero(16, "stdin", Bool),
    nonzero(17, "stdinOnce", Bool),
    nonzero(18, "tty", Bool),
    list(19, "envFrom", Object(ENV_FROM_SOURCE)),
    nonzero(20, "terminationMessagePolicy", Text),
    keyed(21, "volumeDevices", Object(VOLUME_DEVICE), &[text("devicePath")]),
    one(22, "startupProbe", Object(PROBE)),
    list(23, "resizePolicy", Object(CONTAINER_RESIZE_POLICY)),
    one(24, "restartPolicy", Text),
    list(25, "restartPolicyRules", Object(CONTAINER_RESTART_RULE)),
];

const CONTAINER_PORT: Message = &[
    nonzero(1, "name", Text),
    nonzero(2, "hostPort", Int32),
    always(3, "containerPort", Int32),
    nonzero(4, "protocol", Text),
    nonzero(5, "hostIP", Text),
];

const ENV_VAR: Message = &[
    always(1, "name", Text),
    nonzero(2, "value", Text),
    one(3, "valueFrom", Object(ENV_VAR_SOURCE)),
];

const ENV_VAR_SOURCE: Message = &[
    one(1, "fieldRef", Atomic(OBJECT_FIELD_SELECTOR)),
    one(2, "resourceFieldRef", Atomic(RESOURCE_FIELD_SELECTOR)),
    one(3, "configMapKeyRef", Atomic(CONFIG_MAP_KEY_SELECTOR)),
    one(4, "secretKeyRef", Atomic(SECRET_KEY_SELECTOR)),
    one(5, "fileKeyRef", Atomic(FILE_KEY_SELECTOR)),
];

pub(super) const OBJECT_FIELD_SELECTOR: Message =
    &[nonzero(1, "apiVersion", Text), always(2, "fieldPath", Text)];

pub(super) const RESOURCE_FIELD_SELECTOR: Message = &[
    nonzero(1, "containerName", Text),
    always(2, "resource", Text),
    always(3, "divisor", Quantity),
];

const CONFIG_MAP_KEY_SELECTOR: Message =
    &[inline(1, LOCAL_OBJECT_REFERENCE), always(2, "key", Text), one(3, "optional", Bool)];

const SECRET_KEY_SELECTOR: Message =
    &[inline(1, LOCAL_OBJECT_REFERENCE), always(2, "key", Text), one(3, "optional", Bool)];

const FILE_KEY_SELECTOR: Message = &[
    always(1, "volumeName", Text),
    always(2, "path", Text),
    always(3, "key", Text),
    one(4, "optional", Bool),
];

pub(super) const RESOURCE_REQUIREMENTS: Message = &[
    map(1, "limits", Quantity),
    map(2, "requests", Quantity),
    keyed(3, "claims", Object(RESOURCE_CLAIM), &[text("name")]),
];

const RESOURCE_CLAIM: Message = &[always(1, "name", Text), nonzero(2, "request", Text)];

const VOLUME_MOUNT: Message = &[
    always(1, "name", Text),
    nonzero(2, "readOnly", Bool),
    always(3, "mountPath", Text),
    nonzero(4, "subPath", Text),
    one(5, "mountPropagation", Text),
    nonzero(6, "subPathExpr", Text),
    one(7, "recursiveReadOnly", Text),
];

const PROBE: Message = &[
    inline(1, PROBE_HANDLER),
    nonzero(2, "initialDelaySeconds", Int32),
    nonzero(3, "timeoutSeconds", Int32),
    nonzero(4, "periodSeconds", Int32),
    nonzero(5, "successThreshold", Int32),
    nonzero(6, "failureThreshold", Int32),
    one(7, "terminationGracePeriodSeconds", Int64),
];

const PROBE_HANDLER: Message = &[
    one(1, "exec", Object(EXEC_ACTION)),
    one(2, "httpGet", Object(HTTP_GET_ACTION)),
    one(3, "tcpSocket", Object(TCP_SOCKET_ACTION)),
    one(4, "grpc", Object(GRPC_ACTION)),
];

const EXEC_ACTION: Message = &[list(1, "command", Text)];

const HTTP_GET_ACTION: Message = &[
    nonzero(1, "path", Text),
    always(2, "port", IntOrString),
    nonzero(3, "host", Text),
    nonzero(4, "scheme", Text),
    list(5, "httpHeaders", Object(HTTP_HEADER)),
];

const HTTP_HEADER: Message = &[always(1, "name", Text), always(2, "value", Text)];

const TCP_SOCKET_ACTION: Message = &[always(1, "port", IntOrString), nonzero(2, "host", Text)];

const GRPC_ACTION: Message = &[always(1, "port", Int32), one(2, "service", Text)];

const LIFECYCLE: Message = &[
    one(1, "postStart", Object(LIFECYCLE_HANDLER)),
    one(2, "preStop", Object(LIFECYCLE_HANDLER)),
    one(3, "stopSignal", Text),
];

const LIFECYCLE_HANDLER: Message = &[
    one(1, "exec", Object(EXEC_ACTION)),
    one(2, "httpGet", Object(HTTP_GET_ACTION)),
    one(3, "tcpSocket", Object(TCP_SOCKET_ACTION)),
    one(4, "sleep", Object(SLEEP_ACTION)),
];

const SLEEP_ACTION: Message = &[always(1, "seconds", Int64)];

const SECURITY_CONTEXT: Message = &[
    one(1, "capabilities", Object(CAPABILITIES)),
    one(2, "privileged", Bool),
    one(3, "seLinuxOptions", Object(SE_LINUX_OPTIONS)),
    one(4, "runAsUser", Int64),
    one(5, "runAsNonRoot", Bool),
    one(6, "readOnlyRootFilesystem", Bool),
    one(7, "allowPrivilegeEscalation", Bool),
    one(8, "runAsGroup", Int64),
    one(9, "procMount", Text),
    one(10, "windowsOptions", Object(WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    one(11, "seccompProfile", Object(SECCOMP_PROFILE)),
    one(12, "appArmorProfile", Object(APP_ARMOR_PROFILE)),
];

const CAPABILITIES: Message = &[list(1, "add", Text), list(2, "drop", Text)];

pub(super) const SE_LINUX_OPTIONS: Message = &[
    nonzero(1, "user", Text),
    nonzero(2, "role", Text),
    nonzero(3, "type", Text),
    nonzero(4, "level", Text),
];

pub(super) const WINDOWS_SECURITY_CONTEXT_OPTIONS: Message = &[
    one(1, "gmsaCredentialSpecName", Text),
    one(2, "gmsaCredentialSpec", Text),
    one(3, "runAsUserName", Text),
    one(4, "hostProcess", Bool),
];

pub(super) const SECCOMP_PROFILE: Message =
    &[always(1, "type", Text), one(2, "localhostProfile", Text)];

pub(super) const APP_ARMOR_PROFILE: Message =
    &[always(1, "type", Text), one(2, "localhostProfile", Text)];

const ENV_FROM_SOURCE: Message = &[
    nonzero(1, "prefix", Text),
    one(2, "configMapRef", Object(CONFIG_MAP_ENV_SOURCE)),
    one(3, "secretRef", Object(SECRET_ENV_SOURCE)),
];

const CONFIG_MAP_ENV_SOURCE: Message =
    &[inline(1, LOCAL_OBJECT_REFERENCE), one(2, "optional", Bool)];

const SECRET_ENV_SOURCE: Message = &[inline(1, LOCAL_OBJECT_REFERENCE), one(2, "optional", Bool)];

const VOLUME_DEVICE: Message = &[always(1, "name", Text), always(2, "devicePath", Text)];

const CONTAINER_RESIZE_POLICY: Message =
    &[always(1, "resourceName", Text), always(2, "restartPolicy", Text)];

const CONTAINER_RESTART_RULE: Message = &[
    nonzero(1, "action", Text),
    one(2, "exitCodes", Object(CONTAINER_RESTART_RULE_ON_EXIT_CODES)),
];

const CONTAINER_RESTART_RULE_ON_EXIT_CODES: Message =
    &[nonzero(1, "operator", Text), set(2, "values", Int32)];

pub(super) const EPHEMERAL_CONTAINER: Message =
    &[inline(1, EPHEMERAL_CONTAINER_COMMON), nonzero(2, "targetContainerName", Text)];

const EPHEMERAL_CONTAINER_COMMON: Message = &[
    always(1, "name", Text),
    nonzero(2, "image", Text),
    list(3, "command", Text),
    list(4, "args", Text),
    nonzero(5, "workingDir", Text),
    keyed(6, "ports", Object(CONTAINER_PORT), &port("containerPort")),
    keyed(7, "env", Object(ENV_VAR), &[text("name")]),
    always(8, "resources", Object(RESOURCE_REQUIREMENTS)),
    keyed(9, "volumeMounts", Object(VOLUME_MOUNT), &[text("mountPath")]),
    one(10, "livenessProbe", Object(PROBE)),
    one(11, "readinessProbe", Object(PROBE)),
    one(12, "lifecycle", Object(LIFECYCLE)),
    nonzero(13, "terminationMessagePath", Text),
    nonzero(14, "imagePullPolicy", Text),
    one(15, "securityContext", Object(SECURITY_CONTEXT)),
    nonzero(16, "stdin", Bool),
    nonzero(17, "stdinOnce", Bool),
    nonzero(18, "tty", Bool),
    list(19, "envFrom", Object(ENV_FROM_SOURCE)),
    nonzero(20, "terminationMessagePolicy", Text),
    keyed(21, "volumeDevices", Object(VOLUME_DEVICE), &[text("devicePath")]),
    one(22, "startupProbe", Object(PROBE)),
    list(23, "resizePolicy", Object(CONTAINER_RESIZE_POLICY)),
    one(24, "restartPolicy", Text),
    list(25, "restartPolicyRules", Object(CONTAINER_RESTART_RULE)),
];
