//! What Jobs do, as data: the same plays are given in fair weather, under faults, and with a
//! controller that is killed.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;

use crate::driver::Driver;
use crate::fate::{Fate, Who};
use crate::history::History;
use crate::job::{counts, end};
pub use crate::live_plays::{crowds, delays};
pub use crate::plays::plays;
use crate::stage::Stage;

/// Stands for the name of the Job in its spec.
pub(crate) const NAME: &str = "$(NAME)";

/// What somebody does.
pub(crate) type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A Job, what becomes of its Pods, what users do to it, and how it must end.
pub struct Play {
    /// The name of the Job.
    pub name: &'static str,
    pub(crate) spec: Value,
    pub(crate) fates: fn(&Who) -> Fate,
    /// What is there before the Job.
    pub(crate) before: for<'a> fn(&'a Stage, &'a str) -> Acting<'a>,
    pub(crate) act: for<'a> fn(&'a Stage, &'a str) -> Acting<'a>,
    pub(crate) end: &'static str,
    /// Whether its end sweeps Pods away: of those it is not known what they would have become,
    /// and they need not count.
    pub(crate) lingers: bool,
    /// How many Pods, or indexes, must count as succeeded and as failed.
    pub(crate) counts: fn(&History, &str) -> (usize, usize),
    /// What else must hold of the Job.
    pub(crate) check: fn(&Job),
    /// What else must hold of its Pods.
    pub(crate) review: fn(&History, &str),
}

/// The play of this name.
pub fn play(name: &str) -> Play {
    plays().into_iter().find(|play| play.name == name).unwrap_or_else(|| panic!("no play {name}"))
}

/// Pods end as the plays say.
pub fn driver() -> Driver {
    Driver::new(fates())
}

/// What the plays say of Pods; those of other Jobs succeed at once.
pub fn fates() -> impl Fn(&Who) -> Fate + Send + Sync + 'static {
    let mut plays = plays();
    plays.extend(crowds());
    plays.extend(delays());
    move |who| match plays.iter().find(|play| who.job.starts_with(play.name)) {
        Some(play) => (play.fates)(who),
        None => Fate::succeeds(),
    }
}

impl Play {
    /// Gives the play on a stage whose controller runs; the Job as it ended, unless it is gone.
    pub async fn give(&self, stage: &Stage) -> Option<Job> {
        self.give_as(stage, self.name).await
    }

    /// Gives the play with a Job of another name, which begins with the name of the play.
    pub async fn give_as(&self, stage: &Stage, name: &str) -> Option<Job> {
        assert!(name.starts_with(self.name), "its Pods would not be known as those of the play");
        (self.before)(stage, name).await;
        let spec = self.spec.to_string().replace(NAME, name);
        stage.create(name, serde_json::from_str(&spec).expect("it was JSON before")).await;
        (self.act)(stage, name).await;
        if self.end.is_empty() {
            return None;
        }
        let job = stage.finish(name).await;
        let context = || format!("{name}: {:?}\n{:#?}", job.status, stage.history.of(name));
        assert_eq!(end(&job).as_deref(), Some(self.end), "{}", context());
        let (active, succeeded, failed) = counts(&job);
        let expected = (self.counts)(&stage.history, name);
        // A Pod that a request has made after its sender had looked, found none, and ended the
        // Job, is removed again and does not count.
        let strays = stage.strays.load(Ordering::Relaxed);
        let is_right = |counted: i32, seen: usize, excused: usize| {
            (counted as usize..=counted as usize + strays + excused).contains(&seen)
        };
        let swept = if self.lingers { stage.history.swept(name) } else { 0 };
        assert_eq!(active, 0, "{}", context());
        assert!(is_right(succeeded, expected.0, 0), "{expected:?} succeeded: {}", context());
        assert!(is_right(failed, expected.1, swept), "{expected:?} failed: {}", context());
        (self.check)(&job);
        (self.review)(&stage.history, name);
        Some(job)
    }
}

/// Checks what must hold whatever was played.
pub async fn check_all(stage: &Stage) {
    stage.settle_all().await;
    assert_eq!(stage.history.broken(), [""; 0]);
    stage.history.check_ends();
}
