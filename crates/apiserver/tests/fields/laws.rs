//! Laws that hold for any object that is applied.

use proptest::prelude::*;
use serde_json::{Value, json};
use stint_apiserver::fields::check;
use stint_apiserver::fields::compare::Changes;
use stint_apiserver::fields::tree::Tree;

use crate::table::{Owned, message, without_nulls};

proptest! {
    #[test]
    fn what_is_applied_twice_is_applied_once(a in pod(), b in pod()) {
        let start = Owned::none("Pod").apply(&a, "x", false).expect("nobody owns anything");
        let once = start.apply(&b, "y", true).expect("by force");
        prop_assert_eq!(once.apply(&b, "y", true).expect("by force"), once.clone());
        prop_assert_eq!(once.apply(&b, "y", false).expect("all of it is y's"), once);
    }

    /// Beside what was there before, which an apply cannot take away.
    #[test]
    fn what_one_manager_applies_and_then_does_not_is_gone(a in pod(), b in pod()) {
        let before = Owned::none("Pod").apply(&a, "x", false).expect("nobody owns anything");
        let nothing = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        if let Ok(both) = before.apply(&b, "y", false) {
            let after = both.apply(&nothing, "y", false).expect("nothing is nobody's");
            let (after, before) = (without_nulls(&after.object), without_nulls(&before.object));
            prop_assert_eq!(sorted(after), sorted(before));
        }
        let alone = Owned::none("Pod").apply(&b, "y", false).expect("nobody owns anything");
        let gone = alone.apply(&nothing, "y", false).expect("nothing is nobody's");
        prop_assert_eq!(gone.managed, None);
    }

    #[test]
    fn what_is_applied_is_there(a in pod(), b in pod()) {
        let start = Owned::none("Pod").apply(&a, "x", false).expect("nobody owns anything");
        let applied = start.apply(&b, "y", true).expect("by force");
        let text = applied.object.to_string();
        let again = Owned { object: applied.object, managed: None };
        let same = again.apply(&b, "z", true).expect("by force").object;
        prop_assert_eq!(same.to_string(), text);
    }

    #[test]
    fn who_is_not_forced_off_keeps_what_it_owns(a in pod(), b in pod()) {
        let start = Owned::none("Pod").apply(&a, "x", false).expect("nobody owns anything");
        if let Ok(applied) = start.apply(&b, "y", false) {
            let again = applied.apply(&a, "x", false).expect("all of it is x's");
            prop_assert_eq!(sorted(again.object), sorted(applied.object));
            prop_assert_eq!(again.managed, applied.managed);
        }
    }

    #[test]
    fn nothing_has_changed_between_an_object_and_itself(a in pod(), b in pod()) {
        let (a, b) = (a.to_string(), b.to_string());
        let (one, other) = (Tree::of(&a), Tree::of(&b));
        let none = Changes::between(Some(one.root()), one.root(), message("Pod"));
        prop_assert_eq!(none, Changes::default());
        let there = Changes::between(Some(one.root()), other.root(), message("Pod"));
        let back = Changes::between(Some(other.root()), one.root(), message("Pod"));
        prop_assert_eq!((there.removed, there.added), (back.added, back.removed));
        prop_assert_eq!(there.modified, back.modified);
    }
}

/// The order of what only one of them had may have changed.
fn sorted(mut pod: Value) -> Value {
    for list in ["/metadata/finalizers", "/spec/containers", "/spec/tolerations"] {
        if let Some(Value::Array(items)) = pod.pointer_mut(list) {
            for item in items.iter_mut() {
                if let Some(Value::Array(env)) = item.get_mut("env") {
                    env.sort_by_key(Value::to_string);
                }
            }
            items.sort_by_key(Value::to_string);
        }
    }
    pod
}

/// A Pod with something of everything: maps, sets, lists with keys, and what is atomic.
fn pod() -> impl Strategy<Value = Value> {
    let names = || proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle();
    let value = || proptest::sample::select(vec!["1", "2"]);
    let map = || proptest::collection::btree_map("[ab]", value(), 1..3);
    let env = names().prop_map(|names| {
        names.iter().map(|name| json!({"name": name, "value": "1"})).collect::<Value>()
    });
    let port = (80_i64..82, proptest::option::of(proptest::sample::select(vec!["TCP", "UDP"])));
    let container = (names(), env, value(), proptest::option::of(port));
    let containers = container.prop_map(|(names, env, image, port)| {
        let container = |name: &&str| {
            let mut container = json!({"name": name, "image": image, "args": [image]});
            if env != json!([]) {
                container["env"] = env.clone();
            }
            if let Some((number, protocol)) = port {
                container["ports"] = json!([{"containerPort": number}]);
                if let Some(protocol) = protocol {
                    container["ports"][0]["protocol"] = protocol.into();
                }
            }
            container
        };
        names.iter().map(container).collect::<Value>()
    });
    let fields = (
        proptest::option::of(map()),
        proptest::option::of(names()),
        proptest::option::of(containers),
        proptest::option::of(map()),
        proptest::option::of(value()),
    );
    fields.prop_map(|(labels, finalizers, containers, selector, node)| {
        let mut pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}});
        let mut set = |path: &str, name: &str, value: Value| {
            if value != json!([]) {
                pod[path][name] = value;
            }
        };
        if let Some(labels) = labels {
            set("metadata", "labels", json!(labels));
        }
        if let Some(finalizers) = finalizers {
            set("metadata", "finalizers", json!(finalizers));
        }
        if let Some(containers) = containers {
            set("spec", "containers", containers);
        }
        if let Some(selector) = selector {
            set("spec", "nodeSelector", json!(selector));
        }
        if let Some(node) = node {
            set("spec", "nodeName", json!(node));
        }
        if pod["spec"] == json!({}) {
            pod.as_object_mut().expect("an object").remove("spec");
        }
        assert_eq!(check::problems(&pod, message("Pod")), None);
        pod
    })
}
