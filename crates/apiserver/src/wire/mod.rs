//! The wire: sockets, TLS, and what clients need to get through them.
//!
//! ```text
//! data folder           ┌─ Certificates ─▶ Listener ◀── TLS ── clients
//!   pki/    ◀───────────┤                     │ request, with its Peer
//!   tokens/ ◀── Tokens ─┤                     ▼
//!                       └─▶ Kubeconfig     a tower service
//! ```
//!
//! This room moves requests and proves who is at the other end of a connection. It must not
//! know what requests mean, or what a role may do.

mod activity;
mod certificates;
mod connection;
mod issuer;
mod keyed_certificate;
mod kubeconfig;
mod limits;
mod listener;
mod private_file;
mod server_names;
mod strangers;
mod tls;
mod tokens;

pub use activity::UnderWay;
pub use certificates::{Certificates, CertificatesError};
pub use issuer::IssueError;
pub use keyed_certificate::{KeyedCertificate, KeyedCertificateError};
pub use kubeconfig::{Credential, Kubeconfig, KubeconfigError};
pub use limits::Limits;
pub use listener::{ListenError, ListenOptions, Listener, Served};
pub use private_file::PrivateFileError;
pub use server_names::ServerNames;
pub use tls::TlsError;
pub use tokens::{Tokens, TokensError};
