//! Patches that mean harm: they are refused, or done in little time and memory. Nothing is
//! timed here; what is quadratic would not end.

use serde_json::{Value, json};
use stint_apiserver::patch::limits::{MAX_DEPTH, MAX_JSON_PATCH_OPERATIONS, MAX_PATCH_BYTES};
use stint_apiserver::patch::{Patch, PatchError, PatchType, schema};

#[test]
fn a_body_beyond_the_limit_is_too_large() {
    let body = vec![b' '; MAX_PATCH_BYTES + 1];
    for patch_type in PatchType::ALL {
        assert_eq!(Patch::read(patch_type, &body).expect_err("too long").status(), 413);
    }
}

#[test]
fn a_body_that_is_too_deep_is_refused_however_it_comes() {
    let deep = 1_000_000;
    let body = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let mut value = json!({});
    for _ in 0..MAX_DEPTH {
        value = json!({ "a": value });
    }
    for patch_type in PatchType::ALL {
        let error = Patch::read(patch_type, body.as_bytes()).expect_err("too deep");
        assert_eq!(error.status(), 400);
        let error = Patch::from_value(patch_type, value.clone()).expect_err("too deep");
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn as_many_operations_as_are_allowed_are_carried_out_and_not_one_more() {
    let add = json!({"op": "add", "path": "/a/0", "value": 1});
    let most = vec![add.clone(); MAX_JSON_PATCH_OPERATIONS];
    let patched = apply(PatchType::Json, json!(most), json!({"a": []})).expect("it applies");
    assert_eq!(patched["a"].as_array().expect("a list").len(), MAX_JSON_PATCH_OPERATIONS);

    let more = vec![add; MAX_JSON_PATCH_OPERATIONS + 1];
    assert_eq!(refused(PatchType::Json, json!(more), json!({"a": []})), 413);
}

#[test]
fn copies_that_double_an_object_are_stopped() {
    let copies: Vec<Value> = (0..10_000)
        .map(|copy| json!({"op": "copy", "from": "/a", "path": format!("/a/{copy}")}))
        .collect();
    let original = json!({"a": {"text": "x".repeat(100)}});
    assert_eq!(refused(PatchType::Json, json!(copies), original), 422);
}

#[test]
fn copies_that_deepen_an_object_are_stopped() {
    let mut copies = Vec::new();
    let mut path = String::from("/a");
    for _ in 0..10 {
        copies.push(json!({"op": "copy", "from": "/a", "path": format!("{path}/a")}));
        path = format!("{path}{path}");
    }
    assert_eq!(refused(PatchType::Json, json!(copies), json!({"a": {}})), 422);
}

#[test]
fn moves_through_a_list_as_long_as_a_body_allows_are_stopped() {
    let original = json!({"a": vec![0; 1_000_000]});
    let turns = vec![json!({"op": "move", "from": "/a/0", "path": "/a/-"}); 10_000];
    assert_eq!(refused(PatchType::Json, json!(turns), original.clone()), 422);
    let turns = vec![json!({"op": "move", "from": "/a", "path": "/a"}); 10_000];
    assert_eq!(refused(PatchType::Json, json!(turns), original), 422);
}

#[test]
fn long_lists_of_objects_are_merged_and_put_in_order() {
    let count = 10_000;
    let name = |index: usize| json!({"name": format!("c{index}")});
    let list = |of: Vec<Value>| json!({"spec": {"containers": of}});
    let original = list((0..count).map(name).collect());
    let mut patch = list((0..count).rev().map(name).collect());
    patch["spec"]["$setElementOrder/containers"] = patch["spec"]["containers"].clone();
    let expected = list((0..count).rev().map(name).collect());
    assert_eq!(apply(PatchType::Strategic, patch, original.clone()).expect("merged"), expected);

    let delete = |index: usize| json!({"name": format!("c{index}"), "$patch": "delete"});
    let patch = list((0..count).map(delete).collect());
    assert_eq!(apply(PatchType::Strategic, patch, original).expect("merged"), list(Vec::new()));
}

#[test]
fn long_lists_of_scalars_are_merged_and_put_in_order() {
    let count = 100_000;
    let names = |from: usize, to: usize| -> Vec<String> {
        (from..to).map(|index| format!("example.com/{index}")).collect()
    };
    let original = json!({"metadata": {"finalizers": names(0, count)}});
    let patch = json!({"metadata": {
        "finalizers": names(count, count + count / 2),
        "$setElementOrder/finalizers": names(0, count + count / 2),
        "$deleteFromPrimitiveList/finalizers": names(0, count / 2),
    }});
    let expected = json!({"metadata": {"finalizers": names(count / 2, count + count / 2)}});
    assert_eq!(apply(PatchType::Strategic, patch, original).expect("merged"), expected);
}

fn apply(patch_type: PatchType, patch: Value, original: Value) -> Result<Value, PatchError> {
    let of = schema::of_kind("v1", "Pod").expect("a kind of the table");
    Patch::from_value(patch_type, patch)?.apply(original, of)
}

fn refused(patch_type: PatchType, patch: Value, original: Value) -> u16 {
    apply(patch_type, patch, original).expect_err("it is refused").status()
}
