//! Bad weather between a client and the server, from a seed: requests that are delayed, lost
//! before or after the server acted, carried out long after everybody has given up on them,
//! never answered, or refused; lists from the past, in small pages, whose rest has expired;
//! watches that lag, break off, fall silent, or are too old from the beginning or at some point.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use crate::random::Random;
use crate::tally::what;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;
type Newest = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How bad the weather is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// How many calls of a thousand go wrong.
    pub(crate) calls: u64,
    /// How many watches of a thousand do.
    pub(crate) watches: u64,
    /// Whether the server does not send lists as streams. Then they may be old, too.
    pub(crate) is_old_server: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It takes a while to get there, and back.
    Delay,
    /// The server never sees it.
    Lost,
    /// The answer is lost.
    Unanswered,
    /// The client gives up, and the server acts later.
    Late,
    /// The server refuses with this code, and does nothing.
    Refused(u16),
    /// The server acts, and answers that it ran out of time.
    TimedOut,
    /// No answer comes, ever; whether the server has acted.
    Never(bool),
}

/// What becomes of a watch that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    /// It is refused with this code.
    Refused(u16),
    /// Nobody is there.
    Lost,
    /// No answer comes, ever.
    Never,
    /// It lags, and ends after some frames in this way.
    Lags(Ending),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Between two frames.
    Breaks,
    /// In the middle of one.
    Torn,
    /// Nothing comes any more, and nobody says so.
    Silent,
    /// With the word that it is too old.
    Expired,
}

/// How often something went wrong, by what it was.
pub(crate) type Mishaps = Arc<Mutex<BTreeMap<String, usize>>>;

/// A service with weather in front of it.
#[derive(Clone)]
pub(crate) struct Faulty<S> {
    inner: S,
    weather: Weather,
    random: Arc<Mutex<Random>>,
    /// The newest version of the store, to ask for an older one.
    newest: Newest,
    /// What has gone wrong.
    pub(crate) mishaps: Mishaps,
    /// Pods that were created by requests whose sender had given up on them.
    strays: Arc<AtomicUsize>,
}

impl<S> Faulty<S> {
    pub(crate) fn new(
        inner: S,
        weather: Weather,
        seed: u64,
        newest: Newest,
        strays: Arc<AtomicUsize>,
    ) -> Self {
        let random = Arc::new(Mutex::new(Random::new(seed)));
        Faulty { inner, weather, random, newest, mishaps: Mishaps::default(), strays }
    }

    fn chance<T>(&self, ask: impl FnOnce(&mut Random) -> T) -> T {
        ask(&mut self.random.lock().expect("nobody panics here"))
    }

    fn choose(&self, what: &str, is_rest: bool) -> Fault {
        let method = what.split(' ').next().unwrap_or_default();
        let fault = self.chance(|random| {
            if !random.per_mille(self.weather.calls) {
                return Fault::None;
            }
            match random.below(16) {
                0..3 => Fault::Delay,
                3 => Fault::Lost,
                4 | 5 => Fault::Unanswered,
                6 => Fault::Late,
                7 => Fault::Refused(429),
                8 => Fault::Refused(500),
                9 => Fault::Refused(503),
                10 | 11 => match (method, random.below(2)) {
                    ("POST", 0) => Fault::Refused(403),
                    ("PATCH" | "DELETE", 0) => Fault::Refused(409),
                    ("POST" | "PATCH" | "DELETE", _) => Fault::Refused(422),
                    _ if is_rest => Fault::Refused(410),
                    _ => Fault::Refused(504),
                },
                12 => Fault::Never(random.below(2) == 0),
                _ => Fault::TimedOut,
            }
        });
        // Lists have few pages.
        let is_rest_lost = is_rest && self.chance(|random| random.per_mille(self.weather.calls));
        let fault = if is_rest_lost { Fault::Refused(410) } else { fault };
        if fault != Fault::None {
            self.note(format!("{method} {fault:?}"));
        }
        fault
    }

    fn choose_watch(&self, begins_with_list: bool) -> Option<Watching> {
        let watching = self.chance(|random| {
            let goes_wrong = random.per_mille(self.weather.watches);
            goes_wrong.then(|| match random.below(10) {
                0 => Watching::Refused(503),
                1 if !begins_with_list => Watching::Refused(410),
                2 => Watching::Lost,
                3 => Watching::Refused(429),
                4 => Watching::Never,
                5 => Watching::Lags(Ending::Silent),
                6 => Watching::Lags(Ending::Expired),
                7 => Watching::Lags(Ending::Torn),
                _ => Watching::Lags(Ending::Breaks),
            })
        });
        if let Some(watching) = watching {
            self.note(format!("WATCH {watching:?}"));
        }
        watching
    }

    fn note(&self, what: String) {
        *self.mishaps.lock().expect("nobody panics here").entry(what).or_insert(0) += 1;
    }

    /// A refusal; a server that is busy asks for some time, in one of several ways.
    fn refuse(&self, code: u16) -> Answer {
        match code {
            429 => busy(self.chance(|random| random.below(6))),
            _ => status(code),
        }
    }
}

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let faulty = self.clone();
        Box::pin(async move {
            let what = what(&request);
            if what.starts_with("WATCH") {
                faulty.watch(request).await
            } else {
                let is_list = what.starts_with("LIST");
                let request = if is_list { faulty.age(request) } else { request };
                faulty.pass(&what, request).await
            }
        })
    }
}

impl<S, B> Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn ask(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let answer = self.inner.clone().call(request).await.map_err(Into::into)?;
        Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
    }

    async fn pass(&self, what: &str, request: Request<Body>) -> Result<Answer, BoxError> {
        let (first, second) = self.chance(|random| (random.below(2500), random.below(2500)));
        let pause = |millis| tokio::time::sleep(Duration::from_millis(millis));
        let is_rest = request.uri().query().is_some_and(|query| query.contains("continue="));
        match self.choose(what, is_rest) {
            Fault::None => self.ask(request).await,
            Fault::Delay => {
                pause(first).await;
                let answer = self.ask(request).await;
                pause(second).await;
                answer
            }
            Fault::Lost => {
                pause(first).await;
                Err("the connection was reset".into())
            }
            Fault::Unanswered => {
                self.ask(request).await?;
                pause(second).await;
                Err("the connection was reset".into())
            }
            Fault::Late => {
                let late = self.clone();
                let is_create = what == "POST pods";
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(first * 10)).await;
                    let is_done = late.ask(request).await.is_ok_and(|it| it.status().is_success());
                    late.strays.fetch_add(usize::from(is_create && is_done), Ordering::Relaxed);
                });
                pause(second).await;
                Err("no answer in time".into())
            }
            Fault::Refused(code) => Ok(self.refuse(code)),
            Fault::TimedOut => {
                self.ask(request).await?;
                Ok(status(504))
            }
            Fault::Never(is_done) => {
                if is_done {
                    self.ask(request).await?;
                }
                std::future::pending().await
            }
        }
    }

    /// A server that is behind answers the lists of the feeds as of some time ago, and all
    /// lists in pages that are smaller than asked for.
    fn age(&self, request: Request<Body>) -> Request<Body> {
        if self.weather.calls == 0 || request.method() != Method::GET {
            return request;
        }
        let is_feed = !request.uri().path().contains("/namespaces/");
        let behind = self.chance(|random| random.below(60).saturating_sub(20));
        let version = (self.newest)().saturating_sub(behind).max(1);
        let (mut parts, body) = request.into_parts();
        let mut uri = parts.uri.to_string();
        for limit in ["limit=500", "limit=1000"] {
            uri = uri.replace(limit, "limit=20");
        }
        // The rest of a list is of the version of its beginning.
        let is_rest = uri.contains("continue=");
        if is_feed && behind > 0 && self.weather.is_old_server && !is_rest {
            uri = format!("{uri}&resourceVersion={version}&resourceVersionMatch=Exact");
        }
        parts.uri = uri.parse().expect("a path and a query");
        Request::from_parts(parts, body)
    }

    async fn watch(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let query = request.uri().query().unwrap_or("");
        let begins_with_list = query.contains("sendInitialEvents");
        if begins_with_list && self.weather.is_old_server {
            return Ok(status(422));
        }
        let ending = match self.choose_watch(begins_with_list) {
            None => return self.ask(request).await,
            Some(Watching::Refused(code)) => return Ok(self.refuse(code)),
            Some(Watching::Lost) => return Err("the connection was refused".into()),
            Some(Watching::Never) => return std::future::pending().await,
            Some(Watching::Lags(ending)) => ending,
        };
        let answer = self.ask(request).await?;
        let left = self.chance(|random| random.below(12));
        let random = self.chance(|random| Random::new(random.next()));
        Ok(answer.map(|body| slow(body, left, random, ending)))
    }
}

/// A watch that lags, and ends after some frames.
fn slow(
    body: UnsyncBoxBody<Bytes, BoxError>,
    left: u64,
    random: Random,
    ending: Ending,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = futures_util::stream::unfold((body, left, random), move |state| async move {
        let (mut body, left, mut random) = state;
        let frame = body.frame().await?;
        tokio::time::sleep(Duration::from_millis(random.below(3000))).await;
        if left > 0 {
            return Some((frame, (body, left - 1, random)));
        }
        let last = match (ending, frame) {
            (Ending::Breaks, _) | (Ending::Torn, Err(_)) => return None,
            (Ending::Silent, _) => std::future::pending().await,
            (Ending::Torn, Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                data.slice(..data.len() / 2)
            }
            (Ending::Expired, _) => {
                let error = json!({"type": "ERROR", "object": refusal(410)});
                Bytes::from(format!("{error}\n"))
            }
        };
        // Nothing comes after it.
        let ended = http_body_util::Empty::new().map_err(Into::into).boxed_unsync();
        Some((Ok(http_body::Frame::data(last)), (ended, 0, random)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A server that asks for time: in the header, in the body, or not saying how much.
fn busy(how: u64) -> Answer {
    let mut body = refusal(429);
    let mut answer = Response::builder().status(429);
    match how {
        0 => {}
        1 => body["details"] = json!({"retryAfterSeconds": 3}),
        seconds => answer = answer.header("retry-after", [0, 1, 2, 7][seconds as usize - 2]),
    }
    let body = Full::new(Bytes::from(body.to_string())).map_err(Into::into).boxed_unsync();
    answer.header("content-type", "application/json").body(body).expect("an answer")
}

/// A refusal in Kubernetes' words.
pub(crate) fn status(code: u16) -> Answer {
    let body = Full::new(Bytes::from(refusal(code).to_string()));
    let mut answer = Response::builder().status(code);
    if code == 429 {
        answer = answer.header("retry-after", "1");
    }
    let body = body.map_err(Into::into).boxed_unsync();
    answer.header("content-type", "application/json").body(body).expect("an answer")
}

fn refusal(code: u16) -> Value {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Timeout",
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": code, "reason": reason, "message": format!("bad weather: {reason}"),
    })
}
