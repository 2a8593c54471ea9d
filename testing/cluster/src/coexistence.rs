//! The built-in controller and stint in one cluster, with Jobs of both kinds: each touches only its
//! own, and Jobs that come back as the other kind leave nothing behind.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use stint_api::names::managed_by;
use stint_kit::job::{counts, is_tracked};
use stint_kit::play::{check_all, fates, plays};
use stint_kit::{Driver, Fate, Play, Stage};

use crate::attempt::attempt;
use crate::audit::{self, Call};
use crate::authority::BUILT_IN;
use crate::authority::User;
use crate::cluster::ClusterError;
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

/// What the names of stint's Jobs end with.
const OURS: &str = "-ours";

/// What the names of Jobs begin with that come back as the other kind.
const BACK: &str = "back-";

/// How often a Job comes back as the other kind.
const ROUNDS: usize = 4;

const PROPAGATIONS: [(&str, PropagationPolicy); 3] = [
    ("background", PropagationPolicy::Background),
    ("foreground", PropagationPolicy::Foreground),
    ("orphan", PropagationPolicy::Orphan),
];

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    let mut names = vec!["coexistence/plays".to_owned()];
    for (name, _) in &PROPAGATIONS {
        names.push(format!("coexistence/recreated-{name}"));
        names.push(format!("coexistence/selected-{name}"));
    }
    names
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let player = Player::Both(suite.build.clone());
    let theatre = Theatre::open(suite.options.clone(), &player, driver()).await?;
    let before = report.failed();
    if suite.wants("coexistence/plays") {
        give_all(&theatre, report).await;
    }
    recreate_all(suite, &theatre, report).await;
    let (took, result) = attempt(async { check_audit(&theatre) }).await;
    report.tell("coexistence: each touches only its own", took, result);
    suite.close([theatre], report.failed() > before);
    Ok(())
}

/// The Pods of Jobs that come back run, and take a moment to end when they are deleted.
fn driver() -> Driver {
    let plays = fates();
    Driver::new(move |who| match who.job.starts_with(BACK) {
        true => Fate::runs().farewell(1),
        false => plays(who),
    })
}

/// Gives all plays twice at once: for Jobs of the built-in controller, and for those of stint.
async fn give_all(theatre: &Theatre, report: &mut Report) {
    let (mut ours, mut theirs) = (theatre.stage.clone(), theatre.stage.clone());
    theirs.keeps_start_time = theatre.cluster.version().keeps_start_time();
    ours.managed_by = Some(managed_by::STINT.to_owned());
    let plays: Vec<Play> = plays();
    let mut running = FuturesUnordered::new();
    for play in &plays {
        for (stage, ending, player) in [(&ours, OURS, "stint"), (&theirs, "", "built-in")] {
            let job = format!("{}{ending}", play.name);
            let scenario = format!("coexistence/plays {} {player}", play.name);
            let given = attempt(async move { drop(play.give_as(stage, &job).await) });
            running.push(async move { (scenario, given.await) });
        }
    }
    while let Some((scenario, (took, result))) = running.next().await {
        report.tell(&scenario, took, result);
    }
    let (took, result) = attempt(check_all(&theirs)).await;
    report.tell("coexistence/plays: what must hold of all", took, result);
}

/// Lets Jobs come back, after each way to delete them.
async fn recreate_all(suite: &Suite, theatre: &Theatre, report: &mut Report) {
    let mut running = FuturesUnordered::new();
    for (name, propagation) in &PROPAGATIONS {
        for kind in ["recreated", "selected"] {
            let scenario = format!("coexistence/{kind}-{name}");
            let job = format!("{BACK}{kind}-{name}");
            if suite.wants(&scenario) {
                running.push(async move {
                    let given = recreate(&theatre.stage, &job, propagation, kind == "selected");
                    (scenario, attempt(given).await)
                });
            }
        }
    }
    while let Some((scenario, (took, result))) = running.next().await {
        report.tell(&scenario, took, result);
    }
}

/// A Job is deleted while its Pods run, and comes back at once as the other kind; with a selector
/// of its own it may adopt what is left of the one before.
async fn recreate(stage: &Stage, name: &str, propagation: &PropagationPolicy, is_selected: bool) {
    for round in 0..=ROUNDS {
        let mut spec = spec(name, is_selected);
        if round % 2 == 1 {
            spec["managedBy"] = managed_by::STINT.into();
        }
        stage.until("can be created", async |stage| create(stage, name, &spec).await).await;
        stage.wait(name, "runs", |job| counts(job).0 == 3).await;
        if round < ROUNDS {
            let params = DeleteParams {
                propagation_policy: Some(propagation.clone()),
                ..DeleteParams::default()
            };
            stage.jobs().delete(name, &params).await.expect("it can be deleted");
        }
    }
    let uid = stage.job(name).await.metadata.uid;
    stage
        .until("strands nothing", async |stage| {
            let pods = stage.pods_of(name).await;
            pods.iter().all(|pod| is_owned_by(pod, uid.as_deref()) || is_free(pod))
        })
        .await;
    let running = stage.pods_of(name).await;
    for pod in running.into_iter().filter(|pod| is_owned_by(pod, uid.as_deref())) {
        stage.end_pod(pod, Fate::succeeds()).await;
    }
    let job = stage.finish(name).await;
    assert_eq!(counts(&job), (0, 3, 0), "{:?}", job.status);
}

/// Creates a Job, unless the one before is still there.
async fn create(stage: &Stage, name: &str, spec: &Value) -> bool {
    if stage.jobs().get_opt(name).await.expect("an answer").is_some() {
        return false;
    }
    stage.create(name, spec.clone()).await;
    true
}

fn spec(name: &str, is_selected: bool) -> Value {
    let mut spec = json!({"parallelism": 3, "completions": 3, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
    }}});
    if is_selected {
        spec["manualSelector"] = true.into();
        spec["selector"] = json!({"matchLabels": {"app": name}});
        spec["template"]["metadata"] = json!({"labels": {"app": name, "job-name": name}});
    }
    spec
}

fn is_owned_by(pod: &Pod, uid: Option<&str>) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&*owner.uid) == uid)
}

/// Whether a Pod belongs to nobody and nothing keeps it.
fn is_free(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten().count();
    owners == 0 && !is_tracked(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Every write of either controller was to a Job of its kind, or to a Pod or an Event of one.
fn check_audit(theatre: &Theatre) {
    let writes = audit::writes(theatre.cluster.folder()).expect("there is an audit log");
    let ours = User::controller(Mode::Beside).name;
    check_returned(&writes, &ours);
    // Those that come back change sides.
    let stays = |write: &&Call| !write.name.starts_with(BACK);
    for write in writes.iter().filter(stays) {
        let is_of_ours = write.name.contains(OURS);
        let is_wrong = if is_of_ours { write.user == BUILT_IN } else { write.user == ours };
        assert!(!is_wrong, "{} has touched what is not its own: {write:?}", write.user);
    }
    for user in [BUILT_IN, &ours] {
        let count = writes.iter().filter(|write| write.user == user).count();
        assert!(count > 20, "{user} has written {count} times: it has not played");
    }
}

/// Of the Jobs that come back as the other kind, each status and each Pod was written by the controller
/// of the kind that the Job of that uid was; and so was all that became of these Pods, unless another
/// Job could adopt them.
fn check_returned(writes: &[Call], ours: &str) {
    let is_meant = |write: &&Call| write.name.starts_with(BACK) && (200..300).contains(&write.code);
    let of_controllers = |write: &&Call| write.user == ours || write.user == BUILT_IN;
    let writes: Vec<&Call> = writes.iter().filter(is_meant).filter(of_controllers).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Who runs the Job of each uid, by what the API server has answered.
    let mut runs: BTreeMap<String, &str> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.what.ends_with(" jobs/status")) {
        let is_ours = write.object["spec"]["managedBy"] == managed_by::STINT;
        let runner = if is_ours { ours } else { BUILT_IN };
        assert_eq!(write.user, runner, "a status of the other kind: {write:?}");
        runs.insert(text(&write.object["metadata"]["uid"]), runner);
    }
    let mut made: BTreeMap<&str, &str> = BTreeMap::new();
    for write in writes.iter().filter(|write| write.what == "create pods") {
        let owner = text(&write.object["metadata"]["ownerReferences"][0]["uid"]);
        let runner = runs.get(&owner).unwrap_or_else(|| panic!("whose is {write:?}"));
        assert_eq!(write.user, *runner, "a Pod of the other kind: {write:?}");
        made.insert(&write.name, runner);
    }
    for user in [ours, BUILT_IN] {
        let count = made.values().filter(|maker| **maker == user).count();
        // There are none if these scenarios were not asked for.
        assert!(made.is_empty() || count >= 3, "{user} has made {count} Pods");
    }
    let is_of_pods = |write: &&&Call| matches!(&*write.what, "patch pods" | "delete pods");
    for write in writes.iter().filter(is_of_pods) {
        let is_selected = write.name.starts_with(&format!("{BACK}selected"));
        let maker = made.get(&*write.name).filter(|_| !is_selected);
        assert!(maker.is_none_or(|maker| *maker == write.user), "not its Pod: {write:?}");
    }
}
