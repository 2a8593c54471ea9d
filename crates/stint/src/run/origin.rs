//! Where an object was written, so that what is wrong with it can be shown there.

use std::borrow::Cow;
use std::sync::Arc;

use stint_api::decode::{self, Node, NodeValue};
use stint_api::diagnostic::{Diagnostic, Severity, Span};
use stint_api::field_path::{FieldPath, Segment};

use crate::report::Report;
use crate::source::Source;

/// A document of a file, or an item of a list in one.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    source: Arc<Source>,
    span: Span,
}

impl Origin {
    pub(crate) fn new(source: Arc<Source>, span: Span) -> Self {
        Origin { source, span }
    }

    /// An error about the first of these fields that is written there, or else the first of them,
    /// with its line and a caret.
    pub(crate) fn error(
        &self,
        fields: &[String],
        message: &str,
        help: &str,
        report: Report,
    ) -> String {
        let root = root_at(self.source.text(), self.span);
        let paths: Vec<FieldPath> = fields.iter().map(|field| field_path(field)).collect();
        let is_there = |path: &&FieldPath| root.as_ref().is_some_and(|it| it.locate(path).exact);
        let path = paths.iter().find(is_there).or(paths.first()).cloned().unwrap_or_default();
        let span = root.map_or(self.span, |root| span_of(&root, &path, self.source.text()));
        report.diagnostic(
            &self.source,
            &Diagnostic {
                severity: Severity::Error,
                name: None,
                path,
                message: message.to_owned(),
                span,
                help: Some(help.to_owned()),
                related: None,
            },
        )
    }
}

/// The name in a reference, a value on one line, or else the key of the field.
fn span_of(root: &Node, path: &FieldPath, text: &str) -> Span {
    let mut name = path.clone();
    name.push(Segment::Field(Cow::Borrowed("name")));
    let name = root.locate(&name);
    if name.exact {
        return name.span;
    }
    let place = root.locate(path);
    let is_short = place.exact && !text[place.span.start..place.span.end].contains('\n');
    if is_short { place.span } else { place.key_span.unwrap_or(place.span) }
}

/// The path that a text such as `spec.containers[0].resources.requests[example.com/gpu]` means.
fn field_path(text: &str) -> FieldPath {
    let mut path = FieldPath::root();
    let mut rest = text;
    while !rest.is_empty() {
        rest = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((key, rest)) => {
                path.push(match key.parse() {
                    Ok(index) => Segment::Index(index),
                    Err(_) => Segment::Key(key.to_owned()),
                });
                rest
            }
            None => {
                let field = rest.strip_prefix('.').unwrap_or(rest);
                let end = field.find(['.', '[']).unwrap_or(field.len());
                path.push(Segment::Field(Cow::Owned(field[..end].to_owned())));
                &field[end..]
            }
        };
    }
    path
}

/// The document or the item of a list that stands there.
fn root_at(text: &str, span: Span) -> Option<Node> {
    for document in decode::documents(text) {
        let (is_it, root) = (document.span == span, document.root);
        match root {
            Some(root) if is_it => return Some(root),
            Some(root) => {
                if let Some(item) = items(&root).iter().find(|item| item.span == span) {
                    return Some(item.clone());
                }
            }
            None => {}
        }
    }
    None
}

/// The items of a list; none if it is an object.
pub(crate) fn items(node: &Node) -> &[Node] {
    match node.get("items").map(|entry| &entry.value.value) {
        Some(NodeValue::List(items)) => items,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::Painter;

    #[test]
    fn what_is_wrong_is_shown_where_it_is_written() {
        let text = "kind: List\nitems:\n- spec: {nodeName: a}\n- spec:\n    requests:\n      \
                    example.com/gpu: 1\n    map:\n      name: words\n";
        let source = Arc::new(Source::new("a.yaml", text.to_owned()));
        let documents: Vec<Node> = decode::documents(text).filter_map(|it| it.root).collect();
        let item = items(&documents[0])[1].span;
        let origin = Origin::new(source, item);
        let report = Report { painter: Painter::new(false), quiet: false };
        let shown = |fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(|it| (*it).to_owned()).collect();
            origin.error(&fields, "is wrong", "mend it", report)
        };
        let said = shown(&["spec.absent", "spec.requests[example.com/gpu]"]);
        assert_eq!(
            said,
            "error: spec.requests[example.com/gpu]: is wrong\n  --> a.yaml:6:24\n   |\n 6 |       \
             example.com/gpu: 1\n   |                        ^\n   = help: mend it\n\n"
        );
        assert!(shown(&["spec.map"]).contains("a.yaml:8:13\n"), "{}", shown(&["spec.map"]));
        assert!(shown(&["spec.absent"]).contains("a.yaml:4:3\n"), "{}", shown(&["spec.absent"]));
    }
}
