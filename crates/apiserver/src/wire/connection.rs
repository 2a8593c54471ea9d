//! One connection, from its handshake to its end. It must not know how connections come in, or
//! what requests mean.
//!
//! ```text
//! accepted ──handshake──▶ silent ──first request──▶ heard ──closed by either side──▶ gone
//!     │ too slow             │ too slow, ending        │ ending, or a stranger for too long:
//!     ▼                      ▼                         ▼ what is under way finishes, nothing new
//!   gone                   gone                      gone
//! ```
//!
//! Over HTTP/2 whoever has nothing under way for too long is let go, and over either version the one who
//! has had nothing for longest, when somebody needs the place.
//!
//! A stranger is who has not said who they are. What they may ask for is answered at once, so
//! they have no reason to stay.

use super::activity::Activity;
use super::{Limits, tls};
use crate::access::{Acquaintance, Peer};
use crate::stream::{Afterwards, Takeover};
use hyper::body::{Body, Incoming};
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use std::error::Error;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_service::Service;

/// How long a connection without anything under way may take to go when it is told to: a client that
/// listens does so at once.
const LEAVING_TIME: std::time::Duration = std::time::Duration::from_secs(1);

type Stream = TokioIo<TlsStream<TcpStream>>;

/// What all connections of a listener have in common.
pub(super) struct Connections {
    tls: TlsAcceptor,
    limits: Limits,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Connections {
    pub(super) fn new(tls: TlsAcceptor, limits: Limits) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.next_request_time)
            .max_header_size(limits.head_bytes as usize);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(limits.head_bytes)
            .max_concurrent_streams(limits.streams)
            .max_send_buf_size(limits.send_buffer_bytes)
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(limits.ping_time);
        Connections { tls, limits, http1, http2 }
    }

    /// Serves one connection until either side ends it. When `ending` becomes true, what is
    /// under way may finish, and then it ends.
    pub(super) async fn attend<S, B>(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        service: S,
        who: Who,
        mut ending: watch::Receiver<bool>,
    ) where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.tune(&stream, address);
        let handshake = timeout(self.limits.handshake_time, self.tls.accept(stream));
        let stream = tokio::select! {
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                // Port scanners, health checks and clients that trust somebody else: nothing
                // that an operator has to know of.
                Ok(Err(error)) => return tracing::debug!(%address, %error, "no TLS handshake"),
                Err(_) => return tracing::debug!(%address, "the TLS handshake took too long"),
            },
            _ = ending.wait_for(|is_ending| *is_ending) => return,
        };

        let (_, session) = stream.get_ref();
        let is_http2 = tls::is_http2(session);
        let is_heard = Arc::new(AtomicBool::new(false));
        let attended = Attended {
            service: TowerToHyperService::new(service),
            peer: Peer::Remote { address, certificate: tls::peer(session) },
            acquaintance: who.acquaintance.clone(),
            activity: who.activity.clone(),
            is_heard: is_heard.clone(),
            afterwards: (!is_http2).then(Afterwards::default),
        };
        let afterwards = attended.afterwards.clone();
        let known = Known { is_heard: &is_heard, who: &who, is_http2 };
        // The handshake has settled the version, so that nothing has to be read to find it out.
        let stream = TokioIo::new(stream);
        let ended = if is_http2 {
            let connection = self.http2.serve_connection(stream, attended);
            self.see_through(connection, known, ending).await
        } else {
            let connection = self.http1.serve_connection(stream, attended).with_upgrades();
            self.see_through(connection, known, ending).await
        };
        if let Err(error) = ended {
            return tracing::debug!(%address, %error, "the connection ended early");
        }
        if let Some(afterwards) = afterwards {
            afterwards.run().await;
        }
    }

    /// Sees a connection through to its end.
    async fn see_through<C: Graceful>(
        &self,
        connection: C,
        known: Known<'_>,
        mut ending: watch::Receiver<bool>,
    ) -> hyper::Result<()> {
        let mut connection = pin!(connection);
        let mut introduction = pin!(sleep(self.limits.first_request_time));
        // How often its time has run out: first it may finish what it has begun, then it goes.
        let mut reminders = 0;
        let mut is_ending = false;
        let activity = &known.who.activity;
        let mut idle_look = pin!(sleep(self.limits.next_request_time));
        // When it was let go, as long as it has nothing under way.
        let mut is_dismissed = false;
        loop {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = introduction.as_mut(), if reminders < 2 => {
                    reminders += 1;
                    let again = introduction.deadline() + self.limits.first_request_time;
                    introduction.as_mut().reset(again);
                    if !known.who.acquaintance.is_made() {
                        connection.as_mut().graceful_shutdown();
                    }
                }
                () = idle_look.as_mut(), if known.is_http2 || is_dismissed => {
                    let now = Instant::now();
                    let next = match activity.idle_since() {
                        // It was told, and has had its time.
                        Some(_) if is_dismissed => return Ok(()),
                        Some(since) if since + self.limits.next_request_time <= now => {
                            is_dismissed = true;
                            connection.as_mut().graceful_shutdown();
                            now + LEAVING_TIME
                        }
                        Some(since) => since + self.limits.next_request_time,
                        None if is_dismissed => now + LEAVING_TIME,
                        None => now + self.limits.next_request_time,
                    };
                    idle_look.as_mut().reset(next);
                }
                () = known.who.dismiss.notified() => {
                    is_dismissed = true;
                    connection.as_mut().graceful_shutdown();
                    idle_look.as_mut().reset(Instant::now() + LEAVING_TIME);
                }
                _ = ending.wait_for(|is_ending| *is_ending), if !is_ending => {
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
            // Whoever has said nothing by now has nothing to lose.
            let is_silent = !known.is_heard.load(Ordering::Relaxed);
            let is_late = reminders > 0 && is_silent;
            let is_stranger = reminders > 1 && !known.who.acquaintance.is_made();
            if is_late || is_stranger || (is_ending && is_silent) {
                return Ok(());
            }
        }
    }

    /// Sends answers at once, and finds out about peers that are gone. A connection works
    /// without either.
    fn tune(&self, stream: &TcpStream, address: SocketAddr) {
        let interval = self.limits.keep_alive_interval;
        let keep_alive = TcpKeepalive::new().with_time(interval).with_interval(interval);
        let tuned = stream
            .set_nodelay(true)
            .and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keep_alive));
        if let Err(error) = tuned {
            tracing::debug!(%address, %error, "the connection cannot be tuned");
        }
    }
}

/// A connection that can be told to end.
trait Graceful: Future<Output = hyper::Result<()>> {
    /// Lets it finish what is under way, and nothing more.
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<S, B> Graceful for http1::UpgradeableConnection<Stream, Attended<S>>
where
    Attended<S>: HttpService<Incoming, ResBody = B>,
    <Attended<S> as HttpService<Incoming>>::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S, B> Graceful for http2::Connection<Stream, Attended<S>, TokioExecutor>
where
    Attended<S>: HttpService<Incoming, ResBody = B>,
    <Attended<S> as HttpService<Incoming>>::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    TokioExecutor: Http2ServerConnExec<<Attended<S> as HttpService<Incoming>>::Future, B>,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// What is known of the other end by those who let it in.
pub(super) struct Who {
    /// Whether it has said who it is.
    pub(super) acquaintance: Acquaintance,
    /// What it has under way.
    pub(super) activity: Activity,
    /// Told when somebody else needs the place.
    pub(super) dismiss: Arc<Notify>,
}

/// What is known of the other end.
#[derive(Clone, Copy)]
struct Known<'c> {
    /// Whether there has been a request.
    is_heard: &'c AtomicBool,
    /// What is known besides.
    who: &'c Who,
    /// Whether it may have many requests under way; else hyper looks whether it is idle.
    is_http2: bool,
}

/// A service whose requests say where they come from.
struct Attended<S> {
    service: TowerToHyperService<S>,
    peer: Peer,
    acquaintance: Acquaintance,
    activity: Activity,
    /// Whether there has been a request.
    is_heard: Arc<AtomicBool>,
    /// What goes on after HTTP, where something can.
    afterwards: Option<Afterwards>,
}

impl<S> hyper::service::Service<Request<Incoming>> for Attended<S>
where
    S: Service<Request<Incoming>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = <TowerToHyperService<S> as hyper::service::Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.is_heard.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(self.peer.clone());
        request.extensions_mut().insert(self.acquaintance.clone());
        request.extensions_mut().insert(self.activity.begin());
        if let Some(afterwards) = &self.afterwards {
            let upgrade = hyper::upgrade::on(&mut request);
            request.extensions_mut().insert(Takeover::new(upgrade, afterwards.clone()));
        }
        self.service.call(request)
    }
}
