//! etcd, kube-apiserver and kube-controller-manager on free ports of the loopback interface, with
//! TLS and RBAC, in a folder of their own. All of it is gone with the value.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::json;
use tempfile::TempDir;
use thiserror::Error;
use tokio::time::Instant;

use crate::authority::{Authority, AuthorityError, Keyed, User};
use crate::deployed::DeployedError;
use crate::process::Process;
use crate::programs::{Programs, ProgramsError};
use crate::version::Version;
use crate::{bootstrap, flags};

/// How often a program is started again whose port somebody else has taken meanwhile.
const STARTS: usize = 5;

/// How long a program may take until it serves: seconds on an idle machine, and this may not be
/// one.
const PATIENCE: Duration = Duration::from_secs(120);

/// How soon a program is asked again whether it serves.
const AGAIN: Duration = Duration::from_millis(50);

/// Why there is no cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// A program is missing.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// A certificate is missing.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A file could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("{program} cannot be started: {source}")]
    Spawn {
        /// Its name.
        program: &'static str,
        /// What is wrong.
        source: io::Error,
    },
    /// A program has ended, or does not answer.
    #[error("{program} does not serve; its last words, of {words}")]
    Silent {
        /// Its name.
        program: &'static str,
        /// The end of its log.
        words: String,
    },
    /// What `deploy/` installs is not known.
    #[error(transparent)]
    Deployed(#[from] DeployedError),
    /// There is no program `stint` to be run.
    #[error("stint cannot be built: {words}; --stint PATH names one that is there")]
    Build {
        /// What cargo says.
        words: String,
    },
    /// No client can be made of a kubeconfig.
    #[error("the kubeconfig of {user} is of no use: {source}")]
    Kubeconfig {
        /// Whose it is.
        user: String,
        /// What is wrong.
        source: KubeconfigError,
    },
    /// The API refused something that every cluster has.
    #[error("{what}: {source}")]
    Bootstrap {
        /// What was asked for.
        what: String,
        /// The refusal.
        source: kube::Error,
    },
}

/// What a cluster can be told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The version of Kubernetes, such as `1.34`; none: the one that everything is tried on.
    pub version: Option<String>,
    /// More flags for kube-apiserver.
    pub apiserver_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub manager_flags: Vec<String>,
}

/// Which controllers kube-controller-manager runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Those that Jobs need around them, and the built-in one for Jobs.
    WithJobs,
    /// The same without the one for Jobs.
    WithoutJobs,
    /// The built-in one for Jobs alone, to be measured.
    OnlyJobs,
}

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    options: Options,
    programs: Programs,
    authority: Authority,
    server_certificate: Keyed,
    token_key: Keyed,
    etcd_port: u16,
    url: String,
    manages: Option<Manager>,
    /// etcd, to be stopped and started again.
    pub etcd: Process,
    /// kube-apiserver, to be stopped and started again.
    pub apiserver: Process,
    /// kube-controller-manager, if it has been started.
    pub manager: Option<Process>,
    // The last, so that nobody writes there any more when it is removed.
    folder: TempDir,
}

impl Cluster {
    /// Starts etcd and kube-apiserver, and waits until they serve. Nobody runs Jobs yet, or
    /// collects garbage: that begins with [`Cluster::start_manager`].
    pub async fn start(options: Options) -> Result<Self, ClusterError> {
        let programs = Programs::get(options.version.as_deref())?;
        let folder = tempfile::Builder::new().prefix("stint-cluster-").tempdir();
        let folder =
            folder.map_err(|source| ClusterError::Write { path: std::env::temp_dir(), source })?;
        let authority = Authority::new(folder.path().join("pki"))?;
        let (server_certificate, token_key) = (authority.server()?, authority.token_key()?);
        write(&folder.path().join("audit-policy.json"), &flags::audit_policy().to_string())?;
        let (etcd, etcd_port) = start_etcd(&programs, folder.path()).await?;
        let mut cluster = Cluster {
            options,
            programs,
            authority,
            server_certificate,
            token_key,
            etcd_port,
            url: String::new(),
            manages: None,
            etcd,
            apiserver: Process::new(Path::new(""), Vec::new(), PathBuf::new()),
            manager: None,
            folder,
        };
        cluster.start_apiserver().await?;
        bootstrap::prepare(&cluster.admin().await?).await?;
        Ok(cluster)
    }

    /// A client that may do everything.
    pub async fn admin(&self) -> Result<Client, ClusterError> {
        self.client(&User::admin()).await
    }

    /// A client for somebody. It does not repeat calls.
    pub async fn client(&self, user: &User) -> Result<Client, ClusterError> {
        self.client_at(&self.url, user).await
    }

    /// The version of kube-apiserver.
    pub fn version(&self) -> Version {
        self.programs.version
    }

    /// The programs that it is made of.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The address of kube-apiserver.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file with the certificate of the authority that has signed all others.
    pub fn authority_file(&self) -> &Path {
        self.authority.certificate()
    }

    /// A kubeconfig file for somebody.
    pub fn kubeconfig(&self, user: &User) -> Result<PathBuf, ClusterError> {
        self.kubeconfig_at(&self.url, user)
    }

    /// A kubeconfig file for somebody who comes by another address, such as that of a proxy.
    pub fn kubeconfig_at(&self, url: &str, user: &User) -> Result<PathBuf, ClusterError> {
        let config = self.kubeconfig_json(url, user)?;
        let port = url.rsplit(':').next().unwrap_or_default();
        let path = self.folder.path().join(format!("{}-{port}.kubeconfig", user.file()));
        write(&path, &config.to_string())?;
        Ok(path)
    }

    /// Writes an object into etcd, past kube-apiserver: what no request leads to any more. kube-apiserver
    /// reads JSON there, too.
    pub async fn store(&self, key: &str, object: &serde_json::Value) {
        let bytes = |text: String| ByteString(text.into_bytes());
        let put = json!({"key": bytes(key.to_owned()), "value": bytes(object.to_string())});
        let answer = crate::http::post(self.etcd_port, "/v3/kv/put", &put.to_string()).await;
        let answer = answer.expect("etcd answers");
        let words = String::from_utf8_lossy(&answer);
        assert!(words.starts_with("HTTP/1.0 200"), "{key}: {words}");
    }

    /// Where its logs are; the audit log, too, as `audit.log`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder when the cluster is gone.
    pub fn keep_folder(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// Starts kube-controller-manager in place of the one that runs.
    pub async fn start_manager(&mut self, which: Manager) -> Result<(), ClusterError> {
        let program = self.programs.manager.clone();
        self.start_manager_by(&program, which, &[]).await
    }

    /// The same by another program, or with more flags, which go before those of the options.
    pub async fn start_manager_by(
        &mut self,
        program: &Path,
        which: Manager,
        flags: &[&str],
    ) -> Result<(), ClusterError> {
        self.stop_manager().await;
        let kubeconfig = self.kubeconfig(&User::manager())?;
        let program = self.by_its_name(program, "kube-controller-manager")?;
        for start in 1.. {
            let port = free_port();
            let mut arguments = crate::flags::manager(which, port, &kubeconfig);
            arguments.extend(crate::flags::certificates(&self.server_certificate));
            arguments
                .extend(crate::flags::manager_keys(&self.token_key, self.authority.certificate()));
            arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
            arguments.extend(self.options.manager_flags.iter().cloned());
            let log = self.folder.path().join("kube-controller-manager.log");
            let mut process = Process::new(&program, arguments, log);
            let url = format!("https://127.0.0.1:{port}");
            let client = self.client_at(&url, &User::admin()).await?;
            let is_up = async || is_ok(&client, "/healthz").await;
            if serve("kube-controller-manager", &mut process, start, is_up).await? {
                (self.manager, self.manages) = (Some(process), Some(which));
                break;
            }
        }
        Ok(())
    }

    /// Stops kube-controller-manager, if it runs.
    pub async fn stop_manager(&mut self) {
        self.manages = None;
        if let Some(mut manager) = self.manager.take() {
            manager.stop().await;
        }
    }

    /// Which controllers kube-controller-manager runs, if it was started.
    pub fn manages(&self) -> Option<Manager> {
        self.manages
    }

    /// Waits until kube-apiserver serves, such as after it was started again.
    pub async fn ready(&mut self) -> Result<(), ClusterError> {
        let client = self.admin().await?;
        let is_up = async || is_ok(&client, "/readyz").await;
        wait("kube-apiserver", &mut self.apiserver, is_up).await
    }

    /// A program under the name that it has elsewhere: its calls bear the name of its file, and stint
    /// knows it by that.
    fn by_its_name(&self, program: &Path, name: &str) -> Result<PathBuf, ClusterError> {
        let folder = self.folder.path().join("bin").join(program.file_name().unwrap_or_default());
        let path = folder.join(name);
        let failed = |source| ClusterError::Write { path: path.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        if !path.exists() {
            let program = program.canonicalize().map_err(failed)?;
            std::os::unix::fs::symlink(program, &path).map_err(failed)?;
        }
        Ok(path)
    }

    async fn start_apiserver(&mut self) -> Result<(), ClusterError> {
        for start in 1.. {
            let port = free_port();
            let mut arguments = flags::apiserver(port, self.etcd_port, self.folder.path());
            arguments.extend(flags::certificates(&self.server_certificate));
            arguments.extend(flags::apiserver_keys(&self.token_key, self.authority.certificate()));
            arguments.extend(self.options.apiserver_flags.iter().cloned());
            let log = self.folder.path().join("kube-apiserver.log");
            self.apiserver = Process::new(&self.programs.apiserver, arguments, log);
            self.url = format!("https://127.0.0.1:{port}");
            let client = self.admin().await?;
            let is_up = async || is_ok(&client, "/readyz").await;
            if serve("kube-apiserver", &mut self.apiserver, start, is_up).await? {
                break;
            }
        }
        Ok(())
    }

    async fn client_at(&self, url: &str, user: &User) -> Result<Client, ClusterError> {
        let failed = |source| ClusterError::Kubeconfig { user: user.name.clone(), source };
        let config = self.kubeconfig_json(url, user)?;
        let config: Kubeconfig = serde_json::from_value(config).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(config, &options).await.map_err(failed)?;
        (config.default_retry, config.read_timeout) = (false, None);
        Ok(Client::try_from(config).expect("a kubeconfig that was read makes a client"))
    }

    fn kubeconfig_json(&self, url: &str, user: &User) -> Result<serde_json::Value, ClusterError> {
        let keyed = self.authority.client(user)?;
        Ok(json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": url, "certificate-authority": self.authority.certificate(),
            }}],
            "users": [{"name": user.name, "user": {
                "client-certificate": keyed.certificate, "client-key": keyed.key,
            }}],
            "contexts": [{"name": "it", "context": {
                "cluster": "it", "user": user.name, "namespace": "default",
            }}],
        }))
    }
}

async fn start_etcd(programs: &Programs, folder: &Path) -> Result<(Process, u16), ClusterError> {
    for start in 1.. {
        let (port, peer_port) = (free_port(), free_port());
        let arguments = flags::etcd(port, peer_port, &folder.join("etcd"));
        let mut process = Process::new(&programs.etcd, arguments, folder.join("etcd.log"));
        let is_up = async || crate::http::is_ok(port, "/health").await;
        if serve("etcd", &mut process, start, is_up).await? {
            return Ok((process, port));
        }
    }
    unreachable!("the last start serves or fails")
}

/// Starts a program and waits until it serves; false if somebody has taken its port, and it may be
/// tried with another.
async fn serve(
    program: &'static str,
    process: &mut Process,
    start: usize,
    is_up: impl AsyncFnMut() -> bool,
) -> Result<bool, ClusterError> {
    process.start().map_err(|source| ClusterError::Spawn { program, source })?;
    match wait(program, process, is_up).await {
        Ok(()) => Ok(true),
        Err(ClusterError::Silent { words, .. })
            if words.contains("address already in use") && start < STARTS =>
        {
            process.kill().await;
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

async fn wait(
    program: &'static str,
    process: &mut Process,
    mut is_up: impl AsyncFnMut() -> bool,
) -> Result<(), ClusterError> {
    let began = Instant::now();
    // Its own answer counts only while it runs: somebody else may serve on that port.
    while !is_up().await || !process.is_running() {
        if !process.is_running() || began.elapsed() > PATIENCE {
            return Err(ClusterError::Silent { program, words: process.last_words() });
        }
        tokio::time::sleep(AGAIN).await;
    }
    Ok(())
}

async fn is_ok(client: &Client, path: &str) -> bool {
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    client.request_text(request).await.is_ok()
}

/// A port that nobody has at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback interface has ports");
    listener.local_addr().expect("it is bound").port()
}

/// Writes a file as a whole: somebody may be reading the one before.
fn write(path: &Path, text: &str) -> Result<(), ClusterError> {
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.map_err(|source| ClusterError::Write { path: path.to_owned(), source })
}
