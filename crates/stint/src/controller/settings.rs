//! What a controller is told, from the command line, the environment and a file, in this order:
//! what is said in one place hides what is said in the next.
//!
//! ```text
//!   command line ─┐
//!   STINT_…       ├─▶ options, each read as clap reads it ─▶ Settings
//!   --config FILE ┘
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueEnum};
use jiff::SignedDuration;
use stint_api::feature_gates::Gate;
use stint_api::names::managed_by;
use stint_api::view::ManagedBy;
use stint_controller::{BackoffDelays, Config, LeaseTiming, MAX_IN_FLIGHT};

use super::config_file;
use crate::cli::LogLevel;
use crate::controller_args::{ControllerArgs, Gates, Listen, LogFormat};

/// The Lease where nobody says otherwise.
const LEASE_NAME: &str = "stint-job-controller";

/// Where the Lease is outside of a cluster.
const LEASE_NAMESPACE: &str = "kube-system";

/// Where probes and metrics are: what `deploy/` asks for.
const PORT: u16 = 8080;

/// The options that are no settings.
const NO_SETTINGS: [&str; 3] = ["config", "print-config", "help"];

/// What it all comes to.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) controller: Config,
    pub(crate) lease: Option<LeaseSettings>,
    pub(crate) listen: Listen,
    pub(crate) log_level: LogLevel,
    pub(crate) log_format: LogFormat,
    /// All of it as a file, with where it comes from.
    pub(crate) printed: String,
}

/// Which Lease is held, and how.
#[derive(Debug)]
pub(crate) struct LeaseSettings {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) timing: LeaseTiming,
}

/// The surroundings that settings depend on.
pub(crate) struct Surroundings<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The namespace of the Pod that this runs in.
    pub(crate) own_namespace: Option<String>,
}

/// One option, to read what others than the command line say.
#[derive(Debug, Parser)]
#[command(name = "stint controller", no_binary_name = true, disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    args: ControllerArgs,
}

/// Every option that is a setting. Each is `None` where it is not given.
macro_rules! layered {
    ($($field:ident),* $(,)?) => {
        /// What is said here, and below that what is said in `lower`.
        fn over(upper: ControllerArgs, lower: ControllerArgs) -> ControllerArgs {
            ControllerArgs {
                $($field: upper.$field.or(lower.$field),)*
                config: upper.config.or(lower.config),
                print_config: upper.print_config || lower.print_config,
            }
        }

        /// Whether a setting is given.
        fn has(args: &ControllerArgs, name: &str) -> bool {
            let name = name.replace('-', "_");
            $((name == stringify!($field) && args.$field.is_some()))||*
        }
    };
}

layered!(
    kubeconfig,
    context,
    managed_by,
    replace_builtin,
    namespace,
    leader_elect,
    lease_name,
    lease_namespace,
    lease_duration,
    renew_deadline,
    retry_period,
    pod_failure_backoff_base,
    pod_failure_backoff_max,
    max_inflight,
    qps,
    feature_gates,
    listen,
    log_level,
    log_format,
);

/// Gathers all of it; or what is wrong, where.
pub(crate) fn gather(cli: ControllerArgs, around: &Surroundings<'_>) -> Result<Settings, String> {
    let names = names();
    let mut environment = ControllerArgs::default();
    for name in names.iter().map(String::as_str).chain(["config"]) {
        let variable = format!("STINT_{}", name.to_uppercase().replace('-', "_"));
        if let Some(value) = (around.variable)(&variable).filter(|value| !value.is_empty()) {
            let read = alone(name, &value).map_err(|wrong| format!("{variable}: {wrong}"))?;
            environment = over(environment, read);
        }
    }
    let mut file = ControllerArgs::default();
    let path = cli.config.clone().or_else(|| environment.config.clone());
    if let Some(path) = &path {
        let text = fs::read_to_string(path).map_err(|error| {
            format!("cannot read the configuration {}: {error}", path.display())
        })?;
        let place = |wrong: &String| format!("{}: {wrong}", path.display());
        let settings = config_file::read(&text, &names)
            .map_err(|all| all.iter().map(place).collect::<Vec<_>>().join("\nerror: "))?;
        for setting in settings {
            let read = alone(&setting.name, &setting.value).map_err(|wrong| {
                place(&format!("line {}: {}: {wrong}", setting.line, setting.name))
            })?;
            file = over(file, read);
        }
    }
    merge([(cli, "command line"), (environment, "environment"), (file, "file")], around)
}

/// The names of all settings.
fn names() -> Vec<String> {
    let command = Alone::command();
    let names = command.get_arguments().filter_map(|argument| argument.get_long());
    names.filter(|name| !NO_SETTINGS.contains(name)).map(str::to_owned).collect()
}

/// Reads one option.
fn alone(name: &str, value: &str) -> Result<ControllerArgs, String> {
    let read = Alone::try_parse_from([format!("--{name}={value}")]);
    read.map(|alone| alone.args).map_err(|error| {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        first.trim_start_matches("error: ").replace('\n', " ").trim().to_owned()
    })
}

fn merge(
    mut layers: [(ControllerArgs, &'static str); 3],
    around: &Surroundings<'_>,
) -> Result<Settings, String> {
    // Whether the built-in controller is replaced is settled over all places first: who takes that back
    // in one place has not said yet whose Jobs are run.
    let replaces = layers.iter().find_map(|(layer, _)| layer.replace_builtin) == Some(true);
    // Whose Jobs are run is one thing, whichever of the two options says it.
    let mut is_said = false;
    for (layer, place) in &mut layers {
        if layer.managed_by.is_some() && layer.replace_builtin == Some(true) {
            return Err(format!(
                "managed-by and replace-builtin exclude each other ({place}): use one of them"
            ));
        }
        if is_said {
            layer.managed_by = None;
            layer.replace_builtin = None;
        }
        let is_replacing = replaces && layer.replace_builtin == Some(true);
        is_said |= layer.managed_by.is_some() || is_replacing;
    }
    let source = |name: &str| {
        let given = layers.iter().find(|(layer, _)| has(layer, name));
        given.map_or("default", |(_, place)| place)
    };
    let sources: Vec<(String, &str)> =
        names().into_iter().map(|name| (name.clone(), source(&name))).collect();
    let [(cli, _), (environment, _), (file, _)] = layers;
    let args = over(cli, over(environment, file));
    settle(args, &sources, around)
}

/// Fills in the defaults, and checks what must fit together.
fn settle(
    args: ControllerArgs,
    sources: &[(String, &str)],
    around: &Surroundings<'_>,
) -> Result<Settings, String> {
    let is_builtin = args.replace_builtin == Some(true);
    let name = args.managed_by.as_deref().unwrap_or(managed_by::STINT);
    let base = match is_builtin {
        true => Config::default(),
        false => Config::managing(name).map_err(|error| format!("--managed-by {name}: {error}"))?,
    };
    let delays = BackoffDelays {
        base: args.pod_failure_backoff_base.unwrap_or(BackoffDelays::default().base),
        cap: args.pod_failure_backoff_max.unwrap_or(BackoffDelays::default().cap),
    };
    if delays.base > delays.cap {
        return Err("--pod-failure-backoff-base is longer than --pod-failure-backoff-max: \
                    make one of them fit the other"
            .to_owned());
    }
    let gates = args
        .feature_gates
        .unwrap_or_else(|| Gates { gates: Default::default(), text: String::new() });
    if !is_builtin && !gates.gates.enabled(Gate::JobManagedBy) {
        return Err("--feature-gates turns JobManagedBy off, without which no Job names its \
                    controller: leave it on, or use --replace-builtin"
            .to_owned());
    }
    let controller = Config {
        gates: gates.gates,
        delays,
        namespaces: args.namespace.iter().flatten().cloned().collect::<BTreeSet<String>>(),
        max_inflight: args.max_inflight.unwrap_or(MAX_IN_FLIGHT),
        qps: args.qps,
        ..base
    };
    let usual = LeaseTiming::default();
    let time = |given: Option<SignedDuration>, usual: Duration| {
        given.map_or(usual, |given| Duration::try_from(given).unwrap_or_default())
    };
    let lease = LeaseSettings {
        name: args.lease_name.unwrap_or_else(|| lease_name(&controller.manages)),
        namespace: args
            .lease_namespace
            .or_else(|| around.own_namespace.clone())
            .unwrap_or_else(|| LEASE_NAMESPACE.to_owned()),
        timing: LeaseTiming {
            duration: time(args.lease_duration, usual.duration),
            renew_deadline: time(args.renew_deadline, usual.renew_deadline),
            retry_period: time(args.retry_period, usual.retry_period),
        },
    };
    let is_elected = args.leader_elect.unwrap_or(true);
    if is_elected {
        lease.timing.check().map_err(|error| {
            format!("{error} (--lease-duration, --renew-deadline, --retry-period)")
        })?;
    }
    let mut settings = Settings {
        kubeconfig: args.kubeconfig,
        context: args.context,
        controller,
        lease: Some(lease),
        listen: args.listen.unwrap_or(Listen::Anywhere(PORT)),
        log_level: args.log_level.unwrap_or_default(),
        log_format: args.log_format.unwrap_or_default(),
        printed: String::new(),
    };
    settings.printed = settings.print(is_elected, &gates.text, sources);
    settings.lease = settings.lease.filter(|_| is_elected);
    Ok(settings)
}

impl Settings {
    /// All of it as a file that says the same.
    fn print(&self, is_elected: bool, gates: &str, sources: &[(String, &str)]) -> String {
        let Config { delays, max_inflight, qps, namespaces, manages, .. } = &self.controller;
        let lease = self.lease.as_ref().expect("it is there until it is known to be unused");
        let (managed_by, is_builtin) = match manages {
            ManagedBy::BuiltIn => (None, true),
            ManagedBy::External(name) => (Some(quoted(name)), false),
        };
        let namespaces: Vec<String> = namespaces.iter().map(|name| quoted(name)).collect();
        let word = |word: Option<clap::builder::PossibleValue>| {
            word.map(|word| word.get_name().to_owned()).unwrap_or_default()
        };
        let given = |text: &str| (!text.is_empty()).then(|| quoted(text));
        let time = |time: Duration| {
            Some(format!("{:#}", SignedDuration::try_from(time).unwrap_or_default()))
        };
        let value = |name: &str| match name {
            "kubeconfig" => self.kubeconfig.as_ref().map(|it| quoted(&it.display().to_string())),
            "context" => self.context.as_deref().map(quoted),
            "managed-by" => managed_by.clone(),
            "replace-builtin" => Some(is_builtin.to_string()),
            "namespace" => (!namespaces.is_empty()).then(|| format!("[{}]", namespaces.join(", "))),
            "leader-elect" => Some(is_elected.to_string()),
            "lease-name" => Some(quoted(&lease.name)),
            "lease-namespace" => Some(quoted(&lease.namespace)),
            "lease-duration" => time(lease.timing.duration),
            "renew-deadline" => time(lease.timing.renew_deadline),
            "retry-period" => time(lease.timing.retry_period),
            "pod-failure-backoff-base" => Some(format!("{:#}", delays.base)),
            "pod-failure-backoff-max" => Some(format!("{:#}", delays.cap)),
            "max-inflight" => Some(max_inflight.to_string()),
            "qps" => qps.map(|qps| qps.to_string()),
            "feature-gates" => given(gates),
            "listen" => Some(quoted(&self.listen.to_string())),
            "log-level" => Some(word(self.log_level.to_possible_value())),
            "log-format" => Some(word(self.log_format.to_possible_value())),
            _ => None,
        };
        let line = |(name, source): &(String, &str)| match value(name) {
            Some(value) => format!("{name}: {value} # {source}\n"),
            None => format!("# {name}: not set\n"),
        };
        sources.iter().map(line).collect()
    }
}

/// A text as YAML takes it for one, whatever is in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The Lease of those who run the same Jobs, and of nobody else.
fn lease_name(manages: &ManagedBy) -> String {
    match manages {
        ManagedBy::BuiltIn => format!("{LEASE_NAME}-builtin"),
        ManagedBy::External(name) if name == managed_by::STINT => LEASE_NAME.to_owned(),
        ManagedBy::External(name) => {
            let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            let plain: String = name.chars().map(|c| if is_fit(c) { c } else { '-' }).collect();
            // What is written alike for different names differs by their sum.
            let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
            format!("{LEASE_NAME}-{}-{hash:08x}", plain.trim_matches('-'))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn cli(arguments: &[&str]) -> ControllerArgs {
        Alone::try_parse_from(arguments).expect("the test's own arguments").args
    }

    fn gathered(
        arguments: &[&str],
        variables: &[(&str, &str)],
        file: &str,
    ) -> Result<Settings, String> {
        let mut config = tempfile::NamedTempFile::new().expect("a file");
        config.write_all(file.as_bytes()).expect("it can be written");
        let mut args = cli(arguments);
        args.config = Some(config.path().to_owned());
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        gather(args, &Surroundings { variable: &variable, own_namespace: None })
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_that_before_the_file() {
        let file = "max-inflight: 1\nqps: 1\nlog-level: debug\nnamespace: [a, b]\n";
        let variables = [("STINT_MAX_INFLIGHT", "2"), ("STINT_QPS", "2"), ("STINT_OTHER", "x")];
        let settings = gathered(&["--max-inflight=3"], &variables, file).expect("it is right");
        assert_eq!(settings.controller.max_inflight, 3);
        assert_eq!(settings.controller.qps, Some(2.0));
        assert_eq!(settings.log_level, LogLevel::Debug);
        assert_eq!(settings.controller.namespaces.len(), 2);
        for line in [
            "max-inflight: 3 # command line\n",
            "qps: 2 # environment\n",
            "namespace: [\"a\", \"b\"] # file\n",
            "lease-duration: 15s # default\n",
            "listen: \":8080\" # default\n",
            "# context: not set\n",
        ] {
            assert!(settings.printed.contains(line), "{line}{}", settings.printed);
        }
    }

    #[test]
    fn what_is_printed_says_the_same_again() {
        let arguments = ["--managed-by=acme.io/x", "--namespace=a", "--leader-elect=false"];
        let first = gathered(&arguments, &[], "listen: 'off'\n").expect("it is right");
        let second = gathered(&[], &[], &first.printed).expect("it is right");
        let bare = |text: &str| {
            let lines = text.lines().map(|line| line.split(" # ").next().unwrap_or_default());
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(bare(&first.printed), bare(&second.printed));
        assert!(first.lease.is_none() && second.lease.is_none());
        assert_eq!(second.listen, Listen::Off);
    }

    #[test]
    fn whose_jobs_are_run_is_one_thing_whoever_says_it() {
        let manages = |arguments: &[&str], variables: &[(&str, &str)], file: &str| {
            gathered(arguments, variables, file).expect("it is right").controller.manages
        };
        let acme = ManagedBy::External("acme.io/x".to_owned());
        let ours = ManagedBy::External(managed_by::STINT.to_owned());
        assert_eq!(manages(&[], &[], ""), ours);
        assert_eq!(
            manages(&["--replace-builtin"], &[], "managed-by: acme.io/x\n"),
            ManagedBy::BuiltIn
        );
        let variables = [("STINT_MANAGED_BY", "acme.io/x")];
        assert_eq!(manages(&[], &variables, "replace-builtin: true\n"), acme);
        assert_eq!(manages(&["--replace-builtin=false"], &[], ""), ours);
        let replace = [("STINT_REPLACE_BUILTIN", "true")];
        let file = "managed-by: acme.io/x\n";
        assert_eq!(manages(&["--replace-builtin=false"], &replace, file), acme);
        assert_eq!(manages(&[], &replace, file), ManagedBy::BuiltIn);
        let gates = "feature-gates: JobManagedBy=false\n";
        assert_eq!(manages(&["--replace-builtin"], &[], gates), ManagedBy::BuiltIn);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str, &'a str);
        let rows: [Row<'_>; 9] = [
            (&[], &[("STINT_QPS", "many")], "", "STINT_QPS: invalid value 'many'"),
            (&[], &[], "\nqps: many\n", "line 2: qps: invalid value 'many'"),
            (&[], &[], "max-inflite: 1\n", "did you mean \"max-inflight\"?"),
            (&[], &[], "managed-by: a.io/b\nreplace-builtin: true\n", "exclude each other"),
            (&["--managed-by=nobody"], &[], "", "domain-prefixed path"),
            (&["--managed-by=kubernetes.io/job-controller"], &[], "", "--replace-builtin"),
            (&["--lease-duration=5s"], &[], "", "longer than the renew deadline"),
            (&["--feature-gates=JobManagedBy=false"], &[], "", "turns JobManagedBy off"),
            (&["--pod-failure-backoff-base=1h"], &[], "", "--pod-failure-backoff-max"),
        ];
        for (arguments, variables, file, expected) in rows {
            let wrong = gathered(arguments, variables, file).expect_err(expected);
            assert!(wrong.contains(expected), "{expected}: {wrong}");
        }
    }

    #[test]
    fn who_runs_different_jobs_has_a_different_lease() {
        let external = |name: &str| ManagedBy::External(name.to_owned());
        let all = [
            ManagedBy::BuiltIn,
            external(managed_by::STINT),
            external("acme.io/x"),
            external("acme.io/X"),
            external("acme.io/~"),
        ];
        let names: BTreeSet<String> = all.iter().map(lease_name).collect();
        assert_eq!(names.len(), all.len());
        for name in names {
            assert!(stint_api::identifier::dns1123_subdomain(&name).is_empty(), "{name}");
        }
    }
}
