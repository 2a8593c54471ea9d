//! What the fields of every object are: what JSON and protobuf call them, what they hold, and
//! what of them can be owned by itself. These are the facts of the `json` and `protobuf` tags and
//! of the `listType`, `listMapKey`, `mapType` and `structType` markers in k8s.io/api and
//! k8s.io/apimachinery v0.36.3, one file for each group of kinds. Bodies in protobuf are read by
//! it, and the fields of objects are tracked and applied by it.
//!
//! It must not know how anything is read or merged. Constants cannot contain themselves, so no
//! message is nested without end: what a body can do to the stack is known when this is compiled.

mod container;
mod core;
mod endpoint_slice;
mod event;
mod job;
mod lease;
mod meta;
mod node;
mod pod;
mod pod_status;
mod quota;
mod review;
mod scheduling;
mod service;
mod volume;

/// A message: its fields, by their numbers.
pub type Message = &'static [Field];

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// What the wire calls it.
    pub number: u32,
    /// What JSON calls it.
    pub name: &'static str,
    /// How often it is there, and what it holds.
    pub holds: Holds,
    /// Whether Go shows it in JSON though nothing is set: as `{}`, null, zero or an empty text.
    pub is_always: bool,
}

/// How often a field is there, and when JSON shows it.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// Once; shown whatever it is.
    One(Type),
    /// Once; shown unless it is zero, false or empty, which Go sends but leaves out of JSON.
    Nonzero(Type),
    /// Any number of times.
    List(Type, ListType),
    /// Any number of times, each with a key.
    Map(Type, MapType),
    /// Once; JSON has the fields of the message among those of the message around it.
    Inline(Message),
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// A text, or an enumeration, which Kubernetes writes as a text.
    Text,
    /// True or false.
    Bool,
    /// A number of 32 bits.
    Int32,
    /// A number of 64 bits.
    Int64,
    /// Bytes, which are base64 in JSON.
    Bytes,
    /// A time in seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// A quantity, in the words of JSON.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// JSON as it is.
    RawJson,
    /// Another message, each of whose fields can be owned by somebody else.
    Object(Message),
    /// Another message that is owned and replaced as a whole: `x-kubernetes-map-type: atomic`,
    /// which in Kubernetes is said of the type, so it is the same wherever the message stands.
    Atomic(Message),
}

/// What of a list can be owned: its `x-kubernetes-list-type`. Kubernetes writes none for some lists
/// that it takes to be atomic.
#[derive(Clone, Copy, Debug)]
pub enum ListType {
    /// The list as a whole.
    Atomic,
    /// Each of its values, which are scalars and there once.
    Set,
    /// Each of its items, which these fields tell apart: `x-kubernetes-list-map-keys`.
    Map(&'static [Key]),
}

/// A field that, alone or with others, tells the items of a list apart.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// What JSON calls it.
    pub name: &'static str,
    /// What it is taken to be in an item that does not have it; none if it is left out then.
    pub default: Option<KeyDefault>,
}

/// What a key is if nobody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDefault {
    /// This text.
    Text(&'static str),
    /// This number.
    Number(i64),
}

/// What of a map can be owned: its `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Each of its entries.
    Granular,
    /// The map as a whole.
    Atomic,
}

impl Type {
    /// The message, if it is one.
    pub fn message(self) -> Option<Message> {
        match self {
            Type::Object(message) | Type::Atomic(message) => Some(message),
            Type::Text
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Bytes
            | Type::Time
            | Type::MicroTime
            | Type::Quantity
            | Type::IntOrString
            | Type::RawJson => None,
        }
    }
}

/// The message of a kind, or of what else a body can be.
pub fn of_kind(api_version: &str, kind: &str) -> Option<Message> {
    let mut known = KINDS.iter().chain(review::REVIEWS);
    let found = known.find(|(version, name, _)| *version == api_version && *name == kind);
    found.map(|(.., message)| *message)
}

/// Every kind, by its apiVersion.
pub static KINDS: &[(&str, &str, Message)] = &[
    ("v1", "Binding", core::BINDING),
    ("v1", "ConfigMap", core::CONFIG_MAP),
    ("v1", "Endpoints", core::ENDPOINTS),
    ("v1", "Event", event::CORE_EVENT),
    ("v1", "LimitRange", quota::LIMIT_RANGE),
    ("v1", "Namespace", core::NAMESPACE),
    ("v1", "Node", node::NODE),
    ("v1", "Pod", pod::POD),
    ("v1", "ResourceQuota", quota::RESOURCE_QUOTA),
    ("v1", "Secret", core::SECRET),
    ("v1", "Service", service::SERVICE),
    ("v1", "ServiceAccount", core::SERVICE_ACCOUNT),
    ("batch/v1", "Job", job::JOB),
    ("coordination.k8s.io/v1", "Lease", lease::LEASE),
    ("discovery.k8s.io/v1", "EndpointSlice", endpoint_slice::ENDPOINT_SLICE),
    ("events.k8s.io/v1", "Event", event::EVENT),
    ("meta.k8s.io/v1", "DeleteOptions", meta::DELETE_OPTIONS),
    ("policy/v1", "Eviction", meta::EVICTION),
];

const fn one(number: u32, name: &'static str, of: Type) -> Field {
    Field { number, name, holds: Holds::One(of), is_always: false }
}

/// A field that is no pointer, and that Go shows whatever it is.
const fn always(number: u32, name: &'static str, of: Type) -> Field {
    shown(one(number, name, of))
}

/// The same of a list or a map, which is null then.
const fn shown(field: Field) -> Field {
    Field { is_always: true, ..field }
}

const fn nonzero(number: u32, name: &'static str, of: Type) -> Field {
    Field { number, name, holds: Holds::Nonzero(of), is_always: false }
}

const fn list(number: u32, name: &'static str, of: Type) -> Field {
    Field { number, name, holds: Holds::List(of, ListType::Atomic), is_always: false }
}

const fn set(number: u32, name: &'static str, of: Type) -> Field {
    assert!(of_scalars(of), "a set holds scalars");
    Field { number, name, holds: Holds::List(of, ListType::Set), is_always: false }
}

const fn keyed(number: u32, name: &'static str, of: Type, keys: &'static [Key]) -> Field {
    assert!(!of_scalars(of), "only messages have keys");
    Field { number, name, holds: Holds::List(of, ListType::Map(keys)), is_always: false }
}

const fn map(number: u32, name: &'static str, of: Type) -> Field {
    assert!(of_scalars(of), "Kubernetes has no maps of messages here");
    Field { number, name, holds: Holds::Map(of, MapType::Granular), is_always: false }
}

const fn atomic_map(number: u32, name: &'static str, of: Type) -> Field {
    assert!(of_scalars(of), "Kubernetes has no maps of messages here");
    Field { number, name, holds: Holds::Map(of, MapType::Atomic), is_always: false }
}

const fn of_scalars(of: Type) -> bool {
    !matches!(of, Type::Object(_) | Type::Atomic(_))
}

/// A key that is an empty text if it is not given.
const fn text(name: &'static str) -> Key {
    Key { name, default: Some(KeyDefault::Text("")) }
}

/// A key that is left out if it is not given.
const fn bare(name: &'static str) -> Key {
    Key { name, default: None }
}

/// What tells ports apart, the number of which has this name.
const fn port(name: &'static str) -> [Key; 2] {
    let protocol = Key { name: "protocol", default: Some(KeyDefault::Text("TCP")) };
    [Key { name, default: Some(KeyDefault::Number(0)) }, protocol]
}

const fn inline(number: u32, of: Message) -> Field {
    Field { number, name: "", holds: Holds::Inline(of), is_always: false }
}

const METADATA: Field = always(1, "metadata", Type::Object(meta::OBJECT_META));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_kind_has_a_message() {
        for kind in kinds::ALL {
            let names = kind.names();
            assert!(of_kind(&names.api_version(), names.kind).is_some(), "{names:?}");
        }
    }

    #[test]
    fn numbers_grow_and_names_are_given_once() {
        fn check(path: &str, message: Message, names: &mut Vec<&'static str>) {
            let mut last = 0;
            for field in message {
                let path = format!("{path}.{}", field.name);
                assert!(field.number > last, "{path}: {} after {last}", field.number);
                last = field.number;
                if let Holds::Inline(within) = field.holds {
                    check(&path, within, names);
                    continue;
                }
                assert!(!names.contains(&field.name), "{path} is there twice");
                names.push(field.name);
                let (Holds::One(of) | Holds::Nonzero(of) | Holds::List(of, _) | Holds::Map(of, _)) =
                    field.holds
                else {
                    continue;
                };
                let Some(within) = of.message() else { continue };
                let mut inner = Vec::new();
                check(&path, within, &mut inner);
                if let Holds::List(_, ListType::Map(keys)) = field.holds {
                    assert!(!keys.is_empty(), "{path} has no keys");
                    for key in keys {
                        assert!(inner.contains(&key.name), "{path} has no field {}", key.name);
                    }
                }
            }
        }
        for (_, kind, message) in KINDS {
            check(kind, message, &mut Vec::new());
        }
    }
}
