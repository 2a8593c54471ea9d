//! Base64 as Go's standard decoder takes it: padded, line breaks ignored.
//!
//! Only YAML's `!!binary` and the check of byte strings need it, which is not
//! worth a dependency.

/// The bytes, or `None` if the text is not base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits[..digits.len() - padding].chunks(4) {
        let mut bits = 0u32;
        for digit in group {
            bits = bits << 6 | u32::from(value(*digit)?);
        }
        bits <<= 6 * (4 - group.len());
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.extend([first, second, third].iter().take(group.len() - 1));
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_padding_and_line_breaks() {
        let rows: [(&str, Option<&[u8]>); 9] = [
            ("", Some(b"")),
            ("aGVsbG8=", Some(b"hello")),
            ("aGVs\nbG8=\r\n", Some(b"hello")),
            ("aA==", Some(b"h")),
            ("gICA", Some(b"\x80\x80\x80")),
            ("aGVsbG8", None),
            ("aGVs bG8=", None),
            ("a===", None),
            ("====", None),
        ];
        for (text, expected) in rows {
            assert_eq!(decode(text).as_deref(), expected, "{text:?}");
        }
    }
}
