//! Bytes and the values that they are, by hand; whole objects are rows in `tests/protobuf`.

use super::*;
use crate::schema::{ListType, MapType};
use serde_json::json;

const fn field(number: u32, name: &'static str, holds: Holds) -> Field {
    Field { number, name, holds, is_always: false }
}

const INNER: Message =
    &[field(1, "a", Holds::Nonzero(Type::Text)), field(2, "b", Holds::One(Type::Int32))];

const OUTER: Message = &[
    field(1, "inner", Holds::One(Type::Object(INNER))),
    field(2, "shown", Holds::One(Type::Bool)),
    field(3, "hidden", Holds::Nonzero(Type::Int64)),
    field(4, "numbers", Holds::List(Type::Int32, ListType::Atomic)),
    field(5, "", Holds::Inline(INNER)),
    field(6, "sizes", Holds::Map(Type::Quantity, MapType::Granular)),
    field(7, "time", Holds::One(Type::Time)),
    field(8, "micro", Holds::One(Type::MicroTime)),
    field(9, "either", Holds::One(Type::IntOrString)),
    field(10, "raw", Holds::One(Type::RawJson)),
    field(11, "items", Holds::List(Type::Object(INNER), ListType::Atomic)),
];

#[track_caller]
fn check(bytes: &[u8], expected: Value) {
    assert_eq!(object(bytes, OUTER).expect("it is read"), expected);
}

#[track_caller]
fn refuse(bytes: &[u8], expected: &str) {
    assert_eq!(object(bytes, OUTER).expect_err("refused").to_string(), expected);
}

#[test]
fn zero_is_shown_unless_go_would_leave_it_out() {
    check(b"", json!({}));
    check(b"\x10\0\x18\0\x0a\x04\x0a\0\x10\0", json!({"shown": false, "inner": {"b": 0}}));
    check(b"\x10\x01\x18\x07", json!({"shown": true, "hidden": 7}));
}

#[test]
fn the_last_one_wins_and_messages_are_merged() {
    check(b"\x18\x01\x18\x02", json!({"hidden": 2}));
    check(b"\x18\x01\x18\0", json!({}));
    check(b"\x0a\x03\x0a\x01x\x0a\x02\x10\x05", json!({"inner": {"a": "x", "b": 5}}));
    check(b"\x0a\x03\x0a\x01x\x0a\x02\x0a\0", json!({"inner": {}}));
    check(b"\x2a\x03\x0a\x01x\x2a\x02\x10\x05", json!({"a": "x", "b": 5}));
    check(b"\x5a\0\x5a\x03\x0a\x01x", json!({"items": [{}, {"a": "x"}]}));
    let twice = b"\x32\x08\x0a\x01k\x12\x03\x0a\x011\x32\x08\x0a\x01k\x12\x03\x0a\x012";
    check(twice, json!({"sizes": {"k": "2"}}));
    check(b"\x32\0", json!({"sizes": {"": "0"}}));
}

#[test]
fn numbers_are_packed_or_not_and_negative_ones_have_ten_bytes() {
    check(b"\x20\x01\x22\x02\x02\x03\x20\x04", json!({"numbers": [1, 2, 3, 4]}));
    let minus_one = b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    check(minus_one, json!({"numbers": [-1]}));
    // The lower half is the number, as it is to Go.
    check(b"\x20\xff\xff\xff\xff\x0f", json!({"numbers": [-1]}));
    refuse(b"\x22\x01\xff", "proto: unexpected EOF for field numbers");
}

#[test]
fn unknown_fields_are_passed_over() {
    check(b"\xa2\x06\x01x\x10\x01\xa8\x06\x01", json!({"shown": true}));
    check(b"\x0a\x05\xa2\x06\x02xx", json!({"inner": {}}));
}

#[test]
fn times_are_cut_to_what_json_shows() {
    check(b"\x3a\x04\x08\x01\x10\x05", json!({"time": "1970-01-01T00:00:01Z"}));
    let micro = b"\x42\x06\x08\x01\x10\xe7\xe7\x03";
    check(micro, json!({"micro": "1970-01-01T00:00:01.000062Z"}));
    check(b"\x42\x02\x08\x01", json!({"micro": "1970-01-01T00:00:01.000000Z"}));
    // Go sends nothing for a time that is not set, or its year 1.
    check(b"\x3a\0\x42\0", json!({}));
    let year_one = b"\x3a\x0b\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01";
    check(year_one, json!({}));
    let never = b"\x3a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    refuse(never, "proto: the time of field time is out of range");
    let year_zero = b"\x3a\x0b\x08\x80\x88\xae\xb4\x98\xfe\xff\xff\xff\x01";
    check(year_zero, json!({"time": "0000-01-01T00:00:00Z"}));
    let before = b"\x3a\x0b\x08\xff\x87\xae\xb4\x98\xfe\xff\xff\xff\x01";
    refuse(before, "proto: the time of field time is out of range");
}

#[test]
fn a_number_or_a_text() {
    check(b"\x4a\x06\x08\0\x10\x50\x1a\0", json!({"either": 80}));
    check(b"\x4a\x07\x08\x01\x10\0\x1a\x01x", json!({"either": "x"}));
    check(b"\x4a\0", json!({"either": 0}));
    refuse(b"\x4a\x02\x08\x02", "proto: impossible IntOrString.Type 2 in field either");
}

#[test]
fn raw_json_is_json() {
    check(b"\x52\x09\x0a\x07{\"a\":1}", json!({"raw": {"a": 1}}));
    check(b"\x52\0", json!({}));
    let cut = object(b"\x52\x08\x0a\x06{\"a\":1", OUTER).expect_err("refused").to_string();
    assert!(cut.starts_with("proto: field raw is no JSON: EOF"), "{cut}");
    let deep = [&b"\x52\xcb\x01\x0a\xc8\x01"[..], &[b'['; 200]].concat();
    let deep = object(&deep, OUTER).expect_err("refused").to_string();
    assert!(deep.contains("recursion limit exceeded"), "{deep}");
}

#[test]
fn what_is_not_as_the_schema_says_is_refused() {
    refuse(b"\x08\x01", "proto: wrong wireType = 0 for field inner");
    refuse(b"\x12\x01x", "proto: wrong wireType = 2 for field shown");
    refuse(b"\x0a\x03\x0a\x01\xff", "proto: field a contains invalid UTF-8");
    refuse(b"\x0a\x05\x0a", "proto: unexpected EOF for field inner");
    refuse(b"\xff", "proto: unexpected EOF for field unknown");
}
