//! Which lists of which kinds a strategic merge patch merges, and by which key: the facts
//! of the `patchStrategy` and `patchMergeKey` tags in k8s.io/api and k8s.io/apimachinery
//! v0.36.3.
//!
//! These are no facts of `crate::schema`, and cannot be made of them: a list that is owned as a
//! whole may be merged by a patch, and the key of a patch may be one of several there. That both
//! speak of the same fields is tested below.
//!
//! It must not know how lists are merged. Only what leads to such a list is written down;
//! of everything else it is enough to know that objects are merged field by field and
//! lists are replaced. The strategy `retainKeys`, which some of these lists have too, tells
//! clients to write a directive; a server obeys the directive wherever it stands.

/// An object's type: those of its fields that lead to a list that is merged.
#[derive(Debug)]
pub struct Type {
    /// The name in k8s.io/api.
    pub name: &'static str,
    /// Fields by their JSON name.
    pub fields: &'static [(&'static str, Field)],
}

/// What a patch has to know of a field.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// An object with lists that are merged somewhere below.
    Object(&'static Type),
    /// A list of objects, merged by the key that tells them apart.
    Keyed(&'static str, &'static Type),
    /// A list of scalars that is merged as a set.
    Set,
}

impl Type {
    /// What is written down of a field.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }
}

/// An object without a list that is merged, or of a type nobody knows.
pub static PLAIN: Type = Type { name: "object", fields: &[] };

/// The type of a kind that may be patched strategically; none for any other kind, custom
/// resources above all, which kube-apiserver refuses to patch so (415).
pub fn of_kind(api_version: &str, kind: &str) -> Option<&'static Type> {
    KINDS.iter().find(|(group, of)| *group == api_version && of.name == kind).map(|(_, of)| *of)
}

/// Every kind, by its apiVersion.
pub static KINDS: &[(&str, &Type)] = &[
    ("v1", &CONFIG_MAP),
    ("v1", &ENDPOINTS),
    ("v1", &EVENT),
    ("v1", &LIMIT_RANGE),
    ("v1", &NAMESPACE),
    ("v1", &NODE),
    ("v1", &POD),
    ("v1", &POD_TEMPLATE),
    ("v1", &RESOURCE_QUOTA),
    ("v1", &SECRET),
    ("v1", &SERVICE),
    ("v1", &SERVICE_ACCOUNT),
    ("batch/v1", &JOB),
    ("coordination.k8s.io/v1", &LEASE),
    ("discovery.k8s.io/v1", &ENDPOINT_SLICE),
    ("events.k8s.io/v1", &EVENT),
];

use Field::{Keyed, Object, Set};

const METADATA: (&str, Field) = ("metadata", Object(&OBJECT_META));

static OBJECT_META: Type = Type {
    name: "ObjectMeta",
    fields: &[("finalizers", Set), ("ownerReferences", Keyed("uid", &PLAIN))],
};

// Kinds of which only the metadata is merged. The subsets of Endpoints and the endpoints of
// an EndpointSlice are replaced.
static CONFIG_MAP: Type = Type { name: "ConfigMap", fields: &[METADATA] };
static ENDPOINTS: Type = Type { name: "Endpoints", fields: &[METADATA] };
static ENDPOINT_SLICE: Type = Type { name: "EndpointSlice", fields: &[METADATA] };
static EVENT: Type = Type { name: "Event", fields: &[METADATA] };
static LEASE: Type = Type { name: "Lease", fields: &[METADATA] };
static LIMIT_RANGE: Type = Type { name: "LimitRange", fields: &[METADATA] };
static RESOURCE_QUOTA: Type = Type { name: "ResourceQuota", fields: &[METADATA] };
static SECRET: Type = Type { name: "Secret", fields: &[METADATA] };

static NAMESPACE: Type =
    Type { name: "Namespace", fields: &[METADATA, ("status", Object(&WITH_CONDITIONS))] };

/// A status of which only the conditions are merged.
static WITH_CONDITIONS: Type =
    Type { name: "status", fields: &[("conditions", Keyed("type", &PLAIN))] };

static NODE: Type = Type {
    name: "Node",
    fields: &[METADATA, ("spec", Object(&NODE_SPEC)), ("status", Object(&NODE_STATUS))],
};
// Taints are not among these: a patch replaces them all.
static NODE_SPEC: Type = Type { name: "NodeSpec", fields: &[("podCIDRs", Set)] };
static NODE_STATUS: Type = Type {
    name: "NodeStatus",
    fields: &[("addresses", Keyed("type", &PLAIN)), ("conditions", Keyed("type", &PLAIN))],
};

static SERVICE: Type = Type {
    name: "Service",
    fields: &[METADATA, ("spec", Object(&SERVICE_SPEC)), ("status", Object(&WITH_CONDITIONS))],
};
static SERVICE_SPEC: Type =
    Type { name: "ServiceSpec", fields: &[("ports", Keyed("port", &PLAIN))] };

// The secrets are merged, the imagePullSecrets of a ServiceAccount are not.
static SERVICE_ACCOUNT: Type =
    Type { name: "ServiceAccount", fields: &[METADATA, ("secrets", Keyed("name", &PLAIN))] };

static JOB: Type = Type {
    name: "Job",
    fields: &[METADATA, ("spec", Object(&JOB_SPEC)), ("status", Object(&WITH_CONDITIONS))],
};
static JOB_SPEC: Type =
    Type { name: "JobSpec", fields: &[("template", Object(&POD_TEMPLATE_SPEC))] };

static POD_TEMPLATE: Type =
    Type { name: "PodTemplate", fields: &[METADATA, ("template", Object(&POD_TEMPLATE_SPEC))] };
static POD_TEMPLATE_SPEC: Type =
    Type { name: "PodTemplateSpec", fields: &[METADATA, ("spec", Object(&POD_SPEC))] };

static POD: Type = Type {
    name: "Pod",
    fields: &[METADATA, ("spec", Object(&POD_SPEC)), ("status", Object(&POD_STATUS))],
};

// Tolerations are not among these: a patch replaces them all.
static POD_SPEC: Type = Type {
    name: "PodSpec",
    fields: &[
        ("containers", Keyed("name", &CONTAINER)),
        ("ephemeralContainers", Keyed("name", &CONTAINER)),
        ("hostAliases", Keyed("ip", &PLAIN)),
        ("imagePullSecrets", Keyed("name", &PLAIN)),
        ("initContainers", Keyed("name", &CONTAINER)),
        ("resourceClaims", Keyed("name", &PLAIN)),
        ("schedulingGates", Keyed("name", &PLAIN)),
        ("topologySpreadConstraints", Keyed("topologyKey", &PLAIN)),
        ("volumes", Keyed("name", &VOLUME)),
    ],
};

/// A Container, an init container or an EphemeralContainer. The port number is a key
/// although a container may have a number twice, for TCP and UDP: then a patch changes the
/// first of them.
static CONTAINER: Type = Type {
    name: "Container",
    fields: &[
        ("env", Keyed("name", &PLAIN)),
        ("ports", Keyed("containerPort", &PLAIN)),
        ("volumeDevices", Keyed("devicePath", &PLAIN)),
        ("volumeMounts", Keyed("mountPath", &PLAIN)),
    ],
};

static VOLUME: Type = Type { name: "Volume", fields: &[("ephemeral", Object(&EPHEMERAL_VOLUME))] };
static EPHEMERAL_VOLUME: Type = Type {
    name: "EphemeralVolumeSource",
    fields: &[("volumeClaimTemplate", Object(&VOLUME_CLAIM_TEMPLATE))],
};
static VOLUME_CLAIM_TEMPLATE: Type =
    Type { name: "PersistentVolumeClaimTemplate", fields: &[METADATA] };

// The lists of container statuses are replaced, so the lists within them, which have keys of
// their own, are never merged.
static POD_STATUS: Type = Type {
    name: "PodStatus",
    fields: &[
        ("conditions", Keyed("type", &PLAIN)),
        ("hostIPs", Keyed("ip", &PLAIN)),
        ("podIPs", Keyed("ip", &PLAIN)),
        ("resourceClaimStatuses", Keyed("name", &PLAIN)),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{self, Holds, Message};

    fn find(message: Message, name: &str) -> Option<Holds> {
        message.iter().find_map(|field| match field.holds {
            Holds::Inline(inner) => find(inner, name),
            holds => (field.name == name).then_some(holds),
        })
    }

    /// Checks every field of a type, and gives how many there are.
    fn check(of: &Type, message: Message, path: &str) -> usize {
        let mut count = 0;
        for (name, field) in of.fields {
            let path = format!("{path}.{name}");
            let holds = find(message, name).unwrap_or_else(|| panic!("there is no {path}"));
            count += 1;
            match (field, holds) {
                (Object(of), Holds::One(what) | Holds::Nonzero(what)) => {
                    let inner = what.message().unwrap_or_else(|| panic!("{path} is no object"));
                    count += check(of, inner, &path);
                }
                (Keyed(key, of), Holds::List(what, _)) => {
                    let item = what.message().unwrap_or_else(|| panic!("{path} has no objects"));
                    assert!(find(item, key).is_some(), "{path} has no {key}");
                    count += check(of, item, &path);
                }
                (Set, Holds::List(what, _)) => {
                    assert!(what.message().is_none(), "{path} has objects");
                }
                (field, holds) => panic!("{path} is {holds:?}, not {field:?}"),
            }
        }
        count
    }

    #[test]
    fn every_fact_is_about_a_field_that_there_is() {
        let mut checked = Vec::new();
        for (api_version, of) in KINDS {
            if let Some(message) = schema::of_kind(api_version, of.name) {
                checked.push((of.name, check(of, message, of.name)));
            }
        }
        assert_eq!(checked.len(), KINDS.len() - 1, "all but PodTemplate are served: {checked:?}");
        assert!(checked.contains(&("ConfigMap", 3)), "{checked:?}");
    }
}
