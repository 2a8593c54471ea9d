//! Takes connections in, and lets them go at the end. It must not know what is said over them.

use super::connection::{Connections, Who};
use super::strangers::Strangers;
use super::{Certificates, Limits, TlsError, tls};
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// How long to wait when the operating system has no room for another connection. It has when
/// one of ours is closed, which it does not tell.
const PAUSE_WITHOUT_ROOM: Duration = Duration::from_millis(200);

/// How long to wait for room before somebody else is asked to go: longer than those take who were.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// The address. With port 0 the operating system chooses one.
    pub address: SocketAddr,
    /// Whether the address may be one that other machines reach.
    pub allow_remote: bool,
    /// What connections may cost.
    pub limits: Limits,
}

impl ListenOptions {
    /// On this address, which must be one of this machine alone.
    pub fn new(address: SocketAddr) -> Self {
        ListenOptions { address, allow_remote: false, limits: Limits::default() }
    }
}

/// Why nobody can be listened to.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Other machines could connect, and nobody has said that they may.
    #[error(
        "will not listen on {address}, which other machines can reach: use --listen \
         127.0.0.1:{port}, or add --allow-remote if they are meant to", port = address.port()
    )]
    Remote {
        /// The address.
        address: SocketAddr,
    },
    /// Somebody else listens there.
    #[error(
        "cannot listen on {address}: another process does already; stop it, or choose another \
         address with --listen (port 0 takes any that is free)"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The operating system refuses.
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// What became of the connections that were there at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// How many had to be closed with requests under way.
    pub cut: usize,
}

/// A socket that listens. Clients can connect from here on, and are served from
/// [`serve`](Self::serve) on.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: TlsAcceptor,
    limits: Limits,
}

impl Listener {
    /// Listens with these certificates.
    pub async fn bind(
        options: ListenOptions,
        certificates: &Certificates,
    ) -> Result<Self, ListenError> {
        let address = options.address;
        if !address.ip().to_canonical().is_loopback() && !options.allow_remote {
            return Err(ListenError::Remote { address });
        }
        let tls = TlsAcceptor::from(Arc::new(tls::server_config(certificates)?));
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse { address, source },
            _ => ListenError::Bind { address, source },
        };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Listener { socket, address, tls, limits: options.limits })
    }

    /// Where clients connect to, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves every request of every connection with a clone of `service`, until `shutdown` is
    /// there. A request has its [`Peer`](crate::access::Peer) among its extensions.
    ///
    /// # Guarantees
    ///
    /// From `shutdown` on no connection and no further request is taken. Requests that are
    /// under way have `grace` to finish; then their connections are closed. All connections are
    /// closed when this returns. A watch does not finish by itself: who wants to end before
    /// `grace` must end its watches.
    pub async fn serve<S, B>(
        self,
        service: S,
        shutdown: impl Future<Output = ()>,
        grace: Duration,
    ) -> Served
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let connections = Arc::new(Connections::new(self.tls, self.limits));
        let strangers = Strangers::default();
        let mut door = Door::new(self.socket, self.limits.connections, strangers.clone());
        let (ending, watched) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = shutdown.as_mut() => break,
                Some(ended) = tasks.join_next() => report(ended),
                (stream, address, permit) = door.next() => {
                    let (connections, service) = (connections.clone(), service.clone());
                    let (watched, visit) = (watched.clone(), strangers.arrive());
                    tasks.spawn(async move {
                        let who = Who {
                            acquaintance: visit.acquaintance.clone(),
                            activity: visit.activity.clone(),
                            dismiss: visit.dismiss.clone(),
                        };
                        tokio::select! {
                            () = connections.attend(stream, address, service, who, watched) => {}
                            () = visit.sent_away() => {
                                tracing::debug!(%address, "a stranger makes room for another");
                            }
                        }
                        drop(permit);
                    });
                }
            }
        }

        drop(door);
        ending.send_replace(true);
        let all_ended = async {
            while let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        };
        let cut = match timeout(grace, all_ended).await {
            Ok(()) => 0,
            Err(_) => tasks.len(),
        };
        tasks.shutdown().await;
        Served { cut }
    }
}

/// Where connections come in, no more at a time than there is room for. Strangers make room for
/// who comes after them; without any, newcomers wait.
struct Door {
    socket: TcpListener,
    room: Arc<Semaphore>,
    strangers: Strangers,
    /// The one who came last, until there is room.
    newcomer: Option<(TcpStream, SocketAddr)>,
    /// Whether it was said that there is no room left; once is enough.
    is_full_told: bool,
    /// Whether it was said that nothing can be accepted; once is enough until it can.
    is_trouble_told: bool,
}

impl Door {
    fn new(socket: TcpListener, connections: usize, strangers: Strangers) -> Self {
        let room = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        let (is_full_told, is_trouble_told) = (false, false);
        Door { socket, room, strangers, newcomer: None, is_full_told, is_trouble_told }
    }

    /// The next connection. It can be dropped at any time without losing one.
    async fn next(&mut self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        if self.newcomer.is_none() {
            self.newcomer = Some(self.accept().await);
        }
        let permit = loop {
            if self.room.available_permits() == 0
                && !self.strangers.send_one_away()
                && !std::mem::replace(&mut self.is_full_told, true)
            {
                tracing::warn!("there is no room for more connections; new ones wait");
            }
            // Somebody may have nothing under way by then.
            match timeout(LOOK_AGAIN, self.room.clone().acquire_owned()).await {
                Ok(permit) => break permit.expect("it is never closed"),
                Err(_) => continue,
            }
        };
        let (stream, address) = self.newcomer.take().expect("somebody came");
        (stream, address, permit)
    }

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok(accepted) => {
                    self.is_trouble_told = false;
                    return accepted;
                }
                Err(error) if is_of_one_connection(&error) => {
                    tracing::debug!(%error, "a connection was gone before it was accepted");
                }
                Err(error) => {
                    if !self.is_trouble_told {
                        self.is_trouble_told = true;
                        tracing::warn!(%error, "no connection can be accepted for now");
                    }
                    sleep(PAUSE_WITHOUT_ROOM).await;
                }
            }
        }
    }
}

/// Whether an error says something about one connection, rather than about all.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// A service that panics ends its connection and nothing else.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a request panicked");
    }
}
