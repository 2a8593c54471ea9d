//! What `deploy/` installs, as objects.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use stint_api::decode;
use thiserror::Error;
use tokio::process::Command;

use crate::programs::{self, ProgramsError};

/// Why it is not known what is installed.
#[derive(Debug, Error)]
pub enum DeployedError {
    /// There is no kubectl.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// A program could not be run.
    #[error("{program} cannot be run: {source}")]
    Run {
        /// Its name.
        program: &'static str,
        /// What is wrong.
        source: io::Error,
    },
    /// It has refused.
    #[error("{what} cannot be rendered: {words}")]
    Render {
        /// What was to be rendered.
        what: String,
        /// What the program says.
        words: String,
    },
    /// What came of it, or a file, is no YAML.
    #[error("{what} cannot be read as YAML: {words}")]
    Read {
        /// What was rendered, or the file.
        what: String,
        /// What is wrong.
        words: String,
    },
}

/// The folder `deploy`.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The objects of a folder below `deploy/kustomize`.
pub async fn kustomized(path: &str) -> Result<Vec<Value>, DeployedError> {
    let kubectl = programs::get("kubectl", None)?;
    let mut command = Command::new(kubectl);
    command.arg("kustomize").arg(folder().join("kustomize").join(path));
    rendered("kubectl", command, path).await
}

/// The namespace of the overlays.
pub fn namespace() -> Result<Vec<Value>, DeployedError> {
    from_file(&folder().join("kustomize/namespace.yaml"))
}

/// The objects of a file in YAML.
pub(crate) fn from_file(path: &Path) -> Result<Vec<Value>, DeployedError> {
    let what = path.display().to_string();
    match std::fs::read(path) {
        Ok(text) => read(&text, &what),
        Err(error) => Err(DeployedError::Read { what, words: error.to_string() }),
    }
}

/// What a program renders, as objects.
pub(crate) async fn rendered(
    program: &'static str,
    mut command: Command,
    what: &str,
) -> Result<Vec<Value>, DeployedError> {
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.map_err(|source| DeployedError::Run { program, source })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(DeployedError::Render { what: what.to_owned(), words });
    }
    read(&output.stdout, what)
}

/// The objects of a text in YAML.
fn read(text: &[u8], what: &str) -> Result<Vec<Value>, DeployedError> {
    let object = |document: decode::Document| match document.root {
        Some(root) if document.problems.is_empty() => Ok(root.to_json()),
        _ => {
            let words = format!("{:?}", document.problems);
            Err(DeployedError::Read { what: what.to_owned(), words })
        }
    };
    let objects: Vec<Value> =
        decode::read(text).into_iter().map(object).collect::<Result<_, _>>()?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}
