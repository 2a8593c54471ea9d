//! Where a path of a JSON patch leads: JSON pointers, RFC 6901, as kube-apiserver reads
//! them.
//!
//! It must not know what an operation does there.

use serde_json::Value;

/// The object or list that has the last segment of a path, and that segment. None if the
/// way there is missing, null or a scalar, or the path has no segment.
pub(super) fn find<'v>(document: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let mut segments = segments(path).map(decode);
    let mut key = segments.next()?;
    let mut container = document;
    for next in segments {
        container = match container {
            Value::Object(fields) => fields.get_mut(&key)?,
            Value::Array(items) => {
                let at = index(&key, items.len())?;
                &mut items[at]
            }
            _ => return None,
        };
        key = next;
    }
    Some((container, key))
}

/// What a path is made of. Whatever stands before the first slash does not count, as in
/// kube-apiserver.
pub(super) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip(1)
}

/// The place of an item that is there. Indexes below zero count from the end, and there
/// may be a sign and zeros before the number, as in kube-apiserver.
pub(super) fn index(key: &str, length: usize) -> Option<usize> {
    let at: i64 = key.parse().ok()?;
    let at = if at < 0 {
        length.checked_sub(at.unsigned_abs().try_into().ok()?)?
    } else {
        at.try_into().ok()?
    };
    (at < length).then_some(at)
}

/// The place where an item is put in; `-` and the length itself are the end, and so is -1.
pub(super) fn insertion_index(key: &str, length: usize) -> Option<usize> {
    if key == "-" { Some(length) } else { index(key, length + 1) }
}

/// `~1` is a slash and `~0` a tilde. The order matters: `~01` is `~1`.
fn decode(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_once() {
        assert_eq!(decode("a~1b~0c"), "a/b~c");
        assert_eq!(decode("~01"), "~1");
        assert_eq!(decode("~2~"), "~2~");
    }

    #[test]
    fn indexes_count_from_either_end() {
        assert_eq!(index("0", 3), Some(0));
        assert_eq!(index("-1", 3), Some(2));
        assert_eq!(index("-3", 3), Some(0));
        assert_eq!(index("-4", 3), None);
        assert_eq!(index("3", 3), None);
        assert_eq!(index("+1", 3), Some(1));
        assert_eq!(index("01", 3), Some(1));
        assert_eq!(index("", 3), None);
        assert_eq!(index("-", 3), None);
        assert_eq!(index("99999999999999999999", 3), None);
        assert_eq!(index("-9223372036854775808", 3), None);
        assert_eq!(insertion_index("3", 3), Some(3));
        assert_eq!(insertion_index("-", 3), Some(3));
        assert_eq!(insertion_index("-1", 3), Some(3));
        assert_eq!(insertion_index("4", 3), None);
    }
}
