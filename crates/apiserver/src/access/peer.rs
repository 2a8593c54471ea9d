//! Where a request comes from, as an extension of the request. Whoever takes requests in puts
//! it there; it must not know how they do so.

use super::Identity;
use std::net::SocketAddr;

/// The other end of a request.
///
/// It is put into the request's extensions by what takes the request in, never by what the
/// request itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A part of this process, which is whom it says it is.
    InProcess(Identity),
    /// Someone at the other end of a connection.
    Remote {
        /// Where the connection comes from.
        address: SocketAddr,
        /// Whom its certificate names. The certificate was verified, and its owner has proved
        /// to hold its key.
        certificate: Option<Identity>,
    },
}

impl Peer {
    /// Who the peer is, if that is known before its request is read.
    pub fn identity(&self) -> Option<&Identity> {
        match self {
            Peer::InProcess(identity) => Some(identity),
            Peer::Remote { certificate, .. } => certificate.as_ref(),
        }
    }

    /// Where the peer is, if it is somewhere else.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Peer::InProcess(_) => None,
            Peer::Remote { address, .. } => Some(*address),
        }
    }
}
