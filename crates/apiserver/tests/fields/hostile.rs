//! What means harm: it is refused, or done in little time and memory. Nothing is timed here; what
//! is quadratic would not end.

use serde_json::{Value, json};
use stint_apiserver::fields::check;
use stint_apiserver::fields::managed::Managed;
use stint_apiserver::fields::set::read_text;
use stint_apiserver::fields::tree::Tree;

use crate::table::{Owned, message};

/// More than a body can hold of anything.
const MANY: usize = 60_000;

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[test]
fn many_keys_are_applied_replaced_and_taken_away() {
    let data = |prefix: &str| -> Value {
        let keys = (0..MANY).map(|n| (format!("{prefix}{n}"), json!("1")));
        Value::Object(keys.collect())
    };
    let first = Owned::none("ConfigMap").apply(&config_map(data("a")), "x", false).expect("new");
    let second = first.apply(&config_map(data("b")), "y", false).expect("other keys");
    assert_eq!(second.object["data"].as_object().expect("a map").len(), 2 * MANY);
    let conflicts = second.apply(&config_map(json!({"a1": "2"})), "z", false).expect_err("x's");
    assert_eq!(conflicts.len(), 1);
    let third = second.apply(&config_map(json!({})), "x", false).expect("x's own");
    assert_eq!(third.object["data"].as_object().expect("a map").len(), MANY);
}

#[test]
fn many_items_are_merged_in_whatever_order() {
    let pod = |names: &mut dyn Iterator<Item = usize>| {
        let finalizers: Vec<String> = names.map(|n| format!("x.io/{n}")).collect();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": finalizers}})
    };
    let first = Owned::none("Pod").apply(&pod(&mut (0..MANY)), "x", false).expect("new");
    let second =
        first.apply(&pod(&mut (0..2 * MANY).rev()), "y", false).expect("the same, and more");
    assert_eq!(second.object["metadata"]["finalizers"].as_array().expect("a list").len(), 2 * MANY);
    let third = second.apply(&pod(&mut (0..0)), "y", false).expect("y's own");
    assert_eq!(third.object["metadata"]["finalizers"].as_array().expect("a list").len(), MANY);
}

#[test]
fn items_that_nothing_tells_apart_are_refused_and_few_are_told() {
    let containers = vec![json!({"name": "c", "image": 1}); MANY];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}});
    let why = check::problems(&pod, message("Pod")).expect("a problem");
    assert!(why.contains("duplicate entries for key [name=\"c\"]"), "{}", &why[..200]);
    assert!(why.len() < 30_000, "{}", why.len());
}

#[test]
fn duplicates_that_are_stored_already_do_no_harm() {
    let live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "c", "env": [{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]},
    ]}});
    let start = Owned { object: live, managed: None };
    let applied = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
        {"name": "c", "env": [{"name": "E", "value": "3"}]},
    ]}});
    let after = start.apply(&applied, "x", true).expect("by force");
    assert_eq!(after.object["spec"]["containers"][0]["env"], json!([{"name": "E", "value": "3"}]));
}

#[test]
fn what_is_no_set_of_fields_is_refused() {
    let deep = format!("{}{}", "{\"f:a\":".repeat(100), "{}".to_owned() + &"}".repeat(100));
    assert!(read_text(&deep).is_ok());
    for text in ["[]", "5", "\"f:a\"", "{\"a\":{}}", "{\"f:a\":[]}", "{\"k:\":{}}", "{\"\":{}}"] {
        assert!(read_text(text).is_err(), "{text}");
    }
    for (text, paths) in [
        ("{}", &[][..]),
        ("null", &[]),
        (r#"{"x:later":{"f:b":{}}}"#, &[]),
        (r#"{"f:a":{"x:later":{}},".":{}}"#, &[".a"]),
        (r#"{"f:a":null,"f:a":{"f:b":{}}}"#, &[".a", ".a.b"]),
        (r#"{"k:{}":{},"f:":{},"v:[{}]":{}}"#, &[".", "[]", "[=[{}]]"]),
    ] {
        assert_eq!(read_text(text).expect("a set").paths(), paths, "{text}");
    }
}

#[test]
fn entries_that_are_none_make_all_worthless() {
    let read = |text: &str| Managed::read(Tree::of(text).root()).is_some();
    let entry = |change: &str| {
        let whole = r#"{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}"#;
        format!(
            "[{}]",
            whole.replacen(
                change.split('>').next().unwrap_or(""),
                change.split('>').nth(1).unwrap_or(""),
                1
            )
        )
    };
    assert!(read("[]"));
    assert!(read(&entry("m>m")));
    for change in ["Update>Take", "\"v1\">\"\"", "FieldsV1\">FieldsV2\"", "{}>{\"x\":{}}", "{}>7"] {
        assert!(!read(&entry(change)), "{change}: {}", entry(change));
    }
}
