//! What a patch may cost at most. A patch comes from outside, and a short one can ask for
//! a lot of memory, stack or time.
//!
//! It must not know what the patches mean.

use serde_json::Value;
use thiserror::Error;

/// The longest body: 3 MiB, kube-apiserver's limit for every request. No object can be
/// longer in its store, so no patch needs to be.
pub const MAX_PATCH_BYTES: usize = 3 * 1024 * 1024;

/// How deep objects and lists may be in each other, in a patch and in its result. The
/// deepest field of the kinds served here is some 20 levels down; 128 is where serde_json
/// stops reading, and 128 frames of every recursion over JSON fit into any thread's stack.
pub const MAX_DEPTH: usize = 128;

/// How many operations a JSON patch may have, the limit of kube-apiserver.
pub const MAX_JSON_PATCH_OPERATIONS: usize = 10_000;

/// How many bytes of JSON the `copy` operations of one JSON patch may copy together, the
/// limit of kube-apiserver. Without it, thirty operations make a gigabyte of one byte.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How many list items and values one JSON patch may move out of the way, look through or
/// carry along. 10,000 operations at the front of a list of 10,000 items move 100 million,
/// which takes well under a second; 10,000 of them on a list as long as a body allows
/// would move 15,000 million.
pub const MAX_STEPS: usize = MAX_JSON_PATCH_OPERATIONS * 10_000;

/// The limit that a body is beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// Longer than [`MAX_PATCH_BYTES`].
    #[error("the patch has {bytes} bytes, and may have {MAX_PATCH_BYTES}")]
    Bytes {
        /// How long it is.
        bytes: usize,
    },
    /// Deeper than [`MAX_DEPTH`].
    #[error("the patch is deeper than {MAX_DEPTH} levels")]
    Depth,
}

impl LimitError {
    /// The HTTP status of the answer.
    pub fn status(self) -> u16 {
        match self {
            LimitError::Bytes { .. } => 413,
            LimitError::Depth => 400,
        }
    }
}

/// Whether a value keeps to [`MAX_DEPTH`].
pub(crate) fn check_depth(value: &Value) -> Result<(), LimitError> {
    if measure(value).depth > MAX_DEPTH { Err(LimitError::Depth) } else { Ok(()) }
}

/// How large a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Levels of objects and lists: 0 for a scalar, 1 for `[]`.
    pub(crate) depth: usize,
    /// Values, the outermost included.
    pub(crate) count: usize,
}

/// Looks through a value without recursion, as it is what makes recursion safe.
pub(crate) fn measure(value: &Value) -> Size {
    let mut size = Size { depth: 0, count: 0 };
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        size.count += 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                size.depth = size.depth.max(depth);
                continue;
            }
        }
        size.depth = size.depth.max(depth + 1);
    }
    size
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scalar_has_no_depth_and_an_empty_list_has_one_level() {
        assert_eq!(measure(&json!(1)), Size { depth: 0, count: 1 });
        assert_eq!(measure(&json!([])), Size { depth: 1, count: 1 });
        assert_eq!(measure(&json!({"a": [1, {}], "b": 2})), Size { depth: 3, count: 5 });
    }

    #[test]
    fn the_limit_on_depth_is_the_one_of_the_reader() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest: Value = serde_json::from_str(&nested(MAX_DEPTH - 1)).expect("it is read");
        assert_eq!(check_depth(&deepest), Ok(()));
        assert!(serde_json::from_str::<Value>(&nested(MAX_DEPTH)).is_err());
        assert_eq!(check_depth(&json!([deepest])), Ok(()));
        assert_eq!(check_depth(&json!([[deepest]])), Err(LimitError::Depth));
    }
}
