//! Counts the calls of the controller by what they are and how they were answered.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::time::Instant;
use tower_service::Service;

/// The calls so far.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    counts: Arc<Mutex<BTreeMap<(String, u16), usize>>>,
    statuses: Arc<Mutex<Vec<Instant>>>,
}

impl Tally {
    /// The service with its calls counted.
    pub(crate) fn around<S>(&self, inner: S) -> Tallied<S> {
        Tallied { tally: self.clone(), inner }
    }

    /// All calls by what they are: `PATCH pods 200`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let counts = self.counts.lock().expect("nobody panics here");
        counts.iter().map(|((what, code), count)| format!("{what} {code}: {count}")).collect()
    }

    /// How many calls were answered with this code.
    pub(crate) fn answered(&self, wanted: &str, code: u16) -> usize {
        let counts = self.counts.lock().expect("nobody panics here");
        counts.get(&(wanted.to_owned(), code)).copied().unwrap_or(0)
    }

    /// How many calls there were, watches aside.
    pub(crate) fn total(&self) -> usize {
        let counts = self.counts.lock().expect("nobody panics here");
        let is_call = |((what, _), _): &(&(String, u16), &usize)| !what.starts_with("WATCH");
        counts.iter().filter(is_call).map(|(_, count)| count).sum()
    }

    /// When statuses of Jobs were written.
    pub(crate) fn status_times(&self) -> Vec<Instant> {
        self.statuses.lock().expect("nobody panics here").clone()
    }
}

/// What a request is: `POST pods`, `PATCH jobs/status`, `WATCH jobs`.
pub(crate) fn what<B>(request: &Request<B>) -> String {
    let path = request.uri().path();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let at = parts.iter().position(|part| *part == "namespaces");
    let rest: Vec<&str> = match at {
        Some(at) => parts[at + 2..].to_vec(),
        None => parts[parts.len() - 1..].to_vec(),
    };
    let resource = match rest[..] {
        [kind, _, sub] => format!("{kind}/{sub}"),
        [kind, ..] => kind.to_owned(),
        [] => "namespaces".to_owned(),
    };
    let is_watch = request.uri().query().unwrap_or("").contains("watch=true");
    let is_list = request.method() == http::Method::GET && rest.len() == 1;
    let method = match (is_watch, is_list) {
        (true, _) => "WATCH",
        (false, true) => "LIST",
        (false, false) => request.method().as_str(),
    };
    format!("{method} {resource}")
}

/// A service whose calls are counted.
#[derive(Clone)]
pub(crate) struct Tallied<S> {
    tally: Tally,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Tallied<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let what = what(&request);
        if what == "PATCH jobs/status" {
            self.tally.statuses.lock().expect("nobody panics here").push(Instant::now());
        }
        let counts = self.tally.counts.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let key = (what, answer.status().as_u16());
            *counts.lock().expect("nobody panics here").entry(key).or_insert(0) += 1;
            Ok(answer)
        })
    }
}
