//! Reading the text of an index set, strictly or leniently.

use super::{Builder, IndexSet, Interval};
use crate::field_error::quote;

/// Why a list of intervals is not one, in the words of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexSetError {
    /// A fragment such as `1-2-3`.
    #[error(
        "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
        quote(.0)
    )]
    TooManyParts(String),
    /// Something that is no number.
    #[error("cannot convert string to integer for index: {}", quote(.0))]
    NotANumber(String),
    /// An index at or above completions.
    #[error("{}: {}", Self::TOO_LARGE, quote(.0))]
    TooLarge(String),
    /// Intervals out of order, touching the one before, or ending before they start.
    #[error("{}, previous: {previous}, current: {current}", Self::NOT_INCREASING)]
    NotIncreasing {
        /// The index that came before.
        previous: u32,
        /// The index that should have been higher.
        current: u32,
    },
}

impl IndexSetError {
    // Words that `remedy` recognises an error by.
    pub(crate) const TOO_LARGE: &str = "too large index";
    pub(crate) const NOT_INCREASING: &str = "non-increasing order";
}

pub(super) fn strict(text: &str, completions: u32) -> Result<IndexSet, IndexSetError> {
    let mut builder = Builder::default();
    if text.is_empty() {
        return Ok(builder.finish());
    }
    let mut previous = None;
    for fragment in text.split(',') {
        let interval = interval(fragment, completions)?;
        if let Some(previous) = previous.filter(|&previous| previous >= interval.first) {
            return Err(IndexSetError::NotIncreasing { previous, current: interval.first });
        }
        previous = Some(interval.last);
        builder.push(interval);
    }
    Ok(builder.finish())
}

pub(super) fn lenient(text: &str, completions: u32) -> IndexSet {
    text.split(',').filter_map(|fragment| cut_interval(fragment, completions)).collect()
}

fn interval(fragment: &str, completions: u32) -> Result<Interval, IndexSetError> {
    let (first_text, last_text) = halves(fragment)?;
    let first = index(first_text, completions)?;
    let last = last_text.map(|text| index(text, completions)).transpose()?;
    match last {
        Some(last) if first >= last => {
            Err(IndexSetError::NotIncreasing { previous: first, current: last })
        }
        Some(last) => Ok(Interval::new(first, last)),
        None => Ok(Interval::new(first, first)),
    }
}

/// What is left of a fragment below `completions`, if it makes sense at all.
fn cut_interval(fragment: &str, completions: u32) -> Option<Interval> {
    let (first_text, last_text) = halves(fragment).ok()?;
    let first = number(first_text).ok()?;
    let last = number(last_text.unwrap_or(first_text)).ok()?;
    let last = last.min(i64::from(completions.min(super::LIMIT)) - 1);
    let interval = (u32::try_from(first).ok()?, u32::try_from(last).ok()?);
    (interval.0 <= interval.1).then(|| Interval::new(interval.0, interval.1))
}

/// `3` as (3, none), `3-5` as (3, 5).
fn halves(fragment: &str) -> Result<(&str, Option<&str>), IndexSetError> {
    let mut parts = fragment.split('-');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next());
    match parts.next() {
        Some(_) => Err(IndexSetError::TooManyParts(fragment.to_owned())),
        None => Ok((first, last)),
    }
}

fn index(text: &str, completions: u32) -> Result<u32, IndexSetError> {
    match u32::try_from(number(text)?) {
        Ok(index) if index < completions.min(super::LIMIT) => Ok(index),
        _ => Err(IndexSetError::TooLarge(text.to_owned())),
    }
}

/// A decimal number as Go's `strconv.Atoi` takes it: a leading `+` and zeros are
/// fine, anything beyond 64 bits is not a number.
fn number(text: &str) -> Result<i64, IndexSetError> {
    let not_a_number = || IndexSetError::NotANumber(text.to_owned());
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(not_a_number());
    }
    digits.parse().map_err(|_| not_a_number())
}
