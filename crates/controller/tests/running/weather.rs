//! Weather that a test makes itself: a full quota, a server that asks for time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

use stint_kit::job::counts;
use stint_kit::{Driver, Fate, NAMESPACE, Stage};

use crate::cluster::{Cluster, check_all};
use crate::fault::{Answer, BoxError, status};
use crate::tally::what;

/// When calls were made, and whether each was refused.
type Asked = Arc<Mutex<Vec<(Instant, bool)>>>;

type Refuse = Arc<dyn Fn(&str) -> Option<u16> + Send + Sync>;

/// A service that refuses what it is told to, and remembers when it was asked.
#[derive(Clone)]
struct Moody<S> {
    inner: S,
    refuse: Refuse,
    asked: Asked,
}

impl<S, B> Service<Request<Body>> for Moody<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let what = what(&request);
        let refused = (self.refuse)(&what);
        if !what.starts_with("WATCH") {
            let mut asked = self.asked.lock().expect("nobody panics here");
            asked.push((Instant::now(), refused.is_some()));
        }
        if let Some(code) = refused {
            return Box::pin(std::future::ready(Ok(status(code))));
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

fn moody(
    cluster: &Cluster,
    refuse: impl Fn(&str) -> Option<u16> + Send + Sync + 'static,
) -> (Client, Asked) {
    let asked = Asked::default();
    let service =
        Moody { inner: cluster.service(), refuse: Arc::new(refuse), asked: asked.clone() };
    (Client::new(service, NAMESPACE), asked)
}

#[tokio::test(start_paused = true)]
async fn a_full_quota_is_told_once_and_asked_for_ever_less_often() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let began = Instant::now();
    let is_full = move || began.elapsed() < Duration::from_secs(300);
    let refuse = move |what: &str| (what == "POST pods" && is_full()).then_some(403);
    let (client, asked) = moody(&cluster, refuse);
    cluster.start_with(client, cluster.config());
    let spec = json!({"completionMode": "Indexed", "completions": 500, "parallelism": 500});
    cluster.create("poor", spec).await;
    let job = cluster.finish("poor").await;
    assert_eq!(counts(&job), (0, 500, 0));
    let refused = asked.lock().expect("nobody panics here").iter().filter(|it| it.1).count();
    // All of the first go at once; then one at a time, with pauses up to 25.6 s.
    assert!((10..=600).contains(&refused), "{refused} creations were refused");
    let events = cluster.events_of("poor").await;
    let failed = events.iter().filter(|event| event.reason.as_deref() == Some("FailedCreate"));
    assert_eq!(failed.count(), 1, "{events:#?}");
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_is_left_alone() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let count = Arc::new(Mutex::new(0));
    let refuse = move |what: &str| {
        let mut count = count.lock().expect("nobody panics here");
        *count += usize::from(what == "POST pods");
        (what == "POST pods" && *count % 50 == 20).then_some(429)
    };
    let (client, asked) = moody(&cluster, refuse);
    cluster.start_with(client, cluster.config());
    let spec = json!({"completionMode": "Indexed", "completions": 300, "parallelism": 100});
    cluster.create("busy", spec).await;
    let job = cluster.finish("busy").await;
    assert_eq!(counts(&job), (0, 300, 0));
    let asked = asked.lock().expect("nobody panics here").clone();
    let refused: Vec<Instant> = asked.iter().filter(|it| it.1).map(|it| it.0).collect();
    assert!(refused.len() >= 5, "{refused:?}");
    for at in refused {
        let pause = at..at + Duration::from_secs(1);
        // What was sent together with it was sent without knowing.
        let too_soon = asked.iter().filter(|it| it.0 > at && pause.contains(&it.0)).count();
        assert_eq!(too_soon, 0, "calls while the server had asked for time");
    }
    let events = cluster.events_of("busy").await;
    let failed = events.iter().any(|event| event.reason.as_deref() == Some("FailedCreate"));
    assert!(!failed, "a busy server is no failure of the Job");
    check_all(&cluster).await;
}

/// How long a Job takes whose Events are answered with a code.
async fn duration_with_events(code: Option<u16>) -> Duration {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let (client, asked) = moody(&cluster, move |what: &str| code.filter(|_| what == "POST events"));
    cluster.start_with(client, cluster.config());
    let began = Instant::now();
    let spec = json!({"completionMode": "Indexed", "completions": 40, "parallelism": 4});
    cluster.create("a", spec).await;
    cluster.finish("a").await;
    let refused = asked.lock().expect("nobody panics here").iter().filter(|it| it.1).count();
    assert_eq!(refused > 0, code.is_some());
    check_all(&cluster).await;
    cluster.history.finished_at("a").expect("it has").duration_since(began)
}

/// As the admission plugin EventRateLimit does it.
#[tokio::test(start_paused = true)]
async fn events_that_are_too_many_hold_up_nothing_else() {
    let usual = duration_with_events(None).await;
    let limited = duration_with_events(Some(429)).await;
    assert!(limited <= usual + Duration::from_millis(500), "{limited:?} instead of {usual:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_not_taken_is_told_again() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let count = Arc::new(Mutex::new(0));
    let refuse = move |what: &str| {
        let mut count = count.lock().expect("nobody panics here");
        *count += usize::from(what == "POST events");
        (what == "POST events" && *count <= 5).then_some(503)
    };
    let (client, _) = moody(&cluster, refuse);
    cluster.start_with(client, cluster.config());
    cluster.create("a", json!({})).await;
    cluster.finish("a").await;
    let told = async |it: &Stage| {
        let events = it.events_of("a").await;
        let mut reasons: Vec<_> = events.into_iter().filter_map(|event| event.reason).collect();
        reasons.sort_unstable();
        reasons == ["Completed", "SuccessfulCreate"]
    };
    cluster.until("tells", told).await;
}
