//! Nodes.

use super::Type::{Bool, Int32, Int64, Object, Quantity, Text, Time};
use super::scheduling::TAINT;
use super::{METADATA, Message, always, keyed, list, map, nonzero, one, set, shown, text};

pub(super) const NODE: Message =
    &[METADATA, always(2, "spec", Object(NODE_SPEC)), always(3, "status", Object(NODE_STATUS))];

const NODE_SPEC: Message = &[
    nonzero(1, "podCIDR", Text),
    nonzero(2, "externalID", Text),
    nonzero(3, "providerID", Text),
    nonzero(4, "unschedulable", Bool),
    list(5, "taints", Object(TAINT)),
    one(6, "configSource", Object(NODE_CONFIG_SOURCE)),
    set(7, "podCIDRs", Text),
];

const NODE_CONFIG_SOURCE: Message = &[one(2, "configMap", Object(CONFIG_MAP_NODE_CONFIG_SOURCE))];

const CONFIG_MAP_NODE_CONFIG_SOURCE: Message = &[
    always(1, "namespace", Text),
    always(2, "name", Text),
    nonzero(3, "uid", Text),
    nonzero(4, "resourceVersion", Text),
    always(5, "kubeletConfigKey", Text),
];

const NODE_STATUS: Message = &[
    map(1, "capacity", Quantity),
    map(2, "allocatable", Quantity),
    nonzero(3, "phase", Text),
    keyed(4, "conditions", Object(NODE_CONDITION), &[text("type")]),
    keyed(5, "addresses", Object(NODE_ADDRESS), &[text("type")]),
    always(6, "daemonEndpoints", Object(NODE_DAEMON_ENDPOINTS)),
    always(7, "nodeInfo", Object(NODE_SYSTEM_INFO)),
    list(8, "images", Object(CONTAINER_IMAGE)),
    list(9, "volumesInUse", Text),
    list(10, "volumesAttached", Object(ATTACHED_VOLUME)),
    one(11, "config", Object(NODE_CONFIG_STATUS)),
    list(12, "runtimeHandlers", Object(NODE_RUNTIME_HANDLER)),
    one(13, "features", Object(NODE_FEATURES)),
    list(14, "declaredFeatures", Text),
];

const NODE_CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    always(3, "lastHeartbeatTime", Time),
    always(4, "lastTransitionTime", Time),
    nonzero(5, "reason", Text),
    nonzero(6, "message", Text),
];

const NODE_ADDRESS: Message = &[always(1, "type", Text), always(2, "address", Text)];

const NODE_DAEMON_ENDPOINTS: Message = &[always(1, "kubeletEndpoint", Object(DAEMON_ENDPOINT))];

const DAEMON_ENDPOINT: Message = &[always(1, "Port", Int32)];

const NODE_SYSTEM_INFO: Message = &[
    always(1, "machineID", Text),
    always(2, "systemUUID", Text),
    always(3, "bootID", Text),
    always(4, "kernelVersion", Text),
    always(5, "osImage", Text),
    always(6, "containerRuntimeVersion", Text),
    always(7, "kubeletVersion", Text),
    always(8, "kubeProxyVersion", Text),
    always(9, "operatingSystem", Text),
    always(10, "architecture", Text),
    one(11, "swap", Object(NODE_SWAP_STATUS)),
];

const NODE_SWAP_STATUS: Message = &[one(1, "capacity", Int64)];

const CONTAINER_IMAGE: Message = &[shown(list(1, "names", Text)), nonzero(2, "sizeBytes", Int64)];

const ATTACHED_VOLUME: Message = &[always(1, "name", Text), always(2, "devicePath", Text)];

const NODE_CONFIG_STATUS: Message = &[
    one(1, "assigned", Object(NODE_CONFIG_SOURCE)),
    one(2, "active", Object(NODE_CONFIG_SOURCE)),
    one(3, "lastKnownGood", Object(NODE_CONFIG_SOURCE)),
    nonzero(4, "error", Text),
];

const NODE_RUNTIME_HANDLER: Message =
    &[always(1, "name", Text), one(2, "features", Object(NODE_RUNTIME_HANDLER_FEATURES))];

const NODE_RUNTIME_HANDLER_FEATURES: Message =
    &[one(1, "recursiveReadOnlyMounts", Bool), one(2, "userNamespaces", Bool)];

const NODE_FEATURES: Message = &[one(1, "supplementalGroupsPolicy", Bool)];
