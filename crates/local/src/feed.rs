//! What happens to the objects of a kind, without end: a list and a watch, and both again
//! whenever the watch is lost. Who asks for no more reads only metadata.
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

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::pace;
use crate::refusal::{Refusal, words};

/// The annotation of the bookmark that ends the initial list of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Something that happened.
#[derive(Debug)]
pub(crate) enum News<K = ObjectMeta> {
    /// A list begins.
    Began,
    /// An object is there, or has changed.
    Seen(K),
    /// An object is gone. This is its last form.
    Gone(K),
    /// The list is complete.
    Complete,
}

impl<A> News<A> {
    /// The same of something else.
    pub(crate) fn map<B>(self, of: impl FnOnce(A) -> B) -> News<B> {
        match self {
            News::Began => News::Began,
            News::Seen(object) => News::Seen(of(object)),
            News::Gone(object) => News::Gone(of(object)),
            News::Complete => News::Complete,
        }
    }
}

/// The news of a kind, or of the part of it that a field selector names: only metadata.
pub(crate) fn feed(api: Api<DynamicObject>, fields: Option<&str>) -> BoxStream<'static, News> {
    let kind = api.resource_url().to_owned();
    let open = move |params: WatchParams, version: String| {
        let api = api.clone();
        let opening = async move {
            let watch = api.watch_metadata(&params, &version).await?;
            Ok(watch.into_stream().boxed())
        };
        opening.boxed()
    };
    let news = follow(kind, fields, Box::new(open));
    news.map(|news| news.map(|object| object.metadata)).boxed()
}

/// The news of a kind, as far as `K` reads it.
pub(crate) fn whole<K>(api: Api<K>) -> BoxStream<'static, News<K>>
where
    K: Clone + Debug + DeserializeOwned + Resource + Send + 'static,
{
    let kind = api.resource_url().to_owned();
    let open = move |params: WatchParams, version: String| {
        let api = api.clone();
        let opening = async move {
            let watch = api.watch(&params, &version).await?;
            Ok(watch.into_stream().boxed())
        };
        opening.boxed()
    };
    follow(kind, None, Box::new(open))
}

fn follow<K: Resource + Send + 'static>(
    kind: String,
    fields: Option<&str>,
    open: Open<K>,
) -> BoxStream<'static, News<K>> {
    let feed = Feed {
        kind,
        open,
        fields: fields.map(str::to_owned),
        place: Place::Nowhere,
        watch: None,
        failures: 0,
    };
    stream::unfold(feed, |mut feed| async move { Some((feed.next().await, feed)) }).boxed()
}

type Watch<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Begins a watch, from a version if there is one.
type Open<K> = Box<dyn Fn(WatchParams, String) -> Opening<K> + Send + Sync>;
type Opening<K> = BoxFuture<'static, kube::Result<Watch<K>>>;

struct Feed<K> {
    kind: String,
    open: Open<K>,
    fields: Option<String>,
    place: Place,
    watch: Option<Watch<K>>,
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

impl<K: Resource> Feed<K> {
    async fn next(&mut self) -> News<K> {
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
    async fn connect(&mut self) -> Option<News<K>> {
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
        match (self.open)(params, version).await {
            Ok(watch) => self.watch = Some(watch),
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
            warn!(kind = self.kind, error = words(&error), "the watch was lost");
        }
    }

    fn read(&mut self, event: WatchEvent<K>) -> Option<News<K>> {
        if !matches!(event, WatchEvent::Error(_)) {
            self.failures = 0;
        }
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.reach(object.meta().resource_version.as_deref());
                Some(News::Seen(object))
            }
            WatchEvent::Deleted(object) => {
                self.reach(object.meta().resource_version.as_deref());
                Some(News::Gone(object))
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
