//! What means harm: it is refused, or done in little time. Everything here has as many of something
//! as a body can hold. Nothing is timed: what compares each with each takes minutes, which is seen.

use serde_json::{Value, json};
use stint_apiserver::fields::apply::conflict_message;
use stint_apiserver::fields::check;
use stint_apiserver::fields::compare::Changes;
use stint_apiserver::fields::managed::Managed;
use stint_apiserver::fields::set::{MAX_LEVELS, read_text};
use stint_apiserver::fields::tree::Tree;

use crate::table::{Owned, author, message};

/// As many keys or items as a body can hold, if each has a name of some fifty letters.
const MANY: usize = 60_000;

/// The largest body of a request.
const BODY_BYTES: usize = 3 << 20;

/// A name that is not short.
fn name(prefix: &str, n: usize) -> String {
    format!("{prefix}{n:050}")
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[test]
fn many_keys_are_applied_replaced_and_taken_away() {
    let data = |prefix: &str| -> Value {
        let keys = (0..MANY).map(|n| (name(prefix, n), json!("1")));
        Value::Object(keys.collect())
    };
    let (a, b) = (config_map(data("a")), config_map(data("b")));
    assert!(a.to_string().len() > BODY_BYTES);
    let first = Owned::none("ConfigMap").apply(&a, "x", false).expect("new");
    let second = first.apply(&b, "y", false).expect("other keys");
    assert_eq!(second.object["data"].as_object().expect("a map").len(), 2 * MANY);
    let one = json!({name("a", 1): "2"});
    let conflicts = second.apply(&config_map(one), "z", false).expect_err("x's");
    assert_eq!(conflicts.len(), 1);
    let third = second.apply(&config_map(json!({})), "x", false).expect("x's own");
    assert_eq!(third.object["data"].as_object().expect("a map").len(), MANY);
}

#[test]
fn many_items_are_merged_in_whatever_order() {
    let pod = |names: &mut dyn Iterator<Item = usize>| {
        let finalizers: Vec<String> = names.map(|n| name("x.io/", n)).collect();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": finalizers}})
    };
    let few = pod(&mut (0..MANY));
    assert!(few.to_string().len() > BODY_BYTES);
    let first = Owned::none("Pod").apply(&few, "x", false).expect("new");
    let second =
        first.apply(&pod(&mut (0..2 * MANY).rev()), "y", false).expect("the same, and more");
    let items = |pod: &Owned| pod.object["metadata"]["finalizers"].as_array().map(Vec::len);
    assert_eq!(items(&second), Some(2 * MANY));
    let third = second.apply(&pod(&mut (0..0)), "y", false).expect("y's own");
    assert_eq!(items(&third), Some(MANY));
}

#[test]
fn many_managers_are_read_and_told_apart() {
    let entry = |n: usize, operation: &str| {
        json!({"manager": format!("m{n}"), "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {format!("f:k{n}"): {}}}})
    };
    let keys = (0..MANY).map(|n| (format!("k{n}"), json!("1")));
    let object = config_map(Value::Object(keys.collect()));
    for operation in ["Apply", "Update"] {
        let entries: Vec<Value> = (0..MANY).map(|n| entry(n, operation)).collect();
        let managed = Value::from(entries).to_string();
        assert!(managed.len() > BODY_BYTES);
        let all = Owned { object: object.clone(), managed: Some(managed) };
        let changed: Vec<(String, Value)> =
            (0..MANY).map(|n| (format!("k{n}"), json!("2"))).collect();
        let changed = config_map(Value::Object(changed.into_iter().collect()));
        let conflicts = all.apply(&changed, "x", false).expect_err("everybody's");
        assert_eq!(conflicts.len(), MANY);
        let said = conflict_message(&conflicts);
        assert!(said.ends_with("and 59000 more"), "{}", &said[said.len() - 100..]);
        let forced = all.apply(&changed, "x", true).expect("by force");
        assert_eq!(forced.managed.expect("x's").matches("\"manager\"").count(), 1);
    }
}

#[test]
fn many_updaters_become_one() {
    let entry = |n: usize| {
        json!({"manager": format!("m{n}"), "operation": "Update", "apiVersion": "v1",
            "time": "2026-05-01T12:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {format!("f:k{n}"): {}}}})
    };
    let text = Value::from((0..MANY).map(entry).collect::<Vec<_>>()).to_string();
    let (old, new) = (config_map(json!({})).to_string(), config_map(json!({"a": "1"})).to_string());
    let (tree, old, new) = (Tree::of(&text), Tree::of(&old), Tree::of(&new));
    let mut managed = Managed::read(tree.root()).expect("entries");
    let changes = Changes::between(Some(old.root()), new.root(), message("ConfigMap"));
    managed.update(changes, author("x"), &mut |_| None);
    let names: Vec<&str> = managed.managers().iter().map(|manager| &*manager.name).collect();
    assert_eq!((names.len(), names.contains(&"ancient-changes")), (10, true), "{names:?}");
    let ancient = managed.managers().iter().find(|manager| manager.name == "ancient-changes");
    assert_eq!(ancient.expect("it was just seen").fields.paths().len(), MANY + 1 - 9);
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
fn of_what_is_wrong_not_all_is_told() {
    let long = "x".repeat(1 << 20);
    let pod = |containers: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}});
    for (object, told) in [
        (pod(json!(long)), "expected list, got &{xxx"),
        (pod(json!([{"name": "c", "image": [long]}])), "expected string, got &value."),
        (pod(json!(vec![json!({"name": long}); 200])), "duplicate entries for key [name=\"xxx"),
        (pod(json!([{"name": long, "image": 1}])), ".spec.containers[name=\"xxx"),
        (pod(json!([{"name": "c", "tty": {long.clone(): 1}}])), "expected boolean, got &{map[xxx"),
    ] {
        let why = check::problems(&object, message("Pod")).expect("a problem");
        assert!(why.contains(told) && why.contains("..."), "{}", &why[..100]);
        assert!(why.len() < 250_000, "{told}: {}", why.len());
    }
}

#[test]
fn a_number_is_the_same_however_it_is_written() {
    let pod = |port: Value, grace: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "c", "ports": [{"containerPort": port}],
                "securityContext": {"runAsUser": grace}}],
            "securityContext": {"supplementalGroups": [1, grace]}}})
    };
    let first = Owned::none("Pod").apply(&pod(json!(80), json!(2)), "x", false).expect("new");
    let same = first.apply(&pod(json!(80.0), json!(2.0)), "y", false).expect("the same");
    let other = first.apply(&pod(json!(80), json!(2.5)), "y", false).expect_err("another");
    assert_eq!(other.len(), 3, "{other:?}");
    assert_eq!(same.managed.expect("both").matches("\"manager\"").count(), 2);
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
    let of_levels = |levels: usize| {
        let around = levels - 1;
        format!("{}{{}}{}", "{\"f:a\":".repeat(around), "}".repeat(around))
    };
    assert!(read_text(&of_levels(MAX_LEVELS)).is_ok());
    assert!(read_text(&of_levels(MAX_LEVELS + 1)).is_err());
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
