//! What a controller can be told. The modes on a cluster (in place of the built-in controller,
//! or beside it for the Jobs that name us) are values here and no code anywhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::field_path::Path;
use stint_api::identifier;
use stint_api::names::{finalizer, managed_by};
use stint_api::view::ManagedBy;
use stint_ledger::backoff::BackoffDelays;
use stint_ledger::ledger::Settings;
use thiserror::Error;

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

/// Why a controller cannot go by a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManagedByError {
    /// It is the built-in controller's.
    #[error(
        "kubernetes.io/job-controller is the built-in controller's name: to run its Jobs in its place, use --replace-builtin"
    )]
    BuiltIn,
    /// No Job can have it; these are the API's words.
    #[error("{0}")]
    Invalid(String),
}

/// The longest managedBy of a Job, in bytes.
const MAX_MANAGED_BY_BYTES: usize = 63;

/// The longest name of a finalizer after its domain, in bytes.
const MAX_FINALIZER_BYTES: usize = 63;

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

    /// A controller beside the built-in one, for the Jobs that name it so in `spec.managedBy`.
    ///
    /// Each name has a finalizer of its own: of a Pod whose Job a controller does not know yet it
    /// removes the finalizer that it takes for its own.
    pub fn managing(name: &str) -> Result<Self, ManagedByError> {
        if name == managed_by::BUILT_IN {
            return Err(ManagedByError::BuiltIn);
        }
        let mut errors = Vec::new();
        identifier::domain_prefixed_path(name, &Path::field("managedBy"), &mut errors);
        if name.len() > MAX_MANAGED_BY_BYTES {
            errors.push(FieldError::too_long(&Path::field("managedBy"), MAX_MANAGED_BY_BYTES));
        }
        if !errors.is_empty() {
            let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(ManagedByError::Invalid(words.join("; ")));
        }
        Ok(Config {
            manages: ManagedBy::External(name.to_owned()),
            finalizer: finalizer_of(name),
            ..Config::default()
        })
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

/// The finalizer of the controller that goes by this name: `example.com/runner` has
/// `example.com/runner.job-tracking`, and ours the one that is documented. What a finalizer
/// cannot have in its name is written as `-`, and a hash keeps such names apart.
fn finalizer_of(name: &str) -> String {
    if name == managed_by::STINT {
        return finalizer::STINT_JOB_TRACKING.to_owned();
    }
    const ENDING: &str = ".job-tracking";
    const HASH_BYTES: usize = 9;
    let (domain, rest) = name.split_once('/').unwrap_or(("stint.dev", name));
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = rest.chars().map(|c| if is_fit(c) { c } else { '-' }).collect();
    let begins_well = plain.starts_with(|c: char| c.is_ascii_alphanumeric());
    if plain == rest && begins_well && plain.len() + ENDING.len() <= MAX_FINALIZER_BYTES {
        return format!("{domain}/{plain}{ENDING}");
    }
    let plain = plain.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let room = MAX_FINALIZER_BYTES - ENDING.len() - HASH_BYTES;
    let plain = &plain[..plain.len().min(room)];
    // FNV-1a, folded to 32 bits: it never changes, unlike the hashes of the standard library.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash >> 32) as u32 ^ hash as u32;
    let separator = if plain.is_empty() { "" } else { "-" };
    format!("{domain}/{plain}{separator}{hash:08x}{ENDING}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_a_finalizer_of_its_own_that_the_api_takes() {
        let long = format!("a.io/{}", "x".repeat(58));
        let odd = ["a.io/x/y", "a.io/x-y", "a.io/x!y", "a.io/-x", "a.io/%", &long];
        let mut finalizers: Vec<String> = odd.iter().map(|name| finalizer_of(name)).collect();
        for name in &finalizers {
            assert_eq!(identifier::qualified_name(name), Vec::<String>::new(), "{name}");
        }
        finalizers.sort();
        finalizers.dedup();
        assert_eq!(finalizers.len(), odd.len());
        assert_eq!(finalizer_of("a.io/runner"), "a.io/runner.job-tracking");
        assert_eq!(finalizer_of(managed_by::STINT), finalizer::STINT_JOB_TRACKING);
    }

    #[test]
    fn a_name_that_no_job_can_have_is_refused_as_the_api_refuses_it() {
        let config = Config::managing(managed_by::STINT).expect("it is ours");
        assert_eq!(config.manages, Config::beside().manages);
        assert_eq!(config.finalizer, Config::beside().finalizer);
        assert_eq!(Config::managing(managed_by::BUILT_IN).err(), Some(ManagedByError::BuiltIn));
        for name in ["", "nobody", "A_B/c", "a.io/", "/x", &format!("a.io/{}", "x".repeat(59))] {
            let error = Config::managing(name).expect_err(name);
            assert!(matches!(error, ManagedByError::Invalid(_)), "{error:?}");
        }
    }
}
