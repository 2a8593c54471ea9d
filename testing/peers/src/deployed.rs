//! What `deploy/` installs, as objects.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stint_api::decode;
use thiserror::Error;

use crate::process;
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
    kustomized_at(&folder().join("kustomize").join(path)).await
}

/// The objects of a folder with a kustomization.
async fn kustomized_at(path: &Path) -> Result<Vec<Value>, DeployedError> {
    let kubectl = programs::get("kubectl", None)?;
    let mut command = Command::new(kubectl);
    command.arg("kustomize").arg(path);
    rendered("kubectl", command, &path.display().to_string()).await
}

/// The objects of an overlay with a component added to it, as docs/kubernetes.md has users do it: in
/// an overlay of their own, elsewhere.
pub async fn extended(overlay: &str, component: &str) -> Result<Vec<Value>, DeployedError> {
    let what = format!("{overlay} with {component}");
    let failed =
        |error: io::Error| DeployedError::Render { what: what.clone(), words: error.to_string() };
    let own = tempfile::tempdir().map_err(failed)?;
    let (from, to) = (own.path().canonicalize(), folder().join("kustomize").canonicalize());
    let (from, to) = (from.map_err(failed)?, to.map_err(failed)?);
    // kustomize takes no absolute paths.
    let up = "../".repeat(from.components().count() - 1);
    let to = to.display().to_string();
    let way = format!("{up}{}", to.trim_start_matches('/'));
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("{way}/overlays/{overlay}")],
        "components": [format!("{way}/components/{component}")],
    });
    let file = own.path().join("kustomization.yaml");
    std::fs::write(file, kustomization.to_string()).map_err(failed)?;
    kustomized_at(own.path()).await
}

/// The objects of the Helm chart: of a release in a namespace, for a version of Kubernetes.
pub async fn chart(
    release: &str,
    namespace: &str,
    version: &str,
    values: &[&str],
) -> Result<Vec<Value>, DeployedError> {
    let values: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    chart_with(release, namespace, version, &values).await
}

/// The same, with values by whatever flags Helm has for them.
pub async fn chart_with(
    release: &str,
    namespace: &str,
    version: &str,
    flags: &[String],
) -> Result<Vec<Value>, DeployedError> {
    let helm = programs::get("helm", None)?;
    let mut command = Command::new(helm);
    command.args(["template", release]).arg(folder().join("helm/stint"));
    command.arg(format!("--namespace={namespace}")).arg(format!("--kube-version={version}"));
    command.args(flags);
    rendered("helm", command, &format!("the chart with {flags:?}")).await
}

/// The namespace of the overlays.
pub fn namespace() -> Result<Vec<Value>, DeployedError> {
    from_file(&folder().join("kustomize/namespace.yaml"))
}

/// The objects of a file in YAML.
pub fn from_file(path: &Path) -> Result<Vec<Value>, DeployedError> {
    let what = path.display().to_string();
    match std::fs::read(path) {
        Ok(text) => read(&text, &what),
        Err(error) => Err(DeployedError::Read { what, words: error.to_string() }),
    }
}

/// What a program renders, as objects.
async fn rendered(
    program: &'static str,
    mut command: Command,
    what: &str,
) -> Result<Vec<Value>, DeployedError> {
    command.stdin(Stdio::null());
    let output =
        process::output(command).await.map_err(|source| DeployedError::Run { program, source })?;
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
