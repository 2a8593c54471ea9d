//! How a controller is, for whoever asks from outside: whether it turns, whether it leads, and
//! what it lacks. It must not know how it is asked.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ticks::Ticks;

/// How long the loop that runs Jobs may take to turn: it never sleeps for more than 30 seconds,
/// and a turn takes milliseconds.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// How long a lease may not have been read before somebody who waits for it counts as cut off.
const LEASE_SILENCE: Duration = Duration::from_secs(60);

/// How often the same trouble is logged.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// How a controller is. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Health {
    shared: Arc<Mutex<Shared>>,
    ticks: Ticks,
}

#[derive(Debug, Default)]
struct Shared {
    role: Role,
    /// When the loop that runs Jobs last turned, while it runs.
    turned: Option<Duration>,
    /// When the lease was last read.
    lease_read: Option<Duration>,
    /// How many lists are not whole yet.
    lists_missing: usize,
    troubles: BTreeMap<String, Trouble>,
}

/// What this process is among its like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It has just begun.
    #[default]
    Starting,
    /// It waits for the lease that somebody has, or nobody any more.
    Standby {
        /// Who has it; empty if nobody.
        holder: String,
    },
    /// It runs Jobs.
    Leader,
}

#[derive(Debug)]
struct Trouble {
    why: String,
    logged: Duration,
}

impl Health {
    /// Nothing has begun yet.
    pub fn new(ticks: Ticks) -> Self {
        Health { shared: Arc::default(), ticks }
    }

    /// Whether it is alive, or what is stuck.
    pub fn alive(&self) -> Result<(), String> {
        let shared = self.lock();
        match shared.turned.map(|turned| self.ticks.now().saturating_sub(turned)) {
            Some(since) if since > LONGEST_TURN => {
                Err(format!("the loop that runs Jobs has not turned for {} s", since.as_secs()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether it does what it is there for, and what that is or what is missing. Whoever waits
    /// for the lease is ready, too.
    pub fn ready(&self) -> Result<String, String> {
        let shared = self.lock();
        let (is_ready, mut text) = match &shared.role {
            Role::Starting => (false, "starting".to_owned()),
            Role::Standby { holder } => {
                let read = shared.lease_read.map(|at| self.ticks.now().saturating_sub(at));
                let is_ready = read.is_some_and(|since| since <= LEASE_SILENCE);
                let holder = if holder.is_empty() { "nobody" } else { holder };
                (is_ready, format!("standby; {holder} leads"))
            }
            Role::Leader if shared.lists_missing > 0 => {
                let missing = shared.lists_missing;
                (false, format!("leading; {missing} lists of Jobs and Pods are not whole yet"))
            }
            Role::Leader => (true, "leading".to_owned()),
        };
        for (what, trouble) in &shared.troubles {
            write!(text, "\n{what}: {}", trouble.why).expect("a String takes every text");
        }
        if is_ready { Ok(text) } else { Err(text) }
    }

    /// Whether it leads.
    pub fn role(&self) -> Role {
        self.lock().role.clone()
    }

    /// Takes note of something that is in the way, under a name; whether to log it: it is new,
    /// or was logged a while ago.
    pub fn trouble(&self, what: &str, why: &str) -> bool {
        let now = self.ticks.now();
        let mut shared = self.lock();
        let is_news = shared
            .troubles
            .get(what)
            .is_none_or(|known| known.why != why || now.saturating_sub(known.logged) >= LOG_EVERY);
        if is_news {
            let trouble = Trouble { why: why.to_owned(), logged: now };
            shared.troubles.insert(what.to_owned(), trouble);
        }
        is_news
    }

    /// It is not in the way any more; whether it was.
    pub fn resolved(&self, what: &str) -> bool {
        self.lock().troubles.remove(what).is_some()
    }

    pub(crate) fn set_role(&self, role: Role) {
        self.lock().role = role;
    }

    /// The lease was read.
    pub(crate) fn lease_read(&self) {
        self.lock().lease_read = Some(self.ticks.now());
    }

    /// The loop that runs Jobs has turned.
    pub(crate) fn turned(&self, lists_missing: usize) {
        let now = self.ticks.now();
        let mut shared = self.lock();
        shared.turned = Some(now);
        shared.lists_missing = lists_missing;
    }

    /// The loop that runs Jobs has ended.
    pub(crate) fn rests(&self) {
        let mut shared = self.lock();
        shared.turned = None;
        shared.lists_missing = 0;
        shared.troubles.retain(|what, _| !what.starts_with('/'));
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn health() -> (Health, Arc<AtomicU64>) {
        let seconds: Arc<AtomicU64> = Arc::default();
        let clock = seconds.clone();
        let ticks = Ticks::new(move || Duration::from_secs(clock.load(Ordering::SeqCst)));
        (Health::new(ticks), seconds)
    }

    #[test]
    fn a_loop_that_does_not_turn_is_not_alive() {
        let (health, seconds) = health();
        seconds.store(1_000, Ordering::SeqCst);
        assert_eq!(health.alive(), Ok(()));
        health.turned(0);
        seconds.store(1_120, Ordering::SeqCst);
        assert_eq!(health.alive(), Ok(()));
        seconds.store(1_121, Ordering::SeqCst);
        assert!(health.alive().is_err());
        health.rests();
        assert_eq!(health.alive(), Ok(()));
    }

    #[test]
    fn a_standby_is_ready_as_long_as_it_sees_the_lease() {
        let (health, seconds) = health();
        assert_eq!(health.ready(), Err("starting".to_owned()));
        health.set_role(Role::Standby { holder: "a".to_owned() });
        assert!(health.ready().is_err());
        health.lease_read();
        assert_eq!(health.ready(), Ok("standby; a leads".to_owned()));
        seconds.store(61, Ordering::SeqCst);
        assert!(health.ready().is_err());
    }

    #[test]
    fn a_leader_is_ready_once_it_has_listed_and_says_what_is_in_its_way() {
        let (health, seconds) = health();
        health.set_role(Role::Leader);
        health.turned(2);
        assert!(health.ready().is_err());
        assert!(health.trouble("/api/v1/pods", "forbidden"));
        assert!(!health.trouble("/api/v1/pods", "forbidden"));
        assert!(health.trouble("/api/v1/pods", "gone"));
        seconds.store(60, Ordering::SeqCst);
        assert!(health.trouble("/api/v1/pods", "gone"));
        assert!(health.ready().is_err_and(|text| text.contains("/api/v1/pods: gone")));
        health.turned(0);
        assert!(health.resolved("/api/v1/pods"));
        assert_eq!(health.ready(), Ok("leading".to_owned()));
    }
}
