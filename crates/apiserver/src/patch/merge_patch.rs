//! JSON merge patches, RFC 7386: an object laid over another, where null deletes.
//!
//! It must not know any kind: a list is a value like any other, and is replaced.

use serde_json::{Map, Value};
use thiserror::Error;

use super::nulls;

/// A merge patch for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct MergePatch(Map<String, Value>);

/// Why a body is no merge patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MergePatchError {
    /// RFC 7386 would replace the whole object by it, which no object survives.
    #[error("error decoding patch: a merge patch has to be an object")]
    NotAnObject,
}

impl MergePatch {
    pub(super) fn from_value(value: Value) -> Result<Self, MergePatchError> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(MergePatchError::NotAnObject),
        }
    }

    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Lays the patch over a value. This cannot fail.
    pub fn apply(&self, original: Value) -> Value {
        merge(original, Value::Object(self.0.clone()))
    }
}

/// The recursion is as deep as the patch, which is within the limit.
fn merge(original: Value, patch: Value) -> Value {
    let (mut original, patch) = match (original, patch) {
        (Value::Object(original), Value::Object(patch)) => (original, patch),
        (_, mut patch) => {
            nulls::prune(&mut patch);
            return patch;
        }
    };
    for (key, field) in patch {
        if field.is_null() {
            original.remove(&key);
        } else {
            let before = original.remove(&key).unwrap_or(Value::Null);
            original.insert(key, merge(before, field));
        }
    }
    Value::Object(original)
}
