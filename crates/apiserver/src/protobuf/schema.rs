//! What the fields of each message are: their numbers, what JSON calls them, and what they
//! hold. These are the facts of the `protobuf` and `json` tags in k8s.io/api and
//! k8s.io/apimachinery v0.36.3, one file for each group of kinds.
//!
//! It must not know how anything is read. Constants cannot contain themselves, so no message
//! is nested without end: what a body can do to the stack is known when this is compiled.

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
}

/// How often a field is there, and when JSON shows it.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// Once; shown whatever it is.
    One(Type),
    /// Once; shown unless it is zero, false or empty, which Go sends but leaves out of JSON.
    Nonzero(Type),
    /// Any number of times.
    List(Type),
    /// Any number of times, each with a key.
    Map(Type),
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
    /// Another message.
    Object(Message),
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
    ("v1", "Namespace", core::NAMESPACE),
    ("v1", "Node", node::NODE),
    ("v1", "Pod", pod::POD),
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
    Field { number, name, holds: Holds::One(of) }
}

const fn nonzero(number: u32, name: &'static str, of: Type) -> Field {
    Field { number, name, holds: Holds::Nonzero(of) }
}

const fn list(number: u32, name: &'static str, of: Type) -> Field {
    Field { number, name, holds: Holds::List(of) }
}

const fn map(number: u32, name: &'static str, of: Type) -> Field {
    assert!(!matches!(of, Type::Object(_)), "Kubernetes has no maps of messages here");
    Field { number, name, holds: Holds::Map(of) }
}

const fn inline(number: u32, of: Message) -> Field {
    Field { number, name: "", holds: Holds::Inline(of) }
}

const METADATA: Field = one(1, "metadata", Type::Object(meta::OBJECT_META));

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
                let (Holds::One(of) | Holds::Nonzero(of) | Holds::List(of) | Holds::Map(of)) =
                    field.holds
                else {
                    continue;
                };
                if let Type::Object(within) = of {
                    check(&path, within, &mut Vec::new());
                }
            }
        }
        for (_, kind, message) in KINDS {
            check(kind, message, &mut Vec::new());
        }
    }
}
