//! Strategic merges of lists again, slowly and plainly: no maps, no directives but deletion,
//! and the order written down as a rule about pairs.
//!
//! It must not share code with the crate.

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};
use stint_apiserver::patch::{Patch, PatchType, schema};

/// A list item of the model: a name and a number.
type Item = (String, Option<u32>);

proptest! {
    #[test]
    fn lists_of_objects_merge_as_the_reference_says(
        original in keyed(),
        patch in keyed(),
        deleted in names(),
    ) {
        let mut sent: Vec<Value> = patch.iter().map(object).collect();
        sent.extend(deleted.iter().map(|name| json!({"name": name, "$patch": "delete"})));
        let merged = merge(
            json!({"spec": {"volumes": original.iter().map(object).collect::<Vec<_>>()}}),
            json!({"spec": {"volumes": sent}}),
        );
        let expected = merge_slowly(&original, &patch, &deleted);
        let expected: Vec<Value> = expected.iter().map(object).collect();
        prop_assert_eq!(&merged["spec"]["volumes"], &json!(expected));
    }

    #[test]
    fn lists_of_scalars_merge_as_the_reference_says(
        original in names(),
        patch in names(),
        deleted in names(),
    ) {
        let deleted: Vec<&String> = deleted.iter().filter(|name| !patch.contains(name)).collect();
        let merged = merge(
            json!({"metadata": {"finalizers": original}}),
            json!({"metadata": {
                "finalizers": patch, "$deleteFromPrimitiveList/finalizers": deleted,
            }}),
        );
        let scalars = |names: &[String]| -> Vec<Item> {
            names.iter().map(|name| (name.clone(), None)).collect()
        };
        let expected: Vec<String> = merge_slowly(&scalars(&original), &scalars(&patch), &[])
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| !deleted.contains(&name))
            .collect();
        prop_assert_eq!(&merged["metadata"]["finalizers"], &json!(expected));
    }

    #[test]
    fn an_order_of_all_items_is_the_order_of_the_result(
        original in keyed(),
        patch in keyed(),
        turns in 0usize..8,
    ) {
        prop_assume!(!original.is_empty() || !patch.is_empty());
        // All names, those of the patch in its order: the patch, and the others put between.
        let mut order: Vec<String> = patch.iter().map(|(name, _)| name.clone()).collect();
        for (turn, (name, _)) in original.iter().enumerate() {
            if !order.contains(name) {
                let at = (turn * turns) % (order.len() + 1);
                order.insert(at, name.clone());
            }
        }
        let keys: Vec<Value> = order.iter().map(|name| json!({"name": name})).collect();
        let merged = merge(
            json!({"spec": {"volumes": original.iter().map(object).collect::<Vec<_>>()}}),
            json!({"spec": {
                "volumes": patch.iter().map(object).collect::<Vec<_>>(),
                "$setElementOrder/volumes": keys,
            }}),
        );
        let names: Vec<&str> = merged["spec"]["volumes"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|item| item["name"].as_str().expect("a name"))
            .collect();
        prop_assert_eq!(names, order);
    }
}

/// The merged list: first what stays and what is new, then their order by the rule that an
/// item the patch does not name stands before the first named one it stood before, and else
/// last.
fn merge_slowly(original: &[Item], patch: &[Item], deleted: &[String]) -> Vec<Item> {
    let kept: Vec<&Item> = original.iter().filter(|(name, _)| !deleted.contains(name)).collect();
    let named = |name: &str| patch.iter().find(|(other, _)| other == name);
    let place = |name: &str| kept.iter().position(|(other, _)| other == name);
    let mut merged = Vec::new();
    let mut waiting: Vec<&Item> =
        kept.iter().copied().filter(|(name, _)| named(name).is_none()).collect();
    for (name, number) in patch {
        if let Some(here) = place(name) {
            while !waiting.is_empty() && place(&waiting[0].0) < Some(here) {
                merged.push(waiting.remove(0).clone());
            }
        }
        let before = place(name).and_then(|here| kept[here].1);
        merged.push((name.clone(), number.or(before)));
    }
    merged.extend(waiting.into_iter().cloned());
    merged
}

fn merge(original: Value, patch: Value) -> Value {
    let of = schema::of_kind("v1", "Pod").expect("a kind of the table");
    let patch = Patch::from_value(PatchType::Strategic, patch).expect("a patch");
    patch.apply(original, of).expect("it applies")
}

fn object((name, number): &Item) -> Value {
    match number {
        Some(number) => json!({"name": name, "number": number}),
        None => json!({"name": name}),
    }
}

fn keyed() -> impl Strategy<Value = Vec<Item>> {
    (names(), prop::collection::vec(prop::option::of(0u32..9), 8))
        .prop_map(|(names, numbers)| names.into_iter().zip(numbers).collect())
}

/// Some of eight names, each at most once, in any order.
fn names() -> impl Strategy<Value = Vec<String>> {
    let all: Vec<String> = ('a'..='h').map(String::from).collect();
    subsequence(all, 0..=8).prop_shuffle()
}
