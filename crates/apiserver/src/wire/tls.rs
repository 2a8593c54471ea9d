//! How TLS is spoken: which certificate is shown, which are believed, and whom they name. It
//! must not know sockets or HTTP.

use super::{Certificates, KeyedCertificateError};
use crate::access::{self, Identity};
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, ServerConnection};

/// The names of HTTP/2 and HTTP/1.1 in a handshake, in the order of our liking.
const PROTOCOLS: [&[u8]; 2] = [HTTP_2, b"http/1.1"];
const HTTP_2: &[u8] = b"h2";

/// Why TLS cannot be spoken.
#[derive(Debug, Error)]
pub enum TlsError {
    /// No version of TLS is left that the cryptography supports.
    #[error("cannot choose a version of TLS: {source}")]
    Versions {
        /// What rustls says.
        source: rustls::Error,
    },
    /// The authority cannot be trusted.
    #[error("cannot trust the certificate authority: {source}")]
    Authority {
        /// What rustls says.
        source: rustls::Error,
    },
    /// Client certificates cannot be verified.
    #[error("cannot verify client certificates: {source}")]
    Verifier {
        /// What rustls says.
        source: VerifierBuilderError,
    },
    /// The server's certificate cannot be read.
    #[error("cannot read the server's certificate: {source}")]
    ReadCertificate {
        /// What is wrong with it.
        source: KeyedCertificateError,
    },
    /// The server's certificate cannot be used.
    #[error("cannot use the server's certificate: {source}")]
    UseCertificate {
        /// What rustls says.
        source: rustls::Error,
    },
}

/// TLS with the server's certificate. Clients may show one of the same authority, and need not.
pub(super) fn server_config(certificates: &Certificates) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificates.authority().clone()).map_err(|source| TlsError::Authority { source })?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(|source| TlsError::Verifier { source })?;
    let unread = |source| TlsError::ReadCertificate { source };
    let certificate = certificates.server().certificate().map_err(unread)?;
    let key = certificates.server().key_der().map_err(unread)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Versions { source })?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .map_err(|source| TlsError::UseCertificate { source })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// Whom the client's certificate names. It was verified in the handshake.
pub(super) fn peer(connection: &ServerConnection) -> Option<Identity> {
    let certificate = connection.peer_certificates()?.first()?;
    match access::identify(certificate) {
        Ok(identity) => Some(identity),
        Err(error) => {
            tracing::debug!(%error, "a client certificate of our authority names nobody");
            None
        }
    }
}

/// Whether both sides have agreed on HTTP/2. Who agrees on nothing speaks HTTP/1.1.
pub(super) fn is_http2(connection: &ServerConnection) -> bool {
    connection.alpn_protocol() == Some(HTTP_2)
}
