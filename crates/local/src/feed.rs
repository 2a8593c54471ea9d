//! What happens to the objects of a kind, without end: a list and a watch, and both again
//! whenever the watch is lost. Only metadata is read.
//!
//! ```text
//!            ┌──────────────── 410, or the list was cut off ────────────────┐
//!            ▼                                                              │
//!   Began ─▶ Seen* ─▶ Complete ─▶ (Seen | Gone)* ─ the watch ends ─▶ watch again, from there
//! ```
//!
//! # Guarantees
//!
//! - Between `Began` and `Complete` every object there is is seen. Whatever was known before
//!   and is not among them is gone.
//! - After `Complete` every change is told, once and in order, until the next `Began`.

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use tracing::warn;

use crate::pace;
use crate::refusal::Refusal;

/// The annotation of the bookmark that ends the initial list of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Something that happened.
#[derive(Debug)]
pub(crate) enum News {
    /// A list begins.
    Began,
    /// An object is there, or has changed.
    Seen(ObjectMeta),
    /// An object is gone. This is its last form.
    Gone(ObjectMeta),
    /// The list is complete.
    Complete,
}

/// The news of a kind, or of the part of it that a field selector names.
pub(crate) fn feed(api: Api<DynamicObject>, fields: Option<&str>) -> BoxStream<'static, News> {
    let feed = Feed {
        api,
        fields: fields.map(str::to_owned),
        place: Place::Nowhere,
        watch: None,
        failures: 0,
    };
    stream::unfold(feed, |mut feed| async move { Some((feed.next().await, feed)) }).boxed()
}

type Watch = BoxStream<'static, kube::Result<WatchEvent<PartialObjectMeta<DynamicObject>>>>;

struct Feed {
    api: Api<DynamicObject>,
    fields: Option<String>,
    place: Place,
    watch: Option<Watch>,
    /// How often in a row the watch was lost before it told anything.
    failures: u32,
}

/// How far the feed is.
enum Place {
    /// Nothing is known.
    Nowhere,
    /// In the midst of the list.
    Listing,
    /// Everything up to this version was told.
    At(String),
}

impl Feed {
    async fn next(&mut self) -> News {
        loop {
            if self.watch.is_none() {
                if let Some(news) = self.connect().await {
                    return news;
                }
                continue;
            }
            let watch = self.watch.as_mut().expect("it was just looked at");
            match watch.next().await {
                Some(Ok(event)) => {
                    if let Some(news) = self.read(event) {
                        return news;
                    }
                }
                Some(Err(error)) => self.lose(Some(error)),
                None => self.lose(None),
            }
        }
    }

    /// Begins a watch, after a while if the one before was of no use.
    async fn connect(&mut self) -> Option<News> {
        if self.failures > 0 {
            tokio::time::sleep(pace::delay(self.failures)).await;
        }
        let mut params = WatchParams::default();
        params.field_selector.clone_from(&self.fields);
        let version = match &self.place {
            Place::At(version) => version.clone(),
            Place::Nowhere | Place::Listing => {
                params = params.initial_events();
                self.place = Place::Nowhere;
                String::new()
            }
        };
        match self.api.watch_metadata(&params, &version).await {
            Ok(watch) => self.watch = Some(watch.into_stream().boxed()),
            Err(error) => self.lose(Some(error)),
        }
        if self.watch.is_some() && matches!(self.place, Place::Nowhere) {
            self.place = Place::Listing;
            return Some(News::Began);
        }
        None
    }

    fn lose(&mut self, error: Option<kube::Error>) {
        self.watch = None;
        self.failures = self.failures.saturating_add(1);
        let Some(error) = error else { return };
        if Refusal::of(&error) == Refusal::Expired {
            self.place = Place::Nowhere;
        } else {
            warn!(kind = self.api.resource_url(), %error, "the watch was lost");
        }
    }

    fn read(&mut self, event: WatchEvent<PartialObjectMeta<DynamicObject>>) -> Option<News> {
        if !matches!(event, WatchEvent::Error(_)) {
            self.failures = 0;
        }
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.reach(object.metadata.resource_version.as_deref());
                Some(News::Seen(object.metadata))
            }
            WatchEvent::Deleted(object) => {
                self.reach(object.metadata.resource_version.as_deref());
                Some(News::Gone(object.metadata))
            }
            WatchEvent::Bookmark(bookmark) => {
                let ends_list = bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END);
                let was_listing = matches!(self.place, Place::Listing);
                if ends_list || !was_listing {
                    self.place = Place::At(bookmark.metadata.resource_version);
                }
                (ends_list && was_listing).then_some(News::Complete)
            }
            WatchEvent::Error(status) => {
                self.lose(Some(kube::Error::Api(status)));
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
