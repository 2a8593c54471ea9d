//! What is legal in a Job and may still surprise its author.
//!
//! Advice never makes a Job invalid. Each piece has a name, so that a team that has
//! made up its mind can silence it.

mod pod;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::closed_set::{CompletionMode, JobRestartPolicy, PodFailurePolicyAction};
use crate::feature_gates::{FeatureGates, Gate};
use crate::field_path::{FieldPath, Path};
use crate::identifier;
use crate::names::managed_by;

/// The names of all advice there is, for `--allow`.
pub const NAMES: &[&str] = &[
    BACKOFF_ON_FAILURE,
    pod::DEAD_VOLUME,
    pod::EMPTY_PULL_SECRET,
    ENDS_AT_ONCE,
    FEATURE_OFF,
    pod::FRACTIONAL_BYTES,
    pod::HIDDEN_ENV,
    IMAGE_IGNORED,
    MANAGED_ELSEWHERE,
    MANUAL_SELECTOR,
    NAME_NOT_DNS_LABEL,
    NAME_TAKEN,
    NEGATIVE_GRACE_PERIOD,
    NEVER_STARTS,
    NO_COMMAND,
    NO_JOB,
    PER_INDEX_ON_FAILURE,
    pod::REPEATED_PORT,
    pod::SELECTS_NO_POD,
    STATUS_IGNORED,
    UNCAPPED_COMPLETIONS,
    UNEXPANDED_VARIABLE,
];

const BACKOFF_ON_FAILURE: &str = "backoff-on-failure";
const ENDS_AT_ONCE: &str = "ends-at-once";
const FEATURE_OFF: &str = "feature-off";
/// The advice that is given once in all; it is about this machine, not the Job.
pub const IMAGE_IGNORED: &str = "image-ignored";
const MANAGED_ELSEWHERE: &str = "managed-elsewhere";
const MANUAL_SELECTOR: &str = "manual-selector";
const NAME_NOT_DNS_LABEL: &str = "name-not-dns-label";
const NAME_TAKEN: &str = "name-taken";
const NEGATIVE_GRACE_PERIOD: &str = "negative-grace-period";
const NEVER_STARTS: &str = "never-starts";
const NO_COMMAND: &str = "no-command";
/// For the inputs as a whole: nothing in them is a Job.
pub const NO_JOB: &str = "no-job";
const PER_INDEX_ON_FAILURE: &str = "per-index-on-failure";
const STATUS_IGNORED: &str = "status-ignored";
const UNCAPPED_COMPLETIONS: &str = "uncapped-completions";
const UNEXPANDED_VARIABLE: &str = "unexpanded-variable";

/// Above so many completions the lists of indexes in the status may outgrow an object.
const MANY_COMPLETIONS: i32 = 100_000;
/// Above so much parallelism Kubernetes itself warns of [`MANY_COMPLETIONS`].
const MUCH_PARALLELISM: i32 = 10_000;

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What it is called.
    pub name: &'static str,
    /// The field it is about.
    pub path: FieldPath,
    /// What may surprise.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Whether advice is about running the Job on this machine. To those who only check for
/// a cluster it means nothing.
pub fn is_about_this_machine(name: &str) -> bool {
    [IMAGE_IGNORED, NO_COMMAND].contains(&name)
}

/// Advice on a Job whose name another one has, earlier in the same file.
pub fn name_taken() -> Advice {
    let metadata = Path::field("metadata");
    Advice::new(
        NAME_TAKEN,
        &metadata.child("name"),
        "another Job of this name stands earlier in this file; only one of them can be created",
        "give each Job a name of its own, or use generateName",
    )
}

/// Advice on a Job as its author wrote it, before any default is set.
pub fn advise(job: &Job, gates: &FeatureGates) -> Vec<Advice> {
    let mut found = Vec::new();
    advise_on_name(job, &mut found);
    let path = Path::field("spec");
    if let Some(spec) = &job.spec {
        advise_on_features(spec, gates, &path, &mut found);
        advise_on_counts(spec, &path, &mut found);
        advise_on_failures(spec, &path, &mut found);
        advise_on_ownership(spec, &path, &mut found);
        if let Some(pod) = &spec.template.spec {
            let template = path.child("template");
            let path = template.child("spec");
            pod::advise(pod, &path, &mut found);
            advise_on_grace_period(pod, &path, &mut found);
            advise_on_containers(pod, &path, &mut found);
        }
    }
    if job.status.is_some() {
        found.push(Advice::new(
            STATUS_IGNORED,
            &Path::field("status"),
            "a new Job starts without a status: this one is dropped",
            "remove status from the manifest",
        ));
    }
    found
}

impl Advice {
    fn new(
        name: &'static str,
        path: &Path<'_>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { name, path: path.to_field_path(), message: message.into(), help: help.into() }
    }
}

/// The name that the API server would generate, with `x` for the characters it picks;
/// none if the Job has a name, or nothing to generate one from.
pub(crate) fn generated_name(meta: &ObjectMeta) -> Option<String> {
    const SUFFIX: &str = "xxxxx";
    /// The longest generateName that is used whole: 63 characters less the suffix.
    const MAX_PREFIX_BYTES: usize = 58;
    let has_name = meta.name.as_deref().is_some_and(|name| !name.is_empty());
    let prefix = meta.generate_name.as_deref().filter(|name| !has_name && !name.is_empty())?;
    Some(format!("{}{SUFFIX}", &prefix[..prefix.floor_char_boundary(MAX_PREFIX_BYTES)]))
}

fn advise_on_name(job: &Job, found: &mut Vec<Advice>) {
    let (field, name) = match generated_name(&job.metadata) {
        Some(name) => ("generateName", name),
        None => ("name", job.metadata.name.clone().unwrap_or_default()),
    };
    let wrong = identifier::dns1123_label(&name);
    // A name that is wrong altogether is an error, not a surprise.
    if name.is_empty() || wrong.is_empty() || !identifier::dns1123_subdomain(&name).is_empty() {
        return;
    }
    let metadata = Path::field("metadata");
    found.push(Advice::new(
        NAME_NOT_DNS_LABEL,
        &metadata.child(field),
        "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended",
        "use lower case letters, digits and '-' only, at most 63 of them",
    ));
}

/// Fields that a gate which is off drops from a new Job.
fn advise_on_features(
    spec: &JobSpec,
    gates: &FeatureGates,
    path: &Path<'_>,
    found: &mut Vec<Advice>,
) {
    for (gate, name, is_set) in [
        (Gate::JobManagedBy, "managedBy", spec.managed_by.is_some()),
        (Gate::JobSuccessPolicy, "successPolicy", spec.success_policy.is_some()),
        (
            Gate::JobBackoffLimitPerIndex,
            "backoffLimitPerIndex",
            spec.backoff_limit_per_index.is_some(),
        ),
        (Gate::JobBackoffLimitPerIndex, "maxFailedIndexes", spec.max_failed_indexes.is_some()),
        (
            Gate::JobPodReplacementPolicy,
            "podReplacementPolicy",
            spec.pod_replacement_policy.is_some(),
        ),
    ] {
        if is_set && !gates.enabled(gate) {
            found.push(Advice::new(
                FEATURE_OFF,
                &path.child(name),
                format!("dropped from the Job: the feature gate {} is off", gate.name()),
                format!("turn {} on, or remove the field", gate.name()),
            ));
        }
    }
    advise_on_fail_index(spec, gates, path, found);
    if let Some(pod) = &spec.template.spec {
        let template = path.child("template");
        advise_on_pod_features(pod, &template.child("spec"), found);
    }
}

fn advise_on_fail_index(
    spec: &JobSpec,
    gates: &FeatureGates,
    path: &Path<'_>,
    found: &mut Vec<Advice>,
) {
    let gate = Gate::JobBackoffLimitPerIndex;
    let Some(policy) = spec.pod_failure_policy.as_ref().filter(|_| !gates.enabled(gate)) else {
        return;
    };
    let policy_path = path.child("podFailurePolicy");
    let rules = policy_path.child("rules");
    for (index, rule) in policy.rules.iter().enumerate() {
        if rule.action == PodFailurePolicyAction::FailIndex.as_str() {
            let here = rules.index(index);
            found.push(Advice::new(
                FEATURE_OFF,
                &here.child("action"),
                format!(
                    "this rule is dropped from the Job: the feature gate {} is off",
                    gate.name()
                ),
                format!("turn {} on, or use another action", gate.name()),
            ));
        }
    }
}

/// Fields of Pods that Kubernetes 1.36 drops unless a feature is turned on.
fn advise_on_pod_features(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    let mut dropped = |here: &Path<'_>| {
        let message =
            "dropped from the Job: the feature is off in Kubernetes 1.36 unless turned on";
        found.push(Advice::new(FEATURE_OFF, here, message, "remove the field"));
    };
    if pod.scheduling_group.is_some() {
        dropped(&path.child("schedulingGroup"));
    }
    for_each_container(pod, path, |container, here| {
        if container.lifecycle.as_ref().is_some_and(|lifecycle| lifecycle.stop_signal.is_some()) {
            dropped(&here.child("lifecycle").child("stopSignal"));
        }
    });
    let volumes = path.child("volumes");
    for (index, volume) in pod.volumes.iter().flatten().enumerate() {
        let sources =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        let volume_path = volumes.index(index);
        let projected = volume_path.child("projected");
        let list = projected.child("sources");
        for (index, source) in sources.enumerate() {
            let here = list.index(index);
            if source.cluster_trust_bundle.is_some() {
                dropped(&here.child("clusterTrustBundle"));
            }
            if source.pod_certificate.is_some() {
                dropped(&here.child("podCertificate"));
            }
        }
    }
}

fn advise_on_counts(spec: &JobSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    if spec.parallelism == Some(0) && spec.completions != Some(0) && spec.suspend != Some(true) {
        found.push(Advice::new(
            NEVER_STARTS,
            &path.child("parallelism"),
            "a Job with a parallelism of 0 creates no Pods until it is raised",
            "to hold a Job back, suspend: true says so",
        ));
    }
    if spec.active_deadline_seconds == Some(0) {
        found.push(Advice::new(
            ENDS_AT_ONCE,
            &path.child("activeDeadlineSeconds"),
            "a Job with a deadline of 0 seconds fails as soon as it starts",
            "leave activeDeadlineSeconds out for no deadline",
        ));
    }
    let indexed = spec.completion_mode.as_deref() == Some(CompletionMode::Indexed.as_str());
    if indexed
        && spec.completions.is_some_and(|count| count > MANY_COMPLETIONS)
        && spec.max_failed_indexes.is_none()
    {
        let even_kubernetes_warns = spec.parallelism.is_some_and(|count| count > MUCH_PARALLELISM);
        let message = if even_kubernetes_warns {
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        } else {
            "with more than 100000 completions and no cap on failed indexes, the lists of indexes in the status can outgrow what an object may hold"
        };
        found.push(Advice::new(
            UNCAPPED_COMPLETIONS,
            &path.child("completions"),
            message,
            "set backoffLimitPerIndex and maxFailedIndexes (at most 10000), or split the Job",
        ));
    }
}

fn advise_on_failures(spec: &JobSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    let policy = spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref());
    if policy != Some(JobRestartPolicy::OnFailure.as_str()) {
        return;
    }
    if spec.backoff_limit.is_some() {
        found.push(Advice::new(
            BACKOFF_ON_FAILURE,
            &path.child("backoffLimit"),
            "with restartPolicy OnFailure the restarts of running Pods count too, and the Pod is killed, with its logs, when the limit is reached",
            "use restartPolicy: Never to keep failed Pods and count exactly",
        ));
    }
    if spec.backoff_limit_per_index.is_some() {
        found.push(Advice::new(
            PER_INDEX_ON_FAILURE,
            &path.child("backoffLimitPerIndex"),
            "with restartPolicy OnFailure containers are restarted in their Pod without end, and those restarts do not count for the index",
            "use restartPolicy: Never",
        ));
    }
}

fn advise_on_ownership(spec: &JobSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    if spec.manual_selector == Some(true) {
        found.push(Advice::new(
            MANUAL_SELECTOR,
            &path.child("manualSelector"),
            "a selector set by hand can match the Pods of other Jobs, which this Job then adopts and counts",
            "leave selector and manualSelector out: a unique selector is generated",
        ));
    }
    if let Some(manager) = spec.managed_by.as_deref()
        && ![managed_by::BUILT_IN, managed_by::STINT].contains(&manager)
    {
        found.push(Advice::new(
            MANAGED_ELSEWHERE,
            &path.child("managedBy"),
            format!("only the controller {manager:?} runs this Job; everyone else leaves it alone"),
            "leave managedBy out unless that controller is installed",
        ));
    }
}

fn advise_on_grace_period(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    if pod.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        found.push(Advice::new(
            NEGATIVE_GRACE_PERIOD,
            &path.child("terminationGracePeriodSeconds"),
            "a negative grace period is accepted, and then raised to 1 second",
            "set the seconds a container may take to end after SIGTERM",
        ));
    }
}

fn advise_on_containers(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    for_each_container(pod, path, |container, here| advise_on_container(container, here, found));
}

/// Init containers first, as they run.
fn for_each_container(pod: &PodSpec, path: &Path<'_>, mut look: impl FnMut(&Container, &Path<'_>)) {
    let init_containers = pod.init_containers.as_deref().unwrap_or_default();
    for (list, containers) in
        [("initContainers", init_containers), ("containers", &pod.containers[..])]
    {
        let list = path.child(list);
        for (index, container) in containers.iter().enumerate() {
            look(container, &list.index(index));
        }
    }
}

fn advise_on_container(container: &Container, path: &Path<'_>, found: &mut Vec<Advice>) {
    let command = container.command.as_deref().unwrap_or_default();
    let image = path.child("image");
    if container.image.is_some() && command.is_empty() {
        found.push(Advice::new(
            NO_COMMAND,
            &image,
            "without a command, what runs is known to the image alone, which is not used on this machine",
            "set command to run this Job without a cluster",
        ));
    } else if container.image.is_some() {
        found.push(Advice::new(
            IMAGE_IGNORED,
            &image,
            "images are ignored on this machine: a container's command runs as a process here",
            "nothing to do for a cluster; here, the command must be installed",
        ));
    }
    // A shell expands variables itself; without a command nobody knows what runs.
    if command.first().is_none_or(|program| is_shell(program)) {
        return;
    }
    for (list, words) in [("command", command), ("args", container.args.as_deref().unwrap_or(&[]))]
    {
        let list = path.child(list);
        for (index, word) in words.iter().enumerate() {
            if let Some(name) = shell_variable(word) {
                found.push(Advice::new(
                    UNEXPANDED_VARIABLE,
                    &list.index(index),
                    format!("passed on as it is: only a shell expands {word}"),
                    format!("write $({name}), which Kubernetes expands itself"),
                ));
            }
        }
    }
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"].contains(&name)
}

/// The variable in a word that is nothing but one: `$NAME` or `${NAME}`.
fn shell_variable(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('$')?;
    let name = match rest.strip_prefix('{') {
        Some(braced) => braced.strip_suffix('}')?,
        None => rest,
    };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The advice on a Job with this spec, as `name path`.
    fn advice(spec: Value) -> Vec<String> {
        advice_on(json!({"metadata": {"name": "x"}, "spec": spec}), &FeatureGates::default())
    }

    fn advice_on(job: Value, gates: &FeatureGates) -> Vec<String> {
        let job: Job = serde_json::from_value(job).expect("the test's own Job is well typed");
        let found = advise(&job, gates);
        assert!(found.iter().all(|advice| NAMES.contains(&advice.name)));
        found.iter().map(|advice| format!("{} {}", advice.name, advice.path)).collect()
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn a_plain_job_surprises_nobody() {
        assert_eq!(advice(json!({"completions": 3, "parallelism": 2})), none());
    }

    #[test]
    fn completions_without_a_cap() {
        let spec =
            |completions: i32| json!({"completionMode": "Indexed", "completions": completions});
        assert_eq!(advice(spec(100_001)), ["uncapped-completions spec.completions"]);
        assert_eq!(advice(spec(100_000)), none());
        let capped = json!({"completionMode": "Indexed", "completions": 100_001,
                            "backoffLimitPerIndex": 1, "maxFailedIndexes": 10});
        assert_eq!(advice(capped), none());
        assert_eq!(advice(json!({"completions": 100_001})), none());
    }

    #[test]
    fn limits_with_restarts_on_failure() {
        let spec = |policy: &str| {
            json!({"backoffLimit": 3, "backoffLimitPerIndex": 1,
                   "template": {"spec": {"restartPolicy": policy, "containers": []}}})
        };
        assert_eq!(
            advice(spec("OnFailure")),
            [
                "backoff-on-failure spec.backoffLimit",
                "per-index-on-failure spec.backoffLimitPerIndex"
            ]
        );
        assert_eq!(advice(spec("Never")), none());
    }

    #[test]
    fn a_name_that_is_no_dns_label() {
        let on =
            |name: &str| advice_on(json!({"metadata": {"name": name}}), &FeatureGates::default());
        assert_eq!(on("a.b"), ["name-not-dns-label metadata.name"]);
        assert_eq!(on("a-b"), none());
        assert_eq!(on("A_b"), none(), "an invalid name is an error, not advice");
        let generated = json!({"metadata": {"generateName": "a.b-"}});
        assert_eq!(
            advice_on(generated, &FeatureGates::default()),
            ["name-not-dns-label metadata.generateName"]
        );
    }

    #[test]
    fn a_selector_by_hand_and_another_manager() {
        assert_eq!(
            advice(json!({"manualSelector": true, "managedBy": "example.com/x"})),
            ["manual-selector spec.manualSelector", "managed-elsewhere spec.managedBy"]
        );
        assert_eq!(
            advice(json!({"manualSelector": false, "managedBy": "stint.dev/job-controller"})),
            none()
        );
    }

    #[test]
    fn jobs_that_never_start_or_end_at_once() {
        assert_eq!(advice(json!({"parallelism": 0})), ["never-starts spec.parallelism"]);
        assert_eq!(advice(json!({"parallelism": 0, "suspend": true})), none());
        assert_eq!(
            advice(json!({"activeDeadlineSeconds": 0})),
            ["ends-at-once spec.activeDeadlineSeconds"]
        );
    }

    #[test]
    fn a_field_whose_gate_is_off() {
        let job = json!({"spec": {"successPolicy": {"rules": []}, "managedBy": "stint.dev/job-controller"}});
        let gates = FeatureGates::default().with(Gate::JobSuccessPolicy, false);
        assert_eq!(advice_on(job, &gates), ["feature-off spec.successPolicy"]);
        let rules = json!([{"action": "Ignore"}, {"action": "FailIndex"}]);
        let job = json!({"spec": {"podFailurePolicy": {"rules": rules}}});
        let gates = FeatureGates::default().with(Gate::JobBackoffLimitPerIndex, false);
        assert_eq!(
            advice_on(job.clone(), &gates),
            ["feature-off spec.podFailurePolicy.rules[1].action"]
        );
        assert_eq!(advice_on(job, &FeatureGates::default()), none());
    }

    #[test]
    fn a_field_that_kubernetes_drops_by_itself() {
        let pod = json!({
            "schedulingGroup": {},
            "containers": [{"name": "a", "lifecycle": {"stopSignal": "SIGHUP"}}],
            "volumes": [{"name": "v", "projected": {"sources": [
                {"clusterTrustBundle": {"path": "x"}},
                {"podCertificate": {"keyType": "x", "signerName": "x"}},
            ]}}],
        });
        let at = |path: &str| format!("feature-off spec.template.spec.{path}");
        assert_eq!(
            advice(json!({"template": {"spec": pod}})),
            [
                at("schedulingGroup"),
                at("containers[0].lifecycle.stopSignal"),
                at("volumes[0].projected.sources[0].clusterTrustBundle"),
                at("volumes[0].projected.sources[1].podCertificate"),
            ]
        );
    }

    #[test]
    fn images_and_commands() {
        let spec = json!({"template": {"spec": {
            "initContainers": [{"name": "i", "image": "x"}],
            "containers": [{"name": "a", "image": "x", "command": ["true"]}],
        }}});
        assert_eq!(
            advice(spec),
            [
                "no-command spec.template.spec.initContainers[0].image",
                "image-ignored spec.template.spec.containers[0].image"
            ]
        );
    }

    #[test]
    fn variables_that_only_a_shell_expands() {
        let with = |command: Value, args: Value| {
            let container = json!({"name": "a", "command": command, "args": args});
            advice(json!({"template": {"spec": {"containers": [container]}}}))
        };
        assert_eq!(
            with(json!(["./process", "--index", "$JOB_COMPLETION_INDEX"]), json!(["${X}"])),
            [
                "unexpanded-variable spec.template.spec.containers[0].command[2]",
                "unexpanded-variable spec.template.spec.containers[0].args[0]"
            ]
        );
        assert_eq!(with(json!(["/bin/sh", "-c", "echo $X", "$X"]), json!([])), none());
        assert_eq!(
            with(json!(["./process", "$(X)", "$", "$1", "$5.00", "a$X"]), json!([])),
            none()
        );
        assert_eq!(with(json!([]), json!(["$X"])), none());
    }

    #[test]
    fn a_negative_grace_period() {
        let spec = |seconds: i64| {
            let pod = json!({"terminationGracePeriodSeconds": seconds, "containers": []});
            json!({"template": {"spec": pod}})
        };
        let path = "spec.template.spec.terminationGracePeriodSeconds";
        assert_eq!(advice(spec(-1)), [format!("negative-grace-period {path}")]);
        assert_eq!(advice(spec(0)), none());
    }

    #[test]
    fn a_status_in_a_manifest() {
        let job = json!({"metadata": {"name": "x"}, "status": {"active": 1}});
        assert_eq!(advice_on(job, &FeatureGates::default()), ["status-ignored status"]);
    }
}
