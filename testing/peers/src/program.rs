//! `stint controller` as a program of its own, as users run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::authority::User;
use crate::cluster::{Cluster, ClusterError};
use crate::http;
use crate::process::{self, Process};

/// Whose Jobs it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those without managedBy, in place of the built-in controller.
    Replace,
    /// Those that name it, beside the built-in controller.
    Beside,
}

impl Mode {
    /// A word for it, for names.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Replace => "replacing",
            Mode::Beside => "beside",
        }
    }
}

/// What is run.
#[derive(Clone, Debug, Default)]
pub enum Build {
    /// The library, within this process.
    #[default]
    Library,
    /// A program `stint`.
    Program(PathBuf),
}

/// How it is started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// As whom it speaks to the API.
    pub user: User,
    /// Where the API is; none: where the cluster has it.
    pub url: Option<String>,
    /// Whose Jobs it runs.
    pub mode: Mode,
    /// Further flags.
    pub flags: Vec<String>,
    /// The name of its log, without an ending.
    pub log: String,
}

impl Setup {
    /// As `deploy/` starts it.
    pub fn new(mode: Mode, log: &str) -> Self {
        let user = User::controller(mode);
        Setup { user, url: None, mode, flags: Vec::new(), log: log.to_owned() }
    }

    /// The same with more flags.
    pub fn with(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }
}

/// A program that runs, or does not.
#[derive(Debug)]
pub struct Program {
    /// The process.
    pub process: Process,
    log: PathBuf,
}

impl Program {
    /// Starts it.
    pub fn start(cluster: &Cluster, path: &Path, setup: &Setup) -> Result<Self, ClusterError> {
        let kubeconfig = match &setup.url {
            Some(url) => cluster.kubeconfig_at(url, &setup.user)?,
            None => cluster.kubeconfig(&setup.user)?,
        };
        let given = ["controller", "--listen=127.0.0.1:0", "--lease-namespace=stint-system"];
        let mut arguments: Vec<String> = given.map(str::to_owned).to_vec();
        arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
        arguments.push("--log-format=json".to_owned());
        if setup.mode == Mode::Replace {
            arguments.push("--replace-builtin".to_owned());
        }
        arguments.extend(setup.flags.iter().cloned());
        let log = cluster.folder().join(format!("{}.log", setup.log));
        Program::run(Process::new(path, arguments, log.clone()), log)
    }

    /// Starts a process that is a `stint controller`, and says what it says in `log`.
    pub fn run(process: Process, log: PathBuf) -> Result<Self, ClusterError> {
        let mut program = Program { process, log };
        program.begin()?;
        Ok(program)
    }

    /// Starts it again, with the arguments that it had before.
    pub fn begin(&mut self) -> Result<(), ClusterError> {
        let program = "stint";
        self.process.start().map_err(|source| ClusterError::Spawn { program, source })
    }

    /// What it has said, of all its lives.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// What `/readyz` says; none: it does not answer (yet).
    pub async fn ready(&self) -> Option<String> {
        self.ask("/readyz").await
    }

    /// What it says at a path, head and all; none: it does not answer (yet).
    pub async fn ask(&self, path: &str) -> Option<String> {
        let log = self.log();
        let line = log.lines().rfind(|line| line.contains("serving /healthz"))?;
        let line: Value = serde_json::from_str(line).ok()?;
        let address = line["address"].as_str().or_else(|| line["fields"]["address"].as_str())?;
        let port = address.rsplit(':').next()?.parse().ok()?;
        let answer = http::ask(port, path).await.ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Whether it leads.
    pub async fn leads(&self) -> bool {
        let answer = self.ready().await.unwrap_or_default();
        answer.contains("leading")
    }
}

/// The program that is meant. One that is not there yet is built.
pub async fn path(build: &Build) -> Result<PathBuf, ClusterError> {
    if let Build::Program(path) = build {
        return Ok(path.clone());
    }
    let failed = |words: String| ClusterError::Build { words };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked", "-p", "stint", "--message-format=json"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    let output = process::output(command).await.map_err(|error| failed(error.to_string()))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let mut built = told.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        line["executable"].as_str().map(PathBuf::from)
    });
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    built.next_back().filter(|_| output.status.success()).ok_or_else(|| failed(words))
}
