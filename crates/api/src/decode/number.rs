//! A number as JSON would write it.
//!
//! Kubernetes turns YAML into JSON before it looks at types, so what counts is
//! the JSON text: `1.0` is no integer in JSON, but YAML's `1.0` reaches
//! Kubernetes as `1` and is one.

use std::fmt;

/// A JSON number. Integers of 64 bits are kept as such, all others as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Unsigned(u64),
    Negative(i64),
    /// Fractions, exponents, integers beyond 64 bits, and `-0`.
    Text(Box<str>),
}

impl Number {
    /// The number that a JSON literal stands for. The caller has checked the
    /// literal's grammar. `None` if it is too large for a 64-bit float.
    pub(super) fn from_json_literal(literal: &str) -> Option<Self> {
        if literal != "-0" {
            if let Ok(value) = literal.parse::<u64>() {
                return Some(value.into());
            }
            if let Ok(value) = literal.parse::<i64>() {
                return Some(value.into());
            }
        }
        let fits = literal.parse::<f64>().is_ok_and(f64::is_finite);
        fits.then(|| Self(Repr::Text(literal.into())))
    }

    /// The JSON number that Go writes for a float; `None` for infinities and NaN,
    /// which JSON cannot write.
    pub(super) fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then(|| Self::from_json_literal(&go_json_float(value))).flatten()
    }

    /// The value, if this is an integer in that range and written as one: Go
    /// takes neither `1.0` nor `1e3` for an integer.
    pub fn as_integer(&self) -> Option<i128> {
        match &self.0 {
            Repr::Unsigned(value) => Some(i128::from(*value)),
            Repr::Negative(value) => Some(i128::from(*value)),
            Repr::Text(text) => text.parse().ok(),
        }
    }

    /// Whether the number is written without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Unsigned(_) | Repr::Negative(_) => true,
            Repr::Text(text) => !text.contains(['.', 'e', 'E']),
        }
    }

    /// The closest 64-bit float.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Unsigned(value) => *value as f64,
            Repr::Negative(value) => *value as f64,
            Repr::Text(text) => text.parse().expect("a JSON number is a float"),
        }
    }

    /// The number as `serde_json` reads it.
    pub fn to_json(&self) -> serde_json::Number {
        match &self.0 {
            Repr::Unsigned(value) => (*value).into(),
            Repr::Negative(value) => (*value).into(),
            Repr::Text(_) => {
                serde_json::Number::from_f64(self.as_f64()).expect("the number is finite")
            }
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(Repr::Unsigned(value))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        match u64::try_from(value) {
            Ok(value) => Self(Repr::Unsigned(value)),
            Err(_) => Self(Repr::Negative(value)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unsigned(value) => write!(f, "{value}"),
            Repr::Negative(value) => write!(f, "{value}"),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

/// The shortest text that reads back as the same float, with an exponent where
/// Go's JSON writer uses one: below 1e-6 and from 1e21 on.
fn go_json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                format!("{mantissa}e+{exponent}")
            }
            _ => text,
        }
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_is_written_the_way_go_writes_it() {
        let rows = [
            (1.0, "1"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1000.0, "1000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (0.000001, "0.000001"),
            (0.0000001, "1e-7"),
            (-2.5e-10, "-2.5e-10"),
        ];
        for (value, expected) in rows {
            assert_eq!(Number::from_f64(value).expect(expected).to_string(), expected);
        }
        assert_eq!(Number::from_f64(f64::NAN), None);
        assert_eq!(Number::from_f64(f64::INFINITY), None);
    }

    #[test]
    fn only_an_integer_literal_is_an_integer() {
        let integer = |text| Number::from_json_literal(text).expect(text).as_integer();
        assert_eq!(integer("5"), Some(5));
        assert_eq!(integer("-5"), Some(-5));
        assert_eq!(integer("-0"), Some(0));
        assert_eq!(integer("18446744073709551616"), Some(1 << 64));
        assert_eq!(integer("1.0"), None);
        assert_eq!(integer("1e3"), None);
        assert_eq!(Number::from_json_literal("1e999999999"), None);
    }
}
