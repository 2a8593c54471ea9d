//! A list of objects, such as `kubectl get -o yaml` prints.

use super::error_at;
use super::findings::Findings;
use super::kind::Said;
use crate::decode::suggest::closest;
use crate::decode::{Node, NodeValue};
use crate::diagnostic::Diagnostic;
use crate::field_path::Path;
use crate::names::{BATCH_V1, JOB_KIND, JOB_LIST_KIND};

/// What a list is made of.
const MEMBERS: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];

/// The items of a list. What is wrong with the list itself is added to the findings.
pub(super) fn items<'n>(node: &'n Node, found: &mut Findings) -> &'n [Node] {
    let NodeValue::Map(entries) = &node.value else {
        unreachable!("what has a kind is a mapping");
    };
    for entry in entries.iter().filter(|entry| !MEMBERS.contains(&entry.key.as_str())) {
        let meant = closest(&entry.key, MEMBERS.into_iter());
        found.add(Diagnostic {
            help: meant.map(|name| format!("did you mean \"{name}\"?")),
            ..error_at(entry.key_span, format!("unknown field {:?} of a list", entry.key))
        });
    }
    match node.get("items").map(|entry| &entry.value) {
        Some(Node { value: NodeValue::List(items), .. }) => items,
        None | Some(Node { value: NodeValue::Null, .. }) => &[],
        Some(other) => {
            let path = Path::field("items").to_field_path();
            let message = format!("expected a list, found {other}");
            found.add(Diagnostic { path, ..error_at(other.span, message) });
            &[]
        }
    }
}

/// The kind of an item that does not give its own, in a list of one kind.
pub(super) fn implied_kind(list: &Said<'_>) -> Option<(&'static str, &'static str)> {
    (list.kind == Some(JOB_LIST_KIND)).then_some((BATCH_V1, JOB_KIND))
}
