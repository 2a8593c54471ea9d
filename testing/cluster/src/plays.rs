//! The plays of stint-kit, given by stint and by the built-in controller: each must keep to what
//! the play says, and in the end Jobs and Pods must be the same.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use stint_kit::play::{check_all, crowds, delays, driver, plays};
use stint_kit::{Play, Stage};

use crate::attempt::attempt;
use crate::cluster::ClusterError;
use crate::excuse;
use crate::picture::Picture;
use crate::report::Report;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

/// How long Jobs and Pods may take after their end to look as they stay: Pods that were deleted
/// take their time.
const SETTLING: Duration = Duration::from_secs(60);

/// How soon they are looked at again.
const AGAIN: Duration = Duration::from_millis(500);

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    acts().iter().flatten().map(scenario).collect()
}

/// All plays, in acts: those of an act are given at once. What keeps a cluster busy is over when
/// those begin whose users have to be in time.
fn acts() -> [Vec<Play>; 2] {
    let mut second = plays();
    second.extend(delays());
    [crowds(), second]
}

fn scenario(play: &Play) -> String {
    format!("plays/{}", play.name)
}

/// Gives the plays that were asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    let mut acts = acts();
    acts.iter_mut().for_each(|plays| plays.retain(|play| suite.wants(&scenario(play))));
    if acts.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let players = [Player::Stint(suite.build.clone()), Player::BuiltIn];
    let open = |player| Theatre::open(suite.options.clone(), player, driver());
    let mut theatres = join_all(players.iter().map(open)).await;
    let (built_in, stint) = (theatres.pop().expect("two")?, theatres.pop().expect("two")?);
    let theatres = [stint, built_in];
    let before = report.failed();
    for plays in &acts {
        give_all(plays, &players, &theatres, report).await;
    }
    for (player, theatre) in players.iter().zip(&theatres) {
        let (took, result) = attempt(check_all(&theatre.stage)).await;
        report.tell(&format!("plays: what must hold of all, {}", player.name()), took, result);
    }
    compare(acts.iter().flatten(), &theatres, report).await;
    suite.close(theatres, report.failed() > before);
    Ok(())
}

/// Gives all plays at once; what is told of each comes when it is over.
async fn give_all(plays: &[Play], players: &[Player], theatres: &[Theatre], report: &mut Report) {
    let mut running = FuturesUnordered::new();
    for (player, theatre) in players.iter().zip(theatres) {
        for play in plays {
            let name = format!("{} {}", scenario(play), player.name());
            let given = attempt(async {
                play.give(&theatre.stage).await;
                check_more(play, &theatre.stage).await;
            });
            running.push(async move { (name, given.await) });
        }
    }
    while let Some((name, (took, result))) = running.next().await {
        report.tell(&name, took, result);
    }
}

/// What is certain where the clock is a real one, and not on the embedded server in bad weather.
async fn check_more(play: &Play, stage: &Stage) {
    // KEP-3998: an index that has failed is told, although the Job has succeeded. It fails at once,
    // and the others succeed 15 s later.
    if play.name == "despite" {
        let status = stage.job(play.name).await.status.unwrap_or_default();
        assert_eq!(status.failed_indexes.as_deref(), Some("0"), "{status:?}");
    }
}

/// Compares what is left of each play.
async fn compare(plays: impl Iterator<Item = &Play>, theatres: &[Theatre; 2], report: &mut Report) {
    let [ours, theirs] = [&theatres[0].stage, &theatres[1].stage];
    let began = Instant::now();
    for play in plays {
        let started = Instant::now();
        let differences = settled(play.name, ours, theirs, began).await;
        report.compare(&scenario(play), started.elapsed(), &differences);
    }
}

/// Where what is left is still different when there is no more time.
async fn settled(name: &str, ours: &Stage, theirs: &Stage, began: Instant) -> Vec<String> {
    loop {
        let (ours, theirs) = (Picture::take(ours, name).await, Picture::take(theirs, name).await);
        let mut differences = ours.differences(&theirs);
        differences.retain(|line| excuse::find(name, line).is_none());
        if differences.is_empty() || began.elapsed() > SETTLING {
            return differences;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
