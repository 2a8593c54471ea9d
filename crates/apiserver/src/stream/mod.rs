//! What goes both ways over a connection for a while: WebSockets (RFC 6455), and the channels that
//! Kubernetes has on them for the streams of a process.
//!
//! ```text
//!   request ─▶ handshake ─▶ takeover of the connection ─▶ conversation ─▶ close
//!                                                           │   ▲
//!                                   frame ◀▶ channel ◀──────┘   └──── console (who runs containers)
//! ```
//!
//! The codec is our own, because of what is wanted of it: the payload of a frame is handed on as it
//! comes, so that a visitor costs the same memory whatever he sends; the crates that there are collect
//! whole messages, of which clients send some with many megabytes. It has no client's side and no
//! extensions.

mod channel;
mod conversation;
mod frame;
mod handshake;
mod takeover;

pub(crate) use conversation::{Conversation, Patience};
pub(crate) use handshake::{accept, negotiate};
pub(crate) use takeover::{Afterwards, Takeover};
