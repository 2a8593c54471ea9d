//! Moments in rows: `now`, `now-5m`, `now+1h`, so that a row says how old a thing is and not
//! when it was made.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Writes the moments in an object as times.
pub(crate) fn write_out(object: &mut Value, now: Timestamp) {
    match object {
        Value::String(text) => {
            if let Some(offset) = offset(text) {
                // All six digits: microtimes are not read without them, other times with any.
                *object = json!(format!("{:.6}", now + offset));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| write_out(item, now)),
        Value::Object(fields) => fields.values_mut().for_each(|field| write_out(field, now)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn offset(text: &str) -> Option<SignedDuration> {
    let text = text.strip_prefix("now")?;
    let Some(last) = text.len().checked_sub(1) else {
        return Some(SignedDuration::ZERO);
    };
    let (number, unit) = text.split_at_checked(last)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    Some(SignedDuration::from_secs(unit * number.parse::<i64>().ok()?))
}
