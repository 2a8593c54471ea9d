//! A proxy in front of kube-apiserver for one client: it answers some requests itself, with 429 or
//! 500, is slow with others, and cuts connections before or after the server has done what it was
//! asked. It speaks plain HTTP on loopback, and to the server as the user it was started for.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Sleep;

use crate::authority::User;
use crate::cluster::{Cluster, ClusterError};
use crate::dice::Dice;

/// The most that a slow answer takes: less than anybody waits for one.
const SLOWEST_MS: u32 = 1500;

/// The longest life of a watch, of which there are several in a short test.
const WATCH_MS: u32 = 8000;

/// The life of a watch that is not cut: longer than any test.
const FOREVER_MS: u32 = 3_600_000;

/// What can be wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is refused for now (429, with Retry-After).
    TooMany,
    /// It is answered with 500.
    Broken,
    /// The connection is cut, and the server has not heard of it.
    Cut,
    /// The server does it, and the connection is cut.
    Lost,
    /// It takes its time.
    Slow,
    /// It is not allowed (403), as a quota says it.
    Forbidden,
}

/// What a proxy does to requests.
#[derive(Clone, Copy, Debug)]
pub enum Faults {
    /// What follows from a seed, and from the order of the requests.
    Seeded(u64),
    /// The first Pod is asked for in vain, so that nobody knows whether there is one, and three more
    /// requests for Pods are refused with the same words. All else goes well.
    FirstPods,
}

/// How many of a hundred requests meet each.
const SHARES: [(Fault, u32); 5] =
    [(Fault::TooMany, 4), (Fault::Broken, 4), (Fault::Cut, 4), (Fault::Lost, 4), (Fault::Slow, 10)];

type BoxError = Box<dyn Error + Send + Sync>;
type AnyBody = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// A proxy, as long as the value lives.
#[derive(Debug)]
pub struct Proxy {
    /// Where it is.
    pub url: String,
    weather: Arc<Mutex<Weather>>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Weather {
    faults: Faults,
    dice: Dice,
    met: Vec<Fault>,
}

impl Proxy {
    /// Starts one for somebody.
    pub async fn start(
        cluster: &Cluster,
        user: &User,
        faults: Faults,
    ) -> Result<Self, ClusterError> {
        let client = cluster.client(user).await?;
        let program = "the proxy";
        let failed = |source| ClusterError::Spawn { program, source };
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(anywhere).await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let dice = Dice::new(match faults {
            Faults::Seeded(seed) => seed,
            Faults::FirstPods => 0,
        });
        let weather = Weather { faults, dice, met: Vec::new() };
        let weather = Arc::new(Mutex::new(weather));
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, client, weather.clone()));
        Ok(Proxy { url, weather, _serving: serving })
    }

    /// How often each fault was met.
    pub fn met(&self) -> Vec<(Fault, usize)> {
        let weather = self.weather.lock().expect("nobody panics here");
        let count = |fault| weather.met.iter().filter(|&&met| met == fault).count();
        SHARES.iter().map(|&(fault, _)| (fault, count(fault))).collect()
    }
}

async fn accept(listener: TcpListener, client: Client, weather: Arc<Mutex<Weather>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, client.clone(), weather.clone()));
    }
}

async fn serve(stream: TcpStream, client: Client, weather: Arc<Mutex<Weather>>) {
    let service = service_fn(|request| answer(request, client.clone(), weather.clone()));
    // An error is a connection that was cut, by us or by the client.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The answer to a request; an error cuts the connection.
async fn answer(
    request: Request<Incoming>,
    client: Client,
    weather: Arc<Mutex<Weather>>,
) -> Result<Response<AnyBody>, BoxError> {
    let (fault, slow_ms, watch_ms) = draw(&weather, &request);
    match fault {
        Some(Fault::TooMany) => {
            let mut refusal = refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            refusal.headers_mut().insert(header::RETRY_AFTER, 1.into());
            return Ok(refusal);
        }
        Some(Fault::Broken) => {
            return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        }
        Some(Fault::Forbidden) => return Ok(refusal(StatusCode::FORBIDDEN, "Forbidden")),
        Some(Fault::Cut) => return Err("cut before it was heard".into()),
        Some(Fault::Slow) => tokio::time::sleep(Duration::from_millis(slow_ms.into())).await,
        Some(Fault::Lost) | None => {}
    }
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let response = client.send(forwarded(request).await?).await?;
    if fault == Some(Fault::Lost) {
        return Err("cut before it was answered".into());
    }
    let (mut head, body) = response.into_parts();
    without_hops(&mut head.headers);
    let body: AnyBody = match is_watch && head.status.is_success() {
        true => cut_after(body, watch_ms),
        false => Box::pin(body.map_err(BoxError::from)),
    };
    Ok(Response::from_parts(head, body))
}

/// What a request meets; how long it takes if it is slow, and how long it lasts if it is a watch.
fn draw(weather: &Mutex<Weather>, request: &Request<Incoming>) -> (Option<Fault>, u32, u32) {
    let mut weather = weather.lock().expect("nobody panics here");
    let (fault, slow_ms, watch_ms) = match weather.faults {
        Faults::Seeded(_) => {
            let dice = &mut weather.dice;
            let (share, slow_ms) = (dice.below(100), dice.below(SLOWEST_MS));
            let watch_ms = dice.below(WATCH_MS);
            (by_share(share), slow_ms, watch_ms)
        }
        Faults::FirstPods => {
            let is_pod =
                request.method() == Method::POST && request.uri().path().ends_with("/pods");
            let fault = match weather.met.len() {
                0 => Some(Fault::Cut),
                1..=3 => Some(Fault::Forbidden),
                _ => None,
            };
            (fault.filter(|_| is_pod), 0, FOREVER_MS)
        }
    };
    weather.met.extend(fault);
    (fault, slow_ms, watch_ms)
}

fn by_share(mut left: u32) -> Option<Fault> {
    let fault = SHARES.iter().find(|(_, share)| {
        let is_met = left < *share;
        left = left.saturating_sub(*share);
        is_met
    });
    fault.map(|&(fault, _)| fault)
}

/// The same request for the server.
async fn forwarded(
    request: Request<Incoming>,
) -> Result<Request<kube::client::Body>, hyper::Error> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    head.headers.remove(header::HOST);
    without_hops(&mut head.headers);
    Ok(Request::from_parts(head, kube::client::Body::from(body.to_vec())))
}

/// What is between the proxy and one side only.
fn without_hops(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
}

/// A watch that is cut in its middle, unless it ends before.
fn cut_after(body: kube::client::Body, life_ms: u32) -> AnyBody {
    let over = Box::pin(tokio::time::sleep(Duration::from_millis(life_ms.into())));
    let frames = BodyStream::new(body).map(|frame| frame.map_err(BoxError::from));
    let next = async |(mut frames, mut over): (BoxStream<'static, _>, Pin<Box<Sleep>>)| {
        let frame: Result<Frame<Bytes>, BoxError> = tokio::select! {
            frame = frames.next() => frame?,
            () = &mut over => Err("cut in its middle".into()),
        };
        Some((frame, (frames, over)))
    };
    Box::pin(StreamBody::new(stream::unfold((frames.boxed(), over), next)))
}

/// What kube-apiserver says when it does not want to.
fn refusal(code: StatusCode, reason: &str) -> Response<AnyBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the proxy says so", "reason": reason, "code": code.as_u16(),
    });
    let body = Full::from(status.to_string()).map_err(|never: Infallible| match never {});
    let body: AnyBody = Box::pin(body);
    let response =
        Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    response.body(body).expect("an answer")
}
