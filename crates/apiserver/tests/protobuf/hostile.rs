//! Bytes that mean harm: they are refused or read, and cost no more than their length.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use stint_apiserver::protobuf::{decode, envelope};
use stint_apiserver::schema;

use crate::rows;

/// The largest body there is.
const BODY_BYTES: usize = 3 << 20;

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..512)) {
        let _ = envelope::open(&bytes);
        let _ = envelope::open(&[b"k8s\0", &bytes[..]].concat());
        for (_, _, message) in schema::KINDS {
            let _ = decode::object(&bytes, message);
        }
    }

    /// Fields that are mostly of the schema, so that what is read goes deep.
    #[test]
    fn fields_in_fields_are_read_or_refused(
        numbers in vec((1_u8..16, 0_u8..6, any::<u8>()), 0..64),
    ) {
        let mut bytes = Vec::new();
        for (number, wire_type, value) in numbers {
            let length = u8::try_from(bytes.len().min(127)).expect("below 128");
            let inner = std::mem::take(&mut bytes);
            match wire_type {
                0 => bytes.extend([number << 3, value]),
                1..=3 => bytes.extend([&[number << 3 | 2, length], &inner[..length.into()]].concat()),
                _ => bytes.extend([number << 3 | 5, value, value, value, value]),
            }
            bytes.extend(inner.get(usize::from(length)..).unwrap_or(&[]));
        }
        for (_, _, message) in schema::KINDS {
            let _ = decode::object(&bytes, message);
        }
    }

    #[test]
    fn a_changed_byte_is_read_or_refused(
        row in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (message, mut raw) = SMALL_ROWS[row.index(SMALL_ROWS.len())].clone();
        let at = at.index(raw.len());
        raw[at] = byte;
        let _ = decode::object(&raw, message);
    }
}

#[test]
fn a_row_that_is_cut_off_anywhere_is_read_or_refused() {
    for (message, raw) in &*SMALL_ROWS {
        for end in 0..raw.len() {
            let _ = decode::object(&raw[..end], message);
        }
    }
}

#[test]
fn a_body_of_the_largest_size_takes_no_longer_than_it_is_long() {
    let pod = schema::of_kind("v1", "Pod").expect("a kind");
    let job = schema::of_kind("batch/v1", "Job").expect("a kind");
    let started = Instant::now();
    // The same label again and again; the metadata again and again; many empty groups; an
    // unknown field again and again; one list of numbers.
    for field in [&b"\x0a\x06\x5a\x04\x0a\x00\x12\x00"[..], b"\x0a\0", b"\x7b\x7c", b"\xf8\x07\x01"]
    {
        let body = field.repeat(BODY_BYTES / field.len());
        let _ = decode::object(&body, pod);
    }
    // Item after item in the list of exit codes of one rule.
    let mut body = b"\x20\x01".repeat(BODY_BYTES / 2 - 32);
    for number in [2_u8, 1, 11, 2] {
        let mut wrapped = vec![number << 3 | 2];
        let mut length = body.len();
        while length > 0x7f {
            wrapped.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
            length >>= 7;
        }
        wrapped.push(u8::try_from(length).expect("seven bits"));
        wrapped.extend(body);
        body = wrapped;
    }
    let _ = decode::object(&body, job);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn many_empty_messages_are_refused_before_they_are_large() {
    let pod = schema::of_kind("v1", "Pod").expect("a kind");
    // A spec with empty containers.
    let containers = b"\x12\0".repeat(1 << 19);
    let body = [&b"\x12\x80\x80\x40"[..], &containers].concat();
    let refused = decode::object(&body, pod).expect_err("refused");
    assert_eq!(refused.to_string(), "proto: there are more than 100000 messages");
    let spec = decode::object(&[&b"\x12\x80\x80\x08"[..], &containers[..1 << 17]].concat(), pod);
    let spec = spec.expect("it is read");
    assert_eq!(spec["spec"]["containers"].as_array().map(Vec::len), Some(1 << 16));
}

/// What is small enough to be read once for each of its bytes.
static SMALL_ROWS: LazyLock<Vec<(schema::Message, Vec<u8>)>> = LazyLock::new(|| {
    let raw = |row: &rows::Row| envelope::open(&row.body()).expect("an envelope").raw.to_vec();
    let rows = rows::read();
    let rows = rows.iter().map(|row| (row.message(), raw(row)));
    rows.filter(|(_, raw)| (1..4000).contains(&raw.len())).collect()
});
