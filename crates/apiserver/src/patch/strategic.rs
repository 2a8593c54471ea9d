//! Strategic merge patches: merge patches that merge lists, too, where the type of an
//! object says so, and that obey directives.
//!
//! It must not know any kind by name ([`super::schema`] does), nor what makes an object
//! valid. How kube-apiserver goes about an object of the patch, in this order:
//!
//! 1. `$patch` decides about the object as a whole, and nothing else of it matters.
//! 2. `$retainKeys` clears fields of the original.
//! 3. `$setElementOrder/x` merges the list `x` and orders it.
//! 4. Every other field is deleted if null, taken as it is if the original has none or one
//!    of another JSON type, and else merged: objects by this list again, lists by their
//!    strategy, scalars by taking the patch's.
//! 5. `$deleteFromPrimitiveList/x` takes scalars out of the list `x`. Upstream does this
//!    and the step before in the random order of a Go map; only a patch that both adds and
//!    deletes the same scalar could tell.

use serde_json::{Map, Value};
use thiserror::Error;

use super::nulls;
use super::schema::{Field, PLAIN, Type};

mod directive;
mod list;
mod order;
mod path;

use directive::Meaning;
use path::Path;

type Object = Map<String, Value>;

/// A strategic merge patch for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct StrategicPatch(Object);

/// Why a body is no strategic merge patch, or why it does not apply. The `field` of each
/// is where, as a path from the object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StrategicError {
    /// The body is not an object.
    #[error("error decoding patch: a strategic merge patch has to be an object")]
    NotAnObject,
    /// `$patch` has a value it cannot have here.
    #[error("unknown patch type: {directive} in {field:?}")]
    UnknownDirective {
        /// Where the directive stands.
        field: String,
        /// Its value.
        directive: Value,
    },
    /// `$patch: merge` in an item of a list.
    #[error("merging lists cannot yet be specified in the patch: {field}")]
    MergeDirective {
        /// The list.
        field: String,
    },
    /// A directive for a list of scalars does not name its list.
    #[error("invalid patch format of primitive list: {field}")]
    DeletionsName {
        /// The directive.
        field: String,
    },
    /// A directive for the order of a list does not name its list.
    #[error("invalid patch format of setElementOrder list: {field}")]
    OrderName {
        /// The directive.
        field: String,
    },
    /// `$retainKeys` is not a list of names, or the patch sets a field that is not on it.
    #[error("invalid patch format of retainKeys: {field}")]
    RetainKeys {
        /// The directive.
        field: String,
    },
    /// What has to be a list is not.
    #[error("expected a list, but received something else: {field}")]
    NotAList {
        /// What it is.
        field: String,
    },
    /// Items of one list differ in their JSON type, or are null.
    #[error("list element types are not identical: {field}")]
    MixedItems {
        /// The list.
        field: String,
    },
    /// The items of a list that is to be merged are lists.
    #[error("lists of lists are not supported: {field}")]
    ListOfLists {
        /// The list.
        field: String,
    },
    /// There is an order for a list that is empty before and in the patch.
    #[error("no elements in any of the given slices: {field}")]
    NothingToOrder {
        /// The list.
        field: String,
    },
    /// An item of a list that is merged by a key is a scalar.
    #[error("expected objects in {field}, but received something else")]
    ScalarItem {
        /// The list.
        field: String,
    },
    /// A list of objects is to be merged or ordered, and has no key.
    #[error("cannot merge lists without merge key: {field}")]
    ListWithoutKey {
        /// The list.
        field: String,
    },
    /// An item lacks the key of its list.
    #[error("an item of {field} does not contain declared merge key: {key}")]
    KeyMissing {
        /// The list.
        field: String,
        /// The key.
        key: &'static str,
    },
    /// The key of an item is an object or a list.
    #[error("the merge key {key} of an item of {field} has to be a scalar")]
    KeyNotScalar {
        /// The list.
        field: String,
        /// The key.
        key: &'static str,
    },
    /// The items of the patch are not on `$setElementOrder`, or in another order.
    #[error("The order in patch list doesn't match $setElementOrder list: {field}")]
    OrderMismatch {
        /// The list.
        field: String,
    },
}

impl StrategicError {
    /// The HTTP status of the answer. kube-apiserver says 500 for most of these, which
    /// blames the server for the patch; clients are right to try again then.
    pub fn status(&self) -> u16 {
        match self {
            Self::ListOfLists { .. } => 422,
            Self::NotAnObject
            | Self::UnknownDirective { .. }
            | Self::MergeDirective { .. }
            | Self::DeletionsName { .. }
            | Self::OrderName { .. }
            | Self::RetainKeys { .. }
            | Self::NotAList { .. }
            | Self::MixedItems { .. }
            | Self::NothingToOrder { .. }
            | Self::ScalarItem { .. }
            | Self::ListWithoutKey { .. }
            | Self::KeyMissing { .. }
            | Self::KeyNotScalar { .. }
            | Self::OrderMismatch { .. } => 400,
        }
    }
}

impl StrategicPatch {
    pub(super) fn fields(&self) -> &Object {
        &self.0
    }

    pub(super) fn from_value(value: Value) -> Result<Self, StrategicError> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            // Go reads null into a map as a map without entries.
            Value::Null => Ok(Self(Object::new())),
            _ => Err(StrategicError::NotAnObject),
        }
    }

    /// Applies the patch to an object of a type.
    pub fn apply(&self, original: Value, of: &Type) -> Result<Value, StrategicError> {
        let Value::Object(original) = original else { return Err(StrategicError::NotAnObject) };
        merge_objects(original, self.0.clone(), of, &Path::ROOT).map(Value::Object)
    }
}

/// Merges an object of the patch into one of the original. The recursion is as deep as the
/// patch, which is within the limit.
fn merge_objects(
    mut original: Object,
    mut patch: Object,
    of: &Type,
    at: &Path,
) -> Result<Object, StrategicError> {
    if let Some(directive) = patch.remove(directive::PATCH) {
        return match directive.as_str() {
            // Taken as it is, nulls and directives within included.
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Object::new()),
            _ => Err(StrategicError::UnknownDirective { field: at.to_string(), directive }),
        };
    }
    directive::retain_keys(&mut original, &mut patch, at)?;

    let mut fields = Object::new();
    let (mut orders, mut deletions) = (Vec::new(), Vec::new());
    for (name, value) in patch {
        match directive::meaning(&name, at)? {
            Meaning::Field => {
                fields.insert(name, value);
            }
            Meaning::Order(list) => orders.push((list, value)),
            Meaning::Deletions(list) => deletions.push((list, value)),
        }
    }
    for (list, order) in orders {
        let live = original.remove(&list);
        let patched = fields.remove(&list);
        let ordered =
            list::merge_in_order(live, patched, order, of.field(&list), &at.field(&list))?;
        if let Some(ordered) = ordered {
            original.insert(list, Value::Array(ordered));
        }
    }
    for (name, value) in fields {
        merge_field(&mut original, name, value, of, at, Use::Merge)?;
    }
    for (list, value) in deletions {
        merge_field(&mut original, list, value, of, at, Use::Delete)?;
    }
    Ok(original)
}

/// What the value of a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// To be merged.
    Merge,
    /// The scalars to be deleted, if it is a list of them. If it is not, kube-apiserver
    /// takes it for a value to be merged, and so does this.
    Delete,
}

fn merge_field(
    original: &mut Object,
    name: String,
    patch: Value,
    of: &Type,
    at: &Path,
    purpose: Use,
) -> Result<(), StrategicError> {
    let before = original.remove(&name);
    let field = of.field(&name);
    let at = &at.field(&name);
    let after = match (before, patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(before)), Value::Object(patch)) => {
            let of = match field {
                Some(Field::Object(of)) => of,
                Some(Field::Keyed(..) | Field::Set) | None => &PLAIN,
            };
            Some(Value::Object(merge_objects(before, patch, of, at)?))
        }
        (Some(Value::Array(before)), Value::Array(patch)) => {
            Some(Value::Array(list::merge(before, patch, field, purpose, at)?.items))
        }
        (Some(before), patch) if same_scalar_type(&before, &patch) => Some(patch),
        (before, patch) => match purpose {
            Use::Merge => added(patch),
            Use::Delete => before,
        },
    };
    if let Some(after) = after {
        original.insert(name, after);
    }
    Ok(())
}

/// What becomes of a value where nothing was, or something of another JSON type.
fn added(mut patch: Value) -> Option<Value> {
    nulls::prune(&mut patch);
    directive::without_directives(patch)
}

/// Whether both are scalars of one type. Whole and broken numbers are two types, as in Go.
fn same_scalar_type(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.is_f64() == right.is_f64(),
        (Value::String(_), Value::String(_)) | (Value::Bool(_), Value::Bool(_)) => true,
        _ => false,
    }
}
