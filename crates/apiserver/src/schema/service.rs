//! Services.

use super::Type::{Bool, Int32, IntOrString, Object, Text};
use super::meta::CONDITION;
use super::{METADATA, Message, always, atomic_map, keyed, list, nonzero, one, port, text};

pub(super) const SERVICE: Message = &[
    METADATA,
    always(2, "spec", Object(SERVICE_SPEC)),
    always(3, "status", Object(SERVICE_STATUS)),
];

const SERVICE_SPEC: Message = &[
    keyed(1, "ports", Object(SERVICE_PORT), &port("port")),
    atomic_map(2, "selector", Text),
    nonzero(3, "clusterIP", Text),
    nonzero(4, "type", Text),
    list(5, "externalIPs", Text),
    nonzero(7, "sessionAffinity", Text),
    nonzero(8, "loadBalancerIP", Text),
    list(9, "loadBalancerSourceRanges", Text),
    nonzero(10, "externalName", Text),
    nonzero(11, "externalTrafficPolicy", Text),
    nonzero(12, "healthCheckNodePort", Int32),
    nonzero(13, "publishNotReadyAddresses", Bool),
    one(14, "sessionAffinityConfig", Object(SESSION_AFFINITY_CONFIG)),
    one(17, "ipFamilyPolicy", Text),
    list(18, "clusterIPs", Text),
    list(19, "ipFamilies", Text),
    one(20, "allocateLoadBalancerNodePorts", Bool),
    one(21, "loadBalancerClass", Text),
    one(22, "internalTrafficPolicy", Text),
    one(23, "trafficDistribution", Text),
];

const SERVICE_PORT: Message = &[
    nonzero(1, "name", Text),
    nonzero(2, "protocol", Text),
    always(3, "port", Int32),
    always(4, "targetPort", IntOrString),
    nonzero(5, "nodePort", Int32),
    one(6, "appProtocol", Text),
];

const SESSION_AFFINITY_CONFIG: Message = &[one(1, "clientIP", Object(CLIENT_IP_CONFIG))];

const CLIENT_IP_CONFIG: Message = &[one(1, "timeoutSeconds", Int32)];

const SERVICE_STATUS: Message = &[
    always(1, "loadBalancer", Object(LOAD_BALANCER_STATUS)),
    keyed(2, "conditions", Object(CONDITION), &[text("type")]),
];

const LOAD_BALANCER_STATUS: Message = &[list(1, "ingress", Object(LOAD_BALANCER_INGRESS))];

const LOAD_BALANCER_INGRESS: Message = &[
    nonzero(1, "ip", Text),
    nonzero(2, "hostname", Text),
    one(3, "ipMode", Text),
    list(4, "ports", Object(PORT_STATUS)),
];

const PORT_STATUS: Message =
    &[always(1, "port", Int32), always(2, "protocol", Text), one(3, "error", Text)];
