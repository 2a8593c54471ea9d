//! Exact decimal numbers of any size.
//!
//! Only what a quantity needs: reading, rounding up, comparing, a sum and a multiple. It
//! knows nothing of suffixes.

use std::cmp::Ordering;

use super::NANO;

/// An exact decimal number: `digits * 10^exponent`.
///
/// The digits are ASCII, with no zero at either end, so that equal numbers are
/// equal values and a huge exponent costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    digits: Vec<u8>,
    pub(super) exponent: i64,
}

impl Decimal {
    /// Zero.
    pub(super) const ZERO: Self = Self { negative: false, digits: Vec::new(), exponent: 0 };

    /// The number with these digits.
    pub(super) fn new(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Self {
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            return Self::ZERO;
        }
        Self { negative, digits, exponent }
    }

    /// Whether it is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The exact product with `2^exponent`.
    pub(super) fn times_power_of_two(&self, exponent: u32) -> Self {
        let factor = 1_u128 << exponent;
        let mut product = Vec::with_capacity(self.digits.len() + 20);
        let mut carry = 0;
        for digit in self.digits.iter().rev() {
            carry += u128::from(digit - b'0') * factor;
            product.push(b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            product.push(b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        product.reverse();
        Self::new(self.negative, product, self.exponent)
    }

    /// The nearest multiple of `10^exponent` away from zero.
    pub(super) fn round_up(&self, exponent: i64) -> Self {
        let Ok(dropped) = usize::try_from(exponent - self.exponent) else {
            return self.clone();
        };
        if dropped == 0 || self.digits.is_empty() {
            return self.clone();
        }
        let kept = self.digits.len().saturating_sub(dropped);
        let mut digits = vec![b'0'];
        digits.extend_from_slice(&self.digits[..kept]);
        // What is dropped is not zero, since the last digit never is.
        let mut at = digits.len() - 1;
        while digits[at] == b'9' {
            digits[at] = b'0';
            at -= 1;
        }
        digits[at] += 1;
        Self::new(self.negative, digits, exponent)
    }

    /// The number, or `max` if its magnitude is above that.
    pub(super) fn cut_to(self, max: u64) -> Self {
        let limit = Self::new(self.negative, max.to_string().into_bytes(), 0);
        match self.cmp_magnitude(&limit) {
            Ordering::Greater => limit,
            Ordering::Less | Ordering::Equal => self,
        }
    }

    /// The sum; beyond what nanos an `i128` holds, the nearest there is.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let sum = self.to_nanos().saturating_add(other.to_nanos());
        let digits = sum.unsigned_abs().to_string().into_bytes();
        Self::new(sum < 0, digits, NANO)
    }

    /// The product; beyond what nanos an `i128` holds, the nearest there is.
    pub(super) fn times(&self, count: u64) -> Self {
        let product = self.to_nanos().saturating_mul(i128::from(count));
        let digits = product.unsigned_abs().to_string().into_bytes();
        Self::new(product < 0, digits, NANO)
    }

    /// The number in nanos, or the nearest an `i128` holds.
    pub(super) fn to_nanos(&self) -> i128 {
        let magnitude = self.scaled_to(NANO).unwrap_or(i128::MAX);
        if self.negative { -magnitude } else { magnitude }
    }

    /// A whole number as an `i64`, or the nearest there is.
    pub(super) fn to_i64_saturating(&self) -> i64 {
        let magnitude = self.scaled_to(0).unwrap_or(i128::MAX);
        let signed = if self.negative { -magnitude } else { magnitude };
        i64::try_from(signed).unwrap_or(if self.negative { i64::MIN } else { i64::MAX })
    }

    /// The magnitude in steps of `10^exponent`, of which it is a multiple.
    fn scaled_to(&self, exponent: i64) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let digits = std::str::from_utf8(&self.digits).expect("digits are ASCII");
        let zeros = u32::try_from(self.exponent - exponent).ok()?;
        digits.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(zeros)?)
    }

    /// Digits and an exponent that is a multiple of three and at most `max`.
    pub(super) fn in_thousands(&self, max: i64) -> (String, i64) {
        let exponent = (self.exponent - self.exponent.rem_euclid(3)).min(max);
        let mut digits = self.digits.clone();
        let zeros = usize::try_from(self.exponent - exponent).expect("the exponent only sank");
        digits.resize(digits.len() + zeros, b'0');
        let digits = String::from_utf8(digits).expect("digits are ASCII");
        (digits, exponent)
    }

    /// How two numbers order.
    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        match (sign(self), sign(other)) {
            (1, 1) => self.cmp_magnitude(other),
            (-1, -1) => other.cmp_magnitude(self),
            (mine, theirs) => mine.cmp(&theirs),
        }
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // With the leading digits in the same place, the digits compare as text.
            (false, false) => self
                .magnitude_order()
                .cmp(&other.magnitude_order())
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    fn magnitude_order(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }
}
