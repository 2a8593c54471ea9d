//! Kubeconfigs: the files of `KUBECONFIG`, the context that is meant, and what is wrong with
//! either, with what to do about it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error;

use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::reach::told;

/// Most contexts that are named in a message: what fits on a line or two.
const NAMED_CONTEXTS: usize = 8;

/// What is wrong with a kubeconfig.
#[derive(Debug, Error)]
pub(crate) enum WrongKubeconfig {
    #[error("cannot use the kubeconfig {name}: {}; name another with --kubeconfig", told(source))]
    Unusable { name: String, source: KubeconfigError },
    #[error(
        "no file that KUBECONFIG names is there ({names}); correct it, or name a kubeconfig with --kubeconfig"
    )]
    Absent { names: String },
    #[error("the kubeconfig {name} has no context {context:?}; {remedy}")]
    NoContext { name: String, context: String, remedy: String },
    #[error("the kubeconfig {name} has no current context; {remedy}")]
    NoCurrentContext { name: String, remedy: String },
    #[error(
        "the context {context:?} of the kubeconfig {name} is for the cluster {cluster:?}, of which it says nothing; add that to it, or name another context with --context"
    )]
    NoCluster { name: String, context: String, cluster: String },
}

/// A kubeconfig, and how to speak of it.
#[derive(Debug)]
pub(crate) struct NamedKubeconfig {
    pub(crate) name: String,
    kubeconfig: Kubeconfig,
}

impl NamedKubeconfig {
    /// That of a file.
    pub(crate) fn read(file: &Path) -> Result<Self, WrongKubeconfig> {
        let name = shown(file);
        match Kubeconfig::read_from(file) {
            Ok(mut kubeconfig) => {
                // In a list it would stand in the way of the next one that says something.
                let current = kubeconfig.current_context.take();
                kubeconfig.current_context = current.filter(|context| !context.is_empty());
                Ok(Self { name, kubeconfig })
            }
            Err(source) => Err(WrongKubeconfig::Unusable { name, source }),
        }
    }

    /// That of `KUBECONFIG`, if it names any file.
    pub(crate) fn from_environment() -> Result<Option<Self>, WrongKubeconfig> {
        env::var_os("KUBECONFIG").map_or(Ok(None), |value| Self::of_list(&value))
    }

    /// Files that are not there are passed over, as kubectl does: lists are often written for
    /// several machines.
    fn of_list(value: &OsStr) -> Result<Option<Self>, WrongKubeconfig> {
        let files: Vec<PathBuf> =
            env::split_paths(value).filter(|file| !file.as_os_str().is_empty()).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let name = format!("{} (from KUBECONFIG)", shown(Path::new(value)));
        let mut merged: Option<Kubeconfig> = None;
        for file in files.iter().filter(|file| file.exists()) {
            let next = Self::read(file)?.kubeconfig;
            let wrong = |source| WrongKubeconfig::Unusable { name: name.clone(), source };
            merged = Some(match merged {
                Some(before) => before.merge(next).map_err(wrong)?,
                None => next,
            });
        }
        match merged {
            Some(kubeconfig) => Ok(Some(Self { name, kubeconfig })),
            None => Err(WrongKubeconfig::Absent { names: shown(Path::new(value)) }),
        }
    }

    /// What it says of a context, or of its current one.
    pub(crate) async fn configure(self, context: Option<&str>) -> Result<Config, WrongKubeconfig> {
        let Self { name, kubeconfig } = self;
        let remedy = remedy(&kubeconfig);
        let Some(context) =
            context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone())
        else {
            return Err(WrongKubeconfig::NoCurrentContext { name, remedy });
        };
        let options =
            KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|source| match source {
            KubeconfigError::LoadContext(_) => WrongKubeconfig::NoContext { name, context, remedy },
            KubeconfigError::LoadClusterOfContext(cluster) => {
                WrongKubeconfig::NoCluster { name, context, cluster }
            }
            source => WrongKubeconfig::Unusable { name, source },
        })
    }
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string(), MAX_MESSAGE_CHARS)
}

/// What to do if the context that is meant is not there: name one that is, if any is.
fn remedy(kubeconfig: &Kubeconfig) -> String {
    let contexts = &kubeconfig.contexts;
    if contexts.is_empty() {
        return "it has none at all: name another kubeconfig with --kubeconfig".to_owned();
    }
    let names = contexts.iter().take(NAMED_CONTEXTS).map(|context| format!("{:?}", context.name));
    let mut names = names.collect::<Vec<_>>().join(", ");
    if contexts.len() > NAMED_CONTEXTS {
        names += &format!(" and {} more", contexts.len() - NAMED_CONTEXTS);
    }
    format!("name one that it has with --context: {names}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn text(context: &str, cluster: &str, current: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: '{current}', \
             contexts: [{{name: {context}, context: {{cluster: {cluster}, user: u}}}}], \
             clusters: [{{name: {context}, cluster: {{server: 'https://{context}.example'}}}}]}}"
        )
    }

    #[tokio::test]
    async fn of_a_list_what_is_not_there_is_passed_over_and_the_first_wins() {
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), text("a", "a", "")).expect("it can be written");
        fs::write(path("b"), text("b", "b", "b")).expect("it can be written");
        let list = env::join_paths([path("a"), path("missing"), PathBuf::new(), path("b")]);
        let list = list.expect("a list");
        for (context, url) in [(None, "https://b.example/"), (Some("a"), "https://a.example/")] {
            let found = NamedKubeconfig::of_list(&list).expect("it is fine").expect("files");
            let config = found.configure(context).await.expect("it is fine");
            assert_eq!(config.cluster_url.to_string(), url);
        }
        let absent = env::join_paths([path("x"), path("y")]).expect("a list");
        let said = NamedKubeconfig::of_list(&absent).expect_err("nothing is there").to_string();
        assert!(said.contains("KUBECONFIG") && said.contains("/x:"), "{said}");
        assert!(NamedKubeconfig::of_list(OsStr::new("")).expect("nothing is wrong").is_none());
    }

    #[tokio::test]
    async fn each_thing_that_is_wrong_has_its_own_remedy() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("config");
        let rows = [
            (
                text("a", "a", "a"),
                Some("b"),
                "has no context \"b\"; name one that it has with --context: \"a\"",
            ),
            (
                text("a", "a", "gone"),
                None,
                "has no context \"gone\"; name one that it has with --context: \"a\"",
            ),
            (
                text("a", "a", ""),
                None,
                "has no current context; name one that it has with --context: \"a\"",
            ),
            (
                text("a", "other", "a"),
                None,
                "is for the cluster \"other\", of which it says nothing",
            ),
            (
                "{}".to_owned(),
                None,
                "has no current context; it has none at all: name another kubeconfig with --kubeconfig",
            ),
            ("{}".to_owned(), Some("b"), "has no context \"b\"; it has none at all"),
        ];
        for (text, context, expected) in rows {
            fs::write(&file, text).expect("it can be written");
            let found = NamedKubeconfig::read(&file).expect("it can be read");
            let said = found.configure(context).await.expect_err("it is wrong").to_string();
            assert!(said.contains(expected), "{expected}\n{said}");
        }
        fs::write(&file, "{").expect("it can be written");
        let said = NamedKubeconfig::read(&file).expect_err("it is no YAML").to_string();
        assert!(said.contains("name another with --kubeconfig"), "{said}");
    }
}
