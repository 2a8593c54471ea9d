//! Where the programs are that a cluster is made of.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use thiserror::Error;

/// Why a program is not there.
#[derive(Debug, Error)]
pub enum ProgramsError {
    /// The script could not be run.
    #[error("testing/peers/get cannot be run: {0}")]
    Run(io::Error),
    /// It has said why.
    #[error("there is no {0}: testing/peers/get has failed")]
    Missing(String),
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
}

impl Programs {
    /// Gets them, of this version (`1.34`) or the newest. Builds what is missing.
    pub fn get(version: Option<&str>) -> Result<Self, ProgramsError> {
        Ok(Programs {
            etcd: get("etcd", version)?,
            apiserver: get("kube-apiserver", version)?,
            manager: get("kube-controller-manager", version)?,
        })
    }
}

/// The path of a program, by testing/peers/get.
pub fn get(program: &str, version: Option<&str>) -> Result<PathBuf, ProgramsError> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/get");
    let mut command = Command::new(script);
    command.arg(program).args(version).stderr(Stdio::inherit());
    let output = command.output().map_err(ProgramsError::Run)?;
    if !output.status.success() {
        return Err(ProgramsError::Missing(program.to_owned()));
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
