//! What a connection may cost at most. It must not know what is said over it.

use std::time::Duration;

/// How many connections there may be. A process may have 1,024 open files unless it is told
/// otherwise; half of them are for the store and for Pods. A Go client needs one connection,
/// kubectl one for as long as it runs. Whoever comes beyond that waits to be accepted.
const CONNECTIONS: usize = 512;

/// How many requests may be under way on one HTTP/2 connection. A process with a watch for
/// each kind has a few dozen; one that watches a hundred Jobs by name has a hundred more. A Go
/// client opens another connection beyond that, but one made with hyper lets requests wait for
/// watches that never end, so that kube-apiserver's 100 are too few. Those are its answer to
/// rapid resets (CVE-2023-44487), which h2 counts by itself: it closes a connection with 20
/// resets that were not yet looked at.
const STREAMS: u32 = 250;

/// How long the head of a request may be: its target, which is 64 KiB at most for the `http`
/// crate, and its headers. A selector that names a thousand Jobs takes 40 KiB, a token a few.
/// hyper adds a limit of 100 headers in HTTP/1.1.
const HEAD_BYTES: u32 = 96 * 1024;

/// How much of an answer may wait for a slow reader on one HTTP/2 stream. With all streams of a
/// connection that is 32 MiB at worst.
const SEND_BUFFER_BYTES: usize = 128 * 1024;

/// How long a TLS handshake may take. It takes two round trips and a millisecond of work.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long after the handshake the first request must be there, and somebody have said who they
/// are: clients connect because they have a request, and nobody but a health check has one
/// without a name. After as long again whoever is a stranger still is cut off.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(10);

/// How long an HTTP/1.1 connection may go without a whole further request, idle or in the
/// middle of one. It is longer than the 90 seconds after which Go's and hyper's clients close
/// an idle connection by themselves: were we first, a request could be under way already.
const NEXT_REQUEST_TIME: Duration = Duration::from_secs(120);

/// How long an HTTP/2 connection is silent before its peer is asked for a sign of life. Go's
/// clients ask as often.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long the peer may take to give it. Go's clients wait as long.
const PING_TIME: Duration = Duration::from_secs(15);

/// How long a connection is silent before the operating system asks, which is what finds a
/// dead peer of an HTTP/1.1 watch. Go's servers ask as often.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// What connections may cost. The default is for use; tests take shorter times.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Requests at a time on one HTTP/2 connection.
    pub streams: u32,
    /// The length of a request's head.
    pub head_bytes: u32,
    /// What waits for a slow reader of one HTTP/2 stream.
    pub send_buffer_bytes: usize,
    /// From the connection to the end of the TLS handshake.
    pub handshake_time: Duration,
    /// From there to the first request, and to a caller who is known.
    pub first_request_time: Duration,
    /// From one HTTP/1.1 request to the next, and without any request in HTTP/2.
    pub next_request_time: Duration,
    /// Silence before a peer is asked for a sign of life, in HTTP/2.
    pub ping_interval: Duration,
    /// From the question to the answer.
    pub ping_time: Duration,
    /// Silence before the operating system asks.
    pub keep_alive_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: CONNECTIONS,
            streams: STREAMS,
            head_bytes: HEAD_BYTES,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            handshake_time: HANDSHAKE_TIME,
            first_request_time: FIRST_REQUEST_TIME,
            next_request_time: NEXT_REQUEST_TIME,
            ping_interval: PING_INTERVAL,
            ping_time: PING_TIME,
            keep_alive_interval: KEEP_ALIVE_INTERVAL,
        }
    }
}
