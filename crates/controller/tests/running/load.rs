//! Many Pods, and many Jobs.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate, NAMESPACE};

use crate::cluster::{Cluster, check_all};
use crate::random::Random;

/// Unoptimized all numbers are a fifth, that of calls at once as well: what holds of each index
/// and each Job is the same.
const SHARE: usize = if cfg!(debug_assertions) { 5 } else { 1 };
const INDEXES: i32 = 10_000 / SHARE as i32;
const JOBS: usize = 200 / SHARE;

/// A service that takes 3 to 7 ms for each call, as an API server does.
#[derive(Clone)]
struct Distant<S> {
    inner: S,
    random: Arc<Mutex<Random>>,
}

impl<S, B> Service<Request<B>> for Distant<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let millis = 3 + self.random.lock().expect("nobody panics here").below(5);
        let mut inner = self.inner.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            inner.call(request).await
        })
    }
}

/// Creates a Job of one Pod and tells how long it takes to complete.
async fn one_pod(cluster: &Cluster, name: &str) -> Duration {
    let began = Instant::now();
    cluster.create(name, json!({})).await;
    cluster.finish(name).await;
    let finished = cluster.history.finished_at(name).expect("it has finished");
    finished.duration_since(began)
}

#[tokio::test(start_paused = true)]
async fn many_indexes_cost_two_calls_each_and_starve_nobody() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let random = Arc::new(Mutex::new(Random::new(1)));
    let service = Distant { inner: cluster.service(), random };
    let mut config = cluster.config();
    config.max_inflight /= SHARE;
    cluster.start_with(Client::new(service, NAMESPACE), config);
    let idle = one_pod(&cluster, "idle").await;
    let (calls, statuses) = (cluster.tally.total(), cluster.tally.status_times().len());
    let began = Instant::now();
    let spec =
        json!({"completionMode": "Indexed", "completions": INDEXES, "parallelism": INDEXES / 10});
    cluster.create("huge", spec).await;
    cluster.wait("huge", "is in the middle", |job| counts(job).1 > INDEXES / 5).await;
    let busy = one_pod(&cluster, "small").await;
    let is_running = cluster.history.finished_at("huge").is_none();
    let job = cluster.finish("huge").await;
    let took = cluster.history.finished_at("huge").expect("it has").duration_since(began);
    let per_pod = (cluster.tally.total() - calls) as f64 / f64::from(INDEXES);
    let statuses = cluster.tally.status_times().len() - statuses;
    println!(
        "{INDEXES} Pods in {took:?} of the test's time, {per_pod:.4} calls each, {statuses} statuses"
    );
    println!("a Job of one Pod takes {idle:?} alone and {busy:?} beside them");
    println!("{}", cluster.tally.lines().join("\n"));
    assert_eq!(end(&job).as_deref(), Some("Complete CompletionsReached"));
    assert_eq!(counts(&job), (0, INDEXES, 0));
    assert_eq!(cluster.history.of("huge").len(), INDEXES as usize);
    assert!(is_running, "the small Job came too late to be held up");
    assert!(per_pod <= 2.05, "{per_pod} calls for each Pod");
    assert!(busy <= idle * 2, "{busy:?} instead of {idle:?}");
    // Four a second, and a few at the beginning and end of each Job.
    let paced = took.as_millis() as usize / 250 + 16;
    assert!(statuses <= paced, "{statuses} statuses in {took:?}");
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn many_jobs_at_once_are_exact() {
    let fates = |who: &stint_kit::Who| match (who.index, who.attempt) {
        (Some(3), 0) => Fate::fails(1).after(1),
        _ => Fate::succeeds().after(1),
    };
    let cluster = Cluster::new(Driver::new(fates)).await;
    cluster.start();
    let names: Vec<String> = (0..JOBS).map(|number| format!("job-{number}")).collect();
    for name in &names {
        let spec = json!({"completionMode": "Indexed", "completions": 8, "parallelism": 4});
        cluster.create(name, spec).await;
    }
    for name in &names {
        let job = cluster.finish(name).await;
        assert_eq!(end(&job).as_deref(), Some("Complete CompletionsReached"), "{name}");
        assert_eq!(counts(&job), (0, 8, 1), "{name}");
        assert_eq!(cluster.history.of(name).len(), 9, "{name}");
    }
    check_all(&cluster).await;
}
