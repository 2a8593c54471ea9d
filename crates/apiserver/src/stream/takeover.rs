//! A connection that is taken over from HTTP by a request, and goes on with something else when that
//! was answered. What goes on then is a part of the connection: it has its place among the others, and
//! ends when it is cut off.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

/// What goes on after HTTP on one connection, once a request has said so.
#[derive(Clone, Default)]
pub(crate) struct Afterwards {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    what: Option<BoxFuture<'static, ()>>,
    /// What is let go of when it is over.
    held: Vec<Box<dyn Any + Send>>,
}

impl Afterwards {
    /// Goes on, if there is anything.
    pub(crate) async fn run(&self) {
        let State { what, held } = std::mem::take(&mut *self.lock());
        if let Some(what) = what {
            what.await;
        }
        drop(held);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's chance to take its connection over. It is among the extensions of each that comes by
/// HTTP/1.1.
#[derive(Clone)]
pub(crate) struct Takeover {
    upgrade: Arc<Mutex<Option<OnUpgrade>>>,
    afterwards: Afterwards,
}

impl fmt::Debug for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Takeover")
    }
}

impl Takeover {
    pub(crate) fn new(upgrade: OnUpgrade, afterwards: Afterwards) -> Self {
        Takeover { upgrade: Arc::new(Mutex::new(Some(upgrade))), afterwards }
    }

    /// Has this go on when the request was answered with 101.
    pub(crate) fn go_on<F>(&self, with: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let upgrade = self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(upgrade) = upgrade else { return };
        self.afterwards.lock().what = Some(Box::pin(async move {
            match upgrade.await {
                Ok(connection) => with(TokioIo::new(connection)).await,
                Err(error) => tracing::debug!(%error, "a connection was gone before it was used"),
            }
        }));
    }

    /// Holds something until that is over.
    pub(crate) fn hold(&self, held: impl Send + 'static) {
        self.afterwards.lock().held.push(Box::new(held));
    }
}
