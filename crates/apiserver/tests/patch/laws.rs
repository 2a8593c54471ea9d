//! Laws that hold for any object and any patch: of nothing, of doing it twice, and of the
//! three ways to say the same.

use proptest::prelude::*;
use serde_json::{Value, json};
use stint_apiserver::patch::limits::MAX_DEPTH;
use stint_apiserver::patch::{Patch, PatchError, PatchType, schema};

proptest! {
    #[test]
    fn a_patch_of_nothing_changes_nothing(original in pod()) {
        for (patch_type, nothing) in [
            (PatchType::Json, json!([])),
            (PatchType::Merge, json!({})),
            (PatchType::Strategic, json!({})),
        ] {
            let patched = apply(patch_type, &nothing, &original);
            prop_assert_eq!(patched.expect("it applies"), original.clone());
        }
    }

    #[test]
    fn an_object_merged_into_itself_is_the_same(original in pod()) {
        let patched = apply(PatchType::Merge, &original, &original);
        prop_assert_eq!(patched.expect("it applies"), original.clone());
        let patched = apply(PatchType::Strategic, &original, &original);
        prop_assert_eq!(patched.expect("it applies"), original);
    }

    #[test]
    fn a_merge_done_twice_is_a_merge_done_once(original in pod(), patch in any_patch()) {
        let once = apply(PatchType::Merge, &patch, &original).expect("it applies");
        prop_assert_eq!(apply(PatchType::Merge, &patch, &once).expect("it applies"), once);
    }

    /// A strategic merge done twice is not always a merge done once: what was new the first
    /// time is merged the second. It holds for patches without directives and nulls.
    #[test]
    fn a_strategic_merge_without_directives_done_twice_is_one_done_once(
        original in pod(),
        patch in pod(),
    ) {
        let once = apply(PatchType::Strategic, &patch, &original).expect("it applies");
        let twice = apply(PatchType::Strategic, &patch, &once).expect("it applies");
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn strategic_and_plain_merges_agree_where_there_are_no_lists_and_directives(
        original in maps(),
        patch in maps(),
    ) {
        prop_assert_eq!(
            apply(PatchType::Strategic, &patch, &original).expect("it applies"),
            apply(PatchType::Merge, &patch, &original).expect("it applies")
        );
    }

    #[test]
    fn any_patch_is_applied_or_refused_and_leaves_no_depths(
        original in pod(),
        patch in any_patch(),
        operations in operations(),
    ) {
        for (patch_type, patch) in [
            (PatchType::Strategic, patch.clone()),
            (PatchType::Merge, patch),
            (PatchType::Json, operations),
        ] {
            match apply(patch_type, &patch, &original) {
                Ok(patched) => prop_assert!(depth(&patched) <= MAX_DEPTH),
                Err(error) => prop_assert!([400, 413, 422].contains(&error.status())),
            }
        }
    }
}

fn apply(patch_type: PatchType, patch: &Value, original: &Value) -> Result<Value, PatchError> {
    let of = schema::of_kind("v1", "Pod").expect("a kind of the table");
    Patch::from_value(patch_type, patch.clone())?.apply(original.clone(), of)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A Pod with lists of each sort, whose items have their keys, each once.
fn pod() -> impl Strategy<Value = Value> {
    let container = (names(), 0u32..3).prop_map(|(env, image)| {
        let env: Vec<Value> = env.iter().map(|name| json!({"name": name})).collect();
        json!({"image": image.to_string(), "env": env, "args": ["x"]})
    });
    let containers = (names(), prop::collection::vec(container, 4)).prop_map(|(names, all)| {
        let named = names.into_iter().zip(all).map(|(name, mut container)| {
            container["name"] = json!(name);
            container
        });
        named.collect::<Vec<Value>>()
    });
    (containers, names(), maps()).prop_map(|(containers, finalizers, labels)| {
        json!({
            "metadata": {"finalizers": finalizers, "labels": labels},
            "spec": {"containers": containers, "tolerations": [{"key": "a"}]},
        })
    })
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let all: Vec<String> = ('a'..='d').map(String::from).collect();
    prop::sample::subsequence(all, 0..=4).prop_shuffle()
}

/// Objects in objects, with scalars and without nulls.
fn maps() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![any::<bool>().prop_map(|on| json!(on)), (0u32..3).prop_map(|n| json!(n))];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|fields| json!(fields))
    });
    prop::collection::btree_map("[abc]", tree, 0..3).prop_map(|fields| json!(fields))
}

/// Anything that looks like a patch: fields of Pods and directives, in and out of place.
fn any_patch() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "metadata",
        "spec",
        "finalizers",
        "labels",
        "containers",
        "env",
        "args",
        "tolerations",
        "name",
        "a",
        "$patch",
        "$retainKeys",
        "$deleteFromPrimitiveList/finalizers",
        "$deleteFromPrimitiveList/args",
        "$setElementOrder/finalizers",
        "$setElementOrder/containers",
        "$setElementOrder/env",
        "$setElementOrder",
    ]);
    let leaf = prop::sample::select(vec![
        json!(null),
        json!("a"),
        json!("b"),
        json!("delete"),
        json!("replace"),
        json!("merge"),
        json!(1),
        json!(1.5),
        json!([]),
        json!(["a", "b"]),
        json!([{"name": "a"}, {"name": "b"}]),
    ]);
    let key = key.prop_map(str::to_owned);
    let tree = leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            3 => prop::collection::btree_map(key.clone(), inner.clone(), 0..4)
                .prop_map(|fields| json!(fields)),
            1 => prop::collection::vec(inner, 0..4).prop_map(|items| json!(items)),
        ]
    });
    tree.prop_map(|tree| if tree.is_object() { tree } else { json!({"spec": tree}) })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = prop::sample::select(vec![
        "",
        "/",
        "/spec",
        "/spec/containers",
        "/spec/containers/0",
        "/spec/containers/-",
        "/spec/containers/-1",
        "/spec/containers/0/env",
        "/metadata/labels/a",
        "/x",
        "x/spec",
    ]);
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "x"]);
    let operation = (op, path.clone(), path, any::<bool>()).prop_map(|(op, path, from, valued)| {
        let mut operation = json!({"op": op, "path": path, "from": from});
        if valued {
            operation["value"] = json!({"name": "a"});
        }
        operation
    });
    prop::collection::vec(operation, 0..30).prop_map(|operations| json!(operations))
}
