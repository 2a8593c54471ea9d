//! Jobs.

use super::Type::{Atomic, Bool, Int32, Int64, Object, Text, Time};
use super::meta::LABEL_SELECTOR;
use super::pod::POD_TEMPLATE_SPEC;
use super::{METADATA, Message, always, list, nonzero, one, set, shown};

pub(super) const JOB: Message =
    &[METADATA, always(2, "spec", Object(JOB_SPEC)), always(3, "status", Object(JOB_STATUS))];

const JOB_SPEC: Message = &[
    one(1, "parallelism", Int32),
    one(2, "completions", Int32),
    one(3, "activeDeadlineSeconds", Int64),
    one(4, "selector", Atomic(LABEL_SELECTOR)),
    one(5, "manualSelector", Bool),
    always(6, "template", Object(POD_TEMPLATE_SPEC)),
    one(7, "backoffLimit", Int32),
    one(8, "ttlSecondsAfterFinished", Int32),
    one(9, "completionMode", Text),
    one(10, "suspend", Bool),
    one(11, "podFailurePolicy", Object(POD_FAILURE_POLICY)),
    one(12, "backoffLimitPerIndex", Int32),
    one(13, "maxFailedIndexes", Int32),
    one(14, "podReplacementPolicy", Text),
    one(15, "managedBy", Text),
    one(16, "successPolicy", Object(SUCCESS_POLICY)),
];

const POD_FAILURE_POLICY: Message = &[shown(list(1, "rules", Object(POD_FAILURE_POLICY_RULE)))];

const POD_FAILURE_POLICY_RULE: Message = &[
    always(1, "action", Text),
    one(2, "onExitCodes", Object(POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)),
    list(3, "onPodConditions", Object(POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN)),
];

const POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Message =
    &[one(1, "containerName", Text), always(2, "operator", Text), shown(set(3, "values", Int32))];

const POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Message =
    &[always(1, "type", Text), always(2, "status", Text)];

const SUCCESS_POLICY: Message = &[shown(list(1, "rules", Object(SUCCESS_POLICY_RULE)))];

const SUCCESS_POLICY_RULE: Message =
    &[one(1, "succeededIndexes", Text), one(2, "succeededCount", Int32)];

const JOB_STATUS: Message = &[
    list(1, "conditions", Object(JOB_CONDITION)),
    one(2, "startTime", Time),
    one(3, "completionTime", Time),
    nonzero(4, "active", Int32),
    nonzero(5, "succeeded", Int32),
    nonzero(6, "failed", Int32),
    nonzero(7, "completedIndexes", Text),
    one(8, "uncountedTerminatedPods", Object(UNCOUNTED_TERMINATED_PODS)),
    one(9, "ready", Int32),
    one(10, "failedIndexes", Text),
    one(11, "terminating", Int32),
];

const JOB_CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    always(3, "lastProbeTime", Time),
    always(4, "lastTransitionTime", Time),
    nonzero(5, "reason", Text),
    nonzero(6, "message", Text),
];

const UNCOUNTED_TERMINATED_PODS: Message = &[set(1, "succeeded", Text), set(2, "failed", Text)];
