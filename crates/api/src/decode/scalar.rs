//! What a YAML scalar stands for, as Kubernetes reads it.
//!
//! Kubernetes reads YAML with go-yaml v2, which follows YAML 1.1: `yes` is true
//! and `010` is eight. The result then goes through JSON, so keys become strings
//! and dates stay strings. The rules here are those two steps and nothing more;
//! scanning the text is the YAML parser's work.

use super::node::NodeValue;
use super::number::Number;

/// What a scalar resolves to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    /// A float, possibly infinite or not a number.
    Float(f64),
    /// The text itself.
    String,
}

impl Scalar {
    /// The value of a scalar with this text; `None` for the floats that JSON
    /// cannot write.
    pub(super) fn into_value(self, text: &str) -> Option<NodeValue> {
        Some(match self {
            Scalar::Null => NodeValue::Null,
            Scalar::Bool(value) => NodeValue::Bool(value),
            Scalar::Int(value) => NodeValue::Number(value.into()),
            Scalar::Uint(value) => NodeValue::Number(value.into()),
            Scalar::Float(value) => NodeValue::Number(Number::from_f64(value)?),
            Scalar::String => NodeValue::String(text.to_owned()),
        })
    }

    /// The key that a scalar with this text makes; `None` where Kubernetes takes
    /// none, which is null and integers beyond 63 bits.
    pub(super) fn into_key(self, text: &str) -> Option<String> {
        Some(match self {
            Scalar::Null | Scalar::Uint(_) => return None,
            Scalar::Bool(value) => value.to_string(),
            Scalar::Int(value) => value.to_string(),
            Scalar::Float(value) => float_key(value),
            Scalar::String => text.to_owned(),
        })
    }

    /// The name of the scalar's type in messages.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "a boolean",
            Scalar::Int(_) | Scalar::Uint(_) => "an integer",
            Scalar::Float(_) => "a float",
            Scalar::String => "a string",
        }
    }
}

/// What an unquoted, untagged scalar stands for.
pub(super) fn resolve_plain(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            resolve_word(text)
        }
        b'.' => resolve_word_or(text, || resolve_leading_dot(text)),
        b'+' | b'-' | b'0'..=b'9' => resolve_word_or(text, || resolve_number(text)),
        _ => Scalar::String,
    }
}

/// What a scalar with a tag of YAML's own stands for, quoted or not; the tag is
/// given without its prefix. `None` if the tag does not fit the text. Tags that
/// are not resolved make a string, as in go-yaml.
pub(super) fn resolve_tagged(tag: &str, text: &str) -> Option<Scalar> {
    let resolved = resolve_plain(text);
    match (tag, resolved) {
        ("null", Scalar::Null)
        | ("bool", Scalar::Bool(_))
        | ("int", Scalar::Int(_) | Scalar::Uint(_))
        | ("float", Scalar::Float(_)) => Some(resolved),
        ("float", Scalar::Int(value)) => Some(Scalar::Float(value as f64)),
        ("null" | "bool" | "int" | "float", _) => None,
        ("timestamp", _) => looks_like_a_date(text).then_some(Scalar::String),
        _ => Some(Scalar::String),
    }
}

fn resolve_word_or(text: &str, otherwise: impl FnOnce() -> Scalar) -> Scalar {
    match resolve_word(text) {
        Scalar::String => otherwise(),
        word => word,
    }
}

fn resolve_word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => Scalar::String,
    }
}

/// A text that starts with a dot is a float or nothing special. Here, unlike
/// after a digit, an underscore must stand between two digits.
fn resolve_leading_dot(text: &str) -> Scalar {
    let bytes = text.as_bytes();
    let digit_at = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let underscores_are_right = bytes
        .iter()
        .enumerate()
        .all(|(index, byte)| *byte != b'_' || (digit_at(index - 1) && digit_at(index + 1)));
    let plain = text.replace('_', "");
    if underscores_are_right && is_decimal(&plain) { finite_float(&plain) } else { Scalar::String }
}

fn resolve_number(text: &str) -> Scalar {
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, &plain[1..]),
        Some(b'+') => (false, &plain[1..]),
        _ => (false, plain.as_str()),
    };
    if let Some(magnitude) = parse_magnitude(digits) {
        if negative {
            if magnitude <= 1 << 63 {
                return Scalar::Int((magnitude as i64).wrapping_neg());
            }
        } else if let Ok(value) = i64::try_from(magnitude) {
            return Scalar::Int(value);
        } else if !plain.starts_with('+') {
            return Scalar::Uint(magnitude);
        }
    }
    if is_decimal(&plain) {
        return finite_float(&plain);
    }
    // go-yaml tries `0b` once more with the sign after the prefix.
    match plain.strip_prefix("0b").and_then(|rest| i64::from_str_radix(rest, 2).ok()) {
        Some(value) => Scalar::Int(value),
        None => Scalar::String,
    }
}

/// An unsigned integer with Go's prefixes: `0x`, `0o`, `0b`, and a leading zero
/// for octal.
fn parse_magnitude(digits: &str) -> Option<u64> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // The standard library would take a sign here; Go does not.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Whether the text is a decimal number: digits with at most one dot among them
/// (not a lone one), and possibly an exponent.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_is_right = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_is_right
        && exponent.is_none_or(|exponent| {
            let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            !unsigned.is_empty() && digits(unsigned)
        })
}

/// A float, or the text itself where the float would be infinite.
fn finite_float(text: &str) -> Scalar {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Scalar::Float(value),
        _ => Scalar::String,
    }
}

/// Whether a text starts like the dates of YAML 1.1. What follows is not looked
/// at: the value stays a string, and only an explicit `!!timestamp` asks.
fn looks_like_a_date(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4 && text.as_bytes().get(4) == Some(&b'-')
}

/// A float as a key: rounded to 32 bits, with an exponent below 1e-4 and from
/// 1e6 on, and `.inf` and `.nan` in YAML's own spelling.
fn float_key(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) =
        scientific.split_once('e').expect("the scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-4..6).contains(&exponent) {
        format!("{value}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}

#[cfg(test)]
mod tests;
