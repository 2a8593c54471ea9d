//! JSON as RFC 8259 has it, against serde_json as a second opinion.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn whole(text: &str) -> Span {
    Span { start: 0, end: text.len() }
}

/// All documents of a text, up to one that is broken.
fn read_all(text: &str) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    let mut within = whole(text);
    while let Some(document) = read(text, within, documents.is_empty()) {
        within.start = document.span.end;
        let is_broken = document.root.is_none();
        documents.push(document);
        if is_broken {
            break;
        }
    }
    documents
}

/// The one document, if there is nothing wrong with it.
fn value(text: &str) -> Option<Value> {
    let documents = read_all(text);
    match &documents[..] {
        [document] if document.problems.is_empty() => Some(document.root.as_ref()?.to_json()),
        _ => None,
    }
}

/// The first problem: the text it points to, its message and its help.
fn problem(text: &str) -> String {
    let documents = read_all(text);
    let mut problems = documents.iter().flat_map(|document| &document.problems);
    let problem = problems.next().expect(text);
    let shown = &text[problem.span.start..problem.span.end];
    let help = problem.help.as_deref().unwrap_or("-");
    format!("<{shown}> {} ({help})", problem.message)
}

#[test]
fn a_mistake_is_named_with_what_to_do() {
    let rows = [
        (r#"{"a": 1,}"#, "<,> a comma must not come before the closing bracket (remove the comma)"),
        (r#"[1,]"#, "<,> a comma must not come before the closing bracket (remove the comma)"),
        (r#"{"a": 1 "b": 2}"#, "<\"> expected `,` or `}` here (-)"),
        (r#"[1 2]"#, "<2> expected `,` or `]` here (-)"),
        (r#"[1}"#, "<}> expected `,` or `]` here (-)"),
        (r#"{"a" 1}"#, "<1> expected `:` after the key (-)"),
        (
            r#"{a: 1}"#,
            "<a> expected a key in double quotes (keys of JSON objects are in double quotes)",
        ),
        (r#"{'a': 1}"#, "<'> JSON strings need double quotes (replace ' by \")"),
        (r#"{"a": 'x'}"#, "<'> JSON strings need double quotes (replace ' by \")"),
        (r#"{"a": }"#, "<}> a value is missing here (-)"),
        (r#"{,}"#, "<,> a key is missing here (-)"),
        (
            "{\"a\": 1, // x\n\"b\": 2}",
            "</> JSON has no comments (remove the comment, or write YAML)",
        ),
        ("{# x\n}", "<#> JSON has no comments (remove the comment, or write YAML)"),
        (
            r#"{"a": True}"#,
            "<True> this is not a JSON value (JSON knows true, false and null; anything else needs double quotes)",
        ),
        (
            r#"{"a": 01}"#,
            "<01> this is not a JSON number (JSON numbers have no leading zeros and digits on both sides of the dot)",
        ),
        (
            r#"{"a": 1.}"#,
            "<1.> this is not a JSON number (JSON numbers have no leading zeros and digits on both sides of the dot)",
        ),
        (
            r#"{"a": -}"#,
            "<-> this is not a JSON number (JSON numbers have no leading zeros and digits on both sides of the dot)",
        ),
        (r#"{"a": 1e999999999}"#, "<1e999999999> the number is too large for a 64-bit float (-)"),
        (r#"{"a": "\q"}"#, r"<\q> this escape is unknown in JSON (write a backslash as \\)"),
        (r#"{"a": "\u12"}"#, r"<\u> \u needs four hexadecimal digits (-)"),
        (r#"{"a": "\ud800"}"#, r"<\ud800> this escape is one half of a surrogate pair (-)"),
        (
            r#"{"a": "\ud800\u0041"}"#,
            r"<\ud800\u0041> this escape is one half of a surrogate pair (-)",
        ),
        (r#"{"a": "\udc00"}"#, r"<\udc00> this escape is one half of a surrogate pair (-)"),
        (
            "{\"a\": \"x\u{1}\"}",
            "<\u{1}> a string must not hold the control character U+0001 (write it as \\u0001)",
        ),
        (
            "{\"a\": \"x\ny\"}",
            "<\"> the string is not closed on its line (write a line break in a string as \\n)",
        ),
        (r#"{"a": "x"#, "<\"> the string that starts here is never closed (-)"),
        (r#"{"a": "x\"#, "<\\> the text ends inside the JSON document (-)"),
        (r#"{"a": [1, "#, "<,> the text ends inside the JSON document (-)"),
        (
            r#"{"a": 1} x"#,
            "<x> there is text after the JSON document (put a line `---` before the next document)",
        ),
        (
            r#"{"a": 1, "b": 2, "a": 3}"#,
            "<\"a\"> the key \"a\" is given twice (remove one of the two, or rename it)",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(problem(text), expected, "{text}");
    }
}

#[test]
fn documents_follow_one_another_as_in_a_stream() {
    let text = "{\"a\": 1}{\"b\": 2}\n\n {\"c\": 3} ";
    let documents = read_all(text);
    let texts: Vec<&str> =
        documents.iter().map(|document| &text[document.span.start..document.span.end]).collect();
    assert_eq!(texts, ["{\"a\": 1}", "{\"b\": 2}", "{\"c\": 3}"]);
}

#[test]
fn a_number_stays_as_it_is_written() {
    let text = r#"{"a": [1.0, 1e3, -0, 18446744073709551616, 5]}"#;
    let documents = read_all(text);
    let root = documents[0].root.as_ref().expect("JSON");
    let NodeValue::List(items) = &root.get("a").expect("a").value.value else {
        panic!("a is a list");
    };
    let numbers: Vec<String> = items
        .iter()
        .map(|item| match &item.value {
            NodeValue::Number(number) => number.to_string(),
            other => panic!("{other:?} is a number"),
        })
        .collect();
    assert_eq!(numbers, ["1.0", "1e3", "-0", "18446744073709551616", "5"]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Texts that are JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"\\x\"",
        "1",
        "-",
        "0",
        "1.5",
        "1e5",
        "1E+",
        "-0.0",
        "00",
        ".5",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\t",
        "\u{b}",
        "é",
        "/",
        "'",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(value_in in any_json()) {
        for text in [
            serde_json::to_string(&value_in).expect("a value is JSON"),
            serde_json::to_string_pretty(&value_in).expect("a value is JSON"),
        ] {
            prop_assert_eq!(value(&text), Some(value_in.clone()), "{}", text);
        }
    }

    #[test]
    fn a_text_is_json_if_serde_json_says_so(text in nearly_json()) {
        let theirs: Option<Value> = serde_json::from_str(&text).ok();
        prop_assert_eq!(value(&text), theirs, "{}", text);
    }
}
