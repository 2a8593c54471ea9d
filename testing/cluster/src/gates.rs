//! Features that are turned off and on again while a Job runs (KEP-3850 and KEP-3998), by stint's
//! `--feature-gates` on a real kube-apiserver. kube-controller-manager has both locked on, so that
//! there is nothing to compare with.

use std::path::Path;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate, Stage};

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError};
use crate::program::{self, Program, Setup};
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

const POLICY: &str = "gates/success-policy";
const LIMIT: &str = "gates/backoff-limit-per-index";

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [POLICY, LIMIT].map(str::to_owned).to_vec()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let stint = program::path(&suite.build).await?;
    let driver = Driver::new(|_| Fate::runs());
    let theatre = Theatre::open(suite.options.clone(), &Player::Nobody, driver).await?;
    let before = report.failed();
    if suite.wants(POLICY) {
        let (took, result) = attempt(success_policy(&theatre, &stint)).await;
        report.tell(POLICY, took, result);
    }
    if suite.wants(LIMIT) {
        let (took, result) = attempt(limit_per_index(&theatre, &stint)).await;
        report.tell(LIMIT, took, result);
    }
    suite.close([theatre], report.failed() > before);
    Ok(())
}

/// Who runs one Job, with or without a feature.
struct Switch<'a> {
    cluster: &'a Cluster,
    stint: &'a Path,
    name: &'static str,
    gate: &'static str,
    program: Option<Program>,
}

impl Switch<'_> {
    /// What its Job has as managedBy.
    fn manager(&self) -> String {
        format!("test.stint.dev/{}", self.name)
    }

    /// Puts one with or without the feature in place of the one that runs.
    async fn turn(&mut self, is_on: bool) {
        self.stop().await;
        let flags = [
            format!("--managed-by={}", self.manager()),
            format!("--feature-gates={}={is_on}", self.gate),
            "--leader-elect=false".to_owned(),
            "--pod-failure-backoff-base=1s".to_owned(),
        ];
        let setup = Setup::new(Mode::Beside, self.name).with(&flags.each_ref().map(|it| &**it));
        let program = Program::start(self.cluster, self.stint, &setup);
        self.program = Some(program.expect("it can be started"));
    }

    async fn stop(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.process.stop().await;
        }
    }
}

/// JobSuccessPolicy on, off, and on again.
async fn success_policy(theatre: &Theatre, stint: &Path) {
    let (name, stage, cluster) = ("gate-policy", &theatre.stage, &theatre.cluster);
    let gate = "JobSuccessPolicy";
    let mut switch = Switch { cluster, stint, name, gate, program: None };
    switch.turn(true).await;
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]}, "managedBy": switch.manager(),
    });
    stage.create(name, spec).await;
    stage.wait(name, "runs", |job| counts(job) == (3, 0, 0)).await;
    switch.turn(false).await;
    finish(stage, name, 0, Fate::succeeds()).await;
    stage.wait(name, "has a success", |job| counts(job) == (2, 1, 0)).await;
    // That it goes on shows that it was not taken for met.
    finish(stage, name, 1, Fate::succeeds()).await;
    let job = stage.wait(name, "has another", |job| counts(job) == (1, 2, 0)).await;
    let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
    assert!(conditions.is_empty(), "the policy was evaluated: {conditions:?}");
    switch.turn(true).await;
    let job = stage.finish(name).await;
    assert_eq!(end(&job).as_deref(), Some("Complete SuccessPolicy"), "{:?}", job.status);
    assert_eq!(counts(&job), (0, 2, 0), "{:?}", job.status);
    switch.stop().await;
}

/// JobBackoffLimitPerIndex on, off, and on again.
async fn limit_per_index(theatre: &Theatre, stint: &Path) {
    let (name, stage, cluster) = ("gate-limit", &theatre.stage, &theatre.cluster);
    let gate = "JobBackoffLimitPerIndex";
    let mut switch = Switch { cluster, stint, name, gate, program: None };
    switch.turn(true).await;
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0,
        "managedBy": switch.manager(),
    });
    stage.create(name, spec).await;
    stage.wait(name, "runs", |job| counts(job) == (2, 0, 0)).await;
    finish(stage, name, 0, Fate::fails(1)).await;
    let failed = |job: &Job| job.status.clone().unwrap_or_default().failed_indexes;
    let is_failed = |job: &Job| failed(job).as_deref() == Some("0") && counts(job) == (1, 0, 1);
    stage.wait(name, "has a failed index", is_failed).await;
    switch.turn(false).await;
    let is_tried = |job: &Job| failed(job).is_none() && counts(job).0 == 2;
    stage.wait(name, "tries it again", is_tried).await;
    assert_eq!(stage.history.of(name).len(), 3);
    switch.turn(true).await;
    finish(stage, name, 0, Fate::fails(1)).await;
    let is_failed = |job: &Job| failed(job).as_deref() == Some("0") && counts(job) == (1, 0, 2);
    stage.wait(name, "has a failed index again", is_failed).await;
    // The end of the other one is the end of the Job: nothing is tried again before.
    finish(stage, name, 1, Fate::succeeds()).await;
    let job = stage.finish(name).await;
    assert_eq!(end(&job).as_deref(), Some("Failed FailedIndexes"), "{:?}", job.status);
    assert_eq!(stage.history.of(name).len(), 3, "a failed index was tried again");
    switch.stop().await;
}

/// Gives the Pod of an index that runs its end.
async fn finish(stage: &Stage, name: &str, index: u32, fate: Fate) {
    let start = format!("{name}-{index}-");
    let is_meant = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        name.starts_with(&start) && !matches!(phase, Some("Succeeded" | "Failed"))
    };
    let pod = stage.pods_of(name).await.into_iter().find(is_meant);
    stage.end_pod(pod.expect("it runs"), fate).await;
}
