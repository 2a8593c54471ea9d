//! Whole files: documents, anchors, duplicates, places, and what is refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn values(text: &str) -> Vec<Value> {
    let read = read_str(text);
    let value = |document: &Document| {
        assert_eq!(document.problems, [], "{text}");
        document.root.as_ref().expect("there is a tree").to_json()
    };
    read.iter().map(value).collect()
}

/// All problems, one a line: path, the text they point to, message.
fn problems(text: &str) -> Vec<String> {
    let read = read_str(text);
    let all = read.iter().flat_map(|document| &document.problems);
    all.map(|problem| {
        let shown = &text[problem.span.start..problem.span.end];
        format!("{} <{shown}> {}", problem.path, problem.message)
    })
    .collect()
}

#[test]
fn each_document_of_a_file_is_read() {
    let text = "# first\na: 1\n---\n# nothing\n---\nb: 2 # two\n--- {c: 3}\n...\n---\n{\"d\": 4}\n";
    let expected = [json!({"a": 1}), json!({"b": 2}), json!({"c": 3}), json!({"d": 4})];
    assert_eq!(values(text), expected);
}

#[test]
fn a_broken_document_does_not_take_the_others_with_it() {
    let text = "a: 1\n---\nb: [1, 2\n---\nc: 'x\n---\nd: 4\n";
    let read = read_str(text);
    let roots: Vec<bool> = read.iter().map(|document| document.root.is_some()).collect();
    assert_eq!(roots, [true, false, false, true]);
    assert_eq!(
        problems(text),
        [" <[> the bracket [ is never closed", " <'> the quote that starts here is never closed",]
    );
}

#[test]
fn the_place_of_every_value_is_known() {
    let text = "é: [a, {b: 'c'}]\nf:\n  g: |\n    text\n    more\n\n  h:\n";
    let root = read_str(text).remove(0).root.expect("YAML");
    let shown = |span: Span| &text[span.start..span.end];
    let list = root.get("é").expect("é");
    assert_eq!(shown(list.key_span), "é");
    assert_eq!(shown(list.value.span), "[a, {b: 'c'}]");
    let NodeValue::List(items) = &list.value.value else {
        panic!("é is a list");
    };
    assert_eq!(shown(items[0].span), "a");
    assert_eq!(shown(items[1].span), "{b: 'c'}");
    assert_eq!(shown(items[1].get("b").expect("b").value.span), "'c'");
    let block = root.get("f").expect("f");
    assert_eq!(shown(block.value.span), "g: |\n    text\n    more\n\n  h");
    let text_block = block.value.get("g").expect("g");
    assert_eq!(shown(text_block.value.span), "text\n    more");
    let nothing = block.value.get("h").expect("h");
    let key_end = nothing.key_span.end;
    assert_eq!((nothing.value.span.start, nothing.value.span.end), (key_end, key_end));
}

#[test]
fn a_key_given_twice_is_reported_with_the_first() {
    let text = "metadata:\n  name: a\n  labels: {x.y/z: 1, b: 2, 'x.y/z': 3}\n  name: b\n";
    assert_eq!(
        problems(text),
        [
            "metadata.labels[x.y/z] <'x.y/z'> the key \"x.y/z\" is given twice",
            "metadata.name <name> the key \"name\" is given twice",
        ]
    );
    let read = read_str(text);
    let related = read[0].problems[1].related.as_ref().expect("the first");
    assert_eq!(related.span, Span { start: 12, end: 16 });
    let root = read[0].root.as_ref().expect("the tree is there");
    assert_eq!(root.to_json()["metadata"]["name"], "a");
}

#[test]
fn keys_that_differ_only_in_type_are_the_same_key() {
    assert_eq!(
        problems("true: 1\n\"true\": 2\n1: a\n'1': b\n"),
        ["true <\"true\"> the key \"true\" is given twice", "1 <'1'> the key \"1\" is given twice",]
    );
}

#[test]
fn aliases_stand_for_their_anchors() {
    let text = "a: &x {k: [1, &y two]}\nb: *x\nc: *y\n&z d: *z\n? *y\n: e\n";
    let inner = json!({"k": [1, "two"]});
    let expected = json!({"a": inner, "b": inner, "c": "two", "d": "d", "two": "e"});
    assert_eq!(values(text), [expected]);
    let root = read_str(text).remove(0).root.expect("YAML");
    let alias = &root.get("b").expect("b").value;
    assert_eq!(&text[alias.span.start..alias.span.end], "*x");
    let inside = &alias.get("k").expect("k").value;
    assert_eq!(&text[inside.span.start..inside.span.end], "[1, &y two]");
}

#[test]
fn aliases_that_lead_nowhere_or_into_themselves_are_refused() {
    assert_eq!(
        problems("a: *b\nc: *d\n*e : f\n"),
        [
            "a <*b> the alias *b stands for nothing",
            "c <*d> the alias *d stands for nothing",
            " <*e> the alias *e stands for nothing",
        ]
    );
    assert_eq!(problems("a: &a [*a]\n"), [" <*a> the alias *a is inside the value it stands for"]);
    let across = "a: &a 1\n---\nb: *a\n";
    assert_eq!(problems(across), ["b <*a> the alias *a stands for nothing"]);
}

#[test]
fn merge_keys_bring_in_what_is_not_given() {
    let text = "\
x: &x {a: 1, b: 1}
y: &y {b: 2, c: 2}
one: {<<: *x, b: 3}
before: {b: 3, <<: *x}
both: {<<: [*x, *y], d: 4}
inline: {<<: {e: 5}}
quoted: {'<<': 6}
";
    let read = values(text).remove(0);
    assert_eq!(read["one"], json!({"a": 1, "b": 3}));
    assert_eq!(read["before"], json!({"a": 1, "b": 3}));
    assert_eq!(read["both"], json!({"a": 1, "b": 1, "c": 2, "d": 4}));
    assert_eq!(read["inline"], json!({"e": 5}));
    assert_eq!(read["quoted"], json!({"<<": 6}));
    let wrong = "`<<` takes a mapping or a list of mappings";
    for value in ["5", "[1]", "[{a: 1}, x]", "null"] {
        let text = format!("a: {{<<: {value}}}");
        assert_eq!(problems(&text), [format!("a <<<> {wrong}")]);
    }
    assert_eq!(
        problems("x: &x {a: 1}\nz: {<<: *x, <<: *x}\n"),
        ["z <<<> the merge key `<<` is given twice"]
    );
}

#[test]
fn keys_that_are_no_names_are_refused() {
    let rows = [
        ("? [a]\n: b\n", " <[a]> a key must be a plain value, not a list, a mapping or null"),
        ("a: {{ .x }}\n", "a <{ .x }> a key must be a plain value, not a list, a mapping or null"),
        ("x: &x [1]\n*x : y\n", " <*x> a key must be a plain value, not a list, a mapping or null"),
        ("null: 1\n", " <null> a key must not be null"),
        ("{a\n b: 1}\n", " <a\n b> a key must stand on one line"),
    ];
    for (text, expected) in rows {
        assert_eq!(problems(text), [expected], "{text}");
    }
}

#[test]
fn yaml_mistakes_are_named_where_they_are() {
    let rows = [
        ("a:\n\tb: 1\n", "\t", "a tab is not allowed here"),
        ("a:\n \tb: 1\n", "\t", "a tab is not allowed here"),
        ("\ta: 1\n", "\t", "a tab is not allowed here"),
        ("a:\n  b: 1\n\tc: 2\n", "\t", "a tab is not allowed here"),
        ("-\ta\n", "\t", "a tab is not allowed here"),
        ("a: \"x\\qy\"\n", "\\", "this escape is unknown in a double-quoted string"),
        ("a: x: y\n", ":", "`key: value` is not allowed here"),
        ("a:\n  b: 1\n c: 2\n", "c", "the indentation does not fit what is above"),
        ("a: 'it's'\n", "s", "there is text after the closing quote"),
        ("a: @x\n", "@", "a value cannot start with the character '@'"),
        ("a: [1, 2}\n", "[", "the bracket [ is closed by }"),
        ("a: b]\nc: ]\n", "]", "this bracket closes nothing"),
        ("a: !<\n", "!", "this is not a tag"),
        ("a: [a,,b]\n", ",", "this is out of place"),
        ("a: \"\\ud800\"\n", "\"", "this escape is one half of a surrogate pair"),
        ("a: b\u{1}\n", "\u{1}", "the text holds the control character U+0001"),
        ("a: \"\0\"\n", "\0", "the text holds a NUL byte (U+0000)"),
        ("%FOO BAR", "%", "did not matter"),
    ];
    for (text, shown, message) in rows {
        let expected = format!(" <{shown}> {message}");
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text:?} {found:?}");
        if message != "did not matter" {
            assert_eq!(found, [expected], "{text:?}");
        }
    }
}

#[test]
fn what_starts_with_a_brace_is_json_or_else_yaml() {
    assert_eq!(values("{\"a\": 1.0}{\"b\": 2}"), [json!({"a": 1.0}), json!({"b": 2})]);
    assert_eq!(values("{a: 1.0}"), [json!({"a": 1})]);
    assert_eq!(values("{\"a\": 1,} # both"), [json!({"a": 1})]);
    assert_eq!(
        problems("{\"a\": 1 \"b\": 2}"),
        [" <\"> expected `,` or `}` here"],
        "JSON was meant"
    );
    assert_eq!(problems("{a: 1 \"b\"]"), [" <{> the bracket { is closed by ]"], "YAML was meant");
    assert_eq!(
        problems("{\"a\": 1e999}"),
        [" <1e999> the number is too large for a 64-bit float"],
        "JSON with a wrong number is still JSON"
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let text = "\u{feff}a: 1";
    assert_eq!(values(text), [json!({"a": 1})]);
    let read = read_str(text);
    assert_eq!(read[0].root.as_ref().expect("YAML").span.start, 3);
    assert_eq!(values("\u{feff}{\"a\": 1}"), [json!({"a": 1})]);
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_offset() {
    let rows: [(&[u8], usize, &str); 3] = [
        (b"a: \xff\n", 3, "the text is not UTF-8: wrong byte 0xff at offset 3"),
        (b"a: b\xc3", 4, "the text is not UTF-8: wrong byte 0xc3 at offset 4"),
        (b"\xff\xfea\0", 0, "the text is UTF-16, not UTF-8"),
    ];
    for (text, offset, message) in rows {
        let read = read(text);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].root, None);
        assert_eq!(read[0].problems[0].message, message);
        let span = read[0].problems[0].span;
        assert_eq!((span.start, span.end), (offset, offset));
        assert!(std::str::from_utf8(&text[..offset]).is_ok());
    }
}

/// Values as manifests have them: no floats, which YAML writers and readers
/// spell in too many ways, and no control characters beyond tab and line feed.
fn manifest_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~\t\n]{0,12}",
        "\\PC{0,8}",
        prop::sample::select(vec![
            "yes", "null", "~", "010", "1e3", ".inf", "<<", "- a", "a: b", "#", "*a", "&a", "!a",
            "---", "...", "{", "[", "'", "\"", "%", "@", "`", "0x1F", "1_0", "|", ">", "? a", "=",
        ])
        .prop_map(str::to_owned),
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,8}", value, 1..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn what_a_yaml_writer_writes_is_read_again(value in manifest_value()) {
        let text = serde_saphyr::to_string(&value).expect("a value is YAML");
        let read = read_str(&text);
        prop_assert_eq!(read.len(), 1, "{}", text);
        prop_assert_eq!(&read[0].problems, &[], "{}", text);
        let root = read[0].root.as_ref().expect("there is a tree");
        prop_assert_eq!(root.to_json(), value, "{}", text);
    }

    #[test]
    fn json_is_read_the_same_as_a_file(value in manifest_value()) {
        let text = serde_json::to_string(&value).expect("a value is JSON");
        prop_assert_eq!(values(&text), [value]);
    }
}

#[test]
fn only_yaml_1_1_is_what_kubernetes_reads() {
    let problems = |text: &str| {
        let read = read_str(text);
        let problems = read.iter().flat_map(|document| &document.problems);
        problems
            .map(|problem| {
                let shown = &text[problem.span.start..problem.span.end];
                format!("<{shown}> {}", problem.message)
            })
            .collect::<Vec<_>>()
    };
    assert!(problems("%YAML 1.1\n---\na: 1\n").is_empty());
    assert_eq!(
        problems("# c\n%YAML 1.2\n---\na: 1\n"),
        ["<%YAML 1.2> Kubernetes reads YAML 1.1 only"]
    );
}
