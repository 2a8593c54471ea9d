//! JSON patches, RFC 6902, with what kube-apiserver makes of it.
//!
//! It must not know any kind. The `json-patch` crate is not used: it has no limit on what
//! operations copy and move, and kube-apiserver's library departs from the RFC in ways
//! that clients have come to need. It replaces a field that is not there, tests a missing
//! field equal to null, copies it as null, counts indexes below zero from the end, and
//! takes a path without its first slash.

use serde_json::{Map, Value};
use thiserror::Error;

use super::limits::{MAX_COPIED_BYTES, MAX_DEPTH, MAX_JSON_PATCH_OPERATIONS, MAX_STEPS, measure};

mod pointer;

use pointer::{find, index, insertion_index, segments};

/// A list of operations.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch(Vec<Operation>);

/// One operation as it was sent. What is missing in it is an error only once it is needed.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

/// Why a body is no JSON patch, or why it does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonPatchError {
    /// The body is not a list.
    #[error("error decoding patch: a JSON patch has to be a list of operations")]
    NotAList,
    /// An item of the list is not an object.
    #[error("error decoding patch: operation {position} has to be an object")]
    NotAnObject {
        /// Its place in the list, from 0.
        position: usize,
    },
    /// `op`, `path` or `from` is not a string.
    #[error("error decoding patch: {member} of operation {position} has to be a string")]
    NotAString {
        /// Its place in the list, from 0.
        position: usize,
        /// The member of the operation.
        member: &'static str,
    },
    /// More than [`MAX_JSON_PATCH_OPERATIONS`].
    #[error(
        "The allowed maximum operations in a JSON patch is {MAX_JSON_PATCH_OPERATIONS}, got {count}"
    )]
    TooManyOperations {
        /// How many there are.
        count: usize,
    },
    /// `op` is missing or not one of the six.
    #[error("Unexpected kind: {op}")]
    UnknownOperation {
        /// What it is.
        op: String,
    },
    /// An operation lacks its `path` or `from`.
    #[error("{op} operation failed to decode {member}: missing value")]
    MemberMissing {
        /// The operation.
        op: &'static str,
        /// The member that is missing.
        member: &'static str,
    },
    /// There is nothing where an operation looks.
    #[error("{op} operation does not apply: doc is missing path: {path:?}: missing value")]
    PathMissing {
        /// The operation.
        op: &'static str,
        /// Where it looks.
        path: String,
    },
    /// A list has no such place.
    #[error("error in {op} for path: '{path}': invalid index referenced")]
    BadIndex {
        /// The operation.
        op: &'static str,
        /// Where it looks.
        path: String,
    },
    /// A test found something else.
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// Where it looked.
        path: String,
    },
    /// The whole object would become a scalar.
    #[error("replace operation value must be object or array")]
    ScalarDocument,
    /// Beyond [`MAX_COPIED_BYTES`].
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {bytes}, exceeding the limit {MAX_COPIED_BYTES}"
    )]
    CopiesTooLarge {
        /// What the copies so far come to.
        bytes: usize,
    },
    /// The result would be deeper than [`MAX_DEPTH`].
    #[error("error in {op} for path: '{path}': the result is deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// The operation.
        op: &'static str,
        /// Where it puts its value.
        path: String,
    },
    /// Beyond [`MAX_STEPS`].
    #[error("the operations move more than {MAX_STEPS} values")]
    TooManySteps,
}

impl JsonPatchError {
    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotAList | Self::NotAnObject { .. } | Self::NotAString { .. } => 400,
            Self::TooManyOperations { .. } => 413,
            Self::UnknownOperation { .. }
            | Self::MemberMissing { .. }
            | Self::PathMissing { .. }
            | Self::BadIndex { .. }
            | Self::TestFailed { .. }
            | Self::ScalarDocument
            | Self::CopiesTooLarge { .. }
            | Self::TooDeep { .. }
            | Self::TooManySteps => 422,
        }
    }
}

impl JsonPatch {
    pub(super) fn from_value(value: Value) -> Result<Self, JsonPatchError> {
        let operations = match value {
            Value::Array(operations) => operations,
            // A patch of nothing at all, which changes nothing.
            Value::Null => Vec::new(),
            _ => return Err(JsonPatchError::NotAList),
        };
        if operations.len() > MAX_JSON_PATCH_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations { count: operations.len() });
        }
        operations
            .into_iter()
            .enumerate()
            .map(|(position, operation)| Operation::from_value(position, operation))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Applies the operations in order; the first that does not apply ends it.
    pub fn apply(&self, original: Value) -> Result<Value, JsonPatchError> {
        let mut work = Work { document: original, copied_bytes: 0, steps: 0 };
        for operation in &self.0 {
            work.apply(operation)?;
        }
        Ok(work.document)
    }
}

impl Operation {
    fn from_value(position: usize, value: Value) -> Result<Self, JsonPatchError> {
        let mut members = match value {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            _ => return Err(JsonPatchError::NotAnObject { position }),
        };
        let value = members.remove("value");
        let mut text = |member| match members.remove(member) {
            Some(Value::String(text)) => Ok(Some(text)),
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(JsonPatchError::NotAString { position, member }),
        };
        Ok(Self { op: text("op")?, path: text("path")?, from: text("from")?, value })
    }

    fn path(&self, op: &'static str) -> Result<&str, JsonPatchError> {
        self.path.as_deref().ok_or(JsonPatchError::MemberMissing { op, member: "path" })
    }

    fn from(&self, op: &'static str) -> Result<&str, JsonPatchError> {
        self.from.as_deref().ok_or(JsonPatchError::MemberMissing { op, member: "from" })
    }

    /// An operation without a value has null for one.
    fn value(&self) -> Value {
        self.value.clone().unwrap_or(Value::Null)
    }
}

/// A document half patched, and what that has cost.
struct Work {
    document: Value,
    copied_bytes: usize,
    steps: usize,
}

impl Work {
    fn apply(&mut self, operation: &Operation) -> Result<(), JsonPatchError> {
        match operation.op.as_deref() {
            Some("add") => self.add("add", operation.path("add")?, operation.value()),
            Some("remove") => self.remove("remove", operation.path("remove")?).map(drop),
            Some("replace") => self.replace(operation.path("replace")?, operation.value()),
            Some("move") => {
                let value = self.remove("move", operation.from("move")?)?;
                self.add("move", operation.path("move")?, value)
            }
            Some("copy") => {
                let value = self.copy(operation.from("copy")?)?;
                self.add("copy", operation.path("copy")?, value)
            }
            Some("test") => self.test(operation),
            op => {
                let op = op.unwrap_or("unknown").to_owned();
                Err(JsonPatchError::UnknownOperation { op })
            }
        }
    }

    fn add(&mut self, op: &'static str, path: &str, value: Value) -> Result<(), JsonPatchError> {
        self.check_place(op, path, &value)?;
        let (container, key) = find(&mut self.document, path).ok_or_else(|| missing(op, path))?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) => {
                let at = insertion_index(&key, items.len()).ok_or_else(|| bad_index(op, path))?;
                self.steps += items.len() - at;
                items.insert(at, value);
            }
            _ => return Err(missing(op, path)),
        }
        self.check_steps()
    }

    fn remove(&mut self, op: &'static str, path: &str) -> Result<Value, JsonPatchError> {
        let (container, key) = find(&mut self.document, path).ok_or_else(|| missing(op, path))?;
        let value = match container {
            Value::Object(fields) => fields.remove(&key).ok_or_else(|| missing(op, path))?,
            Value::Array(items) => {
                let at = index(&key, items.len()).ok_or_else(|| bad_index(op, path))?;
                self.steps += items.len() - at;
                items.remove(at)
            }
            _ => return Err(missing(op, path)),
        };
        self.check_steps()?;
        Ok(value)
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), JsonPatchError> {
        let op = "replace";
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(JsonPatchError::ScalarDocument);
            }
            self.document = value;
            return Ok(());
        }
        self.check_place(op, path, &value)?;
        let (container, key) = find(&mut self.document, path).ok_or_else(|| missing(op, path))?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) => {
                let at = index(&key, items.len()).ok_or_else(|| missing(op, path))?;
                items[at] = value;
            }
            _ => return Err(missing(op, path)),
        }
        Ok(())
    }

    /// A copy of what is at a path.
    fn copy(&mut self, from: &str) -> Result<Value, JsonPatchError> {
        let before = self.copied_bytes;
        let value = self.get("copy", from)?.unwrap_or(&Value::Null);
        // Measured before it is copied, so that not even the last copy is too large.
        let bytes = before.saturating_add(written_length(value));
        if bytes > MAX_COPIED_BYTES {
            return Err(JsonPatchError::CopiesTooLarge { bytes });
        }
        let value = value.clone();
        self.copied_bytes = bytes;
        Ok(value)
    }

    fn test(&mut self, operation: &Operation) -> Result<(), JsonPatchError> {
        let path = operation.path("test")?;
        let found = if path.is_empty() { Some(&self.document) } else { self.get("test", path)? };
        let equal = match &operation.value {
            // A test without a value only passes where nothing is.
            None => found.is_none_or(Value::is_null),
            Some(value) => found.unwrap_or(&Value::Null) == value,
        };
        if equal { Ok(()) } else { Err(JsonPatchError::TestFailed { path: path.to_owned() }) }
    }

    /// What is at a path; none for a field that its object does not have.
    fn get(&mut self, op: &'static str, path: &str) -> Result<Option<&Value>, JsonPatchError> {
        let (container, key) = find(&mut self.document, path).ok_or_else(|| missing(op, path))?;
        match container {
            Value::Object(fields) => Ok(fields.get(&key)),
            Value::Array(items) => {
                let at = index(&key, items.len()).ok_or_else(|| bad_index(op, path))?;
                Ok(Some(&items[at]))
            }
            _ => Err(missing(op, path)),
        }
    }

    /// Whether a value may be put at a path without making the document too deep.
    fn check_place(
        &mut self,
        op: &'static str,
        path: &str,
        value: &Value,
    ) -> Result<(), JsonPatchError> {
        let size = measure(value);
        self.steps += size.count;
        if segments(path).count() + size.depth > MAX_DEPTH {
            return Err(JsonPatchError::TooDeep { op, path: path.to_owned() });
        }
        self.check_steps()
    }

    fn check_steps(&self) -> Result<(), JsonPatchError> {
        if self.steps > MAX_STEPS { Err(JsonPatchError::TooManySteps) } else { Ok(()) }
    }
}

/// How many bytes a value has as JSON.
fn written_length(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("counting bytes cannot fail");
    count.0
}

fn missing(op: &'static str, path: &str) -> JsonPatchError {
    JsonPatchError::PathMissing { op, path: path.to_owned() }
}

fn bad_index(op: &'static str, path: &str) -> JsonPatchError {
    JsonPatchError::BadIndex { op, path: path.to_owned() }
}
