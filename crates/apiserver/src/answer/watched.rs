//! A watch as the body of an answer: one JSON object a line.

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use stint_store::Revision;

use super::body::Body;
use super::shown::Shown;
use crate::verb::watch::{Event, Watching};

/// The events of a watch as they come.
pub(crate) fn watch_body(shown: Shown, watching: Watching, guard: impl Send + 'static) -> Body {
    let state = State { shown, watching, is_first: true, _guard: guard };
    Body::stream(stream::unfold(state, |mut state| async move {
        let events = state.watching.next().await?;
        let mut lines = BytesMut::new();
        for event in &events {
            let is_first = std::mem::take(&mut state.is_first);
            put_line(&mut lines, &state.shown, event, is_first);
        }
        Some((lines.freeze(), state))
    }))
}

struct State<G> {
    shown: Shown,
    watching: Watching,
    is_first: bool,
    /// Dropped when the watch ends, whoever ends it.
    _guard: G,
}

fn put_line(lines: &mut BytesMut, shown: &Shown, event: &Event, is_first: bool) {
    let (kind, object) = match event {
        Event::Added(entry) => ("ADDED", shown.watched(entry, entry.modified, is_first)),
        Event::Modified(entry) => ("MODIFIED", shown.watched(entry, entry.modified, is_first)),
        Event::Deleted(entry, revision) => ("DELETED", shown.watched(entry, *revision, is_first)),
        Event::Bookmark { revision, ends_initial_list } => {
            ("BOOKMARK", bookmark(shown, *revision, *ends_initial_list, is_first))
        }
        Event::Error(status) => ("ERROR", Bytes::from(status.to_json())),
    };
    lines.extend_from_slice(b"{\"type\":\"");
    lines.extend_from_slice(kind.as_bytes());
    lines.extend_from_slice(b"\",\"object\":");
    lines.extend_from_slice(&object);
    lines.extend_from_slice(b"}\n");
}

/// An object that is nothing but a version.
fn bookmark(shown: &Shown, revision: Revision, ends_initial_list: bool, is_first: bool) -> Bytes {
    let annotations = if ends_initial_list {
        r#""annotations":{"k8s.io/initial-events-end":"true"}"#
    } else {
        ""
    };
    let stored = format!(r#"{{"metadata":{{{annotations}}}}}"#).into();
    shown.watched_stored(&stored, revision, is_first)
}
