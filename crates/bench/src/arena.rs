//! A real cluster on which controllers are measured one after the other: etcd, kube-apiserver, and
//! Pods that end at once. Each controller is a fresh process for each measurement.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use stint_local::Identity;
use stint_peers::authority::User;
use stint_peers::cluster::{Cluster, Manager, Options};
use stint_peers::program::{Mode, Program, Setup};
use stint_peers::programs;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::error::BenchError;
use crate::kubelet;
use crate::load::{Load, create};
use crate::local;
use crate::observer::Observer;
use crate::report::{Report, Subject};
use crate::spawned::folder;

/// Who runs the Jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// `stint controller --replace-builtin`.
    Stint,
    /// kube-controller-manager with its limits lifted.
    Lifted,
    /// kube-controller-manager as it comes.
    Default,
    /// A loop that only creates Pods and removes their finalizers.
    Floor,
    /// The embedded cluster, in this process.
    Embedded,
}

impl Runner {
    /// All of them.
    pub const ALL: [Runner; 5] =
        [Runner::Stint, Runner::Lifted, Runner::Default, Runner::Floor, Runner::Embedded];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Runner::Stint => "stint",
            Runner::Lifted => "lifted",
            Runner::Default => "default",
            Runner::Floor => "floor",
            Runner::Embedded => "embedded",
        }
    }

    /// Its name in a report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Runner::Stint => "stint",
            Runner::Lifted => "built-in, limits lifted",
            Runner::Default => "built-in, defaults",
            Runner::Floor => "floor",
            Runner::Embedded => "stint, embedded",
        }
    }
}

/// What the built-in controller is told so that nothing but itself holds it up.
const LIFTED: [&str; 3] =
    ["--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=50"];

/// Its own defaults, which the clusters of tests lift.
const DEFAULT: [&str; 2] = ["--kube-api-qps=20", "--kube-api-burst=30"];

/// How long a failed Pod keeps its index waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As controllers have it: ten seconds and more.
    Usual,
    /// A tenth of a second, a second at most, so that it is not the wait that is measured. The
    /// built-in controller has no flag for it, and is built so.
    Quick,
}

/// What stint is told for it.
const QUICK: [&str; 2] = ["--pod-failure-backoff-base=100ms", "--pod-failure-backoff-max=1s"];

/// How soon it is asked again whether a controller leads.
const AGAIN: Duration = Duration::from_millis(20);

/// How many calls clean up at once, and how many Pods are listed at a time.
const CLEANERS: usize = 32;
const PAGE: usize = 500;

/// Where Jobs are run while somebody measures.
pub(crate) struct Ring<'a> {
    pub(crate) client: &'a Client,
    pub(crate) observer: &'a Observer,
    /// The processes whose use is measured: the controller, and the API server.
    pub(crate) controller: Option<u32>,
    pub(crate) server: Option<u32>,
}

/// A real cluster.
pub(crate) struct Arena<'a> {
    subject: &'a Subject,
    cluster: Cluster,
    client: Client,
    observer: Observer,
    _kubelet: JoinSet<()>,
    starts: u32,
    // The last, as all of the above live on it.
    runtime: Runtime,
}

impl<'a> Arena<'a> {
    /// Starts it, and tells a report of which version it is.
    pub(crate) fn start(subject: &'a Subject, report: &mut Report) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(BenchError::Runtime)?;
        // Nobody reads what it would write down of each call.
        let quiet = ["--audit-policy-file=", "--audit-log-path="].map(str::to_owned).to_vec();
        let options = Options { apiserver_flags: quiet, ..Options::default() };
        let (cluster, client) = runtime.block_on(async {
            let cluster = Cluster::start(options).await?;
            let client = cluster.client(&User::admin()).await?;
            Ok::<_, BenchError>((cluster, client))
        })?;
        report.add_version("kube-apiserver", cluster.version().to_string());
        let (observer, kubelet) = runtime.block_on(async {
            let observer = Observer::start(&client);
            let mut kubelet = JoinSet::new();
            kubelet.spawn(kubelet::run(client.clone(), observer.coming()));
            (observer, kubelet)
        });
        Ok(Arena { subject, cluster, client, observer, _kubelet: kubelet, starts: 0, runtime })
    }

    /// Has a controller run while something is measured; then it is stopped, and everything is
    /// removed. Names that begin with what is given to `measure` are used by nobody else.
    pub(crate) fn run<T>(
        &mut self,
        runner: Runner,
        pace: Pace,
        measure: impl AsyncFnOnce(Ring<'_>, &str) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.starts += 1;
        let name = format!("bench-{}", self.starts);
        let Arena { subject, cluster, client, observer, runtime, .. } = self;
        runtime.block_on(async {
            if runner == Runner::Embedded {
                return embedded(measure, &name).await;
            }
            let mut stint = begin(runner, pace, subject, cluster).await?;
            let process = stint.as_ref().map(|it| &it.process).or(cluster.manager.as_ref());
            let controller = process.and_then(|process| process.id());
            let server = cluster.apiserver.id();
            let ring = Ring { client, observer, controller, server };
            if controller.is_some() {
                prove(&ring, &format!("{name}-proof")).await?;
            }
            let measured = measure(ring, &name).await;
            if let Some(stint) = &mut stint {
                stint.process.stop().await;
            }
            cluster.stop_manager().await;
            clean(client).await?;
            measured
        })
    }
}

/// Starts a controller and waits until it serves.
async fn begin(
    runner: Runner,
    pace: Pace,
    subject: &Subject,
    cluster: &mut Cluster,
) -> Result<Option<Program>, BenchError> {
    let flags: &[&str] = match runner {
        Runner::Stint => {
            let setup = Setup::new(Mode::Replace, "stint");
            let setup = match pace {
                Pace::Usual => setup,
                Pace::Quick => setup.with(&QUICK),
            };
            let stint = Program::start(cluster, &subject.program, &setup)?;
            while !stint.leads().await {
                tokio::time::sleep(AGAIN).await;
            }
            return Ok(Some(stint));
        }
        Runner::Lifted => &LIFTED,
        Runner::Default => &DEFAULT,
        Runner::Floor | Runner::Embedded => return Ok(None),
    };
    let program = match pace {
        Pace::Usual => cluster.programs().manager.clone(),
        Pace::Quick => programs::get("kube-controller-manager-quick", None)
            .map_err(stint_peers::cluster::ClusterError::from)?,
    };
    cluster.start_manager_by(&program, Manager::OnlyJobs, flags).await?;
    Ok(None)
}

/// Has a Job of one Pod run: whoever completes it has begun to work.
async fn prove(ring: &Ring<'_>, name: &str) -> Result<(), BenchError> {
    create(ring.client, &Load::one(1, 1).job(name)).await?;
    ring.observer.complete(name).await.map(drop)
}

/// Measures on an embedded cluster of its own.
async fn embedded<T>(
    measure: impl AsyncFnOnce(Ring<'_>, &str) -> Result<T, BenchError>,
    name: &str,
) -> Result<T, BenchError> {
    let folder = folder()?;
    let cluster = local::start(folder.path(), None).await?;
    let client = cluster.client(Identity::admin());
    let observer = Observer::start(&client);
    let ring = Ring { client: &client, observer: &observer, controller: None, server: None };
    prove(&ring, &format!("{name}-proof")).await?;
    let measured = measure(ring, name).await;
    cluster.shutdown().await.map_err(stint_local::StartError::from)?;
    measured
}

/// Removes all Jobs and Pods, also those that a finalizer holds. Nobody else works then.
async fn clean(client: &Client) -> Result<(), BenchError> {
    for path in [JOBS, PODS] {
        let options = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        let request = Request::delete(path).header(CONTENT_TYPE, "application/json");
        let request = request.body(options.to_string().into_bytes()).expect("a request");
        ask(client, request).await?;
    }
    for path in [JOBS, PODS] {
        loop {
            let request = Request::get(format!("{path}?limit={PAGE}")).body(Vec::new());
            let text = ask(client, request.expect("a request")).await?;
            let list: List = serde_json::from_str(&text).unwrap_or_default();
            if list.items.is_empty() {
                break;
            }
            let free = list.items.iter().map(|item| async move {
                let path = format!("{path}/{}", item.metadata.name);
                let body = json!({"metadata": {"finalizers": null}}).to_string();
                kubelet::patch(client, &path, "application/merge-patch+json", body).await;
            });
            stream::iter(free).buffer_unordered(CLEANERS).collect::<()>().await;
        }
    }
    Ok(())
}

async fn ask(client: &Client, request: Request<Vec<u8>>) -> Result<String, BenchError> {
    let answer = client.request_text(request).await;
    answer.map_err(|source| BenchError::Api { what: "clearing up", source })
}

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[derive(Default, Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}
