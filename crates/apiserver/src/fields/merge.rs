//! An applied object laid over another by the schema: objects field by field, lists item by item
//! where something tells their items apart. Nothing is taken away by it. It knows no owners.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::{Element, Scalar};
use super::set::FieldSet;
use super::shape::{Shape, find, key_of};
use crate::schema::Message;

/// Lays an applied object over another.
pub fn merge(live: Value, applied: &Value, message: Message) -> Value {
    merged(Some(live), Some(applied), Shape::Message(message)).unwrap_or(Value::Null)
}

/// An object without the fields and items of a set.
pub fn without(object: &Value, removed: &FieldSet<'_>, message: Message) -> Value {
    remove(object, removed, Shape::Message(message))
}

fn merged(live: Option<Value>, applied: Option<&Value>, shape: Shape) -> Option<Value> {
    match shape {
        Shape::Scalar(_) | Shape::Atomic(_) => applied.cloned().or(live),
        Shape::Message(_) | Shape::Map(_) => merged_members(live, applied, shape),
        Shape::Set(_) | Shape::Keyed(..) => merged_items(live, applied, shape),
    }
}

fn merged_members(live: Option<Value>, applied: Option<&Value>, shape: Shape) -> Option<Value> {
    let is_empty =
        |value: Option<&Value>| value.and_then(Value::as_object).is_none_or(Map::is_empty);
    if is_empty(live.as_ref()) && is_empty(applied) {
        // So null and nothing remain what they are.
        return applied.cloned().or(live);
    }
    let mut members = match live {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    for (name, applied) in applied.and_then(Value::as_object).into_iter().flatten() {
        let below = match shape {
            Shape::Message(message) => find(message, name).map(Shape::of_field),
            Shape::Map(of) => Some(Shape::Scalar(of)),
            _ => unreachable!("only these have members"),
        };
        // The type, which is no part of the schema.
        let Some(below) = below else { continue };
        match merged(members.remove(name), Some(applied), below) {
            Some(value) => drop(members.insert(name.clone(), value)),
            None => drop(members.remove(name)),
        }
    }
    (!members.is_empty()).then_some(Value::Object(members))
}

fn merged_items(live: Option<Value>, applied: Option<&Value>, shape: Shape) -> Option<Value> {
    let applied_items = applied.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let live_items = match &live {
        Some(Value::Array(items)) => items.as_slice(),
        _ => &[],
    };
    if live_items.is_empty() && applied_items.is_empty() {
        return applied.cloned().or(live);
    }
    let elements = |items: &'_ [Value]| -> (Vec<Element<'static>>, Vec<usize>) {
        let keyed = items.iter().enumerate();
        let keyed =
            keyed.filter_map(|(at, item)| Some((element_of(item, shape)?.into_owned(), at)));
        keyed.unzip()
    };
    let (live_keys, live_at) = elements(live_items);
    let (applied_keys, applied_at) = elements(applied_items);
    let live_item = |l: usize| &live_items[live_at[l]];
    let applied_item = |a: usize| &applied_items[applied_at[a]];
    let mut by_key: BTreeMap<&Element<'static>, Option<&Value>> = BTreeMap::new();
    for (key, item) in live_keys.iter().zip((0..).map(live_item)) {
        // Those that nothing tells apart are replaced rather than merged.
        by_key.entry(key).and_modify(|found| *found = None).or_insert(Some(item));
    }
    let applied_set: BTreeSet<&Element<'static>> = applied_keys.iter().collect();
    let below = match shape {
        Shape::Keyed(of, _) | Shape::Set(of) => Shape::of(of),
        _ => unreachable!("only these have items"),
    };
    let take = |key: &Element<'static>, applied: &Value| {
        let live = by_key.get(key).copied().flatten().cloned();
        merged(live, Some(applied), below)
    };
    // The items that both have are in the order of the applied ones; what only one of them has
    // stays beside its neighbours.
    let mut shared = applied_keys.iter().filter(|key| by_key.contains_key(key));
    let mut next_shared = shared.next();
    let mut taken: BTreeSet<&Element<'static>> = BTreeSet::new();
    let mut out = Vec::with_capacity(live_items.len().max(applied_items.len()));
    // What nothing tells apart is nobody's, and stays.
    let is_unkeyed = |item: &&Value| element_of(item, shape).is_none();
    out.extend(live_items.iter().filter(is_unkeyed).cloned());
    let (mut l, mut a) = (0, 0);
    while l < live_keys.len() || a < applied_keys.len() {
        if l < live_keys.len() && a < applied_keys.len() {
            let key = &live_keys[l];
            if *key == applied_keys[a] {
                taken.insert(key);
                out.extend(take(key, applied_item(a)));
                l += 1;
                a += 1;
                next_shared = shared.next();
                continue;
            }
            if applied_set.contains(key) && next_shared.is_some_and(|next| next != key) {
                l += 1;
                continue;
            }
        }
        if l < live_keys.len() {
            let key = &live_keys[l];
            if !applied_set.contains(key) {
                out.push(live_item(l).clone());
                l += 1;
                continue;
            }
            if taken.contains(key) {
                l += 1;
            }
        }
        if a < applied_keys.len() {
            let key = &applied_keys[a];
            taken.insert(key);
            out.extend(take(key, applied_item(a)));
            a += 1;
            if next_shared == Some(key) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

/// What tells an item of a list apart.
pub(super) fn element_of(item: &Value, shape: Shape) -> Option<Element<'_>> {
    match shape {
        Shape::Keyed(_, keys) => {
            let members = item.as_object()?;
            key_of(keys, |name| members.get(name).map(scalar))
        }
        _ if item.is_object() || item.is_array() || item.is_null() => None,
        _ => Some(Element::Value(scalar(item))),
    }
}

fn scalar(value: &Value) -> Scalar<'_> {
    match value {
        Value::String(text) => Scalar::Text(Cow::Borrowed(text)),
        other => Scalar::of_value(other.clone()),
    }
}

fn remove(value: &Value, removed: &FieldSet<'_>, shape: Shape) -> Value {
    match (shape, value) {
        (Shape::Scalar(_), value) => value.clone(),
        (Shape::Message(_) | Shape::Map(_), Value::Object(members)) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let element = Element::Field(Cow::Borrowed(name));
                let below = shape.below(&element);
                match (removed.get(&element), below) {
                    (Some(entry), _) if entry.is_member => {}
                    (Some(entry), Some(below)) => {
                        drop(kept.insert(name.clone(), remove(value, &entry.below, below)));
                    }
                    (_, _) => drop(kept.insert(name.clone(), value.clone())),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Shape::Set(of) | Shape::Keyed(of, _), Value::Array(items)) => {
            let mut kept = Vec::new();
            for item in items {
                let entry = element_of(item, shape).and_then(|element| removed.get(&element));
                match entry {
                    Some(entry) if entry.is_member => {}
                    Some(entry) => kept.push(remove(item, &entry.below, Shape::of(of))),
                    None => kept.push(item.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        // Of what is owned as a whole, no part can be taken.
        (_, _) => Value::Null,
    }
}
