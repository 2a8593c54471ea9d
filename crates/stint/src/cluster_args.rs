//! What can be said about which cluster is meant, to every command that looks at one.

use std::path::PathBuf;

use clap::Args;

use crate::shell_word::quoted;

/// Which cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which cluster")]
pub(crate) struct ClusterArgs {
    /// The kubeconfig of the cluster
    ///
    /// That of stint serve, or of any Kubernetes cluster. [default: KUBECONFIG, or else that of
    /// stint serve on this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The data folder of stint serve or stint run
    ///
    /// If nobody uses it now, what was left in it is shown. [default: STINT_DATA_DIR, or else
    /// stint in XDG_DATA_HOME, or else ~/.local/share/stint]
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    pub(crate) data_dir: Option<PathBuf>,

    /// The namespace of the Job [default: that of the context, or else default]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = read_namespace)]
    pub(crate) namespace: Option<String>,
}

impl ClusterArgs {
    /// What else to write in a command that is to find the same cluster, and namespace.
    pub(crate) fn again(&self) -> String {
        let path = |path: &PathBuf| quoted(path);
        let options = [
            ("--kubeconfig", self.kubeconfig.as_ref().map(path)),
            ("--context", self.context.as_deref().map(quoted)),
            ("--data-dir", self.data_dir.as_ref().map(path)),
            ("-n", self.namespace.clone()),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!(" {name} {value}")).collect()
    }
}

/// Whether this may be the name of a Job or a namespace. Anything else names none, and must not
/// get into a path.
pub(crate) fn is_name(text: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !text.is_empty() && !text.starts_with('.') && text.chars().all(is_fit)
}

pub(crate) fn read_namespace(text: &str) -> Result<String, String> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("give the name of a namespace: lower-case letters, digits and -".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_shown_can_be_pasted() {
        let args = ClusterArgs {
            kubeconfig: Some("/tmp/my file".into()),
            context: Some("it's".to_owned()),
            data_dir: None,
            namespace: Some("team".to_owned()),
        };
        assert_eq!(args.again(), " --kubeconfig '/tmp/my file' --context 'it'\\''s' -n team");
    }

    #[test]
    fn what_is_no_name_gets_into_no_path() {
        for text in ["work", "a.b-1"] {
            assert!(is_name(text), "{text}");
        }
        for text in ["", "..", "a/b", "a?b", "A", "a\u{1b}", "a%2f"] {
            assert!(!is_name(text), "{text}");
        }
    }
}
