//! What a controller can be told. The modes on a cluster (in place of the built-in controller,
//! or beside it for the Jobs that name us) are values here and no code anywhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use stint_api::feature_gates::FeatureGates;
use stint_api::names::{finalizer, managed_by};
use stint_api::view::ManagedBy;
use stint_ledger::backoff::BackoffDelays;
use stint_ledger::ledger::Settings;

use crate::clock::Clock;

/// How many API calls may be under way at once, however well the server bears them: about what
/// kube-apiserver takes on for all of its clients (600), less room for the others.
pub const MAX_IN_FLIGHT: usize = 256;

/// The shortest time between two statuses of a Job that goes on: four a second are enough for
/// whoever watches, and cost a Job of 10,000 Pods that takes a minute 240 calls.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_millis(250);

/// How long an answer may take: as long as kube-apiserver gives a request before it ends it
/// itself (60 s), and a little, so that its own word comes first.
const CALL_TIMEOUT: Duration = Duration::from_secs(65);

/// What a controller can be told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The feature gates.
    pub gates: FeatureGates,
    /// The delays after failures: `--pod-failure-backoff-base`, `--pod-failure-backoff-max`.
    pub delays: BackoffDelays,
    /// The namespaces whose Jobs are run; empty: all.
    pub namespaces: BTreeSet<String>,
    /// Whose Jobs are run: those without managedBy, or those that name this controller.
    pub manages: ManagedBy,
    /// What keeps a Pod until it is accounted for.
    pub finalizer: String,
    /// The most API calls at once: `--max-inflight`.
    pub max_inflight: usize,
    /// The most API calls a second, if there is to be a limit: `--qps`.
    pub qps: Option<f64>,
    /// The shortest time between two statuses of a Job that goes on.
    pub status_interval: SignedDuration,
    /// Whether a Pod that its node ended, or that went down with it, is replaced without being
    /// counted where no rule of its Job says otherwise. Kubernetes counts it.
    pub forgives_nodes: bool,
    /// How long an answer may take before its call is in doubt.
    pub call_timeout: Duration,
    /// What time it is.
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            gates: FeatureGates::default(),
            delays: BackoffDelays::default(),
            namespaces: BTreeSet::new(),
            manages: ManagedBy::BuiltIn,
            finalizer: finalizer::JOB_TRACKING.to_owned(),
            max_inflight: MAX_IN_FLIGHT,
            qps: None,
            status_interval: STATUS_INTERVAL,
            forgives_nodes: false,
            call_timeout: CALL_TIMEOUT,
            clock: Clock::system(),
        }
    }
}

impl Config {
    /// A controller beside the built-in one, for the Jobs that name it.
    pub fn beside() -> Self {
        Config {
            manages: ManagedBy::External(managed_by::STINT.to_owned()),
            finalizer: finalizer::STINT_JOB_TRACKING.to_owned(),
            ..Config::default()
        }
    }

    /// How many Pods of a Job may be on their way: as many again as can be under way, so that
    /// there is always a next one, and not more than a second's worth where calls are limited.
    fn max_creating(&self) -> usize {
        let a_second = self.qps.map_or(usize::MAX, |calls| calls.ceil() as usize);
        self.max_inflight.saturating_mul(2).min(a_second).clamp(2, 2_048)
    }

    /// What the ledgers are told.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            gates: self.gates,
            delays: self.delays,
            manages: self.manages.clone(),
            max_creating: self.max_creating(),
            status_interval: self.status_interval,
            forgives_nodes: self.forgives_nodes,
            ..Settings::default()
        }
    }
}
