//! What became of a Pod and its containers.

use super::Type::{Bool, Int32, Int64, Object, Quantity, Text, Time};
use super::container::RESOURCE_REQUIREMENTS;
use super::{Message, list, map, nonzero, one};

pub(super) const POD_STATUS: Message = &[
    nonzero(1, "phase", Text),
    list(2, "conditions", Object(POD_CONDITION)),
    nonzero(3, "message", Text),
    nonzero(4, "reason", Text),
    nonzero(5, "hostIP", Text),
    nonzero(6, "podIP", Text),
    one(7, "startTime", Time),
    list(8, "containerStatuses", Object(CONTAINER_STATUS)),
    nonzero(9, "qosClass", Text),
    list(10, "initContainerStatuses", Object(CONTAINER_STATUS)),
    nonzero(11, "nominatedNodeName", Text),
    list(12, "podIPs", Object(POD_IP)),
    list(13, "ephemeralContainerStatuses", Object(CONTAINER_STATUS)),
    nonzero(14, "resize", Text),
    list(15, "resourceClaimStatuses", Object(POD_RESOURCE_CLAIM_STATUS)),
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
    one(1, "type", Text),
    one(2, "status", Text),
    one(3, "lastProbeTime", Time),
    one(4, "lastTransitionTime", Time),
    nonzero(5, "reason", Text),
    nonzero(6, "message", Text),
    nonzero(7, "observedGeneration", Int64),
];

const CONTAINER_STATUS: Message = &[
    one(1, "name", Text),
    one(2, "state", Object(CONTAINER_STATE)),
    one(3, "lastState", Object(CONTAINER_STATE)),
    one(4, "ready", Bool),
    one(5, "restartCount", Int32),
    one(6, "image", Text),
    one(7, "imageID", Text),
    nonzero(8, "containerID", Text),
    one(9, "started", Bool),
    map(10, "allocatedResources", Quantity),
    one(11, "resources", Object(RESOURCE_REQUIREMENTS)),
    list(12, "volumeMounts", Object(VOLUME_MOUNT_STATUS)),
    one(13, "user", Object(CONTAINER_USER)),
    list(14, "allocatedResourcesStatus", Object(RESOURCE_STATUS)),
    one(15, "stopSignal", Text),
];

const CONTAINER_STATE: Message = &[
    one(1, "waiting", Object(CONTAINER_STATE_WAITING)),
    one(2, "running", Object(CONTAINER_STATE_RUNNING)),
    one(3, "terminated", Object(CONTAINER_STATE_TERMINATED)),
];

const CONTAINER_STATE_WAITING: Message = &[nonzero(1, "reason", Text), nonzero(2, "message", Text)];

const CONTAINER_STATE_RUNNING: Message = &[one(1, "startedAt", Time)];

const CONTAINER_STATE_TERMINATED: Message = &[
    one(1, "exitCode", Int32),
    nonzero(2, "signal", Int32),
    nonzero(3, "reason", Text),
    nonzero(4, "message", Text),
    one(5, "startedAt", Time),
    one(6, "finishedAt", Time),
    nonzero(7, "containerID", Text),
];

const VOLUME_MOUNT_STATUS: Message = &[
    one(1, "name", Text),
    one(2, "mountPath", Text),
    nonzero(3, "readOnly", Bool),
    one(4, "recursiveReadOnly", Text),
    one(5, "volumeStatus", Object(VOLUME_STATUS)),
];

const VOLUME_STATUS: Message = &[one(1, "image", Object(IMAGE_VOLUME_STATUS))];

const IMAGE_VOLUME_STATUS: Message = &[nonzero(1, "imageRef", Text)];

const CONTAINER_USER: Message = &[one(1, "linux", Object(LINUX_CONTAINER_USER))];

const LINUX_CONTAINER_USER: Message =
    &[one(1, "uid", Int64), one(2, "gid", Int64), list(3, "supplementalGroups", Int64)];

const RESOURCE_STATUS: Message =
    &[one(1, "name", Text), list(2, "resources", Object(RESOURCE_HEALTH))];

const RESOURCE_HEALTH: Message =
    &[one(1, "resourceID", Text), nonzero(2, "health", Text), one(6, "message", Text)];

const POD_IP: Message = &[one(1, "ip", Text)];

const POD_RESOURCE_CLAIM_STATUS: Message =
    &[one(1, "name", Text), one(2, "resourceClaimName", Text)];

const HOST_IP: Message = &[one(1, "ip", Text)];

const POD_EXTENDED_RESOURCE_CLAIM_STATUS: Message = &[
    list(1, "requestMappings", Object(CONTAINER_EXTENDED_RESOURCE_REQUEST)),
    one(2, "resourceClaimName", Text),
];

const CONTAINER_EXTENDED_RESOURCE_REQUEST: Message =
    &[one(1, "containerName", Text), one(2, "resourceName", Text), one(3, "requestName", Text)];

const NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Message = &[
    one(1, "resourceClaimName", Text),
    list(2, "containers", Text),
    map(3, "resources", Quantity),
];
