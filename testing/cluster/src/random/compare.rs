//! Whether both controllers have left the same of a script, as far as it is determined.

use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use stint_kit::job::counts;

use super::actor::Actor;
use super::board::Sheet;
use super::policy::indexes;
use super::script::{Scope, Script};
use crate::picture::Picture;

/// How long Jobs and Pods may take after their end to look as they stay: Pods that were deleted
/// take their time.
const SETTLING: Duration = Duration::from_secs(30);

/// How soon they are looked at again.
const AGAIN: Duration = Duration::from_millis(200);

/// Where what is left is still different when there is no more time, or where it is wrong.
pub(crate) async fn compare(script: &Script, ours: &Actor, theirs: &Actor) -> Vec<String> {
    let (name, began) = (script.name(), Instant::now());
    loop {
        let sheets = [ours.board.sheet(&name), theirs.board.sheet(&name)];
        let differences = match script.scope {
            Scope::Full => differ(script, &sheets),
            Scope::Part(_) => differ_in_part(script, &sheets, [ours, theirs]),
        };
        if differences.is_empty() || began.elapsed() > SETTLING {
            return differences;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Where the rests of a script are different.
pub(crate) fn compare_rests(script: &Script, ours: &[Picture], theirs: &[Picture]) -> Vec<String> {
    let mut lines = Vec::new();
    for (position, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let step = &script.turns[position].step;
        let told = |line: String| format!("before step {position}, {step:?}: {line}");
        lines.extend(ours.differences(theirs).into_iter().map(told));
    }
    lines
}

/// Everything is determined.
fn differ(script: &Script, [ours, theirs]: &[Sheet; 2]) -> Vec<String> {
    match script.end.is_empty() {
        // What a Job looked like last depends on when its Pods went; they are all that can stay.
        true => ours.picture_of_pods().differences(&theirs.picture_of_pods()),
        false => ours.picture(true).differences(&theirs.picture(true)),
    }
}

/// What is determined although Pods race: the Job but for its counts, and what its counts must
/// keep to on either side.
fn differ_in_part(script: &Script, sheets: &[Sheet; 2], actors: [&Actor; 2]) -> Vec<String> {
    if script.end.is_empty() {
        let [ours, theirs] = sheets;
        return ours.picture_of_pods().differences(&theirs.picture_of_pods());
    }
    let bare = sheets.each_ref().map(|sheet| {
        let mut sheet = sheet.clone();
        let status = sheet.job.as_mut().and_then(|job| job.status.as_mut());
        status.into_iter().for_each(take_open);
        sheet.picture(false)
    });
    let mut lines = bare[0].differences(&bare[1]);
    for (sheet, actor, player) in
        [(&sheets[0], actors[0], "stint"), (&sheets[1], actors[1], "built-in")]
    {
        let wrong = sheet.job.as_ref().map(|job| contradictions(script, job, actor));
        let told = |line: String| format!("{line}, with {player}: {}", sheet.told());
        lines.extend(wrong.unwrap_or_default().into_iter().map(told));
    }
    lines
}

/// Takes away what depends on who comes first.
fn take_open(status: &mut JobStatus) {
    (status.succeeded, status.failed) = (None, None);
    (status.completed_indexes, status.failed_indexes) = (None, None);
    for condition in status.conditions.iter_mut().flatten() {
        if condition.reason.as_deref() == Some("PodFailurePolicy") {
            // It names the Pod.
            condition.message = None;
        }
    }
}

/// What the counts of a Job that has ended must keep to, whoever came first.
fn contradictions(script: &Script, job: &Job, actor: &Actor) -> Vec<String> {
    let status = job.status.clone().unwrap_or_default();
    let (active, succeeded, failed) = counts(job);
    let number = |key: &str| script.manifest["spec"][key].as_i64().map(|it| it as i32);
    let completed = indexes(status.completed_indexes.as_deref().unwrap_or(""));
    let failed_indexes = indexes(status.failed_indexes.as_deref().unwrap_or(""));
    let lives = actor.stage.history.of(&script.name());
    let made = lives.len() as i32;
    let enough = script.manifest["spec"]["successPolicy"]["rules"][0]["succeededCount"].as_i64();
    let mut wrong = Vec::new();
    let mut must = |is_so: bool, what: &str| {
        if !is_so {
            wrong.push(format!("not so: {what}"));
        }
    };
    must(active == 0 && status.terminating.unwrap_or(0) == 0, "no Pods are left");
    must(succeeded == completed.len() as i32, "successes are completed indexes");
    must(completed.is_disjoint(&failed_indexes), "an index does not succeed and fail");
    let seen = lives.iter().filter(|life| life.phase == "Succeeded" && life.has_counted);
    // One that succeeded after it was told to end, and was taken for failed, does not count.
    must(succeeded <= seen.clone().count() as i32, "each success that counts has been seen");
    match &*script.end {
        "Complete SuccessPolicy" => {
            must(i64::from(succeeded) >= enough.unwrap_or(0), "there are enough successes");
            let sure = seen.filter(|life| !life.is_deleted).count();
            must(succeeded >= sure as i32, "each success of a Pod that was let be counts");
            must(failed == 0, "who is told to end has not failed");
        }
        // Whoever has not succeeded has failed with the Job.
        _ => must(succeeded + failed == made, "all Pods count"),
    }
    match &*script.end {
        "Failed BackoffLimitExceeded" => {
            must(Some(failed) > number("backoffLimit"), "more have failed than may");
        }
        "Failed MaxFailedIndexesExceeded" => {
            let most = number("maxFailedIndexes");
            must(Some(failed_indexes.len() as i32) > most, "more indexes have failed than may");
        }
        _ => {}
    }
    wrong
}
