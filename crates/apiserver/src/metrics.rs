//! What the server counts of itself, under the names that kube-apiserver uses.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// What a request is counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) verb: &'static str,
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct VerbLabels {
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
}

/// What ends a text of counters.
const END: &str = "# EOF\n";

/// The upper bounds of durations in seconds: from a read in memory to a commit on a slow disk.
const BUCKETS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// The text of counters that other parts of the same process keep.
pub(crate) type Source = Box<dyn Fn() -> String + Send + Sync>;

/// The server's counters.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<VerbLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    watchers: Gauge,
    revision: Gauge<u64, AtomicU64>,
    others: RwLock<Vec<Source>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::<RequestLabels, Counter>::default();
        let durations: Family<VerbLabels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let (in_flight, watchers, revision) =
            (Gauge::default(), Gauge::default(), Gauge::<u64, AtomicU64>::default());
        registry.register(
            "apiserver_request",
            "Requests by verb, resource and HTTP code",
            requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "How long requests took that are no watches, by verb and resource",
            durations.clone(),
        );
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests under way that are no watches",
            in_flight.clone(),
        );
        registry.register(
            "apiserver_longrunning_requests",
            "Watches and logs under way",
            watchers.clone(),
        );
        registry.register(
            "stint_store_revision",
            "The newest revision of the store",
            revision.clone(),
        );
        let others = RwLock::default();
        Metrics { registry, requests, durations, in_flight, watchers, revision, others }
    }

    pub(crate) fn count(&self, labels: RequestLabels, took: Option<Duration>) {
        if let Some(took) = took {
            let VerbLabels { verb, resource } =
                VerbLabels { verb: labels.verb, resource: labels.resource };
            self.durations
                .get_or_create(&VerbLabels { verb, resource })
                .observe(took.as_secs_f64());
        }
        self.requests.get_or_create(&labels).inc();
    }

    /// Counts a request as under way until the guard is dropped.
    pub(crate) fn in_flight(self: &Arc<Self>) -> Running {
        Running::new(self.in_flight.clone())
    }

    /// Counts a watch as under way until the guard is dropped.
    pub(crate) fn watcher(self: &Arc<Self>) -> Running {
        Running::new(self.watchers.clone())
    }

    /// Shows what another part counts, too: its text in the same form, names of its own.
    pub(crate) fn add(&self, source: Source) {
        self.others.write().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn text(&self, revision: u64) -> String {
        self.revision.set(revision);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        for other in &*others {
            // There is one end to a text, however many parts it has.
            text.truncate(text.trim_end_matches(END).len());
            text.push_str(&other());
        }
        text
    }
}

/// Something under way.
#[derive(Debug)]
pub(crate) struct Running(Gauge);

impl Running {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Running(gauge)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
