//! The bytes of what is put into fjall: one record for each change, and the state of the whole.
//! It knows neither files nor fjall. `docs/store-format.md` describes the same for readers.
//!
//! Everything ends in a checksum over all of it. That of a record is seeded with its revision,
//! so that a record under another's key is noticed, too.

use crate::floor::Floor;
use crate::write::MAX_KEY_BYTES;
use crate::{Change, Entry, Revision};
use bytes::Bytes;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The first byte of everything: the layout of what follows it.
const LAYOUT: u8 = 1;
const PUT: u8 = 1;
const DELETE: u8 = 2;
const CHECKSUM_BYTES: usize = 8;
/// Layout, kind, created, length of the key.
const HEADER_BYTES: usize = 1 + 1 + 8 + 2;
/// Layout, then revision, floor, live entries and digest.
const STATE_BYTES: usize = 1 + 4 * 8 + CHECKSUM_BYTES;

/// A change as it is read back: what was there before is told by the changes before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Arc<str>,
    pub(crate) after: Option<Arc<Entry>>,
}

/// What the store is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) revision: Revision,
    pub(crate) floor: Floor,
}

impl State {
    /// The state of a store that was never written to.
    pub(crate) const EMPTY: State = State { revision: Revision::EMPTY, floor: Floor::EMPTY };
}

/// The key of a record: its revision, so that a scan goes through history in order.
pub(crate) fn record_key(revision: Revision) -> [u8; 8] {
    revision.get().to_be_bytes()
}

/// The revision that a record's key stands for.
pub(crate) fn record_revision(key: &[u8]) -> Option<Revision> {
    Some(Revision::new(u64::from_be_bytes(key.try_into().ok()?)))
}

/// The bytes of a change.
pub(crate) fn encode_record(change: &Change) -> Vec<u8> {
    let value = change.after.as_ref().map_or(&[][..], |entry| &entry.value);
    let created = change.after.as_ref().map_or(0, |entry| entry.created.get());
    let key_bytes = u16::try_from(change.key.len()).expect("keys are at most MAX_KEY_BYTES long");
    let mut bytes =
        Vec::with_capacity(HEADER_BYTES + change.key.len() + value.len() + CHECKSUM_BYTES);
    bytes.push(LAYOUT);
    bytes.push(if change.after.is_some() { PUT } else { DELETE });
    bytes.extend(created.to_le_bytes());
    bytes.extend(key_bytes.to_le_bytes());
    bytes.extend(change.key.as_bytes());
    bytes.extend(value);
    seal(bytes, change.revision.get())
}

/// A change from its bytes, or what is wrong with them.
pub(crate) fn decode_record(revision: Revision, bytes: &[u8]) -> Result<Record, &'static str> {
    let body = unseal(bytes, revision.get())?;
    let (header, rest) = body.split_first_chunk::<HEADER_BYTES>().ok_or("a record is too short")?;
    let [layout, kind, created @ .., low, high] = header;
    check_layout(*layout)?;
    let created = Revision::new(u64::from_le_bytes(*created));
    let key_bytes = usize::from(u16::from_le_bytes([*low, *high]));
    if key_bytes > rest.len() || key_bytes > MAX_KEY_BYTES {
        return Err("a record's key is longer than it can be");
    }
    let (key, value) = rest.split_at(key_bytes);
    let key: Arc<str> = str::from_utf8(key).map_err(|_| "a record's key is not text")?.into();
    let after = match *kind {
        PUT => Some(Arc::new(Entry {
            key: key.clone(),
            // A copy, so that the value does not keep a whole block of fjall's in memory.
            value: Bytes::copy_from_slice(value),
            created,
            modified: revision,
        })),
        DELETE => None,
        _ => return Err("a record is of an unknown kind"),
    };
    Ok(Record { key, after })
}

/// The bytes of the state.
pub(crate) fn encode_state(state: &State) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(STATE_BYTES);
    bytes.push(LAYOUT);
    let Floor { revision: floor, live, digest } = state.floor;
    for number in [state.revision.get(), floor.get(), live, digest] {
        bytes.extend(number.to_le_bytes());
    }
    seal(bytes, 0)
}

/// The state from its bytes, or what is wrong with them.
pub(crate) fn decode_state(bytes: &[u8]) -> Result<State, &'static str> {
    let body = unseal(bytes, 0)?;
    let (layout, numbers) = body.split_first().ok_or("the state is too short")?;
    check_layout(*layout)?;
    let (numbers, rest) = numbers.as_chunks::<8>();
    let [revision, floor, live, digest] = numbers else {
        return Err("the state has another length than it should");
    };
    if !rest.is_empty() {
        return Err("the state has another length than it should");
    }
    Ok(State {
        revision: Revision::new(u64::from_le_bytes(*revision)),
        floor: Floor {
            revision: Revision::new(u64::from_le_bytes(*floor)),
            live: u64::from_le_bytes(*live),
            digest: u64::from_le_bytes(*digest),
        },
    })
}

/// Appends the checksum.
pub(crate) fn seal(mut bytes: Vec<u8>, seed: u64) -> Vec<u8> {
    let checksum = xxh3_64_with_seed(&bytes, seed);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// What the checksum at the end is about, if it is right.
pub(crate) fn unseal(bytes: &[u8], seed: u64) -> Result<&[u8], &'static str> {
    let (body, checksum) =
        bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or("too short for a checksum")?;
    if xxh3_64_with_seed(body, seed) == u64::from_le_bytes(*checksum) {
        Ok(body)
    } else {
        Err("a checksum does not match")
    }
}

fn check_layout(layout: u8) -> Result<(), &'static str> {
    if layout == LAYOUT { Ok(()) } else { Err("a record has an unknown layout") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(after: Option<&'static str>) -> Change {
        let entry = |value: &'static str| Entry {
            key: "/a/b".into(),
            value: value.into(),
            created: Revision::new(3),
            modified: Revision::new(7),
        };
        Change {
            key: "/a/b".into(),
            revision: Revision::new(7),
            before: None,
            after: after.map(entry).map(Arc::new),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        for change in [change(Some("value")), change(Some("")), change(None)] {
            let bytes = encode_record(&change);
            let record = decode_record(change.revision, &bytes).expect("it was just encoded");
            assert_eq!(record, Record { key: change.key, after: change.after });
        }
    }

    #[test]
    fn a_record_with_any_bit_flipped_or_under_another_revision_is_refused() {
        let bytes = encode_record(&change(Some("value")));
        decode_record(Revision::new(8), &bytes).expect_err("it is the record of 7");
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            decode_record(Revision::new(7), &bytes).expect_err("a bit is wrong");
        }
        for length in 0..bytes.len() {
            decode_record(Revision::new(7), &bytes[..length]).expect_err("the end is missing");
        }
    }

    #[test]
    fn the_state_comes_back_as_it_was_and_refuses_any_other_bit() {
        let floor = Floor { revision: Revision::new(5), live: 2, digest: u64::MAX };
        let state = State { revision: Revision::new(9), floor };
        let bytes = encode_state(&state);
        assert_eq!(bytes.len(), STATE_BYTES);
        assert_eq!(decode_state(&bytes), Ok(state));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            decode_state(&bytes).expect_err("a bit is wrong");
        }
    }
}
