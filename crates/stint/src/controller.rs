//! `stint controller`: the Job controller for a Kubernetes cluster. What it does there is the
//! business of `stint_controller`.
//!
//! ```text
//!   settings ─▶ cluster ─▶ Controller, by an election or alone
//!                 │             │
//!                 └─ access     └─ probes: /healthz, /readyz, /metrics
//! ```

mod cluster;
mod config_file;
mod probes;
mod settings;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::panic::resume_unwind;
use std::process::ExitCode;

use stint_api::view::ManagedBy;
use stint_controller::{Build, Clock, Controller, ElectionConfig, Ticks};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use self::cluster::ClusterError;
use self::settings::{LeaseSettings, Settings, Surroundings};
use crate::build::BUILD;
use crate::cli::LogLevel;
use crate::controller_args::{ControllerArgs, Listen, LogFormat};
use crate::ending::Ending;
use crate::signals::{EXIT_INTERRUPTED, Signals};

const EXIT_USAGE: u8 = 2;
const EXIT_INTERNAL: u8 = 3;

/// Runs Jobs until it is stopped.
pub(crate) fn run(args: ControllerArgs) -> ExitCode {
    let is_printing = args.print_config;
    let variable = |name: &str| env::var(name).ok();
    let around = Surroundings { variable: &variable, own_namespace: cluster::own_namespace() };
    let settings = match settings::gather(args, &around) {
        Ok(settings) => settings,
        Err(wrong) => {
            eprintln!("error: {wrong}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    if is_printing {
        let mut out = io::stdout().lock();
        // Nobody may be reading.
        let _ = out.write_all(settings.printed.as_bytes()).and_then(|()| out.flush());
        return ExitCode::SUCCESS;
    }
    start_log(settings.log_level, settings.log_format);
    match work(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Why nothing is run.
#[derive(Debug, Error)]
enum ControllerError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("cannot listen on {place}: {source}; choose another address with --listen, or off")]
    Listen { place: Listen, source: io::Error },
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}

impl ControllerError {
    fn exit_code(&self) -> u8 {
        match self {
            ControllerError::Cluster(_) => EXIT_USAGE,
            ControllerError::Listen { .. } | ControllerError::Runtime(_) => EXIT_INTERNAL,
        }
    }
}

/// On how many threads it works. An answer costs some 0.1 ms, so that one takes thousands in a second,
/// more than an API server gives; and between several an eighth of the time goes into waking each other.
const THREADS: usize = 1;

fn work(settings: Settings) -> Result<(), ControllerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(ControllerError::Runtime)?;
    let ending = Ending::new(runtime, EXIT_INTERRUPTED);
    ending.block_on(async {
        // On that thread, too, and not on this one.
        let mut work = JoinSet::new();
        work.spawn(work_here(settings, ending.clone()));
        let done = work.join_next().await.expect("it was just put there");
        done.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    })
}

async fn work_here(settings: Settings, ending: Ending) -> Result<(), ControllerError> {
    // Before anything else, so that nothing is stopped half-way.
    let signals = Signals::new().map_err(ControllerError::Runtime)?;
    let cluster = cluster::find(&settings).await?;
    let place = settings.listen;
    let listener = probes::listen(place).await;
    let listener = listener.map_err(|source| ControllerError::Listen { place, source })?;
    greet(&settings, &cluster.url, listener.as_ref());
    let controller = Controller::new(cluster.client.clone(), settings.controller.clone());
    let (health, metrics) = (controller.health(), controller.metrics());
    metrics.set_build(&BUILD);
    let election = settings.lease.map(election);
    let mut beside = JoinSet::new();
    if let Some(listener) = listener {
        beside.spawn(probes::serve(listener, health.clone(), metrics));
    }
    let (config, elected) = (settings.controller, election.clone());
    beside.spawn(cluster::look_at_access(cluster, config, elected, health));
    let shutdown = stopped(signals, &ending);
    match election {
        Some(election) => controller.run_elected(election, shutdown).await,
        None => controller.run(shutdown).await,
    }
    tracing::info!("stopped");
    Ok(())
}

fn election(lease: LeaseSettings) -> ElectionConfig {
    let LeaseSettings { name, namespace, timing } = lease;
    let clock = Clock::system();
    // The same machine may have another, and this one may be a restart of another.
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = if host.is_empty() { "stint".to_owned() } else { host };
    let began = clock.now().as_nanosecond();
    let identity = format!("{host}_{began:x}_{}", std::process::id());
    ElectionConfig { namespace, name, identity, timing, clock, ticks: Ticks::system() }
}

/// Says in a few lines what it is and what it is about to do.
fn greet(settings: &Settings, url: &str, listener: Option<&TcpListener>) {
    let Build { version, commit, build_date } = BUILD;
    let jobs = match &settings.controller.manages {
        ManagedBy::BuiltIn => "all that name no other controller".to_owned(),
        ManagedBy::External(name) => format!("managedBy {name}"),
    };
    let namespaces = &settings.controller.namespaces;
    let namespaces = match namespaces.is_empty() {
        true => "all".to_owned(),
        false => namespaces.iter().cloned().collect::<Vec<_>>().join(","),
    };
    let finalizer = &*settings.controller.finalizer;
    tracing::info!(
        version,
        commit,
        build_date,
        url,
        jobs,
        namespaces,
        finalizer,
        "stint controller starts"
    );
    if settings.controller.manages == ManagedBy::BuiltIn
        && !settings.controller.namespaces.is_empty()
    {
        tracing::warn!(
            "with its job controller turned off, kube-controller-manager runs no Jobs in other namespaces \
             either: nobody runs those, unless another stint does"
        );
    }
    if let Some(address) = listener.and_then(|listener| listener.local_addr().ok()) {
        tracing::info!(%address, "serving /healthz, /readyz and /metrics");
    }
}

/// Resolves at Ctrl-C, SIGTERM or SIGHUP. A second one ends the process at once.
async fn stopped(mut signals: Signals, ending: &Ending) {
    signals.next().await;
    tracing::info!("stopping: calls under way are finished, and the lease is given back");
    ending.at_next(signals);
}

fn start_log(level: LogLevel, format: LogFormat) {
    let is_debug = level == LogLevel::Debug;
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // Of what we use, only what is odd. The client says of each failed call that it failed, which
    // whoever made it says better.
    let client = if is_debug { LevelFilter::WARN } else { LevelFilter::OFF };
    let wanted = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("kube_client", client)
        .with_target("stint", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_target(false);
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => {
            let lines = lines.with_ansi(io::stderr().is_terminal());
            registry.with(lines.with_filter(wanted)).init();
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false);
            registry.with(lines.with_filter(wanted)).init();
        }
    }
}
