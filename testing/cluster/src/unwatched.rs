//! What happens while no controller looks.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate};

use crate::attempt::attempt;
use crate::cluster::ClusterError;
use crate::picture::Picture;
use crate::report::Report;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

const NAME: &str = "unwatched/both-policies";

/// The Job's name.
const JOB: &str = "both";

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !suite.wants(NAME) {
        return Ok(());
    }
    let players = [Player::Stint(suite.build.clone()), Player::BuiltIn];
    let open = |player| Theatre::open(suite.options.clone(), player, Driver::new(|_| Fate::runs()));
    let mut theatres = Vec::new();
    for theatre in join_all(players.iter().map(open)).await {
        theatres.push(theatre?);
    }
    let before = report.failed();
    let results = join_all(theatres.iter_mut().map(|it| attempt(both_policies(it)))).await;
    let mut pictures = Vec::new();
    for (player, (took, result)) in players.iter().zip(results) {
        let result = result.map(|picture| pictures.push(picture));
        report.tell(&format!("{NAME} {}", player.name()), took, result);
    }
    if let [ours, theirs] = &pictures[..] {
        report.compare(NAME, Duration::ZERO, &ours.differences(theirs));
    }
    suite.close(theatres, report.failed() > before);
    Ok(())
}

/// A success policy and a failure policy are met while nobody looks (KEP-3998): failing comes
/// first.
async fn both_policies(theatre: &mut Theatre) -> Picture {
    let stage = theatre.stage.clone();
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        ]},
    });
    stage.create(JOB, spec).await;
    stage.wait(JOB, "runs", |job| counts(job).0 == 3).await;
    theatre.stop_player().await.expect("it can be stopped");
    for pod in stage.pods_of(JOB).await {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if name.starts_with("both-0-") {
            stage.end_pod(pod, Fate::succeeds()).await;
        } else if name.starts_with("both-1-") {
            stage.end_pod(pod, Fate::fails(42)).await;
        }
    }
    assert_eq!(counts(&stage.job(JOB).await), (3, 0, 0), "somebody has looked");
    theatre.start_player().await.expect("it can be started");
    let job = stage.finish(JOB).await;
    assert_eq!(end(&job).as_deref(), Some("Failed PodFailurePolicy"));
    Picture::take(&stage, JOB).await
}
