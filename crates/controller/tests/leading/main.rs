//! Replicas and their Lease, on the embedded API server in one process: no sockets, and time
//! that passes only when nobody has anything to do.

mod lease;
mod net;
mod replica;
#[path = "../running/still.rs"]
mod still;
mod work;
