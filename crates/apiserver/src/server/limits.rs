//! How much the server takes on at once.

use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests under way at once. kube-apiserver takes 600 by default (400 that read, 200
    /// that write); each holds a body of at most `body_bytes` here, so 600 hold 1.8 GB at the
    /// very worst. Those of this process, which are the cluster itself, have as many again.
    pub requests: usize,
    /// Bodies of requests that are coming, or have come and wait for their turn. A body that is
    /// whole at once needs its place for microseconds; 200 of the largest size are 600 MB.
    pub bodies: usize,
    /// How long a request may wait for its turn before it is told to come back.
    pub queue_time: Duration,
    /// How long an answer may go unread, or a body not be there, while others wait for its place.
    /// A connection that is alive takes some of an answer every few milliseconds, and brings the
    /// largest body in much less than this.
    pub stall_time: Duration,
    /// How long a watch may have something to tell that nobody takes before it is ended, also before
    /// its time is over. A client whose process is stopped for a moment, or whose user reads page
    /// by page, has more than the few seconds after which it would hold others up.
    pub unread_time: Duration,
    /// Watches and logs at once. Each costs a few KB while it is read and a place in one shared window: ten
    /// thousand are some 50 MB. A connection may have as many as are left for all others, so that
    /// with 512 connections each can have 19. Those of this process are not limited.
    pub long_running: usize,
    /// Visits to containers at once. Each has a connection of its own, of which there are 512, three
    /// pipes and two processes: 128 are as many as a machine bears beside its Pods, and leave three
    /// quarters of the connections to others.
    pub visits: usize,
    /// How long nothing may be said in a visit: as by a kubelet.
    pub visit_idle_time: Duration,
    /// How long a request may take that is no watch: as in kube-apiserver.
    pub request_time: Duration,
    /// The largest body of a request: as in kube-apiserver, and what the store takes.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            requests: 600,
            bodies: 200,
            queue_time: Duration::from_secs(15),
            stall_time: Duration::from_secs(5),
            unread_time: Duration::from_secs(30),
            long_running: 10_000,
            visits: 128,
            visit_idle_time: Duration::from_secs(4 * 60 * 60),
            request_time: Duration::from_secs(60),
            body_bytes: 3 * 1024 * 1024,
        }
    }
}
