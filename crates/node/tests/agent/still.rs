//! Keeps the paused clock from moving while the server works.
//!
//! The store commits in a thread of its own, which tokio does not see: with nothing else to do
//! it would let hours pass until an answer comes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};

use http::Request;
use tower_service::Service;

/// How many requests are under way.
#[derive(Clone, Default)]
pub(crate) struct Still {
    shared: Arc<(Mutex<usize>, Condvar)>,
}

impl Still {
    /// The service with time standing still while it answers.
    pub(crate) fn around<S>(&self, inner: S) -> Stilled<S> {
        Stilled { still: self.clone(), inner }
    }

    fn begin(&self) -> Held {
        let mut count = self.shared.0.lock().expect("nobody panics here");
        *count += 1;
        if *count == 1 {
            let shared = self.shared.clone();
            // As long as a blocking task runs, tokio does not advance its clock by itself.
            tokio::task::spawn_blocking(move || {
                let count = shared.0.lock().expect("nobody panics here");
                drop(shared.1.wait_while(count, |count| *count > 0));
            });
        }
        Held(self.clone())
    }
}

struct Held(Still);

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.shared.0.lock().expect("nobody panics here") -= 1;
        self.0.shared.1.notify_all();
    }
}

/// A service around which time stands still.
#[derive(Clone)]
pub(crate) struct Stilled<S> {
    still: Still,
    inner: S,
}

impl<S, B> Service<Request<B>> for Stilled<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.inner.call(request);
        let held = self.still.begin();
        Box::pin(async move {
            let answer = answer.await;
            drop(held);
            answer
        })
    }
}
