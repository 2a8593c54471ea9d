//! Every row was checked against go-yaml v2 and Kubernetes' conversion to JSON.

use super::*;
use crate::decode::read_str;

/// The document as JSON, with each number as Kubernetes would print it; `None`
/// if it is refused.
fn json(text: &str) -> Option<String> {
    let document = read_str(text).into_iter().next()?;
    let root = document.root.filter(|_| document.problems.is_empty())?;
    let entry = root.get("a")?;
    Some(match &entry.value.value {
        NodeValue::Number(number) => number.to_string(),
        _ => entry.value.to_json().to_string(),
    })
}

#[test]
fn a_plain_value_is_read_as_kubernetes_reads_it() {
    let rows = [
        ("", "null"),
        ("~", "null"),
        ("null", "null"),
        ("Null", "null"),
        ("nULL", "\"nULL\""),
        ("y", "true"),
        ("Yes", "true"),
        ("yEs", "\"yEs\""),
        ("on", "true"),
        ("OFF", "false"),
        ("n", "false"),
        ("True", "true"),
        ("0", "0"),
        ("-0", "0"),
        ("+12", "12"),
        ("010", "8"),
        ("-010", "-8"),
        ("08", "8"),
        ("0o17", "15"),
        ("0O17", "15"),
        ("0x1F", "31"),
        ("0x_1F", "31"),
        ("-0x1F", "-31"),
        ("0x", "\"0x\""),
        ("0x-1", "\"0x-1\""),
        ("0b101", "5"),
        ("-0b1", "-1"),
        ("0b+1", "1"),
        ("0b2", "\"0b2\""),
        ("1_000", "1000"),
        ("1__0_", "10"),
        ("_1", "\"_1\""),
        ("9223372036854775807", "9223372036854775807"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("18446744073709551616", "18446744073709552000"),
        ("+18446744073709551615", "18446744073709552000"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1.", "1"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        (".5_0", "0.5"),
        (".5_", "\".5_\""),
        ("._5", "\"._5\""),
        (".", "\".\""),
        ("1_000.5_", "1000.5"),
        ("-0.0", "-0"),
        ("1e999", "\"1e999\""),
        ("1e-7", "1e-7"),
        ("1.2.3", "\"1.2.3\""),
        ("0x1p4", "\"0x1p4\""),
        ("1:30", "\"1:30\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("2001-01-01T00:00:00Z", "\"2001-01-01T00:00:00Z\""),
        ("<<", "\"<<\""),
        ("'5'", "\"5\""),
        ("\"yes\"", "\"yes\""),
        ("|\n  5\n", "\"5\\n\""),
        ("|+\n  5\n\n", "\"5\\n\\n\""),
        (">-\n  5\n  6\n", "\"5 6\""),
    ];
    for (text, expected) in rows {
        let found = json(&format!("a: {text}"));
        assert_eq!(found.as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn numbers_that_json_cannot_write_are_refused() {
    for text in [".inf", "-.INF", "+.Inf", ".nan"] {
        assert_eq!(json(&format!("a: {text}")), None, "{text}");
    }
}

#[test]
fn a_tag_says_what_a_value_is() {
    let rows = [
        ("!!str 5", Some("\"5\"")),
        ("!!str", Some("\"\"")),
        ("!!int \"5\"", Some("5")),
        ("!!int 5.5", None),
        ("!!int", None),
        ("!<tag:yaml.org,2002:int> \"7\"", Some("7")),
        ("!!float 5", Some("5")),
        ("!!float 0x10", Some("16")),
        ("!!float x", None),
        ("!!float 18446744073709551615", None),
        ("!!bool \"yes\"", Some("true")),
        ("!!bool 1", None),
        ("!!null", Some("null")),
        ("!!null x", None),
        ("!!binary aGVsbG8=", Some("\"hello\"")),
        ("!!binary \"aGVs bG8=\"", None),
        ("!!timestamp 2001-1-1", Some("\"2001-1-1\"")),
        ("!!timestamp x", None),
        ("!!other 5", Some("\"5\"")),
        ("!local 5", Some("\"5\"")),
        ("! 5", Some("\"5\"")),
        ("!!str [1]", Some("[1]")),
        ("!!set {x}", Some("{\"x\":null}")),
    ];
    for (text, expected) in rows {
        assert_eq!(json(&format!("a: {text}")).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_key_that_is_no_string_becomes_one() {
    let rows = [
        ("yes", Some("true")),
        ("Off", Some("false")),
        ("010", Some("8")),
        ("-5", Some("-5")),
        ("1.50", Some("1.5")),
        ("1e5", Some("100000")),
        ("1e6", Some("1e+06")),
        ("0.0001", Some("0.0001")),
        ("0.00001", Some("1e-05")),
        ("3.4028235e38", Some("3.4028235e+38")),
        ("3.4028236e38", Some(".inf")),
        ("1e300", Some(".inf")),
        ("-.inf", Some("-.inf")),
        (".nan", Some(".nan")),
        ("0.1234567890123", Some("0.12345679")),
        ("\"010\"", Some("010")),
        ("!!str 010", Some("010")),
        ("2001-01-01", Some("2001-01-01")),
        ("null", None),
        ("~", None),
        ("18446744073709551615", None),
    ];
    for (text, expected) in rows {
        let document = &read_str(&format!("{text}: 1"))[0];
        assert_eq!(document.problems.is_empty(), expected.is_some(), "{text}");
        let root = document.root.as_ref().expect("a mapping");
        let NodeValue::Map(entries) = &root.value else {
            panic!("{text} is no mapping");
        };
        assert_eq!(entries.first().map(|e| e.key.as_str()), expected, "{text}");
    }
}
