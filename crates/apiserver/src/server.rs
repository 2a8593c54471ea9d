//! The server: a request in, an answer out. This is the one place that knows HTTP and verbs
//! both. It is a tower service, so that a socket, a `kube::Client` in the same process and a
//! test use the same code.

mod dispatch;
mod limits;
#[cfg(test)]
mod tests;

pub use limits::Limits;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use stint_store::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::access::{Authenticator, Identity, Peer, is_public};
use crate::answer::{Body, add_warnings, compressed, status_answer, takes_gzip};
use crate::api::{Api, Config};
use crate::health;
use crate::metrics::{Metrics, RequestLabels};
use crate::request::media::accepted_format;
use crate::request::target::decode_path;
use crate::status::Status;
use dispatch::Call;

/// A Kubernetes API server on a store. Clones are handles to the same server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    api: Api,
    authenticator: Authenticator,
    metrics: Arc<Metrics>,
    limits: Limits,
    /// A place for each request under way that is no watch.
    requests: Arc<Semaphore>,
    /// A place for each watch and each log that is followed.
    long_running: Arc<Semaphore>,
}

impl ApiServer {
    /// A server on a store, for those whom the authenticator knows.
    pub fn new(store: Store, authenticator: Authenticator, config: Config, limits: Limits) -> Self {
        let inner = Inner {
            api: Api::new(store, config),
            authenticator,
            metrics: Arc::new(Metrics::new()),
            limits,
            requests: Arc::new(Semaphore::new(limits.requests)),
            long_running: Arc::new(Semaphore::new(limits.long_running)),
        };
        ApiServer { inner: Arc::new(inner) }
    }

    /// Shows at /metrics what another part of this process counts, too. `text` gives it in
    /// the OpenMetrics text form, under names that the server does not use.
    pub fn add_metrics(&self, text: impl Fn() -> String + Send + Sync + 'static) {
        self.inner.metrics.add(Box::new(text));
    }

    /// The server as a caller within this process has it: known, and without a socket.
    pub fn local(&self, identity: Identity) -> LocalServer {
        LocalServer { server: self.clone(), peer: Peer::InProcess(identity) }
    }

    /// Ends every watch and every log that is followed, and those that begin from now on: each
    /// gets to its last event. Clients go on with another server, or with the next one here.
    pub fn drain(&self) {
        self.inner.api.draining.send_replace(true);
    }

    /// Answers a request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let started = Instant::now();
        let mut labels = RequestLabels { verb: "other", group: "", resource: "", code: 0 };
        let result = match timeout(
            self.inner.limits.request_time,
            self.inner.answer(&parts, body, &mut labels),
        )
        .await
        {
            Ok(result) => result,
            Err(_) => Err(Status::timeout(
                "request did not complete within the allotted time; it may have been carried out",
            )),
        };
        let format = accepted_format(&parts.headers);
        let mut answer = result.unwrap_or_else(|status| status_answer(&status, format));
        if takes_gzip(&parts.headers) {
            answer = compressed(answer);
        }
        if parts.method == Method::HEAD {
            *answer.body_mut() = Body::empty();
        }
        labels.code = answer.status().as_u16();
        let took = (labels.verb != "watch").then(|| started.elapsed());
        self.inner.metrics.count(labels, took);
        answer
    }
}

impl Inner {
    async fn answer<B>(
        &self,
        parts: &Parts,
        body: B,
        labels: &mut RequestLabels,
    ) -> Result<Response<Body>, Status>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if is_public(&parts.method, parts.uri.path()) {
            return Ok(health::answer(parts.uri.path(), parts.uri.query(), &self.api));
        }
        let identity = self
            .authenticator
            .authenticate(&parts.headers, &parts.extensions)
            .map_err(|_| Status::unauthorized())?;
        let path = decode_path(parts.uri.path())
            .ok_or_else(|| Status::bad_request("the path is not valid"))?;
        let call = Call::new(self, parts, &path, &identity)?;
        call.label(labels);
        call.authorize()?;
        let place = if call.is_long_running() {
            None
        } else {
            let waiting = self.requests.clone().acquire_owned();
            let waited = timeout(self.limits.queue_time, waiting).await;
            let place = waited.map_err(|_| too_many())?.expect("it is never closed");
            Some((place, self.metrics.in_flight()))
        };
        let body = if call.reads_body() {
            read_body(body, self.limits.body_bytes).await?
        } else {
            Bytes::new()
        };
        let mut result = call.run(&body).await;
        if let Some(deprecation) = call.deprecation() {
            let format = accepted_format(&parts.headers);
            let mut answer = result.unwrap_or_else(|status| status_answer(&status, format));
            add_warnings(&mut answer, &[deprecation]);
            result = Ok(answer);
        }
        // A list is made while it is read: it is under way until then.
        result.map(|answer| answer.map(|body| body.holding(place)))
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", 1)
}

async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, Status>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut body = pin!(body);
    match Limited::new(body.as_mut(), limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            pass_over(body, limit * PASSED_OVER).await;
            Err(Status::too_large(limit))
        }
        Err(error) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
    }
}

/// How much of a body that is too large is passed over, in bodies of the largest size. Some
/// clients do not listen before they have said all, and HTTP/2 would cut them off: they learn
/// why only if they may finish. Beyond 12 MiB that is their own affair.
const PASSED_OVER: usize = 4;

/// Reads a body to its end, or so much of it.
async fn pass_over<B: http_body::Body>(mut body: Pin<&mut B>, mut bytes_left: usize) {
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Buf::remaining);
        match bytes_left.checked_sub(bytes) {
            Some(left) => bytes_left = left,
            None => return,
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<B> tower_service::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

/// The server as one caller within this process has it.
#[derive(Clone, Debug)]
pub struct LocalServer {
    server: ApiServer,
    peer: Peer,
}

impl<B> tower_service::Service<Request<B>> for LocalServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answering {
        request.extensions_mut().insert(self.peer.clone());
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
