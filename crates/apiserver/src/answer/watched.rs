//! A watch as the body of an answer: one JSON object a line.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use stint_store::{Entry, Revision};

use super::body::{Body, PIECE_BYTES};
use super::recent::{LineOf, RecentLines};
use super::shown::Shown;
use super::unread::Unread;
use crate::request::media::View;
use crate::verb::watch::{Event, Watching};

/// The events of a watch as they come.
pub(crate) fn watch_body(
    shown: Shown,
    recent: Arc<RecentLines>,
    watching: Watching,
    unread: Option<&Unread>,
    guard: impl Send + 'static,
) -> Body {
    let events = Vec::new().into_iter();
    let state = State { shown, recent, watching, events, is_first: true };
    let pieces = stream::unfold(state, |mut state| async move {
        if state.events.as_slice().is_empty() {
            state.events = state.watching.next().await?.into_iter();
        }
        Some((state.piece(), state))
    });
    let body = match unread {
        Some(unread) => Body::stream(unread.lend(pieces)),
        None => Body::stream(pieces),
    };
    body.holding(guard)
}

struct State {
    shown: Shown,
    recent: Arc<RecentLines>,
    watching: Watching,
    /// What has happened and was not told yet.
    events: std::vec::IntoIter<Event>,
    is_first: bool,
}

impl State {
    /// Some of what has happened, at least one event: as many as make a piece. Whoever does not read
    /// keeps one piece in memory, not a whole step of large objects.
    fn piece(&mut self) -> Bytes {
        let first = self.events.next().expect("there is an event to tell");
        let first = self.line(&first);
        if first.len() >= PIECE_BYTES || self.events.as_slice().is_empty() {
            return first;
        }
        let mut lines = BytesMut::from(&first[..]);
        while lines.len() < PIECE_BYTES
            && let Some(event) = self.events.next()
        {
            lines.extend_from_slice(&self.line(&event));
        }
        lines.freeze()
    }

    fn line(&mut self, event: &Event) -> Bytes {
        let is_first = std::mem::take(&mut self.is_first);
        let shown = &self.shown;
        match event {
            Event::Added(entry) => self.changed("ADDED", entry, entry.modified, is_first),
            Event::Modified(entry) => self.changed("MODIFIED", entry, entry.modified, is_first),
            Event::Deleted(entry, revision) => self.changed("DELETED", entry, *revision, is_first),
            Event::Bookmark { revision, ends_initial_list } => {
                line("BOOKMARK", &bookmark(shown, *revision, *ends_initial_list, is_first))
            }
            Event::Error(status) => line("ERROR", status.to_json().as_ref()),
        }
    }

    fn changed(
        &self,
        event: &'static str,
        entry: &Entry,
        revision: Revision,
        is_first: bool,
    ) -> Bytes {
        let shown = &self.shown;
        let make = || line(event, &shown.watched(entry, revision, is_first));
        match shown.view {
            View::Whole => {
                let (names, managed) = (shown.kind.names(), shown.managed);
                self.recent.line(LineOf { revision, names, event, managed }, make)
            }
            // Rows have ages, and metadata are asked for by few.
            View::Metadata(_) | View::Table(_) => make(),
        }
    }
}

fn line(kind: &str, object: &[u8]) -> Bytes {
    let parts = [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}\n"];
    Bytes::from(parts.concat())
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
