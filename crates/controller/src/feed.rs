//! The objects of a kind, as a list and then as they change.
//!
//! ```text
//!   list (as a stream where the server can) ─▶ watch ─▶ watch from where it ended ─▶ …
//!        ▲                                       │
//!        └──────────── 410: too far behind ──────┘
//! ```
//!
//! # Guarantees
//!
//! - A list is told whole: `Began`, its items, `Listed` with its version. One that breaks off is
//!   begun anew.
//! - After it every change is told once and in order, until the next `Began`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;
use stint_ledger::op::Outcome;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::answer::{Failure, Weather, send};
use crate::calls::Page;
use crate::health::Health;
use crate::job::{SeenJob, WireJob};
use crate::odd::{Lenient, Odd, Plain, Wire};
use crate::path;
use crate::pod::{SeenPod, WirePod};
use crate::words::{Word, told};

/// How many items of a list are asked for at once, where they do not come as a stream.
const PAGE: usize = 500;

/// How many changes are told at once: enough to make a message cheap, few enough that the
/// first of them does not wait.
const BATCH: usize = 128;

/// How long a watch is asked to last, in seconds: half an hour at most is what servers give.
const WATCH_SECONDS: u64 = 1500;

/// How long nothing may come, not even a bookmark (they come every minute), before a watch
/// counts as dead.
const SILENCE: Duration = Duration::from_secs(180);

/// How long a list that comes as a stream may take to go on: a server that does not know such
/// lists would never say that it has ended.
const LIST_SILENCE: Duration = Duration::from_secs(30);

/// How long a page of a list may take.
const PAGE_TIME: Duration = Duration::from_secs(65);

/// The pause after a failure, doubled with each in a row up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A watch that lasts so long, or tells something new, has been worth it: the next failure is the
/// first in a row.
const WORTHWHILE: Duration = Duration::from_secs(5);

/// The annotation of the bookmark that ends a list.
const LIST_ENDS: &str = "k8s.io/initial-events-end";

/// What is told.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// A list begins.
    Began,
    /// Items of it, and what has become of them before its end.
    Items(Vec<Change<T>>),
    /// It was whole, as of this version.
    Listed(u64),
    /// What has changed since, in order.
    Changes(Vec<Change<T>>),
}

/// What has changed.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// An object is there, in this form.
    Seen(T),
    /// It is gone; this was its last form.
    Gone(T),
    /// Nothing else has changed up to this version.
    Reached(u64),
}

/// A kind that can be fed.
pub(crate) trait Fed: Clone + DeserializeOwned + Send + 'static {
    /// What is told of an object.
    type Seen: Send + 'static;

    fn version(&self) -> u64;

    fn read(self, finalizer: &str) -> Self::Seen;

    /// What can be told of one that cannot be read.
    fn read_odd(odd: Odd) -> Option<Self::Seen>;
}

impl Fed for WireJob {
    type Seen = SeenJob;

    fn version(&self) -> u64 {
        WireJob::version(self)
    }

    fn read(self, _: &str) -> SeenJob {
        SeenJob::read(&self)
    }

    fn read_odd(odd: Odd) -> Option<SeenJob> {
        Some(odd.into())
    }
}

impl Fed for WirePod {
    type Seen = SeenPod;

    fn version(&self) -> u64 {
        WirePod::version(self).unwrap_or(0)
    }

    fn read(self, finalizer: &str) -> SeenPod {
        WirePod::read(self, finalizer)
    }

    fn read_odd(_: Odd) -> Option<SeenPod> {
        None
    }
}

/// Where the objects of a kind come from.
pub(crate) struct Feed<K: Fed> {
    pub(crate) client: Client,
    /// The list in the API.
    pub(crate) path: String,
    pub(crate) finalizer: Arc<str>,
    /// Which one it is, for whoever listens to several.
    pub(crate) scope: usize,
    pub(crate) listener: mpsc::Sender<(usize, News<K::Seen>)>,
    /// Where it says what is in its way.
    pub(crate) health: Health,
}

/// Why a feed has to begin a step anew.
#[derive(Debug)]
enum Stop {
    /// Nobody listens any more.
    Unheard,
    /// It is too far behind: list again.
    Expired,
    /// The server does not send lists as streams.
    NoStreams,
    /// Something failed; the server may have said when to ask again.
    Failed(String, Option<Duration>),
    /// An object cannot be read.
    Odd(String),
}

/// Where it is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The version that everything has been told up to.
    version: Option<u64>,
    has_no_streams: bool,
    /// Whether an object was met that cannot be read.
    has_odd: bool,
}

impl<K: Fed> Feed<K> {
    /// Tells until nobody listens any more.
    pub(crate) async fn run(self) {
        let mut place = Place::default();
        let mut failures = 0_u32;
        loop {
            let (began, before) = (Instant::now(), place.version);
            let stop = self.go_on(&mut place).await.err();
            let has_lasted = began.elapsed() >= WORTHWHILE;
            // Not so a list: one that is followed by a failure each time must not be asked for
            // again and again.
            let has_got_on = before.is_some() && place.version > before;
            match stop {
                Some(Stop::Unheard) => return,
                // Watches end; that is no failure unless they do so at once.
                None if has_lasted => {
                    failures = 0;
                    continue;
                }
                None => {}
                Some(Stop::Expired) => {
                    tracing::debug!(path = self.path, "too far behind, listing again");
                    place.version = None;
                }
                Some(Stop::NoStreams) => {
                    place.has_no_streams = true;
                    continue;
                }
                Some(Stop::Odd(why)) if !place.has_odd => {
                    tracing::warn!(path = self.path, why, "an object cannot be read");
                    place.has_odd = true;
                    continue;
                }
                Some(Stop::Odd(why)) => {
                    tracing::warn!(path = self.path, why, "cannot watch, trying again");
                }
                Some(Stop::Failed(why, asked)) => {
                    if self.health.trouble(&self.path, &why) {
                        tracing::warn!(path = self.path, why, "cannot watch, trying again");
                    }
                    tokio::time::sleep(asked.unwrap_or_default().min(LONGEST_PAUSE)).await;
                }
            }
            failures = if has_lasted || has_got_on { 1 } else { failures.saturating_add(1) };
            let pause = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(10));
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
    }

    async fn go_on(&self, place: &mut Place) -> Result<(), Stop> {
        if place.version.is_none() && place.has_no_streams {
            self.list(place).await?;
        }
        let mut query =
            format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}");
        match place.version {
            Some(version) => query.push_str(&format!("&resourceVersion={version}")),
            None => {
                query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
                self.tell(News::Began).await?;
            }
        }
        let request = Request::get(format!("{}?{query}", self.path))
            .body(Vec::new())
            .expect("paths are made of names that the API has accepted");
        match place.has_odd {
            false => self.watch::<Plain<K>>(request, place).await,
            true => self.watch::<Lenient<K>>(request, place).await,
        }
    }

    async fn watch<W: Wire<K>>(
        &self,
        request: Request<Vec<u8>>,
        place: &mut Place,
    ) -> Result<(), Stop> {
        let asked = tokio::time::timeout(LIST_SILENCE, self.client.request_events::<W>(request));
        let events = match asked.await {
            Err(_) => return Err(Stop::failed("no answer in time")),
            Ok(Err(error)) => return Err(stop(error, place)),
            Ok(Ok(events)) => events,
        };
        let events = std::pin::pin!(events);
        self.follow(events.ready_chunks(BATCH), place).await
    }

    /// Tells what a watch says until it ends.
    async fn follow<W: Wire<K>, E>(
        &self,
        mut events: impl Stream<Item = Vec<Result<WatchEvent<W>, E>>> + Unpin,
        place: &mut Place,
    ) -> Result<(), Stop>
    where
        kube::Error: From<E>,
    {
        loop {
            let patience = if place.version.is_some() { SILENCE } else { LIST_SILENCE };
            let next = match tokio::time::timeout(patience, events.next()).await {
                Ok(next) => next,
                Err(_) if place.version.is_none() => return Err(Stop::NoStreams),
                Err(_) => return Err(Stop::failed("the watch fell silent")),
            };
            let Some(batch) = next else { break };
            self.tell_batch(batch, place).await?;
        }
        match place.version {
            Some(_) => Ok(()),
            None => Err(Stop::failed("the list broke off")),
        }
    }

    async fn tell_batch<W: Wire<K>, E>(
        &self,
        batch: Vec<Result<WatchEvent<W>, E>>,
        place: &mut Place,
    ) -> Result<(), Stop>
    where
        kube::Error: From<E>,
    {
        let (mut items, mut changes) = (Vec::new(), Vec::new());
        let mut failure = None;
        let mut reached = place.version;
        let mut listed = None;
        for event in batch {
            match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    let (version, seen) = self.open(object);
                    let told = if reached.is_some() { &mut changes } else { &mut items };
                    told.push(seen.map_or(Change::Reached(version), Change::Seen));
                    reached = reached.map(|_| version);
                }
                Ok(WatchEvent::Deleted(object)) => {
                    let (version, gone) = self.open(object);
                    let told = if reached.is_some() { &mut changes } else { &mut items };
                    told.push(gone.map_or(Change::Reached(version), Change::Gone));
                    reached = reached.map(|_| version);
                }
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    let version = path::version(Some(&bookmark.metadata.resource_version));
                    if reached.is_some() {
                        changes.push(Change::Reached(version));
                        reached = Some(version);
                    } else if bookmark.metadata.annotations.contains_key(LIST_ENDS) {
                        listed = Some(version);
                        reached = Some(version);
                    }
                }
                Ok(WatchEvent::Error(status)) => {
                    failure = Some(stop(kube::Error::Api(status), place));
                    break;
                }
                Err(error) => {
                    failure = Some(stop(kube::Error::from(error), place));
                    break;
                }
            }
        }
        if !items.is_empty() {
            self.tell(News::Items(items)).await?;
        }
        if let Some(version) = listed {
            self.tell(News::Listed(version)).await?;
        }
        if !changes.is_empty() {
            self.tell(News::Changes(changes)).await?;
        }
        if failure.is_none() {
            self.goes_well();
        }
        // Only now: what was not told has not been reached.
        place.version = reached;
        failure.map_or(Ok(()), Err)
    }

    /// Lists page by page.
    async fn list(&self, place: &mut Place) -> Result<(), Stop> {
        self.tell(News::Began).await?;
        let mut token = String::new();
        loop {
            let body = self.page(&token).await?;
            let (items, meta) = match serde_json::from_slice::<Page<Plain<K>>>(&body) {
                Ok(page) => (self.open_all(page.items), page.metadata),
                Err(_) => {
                    let page: Page<Lenient<K>> =
                        serde_json::from_slice(&body).map_err(Stop::failed)?;
                    (self.open_all(page.items), page.metadata)
                }
            };
            self.tell(News::Items(items)).await?;
            token = meta.r#continue.unwrap_or_default();
            if token.is_empty() {
                let version = path::version(meta.resource_version.as_deref());
                self.tell(News::Listed(version)).await?;
                place.version = Some(version);
                self.goes_well();
                return Ok(());
            }
        }
    }

    fn goes_well(&self) {
        if self.health.resolved(&self.path) {
            tracing::info!(path = self.path, "watching again");
        }
    }

    /// An object with its version, if anything can be told of it.
    fn open<W: Wire<K>>(&self, object: W) -> (u64, Option<K::Seen>) {
        match object.open() {
            Ok(object) => (object.version(), Some(object.read(&self.finalizer))),
            Err(odd) => {
                let meta = &odd.metadata;
                let (namespace, name) = (&*meta.namespace, &*meta.name);
                tracing::warn!(path = self.path, namespace, name, "this object cannot be read");
                (odd.version(), K::read_odd(*odd))
            }
        }
    }

    fn open_all<W: Wire<K>>(&self, objects: Vec<W>) -> Vec<Change<K::Seen>> {
        let seen = objects.into_iter().filter_map(|object| self.open(object).1);
        seen.map(Change::Seen).collect()
    }

    async fn page(&self, token: &str) -> Result<Bytes, Stop> {
        let request = Request::get(path::page(&self.path, PAGE, token))
            .body(Body::empty())
            .expect("paths are made of names that the API has accepted");
        send(&self.client, request, PAGE_TIME).await.map_err(|failure| match failure {
            Failure::Refused(refusal, weather) => {
                let asked = match weather {
                    Weather::Busy(asked) => asked,
                    Weather::Fine | Weather::Trouble => None,
                };
                Stop::Failed(Word(&Outcome::Refused(refusal)).to_string(), asked)
            }
            Failure::Lost(why) => Stop::Failed(why, None),
        })
    }

    async fn tell(&self, news: News<K::Seen>) -> Result<(), Stop> {
        self.listener.send((self.scope, news)).await.map_err(|_| Stop::Unheard)
    }
}

/// What an error means for a feed.
fn stop(error: kube::Error, place: &Place) -> Stop {
    match error {
        kube::Error::Api(status) if status.code == 410 => Stop::Expired,
        // Before 1.34, or with the feature turned off.
        kube::Error::Api(status) if place.version.is_none() && matches!(status.code, 400 | 422) => {
            Stop::NoStreams
        }
        // What is neither an event nor a Status is taken for a Status of which nothing is known.
        kube::Error::Api(status) if status.code == 0 => {
            Stop::Odd("an event does not have the form that it should".to_owned())
        }
        kube::Error::Api(status) => {
            let asked = status.details.as_ref().map(|details| details.retry_after_seconds);
            let asked = asked.filter(|seconds| *seconds > 0);
            let pause = asked.map(|seconds| Duration::from_secs(seconds.into()));
            Stop::Failed(refusal(status.code, &status.message), pause)
        }
        kube::Error::SerdeError(error) => Stop::Odd(error.to_string()),
        error => Stop::failed(told(&error)),
    }
}

/// The server's words, and what to do about them.
fn refusal(code: u16, message: &str) -> String {
    let remedy = match code {
        401 => "; renew the token or the certificate that this controller uses",
        403 => "; grant it: the rights that are needed are in deploy/",
        _ => "",
    };
    format!("{message} ({code}){remedy}")
}

impl Stop {
    fn failed(why: impl ToString) -> Self {
        Stop::Failed(why.to_string(), None)
    }
}

#[cfg(test)]
mod tests;
