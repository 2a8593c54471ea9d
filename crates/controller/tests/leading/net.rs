//! The way from a replica to the API server, which a test can cut, and on which it sees what
//! was sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Method, Request};
use tower_service::Service;

/// What is done to the requests of a replica.
#[derive(Clone, Default)]
pub(crate) struct Net {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_cut: AtomicBool,
    hangs: AtomicBool,
    work_hangs: AtomicBool,
    /// How many requests of work hang.
    hanging: AtomicU32,
    loses_renewal: AtomicBool,
    written: Mutex<Vec<String>>,
    lease_writes: AtomicU32,
}

impl Net {
    /// Every request fails, or nothing fails any more.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.shared.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Every request hangs, or those that come later do not.
    pub(crate) fn hang(&self, hangs: bool) {
        self.shared.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Every write but those of the Lease hangs.
    pub(crate) fn hang_work(&self) {
        self.shared.work_hangs.store(true, Ordering::SeqCst);
    }

    /// How many writes hang.
    pub(crate) fn hanging(&self) -> u32 {
        self.shared.hanging.load(Ordering::SeqCst)
    }

    /// The next write of the Lease arrives, and its answer never does.
    pub(crate) fn lose_renewal(&self) {
        self.shared.loses_renewal.store(true, Ordering::SeqCst);
    }

    /// What was written, but for the Lease.
    pub(crate) fn written(&self) -> Vec<String> {
        self.shared.written.lock().expect("nobody panics here").clone()
    }

    /// How often the Lease was written.
    pub(crate) fn lease_writes(&self) -> u32 {
        self.shared.lease_writes.load(Ordering::SeqCst)
    }

    /// The service behind it.
    pub(crate) fn around<S>(&self, inner: S) -> Reached<S> {
        Reached { net: self.clone(), inner }
    }
}

#[derive(Clone)]
pub(crate) struct Reached<S> {
    net: Net,
    inner: S,
}

/// Why a request failed.
pub(crate) type Lost = Box<dyn std::error::Error + Send + Sync>;

impl<S, B> Service<Request<B>> for Reached<S>
where
    S: Service<Request<B>>,
    S::Error: Into<Lost> + Send + 'static,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Lost>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = &self.net.shared;
        if shared.is_cut.load(Ordering::SeqCst) {
            return Box::pin(async { Err("the network is down".into()) });
        }
        if shared.hangs.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        if *request.method() != Method::GET {
            let path = request.uri().path();
            if path.contains("/leases") {
                shared.lease_writes.fetch_add(1, Ordering::SeqCst);
                if shared.loses_renewal.swap(false, Ordering::SeqCst) {
                    tokio::spawn(self.inner.call(request));
                    return Box::pin(std::future::pending());
                }
            } else if shared.work_hangs.load(Ordering::SeqCst) {
                shared.hanging.fetch_add(1, Ordering::SeqCst);
                return Box::pin(std::future::pending());
            } else {
                let line = format!("{} {path}", request.method());
                shared.written.lock().expect("nobody panics here").push(line);
            }
        }
        let answer = self.inner.call(request);
        Box::pin(async { answer.await.map_err(Into::into) })
    }
}
