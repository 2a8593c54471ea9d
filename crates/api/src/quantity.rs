//! A Kubernetes resource quantity: `500m`, `1.5`, `128Mi`, `12e6`.
//!
//! A quantity is an exact decimal number and the family of suffixes it was
//! written with. It is read, compared, rounded and written exactly as the API
//! server does it, and never passes through a float. It does not know what is
//! being measured.

mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use self::decimal::Decimal;

/// A number of something, as `resources.limits` holds it.
///
/// Two quantities are equal when their amounts are, however they are written.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Decimal,
    format: Format,
    /// The text it was read from, where the API server prints that text again
    /// instead of the canonical form (`1.500`, `+1`).
    verbatim: Option<String>,
}

/// Why a text is no quantity, in the API server's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a number and a suffix.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// There are no digits where some are needed.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is none of the known ones.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The family of suffixes a quantity was written with, and is written with again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `12M`
    DecimalSi,
    /// `12Mi`
    BinarySi,
    /// `12e6`
    DecimalExponent,
}

/// The smallest step a quantity can have is 10^-9; anything finer is rounded up.
const NANO: i64 = -9;
const MILLI: i64 = -3;
/// Binary quantities above what an `i64` holds are cut to it.
const BINARY_MAX: u64 = i64::MAX as u64;
/// Below this a binary quantity is written with a decimal suffix.
const BINARY_MIN_WRITTEN: i64 = 1024;
/// Up to this many digits are sure to fit an `i64`, the server's short way.
const SIMPLE_DECIMAL_DIGITS: usize = 18;

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let suffix = Suffix::interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        let is_simple = suffix.is_simple_with(&parts);
        if !is_simple && !parts.has_digits {
            return Err(QuantityError::Number);
        }
        let is_kept = is_simple && suffix.looks_canonical_with(&parts);
        let verbatim = is_kept.then(|| text.to_owned());
        let mut amount = parts.number();
        let format = match suffix {
            Suffix::Power10(exponent, format) => {
                amount.exponent += i64::from(exponent);
                format
            }
            Suffix::Power2(exponent) => {
                amount = amount.times_power_of_two(exponent);
                Format::BinarySi
            }
        };
        amount = amount.round_up(NANO);
        if format == Format::BinarySi {
            amount = amount.cut_to(BINARY_MAX);
        }
        Ok(Self { amount, format, verbatim })
    }
}

impl Quantity {
    /// Zero.
    pub fn zero() -> Self {
        Self { amount: Decimal::ZERO, format: Format::DecimalSi, verbatim: None }
    }

    /// A whole number.
    pub fn whole(number: u64) -> Self {
        let digits = number.to_string().into_bytes();
        Self { amount: Decimal::new(false, digits, 0), ..Self::zero() }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.amount.negative
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.is_zero() || self.amount.exponent >= 0
    }

    /// The amount rounded away from zero to a whole number, or the nearest
    /// number an `i64` holds.
    pub fn value(&self) -> i64 {
        self.amount.round_up(0).to_i64_saturating()
    }

    /// The amount in thousandths, rounded and saturating like [`Self::value`].
    pub fn milli_value(&self) -> i64 {
        let mut thousandths = self.amount.round_up(MILLI);
        thousandths.exponent += 3;
        thousandths.to_i64_saturating()
    }

    /// Rounds away from zero to thousandths, the finest step of a resource in
    /// the API.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        if self.is_zero() || self.amount.exponent >= MILLI {
            return self;
        }
        Self { amount: self.amount.round_up(MILLI), format: self.format, verbatim: None }
    }

    /// The sum, in the format of `self` unless that is zero.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            amount: self.amount.plus(&other.amount),
            format: if self.is_zero() { other.format } else { self.format },
            verbatim: None,
        }
    }

    /// The difference, in the format of `self` unless that is zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut less = other.clone();
        less.amount.negative = !less.amount.negative && !less.is_zero();
        self.plus(&less)
    }

    /// So many times the amount.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        Self { amount: self.amount.times(count), format: self.format, verbatim: None }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

/// Writes the text the API server would: no fraction, the largest suffix of
/// its family that loses nothing, and the text it was read from where that was
/// nearly so.
///
/// One difference is deliberate: above `999E` the server drops the suffix it
/// does not have and prints `1` for `1000E`; this prints `1000E`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.verbatim {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.amount.negative {
            f.write_str("-")?;
        }
        match self.format {
            Format::BinarySi if self.is_written_binary() => self.write_binary(f),
            Format::BinarySi | Format::DecimalSi => {
                let (digits, exponent) = self.amount.in_thousands(18);
                let at = usize::try_from((exponent - NANO) / 3).expect("rounded to nano");
                let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][at];
                write!(f, "{digits}{suffix}")
            }
            Format::DecimalExponent => match self.amount.in_thousands(i64::MAX) {
                (digits, 0) => f.write_str(&digits),
                (digits, exponent) => write!(f, "{digits}e{exponent}"),
            },
        }
    }
}

impl Quantity {
    fn is_written_binary(&self) -> bool {
        self.is_integer() && self.value().abs() >= BINARY_MIN_WRITTEN
    }

    fn write_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.value().unsigned_abs();
        let mut suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
        let mut suffix = suffixes.next().expect("the list is not empty");
        while number.is_multiple_of(1024) {
            number /= 1024;
            suffix = suffixes.next().expect("1024^7 is more than an i64");
        }
        write!(f, "{number}{suffix}")
    }
}

/// The pieces of a quantity's text.
struct Parts<'a> {
    negative: bool,
    has_digits: bool,
    /// Without leading zeros, but `0` when there is nothing else.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = leading_digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => leading_digits(rest),
            None => ("", rest),
        };
        let after_letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let after_sign = after_letters.strip_prefix(['+', '-']).unwrap_or(after_letters);
        if !leading_digits(after_sign).1.is_empty() {
            return Err(QuantityError::Format);
        }
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        let whole = whole.trim_start_matches('0');
        Ok(Self {
            negative: text.starts_with('-'),
            has_digits,
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }

    /// The power of ten of the last digit.
    fn scale(&self, exponent: i32) -> i64 {
        i64::from(exponent) - self.fraction.len() as i64
    }

    fn number(&self) -> Decimal {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).collect();
        Decimal::new(self.negative, digits, -(self.fraction.len() as i64))
    }
}

fn leading_digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - rest.len())
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Suffix {
    Power10(i32, Format),
    Power2(u32),
}

impl Suffix {
    fn interpret(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Power10(-9, Format::DecimalSi),
            "u" => Self::Power10(-6, Format::DecimalSi),
            "m" => Self::Power10(-3, Format::DecimalSi),
            "" => Self::Power10(0, Format::DecimalSi),
            "k" => Self::Power10(3, Format::DecimalSi),
            "M" => Self::Power10(6, Format::DecimalSi),
            "G" => Self::Power10(9, Format::DecimalSi),
            "T" => Self::Power10(12, Format::DecimalSi),
            "P" => Self::Power10(15, Format::DecimalSi),
            "E" => Self::Power10(18, Format::DecimalSi),
            "Ki" => Self::Power2(10),
            "Mi" => Self::Power2(20),
            "Gi" => Self::Power2(30),
            "Ti" => Self::Power2(40),
            "Pi" => Self::Power2(50),
            "Ei" => Self::Power2(60),
            _ => {
                let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                // Upstream cuts the exponent to 32 bits; an exponent this size
                // is a mistake either way, so this refuses it.
                Self::Power10(exponent.try_into().ok()?, Format::DecimalExponent)
            }
        })
    }

    /// Whether the API server reads the number the short way, on which it
    /// takes no digits for zero and may keep the text for printing.
    fn is_simple_with(self, parts: &Parts<'_>) -> bool {
        let digits = parts.whole.len() + parts.fraction.len();
        match self {
            Self::Power10(exponent, _) => {
                digits <= SIMPLE_DECIMAL_DIGITS && parts.scale(exponent) >= NANO
            }
            Self::Power2(exponent) => {
                let room = 14 - i64::from(exponent) * 3 / 10;
                parts.fraction.is_empty() && digits as i64 <= room
            }
        }
    }

    /// Whether a look that is cheaper than printing finds the text canonical.
    fn looks_canonical_with(self, parts: &Parts<'_>) -> bool {
        match self {
            Self::Power10(exponent, _) => {
                let digits = format!("{}{}", parts.whole, parts.fraction);
                parts.scale(exponent) % 3 == 0
                    && !digits.starts_with('0')
                    && !digits.ends_with("000")
            }
            Self::Power2(_) => {
                let number = parts.whole.parse::<u64>();
                number.is_ok_and(|number| number & 7 != 0)
            }
        }
    }
}

#[cfg(test)]
mod tests;
