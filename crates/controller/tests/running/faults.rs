//! The plays in bad weather, all at once, for many seeds.
//!
//! `STINT_SEEDS` says how many seeds (16), `STINT_FIRST_SEED` from which one on (0), and
//! `STINT_SEED` gives a single one again.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kube::Client;
use stint_controller::Config;
use tokio::runtime::{Builder, Runtime};

use stint_kit::NAMESPACE;
use stint_kit::play::{driver, plays};

use crate::cluster::{Cluster, check_all};
use crate::fault::{Faulty, Weather};
use crate::random::Random;

/// Longer than any request is under way.
const LATEST: Duration = Duration::from_secs(60);

/// How many seeds there are if nobody says: what two cores do in half a minute, unoptimized. CI has 500.
const SEEDS: u64 = 16;

/// How many tests share them, so that all cores have something to do.
const PARTS: u64 = 4;

/// After so many seeds, of all parts together, everything has gone wrong that can. With fewer that is
/// not asked for.
const ENOUGH: usize = 40;

/// What went wrong in the parts that are over, in how many seeds, and how many parts those are.
static SO_FAR: Mutex<(BTreeMap<String, usize>, usize, u64)> = Mutex::new((BTreeMap::new(), 0, 0));

/// What goes wrong in the weather of enough seeds.
const MISHAPS: [&str; 24] = [
    "POST Delay",
    "POST Lost",
    "POST Unanswered",
    "POST Late",
    "POST TimedOut",
    "POST Never(true)",
    "POST Never(false)",
    "POST Refused(403)",
    "POST Refused(422)",
    "POST Refused(429)",
    "POST Refused(503)",
    "PATCH Refused(409)",
    "PATCH Refused(422)",
    "DELETE Refused(409)",
    "DELETE Refused(422)",
    "LIST Refused(410)",
    "WATCH Refused(410)",
    "WATCH Refused(429)",
    "WATCH Lost",
    "WATCH Never",
    "WATCH Lags(Breaks)",
    "WATCH Lags(Torn)",
    "WATCH Lags(Silent)",
    "WATCH Lags(Expired)",
];

/// What the weather of a seed is like, and how long calls may take.
fn settings(seed: u64) -> (Weather, Duration) {
    let mut random = Random::new(seed ^ (1 << 40));
    let mut pick = |from: [u64; 3]| from[random.below(3) as usize];
    let (calls, watches) = (pick([60, 150, 300]), pick([100, 400, 700]));
    let call_timeout = Duration::from_secs(pick([5, 20, 65]));
    let is_old_server = random.below(2) == 0;
    (Weather { calls, watches, is_old_server }, call_timeout)
}

/// The weather that a controller is started in.
#[derive(Debug, Default)]
pub(crate) struct Sky {
    seed: Option<u64>,
    starts: Cell<u64>,
}

impl Sky {
    /// Nothing goes wrong.
    pub(crate) fn fair() -> Self {
        Sky::default()
    }

    /// Starts a controller, in place of the one that runs.
    pub(crate) fn start(&self, cluster: &Cluster, mut config: Config) {
        let service = cluster.service();
        let Some(seed) = self.seed else {
            cluster.start_with(Client::new(service, NAMESPACE), config);
            return;
        };
        let (weather, call_timeout) = settings(seed);
        config.call_timeout = call_timeout;
        self.starts.set(self.starts.get() + 1);
        // Another one for each start.
        let seed = seed ^ (self.starts.get() << 32);
        let faulty = Faulty::new(service, weather, seed, cluster.newest(), cluster.strays.clone());
        cluster.start_with(Client::new(faulty, NAMESPACE), config);
    }
}

/// Gives a scenario in the weather of each seed; all that fail are named.
pub(crate) fn in_bad_weather(scenario: impl AsyncFn(Sky) + RefUnwindSafe) {
    let seeds = (0..PARTS).flat_map(seeds);
    let fails = |seed: &u64| {
        let run = catch_unwind(|| {
            runtime().block_on(scenario(Sky { seed: Some(*seed), ..Sky::default() }));
        });
        run.is_err()
    };
    let failed: Vec<u64> = seeds.filter(fails).collect();
    assert!(failed.is_empty(), "seeds that fail: {failed:?}; run one with STINT_SEED=…");
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

/// Gives all plays in the weather of a seed; what went wrong.
async fn give(seed: u64) -> BTreeMap<String, usize> {
    let (weather, call_timeout) = settings(seed);
    let cluster = Cluster::new(driver()).await;
    let newest = cluster.newest();
    let service = Faulty::new(cluster.service(), weather, seed, newest, cluster.strays.clone());
    let mishaps = service.mishaps.clone();
    let mut config = cluster.config();
    config.call_timeout = call_timeout;
    cluster.start_with(Client::new(service, NAMESPACE), config);
    let plays = plays();
    let ended = join_all(plays.iter().map(|play| play.give(&cluster))).await;
    // Requests that nobody waits for any more arrive, and change nothing for long.
    tokio::time::sleep(LATEST).await;
    check_all(&cluster).await;
    for (play, ended) in plays.iter().zip(ended) {
        if let Some(ended) = ended {
            let status = cluster.job(play.name).await.status;
            assert_eq!(status, ended.status, "{} has changed after its end", play.name);
        }
    }
    let mishaps = mishaps.lock().expect("nobody panics here").clone();
    assert!(!mishaps.is_empty(), "nothing went wrong");
    mishaps
}

/// A number that somebody may set.
fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number and is {text:?}")))
}

/// The seeds of a part.
fn seeds(part: u64) -> Vec<u64> {
    match asked("STINT_SEED") {
        Some(only) => (part == 0).then_some(only).into_iter().collect(),
        None => {
            let first = asked("STINT_FIRST_SEED").unwrap_or(0);
            let seeds = first..first + asked("STINT_SEEDS").unwrap_or(SEEDS);
            seeds.filter(|seed| seed % PARTS == part).collect()
        }
    }
}

/// Each seed of a part in a runtime of its own; all that fail are named.
fn play_part(part: u64) {
    let seeds = seeds(part);
    let mut mishaps: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for &seed in &seeds {
        let run = catch_unwind(|| runtime().block_on(give(seed)));
        match run {
            Ok(more) => more
                .into_iter()
                .for_each(|(what, count)| *mishaps.entry(what).or_insert(0) += count),
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "seeds that fail: {failed:?}; run one with STINT_SEED=…");
    println!("{mishaps:#?}");
    let mut so_far = SO_FAR.lock().unwrap_or_else(PoisonError::into_inner);
    let (all, count, parts) = &mut *so_far;
    mishaps.into_iter().for_each(|(what, times)| *all.entry(what).or_insert(0) += times);
    (*count, *parts) = (*count + seeds.len(), *parts + 1);
    if *parts == PARTS && *count >= ENOUGH {
        let mishaps = all;
        let missing: Vec<_> = MISHAPS.iter().filter(|what| !mishaps.contains_key(**what)).collect();
        assert!(missing.is_empty(), "what never went wrong: {missing:?}");
    }
}

#[test]
fn first_part_of_the_seeds() {
    play_part(0);
}

#[test]
fn second_part_of_the_seeds() {
    play_part(1);
}

#[test]
fn third_part_of_the_seeds() {
    play_part(2);
}

#[test]
fn fourth_part_of_the_seeds() {
    play_part(3);
}

#[test]
fn every_setting_meets_every_other() {
    let all: BTreeSet<_> = (0..500)
        .map(|seed| {
            let (weather, timeout) = settings(seed);
            (weather.calls, weather.watches, weather.is_old_server, timeout)
        })
        .collect();
    assert_eq!(all.len(), 3 * 3 * 2 * 3);
}
