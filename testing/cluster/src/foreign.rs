//! What Pods cost stint that are none of its business: its memory, its processor time and what it
//! reads from the API, before there are any, after they have come one by one, and after a start with
//! all of them there.
//!
//! Every Pod comes by its watch, because no selector finds the Pods that a Job controls and does not
//! select, or may adopt. Of those that another controls nothing may stay.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use stint_api::names::managed_by;
use stint_kit::NAMESPACE;
use stint_kit::job::manifest;
use tokio::time::{sleep, timeout};

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError, Options};
use crate::program::{self, Program, Setup};
use crate::relay::Relay;
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::usage::Usage;

const BESIDE: &str = "foreign/beside";
const REPLACING: &str = "foreign/replacing";

/// How many Pods are created at once.
const AT_ONCE: usize = 64;

/// How many labels a Pod has beside those that everybody has: so many that to keep them shows.
const LABELS: usize = 32;

/// What a Pod that has come by the watch may add to the memory: a tenth of what its labels take.
const BYTES_EACH: u64 = 256;

/// What the memory of a process may grow by meanwhile that has nothing to do with their number:
/// buffers are made when something comes for the first time.
const SLACK: u64 = 4 << 20;

/// What the Pods of a list may take that were read and not looked at yet: 64 messages of 128 Pods,
/// each with its labels (3 KB) and what else is known of it (1 KB), and as much again for what
/// becomes of memory that is used in pieces.
const CEILING: u64 = 64 << 20;

/// What is kept of a Pod at least by whoever keeps it: its labels.
const LABELS_BYTES: u64 = 3 << 10;

/// How long a controller may take to begin with a Job, with all Pods to be read first.
const PATIENCE: Duration = Duration::from_secs(180);

/// How soon it is looked at again.
const AGAIN: Duration = Duration::from_millis(100);

/// How long nothing comes to a controller that has read everything.
const QUIET: Duration = Duration::from_secs(1);

/// How many Pods there are.
#[derive(Args, Clone, Debug)]
pub struct Crowd {
    /// How many Pods of other owners there are in foreign
    #[arg(long, value_name = "COUNT", default_value_t = 3000)]
    pub foreign_pods: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd { foreign_pods: 3000 }
    }
}

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [BESIDE, REPLACING].map(str::to_owned).to_vec()
}

/// Runs what was asked for, at once.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    let modes = [(BESIDE, Mode::Beside), (REPLACING, Mode::Replace)];
    let modes: Vec<_> = modes.into_iter().filter(|(name, _)| suite.wants(name)).collect();
    if modes.is_empty() {
        return Ok(());
    }
    let path = program::path(&suite.build).await?;
    // Nobody collects garbage here: most owners do not exist. What is created is not written down.
    let options = Options {
        apiserver_flags: ["--audit-policy-file=", "--audit-log-path="].map(str::to_owned).to_vec(),
        ..suite.options.clone()
    };
    let mut cluster = Cluster::start(options).await?;
    let (before, count) = (report.failed(), suite.crowd.foreign_pods);
    let (took, result) = attempt(measure(&cluster, &path, &modes, count)).await;
    let costs = result.map_err(|why| report.tell("foreign: what is measured", took, Err(why)));
    for ((name, _), costs) in modes.iter().zip(costs.unwrap_or_default()) {
        println!("{name}: {count} Pods of others\n{costs}");
        let (_, result) = attempt(async { costs.judge(count) }).await;
        report.tell(name, took, result);
    }
    if report.failed() > before || suite.keeps_logs {
        cluster.keep_folder();
        println!("logs: {}", cluster.folder().display());
    }
    Ok(())
}

/// What a controller has used.
#[derive(Debug)]
struct Costs {
    /// Before there were other Pods.
    empty: Usage,
    /// When they had come.
    watched: Usage,
    /// Another one that began when they were there.
    listed: Usage,
}

impl Costs {
    /// Refuses that they cost memory.
    fn judge(&self, count: u64) {
        let kept = self.watched.resident.saturating_sub(self.empty.resident);
        assert!(kept <= SLACK + count * BYTES_EACH, "Pods of others are kept: {kept} bytes");
        let kept = self.listed.resident.saturating_sub(self.empty.resident);
        let most = CEILING + count * BYTES_EACH;
        // Of fewer all fit into what may be on its way: whether they are kept does not show.
        if count * LABELS_BYTES > 2 * CEILING {
            assert!(kept <= most, "Pods of a list are kept: {kept} bytes");
        } else {
            println!(
                "  (what a start keeps is judged with more than {} Pods)",
                2 * CEILING / LABELS_BYTES
            );
        }
    }
}

impl std::fmt::Display for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "  before they were there   {}", self.empty)?;
        writeln!(f, "  when they had come       {}", self.watched)?;
        write!(f, "  started with all there   {}", self.listed)
    }
}

async fn measure(cluster: &Cluster, path: &Path, modes: &[(&str, Mode)], count: u64) -> Vec<Costs> {
    let started = async |&(_, mode): &(&str, Mode)| Subject::start(cluster, path, mode).await;
    let subjects = join_all(modes.iter().map(started)).await;
    let empty = join_all(subjects.iter().map(|it| it.begin(cluster, "empty"))).await;
    fill(cluster, count).await;
    let watched = join_all(subjects.iter().map(|it| it.begin(cluster, "watched"))).await;
    for mut subject in subjects {
        subject.stint.process.stop().await;
    }
    let mut costs = Vec::new();
    for ((mode, empty), watched) in modes.iter().zip(empty).zip(watched) {
        let mut subject = started(mode).await;
        let listed = subject.begin(cluster, "listed").await;
        subject.stint.process.stop().await;
        costs.push(Costs { empty, watched, listed });
    }
    costs
}

/// A controller whose costs are measured.
struct Subject {
    mode: Mode,
    relay: Relay,
    stint: Program,
}

impl Subject {
    async fn start(cluster: &Cluster, path: &Path, mode: Mode) -> Self {
        let relay = Relay::start(cluster.url()).await.expect("a port");
        let mut setup = Setup::new(mode, mode.word());
        setup.url = Some(relay.url());
        let stint = Program::start(cluster, path, &setup).expect("it starts");
        Subject { mode, relay, stint }
    }

    /// What it has used when it has begun with a Job and read everything.
    async fn begin(&self, cluster: &Cluster, when: &str) -> Usage {
        let admin = cluster.admin().await.expect("a client");
        let name = format!("{when}-{}", self.mode.word());
        let spec = match self.mode {
            Mode::Beside => json!({"managedBy": managed_by::STINT}),
            Mode::Replace => json!({}),
        };
        let jobs: Api<Job> = Api::namespaced(admin.clone(), NAMESPACE);
        let job = jobs.create(&PostParams::default(), &manifest(&name, spec)).await;
        job.expect("the Job is valid");
        let begun = async {
            has_begun(&admin, &name).await;
            self.is_quiet().await;
        };
        let words = || self.stint.process.last_words();
        assert!(timeout(PATIENCE, begun).await.is_ok(), "{name} has no Pod: {}", words());
        let id = self.stint.process.id().expect("it runs");
        Usage { read: self.relay.sent(), ..Usage::of(id).expect("it runs") }
    }

    async fn is_quiet(&self) {
        let mut before = None;
        while before != Some(self.relay.sent()) {
            before = Some(self.relay.sent());
            sleep(QUIET).await;
        }
    }
}

async fn has_begun(admin: &Client, job: &str) {
    let pods: Api<Pod> = Api::namespaced(admin.clone(), NAMESPACE);
    let params = ListParams::default().labels(&format!("job-name={job}"));
    while pods.list(&params).await.expect("Pods can be listed").items.is_empty() {
        sleep(AGAIN).await;
    }
}

/// Makes Pods of others: of a ReplicaSet, and of a Job that neither of us runs.
async fn fill(cluster: &Cluster, count: u64) {
    let admin = cluster.admin().await.expect("a client");
    let jobs: Api<Job> = Api::namespaced(admin.clone(), NAMESPACE);
    let spec = json!({"managedBy": "example.com/other", "parallelism": 0});
    let job = jobs.create(&PostParams::default(), &manifest("other", spec)).await;
    let uid = job.expect("the Job is valid").metadata.uid.expect("a uid");
    let owners = [
        json!({"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": uid, "controller": true}),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
            "uid": "5a2f2a6e-0000-4000-8000-000000000000", "controller": true,
        }),
    ];
    let pods: Api<Pod> = Api::namespaced(admin, NAMESPACE);
    let make = async |number: u64| {
        let pod = serde_json::from_value(pod(number, &owners[(number % 2) as usize]));
        pods.create(&PostParams::default(), &pod.expect("a Pod")).await.map(drop)
    };
    let made: Result<Vec<()>, _> =
        stream::iter(0..count).map(make).buffer_unordered(AT_ONCE).try_collect().await;
    made.expect("Pods can be made");
}

fn pod(number: u64, owner: &Value) -> Value {
    let mut labels = json!({"app": "web", "pod-template-hash": "6799fc88d8"});
    for label in 0..LABELS {
        let key = format!("labels.example.com/number-{label:02}");
        labels[key] = format!("{:a<50}-{number}", "value").into();
    }
    json!({
        "metadata": {
            "name": format!("web-{number}"), "labels": labels, "ownerReferences": [owner],
            "annotations": {"example.com/checksum": "0123456789abcdef".repeat(4)},
        },
        "spec": {"containers": [{
            "name": "web", "image": "registry.example.com/web:1.27",
            "ports": [{"containerPort": 8080, "name": "http"}],
            "env": [{"name": "MODE", "value": "production"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        }]},
    })
}
