//! The cluster that a controller works for, and what it may do there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use stint_controller::{Access, ElectionConfig, Health};
use thiserror::Error;

use crate::build::user_agent;
use crate::controller::settings::Settings;
use crate::reach::{is_this_machine, told};

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How soon it is asked again what may be done, if something may not: roles are mended by
/// people.
const ACCESS_PAUSE: Duration = Duration::from_secs(15);

/// How often it is looked whether rights that are there have been taken away.
const ACCESS_INTERVAL: Duration = Duration::from_secs(60);

/// How soon the API server is asked again if it does not answer, at first and at the most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Where a Pod finds its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The names of what is in the way, for `Health`.
const RIGHTS: &str = "rights";
const API: &str = "API server";

/// Why there is no cluster to work for.
#[derive(Debug, Error)]
pub(super) enum ClusterError {
    #[error("cannot use the kubeconfig {name}: {}; name another with --kubeconfig", told(source))]
    Kubeconfig { name: String, source: KubeconfigError },
    #[error(
        "there is no cluster: name a kubeconfig with --kubeconfig or KUBECONFIG, or run it in a Pod with a service account"
    )]
    None,
    #[error(
        "there is no context {context:?} here: this Pod has a service account and no kubeconfig; name one with --kubeconfig or KUBECONFIG, or leave --context out"
    )]
    Context { context: String },
    #[error("cannot use the service account of this Pod: {}", told(.0))]
    InCluster(#[source] InClusterError),
    #[error("cannot use what the kubeconfig says of {url}: {}", told(source))]
    Client { url: String, source: kube::Error },
}

/// A cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) url: String,
}

/// The namespace of the Pod that this runs in.
pub(super) fn own_namespace() -> Option<String> {
    env::var_os("KUBERNETES_SERVICE_HOST")?;
    let text = fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Finds the cluster that is meant. Nobody is asked yet.
pub(super) async fn find(settings: &Settings) -> Result<Cluster, ClusterError> {
    let mut config = configured(settings).await?;
    config.connect_timeout = Some(CONNECT_TIME);
    // What is repeated, and when, is for the controller to say.
    config.default_retry = false;
    if let Ok(agent) = HeaderValue::from_str(&user_agent()) {
        config.headers.push((USER_AGENT, agent));
    }
    // What is on this machine is not behind a proxy.
    if config.cluster_url.host().is_some_and(is_this_machine) {
        config.proxy_url = None;
    }
    let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    match Client::try_from(config) {
        Ok(client) => Ok(Cluster { client, url }),
        Err(source) => Err(ClusterError::Client { url, source }),
    }
}

async fn configured(settings: &Settings) -> Result<Config, ClusterError> {
    let context = settings.context.clone();
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    if let Some(file) = &settings.kubeconfig {
        return from_file(file, &options).await;
    }
    if let Some(value) = env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        let name = format!("{} (from KUBECONFIG)", Path::new(&value).display());
        let wrong = |source| ClusterError::Kubeconfig { name: name.clone(), source };
        if let Some(kubeconfig) = Kubeconfig::from_env().map_err(wrong)? {
            return Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(wrong);
        }
    }
    if env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        if let Some(context) = options.context {
            return Err(ClusterError::Context { context });
        }
        return Config::incluster().map_err(ClusterError::InCluster);
    }
    let home = env::var_os("HOME").map(PathBuf::from).ok_or(ClusterError::None)?;
    let file = home.join(".kube/config");
    if !file.exists() {
        return Err(ClusterError::None);
    }
    from_file(&file, &options).await
}

async fn from_file(file: &Path, options: &KubeConfigOptions) -> Result<Config, ClusterError> {
    let wrong = |source| ClusterError::Kubeconfig { name: file.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(file).map_err(wrong)?;
    Config::from_custom_kubeconfig(kubeconfig, options).await.map_err(wrong)
}

/// Says what is in the way, for ever: a server that does not answer, rights that are missing, or have
/// been taken away. Both heal without us.
pub(super) async fn look_at_access(
    cluster: Cluster,
    config: stint_controller::Config,
    election: Option<ElectionConfig>,
    health: Health,
) {
    let url = cluster.url;
    let mut pause = FIRST_PAUSE;
    loop {
        match Access::ask(&cluster.client, &config, election.as_ref()).await {
            Ok(access) => {
                if health.resolved(API) {
                    tracing::info!(url, "the API server answers");
                }
                if access.missing.is_empty() {
                    let was_missing = health.resolved(RIGHTS);
                    let user = access.user;
                    match was_missing {
                        true => tracing::info!(user, "all rights are there now"),
                        false => tracing::debug!(user, "all rights are there"),
                    }
                    pause = FIRST_PAUSE;
                    tokio::time::sleep(ACCESS_INTERVAL).await;
                    continue;
                }
                let missing: Vec<String> = access.missing.iter().map(ToString::to_string).collect();
                let why = format!(
                    "{:?} may not {}; grant it with the roles in deploy/ (docs/kubernetes.md)",
                    access.user,
                    missing.join(", "),
                );
                if health.trouble(RIGHTS, &why) {
                    tracing::error!("rights are missing: {why}");
                }
                tokio::time::sleep(ACCESS_PAUSE).await;
            }
            Err(error) => {
                let why = words(&error);
                if health.trouble(API, &why) {
                    tracing::error!(url, why, "the API server cannot be used, trying again");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// What went wrong, and what to do about it.
fn words(error: &kube::Error) -> String {
    let text = told(error);
    let remedy = match error {
        kube::Error::Api(status) if status.code == 401 => {
            "; the server does not know who is asking: renew the token or the certificate in the \
             kubeconfig, and restart"
        }
        _ if text.contains("UnknownIssuer") => {
            "; certificate-authority in the kubeconfig is not that of this server"
        }
        _ if text.contains("xpired") => {
            "; a certificate has expired: that of the server, or that of the kubeconfig, which is \
             read at the start"
        }
        _ => "",
    };
    format!("{text}{remedy}")
}
