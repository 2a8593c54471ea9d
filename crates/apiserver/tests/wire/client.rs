//! A client that does what it is told, also what no client should do.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use stint_apiserver::wire::{Certificates, KeyedCertificate};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What a client offers in its handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offers {
    Http1,
    Http2,
    Both,
    Nothing,
}

/// Whom a client trusts, and who it is.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) trusts: &'a Certificates,
    pub(crate) shows: Option<&'a KeyedCertificate>,
    pub(crate) offers: Offers,
}

impl<'a> Client<'a> {
    pub(crate) fn new(trusts: &'a Certificates, offers: Offers) -> Self {
        Client { trusts, shows: None, offers }
    }

    pub(crate) fn showing(self, keyed: Option<&'a KeyedCertificate>) -> Self {
        Client { shows: keyed, ..self }
    }

    /// A connection with TLS, and nothing said on it yet.
    pub(crate) async fn connect(self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        self.connect_to(address, "localhost").await
    }

    /// The same to a server that must be called `name`.
    pub(crate) async fn connect_to(
        self,
        address: SocketAddr,
        name: &'static str,
    ) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name).expect("a name");
        TlsConnector::from(Arc::new(self.config())).connect(name, stream).await
    }

    /// One request on a connection of its own, and the whole answer.
    pub(crate) async fn get(self, address: SocketAddr, path: &str) -> Result<Answer, Failure> {
        let request = Request::get(format!("https://localhost{path}"));
        self.ask(address, request.body(Empty::new()).expect("a request")).await
    }

    /// The same with any request.
    pub(crate) async fn ask(
        self,
        address: SocketAddr,
        request: Request<Empty<Bytes>>,
    ) -> Result<Answer, Failure> {
        let stream = self.connect(address).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let response = if is_http2 {
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        } else {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        };
        Answer::read(response).await
    }

    /// A connection for one HTTP/1.1 request after another.
    pub(crate) async fn keep(self, address: SocketAddr) -> Result<Kept, Failure> {
        let stream = self.connect(address).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Kept(sender))
    }

    fn config(self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(self.trusts.authority_pem())).expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let mut config = match self.shows {
            Some(keyed) => {
                let key = PrivateKeyDer::from_pem_slice(keyed.key_pem().as_bytes()).expect("a key");
                let chain = vec![certificate(keyed.certificate_pem())];
                builder.with_client_auth_cert(chain, key).expect("a certificate with its key")
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = match self.offers {
            Offers::Http1 => vec![b"http/1.1".to_vec()],
            Offers::Http2 => vec![b"h2".to_vec()],
            Offers::Both => vec![b"http/1.1".to_vec(), b"h2".to_vec()],
            Offers::Nothing => vec![],
        };
        config
    }
}

/// A connection that is used more than once.
pub(crate) struct Kept(http1::SendRequest<Empty<Bytes>>);

impl Kept {
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        let request = Request::get(path).header(HOST, "localhost").body(Empty::new())?;
        self.0.ready().await?;
        Answer::read(self.0.send_request(request).await?).await
    }
}

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn read(response: Response<hyper::body::Incoming>) -> Result<Self, Failure> {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let text = String::from_utf8(bytes.to_vec())?;
        Ok(Answer { status: parts.status, version: parts.version, text })
    }
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}
