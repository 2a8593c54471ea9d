//! Who of several replicas runs Jobs: whoever has the Lease.
//!
//! ```text
//!             ┌───────────── taken, or not renewed in time ────────────┐
//!             ▼                                                        │
//!   standby ──┴── nobody has it, or its holder was silent ─▶ leader ───┤
//!      ▲          for as long as it promised to renew it               │ stopped: gives it back
//!      └── looks twice a second                                        ▼
//!                                                                     end
//! ```
//!
//! The protocol is that of client-go, so that tools that show leases show ours: optimistic
//! writes of one object, a holder that is empty after a clean stop, and no trust in anybody
//! else's clock: how long a holder was silent is measured here, from when a change was seen.
//!
//! # Guarantees
//!
//! A term ends (`term`) the renew deadline after the last renewal that succeeded was *sent*. A
//! standby waits for the whole lease after it has *seen* that renewal, which is later; so as
//! long as two clocks run about equally fast, nobody's term begins before the other's is over
//! by the difference of the two times (5 seconds by default).

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use thiserror::Error;

use crate::clock::Clock;
use crate::health::{Health, Role};
use crate::metrics::Metrics;
use crate::term::Term;
use crate::ticks::Ticks;
use crate::words::told;

/// How often a standby looks at the Lease: often enough that it goes on within a second of a
/// clean stop, and two small reads a second at the most.
const LOOK: Duration = Duration::from_millis(500);

/// How much longer than the retry period the renew deadline must be: as in client-go, so that
/// there is time for a second try.
const JITTER: f64 = 1.2;

/// How long giving the Lease back may take when the process stops.
const RELEASE_TIME: Duration = Duration::from_secs(2);

/// How soon that is tried again if the Lease has changed meanwhile.
const RELEASE_PAUSE: Duration = Duration::from_millis(20);

/// How long a Lease that was given back is said to last, in seconds: the API takes none below.
const RELEASED_SECONDS: i32 = 1;

/// Which Lease, and how it is held.
#[derive(Clone, Debug)]
pub struct ElectionConfig {
    /// Where the Lease is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// What this process is called in it: different from every other, also from itself before
    /// a restart.
    pub identity: String,
    /// How long it is held, and how it is renewed.
    pub timing: LeaseTiming,
    /// The time that is written into it.
    pub clock: Clock,
    /// The time that terms are measured by.
    pub ticks: Ticks,
}

/// How long a Lease is held, and how it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// How long others wait for a holder that is silent.
    pub duration: Duration,
    /// How long a holder goes on that cannot renew it.
    pub renew_deadline: Duration,
    /// How often it is renewed, and how soon that is tried again.
    pub retry_period: Duration,
}

impl Default for LeaseTiming {
    fn default() -> Self {
        LeaseTiming {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Why times do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    /// The API counts whole seconds.
    #[error("the lease duration must be whole seconds, at least 1s")]
    Duration,
    /// A holder must stop before others begin.
    #[error("the lease duration must be longer than the renew deadline")]
    Deadline,
    /// There must be time for a second try.
    #[error("the renew deadline must be longer than 1.2 times the retry period")]
    Period,
    /// Renewing it all the time is no use.
    #[error("the retry period must be at least 100ms")]
    ShortPeriod,
}

impl LeaseTiming {
    /// Whether these times fit each other: the rules of client-go.
    pub fn check(&self) -> Result<(), TimingError> {
        let seconds = self.duration.as_secs();
        if self.duration.subsec_nanos() != 0 || seconds == 0 || i32::try_from(seconds).is_err() {
            return Err(TimingError::Duration);
        }
        if self.duration <= self.renew_deadline {
            return Err(TimingError::Deadline);
        }
        if self.retry_period < Duration::from_millis(100) {
            return Err(TimingError::ShortPeriod);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(TimingError::Period);
        }
        Ok(())
    }

    fn seconds(&self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX).max(1)
    }
}

/// Takes part in the choice of a leader.
pub(crate) struct Election {
    leases: Api<Lease>,
    config: ElectionConfig,
    term: Term,
    health: Health,
    metrics: Metrics,
    /// What was last seen of the Lease.
    seen: Option<Seen>,
    /// What there is of chance: only to keep replicas from looking in step.
    chance: u64,
}

struct Seen {
    lease: Lease,
    /// When the holder was last heard of, by our own clock.
    heard: Duration,
}

/// What came of an attempt.
enum Tried {
    /// We have it; this is when the write was sent.
    Held(Duration),
    /// Somebody has it.
    Other(String),
    /// It is not known; this is why.
    Failed(String),
}

impl Election {
    /// Takes part for a controller that has these.
    pub(crate) fn new(
        client: Client,
        config: ElectionConfig,
        health: Health,
        metrics: Metrics,
    ) -> Self {
        let chance = config.identity.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Election {
            leases: Api::namespaced(client, &config.namespace),
            term: Term::later(config.ticks.clone()),
            config,
            health,
            metrics,
            seen: None,
            chance,
        }
    }

    /// The term that it begins and ends.
    pub(crate) fn term(&self) -> Term {
        self.term.clone()
    }

    /// Takes part until `shutdown` resolves, and gives back what it has then.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        tokio::pin!(shutdown);
        loop {
            self.metrics.set_leader(&self.config.name, false);
            tokio::select! {
                () = &mut shutdown => return,
                () = self.stand_by() => {}
            }
            let lease = format!("{}/{}", self.config.namespace, self.config.name);
            tracing::info!(lease, identity = self.config.identity, "leading");
            self.health.set_role(Role::Leader);
            self.metrics.set_leader(&self.config.name, true);
            let why = tokio::select! {
                () = &mut shutdown => {
                    self.term.end();
                    return self.release().await;
                }
                why = self.lead() => why,
            };
            self.term.end();
            self.health.set_role(Role::Standby { holder: String::new() });
            tracing::warn!(lease, why, "leading no more; standing by");
        }
    }

    /// Waits until we have it.
    async fn stand_by(&mut self) {
        let mut told_holder = None;
        loop {
            let timeout = self.config.timing.renew_deadline;
            let tried = match tokio::time::timeout(timeout, self.attempt()).await {
                Ok(tried) => tried,
                Err(_) => Tried::Failed(NO_ANSWER.to_owned()),
            };
            match tried {
                Tried::Held(sent) => {
                    self.term.last_until(sent + self.config.timing.renew_deadline);
                    if self.term.is_on() {
                        return;
                    }
                }
                Tried::Other(holder) => {
                    self.health.set_role(Role::Standby { holder: holder.clone() });
                    if told_holder.as_ref() != Some(&holder) {
                        tracing::info!(holder, "standing by");
                        told_holder = Some(holder);
                    }
                }
                Tried::Failed(why) => self.complain(&why),
            }
            let pause = self.config.timing.retry_period.min(LOOK);
            let pause = self.jittered(pause);
            tokio::time::sleep(pause).await;
        }
    }

    /// Renews it until it is lost, and says why.
    async fn lead(&mut self) -> String {
        let LeaseTiming { renew_deadline, retry_period, .. } = self.config.timing;
        let mut last_failure = None;
        loop {
            tokio::time::sleep(retry_period.min(self.term.left())).await;
            if !self.term.is_on() {
                let why = last_failure.unwrap_or_else(|| "this process was stopped".to_owned());
                return format!("the lease was not renewed in time: {why}");
            }
            // Half of it, so that a server that hangs gets a second chance.
            let timeout = (renew_deadline / 2).min(self.term.left());
            let tried = match tokio::time::timeout(timeout, self.attempt()).await {
                Ok(tried) => tried,
                Err(_) => Tried::Failed(NO_ANSWER.to_owned()),
            };
            match tried {
                Tried::Held(sent) => {
                    self.term.last_until(sent + renew_deadline);
                    last_failure = None;
                }
                Tried::Other(holder) => return format!("{holder} has taken the lease"),
                Tried::Failed(why) => {
                    self.complain(&why);
                    last_failure = Some(why);
                }
            }
        }
    }

    /// Looks at it, and takes or renews it if it is ours to take.
    async fn attempt(&mut self) -> Tried {
        match self.try_attempt().await {
            Ok(tried) => {
                self.health.lease_read();
                if self.health.resolved(LEASE) {
                    tracing::info!("the lease can be read and written again");
                }
                tried
            }
            Err(error) => Tried::Failed(told(&error)),
        }
    }

    async fn try_attempt(&mut self) -> Result<Tried, kube::Error> {
        // Who leads writes at once what it knows: a renewal is one request.
        if self.term.is_on()
            && let Some(seen) = &self.seen
        {
            let lease = seen.lease.clone();
            match self.write(lease).await? {
                Some(tried) => return Ok(tried),
                None => self.seen = None,
            }
        }
        let found = self.leases.get_opt(&self.config.name).await?;
        let is_there = found.is_some();
        if let Some(lease) = found {
            self.note(lease);
        }
        // Also if somebody has deleted it: its holder works on until it notices.
        if let Some(holder) = self.holder_at_work() {
            return Ok(Tried::Other(holder));
        }
        match self.seen.as_ref().filter(|_| is_there).map(|seen| seen.lease.clone()) {
            Some(lease) => Ok(self.write(lease).await?.unwrap_or(Tried::Other(String::new()))),
            None => self.create().await,
        }
    }

    /// Who had it when it was last seen, if it is somebody else who was not silent for as long
    /// as the Lease lasts.
    fn holder_at_work(&self) -> Option<String> {
        let seen = self.seen.as_ref()?;
        let spec = seen.lease.spec.as_ref()?;
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let promised = spec.lease_duration_seconds.and_then(|it| u64::try_from(it).ok());
        let promised = promised.map_or(self.config.timing.duration, Duration::from_secs);
        let is_silent = self.config.ticks.now().saturating_sub(seen.heard) >= promised;
        let is_other = !holder.is_empty() && holder != self.config.identity;
        (is_other && !is_silent).then_some(holder)
    }

    /// Writes that it is ours over what was seen; `None` if it is not that any more.
    async fn write(&mut self, mut lease: Lease) -> Result<Option<Tried>, kube::Error> {
        let now = MicroTime(self.config.clock.now());
        let old = lease.spec.take().unwrap_or_default();
        let is_ours = old.holder_identity.as_deref() == Some(&self.config.identity);
        let transitions = old.lease_transitions.unwrap_or(0) + i32::from(!is_ours);
        let acquired = old.acquire_time.filter(|_| is_ours).unwrap_or_else(|| now.clone());
        lease.spec = Some(self.spec(acquired, now, transitions));
        let sent = self.config.ticks.now();
        match self.leases.replace(&self.config.name, &PostParams::default(), &lease).await {
            Ok(lease) => {
                self.note(lease);
                Ok(Some(Tried::Held(sent)))
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> Result<Tried, kube::Error> {
        let now = MicroTime(self.config.clock.now());
        let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(self.spec(now.clone(), now, 0)) };
        let sent = self.config.ticks.now();
        match self.leases.create(&PostParams::default(), &lease).await {
            Ok(lease) => {
                self.note(lease);
                Ok(Tried::Held(sent))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Tried::Other(String::new())),
            Err(error) => Err(error),
        }
    }

    fn spec(&self, acquired: MicroTime, renewed: MicroTime, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.config.timing.seconds()),
            acquire_time: Some(acquired),
            renew_time: Some(renewed),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// Takes note of the Lease. Only a change of what its holder writes is a sign of life.
    fn note(&mut self, lease: Lease) {
        let now = self.config.ticks.now();
        let heard = match &self.seen {
            Some(seen) if seen.lease.spec == lease.spec => seen.heard,
            Some(_) | None => now,
        };
        self.seen = Some(Seen { lease, heard });
    }

    /// Gives it back, so that the next one need not wait.
    async fn release(&mut self) {
        let why = match tokio::time::timeout(RELEASE_TIME, self.try_release()).await {
            Ok(Ok(true)) => return tracing::info!("the lease is given back"),
            Ok(Ok(false)) => return tracing::info!("the lease is not ours to give back"),
            Ok(Err(error)) => told(&error),
            Err(_) => NO_ANSWER.to_owned(),
        };
        tracing::warn!(why, "the lease was not given back; it runs out");
    }

    /// Whether there was something to give back. It may have changed since it was seen: a renewal was
    /// on its way when we were stopped, or somebody has put a label on it.
    async fn try_release(&mut self) -> Result<bool, kube::Error> {
        loop {
            let lease = match self.seen.take() {
                Some(seen) => seen.lease,
                None => match self.leases.get_opt(&self.config.name).await? {
                    Some(lease) => lease,
                    None => return Ok(false),
                },
            };
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
            if holder != Some(&self.config.identity) {
                return Ok(false);
            }
            let options = PostParams::default();
            match self.leases.replace(&self.config.name, &options, &self.released(lease)).await {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    tokio::time::sleep(RELEASE_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The Lease as it is when nobody has it.
    fn released(&self, mut lease: Lease) -> Lease {
        let now = MicroTime(self.config.clock.now());
        let transitions = lease.spec.take().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(RELEASED_SECONDS),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: transitions,
            ..LeaseSpec::default()
        });
        lease
    }

    fn complain(&self, why: &str) {
        if self.health.trouble(LEASE, why) {
            let lease = format!("{}/{}", self.config.namespace, self.config.name);
            tracing::warn!(lease, why, "the lease cannot be read or written, trying again");
        }
    }

    /// Between half and all of it, so that replicas do not look in step.
    fn jittered(&mut self, pause: Duration) -> Duration {
        // Knuth's multiplier: no more chance is needed than that replicas differ.
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = (self.chance >> 48) as u32;
        pause / 2 + pause / 2 * share / (1 << 16)
    }
}

/// The name of what is in the way, for `Health`.
const LEASE: &str = "lease";

const NO_ANSWER: &str = "the API server did not answer in time";

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(duration_ms: u64, deadline_ms: u64, period_ms: u64) -> LeaseTiming {
        LeaseTiming {
            duration: Duration::from_millis(duration_ms),
            renew_deadline: Duration::from_millis(deadline_ms),
            retry_period: Duration::from_millis(period_ms),
        }
    }

    #[test]
    fn times_that_do_not_fit_each_other_are_refused() {
        assert_eq!(LeaseTiming::default().check(), Ok(()));
        assert_eq!(timing(3_000, 2_000, 1_000).check(), Ok(()));
        let rows = [
            (timing(1_500, 1_000, 500), TimingError::Duration),
            (timing(0, 0, 0), TimingError::Duration),
            (timing(10_000, 10_000, 2_000), TimingError::Deadline),
            (timing(15_000, 10_000, 50), TimingError::ShortPeriod),
            (timing(15_000, 2_400, 2_000), TimingError::Period),
        ];
        for (timing, error) in rows {
            assert_eq!(timing.check(), Err(error), "{timing:?}");
        }
    }
}
