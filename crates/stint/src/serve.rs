//! `stint serve`: starts the embedded cluster, says where it is, and stops it again. What it
//! consists of is the business of `stint_local`.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use stint_local::{
    AuditFile, AuditFileError, Cluster, Front, FrontError, FrontOptions, Options, StartError,
    Storage, TaskFailure,
};
use stint_node::RuntimeError;
use stint_store::{FileLock, StoreError};
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{LogLevel, ServeArgs};
use crate::ending::Ending;
use crate::place::{
    KUBECONFIG, NODE, PODS, PlaceError, STORE, default_folder, remedy, take_folder, try_room,
};
use crate::shell_word::quoted;
use crate::signals::{EXIT_INTERRUPTED, Signals};
use crate::temporary::Temporary;

/// How long requests that are under way may take when it stops. Watches end at once, and
/// nothing else takes longer than the disk.
const STOP_TIME: Duration = Duration::from_secs(10);

/// Serves until it is stopped.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    start_log(args.log_level);
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Why there is nothing served, or nothing any more.
#[derive(Debug, Error)]
enum ServeError {
    #[error("there is no home folder to keep data in: set --data-dir, or use --in-memory")]
    NoHome,
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot run Pods here: {0}; with --no-node everything else is served")]
    Node(#[from] RuntimeError),
    #[error("there would be no kubeconfig: {0}; choose another file with --kubeconfig")]
    Kubeconfig(#[source] FrontError),
    #[error(transparent)]
    Front(#[from] FrontError),
    #[error("{0}; choose another file with --audit-log")]
    Audit(#[from] AuditFileError),
    #[error("cannot keep anything in {}: {source}{}", folder.display(), remedy(source, *is_temporary))]
    Start { folder: PathBuf, is_temporary: bool, source: StartError },
    #[error("{0}; nothing can be served without it")]
    Failed(TaskFailure),
    #[error("it is not known whether everything was stored: {0}")]
    Close(#[source] StoreError),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}

fn serve(args: &ServeArgs) -> Result<(), ServeError> {
    stint_node::raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let ending = Ending::new(runtime, EXIT_INTERRUPTED);
    ending.block_on(serve_here(args, &ending))
}

async fn serve_here(args: &ServeArgs, ending: &Ending) -> Result<(), ServeError> {
    // Before anything else, so that nothing is stopped half-way.
    let signals = Signals::new().map_err(ServeError::Runtime)?;
    let place = Place::choose(args)?;
    Front::check_kubeconfig(&place.kubeconfig).map_err(ServeError::Kubeconfig)?;
    ending.remove(place.temporary.as_ref().map(|folder| folder.path().to_owned()));
    let options = FrontOptions {
        listen: args.listen,
        allow_remote: args.allow_remote,
        names: args.tls_name.clone(),
        node: NODE.to_owned(),
    };
    let audit = args.audit_log.as_deref().map(AuditFile::open).transpose()?;
    let front = Front::open(place.data.as_deref(), options).await?;
    let node = match args.no_node {
        false => Some(args.pods.start(NODE, &place.pods).await?.0),
        true => None,
    };
    let storage = match &place.data {
        Some(folder) => Storage::Folder(folder.join(STORE)),
        None => Storage::Memory,
    };
    let cluster = Cluster::start(Options {
        storage,
        authenticator: front.authenticator(),
        ca_certificate: front.authority_pem().to_owned(),
        gates: args.feature_gates.unwrap_or_default(),
        audit: audit.clone(),
        jobs: Some(args.jobs.config()),
        node,
        ..Options::default()
    })
    .await
    .map_err(|source| {
        let (folder, is_temporary) = (place.folder().to_owned(), place.temporary.is_some());
        ServeError::Start { folder, is_temporary, source }
    })?;
    if let Err(error) = front.write_kubeconfig(&place.kubeconfig) {
        let _ = cluster.shutdown().await;
        return Err(ServeError::Kubeconfig(error));
    }
    greet(front.address(), &place, args.no_node);
    let mut failure = None;
    let ended = async {
        tokio::select! {
            () = stopped(signals, ending) => {}
            failed = cluster.failed() => failure = Some(failed),
        }
    };
    let served = front.serve(cluster.server(), ended, STOP_TIME).await;
    if served.cut > 0 {
        tracing::warn!(connections = served.cut, "cut off what did not finish in time");
    }
    let closed = cluster.shutdown().await.map_err(ServeError::Close);
    if let Some(log) = audit {
        log.flush().await;
    }
    if let Some(folder) = place.temporary {
        folder.remove();
    }
    closed?;
    failure.map_or(Ok(()), |failure| Err(ServeError::Failed(failure)))
}

/// Where everything is kept.
struct Place {
    data: Option<PathBuf>,
    kubeconfig: PathBuf,
    /// Where Pods have their volumes and logs.
    pods: PathBuf,
    /// Nobody else uses the data folder as long as this is held.
    _lock: Option<FileLock>,
    /// Gone at the end, with the kubeconfig in it.
    temporary: Option<Temporary>,
}

impl Place {
    fn choose(args: &ServeArgs) -> Result<Self, ServeError> {
        if args.in_memory {
            check_kubeconfig(args, None)?;
            let folder = Temporary::new()?;
            try_room(folder.path(), "TMPDIR")?;
            let beside = || folder.path().join(KUBECONFIG);
            let kubeconfig = args.kubeconfig.clone().unwrap_or_else(beside);
            let pods = folder.path().join(PODS);
            let temporary = Some(folder);
            return Ok(Place { data: None, kubeconfig, pods, _lock: None, temporary });
        }
        let data = match &args.data_dir {
            Some(folder) => folder.clone(),
            None => default_folder().ok_or(ServeError::NoHome)?,
        };
        // Clients are told of the kubeconfig from wherever they are.
        let data = std::path::absolute(&data).unwrap_or(data);
        check_kubeconfig(args, Some(&data))?;
        let lock = take_folder(&data)?;
        try_room(&data, "--data-dir")?;
        let kubeconfig = args.kubeconfig.clone().unwrap_or_else(|| data.join(KUBECONFIG));
        let pods = data.join(PODS);
        Ok(Place { data: Some(data), kubeconfig, pods, _lock: Some(lock), temporary: None })
    }

    /// Where everything is but what is in memory.
    fn folder(&self) -> &Path {
        self.pods.parent().expect("it is a folder within another")
    }
}

/// Finds out whether the kubeconfig can be written before anything is made, unless it goes into
/// the data folder, which need not be there yet.
fn check_kubeconfig(args: &ServeArgs, data: Option<&Path>) -> Result<(), ServeError> {
    let Some(path) = &args.kubeconfig else { return Ok(()) };
    let absolute = std::path::absolute(path).unwrap_or(path.clone());
    if data.is_some_and(|data| absolute.starts_with(data)) {
        return Ok(());
    }
    Front::check_kubeconfig(path).map_err(ServeError::Kubeconfig)
}

/// Says in one screen what there is.
fn greet(address: SocketAddr, place: &Place, has_no_node: bool) {
    // It is to be found from another folder, too.
    let kubeconfig = std::path::absolute(&place.kubeconfig).unwrap_or(place.kubeconfig.clone());
    let (export, kubeconfig) = (quoted(&kubeconfig), kubeconfig.display());
    let data =
        place.data.as_ref().map_or("in memory only".to_owned(), |data| data.display().to_string());
    let note = if has_no_node { "Nothing runs Pods: --no-node. " } else { "" };
    let text = format!(
        "\
stint serves a cluster for Jobs

  address     https://{address}
  kubeconfig  {kubeconfig}
  data        {data}

Use it from another terminal:

  export KUBECONFIG={export}
  kubectl create -f examples/indexed.yaml
  kubectl get jobs --watch
  stint status
  stint logs JOB -f

{note}Ctrl-C stops it.
"
    );
    let mut out = io::stdout().lock();
    // Nobody may be listening; that is no reason to stop.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Resolves at Ctrl-C, SIGTERM or SIGHUP. A second one ends the process at once.
async fn stopped(mut signals: Signals, ending: &Ending) {
    signals.next().await;
    tracing::info!(
        "stopping: Pods are being ended with their grace; Ctrl-C again ends them at once"
    );
    ending.at_next(signals);
}

pub(crate) fn start_log(level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let is_terminal = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(is_terminal)
        .with_writer(io::stderr)
        .with_target(false);
    // Of what we use, only what is odd: every frame of every connection is nobody's wish.
    let wanted =
        Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("stint", level);
    tracing_subscriber::registry().with(lines.with_filter(wanted)).init();
}
