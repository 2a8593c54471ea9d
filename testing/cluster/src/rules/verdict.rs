//! Whether an answer is what a row says.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use stint_api::field_error::ErrorKind;
use stint_rules::case::Case;
use stint_rules::rows;

use super::replay::Answer;

/// What of an answer is not what the row says, one line each.
pub(super) fn judge(case: &Case, answer: &Answer) -> Vec<String> {
    let (expected, errors) = (case.errors(), errors(case, answer));
    let mut found = Vec::new();
    // Where a row leaves a value open it holds all the same.
    let is_open = expected.iter().any(|error| error.contains("TEMPLATE"));
    if case.text("differs").is_some() {
        if case.played.errors == errors {
            found.push("  does not differ any more".to_owned());
        }
        if !is_open {
            found.extend(other_fields(case, answer, &errors));
            return found;
        }
    }
    if !is_same(&expected, &errors) {
        found.extend(expected.iter().map(|error| format!("  expected {error}")));
        found.extend(errors.iter().map(|error| format!("  got      {error}")));
    }
    if let Some(stored) = case.row.get("stored").filter(|_| errors.is_empty()) {
        let mut report = String::new();
        rows::compare("stored", &bare(stored), &bare(&answer.body), &mut report);
        found.extend(report.lines().map(str::to_owned));
    }
    found
}

/// Where a server prints a value otherwise, or an error more often, the errors are about the same
/// fields. One that does not come to judge fields is told by its answer: it is not Invalid.
fn other_fields(case: &Case, answer: &Answer, errors: &[String]) -> Option<String> {
    let fields = |errors: &[String]| -> BTreeSet<String> {
        errors.iter().filter_map(|error| error.split(": ").next()).map(str::to_owned).collect()
    };
    let (ours, theirs) = (fields(&case.played.errors), fields(errors));
    let is_judged = answer.body["reason"] == "Invalid";
    (is_judged && ours != theirs).then(|| format!("  expected errors of {ours:?}, got {theirs:?}"))
}

/// Whether errors are those that were expected. One that the server repeats counts once, and those
/// about the keys of one map come in any order.
fn is_same(expected: &[String], errors: &[String]) -> bool {
    let mut once: Vec<String> = Vec::new();
    for error in errors {
        if !once.contains(error) {
            once.push(error.clone());
        }
    }
    [errors, &once].into_iter().any(|it| in_order(expected, it) || in_order_of_maps(expected, it))
}

/// The errors of an answer in the words of rows; none if it has none.
fn errors(case: &Case, answer: &Answer) -> Vec<String> {
    if (200..300).contains(&answer.code) {
        return Vec::new();
    }
    let status = &answer.body;
    let message = status["message"].as_str().unwrap_or_default();
    if let Some(reason) = case.text("reason") {
        let expected = case.errors();
        let has_all = match &expected[..] {
            [error] => message.ends_with(error.as_str()),
            several => several.iter().all(|error| message.contains(error.as_str())),
        };
        let is_same = status["reason"].as_str().unwrap_or_default() == reason;
        return if is_same && has_all { expected } else { vec![status.to_string()] };
    }
    match status["details"]["causes"].as_array() {
        Some(causes) if status["reason"] == "Invalid" && answer.code == 422 => {
            let line = |cause: &Value| {
                let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
                let (field, message, reason) = (text("field"), text("message"), text("reason"));
                match has_reason(&message, &reason) {
                    true => format!("{field}: {message}"),
                    false => format!("{field}: {message}, for which the reason is {reason}"),
                }
            };
            causes.iter().map(line).collect()
        }
        _ => vec![status.to_string()],
    }
}

/// Whether a cause has the reason that goes with its message. `Invalid value` has two.
fn has_reason(message: &str, reason: &str) -> bool {
    use ErrorKind::{
        Duplicate, Forbidden, Internal, Invalid, NotFound, NotSupported, Required, TooLong,
        TooMany, TypeInvalid,
    };
    let kinds = [
        Duplicate,
        Forbidden,
        Internal,
        Invalid,
        NotFound,
        NotSupported,
        Required,
        TooLong,
        TooMany,
        TypeInvalid,
    ];
    kinds.iter().any(|kind| message.starts_with(kind.words()) && kind.reason() == reason)
}

fn in_order(expected: &[String], errors: &[String]) -> bool {
    expected.len() == errors.len()
        && expected.iter().zip(errors).all(|(expected, error)| rows::is_same(expected, error))
}

/// The same but for the order of errors about one map.
fn in_order_of_maps(expected: &[String], errors: &[String]) -> bool {
    let maps = |errors: &[String]| -> Vec<String> { errors.iter().map(|it| map(it)).collect() };
    let mut left: Vec<&String> = errors.iter().collect();
    maps(expected) == maps(errors)
        && expected.iter().all(|expected| {
            let at = left.iter().position(|error| rows::is_same(expected, error));
            at.map(|at| left.swap_remove(at)).is_some()
        })
}

/// The map that an error is about: `data` of `data[key]: …`.
fn map(error: &str) -> String {
    let field = error.split(": ").next().unwrap_or_default();
    field.split('[').next().unwrap_or_default().to_owned()
}

/// An empty object is as good as none.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.is_empty() => Value::Null,
        Value::Object(members) => {
            let bare = members.iter().map(|(key, value)| (key.clone(), bare(value)));
            Value::Object(bare.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same_of(expected: &[&str], errors: &[&str]) -> bool {
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        is_same(&owned(expected), &owned(errors))
    }

    #[test]
    fn errors_come_in_their_order_but_for_those_of_one_map() {
        let (a, b, c) =
            ("data[a]: Invalid value: 1", "data[b]: Invalid value: 2", "type: Forbidden");
        assert!(is_same_of(&[a, b, c], &[a, b, c]));
        assert!(is_same_of(&[a, b, c], &[b, a, c]));
        assert!(!is_same_of(&[a, b, c], &[c, a, b]));
        assert!(!is_same_of(&[a, b], &[a, a]));
        assert!(!is_same_of(&[a, b], &[a]));
        assert!(!is_same_of(&[], &[a]));
    }

    #[test]
    fn what_the_server_repeats_counts_once_and_what_the_row_repeats_twice() {
        let error = "metadata.name: Required value";
        assert!(is_same_of(&[error], &[error, error]));
        assert!(is_same_of(&[error, error], &[error, error]));
        assert!(!is_same_of(&[error, error], &[error]));
    }

    #[test]
    fn a_template_is_any() {
        let expected = "spec.template: Invalid value: TEMPLATE: field is immutable";
        assert!(is_same_of(&[expected], &["spec.template: Invalid value: {}: field is immutable"]));
        assert!(!is_same_of(&[expected], &["spec.template: Invalid value: {}: field is wrong"]));
    }

    #[test]
    fn a_reason_goes_with_its_message() {
        assert!(has_reason("Required value: say it", "FieldValueRequired"));
        assert!(has_reason("Invalid value: 1", "FieldValueTypeInvalid"));
        assert!(!has_reason("Forbidden: no", "FieldValueInvalid"));
    }
}
