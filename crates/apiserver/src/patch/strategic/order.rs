//! The order of a merged list: what the patch names comes in the patch's order, the rest
//! in its own, and the two are laid into each other by where they stood before.
//!
//! It must not know how items are merged.

use std::collections::HashMap;

use serde_json::Value;

use super::directive::PATCH;

/// Where each item first stands in a list, by what tells it apart.
pub(super) type Positions = HashMap<Value, usize>;

/// The positions of items in the order given.
pub(super) fn positions<'v>(identities: impl IntoIterator<Item = &'v Value>) -> Positions {
    let mut positions = Positions::new();
    for (position, identity) in identities.into_iter().enumerate() {
        // Of two items alike, the first counts.
        positions.entry(identity.clone()).or_insert(position);
    }
    positions
}

/// Orders a merged list. `wanted` is the order of the patch, `live` the one before it;
/// `identity` tells items apart.
///
/// An item that the patch does not name stands before the first named one that it stood
/// before already; one that is new to the list comes before those.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &Positions,
    live: &Positions,
    identity: impl Fn(&Value) -> &Value,
) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| wanted.contains_key(identity(item)));
    let position = |item: &Value, of: &Positions| of.get(identity(item)).copied();
    // An item new with this patch, and in it twice, may bear a directive that nobody took.
    // Such items go last, in no other order than they have.
    let rank = |item: &Value, of: &Positions| {
        let deleted = item.get(PATCH).is_some_and(|directive| directive == "delete");
        if deleted { (true, None) } else { (false, position(item, of).or(Some(usize::MAX))) }
    };
    named.sort_by_key(|item| rank(item, wanted));
    // What stood nowhere goes after what did. kube-apiserver sorts such items by a
    // comparison that is no order, so there is no order of its own to keep to.
    others.sort_by_key(|item| rank(item, live));

    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        if let Some(here) = position(&item, live) {
            let before =
                |other: &Value| position(other, live).is_some_and(|position| position < here);
            while let Some(other) = others.next_if(before) {
                arranged.push(other);
            }
        }
        arranged.push(item);
    }
    arranged.extend(others);
    arranged
}
