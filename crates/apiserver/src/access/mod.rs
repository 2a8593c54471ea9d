//! Who may come in, and what they may do.
//!
//! ```text
//! request ──▶ Authenticator ──▶ Identity ──▶ authorize(identity, attributes) ──▶ answer
//!                  │ 401                            │ 403
//! ```
//!
//! A caller is known by a certificate that the wire has verified, by a bearer token, or by
//! being part of this process ([`Peer`]). Every known caller has one [`Role`], and each role
//! is a table of rules (`roles`). An admin may ask as somebody else (`impersonate`), who may have none.
//!
//! This room judges requests. It must not know how they are served, where tokens and
//! certificates are kept, or sockets.

mod acquaintance;
mod attributes;
mod authenticate;
mod authorize;
mod client_certificate;
mod identity;
mod impersonate;
mod peer;
mod roles;

pub use acquaintance::Acquaintance;
pub use attributes::Attributes;
pub(crate) use authenticate::HEALTH_PATHS;
pub use authenticate::{Authenticator, Unauthorized, is_public};
pub use authorize::{Forbidden, authorize};
pub use client_certificate::{ClientCertificateError, identify};
pub use identity::{Identity, Role};
pub use impersonate::{NotAs, impersonate};
pub use peer::Peer;
pub(crate) use roles::READABLE_PATHS;
