//! A server with a service that tells what it was asked by whom.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use stint_apiserver::access::{Authenticator, Peer, Unauthorized, is_public};
use stint_apiserver::wire::{
    Certificates, Limits, ListenOptions, Listener, Served, ServerNames, Tokens,
};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tower_service::Service;

/// How long a test waits for what must happen. It never waits that long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An end that nobody should have to wait for.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Certificates,
    pub(crate) tokens: Tokens,
    /// A request to `/held` has arrived.
    pub(crate) arrived: Arc<Notify>,
    /// Lets a request to `/held` be answered.
    pub(crate) release: Arc<Notify>,
    /// Held by a request to `/held` for as long as it is under way.
    pub(crate) under_way: Arc<Semaphore>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Served>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(Limits::default(), LONG).await
    }

    pub(crate) async fn start_with(limits: Limits, grace: Duration) -> Self {
        let certificates = certificates();
        let options = ListenOptions { limits, ..ListenOptions::new(any_port()) };
        let listener = Listener::bind(options, &certificates).await.expect("a listener");
        let address = listener.address();
        let tokens = Tokens::in_memory().expect("tokens");
        let (arrived, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let under_way = Arc::new(Semaphore::new(1));
        let teller = Teller {
            authenticator: Arc::new(Authenticator::new(tokens.bearers("here"))),
            arrived: arrived.clone(),
            release: release.clone(),
            under_way: under_way.clone(),
        };
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { stopped.await.unwrap_or_default() };
        let served = tokio::spawn(listener.serve(teller, shutdown, grace));
        Server { address, certificates, tokens, arrived, release, under_way, stop, served }
    }

    /// Begins the shutdown. The handle tells when it is over.
    pub(crate) fn stop(self) -> JoinHandle<Served> {
        self.stop.send(()).expect("the server is there");
        self.served
    }
}

pub(crate) fn certificates() -> Certificates {
    let names = ServerNames::new([], [""; 0]);
    Certificates::in_memory(&names, SystemTime::now()).expect("certificates")
}

pub(crate) fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// Answers with the user's name, or with 401.
#[derive(Clone)]
struct Teller {
    authenticator: Arc<Authenticator>,
    arrived: Arc<Notify>,
    release: Arc<Notify>,
    under_way: Arc<Semaphore>,
}

impl Service<Request<Incoming>> for Teller {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let teller = self.clone();
        Box::pin(async move { Ok(teller.tell(request).await) })
    }
}

impl Teller {
    async fn tell(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let peer = request.extensions().get::<Peer>().expect("every request has one");
        assert!(peer.address().expect("it is remote").ip().is_loopback());
        let path = request.uri().path();
        let known = self.authenticator.authenticate(request.headers(), request.extensions());
        match path {
            "/held" => {
                let _place = self.under_way.acquire().await.expect("it is never closed");
                self.arrived.notify_one();
                self.release.notified().await;
            }
            "/panic" => panic!("a service that panics"),
            _ => {}
        }
        if is_public(request.method(), path) {
            return answer(StatusCode::OK, "well");
        }
        match known {
            Ok(identity) => answer(StatusCode::OK, &identity.user),
            Err(_) => answer(StatusCode::UNAUTHORIZED, Unauthorized::MESSAGE),
        }
    }
}

fn answer(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
}
