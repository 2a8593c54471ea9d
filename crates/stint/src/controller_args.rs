//! What can be said to `stint controller`. The same can be said in the environment and in a
//! file (`controller::settings`), so that nothing here has a default of clap's.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use stint_api::feature_gates::FeatureGates;

use crate::cli::LogLevel;
use crate::cluster_args::read_namespace;
use crate::job_args::{read_count, read_duration, read_rate};

const EXAMPLES: &str = "\
Examples:
  stint controller                        Run the Jobs with spec.managedBy: stint.dev/job-controller
  stint controller --replace-builtin      Run all Jobs, in place of kube-controller-manager
  stint controller --namespace a,b        Only those of two namespaces
  stint controller --config stint.yaml --print-config
                                          Show what all settings come to, and where from

Exit codes:
  0    It was stopped by SIGTERM, Ctrl-C or SIGHUP
  2    Wrong usage, or a configuration or kubeconfig that cannot be used
  3    It could not start
  130  It was stopped at once, by a second signal

A cluster that is out of reach or refuses something is no reason to end: it is
asked again, and the log and /readyz say what is wrong.";

/// The Job controller of a Kubernetes cluster
///
/// Runs the Jobs that name it in spec.managedBy, beside the built-in controller, or all others in
/// place of it. Of several replicas one works and the others stand by.
///
/// Every option can be given in the environment, too (--max-inflight is STINT_MAX_INFLIGHT), and
/// in the file of --config, by its name. The command line goes before the environment, and that
/// before the file.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ControllerArgs {
    /// The kubeconfig of the cluster
    ///
    /// [default: KUBECONFIG, or else the service account of the Pod that this runs in, or else
    /// ~/.kube/config]
    #[arg(long, value_name = "FILE", help_heading = "Which cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", help_heading = "Which cluster")]
    pub(crate) context: Option<String>,

    /// Run the Jobs whose spec.managedBy is NAME [default: stint.dev/job-controller]
    ///
    /// Their Pods bear a finalizer of their own, stint.dev/job-tracking for the default, so that
    /// the built-in controller leaves them alone.
    #[arg(long, value_name = "NAME", help_heading = "Which Jobs")]
    pub(crate) managed_by: Option<String>,

    /// Run all Jobs that name no other controller, in place of the built-in one
    ///
    /// kube-controller-manager must run without it: --controllers=*,-job-controller.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
        require_equals = true, conflicts_with = "managed_by", help_heading = "Which Jobs")]
    pub(crate) replace_builtin: Option<bool>,

    /// Only Jobs of this namespace; can be repeated, or be a list with commas [default: all]
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', value_parser = read_namespace,
        help_heading = "Which Jobs")]
    pub(crate) namespace: Option<Vec<String>>,

    /// Take turns with other replicas by a Lease [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
        require_equals = true, help_heading = "Replicas")]
    pub(crate) leader_elect: Option<bool>,

    /// The Lease [default: stint-job-controller; another for each --managed-by, and
    /// stint-job-controller-builtin with --replace-builtin]
    #[arg(long, value_name = "NAME", value_parser = read_lease_name, help_heading = "Replicas")]
    pub(crate) lease_name: Option<String>,

    /// Where the Lease is [default: the namespace of the Pod that this runs in, or else
    /// kube-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = read_namespace, help_heading = "Replicas")]
    pub(crate) lease_namespace: Option<String>,

    /// How long the others wait for a leader that is silent [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = read_duration, help_heading = "Replicas")]
    pub(crate) lease_duration: Option<SignedDuration>,

    /// How long a leader goes on that cannot renew the Lease [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = read_duration, help_heading = "Replicas")]
    pub(crate) renew_deadline: Option<SignedDuration>,

    /// How often the Lease is renewed [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = read_duration, help_heading = "Replicas")]
    pub(crate) retry_period: Option<SignedDuration>,

    /// How long to wait after the first failure of a Pod: 500ms, 10s, 2m [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = read_duration,
        help_heading = "How Jobs are run")]
    pub(crate) pod_failure_backoff_base: Option<SignedDuration>,

    /// The longest wait after failures of Pods [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = read_duration,
        help_heading = "How Jobs are run")]
    pub(crate) pod_failure_backoff_max: Option<SignedDuration>,

    /// The most API calls at once [default: 256]
    #[arg(long, value_name = "COUNT", value_parser = read_count, help_heading = "How Jobs are run")]
    pub(crate) max_inflight: Option<usize>,

    /// The most API calls a second [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = read_rate, help_heading = "How Jobs are run")]
    pub(crate) qps: Option<f64>,

    /// Turn Kubernetes features off or on: NAME=false,NAME=true
    #[arg(long, value_name = "GATES", value_parser = read_gates, help_heading = "How Jobs are run")]
    pub(crate) feature_gates: Option<Gates>,

    /// The address of /healthz, /readyz and /metrics, or off [default: :8080, on all addresses]
    #[arg(long, value_name = "ADDRESS", value_parser = read_listen)]
    pub(crate) listen: Option<Listen>,

    /// How much to tell of what happens [default: info]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub(crate) log_level: Option<LogLevel>,

    /// How to tell it [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log_format: Option<LogFormat>,

    /// A YAML file with settings, by the names of the options
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print what all settings come to, and where from, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// An object a line, for tools
    Json,
}

/// Where probes and metrics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Nowhere.
    Off,
    /// At an address.
    At(SocketAddr),
    /// At this port of all addresses, IPv6 and IPv4.
    Anywhere(u16),
}

impl fmt::Display for Listen {
    /// As it can be given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Off => f.write_str("off"),
            Listen::At(address) => address.fmt(f),
            Listen::Anywhere(port) => write!(f, ":{port}"),
        }
    }
}

/// Gates, and how they were written.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    pub(crate) gates: FeatureGates,
    pub(crate) text: String,
}

fn read_listen(text: &str) -> Result<Listen, String> {
    let port = text.strip_prefix(':').and_then(|port| port.parse().ok());
    match (text, port, text.parse()) {
        ("off", ..) => Ok(Listen::Off),
        (_, Some(port), _) => Ok(Listen::Anywhere(port)),
        (_, None, Ok(address)) => Ok(Listen::At(address)),
        (_, None, Err(_)) => {
            Err("give a port, such as :8080, an address with one, or off".to_owned())
        }
    }
}

fn read_gates(text: &str) -> Result<Gates, String> {
    let gates = FeatureGates::parse(text).map_err(|error| error.to_string())?;
    Ok(Gates { gates, text: text.to_owned() })
}

fn read_lease_name(text: &str) -> Result<String, String> {
    let wrong = stint_api::identifier::dns1123_subdomain(text);
    match wrong.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("give the name of a Lease: lower-case letters, digits, - and .".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_listen_is_an_address_a_port_or_nowhere() {
        assert_eq!(read_listen("off"), Ok(Listen::Off));
        let at = |text: &str| Listen::At(text.parse().expect("an address"));
        assert_eq!(read_listen(":9090"), Ok(Listen::Anywhere(9090)));
        assert_eq!(read_listen("0.0.0.0:9090"), Ok(at("0.0.0.0:9090")));
        assert_eq!(read_listen("[::1]:0"), Ok(at("[::1]:0")));
        for text in ["off", ":9090", "127.0.0.1:1", "[::]:8080"] {
            let read = read_listen(text).expect("it can be given");
            assert_eq!(read.to_string(), text);
        }
        for text in ["", ":", ":x", "8080", "localhost", "0.0.0.0"] {
            assert!(read_listen(text).is_err(), "{text}");
        }
    }
}
