//! Namespaces: what each of them has from its beginning, and how they end.
//!
//! ```text
//!   namespaces ────────┐
//!   serviceaccounts ───┼─▶ queue of names ─▶ Active: provision
//!   configmaps ────────┘                     Terminating: empty ─▶ wait ─▶ empty … finalize
//! ```

mod conditions;
mod contents;
mod emptying;
mod provision;

use std::collections::HashSet;
use std::convert::Infallible;

use futures_util::StreamExt;
use futures_util::stream::{FuturesUnordered, select_all};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ObjectMeta};
use std::time::Instant;
use stint_apiserver::Clock;
use stint_apiserver::kinds;
use tokio::sync::Semaphore;
use tracing::warn;

use crate::feed::{News, feed};
use crate::pace::reached;
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;

/// How many namespaces are worked on at once. Each may have 64 deletions under way.
const AT_ONCE: usize = 4;

/// What the work on a namespace needs.
struct Tender {
    client: Client,
    ca_certificate: String,
    clock: Clock,
    places: Semaphore,
}

/// Whose news it is.
#[derive(Clone, Copy)]
enum Source {
    Namespaces,
    /// Something that every namespace has.
    Belonging,
}

/// Keeps the namespaces in order, for ever.
pub(crate) async fn run(client: Client, ca_certificate: String, clock: Clock) -> Infallible {
    let news = |plural, name: Option<&str>| {
        let kind = kinds::find("", "v1", plural).expect("the server serves it");
        let selector = name.map(|name| format!("metadata.name={name}"));
        feed(resource::api(&client, kind.names(), None), selector.as_deref())
    };
    let of = |source| move |news| (source, news);
    let mut feeds = select_all([
        news("namespaces", None).map(of(Source::Namespaces)).boxed(),
        news("serviceaccounts", Some(provision::SERVICE_ACCOUNT))
            .map(of(Source::Belonging))
            .boxed(),
        news("configmaps", Some(provision::CA_CONFIG_MAP)).map(of(Source::Belonging)).boxed(),
    ]);
    let places = Semaphore::new(AT_ONCE);
    let tender = Tender { client: client.clone(), ca_certificate, clock, places };
    let (mut queue, mut known) = (Queue::default(), Known::default());
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some((source, news)) = feeds.next() => known.note(source, news, &mut queue),
            Some((name, settled)) = works.next() => queue.settle(name, settled, Instant::now()),
            () = reached(queue.due_at()) => {}
        }
        while let Some(name) = queue.take(Instant::now()) {
            works.push(async {
                let settled = tender.tend(&name).await;
                (name, settled)
            });
        }
    }
}

/// The names of the namespaces there are.
#[derive(Default)]
struct Known {
    names: HashSet<String>,
}

impl Known {
    /// Asks for work on whatever namespace the news may matter to.
    fn note(&mut self, source: Source, news: News, queue: &mut Queue<String>) {
        match (source, news) {
            (Source::Namespaces, News::Began) => self.names.clear(),
            (Source::Namespaces, News::Complete) => {}
            (Source::Namespaces, News::Seen(meta)) => {
                let name = text(meta.name);
                queue.add(name.clone());
                self.names.insert(name);
            }
            (Source::Namespaces, News::Gone(meta)) => {
                self.names.remove(&text(meta.name));
            }
            (Source::Belonging, News::Began) => {}
            (Source::Belonging, News::Seen(meta) | News::Gone(meta)) => {
                self.note_belonging(meta, queue);
            }
            // Some may have gone while nobody looked.
            (Source::Belonging, News::Complete) => {
                self.names.iter().for_each(|name| queue.add(name.clone()));
            }
        }
    }

    fn note_belonging(&self, meta: ObjectMeta, queue: &mut Queue<String>) {
        let namespace = text(meta.namespace);
        if self.names.contains(&namespace) {
            queue.add(namespace);
        }
    }
}

fn text(field: Option<String>) -> String {
    field.unwrap_or_default()
}

impl Tender {
    /// Does what there is to do for a namespace.
    async fn tend(&self, name: &str) -> Settled {
        match self.try_to_tend(name).await {
            Ok(settled) => settled,
            Err(error) => {
                match Refusal::of(&error) {
                    Refusal::Conflict | Refusal::AlreadyExists | Refusal::NotFound => {}
                    Refusal::Terminating | Refusal::Expired | Refusal::Other => {
                        warn!(
                            namespace = name,
                            error = words(&error),
                            "the namespace is tried again later"
                        );
                    }
                }
                Settled::Failed
            }
        }
    }

    async fn try_to_tend(&self, name: &str) -> kube::Result<Settled> {
        let place = self.places.acquire().await.expect("it is never closed");
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let Some(namespace) = namespaces.get_opt(name).await? else { return Ok(Settled::Done) };
        if namespace.metadata.deletion_timestamp.is_none() {
            provision::provision(&self.client, name, &self.ca_certificate).await?;
            return Ok(Settled::Done);
        }
        let remaining = emptying::empty(&self.client, namespace, &self.clock).await?;
        // A namespace that waits for its content keeps no other from being worked on.
        drop(place);
        match remaining {
            None => Ok(Settled::Done),
            Some(remaining) => {
                contents::changed(&self.client, name, &remaining).await;
                Ok(Settled::Again)
            }
        }
    }
}
