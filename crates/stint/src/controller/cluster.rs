//! The cluster that a controller works for, and what it may do there.

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::InClusterError;
use kube::{Client, Config};
use stint_controller::{Access, ElectionConfig, Health};
use thiserror::Error;

use crate::build::user_agent;
use crate::controller::settings::Settings;
use crate::kubeconfig::{NamedKubeconfig, WrongKubeconfig};
use crate::reach::{is_this_machine, told};
use crate::token_file::{ClientError, client};

/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How often it is looked whether rights that are there have been taken away: so that it is told
/// within a minute, also if the API server takes its time and there are up to eight namespaces. Twice as
/// often if something may not be done, and there are few: roles are mended by people.
const ACCESS_INTERVAL: Duration = Duration::from_secs(30);

/// How much of that a namespace adds: it takes 13 questions, so that a replica asks four a second at the
/// most, however many namespaces it is limited to.
const ACCESS_TIME: Duration = Duration::from_millis(3_500);

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
    #[error(transparent)]
    Kubeconfig(#[from] WrongKubeconfig),
    #[error(
        "there is no cluster: name a kubeconfig with --kubeconfig or KUBECONFIG, or run it in a Pod with a service account"
    )]
    None,
    #[error(
        "there is no context {context:?} here: this Pod has a service account and no kubeconfig; name one with --kubeconfig or KUBECONFIG, or leave --context out"
    )]
    Context { context: String },
    #[error(
        "cannot use the service account of this Pod: {}; mount its token (automountServiceAccountToken), or name a kubeconfig with --kubeconfig",
        told(.0)
    )]
    InCluster(#[source] InClusterError),
    #[error("cannot use what {credentials} says of {url}: {}", told(source))]
    Client { url: String, credentials: Credentials, source: ClientError },
}

/// A cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) credentials: Credentials,
}

/// What says who is asking, and which server is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    Kubeconfig(String),
    ServiceAccount,
}

impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Kubeconfig(name) => write!(f, "the kubeconfig {name}"),
            Credentials::ServiceAccount => f.write_str("the service account of this Pod"),
        }
    }
}

/// The namespace of the Pod that this runs in.
pub(super) fn own_namespace() -> Option<String> {
    env::var_os("KUBERNETES_SERVICE_HOST")?;
    let text = fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Finds the cluster that is meant. Nobody is asked yet.
pub(super) async fn find(settings: &Settings) -> Result<Cluster, ClusterError> {
    let (mut config, credentials) = configured(settings).await?;
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
    match client(config) {
        Ok(client) => Ok(Cluster { client, url, credentials }),
        Err(source) => Err(ClusterError::Client { url, credentials, source }),
    }
}

async fn configured(settings: &Settings) -> Result<(Config, Credentials), ClusterError> {
    let context = settings.context.as_deref();
    if let Some(file) = &settings.kubeconfig {
        return with(NamedKubeconfig::read(file)?, context).await;
    }
    if let Some(kubeconfig) = NamedKubeconfig::from_environment()? {
        return with(kubeconfig, context).await;
    }
    if env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        if let Some(context) = context {
            return Err(ClusterError::Context { context: context.to_owned() });
        }
        let config = Config::incluster().map_err(ClusterError::InCluster)?;
        return Ok((config, Credentials::ServiceAccount));
    }
    let home = env::var_os("HOME").map(PathBuf::from).ok_or(ClusterError::None)?;
    let file = home.join(".kube/config");
    if !file.exists() {
        return Err(ClusterError::None);
    }
    with(NamedKubeconfig::read(&file)?, context).await
}

async fn with(
    kubeconfig: NamedKubeconfig,
    context: Option<&str>,
) -> Result<(Config, Credentials), ClusterError> {
    let credentials = Credentials::Kubeconfig(kubeconfig.name.clone());
    Ok((kubeconfig.configure(context).await?, credentials))
}

/// How often it is looked, for so many namespaces, if that is often enough for one.
fn access_interval(config: &stint_controller::Config, interval: Duration) -> Duration {
    let count = u32::try_from(config.namespaces.len()).unwrap_or(u32::MAX);
    interval.max(ACCESS_TIME.saturating_mul(count))
}

/// Says what is in the way, for ever: a server that does not answer, rights that are missing, or have
/// been taken away. Both heal without us.
pub(super) async fn look_at_access(
    cluster: Cluster,
    config: stint_controller::Config,
    election: Option<ElectionConfig>,
    health: Health,
) {
    let Cluster { client, url, credentials } = cluster;
    let mut pause = FIRST_PAUSE;
    loop {
        match Access::ask(&client, &config, election.as_ref()).await {
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
                    tokio::time::sleep(access_interval(&config, ACCESS_INTERVAL)).await;
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
                tokio::time::sleep(access_interval(&config, ACCESS_INTERVAL / 2)).await;
            }
            Err(error) => {
                let why = words(&error, &credentials);
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
fn words(error: &kube::Error, credentials: &Credentials) -> String {
    let text = told(error);
    let is_stranger = matches!(error, kube::Error::Api(status) if status.code == 401);
    let remedy = match credentials {
        Credentials::Kubeconfig(name) if is_stranger => format!(
            "; the server does not know who is asking: renew the token or the certificate in the \
             kubeconfig {name}, and restart"
        ),
        // A file that has a new token is read again by itself.
        Credentials::ServiceAccount if is_stranger => "; the server does not know the service \
             account of this Pod: it may have been deleted, and made anew for new Pods only"
            .to_owned(),
        Credentials::Kubeconfig(name) if text.contains("UnknownIssuer") => {
            format!("; certificate-authority in the kubeconfig {name} is not that of this server")
        }
        Credentials::ServiceAccount if text.contains("UnknownIssuer") => {
            "; the ca.crt of the service account is not that of this server: restart the Pod if \
             the cluster has a new one"
                .to_owned()
        }
        Credentials::Kubeconfig(name) if text.contains("xpired") => format!(
            "; a certificate has expired: that of the server, or that of the kubeconfig {name}, \
             which is read at the start"
        ),
        Credentials::ServiceAccount if text.contains("xpired") => {
            "; the certificate of the server has expired".to_owned()
        }
        Credentials::Kubeconfig(_) | Credentials::ServiceAccount => String::new(),
    };
    format!("{text}{remedy}")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn what_to_do_fits_where_the_credentials_are_from() {
        let refused =
            || kube::Error::Api(Box::new(Status::failure("Unauthorized", "").with_code(401)));
        let other = || kube::Error::Api(Box::new(Status::failure("no", "").with_code(500)));
        let file = Credentials::Kubeconfig("/a/config".to_owned());
        let said = words(&refused(), &file);
        assert!(said.contains("kubeconfig /a/config, and restart"), "{said}");
        let said = words(&refused(), &Credentials::ServiceAccount);
        assert!(said.contains("service account") && !said.contains("kubeconfig"), "{said}");
        assert!(!words(&other(), &file).contains(';'));
    }
}
