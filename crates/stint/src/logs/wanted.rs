//! Whose logs are wanted, and how their lines begin. Values in, values out.

use k8s_openapi::api::batch::v1::Job;
use stint_api::decode::suggest::closest;
use stint_api::index_set::IndexSet;
use thiserror::Error;

use crate::log_lines;
use crate::logs_args::LogsArgs;
use crate::pod_sight::PodSight;
use crate::printable::printable;
use crate::progress::{completions, title};

/// Most characters of a name that is told.
const MAX_NAME_CHARS: usize = 80;

/// Why something cannot be wanted of a Job.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum WantedError {
    #[error("Job {title} has no indexes: --index is for spec.completionMode: Indexed")]
    Unindexed { title: String },
    #[error("Job {title} has the indexes 0 to {last}, and --index asks for {asked}")]
    IndexBeyond { title: String, last: u32, asked: u32 },
    #[error("Job {title} has spec.completions: 0, so that it has no index: leave out --index")]
    NoIndex { title: String },
    #[error("Job {title} has no container {}; {hint}", printable(container, MAX_NAME_CHARS))]
    UnknownContainer { title: String, container: String, hint: String },
}

/// Which logs of a Job are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    title: String,
    /// All of them if there are none here.
    pub(crate) indexes: Option<IndexSet>,
    container: Option<String>,
    has_containers: bool,
    is_previous: bool,
    /// Whether several Pods may speak at once.
    may_be_many: bool,
}

impl Wanted {
    /// What the command line asks for of this Job.
    pub(crate) fn new(job: &Job, args: &LogsArgs) -> Result<Self, WantedError> {
        let title = printable(&title(job), MAX_NAME_CHARS);
        let containers = container_names(job);
        if let Some(asked) = &args.container
            && !containers.contains(&asked.as_str())
        {
            let hint = hint(asked, &containers);
            return Err(WantedError::UnknownContainer { title, container: asked.clone(), hint });
        }
        check_indexes(job, args.index.as_ref(), &title)?;
        let has_containers = containers.len() > 1 && args.container.is_none();
        let may_be_many = has_containers || pods_at_once(job, args.index.as_ref()) > 1;
        Ok(Wanted {
            title,
            indexes: args.index.clone(),
            container: args.container.clone(),
            has_containers,
            is_previous: args.previous,
            may_be_many,
        })
    }

    /// How the Job is called.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Whether a Pod is one of those.
    pub(crate) fn has(&self, pod: &PodSight) -> bool {
        match (&self.indexes, pod.index()) {
            (None, _) => true,
            (Some(indexes), Some(index)) => indexes.contains(index),
            (Some(_), None) => false,
        }
    }

    /// The containers of a Pod that have something to show, and the run that it is of.
    pub(crate) fn containers<'p>(&self, pod: &'p PodSight) -> Vec<(&'p str, u32)> {
        let is_wanted = |name: &str| self.container.as_deref().is_none_or(|it| it == name);
        let all: Vec<(&str, u32)> = match self.is_previous {
            false => pod.begun_containers().collect(),
            true => pod.restarted_containers().map(|name| (name, 0)).collect(),
        };
        all.into_iter().filter(|(name, _)| is_wanted(name)).collect()
    }

    /// Whether lines must say whose they are: when so many speak now, or may speak later.
    pub(crate) fn needs_prefix(&self, speakers: usize, follows: bool) -> bool {
        speakers > 1 || (follows && self.may_be_many)
    }

    /// What stands in front of the lines of a container.
    pub(crate) fn prefix(&self, pod: &PodSight, container: &str) -> String {
        let container = Some(container).filter(|_| self.has_containers);
        log_lines::prefix(&self.title, pod, container)
    }
}

fn check_indexes(job: &Job, asked: Option<&IndexSet>, title: &str) -> Result<(), WantedError> {
    let Some(last_asked) = asked.and_then(IndexSet::last) else { return Ok(()) };
    let title = title.to_owned();
    if !is_indexed(job) {
        return Err(WantedError::Unindexed { title });
    }
    match completions(job).checked_sub(1) {
        Some(last) if last_asked > last => {
            Err(WantedError::IndexBeyond { title, last, asked: last_asked })
        }
        None => Err(WantedError::NoIndex { title }),
        Some(_) => Ok(()),
    }
}

pub(crate) fn is_indexed(job: &Job) -> bool {
    let mode = job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
    mode == Some("Indexed")
}

/// How many Pods may speak at the same time.
fn pods_at_once(job: &Job, indexes: Option<&IndexSet>) -> u64 {
    let parallelism = job.spec.as_ref().and_then(|spec| spec.parallelism).unwrap_or(1);
    let parallelism = u64::try_from(parallelism).unwrap_or(0);
    let total = match (indexes, completions(job)) {
        (Some(indexes), _) => indexes.count(),
        // The Pods decide.
        (None, 0) => u64::MAX,
        (None, completions) => u64::from(completions),
    };
    // One after another they are told apart as well.
    if is_indexed(job) { total } else { total.min(parallelism) }
}

fn container_names(job: &Job) -> Vec<&str> {
    let spec = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let main = spec.map_or(&[][..], |spec| &spec.containers);
    init.iter().chain(main).map(|container| container.name.as_str()).collect()
}

fn hint(asked: &str, names: &[&str]) -> String {
    match closest(asked, names.iter().copied()) {
        Some(meant) => format!("did you mean {}?", printable(meant, MAX_NAME_CHARS)),
        None => {
            let listed: Vec<String> =
                names.iter().map(|name| printable(name, MAX_NAME_CHARS)).collect();
            format!("it has: {}", listed.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LogsArgs,
    }

    fn wanted(spec: Value, options: &[&str]) -> Result<Wanted, WantedError> {
        let mut spec = spec;
        let container = |name: &str| json!({"name": name});
        let init = if spec["init"] == true { vec![container("before")] } else { Vec::new() };
        spec["template"] =
            json!({"spec": {"initContainers": init, "containers": [container("main")]}});
        let job = json!({"metadata": {"name": "work"}, "spec": spec});
        let job: Job = serde_json::from_value(job).expect("it is a Job");
        let line = ["logs", "work"].iter().chain(options);
        Wanted::new(&job, &Line::try_parse_from(line).expect("it is well-formed").args)
    }

    #[test]
    fn lines_say_whose_they_are_if_several_speak_or_may() {
        let indexed = json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed"});
        let single = json!({"completions": 1, "parallelism": 1});
        // The Job, what is asked for, how many speak, and whether that needs a prefix: of what
        // there is, and of what is followed.
        let rows = [
            (&indexed, &[][..], 1, false, true),
            (&indexed, &["--index", "2"], 1, false, false),
            (&indexed, &["--index", "2"], 2, true, true),
            (&indexed, &["--index", "1-2"], 1, false, true),
            (&single, &[], 1, false, false),
            (&single, &[], 2, true, true),
            (&json!({"completions": 9, "parallelism": 2}), &[], 1, false, true),
            (&json!({"completions": 9, "parallelism": 1}), &[], 1, false, false),
            (&json!({"parallelism": 2}), &[], 1, false, true),
            (&json!({"completions": 1, "init": true}), &[], 1, false, true),
            (&json!({"completions": 1, "init": true}), &["-c", "main"], 1, false, false),
        ];
        for (spec, options, speakers, past, followed) in rows {
            let wanted = wanted(spec.clone(), options).expect("it can be wanted");
            let found = [false, true].map(|follows| wanted.needs_prefix(speakers, follows));
            assert_eq!(found, [past, followed], "{spec} {options:?} {speakers}");
        }
    }

    #[test]
    fn only_what_a_job_has_can_be_wanted() {
        let indexed = json!({"completions": 3, "completionMode": "Indexed"});
        let refused = |spec: &Value, options: &[&str]| {
            wanted(spec.clone(), options).expect_err("it cannot be wanted").to_string()
        };
        let beyond = "Job work has the indexes 0 to 2, and --index asks for 3";
        assert_eq!(refused(&indexed, &["--index", "0,3"]), beyond);
        assert!(refused(&json!({}), &["--index", "0"]).contains("has no indexes"));
        let empty = json!({"completions": 0, "completionMode": "Indexed"});
        assert!(refused(&empty, &["--index", "0"]).contains("has spec.completions: 0, so that"));
        let unknown = refused(&indexed, &["-c", "zzzz\u{1b}"]);
        assert_eq!(unknown, "Job work has no container zzzz\\u{1b}; it has: main");
    }

    #[test]
    fn containers_are_those_that_have_something_to_show() {
        let pod: PodSight = serde_json::from_value(json!({
            "metadata": {"name": "work-1-x",
                "annotations": {"batch.kubernetes.io/job-completion-index": "1"}},
            "status": {
                "initContainerStatuses": [
                    {"name": "before", "state": {"terminated": {"exitCode": 0}}}],
                "containerStatuses": [
                    {"name": "main", "state": {"running": {}}, "restartCount": 2},
                    {"name": "back", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 1}}},
                    {"name": "new", "state": {"waiting": {"reason": "ContainerCreating"}}}]},
        }))
        .expect("it is a Pod");
        let spec = || json!({"completions": 3, "completionMode": "Indexed"});
        let all = wanted(spec(), &["--index", "1"]).expect("it can be wanted");
        assert!(all.has(&pod));
        assert_eq!(all.containers(&pod), [("before", 0), ("main", 2), ("back", 0)]);
        let previous = wanted(spec(), &["--previous", "--index", "0"]).expect("it can be wanted");
        assert!(!previous.has(&pod));
        // What a container that waits has run last is before what it waits for.
        assert_eq!(previous.containers(&pod), [("main", 0), ("back", 0)]);
        let main = wanted(spec(), &["-c", "main"]).expect("it can be wanted");
        assert_eq!(main.containers(&pod), [("main", 2)]);
    }
}
