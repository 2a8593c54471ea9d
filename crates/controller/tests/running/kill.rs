//! The controller is killed at each of its calls in turn, watches included, before the server has
//! acted and after it; the next one, which knows nothing, brings the Job to the same end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use kube::Client;
use tokio::sync::Notify;
use tower_service::Service;

use stint_kit::NAMESPACE;
use stint_kit::play::{driver, play};

use crate::cluster::{Cluster, check_all};

/// How long it may take until the controller comes to the call at which it dies: watches end
/// after minutes, and are begun anew.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// When the controller dies.
#[derive(Clone)]
struct Death {
    call: Option<usize>,
    is_after: bool,
    count: Arc<AtomicUsize>,
    has_come: Arc<Notify>,
}

/// A service whose caller dies at one of its calls.
#[derive(Clone)]
struct Deadly<S> {
    inner: S,
    death: Death,
}

impl<S, B> Service<Request<B>> for Deadly<S>
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
        let Deadly { mut inner, death } = self.clone();
        Box::pin(async move {
            if Some(death.count.fetch_add(1, Ordering::SeqCst)) != death.call {
                return inner.call(request).await;
            }
            if death.is_after {
                drop(inner.call(request).await);
            }
            death.has_come.notify_one();
            std::future::pending().await
        })
    }
}

/// Gives a play with a death, if there is to be one; how many calls there were.
async fn give(name: &str, call: Option<usize>, is_after: bool) -> usize {
    let cluster = Cluster::new(driver()).await;
    let has_come = Arc::new(Notify::new());
    let death = Death { call, is_after, count: Arc::default(), has_come };
    let service = Deadly { inner: cluster.service(), death: death.clone() };
    cluster.start_with(Client::new(service, NAMESPACE), cluster.config());
    let follow_up = async {
        if call.is_some() {
            let has_come = tokio::time::timeout(LONGEST, death.has_come.notified()).await;
            assert!(has_come.is_ok(), "there is no such call");
            cluster.start();
        }
    };
    let play = play(name);
    tokio::join!(play.give(&cluster), follow_up);
    let calls = death.count.load(Ordering::SeqCst);
    check_all(&cluster).await;
    calls
}

fn run(name: &str, call: Option<usize>, is_after: bool) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(give(name, call, is_after))
}

fn kill_at_every_call(name: &str) {
    let calls = run(name, None, false);
    assert!(calls > 10, "{name} makes {calls} calls");
    let deaths = (0..calls).flat_map(|call| [(call, false), (call, true)]);
    let failed: Vec<(usize, bool)> = deaths
        .filter(|&(call, is_after)| {
            std::panic::catch_unwind(|| run(name, Some(call), is_after)).is_err()
        })
        .collect();
    assert!(failed.is_empty(), "{name}: deaths at (call, after it was done): {failed:?}");
}

#[test]
fn an_indexed_job_survives() {
    kill_at_every_call("indexed");
}

#[test]
fn a_job_with_failures_survives() {
    kill_at_every_call("retried");
}

#[test]
fn a_job_with_failures_per_index_survives() {
    kill_at_every_call("perindex");
}

#[test]
fn a_job_with_a_success_policy_survives() {
    kill_at_every_call("enough");
}

#[test]
fn a_job_that_is_suspended_survives() {
    kill_at_every_call("suspended");
}

#[test]
fn a_job_whose_pods_are_evicted_survives() {
    kill_at_every_call("evicted");
}

#[test]
fn a_job_with_an_orphan_survives() {
    kill_at_every_call("adopted");
}

#[test]
fn a_job_that_loses_a_pod_survives() {
    kill_at_every_call("released");
}

#[test]
fn a_job_with_a_failure_policy_survives() {
    kill_at_every_call("failjob");
}
