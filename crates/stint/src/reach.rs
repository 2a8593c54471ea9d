//! The cluster that a command looks at: one that serves its API, found by a kubeconfig or by a
//! data folder, or what is left of one in a data folder that nobody uses.

use std::error::Error;
use std::fs::File;
use std::io;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use stint_local::Archive;
use stint_store::StoreError;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::cluster_args::ClusterArgs;
use crate::kubeconfig::{NamedKubeconfig, WrongKubeconfig};
use crate::place::{Holder, KUBECONFIG, PODS, PlaceError, STORE, default_folder, hold_folder};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::shell_word::quoted;
use crate::token_file::{ClientError, client};

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long to wait for a data folder that is used by somebody who serves no API: another look
/// at it is over soon, or a server is about to begin.
const FOLDER_TIME: Duration = Duration::from_secs(2);

/// How often to look at the folder meanwhile.
const FOLDER_PAUSE: Duration = Duration::from_millis(50);

/// Why there is no cluster to look at.
#[derive(Debug, Error)]
pub(crate) enum ReachError {
    #[error("no cluster at {}; {START}", path.display())]
    NoFolder { path: PathBuf },
    #[error("there is no home folder to find a cluster in; {START}")]
    NoHome,
    #[error("{} is in use by a stint that serves no API, such as stint run (wait for its end), or has its kubeconfig elsewhere (name it with --kubeconfig)", path.display())]
    NoApi { path: PathBuf },
    #[error(transparent)]
    Kubeconfig(#[from] WrongKubeconfig),
    #[error(
        "cannot use what the kubeconfig {name} says of {url}: {}; mend it, or name another with --kubeconfig",
        told(source)
    )]
    Client { url: String, name: String, source: ClientError },
    #[error("no cluster at {url}: {}; {START}", told(source))]
    Refused { url: String, source: kube::Error },
    #[error("cannot talk to the cluster at {url}: {}", told(source))]
    Unreachable { url: String, source: kube::Error },
    #[error(
        "the cluster at {url} does not know who is asking: the kubeconfig {name} may be an old one, or another cluster's; name another with --kubeconfig"
    )]
    Stranger { url: String, name: String },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot open the store in {}: {source}", path.display())]
    Store { path: PathBuf, source: StoreError },
}

const START: &str =
    "start one with `stint serve`, or name the kubeconfig of another with --kubeconfig";

impl ReachError {
    /// Whether the command was wrong, and not the cluster.
    pub(crate) fn is_wrong_usage(&self) -> bool {
        matches!(
            self,
            ReachError::Kubeconfig(_) | ReachError::Client { .. } | ReachError::Stranger { .. }
        )
    }
}

/// A cluster.
pub(crate) struct Reached {
    pub(crate) client: Client,
    /// The namespace that is meant.
    pub(crate) namespace: String,
    /// What is left of it, if nobody runs it.
    kept: Option<Kept>,
}

struct Kept {
    folder: PathBuf,
    archive: Archive,
    _lock: File,
}

impl Reached {
    /// Finds it.
    pub(crate) async fn find(args: &ClusterArgs) -> Result<Self, ReachError> {
        let context = args.context.as_deref();
        let mut reached = match (&args.kubeconfig, &args.data_dir) {
            (Some(file), _) => served(NamedKubeconfig::read(file)?, context).await?,
            (None, Some(folder)) => in_folder(folder, context).await?,
            (None, None) => match NamedKubeconfig::from_environment()? {
                Some(kubeconfig) => served(kubeconfig, context).await?,
                None => {
                    let folder = default_folder().ok_or(ReachError::NoHome)?;
                    in_folder(&folder, context).await?
                }
            },
        };
        if let Some(namespace) = &args.namespace {
            reached.namespace.clone_from(namespace);
        }
        Ok(reached)
    }

    /// Whether anything can change in it.
    pub(crate) fn is_alive(&self) -> bool {
        self.kept.is_none()
    }

    /// What to know of it before anything else.
    pub(crate) fn note(&self) -> Option<String> {
        let Kept { folder, .. } = self.kept.as_ref()?;
        let folder = printable(&folder.display().to_string(), MAX_MESSAGE_CHARS);
        Some(format!("note: nobody runs the cluster in {folder}: this is how it was left\n"))
    }

    /// How to go on with a cluster that nobody runs.
    pub(crate) fn goes_on(&self) -> Option<String> {
        let Kept { folder, .. } = self.kept.as_ref()?;
        Some(format!("stint serve --data-dir {}", quoted(folder)))
    }

    /// Leaves it to others.
    pub(crate) async fn close(self) {
        if let Some(kept) = self.kept {
            // Nothing was written.
            let _ = kept.archive.close().await;
        }
    }
}

/// A cluster that serves its API.
async fn served(kubeconfig: NamedKubeconfig, context: Option<&str>) -> Result<Reached, ReachError> {
    let name = kubeconfig.name.clone();
    let mut config = kubeconfig.configure(context).await?;
    config.connect_timeout = Some(CONNECT_TIME);
    // What is on this machine is not behind a proxy.
    if config.cluster_url.host().is_some_and(is_this_machine) {
        config.proxy_url = None;
    }
    let url = printable(&config.cluster_url.to_string(), MAX_MESSAGE_CHARS);
    let url = url.trim_end_matches('/').to_owned();
    let unreachable = |source: kube::Error| match is_refused(&source) {
        true => ReachError::Refused { url: url.clone(), source },
        false => ReachError::Unreachable { url: url.clone(), source },
    };
    let namespace = config.default_namespace.clone();
    let client = match client(config) {
        Ok(client) => client,
        Err(source) => return Err(ReachError::Client { url, name, source }),
    };
    // Whoever answers is there, whatever the answer.
    match client.apiserver_version().await {
        Err(kube::Error::Api(status)) if status.code == 401 => {
            Err(ReachError::Stranger { url, name })
        }
        Ok(_) | Err(kube::Error::Api(_)) => Ok(Reached { client, namespace, kept: None }),
        Err(source) => Err(unreachable(source)),
    }
}

/// The cluster of a data folder, whether anybody runs it or not.
async fn in_folder(folder: &Path, context: Option<&str>) -> Result<Reached, ReachError> {
    let absent = || ReachError::NoFolder { path: folder.to_owned() };
    let deadline = Instant::now() + FOLDER_TIME;
    loop {
        match hold_folder(folder)? {
            Holder::Absent => return Err(absent()),
            Holder::This(lock) => {
                let store = folder.join(STORE);
                if !store.exists() {
                    return Err(absent());
                }
                return left_in(folder, store, lock).await;
            }
            Holder::Other => {}
        }
        let file = folder.join(KUBECONFIG);
        if file.exists() {
            match served(NamedKubeconfig::read(&file)?, context).await {
                Ok(reached) => return Ok(reached),
                Err(error @ ReachError::Kubeconfig(_)) => return Err(error),
                // It is of a server that is gone, or not there yet.
                Err(_) => {}
            }
        }
        if Instant::now() >= deadline {
            return Err(ReachError::NoApi { path: folder.to_owned() });
        }
        sleep(FOLDER_PAUSE).await;
    }
}

async fn left_in(folder: &Path, store: PathBuf, lock: File) -> Result<Reached, ReachError> {
    let archive = Archive::open(store, &folder.join(PODS)).await;
    let archive =
        archive.map_err(|source| ReachError::Store { path: folder.to_owned(), source })?;
    let client = archive.client();
    let namespace = client.default_namespace().to_owned();
    let kept = Kept { folder: folder.to_owned(), archive, _lock: lock };
    Ok(Reached { client, namespace, kept: Some(kept) })
}

pub(crate) fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback())
}

/// Whether nobody listens there.
fn is_refused(error: &kube::Error) -> bool {
    let causes = successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    let mut io_errors = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    io_errors.any(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// An error with what caused it, which is where the reason is.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    let mut answers = causes.filter_map(|error| error.downcast_ref::<kube::Error>());
    // As it prints itself it shows all that it is made of.
    if let Some(status) = answers.find_map(|error| match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }) {
        return printable(&format!("{} ({})", status.message, status.code), MAX_MESSAGE_CHARS);
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        next = cause.source();
    }
    printable(&text, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn what_a_server_answers_is_told_in_its_words() {
        let status = || Box::new(Status::failure("jobs is forbidden", "Forbidden").with_code(403));
        assert_eq!(told(&kube::Error::Api(status())), "jobs is forbidden (403)");
        let source = ClientError::Kube(kube::Error::Api(status()));
        let wrapped = ReachError::Client { url: String::new(), name: String::new(), source };
        assert_eq!(told(&wrapped), "jobs is forbidden (403)");
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        for host in ["localhost", "127.0.0.1", "127.3.4.5", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["10.0.0.1", "example.com", "[fe80::1]"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
