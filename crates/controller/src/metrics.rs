//! What the controller counts: under the names of Kubernetes' own Job controller, so that
//! dashboards work, and some of its own. It must not know who reads them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use stint_api::closed_set::PodFailurePolicyAction;
use stint_ledger::metric::{CreationReason, Metric};
use stint_ledger::op::{Op, OpKind};

use crate::limit::Verb;

/// The counters. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;
type Count = Gauge<u64, AtomicU64>;

#[derive(Debug)]
struct Inner {
    registry: Registry,
    sync_durations: Durations<Sync>,
    syncs: Family<Sync, Counter>,
    jobs_finished: Family<JobFinished, Counter>,
    pods_finished: Family<ModeResult, Counter>,
    indexes_finished: Family<IndexFinished, Counter>,
    failures_handled: Family<Action, Counter>,
    finalizers: Family<FinalizerEvent, Counter>,
    creations: Family<Creation, Counter>,
    external: Family<External, Counter>,
    call_durations: Durations<Call>,
    waiting: Count,
    in_flight: Count,
    limit: Count,
    jobs_held: Count,
    pods_held: Count,
    leads: Family<LeaseName, Count>,
    rival_writes: Counter,
    refusals: Family<Refused, Counter>,
    builds: Family<Build, Count>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sync {
    completion_mode: &'static str,
    result: &'static str,
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobFinished {
    completion_mode: &'static str,
    result: &'static str,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeResult {
    completion_mode: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(non_snake_case)]
struct IndexFinished {
    status: &'static str,
    /// Spelt as dashboards know it.
    backoffLimit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Action {
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FinalizerEvent {
    event: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Creation {
    reason: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct External {
    controller_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    verb: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    verb: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseName {
    name: String,
}

/// Which program it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Build {
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from.
    pub commit: &'static str,
    /// When that was.
    pub build_date: &'static str,
}

/// Kubernetes' own buckets: 4 ms doubling, 15 of them.
fn sync_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.004, 2.0, 15))
}

/// From a call within the process to one that times out: 0.1 ms, four times as much each.
fn call_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 11))
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// Nothing has been counted yet.
    pub fn new() -> Self {
        let mut inner = Inner {
            registry: Registry::default(),
            sync_durations: Family::new_with_constructor(sync_histogram),
            syncs: Family::default(),
            jobs_finished: Family::default(),
            pods_finished: Family::default(),
            indexes_finished: Family::default(),
            failures_handled: Family::default(),
            finalizers: Family::default(),
            creations: Family::default(),
            external: Family::default(),
            call_durations: Family::new_with_constructor(call_histogram),
            waiting: Count::default(),
            in_flight: Count::default(),
            limit: Count::default(),
            jobs_held: Count::default(),
            pods_held: Count::default(),
            leads: Family::default(),
            rival_writes: Counter::default(),
            refusals: Family::default(),
            builds: Family::default(),
        };
        // They are there before the first refusal: what comes up at one has not increased for an alert.
        for verb in ["status", "remove_finalizer", "adopt", "release"] {
            for reason in ["rejected", "try_later"] {
                inner.refusals.get_or_create(&Refused { verb, reason }).inc_by(0);
            }
        }
        inner.register_upstream();
        inner.register_own();
        Metrics { inner: Arc::new(inner) }
    }

    /// All of them in the text form of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.inner.registry).expect("a String takes every text");
        text
    }

    /// A ledger was asked.
    pub(crate) fn synced(&self, completion_mode: &'static str, ops: &[Op], took: Duration) {
        let labels = Sync { completion_mode, result: "success", action: action(ops) };
        self.inner.syncs.get_or_create(&labels).inc();
        self.inner.sync_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A call was answered.
    pub(crate) fn called(&self, verb: Verb, is_success: bool, took: Duration) {
        let labels = Call { verb: verb.name(), result: result(is_success, "success", "failure") };
        self.inner.call_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Says which program it is.
    pub fn set_build(&self, build: &Build) {
        self.inner.builds.get_or_create(build).set(1);
    }

    /// Whether we have the lease of this name.
    pub(crate) fn set_leader(&self, lease: &str, is_leader: bool) {
        let labels = LeaseName { name: lease.to_owned() };
        self.inner.leads.get_or_create(&labels).set(u64::from(is_leader));
    }

    /// The built-in controller has written a status that is ours to write.
    pub(crate) fn rival_wrote(&self) {
        self.inner.rival_writes.inc();
    }

    /// The API has refused what was asked of it.
    pub(crate) fn refused(&self, verb: &'static str, reason: &'static str) {
        self.inner.refusals.get_or_create(&Refused { verb, reason }).inc();
    }

    /// How much there is.
    pub(crate) fn set_depths(&self, waiting: usize, in_flight: usize, limit: usize) {
        self.inner.waiting.set(waiting as u64);
        self.inner.in_flight.set(in_flight as u64);
        self.inner.limit.set(limit as u64);
    }

    /// How many Jobs and Pods are held.
    pub(crate) fn set_held(&self, jobs: usize, pods: usize) {
        self.inner.jobs_held.set(jobs as u64);
        self.inner.pods_held.set(pods as u64);
    }

    /// Nothing is run any more: there are no Jobs, Pods and calls to speak of.
    pub(crate) fn rests(&self) {
        self.set_depths(0, 0, 0);
        self.set_held(0, 0);
    }

    /// Adds what a ledger has counted.
    pub(crate) fn record(&self, completion_mode: &'static str, metric: Metric) {
        let inner = &self.inner;
        match metric {
            Metric::JobFinished { is_success, reason } => {
                let result = result(is_success, "succeeded", "failed");
                let labels = JobFinished { completion_mode, result, reason: reason.into_owned() };
                inner.jobs_finished.get_or_create(&labels).inc();
            }
            Metric::PodsFinished { is_success, count } => {
                let result = result(is_success, "succeeded", "failed");
                let labels = ModeResult { completion_mode, result };
                inner.pods_finished.get_or_create(&labels).inc_by(count);
            }
            Metric::IndexesFinished { is_success, is_per_index, count } => {
                let labels = IndexFinished {
                    status: result(is_success, "succeeded", "failed"),
                    backoffLimit: result(is_per_index, "perIndex", "global"),
                };
                inner.indexes_finished.get_or_create(&labels).inc_by(count);
            }
            Metric::FailureHandled(action) => {
                let action = match action {
                    PodFailurePolicyAction::FailJob => "FailJob",
                    PodFailurePolicyAction::FailIndex => "FailIndex",
                    PodFailurePolicyAction::Ignore => "Ignore",
                    PodFailurePolicyAction::Count => "Count",
                };
                inner.failures_handled.get_or_create(&Action { action }).inc();
            }
            Metric::FinalizerHeld => {
                inner.finalizers.get_or_create(&FinalizerEvent { event: "add" }).inc();
            }
            Metric::FinalizerGone => {
                inner.finalizers.get_or_create(&FinalizerEvent { event: "delete" }).inc();
            }
            Metric::PodCreation { reason, is_success } => {
                let reason = match reason {
                    CreationReason::New => "new",
                    CreationReason::RecreateTerminatingOrFailed => "recreate_terminating_or_failed",
                    CreationReason::RecreateFailed => "recreate_failed",
                };
                let status = result(is_success, "succeeded", "failed");
                inner.creations.get_or_create(&Creation { reason, status }).inc();
            }
            Metric::External { controller } => {
                let labels = External { controller_name: controller };
                inner.external.get_or_create(&labels).inc();
            }
        }
    }
}

impl Inner {
    fn register_upstream(&mut self) {
        let registry = self.registry.sub_registry_with_prefix("job_controller");
        registry.register(
            "job_sync_duration_seconds",
            "How long it took to find out what to do for a Job",
            self.sync_durations.clone(),
        );
        registry.register("job_syncs", "How often that was done", self.syncs.clone());
        registry.register("jobs_finished", "Jobs that finished", self.jobs_finished.clone());
        registry.register(
            "job_pods_finished",
            "Pods that were counted",
            self.pods_finished.clone(),
        );
        registry.register(
            "job_finished_indexes",
            "Indexes that finished",
            self.indexes_finished.clone(),
        );
        registry.register(
            "pod_failures_handled_by_failure_policy",
            "Failed Pods by what the Pod failure policy did with them",
            self.failures_handled.clone(),
        );
        registry.register(
            "terminated_pods_tracking_finalizer",
            "Pods that ended with the tracking finalizer, and lost it",
            self.finalizers.clone(),
        );
        registry.register(
            "job_pods_creation",
            "Pods that were asked for, by what for",
            self.creations.clone(),
        );
        registry.register(
            "jobs_by_external_controller",
            "Jobs that another controller runs",
            self.external.clone(),
        );
    }

    fn register_own(&mut self) {
        self.registry.register(
            "leader_election_master_status",
            "Whether this replica has the lease",
            self.leads.clone(),
        );
        self.registry.register("stint_build_info", "Which program this is", self.builds.clone());
        let registry = self.registry.sub_registry_with_prefix("stint_controller");
        registry.register(
            "call_duration_seconds",
            "How long API calls took, by verb",
            self.call_durations.clone(),
        );
        registry.register("calls_waiting", "API calls that wait", self.waiting.clone());
        registry.register("calls_in_flight", "API calls under way", self.in_flight.clone());
        registry.register(
            "calls_in_flight_limit",
            "API calls that the server bears at once",
            self.limit.clone(),
        );
        registry.register("jobs_held", "Jobs with a ledger", self.jobs_held.clone());
        registry.register("pods_held", "Pods that are known", self.pods_held.clone());
        registry.register(
            "refusals",
            "What the API refused, by what was asked of it and why",
            self.refusals.clone(),
        );
        registry.register(
            "builtin_status_writes",
            "Statuses that the built-in Job controller wrote although it was to be replaced",
            self.rival_writes.clone(),
        );
    }
}

/// What was done for a Job, in upstream's words.
fn action(ops: &[Op]) -> &'static str {
    let has = |is_meant: fn(&OpKind) -> bool| ops.iter().any(|op| is_meant(&op.kind));
    if has(|kind| matches!(kind, OpKind::CreatePod(_))) {
        "pods_created"
    } else if has(|kind| matches!(kind, OpKind::DeletePod(_))) {
        "pods_deleted"
    } else if has(|kind| matches!(kind, OpKind::RemoveFinalizer(_))) {
        "tracking"
    } else {
        "reconciling"
    }
}

fn result(is_so: bool, yes: &'static str, no: &'static str) -> &'static str {
    if is_so { yes } else { no }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_dashboards_know() {
        let metrics = Metrics::new();
        let told = [
            Metric::JobFinished { is_success: false, reason: "DeadlineExceeded".into() },
            Metric::JobFinished { is_success: true, reason: "SuccessPolicy".into() },
            Metric::PodsFinished { is_success: true, count: 3 },
            Metric::IndexesFinished { is_success: true, is_per_index: true, count: 2 },
            Metric::FailureHandled(PodFailurePolicyAction::Ignore),
            Metric::FinalizerHeld,
            Metric::PodCreation { reason: CreationReason::New, is_success: true },
            Metric::External { controller: "a.b/c".to_owned() },
        ];
        for metric in told {
            metrics.record("Indexed", metric);
        }
        metrics.synced("Indexed", &[], Duration::from_millis(1));
        metrics.called(Verb::Create, true, Duration::from_millis(1));
        metrics.set_leader("stint", true);
        metrics.refused("status", "rejected");
        metrics.set_build(&Build { version: "1.2.3", commit: "abc", build_date: "today" });
        let text = metrics.text();
        let lines = [
            r#"job_controller_jobs_finished_total{completion_mode="Indexed",result="failed",reason="DeadlineExceeded"} 1"#,
            r#"job_controller_jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="SuccessPolicy"} 1"#,
            r#"job_controller_job_pods_finished_total{completion_mode="Indexed",result="succeeded"} 3"#,
            r#"job_controller_job_finished_indexes_total{status="succeeded",backoffLimit="perIndex"} 2"#,
            r#"job_controller_pod_failures_handled_by_failure_policy_total{action="Ignore"} 1"#,
            r#"job_controller_terminated_pods_tracking_finalizer_total{event="add"} 1"#,
            r#"job_controller_job_pods_creation_total{reason="new",status="succeeded"} 1"#,
            r#"job_controller_jobs_by_external_controller_total{controller_name="a.b/c"} 1"#,
            r#"job_controller_job_syncs_total{completion_mode="Indexed",result="success",action="reconciling"} 1"#,
            r#"job_controller_job_sync_duration_seconds_bucket{le="0.004",completion_mode="Indexed",result="success",action="reconciling"} 1"#,
            "stint_controller_calls_waiting 0",
            "stint_controller_pods_held 0",
            r#"leader_election_master_status{name="stint"} 1"#,
            r#"stint_build_info{version="1.2.3",commit="abc",build_date="today"} 1"#,
            "stint_controller_builtin_status_writes_total 0",
            r#"stint_controller_refusals_total{verb="status",reason="rejected"} 1"#,
        ];
        for line in lines {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
