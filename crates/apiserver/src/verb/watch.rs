//! Watch: what happens to the selected objects of a kind, as it happens.
//!
//! # Guarantees
//!
//! - Every change of a selected object is delivered once and in order, from the revision that
//!   was asked for until the watch ends.
//! - An object that a change brings into the selection is ADDED, one that it takes out of it is
//!   DELETED, with its last selected form.
//! - A client that reads slowly holds up nobody. It is told that it has fallen behind (410), and lists anew.
//!   What it has not been told costs the places of its objects in memory, and those versions of them that
//!   others have replaced since; who does not read at all is ended (`answer/unread.rs`).

use std::sync::Arc;
use std::time::Duration;

use stint_store::{Change, Entry, Revision, StoreError, Watch};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::api::{Api, prefix, store_failed};
use crate::chance;
use crate::kind::AnyKind;
use crate::request::list_options::{ListOptions, Selection, Version};
use crate::status::Status;

/// How often a client is told how far it is, if it asks for that: as in kube-apiserver.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long before its end a watch says how far it is, so that the next one need not begin
/// where this one did: as in kube-apiserver.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How long a watch may take that does not say so: half an hour at least, and up to twice as
/// much, so that the watches of one client do not all end at once.
const MIN_SECONDS: u64 = 1800;

/// How many objects of an initial list are handed out at once. Their lines are made as they are sent.
const INITIAL_STEP: usize = 64;

/// What a watcher is told.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An object is there, or is selected now.
    Added(Arc<Entry>),
    /// An object has changed.
    Modified(Arc<Entry>),
    /// An object is gone, or is not selected any more. The revision is that of its leaving.
    Deleted(Arc<Entry>, Revision),
    /// Everything up to here was delivered; whether it was the end of the initial list.
    Bookmark { revision: Revision, ends_initial_list: bool },
    /// The watch cannot go on.
    Error(Status),
}

/// A watch under way.
#[derive(Debug)]
pub(crate) struct Watching {
    kind: &'static dyn AnyKind,
    selection: Selection,
    initial: std::vec::IntoIter<Arc<Entry>>,
    sends_initial_end: bool,
    wants_bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    watch: Option<Watch>,
    /// Turns true when the server is about to stop.
    draining: watch::Receiver<bool>,
    /// Told instead of anything else: why there is no watch.
    error: Option<Status>,
}

impl Api {
    /// Starts a watch.
    pub(crate) async fn watch(
        &self,
        kind: &'static dyn AnyKind,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Watching, Status> {
        let begins_with_list = match (options.sends_initial_events, options.version) {
            (Some(sends), _) => sends,
            (None, Version::Newest | Version::Any) => true,
            (None, Version::NotOlderThan(_) | Version::Exact(_)) => false,
        };
        if let Version::NotOlderThan(revision) | Version::Exact(revision) = options.version {
            self.check_reached(revision)?;
        }
        let mut initial = Vec::new();
        let from = if begins_with_list {
            let everything = ListOptions {
                limit: None,
                after: None,
                version: Version::Newest,
                ..options.clone()
            };
            let listed = self.list(kind, namespace, &everything).await?;
            initial = listed.entries;
            listed.revision
        } else {
            match options.version {
                Version::NotOlderThan(revision) | Version::Exact(revision) => revision,
                Version::Newest | Version::Any => self.store.revision(),
            }
        };
        let (watch, error) = match self.store.watch(&prefix(kind, namespace), from) {
            Ok(watch) => (Some(watch), None),
            Err(error) => (None, Some(watch_failed(error))),
        };
        let now = Instant::now();
        let seconds =
            options.timeout_seconds.unwrap_or_else(|| MIN_SECONDS + chance::below(MIN_SECONDS));
        // A client may name any number; a year is as good as forever.
        let seconds = seconds.min(366 * 24 * 3600);
        let deadline = now + Duration::from_secs(seconds);
        Ok(Watching {
            kind,
            selection: options.selection.clone(),
            initial: initial.into_iter(),
            sends_initial_end: options.sends_initial_events == Some(true)
                && options.wants_bookmarks,
            wants_bookmarks: options.wants_bookmarks,
            next_bookmark: next_bookmark(now, deadline),
            deadline,
            watch,
            draining: self.draining.subscribe(),
            error,
        })
    }
}

impl Watching {
    /// The next events, at least one; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Vec<Event>> {
        let initial: Vec<Event> =
            self.initial.by_ref().take(INITIAL_STEP).map(Event::Added).collect();
        if !initial.is_empty() {
            return Some(initial);
        }
        if let Some(status) = self.error.take() {
            return Some(vec![Event::Error(status)]);
        }
        let revision = self.watch.as_ref()?.seen();
        if std::mem::take(&mut self.sends_initial_end) {
            return Some(vec![Event::Bookmark { revision, ends_initial_list: true }]);
        }
        loop {
            let watch = self.watch.as_mut()?;
            let woken = tokio::select! {
                // What is due goes before what has happened: where something happens all the
                // time, it would be put off for ever. The other way round nothing is: an end
                // is the end, and a bookmark is due once a minute.
                biased;
                () = sleep_until(self.deadline) => Woken::Deadline,
                // As if its time were up: the client goes on where this one ends.
                _ = self.draining.wait_for(|draining| *draining) => Woken::Deadline,
                () = sleep_until(self.next_bookmark), if self.wants_bookmarks => Woken::Bookmark,
                changes = watch.next() => Woken::Changes(changes),
            };
            match woken {
                Woken::Changes(Ok(changes)) => {
                    let events: Vec<Event> =
                        changes.iter().filter_map(|change| self.event(change)).collect();
                    if !events.is_empty() {
                        return Some(events);
                    }
                    // There may be many more that are not selected, and others who wait.
                    tokio::task::yield_now().await;
                }
                Woken::Changes(Err(StoreError::Closed)) => {
                    self.watch = None;
                    return None;
                }
                Woken::Changes(Err(error)) => {
                    self.watch = None;
                    return Some(vec![Event::Error(watch_failed(error))]);
                }
                Woken::Bookmark => {
                    self.next_bookmark = next_bookmark(Instant::now(), self.deadline);
                    let revision = watch.seen();
                    return Some(vec![Event::Bookmark { revision, ends_initial_list: false }]);
                }
                Woken::Deadline => {
                    self.watch = None;
                    return None;
                }
            }
        }
    }

    /// What a change means to whoever selects so.
    fn event(&self, change: &Change) -> Option<Event> {
        let is_selected = |entry: &&Arc<Entry>| self.selection.matches(self.kind, entry);
        let before = change.before.as_ref().filter(is_selected);
        let after = change.after.as_ref().filter(is_selected);
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(Event::Added(after.clone())),
            (Some(_), Some(after)) => Some(Event::Modified(after.clone())),
            (Some(before), None) => Some(Event::Deleted(before.clone(), change.revision)),
        }
    }
}

/// When a client is told next how far it is.
fn next_bookmark(now: Instant, deadline: Instant) -> Instant {
    let regular = now + BOOKMARK_EVERY;
    match deadline.checked_sub(LAST_BOOKMARK) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}

enum Woken {
    Changes(Result<Vec<Arc<Change>>, StoreError>),
    Bookmark,
    Deadline,
}

fn watch_failed(error: StoreError) -> Status {
    match error {
        StoreError::Compacted { asked, oldest } => {
            Status::expired(format!("too old resource version: {asked} ({oldest})"))
        }
        other => store_failed(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stint_api::feature_gates::FeatureGates;
    use stint_store::{Options, Store, Write};
    use tokio::time::advance;

    use super::*;
    use crate::api::{Config, key};
    use crate::clock::Clock;
    use crate::kinds;
    use crate::log::NoLogs;
    use crate::request::query::Query;

    fn api() -> Api {
        let config = Config {
            gates: FeatureGates::default(),
            clock: Clock::system(),
            logs: Arc::new(NoLogs),
            tracks_owners: true,
        };
        Api::new(Store::in_memory(Options::default()), config)
    }

    async fn watch(api: &Api, query: &str) -> Watching {
        let kind = kinds::find("", "v1", "configmaps").expect("there are config maps");
        let options = ListOptions::read(&Query::parse(query), kind, true).expect(query);
        api.watch(kind, None, &options).await.expect(query)
    }

    async fn make(api: &Api, name: &str) {
        let kind = kinds::find("", "v1", "configmaps").expect("there are config maps");
        let value = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let write = Write::create(key(kind, Some("default"), name), value);
        api.store.write(write).await.expect("written");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_is_not_put_off_by_what_happens() {
        let api = api();
        let mut watching = watch(&api, "allowWatchBookmarks=true&timeoutSeconds=100").await;
        make(&api, "a").await;
        advance(BOOKMARK_EVERY).await;
        let events = watching.next().await.expect("a bookmark");
        assert!(matches!(events[..], [Event::Bookmark { .. }]), "{events:?}");
        let events = watching.next().await.expect("a change");
        assert!(matches!(events[..], [Event::Added(_)]), "{events:?}");
        make(&api, "b").await;
        advance(Duration::from_secs(40)).await;
        assert!(watching.next().await.is_none(), "its time is over");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_bookmark_comes_before_the_end() {
        let api = api();
        let mut watching = watch(&api, "allowWatchBookmarks=true&timeoutSeconds=10").await;
        let start = Instant::now();
        let events = watching.next().await.expect("a bookmark");
        assert!(matches!(events[..], [Event::Bookmark { .. }]), "{events:?}");
        assert_eq!(start.elapsed(), Duration::from_secs(8));
        assert!(watching.next().await.is_none());
        assert_eq!(start.elapsed(), Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn who_falls_behind_is_told_so() {
        let api = api();
        let mut watching = watch(&api, "resourceVersion=0").await;
        make(&api, "a").await;
        make(&api, "b").await;
        let newest = api.store.revision();
        api.store.compact(newest).await.expect("compacted");
        let events = watching.next().await.expect("an error");
        assert!(
            matches!(&events[..], [Event::Error(status)] if status.code() == 410),
            "{events:?}"
        );
        assert!(watching.next().await.is_none());
    }
}
