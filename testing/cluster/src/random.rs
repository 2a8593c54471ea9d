//! Jobs by chance, given by stint and by the built-in controller: a seed says what the Job is, what
//! becomes of its Pods and what is done to it, and in the end, and at every rest before, both must
//! have left the same.

mod actor;
mod board;
mod compare;
mod fates;
mod generate;
mod model;
mod policy;
mod race;
mod script;
mod spec;
mod step;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::{join, join_all};
use futures_util::stream;
use jiff::Timestamp;
use stint_api::names::managed_by;
use stint_kit::Driver;
use stint_kit::play::check_all;
use tokio::task::JoinSet;

use self::actor::Actor;
use self::board::Board;
use self::compare::{compare, compare_rests};
use self::fates::{Fates, Scripts};
use self::generate::generate;
use self::script::{Scope, Script};
use crate::attempt::attempt;
use crate::cluster::ClusterError;
use crate::programs::Programs;
use crate::report::Report;
use crate::stint::{Mode, Stint};
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

const NAME: &str = "random";

/// How many seeds are given at once: so many that delays pass side by side, and so few that the
/// machine is not what they wait for.
const AT_ONCE: usize = 40;

/// Fresh seeds are below this, so that names of Jobs are short.
const SEEDS: u64 = 1_000_000_000;

/// Which seeds are given.
#[derive(Clone, Copy, Debug)]
pub enum Seeds {
    /// So many fresh ones.
    Fresh(u64),
    /// This one.
    One(u64),
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::Fresh(60)
    }
}

impl Seeds {
    fn all(self) -> Vec<u64> {
        match self {
            Seeds::One(seed) => vec![seed],
            Seeds::Fresh(count) => {
                let first = Timestamp::now().as_nanosecond().unsigned_abs() as u64 % SEEDS;
                (first..first + count).collect()
            }
        }
    }
}

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// Runs the seeds that were asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !suite.wants(NAME) {
        return Ok(());
    }
    let seeds = suite.seeds.all();
    if let (Some(first), Some(last)) = (seeds.first(), seeds.last()) {
        println!(
            "random: seeds {first} to {last}; one again: testing/cluster/run random --seed {first}"
        );
    }
    let version = Programs::get(suite.options.version.as_deref())?.version;
    let scripts: Vec<Script> = seeds.into_iter().map(|seed| generate(seed, version)).collect();
    let by_name: Scripts =
        Arc::new(scripts.iter().map(|script| (script.name(), script.clone())).collect());
    let players = [Player::Stint(suite.build.clone()), Player::BuiltIn];
    let mut background = JoinSet::new();
    let mut theatres = Vec::new();
    let mut actors = Vec::new();
    // Every other Job names stint, and so another stint runs it, by another finalizer.
    let mut beside = Vec::new();
    let fates = players.each_ref().map(|_| Fates::new(by_name.clone()));
    let open = |(player, fates): (&Player, &Fates)| {
        let fates = fates.clone();
        let driver = Driver::new(move |who| fates.of(who));
        let (options, player) = (suite.options.clone(), player.clone());
        async move { Theatre::open(options, &player, driver).await }
    };
    let opened = join_all(players.iter().zip(&fates).map(open)).await;
    for (theatre, fates) in opened.into_iter().zip(fates) {
        let theatre = theatre?;
        let board = Board::start(&mut background, theatre.cluster.admin().await?);
        let manager = match theatre.stint {
            Some(_) => {
                beside.push(Stint::start(&theatre.cluster, &suite.build, Mode::Beside).await?);
                Some(managed_by::STINT)
            }
            None => None,
        };
        actors.push(Actor { manager, stage: theatre.stage.clone(), board, fates });
        theatres.push(theatre);
    }
    let before = report.failed();
    give_all(&scripts, &actors, report).await;
    for (player, actor) in players.iter().zip(&actors) {
        let (took, result) = attempt(check_all(&actor.stage)).await;
        report.tell(&format!("random: what must hold of all, {}", player.name()), took, result);
    }
    suite.close(theatres, report.failed() > before);
    Ok(())
}

/// Gives all scripts, some at once; what is told of each comes when it is over.
async fn give_all(scripts: &[Script], actors: &[Actor], report: &mut Report) {
    let began = Instant::now();
    let [ours, theirs] = actors else { panic!("two actors") };
    let given =
        scripts.iter().map(|script| async move { (script, give(script, ours, theirs).await) });
    let mut given = stream::iter(given).buffer_unordered(AT_ONCE);
    let (mut full, mut part) = (0, 0);
    while let Some((script, (took, result))) = given.next().await {
        match script.scope {
            Scope::Full => full += 1,
            Scope::Part(_) => part += 1,
        }
        if let Err(why) = result {
            let words = format!("{why}\n{}", script.told());
            report.tell(&format!("{NAME} --seed {}", script.seed), took, Err(words));
        }
    }
    let told = format!("{NAME}: {full} in full, {part} in part");
    report.tell(&told, began.elapsed(), Ok(()));
}

/// Gives a script on both stages, and compares.
async fn give(script: &Script, ours: &Actor, theirs: &Actor) -> (Duration, Result<(), String>) {
    let given = join(attempt(ours.give(script)), attempt(theirs.give(script))).await;
    let ((took, our_rests), (their_took, their_rests)) = given;
    let took = took.max(their_took);
    let (our_rests, their_rests) = match (our_rests, their_rests) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            let word =
                |result: Result<_, String>| result.err().unwrap_or("as it should".to_owned());
            return (took, Err(format!("stint: {}\nbuilt-in: {}", word(ours), word(theirs))));
        }
    };
    let mut differences = compare_rests(script, &our_rests, &their_rests);
    differences.extend(compare(script, ours, theirs).await);
    match differences.is_empty() {
        true => (took, Ok(())),
        false => (took, Err(format!("stint leaves\n{}", differences.join("\n")))),
    }
}
