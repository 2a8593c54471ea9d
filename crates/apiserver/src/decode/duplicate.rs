//! Whether a JSON text gives a key twice in one object: serde does not tell. It says no more
//! than that; the words for it come from the strict reader.

use std::collections::HashSet;

/// Up to so many keys are compared one by one, which is faster than hashing them.
const FEW: usize = 16;

/// Whether any object of a text has a key twice. The text is JSON, or the answer means nothing.
///
/// Keys are compared as they are written: `"a"` and `"\u0061"` pass for two.
pub(super) fn has_duplicates(json: &[u8]) -> bool {
    let mut open: Vec<Keys<'_>> = Vec::new();
    let mut position = 0;
    // Whether the next text is a key: after the start of an object and after its commas.
    let mut expects_key = false;
    while let Some(&byte) = json.get(position) {
        match byte {
            b'"' => {
                let end = end_of_text(json, position + 1);
                if expects_key
                    && let Some(keys) = open.last_mut()
                    && !keys.add(&json[position + 1..end])
                {
                    return true;
                }
                expects_key = false;
                position = end;
            }
            b'{' => {
                open.push(Keys::Object { few: Vec::new(), many: HashSet::new() });
                expects_key = true;
            }
            b'[' => {
                open.push(Keys::List);
                expects_key = false;
            }
            b'}' | b']' => {
                open.pop();
                expects_key = false;
            }
            b',' => expects_key = matches!(open.last(), Some(Keys::Object { .. })),
            _ => {}
        }
        position += 1;
    }
    false
}

/// Where the text that has begun ends: at its closing quote.
fn end_of_text(json: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(&byte) = json.get(position) {
        match byte {
            b'"' => return position,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    json.len()
}

/// What is open around a position.
enum Keys<'j> {
    List,
    Object { few: Vec<&'j [u8]>, many: HashSet<&'j [u8]> },
}

impl<'j> Keys<'j> {
    /// Adds a key; `false` if it is there already.
    fn add(&mut self, key: &'j [u8]) -> bool {
        let Keys::Object { few, many } = self else { return true };
        if !many.is_empty() {
            return many.insert(key);
        }
        if few.contains(&key) {
            return false;
        }
        few.push(key);
        if few.len() > FEW {
            many.extend(few.drain(..));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_values_and_objects_apart() {
        let rows: [(&str, bool); 9] = [
            ("{}", false),
            (r#"{"a":1,"b":"a","c":["a","a"]}"#, false),
            (r#"{"a":1,"b":{"a":1},"c":{"a":1}}"#, false),
            (r#"[{"a":1},{"a":1}]"#, false),
            (r#"{"a":"\"","b":"{\"a\":1,","c":[]}"#, false),
            (r#"{"a":1,"a":1}"#, true),
            (r#"{"b":[{"x":{},"y":[],"x":2}]}"#, true),
            (r#"{"a":{"b":1},"c":2,"a":3}"#, true),
            (r#"{"a\"":1,"a\"":1}"#, true),
        ];
        for (text, expected) in rows {
            assert_eq!(has_duplicates(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn many_keys_are_all_compared() {
        let keys = |count: usize| (0..count).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>();
        let unique = format!("{{{}}}", keys(1000).join(","));
        assert!(!has_duplicates(unique.as_bytes()));
        let repeated = format!("{{{},\"k3\":0}}", keys(1000).join(","));
        assert!(has_duplicates(repeated.as_bytes()));
    }

    #[test]
    fn a_text_that_is_no_json_does_no_harm() {
        for text in ["\"", "{\"", "{\"a", "\\", "]]}}", "{\"a\\", ",,,\"\"", "{,\"a\",\"a"] {
            has_duplicates(text.as_bytes());
        }
    }
}
