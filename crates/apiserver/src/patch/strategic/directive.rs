//! Directives: fields of a patch that start with `$` and say what to do with others.
//!
//! It must not know any kind, and merges nothing.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::StrategicError;
use super::path::Path;

/// What to do with an object: `$patch: replace` or `delete`, and in a list also `merge`.
pub(super) const PATCH: &str = "$patch";

/// The fields that stay: `$retainKeys: [..]`.
const RETAIN_KEYS: &str = "$retainKeys";

/// The scalars to take out of the list `x`: `$deleteFromPrimitiveList/x: [..]`.
const DELETIONS: &str = "$deleteFromPrimitiveList";

/// The order of the list `x`: `$setElementOrder/x: [..]`.
const ORDER: &str = "$setElementOrder";

/// A field of a patch, by what its name says it is.
pub(super) enum Meaning {
    /// A field of the object.
    Field,
    /// The order of the list of this name.
    Order(String),
    /// Deletions from the list of this name.
    Deletions(String),
}

/// Reads a field's name.
pub(super) fn meaning(name: &str, at: &Path) -> Result<Meaning, StrategicError> {
    // The prefix alone makes it a directive, as in kube-apiserver: one misspelt is an
    // error, not a field.
    if name.starts_with(ORDER) {
        let list = list_of(name, ORDER);
        return list
            .map(Meaning::Order)
            .ok_or_else(|| StrategicError::OrderName { field: at.field(name).to_string() });
    }
    if name.starts_with(DELETIONS) {
        let list = list_of(name, DELETIONS);
        return list
            .map(Meaning::Deletions)
            .ok_or_else(|| StrategicError::DeletionsName { field: at.field(name).to_string() });
    }
    Ok(Meaning::Field)
}

fn list_of(name: &str, directive: &str) -> Option<String> {
    Some(name.strip_prefix(directive)?.strip_prefix('/')?.to_owned())
}

/// Carries out `$retainKeys`: every field of the original that it does not name goes, and
/// the patch may set only what it names.
pub(super) fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    at: &Path,
) -> Result<(), StrategicError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || StrategicError::RetainKeys { field: at.field(RETAIN_KEYS).to_string() };
    let retained: HashSet<&str> = retained
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        // A number names no field, and kube-apiserver lets it pass.
        .filter(|key| !key.is_number() && !key.is_boolean() && !key.is_null())
        .map(|key| key.as_str().ok_or_else(wrong))
        .collect::<Result<_, _>>()?;
    for (name, value) in patch.iter() {
        let directive = name.starts_with(DELETIONS) || name.starts_with(ORDER);
        if !value.is_null() && !directive && !retained.contains(name.as_str()) {
            return Err(wrong());
        }
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// What is left of a value of the patch that lands where nothing was: objects that say
/// what to do with others are gone, as there are none. None if the value itself is one.
///
/// Other directives stay, as in kube-apiserver, where decoding drops them or, if it is to
/// be strict, complains.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => Some(Value::Object(
            fields
                .into_iter()
                .filter_map(|(name, field)| Some((name, without_directives(field)?)))
                .collect(),
        )),
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        scalar => Some(scalar),
    }
}
