//! Real sockets and real TLS: who is let in, what is cut off, and how it ends.

mod client;
mod server;

mod ending;
mod hostile;
mod identity;
mod listening;
