//! One thing that is wrong with an object, and how Kubernetes would say it.
//!
//! `stint check`, the API server's `Status` answers and tests all speak of the
//! same [`FieldError`]; only its rendering differs.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::field_path::{FieldPath, Path};

/// What kind of wrong it is; the names are those of `Status.details.causes[].reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The value must be given and is not.
    Required,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is none of a closed set.
    NotSupported,
    /// The value must be unique and is not.
    Duplicate,
    /// The value would be fine elsewhere, but not here.
    Forbidden,
    /// The text has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value names something that does not exist.
    NotFound,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value could not be judged.
    Internal,
}

impl ErrorKind {
    /// The machine-readable reason in a `Status` answer.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            ErrorKind::Internal => "InternalError",
        }
    }

    /// The words Kubernetes prints after the path.
    pub fn words(self) -> &'static str {
        match self {
            ErrorKind::Required => "Required value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::NotFound => "Not found",
            ErrorKind::Internal => "Internal error",
        }
    }
}

/// One error: where, what kind, which value, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The field that is wrong.
    pub path: FieldPath,
    /// The kind of error.
    pub kind: ErrorKind,
    /// The offending value; absent where Kubernetes prints none.
    pub value: Option<Value>,
    /// Why it is wrong or what is allowed; may be empty.
    pub detail: String,
    /// The values that would be right, for [`ErrorKind::NotSupported`]. An empty
    /// vector has no memory of its own, so the other kinds pay nothing for it.
    pub supported: Vec<String>,
}

impl FieldError {
    /// A value that must be given.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(path, ErrorKind::Required, None, detail)
    }

    /// A value that is malformed or out of bounds.
    pub fn invalid(path: &Path<'_>, value: impl Serialize, detail: impl Into<String>) -> Self {
        Self::new(path, ErrorKind::Invalid, Some(to_value(value)), detail)
    }

    /// Something invalid whose value is not worth printing.
    pub fn invalid_without_value(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(path, ErrorKind::Invalid, None, detail)
    }

    /// A value outside a closed set; `supported` is printed in the order given.
    pub fn not_supported(path: &Path<'_>, value: impl Serialize, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|name| quote(name)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        let supported = supported.iter().map(|&name| name.to_owned()).collect();
        let error = Self::new(path, ErrorKind::NotSupported, Some(to_value(value)), detail);
        Self { supported, ..error }
    }

    /// A value that is there already.
    pub fn duplicate(path: &Path<'_>, value: impl Serialize) -> Self {
        Self::new(path, ErrorKind::Duplicate, Some(to_value(value)), "")
    }

    /// A value that must not be given here.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(path, ErrorKind::Forbidden, None, detail)
    }

    /// A text of more than `max_bytes` bytes.
    pub fn too_long(path: &Path<'_>, max_bytes: usize) -> Self {
        let detail = format!("may not be more than {max_bytes} bytes");
        Self::new(path, ErrorKind::TooLong, None, detail)
    }

    /// A list of `count` items where `max_count` are allowed.
    pub fn too_many(path: &Path<'_>, count: usize, max_count: usize) -> Self {
        let items = if max_count == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max_count} {items}");
        Self::new(path, ErrorKind::TooMany, Some(to_value(count)), detail)
    }

    /// A value that could not be judged.
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(path, ErrorKind::Internal, None, detail)
    }

    /// A name that leads nowhere.
    pub fn not_found(path: &Path<'_>, value: impl Serialize) -> Self {
        Self::new(path, ErrorKind::NotFound, Some(to_value(value)), "")
    }

    fn new(
        path: &Path<'_>,
        kind: ErrorKind,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let (path, detail) = (path.to_field_path(), detail.into());
        Self { path, kind, value, detail, supported: Vec::new() }
    }

    /// The message without the path: `Invalid value: -1: must be greater than or equal to 0`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        match (&self.value, self.kind) {
            // Kubernetes never prints the value of these kinds.
            (_, ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong) | (None, _) => {}
            (Some(Value::String(value)), _) => {
                text.push_str(": ");
                text.push_str(&quote(value));
            }
            (Some(value), _) => {
                text.push_str(": ");
                text.push_str(&value.to_string());
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// All errors of one object as the API server words them:
/// `Job.batch "x" is invalid: spec.completions: Required value: …`, with the
/// errors in brackets when there are several, and repeated ones once.
pub fn invalid_message(qualified_kind: &str, name: &str, errors: &[FieldError]) -> String {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    // A large body may have as many errors as objects: none is compared with all the others.
    let mut seen = HashSet::new();
    let messages: Vec<&str> =
        all.iter().map(String::as_str).filter(|message| seen.insert(*message)).collect();
    let head = format!("{qualified_kind} {} is invalid", quote(name));
    match messages.as_slice() {
        [] => head,
        [only] => format!("{head}: {only}"),
        several => format!("{head}: [{}]", several.join(", ")),
    }
}

/// Quotes a text the way Go's `%q` does, which is how Kubernetes prints strings.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                quoted.push_str(&format!("\\x{:02x}", c as u32));
            }
            // Unprintable beyond ASCII, as far as the standard library can tell.
            c if c.is_control() || c == '\u{feff}' || c == '\u{fffe}' => {
                quoted.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn to_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("Kubernetes types and plain values serialise to JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_worded_the_way_kubernetes_words_it() {
        let spec = Path::field("spec");
        let mode = spec.child("completionMode");
        let rows = [
            (FieldError::required(&mode, ""), "spec.completionMode: Required value"),
            (FieldError::required(&mode, "why"), "spec.completionMode: Required value: why"),
            (
                FieldError::invalid(&mode, -1, "must be so"),
                "spec.completionMode: Invalid value: -1: must be so",
            ),
            (
                FieldError::invalid(&mode, "a\"b", "no"),
                "spec.completionMode: Invalid value: \"a\\\"b\": no",
            ),
            (
                FieldError::invalid(&mode, [1, 2], "must be ordered"),
                "spec.completionMode: Invalid value: [1,2]: must be ordered",
            ),
            (
                FieldError::not_supported(&mode, "X", &["A", "B"]),
                "spec.completionMode: Unsupported value: \"X\": supported values: \"A\", \"B\"",
            ),
            (FieldError::duplicate(&mode, "X"), "spec.completionMode: Duplicate value: \"X\""),
            (FieldError::forbidden(&mode, "no"), "spec.completionMode: Forbidden: no"),
            (
                FieldError::too_long(&mode, 63),
                "spec.completionMode: Too long: may not be more than 63 bytes",
            ),
            (
                FieldError::too_many(&mode, 21, 20),
                "spec.completionMode: Too many: 21: must have at most 20 items",
            ),
            (FieldError::not_found(&mode, "v"), "spec.completionMode: Not found: \"v\""),
        ];
        for (error, expected) in rows {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn several_errors_stand_in_brackets_and_repeats_are_said_once() {
        let spec = Path::field("spec");
        let one = FieldError::required(&spec, "a");
        let two = FieldError::required(&spec, "b");
        assert_eq!(
            invalid_message("Job.batch", "x", std::slice::from_ref(&one)),
            "Job.batch \"x\" is invalid: spec: Required value: a"
        );
        assert_eq!(
            invalid_message("Job.batch", "x", &[one.clone(), one, two]),
            "Job.batch \"x\" is invalid: [spec: Required value: a, spec: Required value: b]"
        );
    }
}
