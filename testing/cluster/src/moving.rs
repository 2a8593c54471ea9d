//! A cluster changes from the built-in controller to stint and back while Jobs run, by the procedure
//! of docs/kubernetes.md. Nothing is lost and nothing is done again. And if both run at once by mistake,
//! stint says so.

use std::path::Path;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::json;
use stint_kit::job::{counts, end, is_tracked};
use stint_kit::{Driver, Fate, Stage, Who};

use crate::attempt::attempt;
use crate::cluster::{ClusterError, Manager};
use crate::ordeal::Ordeal;
use crate::program::{self, Program, Setup};
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};

const NAME: &str = "moving/in-and-out";
const MISTAKE: &str = "moving/both-by-mistake";

/// The Job that both run by mistake.
const SHARED: &str = "shared";

/// The Jobs that change sides.
const INDEXED: Ordeal = Ordeal { name: "moved-indexed", indexes: 120 };
const COUNTED: &str = "moved-counted";
const POLICY: &str = "moved-policy";
const HELD: &str = "moved-held";

/// What stint says then.
const RUNS_BESIDE: &str = "the built-in Job controller runs beside this one";

/// How many indexes the one has that is suspended at first.
const HELD_INDEXES: usize = 40;

/// How many Pods of the one without indexes succeed. One more fails.
const COMPLETIONS: i32 = 100;

/// The how-many-th of its Pods fails.
const FAILS: usize = 20;

/// How often who runs the Jobs changes.
const MOVES: i32 = 4;

/// How many indexes of [`INDEXED`] succeed from one move to the next.
const BETWEEN: i32 = 16;

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [NAME, MISTAKE].map(str::to_owned).to_vec()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let stint = program::path(&suite.build).await?;
    let driver = Driver::new(fate);
    let mut theatre = Theatre::open(suite.options.clone(), &Player::BuiltIn, driver).await?;
    let before = report.failed();
    if suite.wants(NAME) {
        let (took, result) = attempt(move_in_and_out(&mut theatre, &stint)).await;
        report.tell(NAME, took, result);
    }
    if suite.wants(MISTAKE) {
        if report.failed() > before {
            // Who runs there, nobody knows.
            let driver = Driver::new(fate);
            let fresh = Theatre::open(suite.options.clone(), &Player::BuiltIn, driver).await?;
            suite.close([std::mem::replace(&mut theatre, fresh)], true);
        }
        let (took, result) = attempt(run_both(&theatre, &stint)).await;
        report.tell(MISTAKE, took, result);
    }
    suite.close([theatre], report.failed() > before);
    Ok(())
}

fn fate(who: &Who) -> Fate {
    match &*who.job {
        name if name == INDEXED.name => Ordeal::fate(who),
        COUNTED if who.attempt == FAILS => Fate::fails(1),
        _ => Fate::succeeds().after(1),
    }
}

/// kube-controller-manager was left as it is.
async fn run_both(theatre: &Theatre, stint: &Path) {
    assert_eq!(theatre.cluster.manages(), Some(Manager::WithJobs));
    let stage = &theatre.stage;
    let long = ["--lease-duration=120s", "--renew-deadline=100s"];
    let setup = Setup::new(Mode::Replace, "both-by-mistake").with(&long);
    let mut program = Program::start(&theatre.cluster, stint, &setup).expect("it can be started");
    stage.until("leads", async |_| program.leads().await).await;
    let ready = program.ready().await.unwrap_or_default();
    assert!(!ready.contains(RUNS_BESIDE), "nobody has written yet: {ready}");
    // As long as stint is first, nothing is left to write for the other one.
    program.process.pause();
    stage.create(SHARED, json!({"completions": 20, "parallelism": 2})).await;
    let is_written = |job: &Job| job.status.as_ref().is_some_and(|it| it.start_time.is_some());
    stage.wait(SHARED, "is begun by kube-controller-manager", is_written).await;
    program.process.resume();
    let notices =
        async |_: &Stage| program.ready().await.is_some_and(|it| it.contains(RUNS_BESIDE));
    stage.until("is said to have two controllers", notices).await;
    let metrics = program.ask("/metrics").await.unwrap_or_default();
    let none = "stint_controller_builtin_status_writes_total 0\n";
    assert!(metrics.contains("stint_controller_builtin_status_writes_total "), "{metrics}");
    assert!(!metrics.contains(none), "{metrics}");
    stage.delete(SHARED).await;
    program.process.stop().await;
}

async fn move_in_and_out(theatre: &mut Theatre, stint: &Path) {
    let stage = theatre.stage.clone();
    create_all(&stage).await;
    let mut program: Option<Program> = None;
    for turn in 1..=MOVES {
        let has_got_on = |job: &Job| counts(job).1 >= turn * BETWEEN || end(job).is_some();
        stage.wait(INDEXED.name, "gets on", has_got_on).await;
        for name in [INDEXED.name, COUNTED, POLICY] {
            let job = stage.job(name).await;
            assert_eq!(end(&job), None, "{name} has ended before move {turn}: {:?}", job.status);
        }
        program = match program.take() {
            None => Some(move_in(theatre, stint).await),
            Some(program) => {
                move_out(theatre, program).await;
                None
            }
        };
        if turn == MOVES - 1 {
            stage.patch(HELD, json!({"spec": {"suspend": false}})).await;
        }
    }
    check_all(&stage).await;
    if let Some(program) = program {
        move_out(theatre, program).await;
    }
}

/// In: kube-controller-manager without its job controller, and only then stint.
async fn move_in(theatre: &mut Theatre, stint: &Path) -> Program {
    let without = theatre.cluster.start_manager(Manager::WithoutJobs).await;
    without.expect("kube-controller-manager can be started");
    let setup = Setup::new(Mode::Replace, "moving");
    Program::start(&theatre.cluster, stint, &setup).expect("it can be started")
}

/// Out: stint ends, nobody holds the Lease any more, and only then kube-controller-manager has its
/// job controller again.
async fn move_out(theatre: &mut Theatre, mut program: Program) {
    program.process.stop().await;
    let leases: Api<Lease> = Api::namespaced(theatre.stage.admin.clone(), "stint-system");
    let lease = leases.get("stint-job-controller-builtin").await.expect("the Lease stays");
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    assert_eq!(holder, "", "somebody holds the Lease");
    let with = theatre.cluster.start_manager(Manager::WithJobs).await;
    with.expect("kube-controller-manager can be started");
}

async fn create_all(stage: &Stage) {
    stage.create(INDEXED.name, INDEXED.spec(4)).await;
    stage.create(COUNTED, json!({"completions": COMPLETIONS, "parallelism": 2})).await;
    let policy = json!({
        "completionMode": "Indexed", "completions": 120, "parallelism": 2,
        "successPolicy": {"rules": [{"succeededIndexes": "0-99", "succeededCount": 80}]},
    });
    stage.create(POLICY, policy).await;
    let held = json!({
        "completionMode": "Indexed", "completions": HELD_INDEXES, "parallelism": 3, "suspend": true,
    });
    stage.create(HELD, held).await;
}

async fn check_all(stage: &Stage) {
    // There is nothing more to see in how they go on.
    for name in [COUNTED, POLICY] {
        stage.patch(name, json!({"spec": {"parallelism": 20}})).await;
    }
    INDEXED.check(stage).await;
    let expected = [
        (COUNTED, "Complete CompletionsReached", (COMPLETIONS as usize, 1)),
        (HELD, "Complete CompletionsReached", (HELD_INDEXES, 0)),
    ];
    for (name, how, (succeeded, failed)) in expected {
        let job = stage.finish(name).await;
        let context = || format!("{name}: {:?}", job.status);
        assert_eq!(end(&job).as_deref(), Some(how), "{}", context());
        assert_eq!(counts(&job), (0, succeeded as i32, failed as i32), "{}", context());
        let lives = stage.history.of(name);
        let phase = |phase| lives.iter().filter(|life| life.phase == phase).count();
        let pods = (phase("Succeeded"), phase("Failed"), lives.len());
        assert_eq!(pods, (succeeded, failed, succeeded + failed), "{}", context());
    }
    let job = stage.finish(POLICY).await;
    let context = || format!("{:?}\n{:#?}", job.status, stage.history.of(POLICY));
    assert_eq!(end(&job).as_deref(), Some("Complete SuccessPolicy"), "{}", context());
    let (active, succeeded, failed) = counts(&job);
    assert_eq!((active, failed), (0, 0), "{}", context());
    // Those that succeed while the end of their Job removes them may count or not.
    let lives = stage.history.of(POLICY);
    let sure = lives.iter().filter(|it| it.phase == "Succeeded" && !it.is_deleted).count();
    let seen = stage.history.successes(POLICY);
    let succeeded = succeeded as usize;
    assert!((sure.max(80)..=seen).contains(&succeeded), "{sure} to {seen}: {}", context());
    assert_eq!(stage.history.broken(), [""; 0]);
    for name in [INDEXED.name, COUNTED, POLICY, HELD] {
        let held = stage.pods_of(name).await.into_iter().filter(is_tracked).count();
        assert_eq!(held, 0, "Pods of {name} bear the finalizer");
    }
}
