//! What to do about an error of validation, where that can be said.
//!
//! A remedy belongs to a rule: it is found by the kind of the error, the full path of
//! the field and, where several rules share those, by the reason, which is a constant
//! of the rule.

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::closed_set::JobRestartPolicy;
use crate::decode::suggest::closest;
use crate::field_error::{ErrorKind, FieldError};
use crate::field_path::{FieldPath, Segment};
use crate::identifier;
use crate::index_set::IndexSetError;
use crate::validation::job::{
    NO_HOSTNAME, REQUIRES_INDEXED, SELECTOR_DOES_NOT_MATCH, SELECTOR_NOT_GENERATED,
};
use crate::validation::pod_failure_policy::{
    BOTH_CONDITIONS, NO_CONDITION, NOT_ORDERED, REQUIRES_LIMIT_PER_INDEX,
};

/// A remedy for this error, in a few words.
pub fn remedy(error: &FieldError) -> Option<String> {
    let at = shape(&error.path);
    did_you_mean(error, &at)
        .map(|meant| format!("did you mean {meant:?}?"))
        .or_else(|| by_value(error, &at).map(str::to_owned))
        .or_else(|| find(error, &at).map(|remedy| remedy.help.to_owned()))
}

/// What to do about the errors of one rule.
#[derive(Debug)]
struct Remedy {
    kind: ErrorKind,
    /// The field, as [`shape`] writes it.
    at: &'static str,
    /// A part of the error's detail; empty if the kind and the field tell enough.
    because: &'static str,
    help: &'static str,
}

const RESTART_POLICY: &str = "spec.template.spec.restartPolicy";
const SUCCEEDED_INDEXES: &str = "spec.successPolicy.rules[].succeededIndexes";
const FAILURE_RULE: &str = "spec.podFailurePolicy.rules[]";
const EXIT_CODE: &str = "spec.podFailurePolicy.rules[].onExitCodes.values[]";
const LIMITS: &str = "spec.template.spec.containers[].resources.limits[*]";
const REQUESTS: &str = "spec.template.spec.containers[].resources.requests[*]";
const ENV_NAME: &str = "spec.template.spec.containers[].env[].name";
const MISSING_VOLUME: &str = "spec.template.spec.volumes needs a valid volume of this name";

const GENERATE_NAME: &str = "metadata.generateName";
/// The fields that hold a DNS name of the author's choice.
const DNS_NAMES: [&str; 3] =
    ["metadata.name", "spec.template.spec.volumes[].name", "spec.template.spec.containers[].name"];

/// The remedies; the first that fits is taken.
static REMEDIES: &[Remedy] = &[
    // The object.
    required(
        "metadata.name",
        "add a name, or a generateName such as job- to have the rest made up",
    ),
    invalid_as(
        "metadata.name",
        NO_HOSTNAME,
        "Pods are called NAME-INDEX, which must be a DNS label of at most 63 characters: use a shorter name without dots",
    ),
    invalid("metadata.name", "use lower case letters, digits and '-', at most 63 of them"),
    // How many Pods, and how often.
    required("spec.completions", "set completions to the number of indexes"),
    required(
        "spec.backoffLimitPerIndex",
        "set backoffLimitPerIndex to the retries an index may have, or remove maxFailedIndexes",
    ),
    required("spec.maxFailedIndexes", "set maxFailedIndexes to at most 10000"),
    invalid_as("spec.backoffLimitPerIndex", REQUIRES_INDEXED, "set completionMode: Indexed"),
    invalid_as("spec.maxFailedIndexes", REQUIRES_INDEXED, "set completionMode: Indexed"),
    invalid_as("spec.successPolicy", REQUIRES_INDEXED, "set completionMode: Indexed"),
    invalid(
        "spec.managedBy",
        "write DOMAIN/NAME, or remove managedBy to leave the Job to the built-in controller",
    ),
    Remedy {
        kind: ErrorKind::NotSupported,
        at: "spec.podReplacementPolicy",
        because: "",
        help: "use Failed; TerminatingOrFailed is for Jobs without a podFailurePolicy",
    },
    // The selector.
    required("spec.selector", "set a selector, or remove manualSelector to have one generated"),
    invalid_as(
        "spec.selector",
        SELECTOR_NOT_GENERATED,
        "remove the selector: a unique one is generated, unless manualSelector is true",
    ),
    invalid_as(
        "spec.template.metadata.labels",
        SELECTOR_DOES_NOT_MATCH,
        "give the template the labels that the selector asks for",
    ),
    invalid(
        "spec.template.metadata.labels[*]",
        "remove this label: it is generated, unless manualSelector is true",
    ),
    invalid(
        "spec.template.labels",
        "labels take up to 63 letters, digits, '-', '_' and '.'; the Job's name becomes one of its Pods' labels",
    ),
    // The policies.
    invalid_as(
        "spec.podFailurePolicy.rules[].action",
        REQUIRES_LIMIT_PER_INDEX,
        "set backoffLimitPerIndex, or use the action FailJob",
    ),
    invalid_as(
        FAILURE_RULE,
        BOTH_CONDITIONS,
        "keep one of onExitCodes and onPodConditions, and make another rule of the other",
    ),
    invalid_as(FAILURE_RULE, NO_CONDITION, "add onExitCodes or onPodConditions"),
    invalid_as(
        "spec.podFailurePolicy.rules[].onExitCodes.values",
        NOT_ORDERED,
        "list the values from the lowest to the highest",
    ),
    invalid(EXIT_CODE, "leave 0 out: a container that exits with it has not failed"),
    Remedy {
        kind: ErrorKind::Duplicate,
        at: EXIT_CODE,
        because: "",
        help: "list each exit code once",
    },
    required("spec.successPolicy.rules[]", "set succeededIndexes, succeededCount or both"),
    invalid_as(
        SUCCEEDED_INDEXES,
        IndexSetError::NOT_INCREASING,
        "list each index once, from the lowest to the highest, as in \"1,3-5,7\"",
    ),
    invalid_as(
        SUCCEEDED_INDEXES,
        IndexSetError::TOO_LARGE,
        "indexes go from 0 to one below completions",
    ),
    invalid(
        SUCCEEDED_INDEXES,
        "write indexes and intervals with commas between, as in \"1,3-5,7\"",
    ),
    // The Pod.
    required(
        RESTART_POLICY,
        "set restartPolicy: Never (a failed Pod is replaced) or OnFailure (its containers are restarted)",
    ),
    invalid(RESTART_POLICY, "set restartPolicy: Never"),
    Remedy {
        kind: ErrorKind::NotSupported,
        at: RESTART_POLICY,
        because: "",
        help: "a Job takes Never or OnFailure",
    },
    required("spec.template.spec.containers", "add at least one container"),
    Remedy {
        kind: ErrorKind::Duplicate,
        at: "spec.template.spec.volumes[].name",
        because: "",
        help: "give each volume a name of its own",
    },
    // Containers and init containers.
    required("spec.template.spec.containers[].name", "add a name, such as main"),
    Remedy {
        kind: ErrorKind::Duplicate,
        at: "spec.template.spec.containers[].name",
        because: "",
        help: "give each container a name of its own, init containers too",
    },
    required(
        "spec.template.spec.containers[].image",
        "name an image; it is not used on this machine, but a Job without one is not valid",
    ),
    Remedy {
        kind: ErrorKind::NotFound,
        at: "spec.template.spec.containers[].volumeMounts[].name",
        because: "",
        help: MISSING_VOLUME,
    },
    Remedy {
        kind: ErrorKind::NotFound,
        at: "spec.template.spec.containers[].volumeDevices[].name",
        because: "",
        help: MISSING_VOLUME,
    },
    invalid(
        "spec.template.spec.containers[].resources.requests",
        "change one of the two, or remove the request: it is then the same as the limit",
    ),
    required(
        "spec.template.spec.containers[].resources.limits",
        "set a limit of the same amount as the request",
    ),
];

const fn required(at: &'static str, help: &'static str) -> Remedy {
    Remedy { kind: ErrorKind::Required, at, because: "", help }
}

const fn invalid(at: &'static str, help: &'static str) -> Remedy {
    invalid_as(at, "", help)
}

/// For a field of which several things can be wrong.
const fn invalid_as(at: &'static str, because: &'static str, help: &'static str) -> Remedy {
    Remedy { kind: ErrorKind::Invalid, at, because, help }
}

fn find(error: &FieldError, at: &str) -> Option<&'static Remedy> {
    REMEDIES.iter().find(|remedy| {
        remedy.kind == error.kind && remedy.at == at && error.detail.contains(remedy.because)
    })
}

/// The path with `[]` for any position of a list and `[*]` for any key of a map. An
/// init container is a container: its fields have the same remedies.
fn shape(path: &FieldPath) -> String {
    let mut text = String::new();
    for segment in path.segments() {
        match segment {
            Segment::Field(name) if text.is_empty() => text.push_str(name),
            Segment::Field(name) => {
                let is_init = text == "spec.template.spec" && name == "initContainers";
                text.push('.');
                text.push_str(if is_init { "containers" } else { name });
            }
            Segment::Index(_) => text.push_str("[]"),
            Segment::Key(_) => text.push_str("[*]"),
        }
    }
    text
}

/// The remedy where the value tells what is wrong.
fn by_value(error: &FieldError, at: &str) -> Option<&'static str> {
    let value = error.value.as_ref()?.as_str()?;
    match at {
        ENV_NAME if value.contains('=') => {
            Some("write NAME=VALUE as two fields, name: NAME and value: VALUE")
        }
        // The rules on names of resources print the name, those on amounts the amount.
        LIMITS | REQUESTS if error.path.segments().last()? == &Segment::Key(value.to_owned()) => {
            Some(
                "use cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain such as nvidia.com/gpu",
            )
        }
        _ => None,
    }
}

/// What was probably meant by the value.
fn did_you_mean(error: &FieldError, at: &str) -> Option<String> {
    let Some(Value::String(value)) = &error.value else {
        return None;
    };
    match error.kind {
        ErrorKind::NotSupported => {
            let supported = error.supported.iter().map(String::as_str);
            // What a Pod may have and a Job's Pod may not is no help.
            let supported = supported
                .filter(|name| at != RESTART_POLICY || JobRestartPolicy::parse(name).is_some());
            closest(value, supported).map(str::to_owned)
        }
        ErrorKind::Invalid if at == GENERATE_NAME => Some(as_dns_label(value)? + "-"),
        ErrorKind::Invalid if DNS_NAMES.contains(&at) => as_dns_label(value),
        ErrorKind::Invalid
        | ErrorKind::Required
        | ErrorKind::Duplicate
        | ErrorKind::Forbidden
        | ErrorKind::TooLong
        | ErrorKind::TooMany
        | ErrorKind::NotFound
        | ErrorKind::TypeInvalid
        | ErrorKind::Internal => None,
    }
}

/// The name in lower case, with a dash for what a DNS label has no place for: `my-job`
/// for `My_Job`. Nothing if letters would get lost, if that is no label either, or no
/// change.
fn as_dns_label(name: &str) -> Option<String> {
    if !name.is_ascii() {
        return None;
    }
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let label = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    (label != name && identifier::dns1123_label(&label).is_empty()).then_some(label)
}
