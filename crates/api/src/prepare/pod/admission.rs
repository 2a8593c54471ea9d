//! What the admission plugins that kube-apiserver runs by default add to a Pod.
//!
//! They are judged without knowing other objects: a service account, a priority class or
//! a runtime class that a Pod names is taken to be there, and to agree with the Pod.
//! kube-apiserver refuses what is not there. Only the two priority classes of the system
//! are known.

use k8s_openapi::api::core::v1::{Pod, PodSpec, Toleration};

use crate::names::annotation::MIRROR;

const DEFAULT_SERVICE_ACCOUNT: &str = "default";
const PREEMPT_LOWER_PRIORITY: &str = "PreemptLowerPriority";
/// The taints of a node that is lost, which a Pod bears for a while.
const NODE_LOST_TAINTS: [&str; 2] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const NODE_LOST_SECONDS: i64 = 300;
const NO_EXECUTE: &str = "NoExecute";

/// Why a Pod was not admitted. kube-apiserver answers Forbidden with this message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The Pod names a priority that is not that of its class.
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    Priority {
        /// What the Pod says.
        given: i32,
        /// What its class says.
        computed: i32,
    },
    /// The Pod names a preemption policy that is not that of its class.
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given PriorityClass name"
    )]
    PreemptionPolicy {
        /// What the Pod says.
        given: String,
        /// What its class says.
        computed: &'static str,
    },
    /// A mirror Pod is not the API's to give a service account.
    #[error("a mirror pod may not reference service accounts")]
    MirrorServiceAccount,
    /// A mirror Pod has no service account to have a token of.
    #[error("a mirror pod may not use ServiceAccountToken volume projections")]
    MirrorToken,
}

/// Adds what a new Pod gets on admission: the service account `default`, its priority
/// and preemption policy, and that it bears a lost node for five minutes.
///
/// No token of the service account is mounted: there is nobody here who issues one.
pub fn admit_pod(pod: &mut Pod) -> Result<(), AdmissionError> {
    let annotations = pod.metadata.annotations.as_ref();
    let is_mirror = annotations.is_some_and(|annotations| annotations.contains_key(MIRROR));
    let spec = pod.spec.get_or_insert_default();
    if is_mirror {
        judge_mirror(spec)?;
    } else {
        default_service_account(spec);
    }
    settle_priority(spec)?;
    bear_lost_nodes(spec);
    Ok(())
}

/// Adds to an update what the Pod got on admission, where the request leaves it out.
pub fn admit_pod_update(new: &mut Pod, old: &Pod) {
    let spec = new.spec.get_or_insert_default();
    if let Some(old) = &old.spec {
        spec.priority = spec.priority.or(old.priority);
        if spec.preemption_policy.is_none() {
            spec.preemption_policy.clone_from(&old.preemption_policy);
        }
    }
    bear_lost_nodes(spec);
}

fn default_service_account(spec: &mut PodSpec) {
    if spec.service_account_name.as_deref().unwrap_or("").is_empty() {
        spec.service_account_name = Some(DEFAULT_SERVICE_ACCOUNT.to_owned());
        spec.service_account = Some(DEFAULT_SERVICE_ACCOUNT.to_owned());
    }
}

/// Whether a mirror Pod refers to secrets, which it may not either, is not looked into.
fn judge_mirror(spec: &PodSpec) -> Result<(), AdmissionError> {
    if !spec.service_account_name.as_deref().unwrap_or("").is_empty() {
        return Err(AdmissionError::MirrorServiceAccount);
    }
    let projected = spec.volumes.iter().flatten().filter_map(|volume| volume.projected.as_ref());
    let mut sources = projected.flat_map(|projected| projected.sources.iter().flatten());
    if sources.any(|source| source.service_account_token.is_some()) {
        return Err(AdmissionError::MirrorToken);
    }
    Ok(())
}

fn settle_priority(spec: &mut PodSpec) -> Result<(), AdmissionError> {
    let computed = match spec.priority_class_name.as_deref().unwrap_or("") {
        "" => 0,
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => {
            // What the class would say is not known, so that what the Pod says holds.
            spec.priority.get_or_insert(0);
            spec.preemption_policy.get_or_insert_with(|| PREEMPT_LOWER_PRIORITY.to_owned());
            return Ok(());
        }
    };
    let given = *spec.priority.get_or_insert(computed);
    if given != computed {
        return Err(AdmissionError::Priority { given, computed });
    }
    let computed = PREEMPT_LOWER_PRIORITY;
    let given = spec.preemption_policy.get_or_insert_with(|| computed.to_owned());
    if given != computed {
        return Err(AdmissionError::PreemptionPolicy { given: given.clone(), computed });
    }
    Ok(())
}

fn bear_lost_nodes(spec: &mut PodSpec) {
    let given = spec.tolerations.as_deref().unwrap_or_default();
    let missing =
        NODE_LOST_TAINTS.map(|taint| (!given.iter().any(|own| bears(own, taint))).then_some(taint));
    for taint in missing.into_iter().flatten() {
        spec.tolerations.get_or_insert_default().push(Toleration {
            key: Some(taint.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(NO_EXECUTE.to_owned()),
            toleration_seconds: Some(NODE_LOST_SECONDS),
            ..Toleration::default()
        });
    }
}

/// Whether a toleration speaks of this taint, whatever it says of it.
fn bears(toleration: &Toleration, taint: &str) -> bool {
    let is_or_empty = |field: &Option<String>, value: &str| {
        field.as_deref().is_none_or(|field| field.is_empty() || field == value)
    };
    is_or_empty(&toleration.key, taint) && is_or_empty(&toleration.effect, NO_EXECUTE)
}
