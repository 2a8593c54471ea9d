//! A Job of 200 indexes, some of which fail once or for good, in bad weather: with a controller that
//! is killed over and over, one that reaches the API by a proxy which loses answers, a leader that
//! stands still past its Lease, leaders that are stopped one after the other, two that both work,
//! kube-apiserver started again, and an etcd that does not answer.
//! In the end every index has come to what it must, everything was counted once, and no Pod is left
//! with the finalizer.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use futures_util::future::join5;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::json;
use stint_api::names::managed_by;
use stint_kit::job::{counts, end};
use stint_kit::{Driver, Stage};
use tokio::time::Instant;

use crate::attempt::attempt;
use crate::authority::User;
use crate::cluster::{Cluster, ClusterError};
use crate::dice::Dice;
use crate::ordeal::{Ordeal, Plain};
use crate::program::{self, Program, Setup};
use crate::proxy::{Faults, Proxy};
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

const KILLED: &str = "faults/killed";
const PROXIED: &str = "faults/proxied";
const FROZEN: &str = "faults/frozen-leader";
const HANDED_OVER: &str = "faults/handed-over";
const TWO: &str = "faults/two-leaders";
const RESTARTED: &str = "faults/apiserver-restarted";
const PAUSED: &str = "faults/etcd-paused";

/// How many indexes a Job has.
const INDEXES: u32 = 200;

/// How long a controller lives until it is killed, at the most: from before it has listed anything
/// to well into its work.
const LIFE_MS: u32 = 700;

/// How long etcd does not answer.
const PAUSE: Duration = Duration::from_secs(5);

/// How long a controller may take to take over, on a machine that has much to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the Lease is handed over, and how soon it must be.
const HAND_OVERS: i32 = 5;
const HAND_OVER: SignedDuration = SignedDuration::from_secs(2);

/// How many Jobs without indexes two leaders run, one after the other: before that was mended, three of
/// seven had a Pod too many at their end.
const PLAIN_JOBS: usize = 8;

/// So that retries do not take longer than the faults.
const QUICK: &str = "--pod-failure-backoff-base=1s";

/// How bad the weather is.
#[derive(Args, Clone, Debug)]
pub struct Weather {
    /// How often the controller is killed in faults/killed
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub kills: u64,

    /// What faults follow from; printed, and another one each time if it is not given
    #[arg(long, value_name = "SEED", default_value_t = fresh_seed(), hide_default_value = true)]
    pub fault_seed: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Weather { kills: 20, fault_seed: fresh_seed() }
    }
}

fn fresh_seed() -> u64 {
    jiff::Timestamp::now().as_microsecond().unsigned_abs()
}

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [KILLED, PROXIED, FROZEN, HANDED_OVER, TWO, RESTARTED, PAUSED].map(str::to_owned).to_vec()
}

/// Runs what was asked for. All of it is on one cluster: first what concerns one controller each,
/// side by side, and then what concerns everybody.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let stint = program::path(&suite.build).await?;
    let driver = Driver::new(Ordeal::fate);
    let mut theatre = Theatre::open(suite.options.clone(), &Player::Nobody, driver).await?;
    let before = report.failed();
    let Weather { kills, fault_seed: seed } = suite.weather;
    println!("faults: --fault-seed {seed} --kills {kills}");
    {
        let scene = Scene { cluster: &theatre.cluster, stage: &theatre.stage, stint: &stint };
        let killed = when(suite, KILLED, killed(&scene, seed, kills));
        let proxied = when(suite, PROXIED, proxied(&scene, seed));
        let frozen = when(suite, FROZEN, frozen(&scene));
        let handed_over = when(suite, HANDED_OVER, handed_over(&scene));
        let two = when(suite, TWO, two_leaders(&scene));
        let told = join5(killed, proxied, frozen, handed_over, two).await;
        let names = [KILLED, PROXIED, FROZEN, HANDED_OVER, TWO];
        for (name, told) in names.into_iter().zip([told.0, told.1, told.2, told.3, told.4]) {
            tell(report, name, told);
        }
    }
    let restarted = when(suite, RESTARTED, restarted(&mut theatre, &stint)).await;
    tell(report, RESTARTED, restarted);
    let paused = when(suite, PAUSED, paused(&theatre, &stint)).await;
    tell(report, PAUSED, paused);
    suite.close([theatre], report.failed() > before);
    Ok(())
}

type Told = (Duration, Result<(), String>);

async fn when(suite: &Suite, name: &str, scenario: impl Future<Output = ()>) -> Option<Told> {
    match suite.wants(name) {
        true => Some(attempt(scenario).await),
        false => None,
    }
}

fn tell(report: &mut Report, name: &str, told: Option<Told>) {
    if let Some((took, result)) = told {
        report.tell(name, took, result);
    }
}

/// What a scenario plays on.
struct Scene<'a> {
    cluster: &'a Cluster,
    stage: &'a Stage,
    stint: &'a Path,
}

impl Scene<'_> {
    fn start(&self, setup: &Setup) -> Program {
        Program::start(self.cluster, self.stint, setup).expect("it can be started")
    }
}

async fn create(stage: &Stage, name: &'static str, ours: Option<&str>, parallelism: u64) -> Ordeal {
    let ordeal = Ordeal { name, indexes: INDEXES };
    let mut spec = ordeal.spec(parallelism);
    if let Some(managed_by) = ours {
        spec["managedBy"] = managed_by.into();
    }
    stage.create(name, spec).await;
    ordeal
}

/// The controller is killed (SIGKILL) at moments that nobody has chosen.
async fn killed(scene: &Scene<'_>, seed: u64, kills: u64) {
    let (name, ours, mut dice) = ("killed", "test.stint.dev/killed", Dice::new(seed));
    let managed_by = format!("--managed-by={ours}");
    let setup = Setup::new(Mode::Beside, name);
    let setup = setup.with(&[&managed_by, "--leader-elect=false", QUICK]);
    // Slow enough to last over all kills: a Pod takes 650 ms, and a life about as long.
    let ordeal = create(scene.stage, name, Some(ours), (180 / kills.max(1)).clamp(2, 40)).await;
    let mut program = scene.start(&setup);
    for kill in 1..=kills {
        // Every other one is in the middle of its work, and not of its start.
        if kill % 2 == 0 {
            let before = scene.stage.job(name).await.metadata.resource_version;
            let has_written = |job: &Job| job.metadata.resource_version != before;
            scene.stage.wait(name, "gets on", has_written).await;
        }
        tokio::time::sleep(Duration::from_millis(dice.below(LIFE_MS).into())).await;
        program.process.kill().await;
        let job = scene.stage.job(name).await;
        assert_eq!(end(&job), None, "it has ended after {kill} of {kills} kills: {:?}", job.status);
        if kill == kills {
            let (_, succeeded, failed) = counts(&job);
            println!("        {KILLED}: {succeeded} succeeded, {failed} failed at the last kill");
            assert!(succeeded > 0, "it has hardly begun: the kills have met nothing");
        }
        program.begin().expect("it can be started");
    }
    scene.stage.patch(name, json!({"spec": {"parallelism": 40}})).await;
    ordeal.check(scene.stage).await;
    program.process.stop().await;
}

/// The controller reaches the API only by a proxy that loses, refuses and delays.
async fn proxied(scene: &Scene<'_>, seed: u64) {
    let (name, ours) = ("proxied", "test.stint.dev/proxied");
    let user = User::controller(Mode::Beside);
    let proxy = Proxy::start(scene.cluster, &user, Faults::Seeded(seed)).await.expect("a proxy");
    let managed_by = format!("--managed-by={ours}");
    let setup = Setup { url: Some(proxy.url.clone()), ..Setup::new(Mode::Beside, name) };
    let setup = setup.with(&[&managed_by, "--leader-elect=false", QUICK]);
    let ordeal = create(scene.stage, name, Some(ours), 20).await;
    let mut program = scene.start(&setup);
    ordeal.check(scene.stage).await;
    program.process.stop().await;
    let met = proxy.met();
    println!("        {PROXIED}: {met:?}");
    assert!(met.iter().all(|(_, count)| *count > 1), "hardly any faults: {met:?}");
}

/// A leader stands still past its Lease, another one takes over, and the first one goes on; then
/// the other way round.
async fn frozen(scene: &Scene<'_>) {
    let (name, stage) = ("frozen", scene.stage);
    let short = ["--lease-duration=3s", "--renew-deadline=2s", "--retry-period=500ms", QUICK];
    let setup = |log| Setup::new(Mode::Beside, log).with(&short);
    let mut leader = scene.start(&setup("frozen-1"));
    until("the first one leads", || leader.leads()).await;
    let mut standby = scene.start(&setup("frozen-2"));
    until("the second one stands by", async || is_standby(&standby).await).await;
    let ordeal = create(stage, name, Some(managed_by::STINT), 10).await;
    for round in 1..=2 {
        let has_more = |than: i32| move |job: &Job| counts(job).1 >= than || end(job).is_some();
        stage.wait(name, "gets on", has_more(round * 30)).await;
        leader.process.pause();
        until("the other one leads", || standby.leads()).await;
        let now = counts(&stage.job(name).await).1;
        let job = stage.wait(name, "gets on without its leader", has_more(now + 10)).await;
        assert_eq!(end(&job), None, "it has ended too early: {:?}", job.status);
        leader.process.resume();
        until("the first one knows better", async || is_standby(&leader).await).await;
        std::mem::swap(&mut leader, &mut standby);
    }
    ordeal.check(stage).await;
    leader.process.stop().await;
    standby.process.stop().await;
}

/// One leader after the other is asked to end while the Job runs, and the next one takes over. How long
/// that takes is told by the time of this machine at the signal, and by what the next one writes into
/// the Lease.
async fn handed_over(scene: &Scene<'_>) {
    let (name, stage) = ("handed-over", scene.stage);
    // One that is not given back lasts for longer than anybody waits here.
    let long = ["--lease-duration=120s", "--renew-deadline=100s", QUICK];
    let setup = |log| Setup::new(Mode::Replace, log).with(&long);
    let mut leader = scene.start(&setup("handed-over-1"));
    until("the first one leads", || leader.leads()).await;
    let mut standby = scene.start(&setup("handed-over-2"));
    let ordeal = create(stage, name, None, 5).await;
    let leases: Api<Lease> = Api::namespaced(stage.admin.clone(), "stint-system");
    let mut times = Vec::new();
    for round in 1..=HAND_OVERS {
        until("the other one stands by", async || is_standby(&standby).await).await;
        let has_more = |job: &Job| counts(job).1 >= round * 20 || end(job).is_some();
        let job = stage.wait(name, "gets on", has_more).await;
        assert_eq!(end(&job), None, "it has ended too early: {:?}", job.status);
        let asked = Timestamp::now();
        leader.process.stop().await;
        until("the other one leads", || standby.leads()).await;
        let lease = leases.get("stint-job-controller-builtin").await.expect("the Lease stays");
        let acquired = lease.spec.and_then(|spec| spec.acquire_time).expect("somebody has it").0;
        times.push(acquired.duration_since(asked));
        leader.begin().expect("it can be started");
        std::mem::swap(&mut leader, &mut standby);
    }
    let told: Vec<String> = times.iter().map(|time| format!("{time:#}")).collect();
    println!("        {HANDED_OVER}: {}", told.join(", "));
    // A machine that has much to do may hold up one or two of them.
    times.sort();
    let median = times[times.len() / 2];
    assert!(median < HAND_OVER, "the Lease was not handed over in time: {told:?}");
    ordeal.check(stage).await;
    leader.process.stop().await;
    standby.process.stop().await;
}

/// Two that both believe to lead work on the same Job, and either stands still for a while: what it
/// knows is old when it goes on.
async fn two_leaders(scene: &Scene<'_>) {
    let (name, ours, stage) = ("two-leaders", "test.stint.dev/two-leaders", scene.stage);
    let managed_by = format!("--managed-by={ours}");
    let flags = [&*managed_by, "--leader-elect=false", QUICK];
    let programs = ["two-leaders-1", "two-leaders-2"]
        .map(|log| scene.start(&Setup::new(Mode::Beside, log).with(&flags)));
    for program in &programs {
        until("it leads", || program.leads()).await;
    }
    let ordeal = create(stage, name, Some(ours), 8).await;
    for turn in 0..4 {
        // The other one has to work meanwhile.
        let still = &programs[turn % 2].process;
        still.pause();
        let now = counts(&stage.job(name).await).1;
        let has_more = |job: &Job| counts(job).1 >= now + 15 || end(job).is_some();
        let job = stage.wait(name, "gets on with one of them", has_more).await;
        assert_eq!(end(&job), None, "it has ended too early: {:?}", job.status);
        still.resume();
        let now = counts(&job).1;
        let has_more = |job: &Job| counts(job).1 >= now + 15 || end(job).is_some();
        stage.wait(name, "gets on with both", has_more).await;
    }
    ordeal.check(stage).await;
    // Without indexes there is only the count to tell which Pod is missing.
    for round in 0..PLAIN_JOBS {
        let plain = Plain { name: format!("two-leaders-plain-{round}") };
        let mut spec = plain.spec();
        spec["managedBy"] = ours.into();
        stage.create(&plain.name, spec).await;
        plain.check(stage).await;
    }
    for mut program in programs {
        program.process.stop().await;
    }
}

async fn is_standby(program: &Program) -> bool {
    program.ready().await.is_some_and(|answer| answer.contains("standby"))
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// kube-apiserver crashes and is started again; and once more, this time asked to end.
async fn restarted(theatre: &mut Theatre, stint: &Path) {
    let (name, stage) = ("restarted", theatre.stage.clone());
    let setup = Setup::new(Mode::Replace, name).with(&[QUICK]);
    let mut program = Program::start(&theatre.cluster, stint, &setup).expect("it can be started");
    let ordeal = create(&stage, name, None, 20).await;
    for (round, is_crash) in [(1, true), (2, false)] {
        let has_more = |job: &Job| counts(job).1 >= 40 * round || end(job).is_some();
        let job = stage.wait(name, "gets on", has_more).await;
        assert_eq!(end(&job), None, "it has ended too early: {:?}", job.status);
        match is_crash {
            true => theatre.cluster.apiserver.kill().await,
            false => theatre.cluster.apiserver.stop().await,
        }
        theatre.cluster.apiserver.start().expect("it can be started");
        theatre.cluster.ready().await.expect("it serves again");
    }
    ordeal.check(&stage).await;
    program.process.stop().await;
}

/// etcd does not answer for a while, and so kube-apiserver hardly does.
async fn paused(theatre: &Theatre, stint: &Path) {
    let (name, stage) = ("paused", theatre.stage.clone());
    let setup = Setup::new(Mode::Replace, name).with(&[QUICK]);
    let mut program = Program::start(&theatre.cluster, stint, &setup).expect("it can be started");
    let ordeal = create(&stage, name, None, 20).await;
    let has_more = |job: &Job| counts(job).1 >= 60 || end(job).is_some();
    let job = stage.wait(name, "gets on", has_more).await;
    assert_eq!(end(&job), None, "it has ended too early: {:?}", job.status);
    theatre.cluster.etcd.pause();
    tokio::time::sleep(PAUSE).await;
    theatre.cluster.etcd.resume();
    ordeal.check(&stage).await;
    program.process.stop().await;
}
