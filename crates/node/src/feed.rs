//! The objects of a list, and then as they change, without end.
//!
//! # Guarantees
//!
//! - A list is told whole: `Began`, its items as `Seen`, `Complete`. Whatever was known before
//!   and is not among them is gone. A list that breaks off is begun anew.
//! - After it every change is told once and in order, until the next `Began`.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// How long a watch is asked to last, in seconds.
const WATCH_SECONDS: u64 = 1500;

/// How long nothing may come, not even a bookmark (they come every minute).
const SILENCE: Duration = Duration::from_secs(180);

/// The pause after a failure, doubled with each in a row up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The annotation of the bookmark that ends a list.
const LIST_ENDS: &str = "k8s.io/initial-events-end";

/// Something that happened.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// A list begins.
    Began,
    /// An object is there, in this form.
    Seen(Box<T>),
    /// It is gone; this was its last form.
    Gone(Box<T>),
    /// The list is whole.
    Complete,
}

/// What can be fed.
pub(crate) trait Fed: Clone + DeserializeOwned + Send + 'static {
    fn version(&self) -> Option<&str>;
}

impl Fed for k8s_openapi::api::core::v1::Pod {
    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl Fed for k8s_openapi::api::core::v1::Node {
    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl Fed for k8s_openapi::api::discovery::v1::EndpointSlice {
    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

/// The news of a list. `path` has a query, or ends with its question mark.
pub(crate) fn feed<T: Fed>(client: Client, path: String) -> BoxStream<'static, News<T>> {
    let feed = Feed { client, path, place: Place::Nowhere, watch: None, failures: 0 };
    stream::unfold(feed, |mut feed| async move { Some((feed.next().await, feed)) }).boxed()
}

type Watch<T> = BoxStream<'static, Result<WatchEvent<T>, kube::Error>>;

struct Feed<T> {
    client: Client,
    path: String,
    place: Place,
    watch: Option<Watch<T>>,
    /// How often in a row the watch was lost before it told anything.
    failures: u32,
}

/// How far the feed is.
#[derive(Debug)]
enum Place {
    /// Nothing is known.
    Nowhere,
    /// In the midst of the list.
    Listing,
    /// Everything up to this version was told.
    At(String),
}

impl<T: Fed> Feed<T> {
    async fn next(&mut self) -> News<T> {
        loop {
            let Some(watch) = &mut self.watch else {
                if let Some(news) = self.connect().await {
                    return news;
                }
                continue;
            };
            match tokio::time::timeout(SILENCE, watch.next()).await {
                Ok(Some(Ok(event))) => {
                    if let Some(news) = self.read(event) {
                        return news;
                    }
                }
                Ok(Some(Err(error))) => self.lose(Some(error.to_string())),
                Ok(None) => self.lose(None),
                Err(_) => self.lose(Some("the watch fell silent".to_owned())),
            }
        }
    }

    /// Begins a watch, after a while if the one before was of no use.
    async fn connect(&mut self) -> Option<News<T>> {
        if self.failures > 0 {
            let pause = FIRST_PAUSE.saturating_mul(1 << (self.failures - 1).min(10));
            tokio::time::sleep_until(Instant::now() + pause.min(LONGEST_PAUSE)).await;
        }
        let mut query =
            format!("&watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}");
        let is_listing = match &self.place {
            Place::At(version) => {
                query.push_str(&format!("&resourceVersion={version}"));
                false
            }
            Place::Nowhere | Place::Listing => {
                query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
                true
            }
        };
        let request = Request::get(format!("{}{query}", self.path))
            .body(Vec::new())
            .expect("paths are made of names that the API has accepted");
        match tokio::time::timeout(SILENCE, self.client.request_events::<T>(request)).await {
            Ok(Ok(events)) => self.watch = Some(events.boxed()),
            Ok(Err(error)) => self.refuse(error),
            Err(_) => self.lose(Some("no answer in time".to_owned())),
        }
        if self.watch.is_some() && is_listing {
            self.place = Place::Listing;
            return Some(News::Began);
        }
        None
    }

    fn refuse(&mut self, error: kube::Error) {
        match error {
            kube::Error::Api(status) if status.code == 410 => {
                self.place = Place::Nowhere;
                self.lose(None);
            }
            error => self.lose(Some(error.to_string())),
        }
    }

    fn lose(&mut self, why: Option<String>) {
        self.watch = None;
        self.failures = self.failures.saturating_add(1);
        if let Some(why) = why {
            tracing::warn!(path = self.path, why, "the watch was lost, beginning another");
        }
    }

    fn read(&mut self, event: WatchEvent<T>) -> Option<News<T>> {
        if !matches!(event, WatchEvent::Error(_)) {
            self.failures = 0;
        }
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.reach(object.version());
                Some(News::Seen(Box::new(object)))
            }
            WatchEvent::Deleted(object) => {
                self.reach(object.version());
                Some(News::Gone(Box::new(object)))
            }
            WatchEvent::Bookmark(bookmark) => {
                let ends_list = bookmark.metadata.annotations.contains_key(LIST_ENDS);
                let was_listing = matches!(self.place, Place::Listing);
                if ends_list || !was_listing {
                    self.place = Place::At(bookmark.metadata.resource_version);
                }
                (ends_list && was_listing).then_some(News::Complete)
            }
            WatchEvent::Error(status) => {
                self.refuse(kube::Error::Api(status));
                None
            }
        }
    }

    /// Moves on to a version. The objects of a list come in the order of their names, so their
    /// versions say nothing.
    fn reach(&mut self, version: Option<&str>) {
        if let (Place::At(place), Some(version)) = (&mut self.place, version) {
            version.clone_into(place);
        }
    }
}
