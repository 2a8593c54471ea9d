//! What became of a Pod and its containers.

use super::Type::{Bool, Int32, Int64, Object, Quantity, Text, Time};
use super::container::RESOURCE_REQUIREMENTS;
use super::{Message, always, keyed, list, map, nonzero, one, set, shown, text};

pub(super) const POD_STATUS: Message = &[
    nonzero(1, "phase", Text),
    keyed(2, "conditions", Object(POD_CONDITION), &[text("type")]),
    nonzero(3, "message", Text),
    nonzero(4, "reason", Text),
    nonzero(5, "hostIP", Text),
    nonzero(6, "podIP", Text),
    one(7, "startTime", Time),
    list(8, "containerStatuses", Object(CONTAINER_STATUS)),
    nonzero(9, "qosClass", Text),
    list(10, "initContainerStatuses", Object(CONTAINER_STATUS)),
    nonzero(11, "nominatedNodeName", Text),
    keyed(12, "podIPs", Object(POD_IP), &[text("ip")]),
    list(13, "ephemeralContainerStatuses", Object(CONTAINER_STATUS)),
    nonzero(14, "resize", Text),
    keyed(15, "resourceClaimStatuses", Object(POD_RESOURCE_CLAIM_STATUS), &[text("name")]),
    list(16, "hostIPs", Object(HOST_IP)),
    nonzero(17, "observedGeneration", Int64),
    one(18, "extendedResourceClaimStatus", Object(POD_EXTENDED_RESOURCE_CLAIM_STATUS)),
    map(19, "allocatedResources", Quantity),
    one(20, "resources", Object(RESOURCE_REQUIREMENTS)),
    list(
        21,
        "nodeAllocatableResourceClaimStatuses",
        Object(NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS),
    ),
];

const POD_CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    always(3, "lastProbeTime", Time),
    always(4, "lastTransitionTime", Time),
    nonzero(5, "reason", Text),
    nonzero(6, "message", Text),
    nonzero(7, "observedGeneration", Int64),
];

const CONTAINER_STATUS: Message = &[
    always(1, "name", Text),
    always(2, "state", Object(CONTAINER_STATE)),
    always(3, "lastState", Object(CONTAINER_STATE)),
    always(4, "ready", Bool),
    always(5, "restartCount", Int32),
    always(6, "image", Text),
    always(7, "imageID", Text),
    nonzero(8, "containerID", Text),
    one(9, "started", Bool),
    map(10, "allocatedResources", Quantity),
    one(11, "resources", Object(RESOURCE_REQUIREMENTS)),
    keyed(12, "volumeMounts", Object(VOLUME_MOUNT_STATUS), &[text("mountPath")]),
    one(13, "user", Object(CONTAINER_USER)),
    keyed(14, "allocatedResourcesStatus", Object(RESOURCE_STATUS), &[text("name")]),
    one(15, "stopSignal", Text),
];

const CONTAINER_STATE: Message = &[
    one(1, "waiting", Object(CONTAINER_STATE_WAITING)),
    one(2, "running", Object(CONTAINER_STATE_RUNNING)),
    one(3, "terminated", Object(CONTAINER_STATE_TERMINATED)),
];

const CONTAINER_STATE_WAITING: Message = &[nonzero(1, "reason", Text), nonzero(2, "message", Text)];

const CONTAINER_STATE_RUNNING: Message = &[always(1, "startedAt", Time)];

const CONTAINER_STATE_TERMINATED: Message = &[
    always(1, "exitCode", Int32),
    nonzero(2, "signal", Int32),
    nonzero(3, "reason", Text),
    nonzero(4, "message", Text),
    always(5, "startedAt", Time),
    always(6, "finishedAt", Time),
    nonzero(7, "containerID", Text),
];

const VOLUME_MOUNT_STATUS: Message = &[
    always(1, "name", Text),
    always(2, "mountPath", Text),
    nonzero(3, "readOnly", Bool),
    one(4, "recursiveReadOnly", Text),
    one(5, "volumeStatus", Object(VOLUME_STATUS)),
];

const VOLUME_STATUS: Message = &[one(1, "image", Object(IMAGE_VOLUME_STATUS))];

const IMAGE_VOLUME_STATUS: Message = &[nonzero(1, "imageRef", Text)];

const CONTAINER_USER: Message = &[one(1, "linux", Object(LINUX_CONTAINER_USER))];

const LINUX_CONTAINER_USER: Message =
    &[always(1, "uid", Int64), always(2, "gid", Int64), list(3, "supplementalGroups", Int64)];

const RESOURCE_STATUS: Message = &[
    always(1, "name", Text),
    keyed(2, "resources", Object(RESOURCE_HEALTH), &[text("resourceID")]),
];

const RESOURCE_HEALTH: Message =
    &[always(1, "resourceID", Text), nonzero(2, "health", Text), one(6, "message", Text)];

const POD_IP: Message = &[always(1, "ip", Text)];

const POD_RESOURCE_CLAIM_STATUS: Message =
    &[always(1, "name", Text), one(2, "resourceClaimName", Text)];

const HOST_IP: Message = &[always(1, "ip", Text)];

const POD_EXTENDED_RESOURCE_CLAIM_STATUS: Message = &[
    shown(list(1, "requestMappings", Object(CONTAINER_EXTENDED_RESOURCE_REQUEST))),
    always(2, "resourceClaimName", Text),
];

const CONTAINER_EXTENDED_RESOURCE_REQUEST: Message = &[
    always(1, "containerName", Text),
    always(2, "resourceName", Text),
    always(3, "requestName", Text),
];

const NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Message = &[
    always(1, "resourceClaimName", Text),
    set(2, "containers", Text),
    shown(map(3, "resources", Quantity)),
];
