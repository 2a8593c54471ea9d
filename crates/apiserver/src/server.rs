//! The server: a request in, an answer out. This is the one place that knows HTTP and verbs
//! both. It is a tower service, so that a socket, a `kube::Client` in the same process and a
//! test use the same code.

mod dispatch;
mod limits;
mod long_running;
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
use http::header::{EXPECT, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use stint_store::Store;
use tokio::time::{Instant, timeout};

use crate::access::{Authenticator, Identity, NotAs, Peer, impersonate, is_public};
use crate::answer::{
    Body, Managed, RecentLines, Unread, add_warnings, compressed, status_answer, takes_gzip,
};
use crate::api::{Api, Config};
use crate::audit::{AuditFile, Record, Stage};
use crate::console::ConsoleSource;
use crate::decode::FieldValidation;
use crate::health;
use crate::metrics::{Metrics, RequestLabels};
use crate::request::media::{AnswerFormat, accepted_format};
use crate::request::target::decode_path;
use crate::status::Status;
use crate::stream::Takeover;
use crate::wire::UnderWay;
use dispatch::Call;
use long_running::{LongRunning, SHARE};
use places::{Place, Places};

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
    consoles: OnceLock<Arc<dyn ConsoleSource>>,
    limits: Limits,
    /// What those share who watch the same.
    recent: Arc<RecentLines>,
    /// What those share who come by a connection.
    outside: Share,
    /// What the parts of this process share: no client can take it from them.
    inside: Share,
    /// A place for each visit to a container, whoever comes by whatever connection.
    visits: LongRunning,
}

/// What some callers share.
#[derive(Debug)]
struct Share {
    /// A place for each request under way that is no watch.
    requests: Places,
    /// A place for each request whose body is coming.
    bodies: Places,
    /// A place for each watch and each log that is followed.
    long_running: LongRunning,
    /// What ends watches that nobody reads; the parts of this process read theirs.
    unread: Option<Unread>,
}

impl Share {
    fn new(limits: &Limits, long_running: LongRunning, unread: Option<Unread>) -> Self {
        Share {
            requests: Places::new(limits.requests, limits.stall_time),
            bodies: Places::new(limits.bodies, limits.stall_time),
            long_running,
            unread,
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
            consoles: OnceLock::new(),
            limits,
            recent: Arc::new(RecentLines::new()),
            outside: Share::new(
                &limits,
                LongRunning::at_most(limits.long_running, SHARE),
                Some(Unread::new(limits.unread_time)),
            ),
            inside: Share::new(&limits, LongRunning::unlimited(), None),
            visits: LongRunning::at_most(limits.visits, 1),
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

    /// Lets clients visit the containers that somebody runs. There is one who does.
    pub fn visit(&self, consoles: Arc<dyn ConsoleSource>) {
        self.inner.consoles.get_or_init(|| consoles);
    }

    /// The server as a caller within this process has it: known, and without a socket.
    pub fn local(&self, identity: Identity) -> LocalServer {
        let (peer, managed) = (Peer::InProcess(identity), Managed::Shown);
        let validation = FieldValidation::Warn;
        LocalServer { server: self.clone(), peer, managed, validation, agent: None }
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
        let body = pin!(body);
        let mut body = Coming { body, is_asked_for: false };
        let started = Instant::now();
        let mut audited = Audited::new(&self.inner, &parts);
        let mut labels = RequestLabels { verb: "other", group: "", resource: "", code: 0 };
        let answering = self.inner.answer(&parts, &mut body, &mut labels, audited.record());
        let answered = timeout(self.inner.limits.request_time, answering).await;
        let has_more_to_say = match &answered {
            Ok(Ok(answered)) => answered.refusal.is_some(),
            Ok(Err(_)) => true,
            // It has had its time.
            Err(_) => false,
        };
        if has_more_to_say && !body.is_still_awaited(&parts.headers) {
            self.inner.limits.pass_over(&mut body).await;
        }
        let result = answered.unwrap_or_else(|_| {
            Err(Status::timeout(
                "request did not complete within the allotted time; it may have been carried out",
            ))
        });
        let format = accepted_format(&parts.headers);
        let Answered { mut answer, refusal } =
            result.unwrap_or_else(|status| Answered::refused(status, format));
        let takeover = parts.extensions.get::<Takeover>();
        answer = audited.write_down(answer, refusal.as_ref(), takeover).await;
        if parts.method == Method::HEAD {
            *answer.body_mut() = Body::empty();
        }
        if let Some(under_way) = parts.extensions.get::<UnderWay>() {
            let under_way = under_way.clone();
            match parts.extensions.get::<Takeover>() {
                Some(takeover) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    takeover.hold(under_way);
                }
                _ => answer = answer.map(|body| body.holding(under_way)),
            }
        }
        labels.code = answer.status().as_u16();
        let took = (labels.verb != "watch").then(|| started.elapsed());
        self.inner.metrics.count(labels, took);
        answer
    }
}

/// An answer, and why it is a refusal, if it is one.
struct Answered {
    answer: Response<Body>,
    refusal: Option<Status>,
}

impl Answered {
    fn refused(status: Status, format: AnswerFormat) -> Self {
        Answered { answer: status_answer(&status, format), refusal: Some(status) }
    }
}

impl Inner {
    /// Answers a request, or refuses it.
    async fn answer<B>(
        &self,
        parts: &Parts,
        body: &mut Coming<'_, B>,
        labels: &mut RequestLabels,
        mut record: Option<&mut Record>,
    ) -> Result<Answered, Status>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if is_public(&parts.method, parts.uri.path()) {
            let answer = health::answer(parts.uri.path(), parts.uri.query(), &self.api);
            return Ok(Answered { answer, refusal: None });
        }
        let identity = self
            .authenticator
            .authenticate(&parts.headers, &parts.extensions)
            .map_err(|_| Status::unauthorized())?;
        if let Some(record) = &mut record {
            record.by(&identity);
        }
        let other = impersonate(&identity, &parts.headers).map_err(|why| match &why {
            NotAs::Forbidden(_) => Status::forbidden_path(why.to_string()),
            NotAs::Nobody | NotAs::NoText(_) => Status::bad_request(why.to_string()),
        })?;
        if let (Some(record), Some(other)) = (&mut record, &other) {
            record.on_behalf_of(other);
        }
        let caller = identity.user.clone();
        let identity = other.unwrap_or(identity);
        let path = decode_path(parts.uri.path())
            .ok_or_else(|| Status::bad_request("the path is not valid"))?;
        let call = Call::new(self, parts, &path, &caller, &identity)?;
        call.label(labels);
        let allowed = call.authorize();
        if let Some(record) = record {
            call.describe(record, allowed.is_ok());
        }
        allowed?;
        // Its place goes when it has one of the next kind.
        let (text, received) = match call.reads_body() && !body.is_end_stream() {
            true => self.receive(&call, body).await.map(|(text, place)| (text, Some(place)))?,
            false => (Bytes::new(), None),
        };
        let place = if call.is_long_running() {
            None
        } else {
            let place = call.share().requests.take(call.client(), self.limits.queue_time);
            Some((place.await.ok_or_else(too_many)?, self.metrics.in_flight()))
        };
        drop(received);
        let result = call.run(&text).await;
        let is_all_said = call.reads_body();
        let format = accepted_format(&parts.headers);
        let mut answered = match result {
            Ok(answer) => Answered { answer, refusal: None },
            Err(status) => Answered::refused(status, format),
        };
        if let Some(deprecation) = call.deprecation() {
            add_warnings(&mut answered.answer, &[deprecation]);
        }
        let Answered { mut answer, refusal } = answered;
        if takes_gzip(&parts.headers) {
            answer = compressed(answer);
        }
        // It is under way until it is read. Only whoever is refused and has more to say, which is
        // passed over first, is not: nobody would read the refusal until then.
        if let Some((place, running)) = place
            && (refusal.is_none() || is_all_said)
        {
            answer = answer.map(|body| body.lent(|answer| place.lend(answer), running));
        }
        Ok(Answered { answer, refusal })
    }

    /// The body of a request, and a place for as long as it waits for its turn.
    async fn receive<B>(
        &self,
        call: &Call<'_>,
        body: &mut Coming<'_, B>,
    ) -> Result<(Bytes, Place), Status>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let place = call.share().bodies.take(call.client(), self.limits.queue_time);
        let receiving = place.await.ok_or_else(too_many)?.receive();
        let read = receiving.read(read_body(body, self.limits.body_bytes)).await;
        let (text, place) = read.ok_or_else(|| {
            Status::too_many_requests(
                "the body of the request did not come while others waited; please try again later",
                1,
            )
        })?;
        Ok((text?, place))
    }
}

/// What is written down of a request: something in any case, also if nobody waits for its answer any
/// more, or if there is none.
struct Audited {
    server: Arc<Inner>,
    record: Option<Record>,
}

impl Audited {
    /// A request that has just come. Of what is public nothing is written down.
    fn new(server: &Arc<Inner>, parts: &Parts) -> Self {
        let is_audited =
            server.audit.get().is_some() && !is_public(&parts.method, parts.uri.path());
        let record = is_audited.then(|| Record::new(parts, server.api.clock.now()));
        Audited { server: server.clone(), record }
    }

    fn record(&mut self) -> Option<&mut Record> {
        self.record.as_mut()
    }

    /// Writes down what came of a request, and of what goes on for a while also its end.
    async fn write_down(
        mut self,
        mut answer: Response<Body>,
        refusal: Option<&Status>,
        takeover: Option<&Takeover>,
    ) -> Response<Body> {
        let Some(record) = self.record.take() else { return answer };
        let log = self.server.audit.get().expect("there is a record because there is a log");
        if let Ok(id) = HeaderValue::from_str(record.id()) {
            answer.headers_mut().insert("audit-id", id);
        }
        let code = answer.status();
        let line = |stage, refusal| record.line(stage, code, refusal, self.server.api.clock.now());
        let taken_over = takeover.filter(|_| code == StatusCode::SWITCHING_PROTOCOLS);
        if !answer.body().has_no_end() && taken_over.is_none() {
            log.add(line(Stage::ResponseComplete, refusal), record.whose()).await;
            return answer;
        }
        log.add(line(Stage::ResponseStarted, refusal), record.whose()).await;
        let ended = Ended { server: self.server.clone(), record, code };
        match taken_over {
            Some(takeover) => {
                takeover.hold(ended);
                answer
            }
            None => answer.map(|body| body.holding(ended)),
        }
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        let log = self.server.audit.get().expect("there is a record because there is a log");
        let now = self.server.api.clock.now();
        log.try_add(record.line_unanswered(std::thread::panicking(), now), record.whose());
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
        log.try_add(line, self.record.whose());
    }
}

/// The body of a request, which a client may hold back until it is asked for it.
struct Coming<'b, B> {
    body: Pin<&'b mut B>,
    is_asked_for: bool,
}

impl<B> Coming<'_, B> {
    /// Whether the client waits to be asked for it: to read it would be to ask.
    fn is_still_awaited(&self, headers: &HeaderMap) -> bool {
        let expected = headers.get(EXPECT).map(HeaderValue::as_bytes);
        let awaits = expected.is_some_and(|it| it.eq_ignore_ascii_case(b"100-continue"));
        awaits && !self.is_asked_for
    }
}

impl<B: http_body::Body> http_body::Body for Coming<'_, B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.is_asked_for = true;
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn too_many() -> Status {
    Status::too_many_requests("Too many requests, please try again later.", 1)
}

async fn read_body<B>(body: &mut Coming<'_, B>, limit: usize) -> Result<Bytes, Status>
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
    async fn pass_over<B: http_body::Body>(&self, body: &mut Coming<'_, B>) {
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
    managed: Managed,
    validation: FieldValidation,
    agent: Option<HeaderValue>,
}

impl LocalServer {
    /// The same for a caller of this name, by which it owns what it writes if it does not say
    /// who it is.
    pub fn named(self, agent: &'static str) -> Self {
        LocalServer { agent: Some(HeaderValue::from_static(agent)), ..self }
    }

    /// The same for a caller that does not ask who owns the fields of objects: `managedFields` are
    /// left out of all it is answered. What it writes is owned as ever, and an update without them
    /// leaves them alone.
    pub fn without_managed_fields(self) -> Self {
        LocalServer { managed: Managed::LeftOut, ..self }
    }

    /// The same where it is only the objects of one kind, by its plural, whose owners it does not ask for.
    pub fn without_managed_fields_of(self, plural: &'static str) -> Self {
        LocalServer { managed: Managed::LeftOutOf(plural), ..self }
    }

    /// The same for a caller that listens to no warnings: nobody looks for fields in what it writes that
    /// there are not, unless it asks for that.
    pub fn unwarned(self) -> Self {
        LocalServer { validation: FieldValidation::Ignore, ..self }
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
        request.extensions_mut().insert(self.managed);
        request.extensions_mut().insert(self.validation);
        if let Some(agent) = &self.agent {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        }
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
