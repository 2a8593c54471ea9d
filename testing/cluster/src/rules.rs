//! The rows of rules (`testing/rules`) on a real kube-apiserver: it must accept and refuse what they
//! say, with the same causes, and store what they say. Where a row says that it differs, it must
//! differ, so that a difference that is not there any more is taken from the row.

mod replay;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::{StreamExt as _, stream};
use replay::Replay;
use serde_json::json;
use stint_rules::case::Case;
use stint_rules::rows;

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError};
use crate::report::Report;
use crate::suite::Suite;

/// What is replayed beside each other: no two of these have objects of one kind.
const LANES: [&[&str]; 3] = [&["job", "pod"], &["core_pod"], &["kinds"]];

/// The file of rows with feature gates.
const GATES: &str = "job/gates.yaml";

/// The gates that kube-apiserver 1.36 does not let be turned off, even as the oldest version that it
/// can be told to be: they are locked on since 1.33.
const LOCKED: [&str; 2] = ["JobBackoffLimitPerIndex", "JobSuccessPolicy"];

/// The oldest version that kube-apiserver 1.36 can be told to be, which still has the other gates.
const OLDEST: &str = "--emulated-version=1.33";

/// The rows have Pods that may do everything.
const PRIVILEGED: &str = "--allow-privileged=true";

/// How many rows of a file are replayed at once that leave nothing behind.
const AT_ONCE: usize = 8;

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    files(&LANES.concat()).map(|file| name(&file)).collect()
}

fn files(folders: &[&str]) -> impl Iterator<Item = String> {
    folders.iter().flat_map(|folder| rows::files(folder))
}

fn name(file: &str) -> String {
    format!("rules/{}", file.trim_end_matches(".yaml"))
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let mut options = suite.options.clone();
    options.apiserver_flags.push(PRIVILEGED.to_owned());
    let cluster = Cluster::start(options).await?;
    if !cluster.version().is_that_of_rows() {
        println!("        rules: those of another version are not known");
        return Ok(());
    }
    let replay = prepare(&cluster).await?;
    let (lanes, gates) = join(
        join_all(LANES.iter().map(|folders| run_lane(suite, &replay, folders))),
        run_gates(suite),
    )
    .await;
    let before = report.failed();
    for told in lanes.into_iter().flatten() {
        report.tell(&told.name, told.took, told.result);
    }
    suite.close_cluster(cluster, report.failed() > before);
    if let Some(told) = gates? {
        report.tell(&told.name, told.took, told.result);
    }
    Ok(())
}

/// What came of a file.
struct Told {
    name: String,
    took: Duration,
    result: Result<(), String>,
}

/// Replays the files of some folders, one after the other.
async fn run_lane(suite: &Suite, replay: &Replay<'_>, folders: &[&str]) -> Vec<Told> {
    let mut told = Vec::new();
    for file in files(folders) {
        if file == GATES || !suite.wants(&name(&file)) {
            continue;
        }
        let cases = Case::read_all(&file);
        let has_gates = cases.iter().any(|case| !gates(case).is_empty());
        assert!(!has_gates, "{file}: rows with gates belong to {GATES}");
        let name = format!("{}, {} rows", name(&file), cases.len());
        let (took, result) = attempt(compare(replay, &cases)).await;
        told.push(Told { name, took, result });
    }
    told
}

/// Replays the rows with feature gates, on a server for each choice of gates.
async fn run_gates(suite: &Suite) -> Result<Option<Told>, ClusterError> {
    let name = name(GATES);
    if !suite.wants(&name) {
        return Ok(None);
    }
    let is_locked = |case: &Case| LOCKED.iter().any(|gate| gates(case).contains(gate));
    let (locked, cases): (Vec<Case>, Vec<Case>) =
        Case::read_all(GATES).into_iter().partition(is_locked);
    let count = cases.len();
    let mut by_gates: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases {
        by_gates.entry(gates(&case).to_owned()).or_default().push(case);
    }
    let (took, result) = attempt(async {
        let servers = by_gates.iter().map(|(gates, cases)| run_with(suite, gates, cases));
        let (servers, ()) = join(join_all(servers), check_locked(suite)).await;
        servers.into_iter().collect::<Result<Vec<()>, ClusterError>>()
    })
    .await;
    let names: Vec<&str> = locked.iter().map(Case::name).collect();
    println!("        {name}: {} rows need a gate that is locked on:", names.len());
    names.iter().for_each(|name| println!("          {name}"));
    let name = format!("{name}, {count} rows");
    match result {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) => Ok(Some(Told { name, took, result: Ok(()) })),
        Err(why) => Ok(Some(Told { name, took, result: Err(why) })),
    }
}

/// No server starts without the gates that are locked on.
async fn check_locked(suite: &Suite) {
    for gate in LOCKED {
        let mut options = suite.options.clone();
        let flags = [OLDEST.to_owned(), format!("--feature-gates={gate}=false")];
        options.apiserver_flags.extend(flags);
        match Cluster::start(options).await {
            Ok(_) => panic!("{gate} can be turned off: it is not locked any more"),
            Err(error) => assert!(error.to_string().contains("locked to true"), "{gate}: {error}"),
        }
    }
}

async fn run_with(suite: &Suite, gates: &str, cases: &[Case]) -> Result<(), ClusterError> {
    let mut options = suite.options.clone();
    if !gates.is_empty() {
        let flags = [OLDEST.to_owned(), format!("--feature-gates={gates}")];
        options.apiserver_flags.extend(flags);
    }
    let cluster = Cluster::start(options).await?;
    compare(&prepare(&cluster).await?, cases).await;
    Ok(())
}

/// What the server must be told for a row.
fn gates(case: &Case) -> &str {
    case.text("gates").unwrap_or_default()
}

/// Makes a server ready: the service account that Pods have gives them no token here, as the rows
/// do not show the volume.
async fn prepare(cluster: &Cluster) -> Result<Replay<'_>, ClusterError> {
    let replay = Replay { client: cluster.admin().await?, cluster };
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    let answer = replay.patch(account, &json!({"automountServiceAccountToken": false})).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    Ok(replay)
}

/// Replays rows; all must hold.
async fn compare(replay: &Replay<'_>, cases: &[Case]) {
    let (lasting, passing): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| replay::leaves_something(case));
    let judge = async |case: &Case| -> Option<String> {
        let found = replay.judge(case).await;
        (!found.is_empty()).then(|| format!("{}\n{}", case.name(), found.join("\n")))
    };
    let mut wrong: Vec<Option<String>> =
        stream::iter(passing).map(judge).buffered(AT_ONCE).collect().await;
    for case in lasting {
        wrong.push(judge(case).await);
    }
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} rows do not hold:\n{}", wrong.len(), wrong.join("\n"));
}
