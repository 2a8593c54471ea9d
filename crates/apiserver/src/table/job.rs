//! Jobs as rows.

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, selector, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new("Status", "Status of the job."),
    Column::new(
        "Completions",
        "The number of pods which reached phase Succeeded. The value increases monotonically for \
         a given spec. However, it may decrease in reaction to scale down of elastic indexed \
         jobs.",
    ),
    Column::new("Duration", "Time required to complete the job."),
    AGE,
    Column::wide("Containers", "Names of each container in the template."),
    Column::wide("Images", "Images referenced by each container in the template."),
    Column::wide(
        "Selector",
        "A label query over pods that should match the pod count. Normally, the system sets this \
         field for you. More info: \
         https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
];

/// The cells of a Job.
pub fn cells(job: &Job, now: Timestamp) -> Vec<Value> {
    let metadata = &job.metadata;
    let (no_spec, no_status) = (JobSpec::default(), JobStatus::default());
    let spec = job.spec.as_ref().unwrap_or(&no_spec);
    let status = job.status.as_ref().unwrap_or(&no_status);
    let pod = spec.template.spec.as_ref();
    let containers = pod.map_or(&[][..], |pod| &pod.containers);
    vec![
        json!(text(&metadata.name)),
        json!(state(job, status)),
        json!(completions(spec, status)),
        json!(time_taken(status, now)),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
        json!(each(containers, |container| &container.name)),
        json!(each(containers, |container| text(&container.image))),
        json!(selector::of_selector(spec.selector.as_ref())),
    ]
}

/// What the Job is about. A Job that is being deleted says so only if it has not ended.
fn state(job: &Job, status: &JobStatus) -> &'static str {
    let is = |condition: &&str| is_true(status, condition);
    let ended = ["Complete", "Failed"].into_iter().find(is);
    if let Some(ended) = ended {
        return ended;
    }
    if job.metadata.deletion_timestamp.is_some() {
        return "Terminating";
    }
    let under_way = ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(is);
    under_way.unwrap_or("Running")
}

/// Of conditions with the same type the first one counts.
fn is_true(status: &JobStatus, condition_type: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions
        .find(|condition| condition.type_ == condition_type)
        .is_some_and(|condition| condition.status == "True")
}

fn completions(spec: &JobSpec, status: &JobStatus) -> String {
    let succeeded = status.succeeded.unwrap_or(0);
    match (spec.completions, spec.parallelism) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// How long the Job took, or is taking; empty if it has not started.
fn time_taken(status: &JobStatus, now: Timestamp) -> String {
    let Some(start) = &status.start_time else {
        return String::new();
    };
    let end = status.completion_time.as_ref().map_or(now, |end| end.0);
    duration::human(end.duration_since(start.0))
}

fn each<'a>(containers: &'a [Container], of: fn(&'a Container) -> &'a str) -> String {
    containers.iter().map(of).collect::<Vec<_>>().join(",")
}
