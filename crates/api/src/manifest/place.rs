//! Which part of the text an error is about.

use std::borrow::Cow;

use serde_json::Value;

use crate::decode::{Node, NodeValue};
use crate::diagnostic::Span;
use crate::field_error::FieldError;
use crate::field_path::{FieldPath, Segment};

/// The part of the text to point at for this error.
pub(super) fn blame(node: &Node, error: &FieldError) -> Span {
    let path = as_written(node, &error.path);
    let value = error.value.as_ref();
    entry_of(node, &path, value)
        .or_else(|| name_in_label(node, &path, value))
        .unwrap_or_else(|| place_of(node, &path))
}

/// The place of a field: its value if that is a scalar, its key if the value is large,
/// and the closest enclosing key if it is not there.
pub(super) fn place_of(node: &Node, path: &FieldPath) -> Span {
    let path = as_written(node, path);
    let place = node.locate(&path);
    let key = place.key_span.or_else(|| enclosing_key(node, &path));
    match (place.exact && is_scalar(node, &path), key) {
        (true, _) => place.span,
        (false, Some(key)) => key,
        (false, None) => match &node.value {
            NodeValue::Map(entries) if !entries.is_empty() => entries[0].key_span,
            _ => Span { start: place.span.start, end: place.span.start },
        },
    }
}

/// Where a field stands in the text. The API server speaks of `spec.template.labels`
/// where it means `spec.template.metadata.labels`; a name may have been generated, and
/// the labels of a Job that has none are its template's.
fn as_written<'a>(node: &Node, path: &'a FieldPath) -> Cow<'a, FieldPath> {
    let segments = path.segments();
    let is =
        |segment: &Segment, name: &str| matches!(segment, Segment::Field(field) if field == name);
    match segments {
        [spec, template, map, ..]
            if is(spec, "spec")
                && is(template, "template")
                && (is(map, "labels") || is(map, "annotations")) =>
        {
            let mut written = segments.to_vec();
            written.insert(2, Segment::Field(Cow::Borrowed("metadata")));
            Cow::Owned(FieldPath::from_segments(written))
        }
        [metadata, name]
            if is(metadata, "metadata") && is(name, "name") && find(node, path).is_none() =>
        {
            Cow::Owned(fields(&["metadata", "generateName"]))
        }
        [metadata, labels]
            if is(metadata, "metadata") && is(labels, "labels") && find(node, path).is_none() =>
        {
            Cow::Owned(fields(&["spec", "template", "metadata", "labels"]))
        }
        _ => Cow::Borrowed(path),
    }
}

fn fields(names: &[&'static str]) -> FieldPath {
    let segments = names.iter().map(|name| Segment::Field(Cow::Borrowed(*name))).collect();
    FieldPath::from_segments(segments)
}

/// Errors about labels name the map and print the offending key or value: point at
/// that entry.
fn entry_of(node: &Node, path: &FieldPath, value: Option<&Value>) -> Option<Span> {
    let text = value?.as_str()?;
    let NodeValue::Map(entries) = &find(node, path)?.value else {
        return None;
    };
    let by_key = entries.iter().find(|entry| entry.key == text).map(|entry| entry.key_span);
    let by_value = || {
        let entry = entries.iter().find(|entry| match &entry.value.value {
            NodeValue::String(value) => value == text,
            NodeValue::Number(number) => number.to_string() == text,
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::List(_) | NodeValue::Map(_) => false,
        })?;
        Some(entry.value.span)
    };
    by_key.or_else(by_value)
}

/// The template's labels are generated from the Job's name: where the author wrote no
/// labels, a bad one comes from there.
fn name_in_label(node: &Node, path: &FieldPath, value: Option<&Value>) -> Option<Span> {
    let is_labels = matches!(path.segments().last()?, Segment::Field(name) if name == "labels");
    let name = &node.get("metadata")?.value.get("name")?.value;
    let is_from_name = is_labels && name.as_str().is_some() && name.as_str() == value?.as_str();
    is_from_name.then_some(name.span)
}

fn is_scalar(node: &Node, path: &FieldPath) -> bool {
    find(node, path)
        .is_some_and(|found| !matches!(found.value, NodeValue::Map(_) | NodeValue::List(_)))
}

/// The key of the closest mapping member on the way to a list item.
fn enclosing_key(node: &Node, path: &FieldPath) -> Option<Span> {
    let segments = path.segments();
    // An item of a list has no key of its own, but its first member has.
    let deepest = (0..=segments.len())
        .rev()
        .find_map(|length| find(node, &FieldPath::from_segments(segments[..length].to_vec())))?;
    match &deepest.value {
        NodeValue::Map(entries) if entries.is_empty() => Some(deepest.span),
        NodeValue::Map(entries) => entries.first().map(|entry| entry.key_span),
        NodeValue::List(_) => Some(Span { start: deepest.span.start, end: deepest.span.start }),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            Some(deepest.span)
        }
    }
}

fn find<'a>(node: &'a Node, path: &FieldPath) -> Option<&'a Node> {
    let mut here = node;
    for segment in path.segments() {
        here = match segment {
            Segment::Field(name) => &here.get(name)?.value,
            Segment::Key(key) => &here.get(key)?.value,
            Segment::Index(index) => match &here.value {
                NodeValue::List(items) => items.get(*index)?,
                _ => return None,
            },
        };
    }
    Some(here)
}
