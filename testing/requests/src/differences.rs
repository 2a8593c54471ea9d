//! Where two JSON values differ, one line each.

use serde_json::Value;

/// The differences between what was expected and what came.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, got, &mut found);
    found
}

fn compare(path: &str, expected: &Value, got: &Value, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = format!("{path}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => compare(&path, a, b, found),
                    (Some(a), None) => found.push(format!("  {path}: expected {a}, got none")),
                    (None, Some(b)) => found.push(format!("  {path}: expected none, got {b}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if expected == got => {}
        _ => found.push(format!("  {path}:\n    expected {expected}\n    got      {got}")),
    }
}
