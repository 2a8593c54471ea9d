//! Lists: replaced, merged as sets of scalars, or merged object by object, and their order.
//!
//! It must not know any kind. Items are found by maps of their keys, so that two lists of
//! 10,000 items merge in the time of 20,000 look-ups; upstream compares them all with each
//! other.

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;

use serde_json::Value;

use super::directive::{PATCH, without_directives};
use super::order::{Positions, arrange, positions};
use super::path::Path;
use super::{Object, StrategicError, Use, merge_objects, same_scalar_type};
use crate::patch::schema::{Field, Type};

/// A merged list.
pub(super) struct Merged {
    /// The items, in order.
    pub(super) items: Vec<Value>,
    /// Where the items stood before, for [`merge_in_order`].
    live: Positions,
}

/// Merges two lists of a field.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: Option<Field>,
    purpose: Use,
    at: &Path,
) -> Result<Merged, StrategicError> {
    let replaced = matches!(field, None | Some(Field::Object(_))) && purpose == Use::Merge;
    if replaced {
        return Ok(Merged { live: positions_of(&original, field), items: patch });
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(Merged { items: original, live: Positions::new() });
    }
    let objects = items_are_objects(original.iter().chain(&patch), at)?;
    match (objects, field, purpose) {
        (true, Some(Field::Keyed(key, of)), Use::Merge | Use::Delete) => {
            merge_keyed(original, patch, &List { key, of, at })
        }
        (true, Some(Field::Object(_) | Field::Set) | None, Use::Merge | Use::Delete) => {
            Err(StrategicError::ListWithoutKey { field: at.to_string() })
        }
        (false, _, Use::Delete) => {
            let deleted: HashSet<&Value> = patch.iter().collect();
            let live = positions_of(&original, field);
            let items = original.into_iter().filter(|item| !deleted.contains(item)).collect();
            Ok(Merged { items, live })
        }
        (false, Some(Field::Keyed(..)), Use::Merge) => {
            Err(StrategicError::ScalarItem { field: at.to_string() })
        }
        (false, Some(Field::Object(_) | Field::Set) | None, Use::Merge) => {
            Ok(merge_scalars(original, patch))
        }
    }
}

/// Merges the list that `$setElementOrder` is for, and puts it in that order. None if there
/// is no such list, neither before nor in the patch.
pub(super) fn merge_in_order(
    original: Option<Value>,
    patch: Option<Value>,
    order: Value,
    field: Option<Field>,
    at: &Path,
) -> Result<Option<Vec<Value>>, StrategicError> {
    let order = as_list(order, at)?;
    let original = original.map(|list| as_list(list, at)).transpose()?;
    let patch = patch.map(|list| as_list(list, at)).transpose()?;
    let key = match field {
        Some(Field::Keyed(key, _)) => Some(key),
        Some(Field::Object(_) | Field::Set) | None => None,
    };
    check_order(patch.as_deref().unwrap_or_default(), &order, key, at)?;
    let empty =
        original.as_ref().is_none_or(Vec::is_empty) && patch.as_ref().is_none_or(Vec::is_empty);
    let merged = match (original, patch) {
        (None, None) => return Ok(None),
        (Some(original), None) => Merged { live: positions_of(&original, field), items: original },
        (None, Some(patch)) => {
            let items = patch.into_iter().filter_map(without_directives).collect();
            Merged { items, live: Positions::new() }
        }
        (Some(original), Some(patch)) => merge(original, patch, field, Use::Merge, at)?,
    };
    if empty {
        return Err(StrategicError::NothingToOrder { field: at.to_string() });
    }
    let wanted = match key {
        Some(key) => {
            for item in merged.items.iter().chain(&order) {
                key_of(item, key, at)?;
            }
            positions(order.iter().filter_map(|item| item.get(key)))
        }
        None => {
            for item in merged.items.iter().chain(&order) {
                if item.is_object() || item.is_array() {
                    return Err(StrategicError::ListWithoutKey { field: at.to_string() });
                }
            }
            positions(&order)
        }
    };
    Ok(Some(arrange(merged.items, &wanted, &merged.live, |item| identity(item, key))))
}

/// A list of objects with a key.
struct List<'a> {
    key: &'static str,
    of: &'static Type,
    at: &'a Path<'a>,
}

fn merge_keyed(
    original: Vec<Value>,
    patch: Vec<Value>,
    list: &List,
) -> Result<Merged, StrategicError> {
    let Sorted { patch, deleted, replace } = sort_out(patch, list)?;
    let length = original.len();
    let mut items: Vec<Value> = original
        .into_iter()
        .filter(|item| item.get(list.key).is_none_or(|key| !deleted.contains(key)))
        .collect();
    let deletion_count = length - items.len();
    let mut live = positions(items.iter().filter_map(|item| item.get(list.key)));
    if replace {
        // What is left of the patch is the list, where items alike stand together.
        for item in &patch {
            key_of(item, list.key, list.at)?;
        }
        let own = positions(patch.iter().filter_map(|item| item.get(list.key)));
        let items = arrange(patch, &Positions::new(), &own, |item| identity(item, Some(list.key)));
        return Ok(Merged { items, live });
    }

    let wanted = positions(patch.iter().filter_map(|item| item.get(list.key)));
    let kept = items.len();
    merge_items(&mut items, patch, list)?;
    for item in &items {
        key_of(item, list.key, list.at)?;
    }
    let added: Vec<Value> = items[kept..]
        .iter()
        .take(deletion_count)
        .map(|item| identity(item, Some(list.key)).clone())
        .collect();
    let items = arrange(items, &wanted, &live, |item| identity(item, Some(list.key)));
    // Upstream deletes items and appends new ones within one array, and looks at that array
    // again when it carries out $setElementOrder: new items have taken the places of as
    // many deleted ones, and count as if they had stood there.
    for (position, key) in (kept..).zip(added) {
        live.entry(key).or_insert(position);
    }
    Ok(Merged { items, live })
}

/// A patch of a list without the items that only say what to do.
struct Sorted {
    patch: Vec<Value>,
    /// The keys to delete.
    deleted: HashSet<Value>,
    /// Whether the patch is all that stays.
    replace: bool,
}

fn sort_out(patch: Vec<Value>, list: &List) -> Result<Sorted, StrategicError> {
    let mut sorted = Sorted { patch: Vec::new(), deleted: HashSet::new(), replace: false };
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            sorted.patch.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                sorted.deleted.insert(key_of(&item, list.key, list.at)?.clone());
            }
            Some("replace") => sorted.replace = true,
            Some("merge") => {
                return Err(StrategicError::MergeDirective { field: list.at.to_string() });
            }
            _ => {
                return Err(StrategicError::UnknownDirective {
                    field: list.at.to_string(),
                    directive: directive.clone(),
                });
            }
        }
    }
    Ok(sorted)
}

/// Merges each item of a patch into the first with the same key, or appends it.
fn merge_items(
    items: &mut Vec<Value>,
    patch: Vec<Value>,
    list: &List,
) -> Result<(), StrategicError> {
    let mut places: HashMap<Value, usize> =
        positions(items.iter().map(|item| item.get(list.key).unwrap_or(&NO_KEY)));
    places.remove(&NO_KEY);
    for item in patch {
        let key = key_of(&item, list.key, list.at)?.clone();
        match places.get(&key) {
            Some(&place) => {
                let before = into_object(items[place].take());
                let merged = merge_objects(before, into_object(item), list.of, list.at)?;
                items[place] = Value::Object(merged);
            }
            None => {
                places.insert(key, items.len());
                // As it is, nulls and directives within included.
                items.push(item);
            }
        }
    }
    Ok(())
}

/// Stands in for the key of an item without one: no key is a list.
static NO_KEY: Value = Value::Array(Vec::new());

fn into_object(item: Value) -> Object {
    match item {
        Value::Object(fields) => fields,
        _ => unreachable!("the items of both lists were found to be objects"),
    }
}

fn merge_scalars(original: Vec<Value>, patch: Vec<Value>) -> Merged {
    let (live, wanted) = (positions(&original), positions(&patch));
    let mut seen = HashSet::new();
    let both = original.into_iter().chain(patch);
    let items = both.filter(|item| seen.insert(item.clone())).collect();
    Merged { items: arrange(items, &wanted, &live, |item| item), live }
}

/// Checks that the items of the patch are on the list of the order, and in its order. Items
/// with a directive need not be.
fn check_order(
    patch: &[Value],
    order: &[Value],
    key: Option<&'static str>,
    at: &Path,
) -> Result<(), StrategicError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    let mut deleted_or_found = true;
    for item in patch {
        if let (Some(_), false) = (key, item.is_object()) {
            return Err(StrategicError::ScalarItem { field: at.to_string() });
        }
        let directive = item.get(PATCH);
        if directive.is_some_and(|directive| directive == "delete") {
            continue;
        }
        if directive.is_some() {
            // Upstream wants an order that goes on at such an item, for no reason.
            deleted_or_found &= !wanted.as_slice().is_empty();
            continue;
        }
        let mut found = false;
        for candidate in wanted.by_ref() {
            if same_item(item, candidate, key, at)? {
                found = true;
                break;
            }
        }
        deleted_or_found &= found;
    }
    if deleted_or_found {
        Ok(())
    } else {
        Err(StrategicError::OrderMismatch { field: at.to_string() })
    }
}

fn same_item(
    left: &Value,
    right: &Value,
    key: Option<&'static str>,
    at: &Path,
) -> Result<bool, StrategicError> {
    let Some(key) = key else { return Ok(left == right) };
    Ok(key_of(left, key, at)? == key_of(right, key, at)?)
}

/// Whether the items are objects; they have to be of one type, and not lists.
fn items_are_objects<'v>(
    items: impl IntoIterator<Item = &'v Value>,
    at: &Path,
) -> Result<bool, StrategicError> {
    let mut items = items.into_iter();
    let first = items.next().expect("one list has an item");
    if first.is_array() {
        return Err(StrategicError::ListOfLists { field: at.to_string() });
    }
    let alike = |item: &Value| match first {
        Value::Number(_) => same_scalar_type(first, item),
        _ => discriminant(first) == discriminant(item),
    };
    if first.is_null() || !items.all(alike) {
        return Err(StrategicError::MixedItems { field: at.to_string() });
    }
    Ok(first.is_object())
}

/// The key of an item, which has to have one.
fn key_of<'v>(item: &'v Value, key: &'static str, at: &Path) -> Result<&'v Value, StrategicError> {
    let field = || at.to_string();
    let Value::Object(fields) = item else {
        return Err(StrategicError::ScalarItem { field: field() });
    };
    match fields.get(key) {
        None => Err(StrategicError::KeyMissing { field: field(), key }),
        Some(Value::Object(_) | Value::Array(_)) => {
            Err(StrategicError::KeyNotScalar { field: field(), key })
        }
        Some(value) => Ok(value),
    }
}

/// What tells an item apart: its key, which was checked to be there, or itself.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> &'v Value {
    key.map_or(item, |key| item.get(key).expect("every item was checked for its key"))
}

fn positions_of(items: &[Value], field: Option<Field>) -> Positions {
    match field {
        Some(Field::Keyed(key, _)) => positions(items.iter().filter_map(|item| item.get(key))),
        Some(Field::Object(_) | Field::Set) | None => positions(items),
    }
}

fn as_list(value: Value, at: &Path) -> Result<Vec<Value>, StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(StrategicError::NotAList { field: at.to_string() }),
    }
}
