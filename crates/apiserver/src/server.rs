//! The server: a request in, an answer out. This is the one place that knows HTTP and verbs
//! both. It is a tower service, so that a socket, a `kube::Client` in the same process and a
//! test use the same code.

mod dispatch;
mod limits;
mod places;
#[cfg(test)]
mod tests;

pub use limits::Limits;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use stint_store::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::access::{Authenticator, Identity, Peer, is_public};
use crate::answer::{Body, add_warnings, compressed, status_answer, takes_gzip};
use crate::api::{Api, Config};
use crate::audit::{AuditFile, Record, Stage};
use crate::health;
use crate::metrics::{Metrics, RequestLabels};
use crate::request::media::accepted_format;
use crate::request::target::decode_path;
use crate::status::Status;
use dispatch::Call;
use places::Places;

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
    audit: OnceLock<AuditFile>,
    limits: Limits,
    /// What those share who come by a connection.
    outside: Share,
    /// What the parts of this process share: no client can take it from them.
    inside: Share,
}

/// What some callers share.
#[derive(Debug)]
struct Share {
    /// A place for each request under way that is no watch.
    requests: Places,
    /// A place for each watch and each log that is followed.
    long_running: Arc<Semaphore>,
}

impl Share {
    fn new(limits: &Limits) -> Self {
        Share {
            requests: Places::new(limits.requests, limits.stall_time),
            long_running: Arc::new(Semaphore::new(limits.long_running)),
        }
    }
}

impl ApiServer {
    /// A server on a store, for those whom the authenticator knows.
    pub fn new(store: Store, authenticator: Authenticator, config: Config, limits: Limits) -> Self {
        let inner = Inner {
            api: Api::new(store, config),
            authenticator,
            metrics: Arc::new(Metrics::new()),
            audit: OnceLock::new(),
            limits,
            outside: Share::new(&limits),
            inside: Share::new(&limits),
        };
        ApiServer { inner: Arc::new(inner) }
    }

    /// Shows at /metrics what another part of this process counts, too. `text` gives it in
    /// the OpenMetrics text form, under names that the server does not use.
    pub fn add_metrics(&self, text: impl Fn() -> String + Send + Sync + 'static) {
        self.inner.metrics.add(Box::new(text));
    }

    /// Writes down who asks for what from now on. There is one such log.
    pub fn audit(&self, log: AuditFile) {
        self.inner.audit.get_or_init(|| log);
    }

    /// The server as a caller within this process has it: known, and without a socket.
    pub fn local(&self, identity: Identity) -> LocalServer {
        LocalServer { server: self.clone(), peer: Peer::InProcess(identity), agent: None }
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
        let mut body = pin!(body);
        let started = Instant::now();
        let is_audited = self.inner.audit.get().is_some();
        let is_audited = is_audited && !is_public(&parts.method, parts.uri.path());
        let mut record = is_audited.then(|| Record::new(&parts, self.inner.api.clock.now()));
        let mut labels = RequestLabels { verb: "other", group: "", resource: "", code: 0 };
        let result = match timeout(
            self.inner.limits.request_time,
            self.inner.answer(&parts, body.as_mut(), &mut labels, record.as_mut()),
        )
        .await
        {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => {
                self.inner.limits.pass_over(body).await;
                Err(status)
            }
            Err(_) => Err(Status::timeout(
                "request did not complete within the allotted time; it may have been carried out",
            )),
        };
        let format = accepted_format(&parts.headers);
        let refusal = result.as_ref().err().cloned();
        let mut answer = result.unwrap_or_else(|status| status_answer(&status, format));
        if let Some(record) = record {
            answer = self.inner.write_down(record, answer, refusal.as_ref()).await;
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
        body: Pin<&mut B>,
        labels: &mut RequestLabels,
        mut record: Option<&mut Record>,
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
        if let Some(record) = &mut record {
            record.by(&identity);
        }
        let path = decode_path(parts.uri.path())
            .ok_or_else(|| Status::bad_request("the path is not valid"))?;
        let call = Call::new(self, parts, &path, &identity)?;
        call.label(labels);
        let allowed = call.authorize();
        if let Some(record) = record {
            call.describe(record, allowed.is_ok());
        }
        allowed?;
        let place = if call.is_long_running() {
            None
        } else {
            let place = call.share().requests.take(call.client(), self.limits.queue_time);
            Some((place.await.ok_or_else(too_many)?, self.metrics.in_flight()))
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
        let mut answer = result?;
        if takes_gzip(&parts.headers) {
            answer = compressed(answer);
        }
        Ok(match place {
            Some((place, running)) => {
                answer.map(|body| body.lent(|answer| place.lend(answer), running))
            }
            None => answer,
        })
    }
}

impl Inner {
    /// Writes down what came of a request, and of what goes on for a while also its end.
    async fn write_down(
        self: &Arc<Self>,
        record: Record,
        mut answer: Response<Body>,
        refusal: Option<&Status>,
    ) -> Response<Body> {
        let log = self.audit.get().expect("there is a record because there is a log");
        if let Ok(id) = HeaderValue::from_str(record.id()) {
            answer.headers_mut().insert("audit-id", id);
        }
        let code = answer.status();
        let line = |stage, refusal| record.line(stage, code, refusal, self.api.clock.now());
        if !answer.body().has_no_end() {
            log.add(line(Stage::ResponseComplete, refusal)).await;
            return answer;
        }
        log.add(line(Stage::ResponseStarted, refusal)).await;
        let ended = Ended { server: self.clone(), record, code };
        answer.map(|body| body.holding(ended))
    }
}

/// Writes down that something has ended.
struct Ended {
    server: Arc<Inner>,
    record: Record,
    code: StatusCode,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let now = self.server.api.clock.now();
        let line = self.record.line(Stage::ResponseComplete, self.code, None, now);
        let log = self.server.audit.get().expect("it was there at the start");
        if !log.try_add(line) {
            tracing::warn!("the end of a watch is not in the audit log: too much waits for it");
        }
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", 1)
}

async fn read_body<B>(body: Pin<&mut B>, limit: usize) -> Result<Bytes, Status>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(limit)),
        Err(error) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
    }
}

/// How much of the body of a refused request is passed over, in bodies of the largest size.
/// Beyond 12 MiB that is the client's own affair.
const PASSED_OVER: usize = 4;

impl Limits {
    /// Reads a body to its end, or so much of it, or for so long. Some clients do not listen before
    /// they have said all, and HTTP/2 would cut them off: they learn why they are refused only if
    /// they may finish.
    async fn pass_over<B: http_body::Body>(&self, mut body: Pin<&mut B>) {
        let mut bytes_left = self.body_bytes * PASSED_OVER;
        let read = async {
            while !body.is_end_stream()
                && let Some(Ok(frame)) = body.frame().await
            {
                let bytes = frame.data_ref().map_or(0, Buf::remaining);
                match bytes_left.checked_sub(bytes) {
                    Some(left) => bytes_left = left,
                    None => return,
                }
            }
        };
        let _ = timeout(self.stall_time, read).await;
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
    agent: Option<HeaderValue>,
}

impl LocalServer {
    /// The same for a caller of this name, by which it owns what it writes if it does not say
    /// who it is.
    pub fn named(self, agent: &'static str) -> Self {
        LocalServer { agent: Some(HeaderValue::from_static(agent)), ..self }
    }
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
        if let Some(agent) = &self.agent {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        }
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
