//! Where the programs are that a cluster is made of.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use thiserror::Error;

use crate::version::Version;

/// Why a program is not there.
#[derive(Debug, Error)]
pub enum ProgramsError {
    /// A program could not be run.
    #[error("{} cannot be run: {source}", path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// It has said why.
    #[error("there is no {0}: testing/peers/get has failed")]
    Missing(String),
    /// A program does not say which version it is.
    #[error("{} --version says {words:?}, which is no version of Kubernetes", path.display())]
    Version {
        /// The program.
        path: PathBuf,
        /// What it says.
        words: String,
    },
}

/// The programs of a version of Kubernetes.
#[derive(Clone, Debug)]
pub struct Programs {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub apiserver: PathBuf,
    /// kube-controller-manager.
    pub manager: PathBuf,
    /// The version of kube-apiserver.
    pub version: Version,
}

impl Programs {
    /// Gets them, of this version (`1.34`) or the one that everything is tried on. Builds what is missing.
    pub fn get(version: Option<&str>) -> Result<Self, ProgramsError> {
        let apiserver = get("kube-apiserver", version)?;
        Ok(Programs {
            etcd: get("etcd", version)?,
            manager: get("kube-controller-manager", version)?,
            version: version_of(&apiserver)?,
            apiserver,
        })
    }
}

fn version_of(program: &Path) -> Result<Version, ProgramsError> {
    let output = run(Command::new(program).arg("--version"))?;
    let words = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = words.strip_prefix("Kubernetes ").and_then(Version::read);
    version.ok_or_else(|| ProgramsError::Version { path: program.to_owned(), words })
}

/// The path of a program, by testing/peers/get.
pub fn get(program: &str, version: Option<&str>) -> Result<PathBuf, ProgramsError> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/get");
    let mut command = Command::new(script);
    command.arg(program).args(version).stderr(Stdio::inherit());
    let output = run(&mut command)?;
    if !output.status.success() {
        return Err(ProgramsError::Missing(program.to_owned()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn run(command: &mut Command) -> Result<Output, ProgramsError> {
    let path = PathBuf::from(command.get_program());
    command.output().map_err(|source| ProgramsError::Run { path, source })
}
