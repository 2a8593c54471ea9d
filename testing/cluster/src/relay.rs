//! Stands between a client and kube-apiserver and counts what the client is sent. It sees nothing of
//! it: TLS goes through it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How much is passed on at once.
const BUFFER: usize = 64 << 10;

/// A relay, as long as the value lives.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    _serving: JoinSet<()>,
}

impl Relay {
    /// Starts one to where a server is.
    pub async fn start(url: &str) -> io::Result<Self> {
        let server = url.rsplit('/').next().unwrap_or_default().to_owned();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let sent = Arc::new(AtomicU64::new(0));
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, server, sent.clone()));
        Ok(Relay { address, sent, _serving: serving })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// How many bytes its clients were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, server: String, sent: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (server, sent) = (server.clone(), sent.clone());
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let asked = AtomicU64::new(0);
            join(pass(from_client, to_server, &asked), pass(from_server, to_client, &sent)).await;
        });
    }
}

/// Passes on what comes until it ends; an error is a connection that was cut.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, count: &AtomicU64) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(length as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
