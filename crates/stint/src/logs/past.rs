//! The logs that there are, one after the other, and a word about those that there are not.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use stint_api::index_set::IndexSet;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

use super::said::{Said, say};
use super::wanted::{Wanted, is_indexed};
use crate::calls::Calls;
use crate::log_lines::{Part, open, pump};
use crate::pod_sight::{PodSight, Stage};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::{completions, is_ended};
use crate::reach::told;
use crate::spool::Patience;
use crate::tally::counted;
use crate::words;

/// How many logs are opened ahead: enough to hide the time that it takes, few enough for any
/// server.
const AHEAD: usize = 8;

/// Most Pods of which is said what they wait for.
const MAX_WAITING: usize = 5;

/// Tells everything there is of these Pods, which are in order.
pub(crate) async fn tell(
    calls: &Calls,
    job: &Job,
    pods: &[PodSight],
    wanted: &Wanted,
    part: Part,
    said: Sender<Said>,
    is_full: watch::Receiver<bool>,
) {
    let client = calls.client();
    let speakers: Vec<Speaker<'_>> = pods
        .iter()
        .filter(|pod| wanted.has(pod))
        .flat_map(|pod| {
            let containers = wanted.containers(pod).into_iter();
            containers.map(move |(container, _)| Speaker { pod, container })
        })
        .collect();
    tell_gone(job, pods, wanted, speakers.is_empty(), &said).await;
    let has_prefix = wanted.needs_prefix(speakers.len(), false);
    let mut logs = stream::iter(&speakers)
        .map(|speaker| async move {
            (speaker, open(client, speaker.pod, speaker.container, part).await)
        })
        .buffered(AHEAD);
    let mut before = "";
    while let Some((speaker, log)) = logs.next().await {
        let Speaker { pod, container } = speaker;
        if wanted.indexes.is_some() && pod.uid() != before {
            before = pod.uid();
            tell_attempt(pod, pods, wanted, &said).await;
        }
        let prefix = if has_prefix { wanted.prefix(pod, container) } else { String::new() };
        let ended = match log {
            Ok(log) => {
                // The log of a Pod that runs on may be rotated away while somebody waits.
                let is_over = Arc::new((!pod.is_under_way()).into());
                let patience = Patience { is_full: is_full.clone(), is_over };
                pump(log, &prefix, &said, patience).await.map_err(|error| told(&error))
            }
            Err(error) => Err(refusal(&error)),
        };
        if let Err(why) = ended {
            say(&said, broken(pod, container, &why)).await;
        }
    }
    if !part.is_previous {
        tell_waiting(calls, pods, wanted, speakers.is_empty(), &said).await;
        if !pods.iter().any(|pod| wanted.has(pod)) && gone(job, pods, wanted).is_none() {
            let text = no_pod(job, wanted);
            // A Job that needed none has nothing to tell, and that is all there is.
            say(&said, if is_ended(job) { Said::Note(text) } else { Said::Failure(text) }).await;
        }
    } else if speakers.is_empty() {
        let text = format!("{}: no container was started again", wanted.title());
        say(&said, Said::Note(text)).await;
    }
}

/// Whose log it is.
struct Speaker<'p> {
    pod: &'p PodSight,
    container: &'p str,
}

/// Why a log is not given out, in the server's own words if it has some.
pub(crate) fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 => "the Pod is gone".to_owned(),
        kube::Error::Api(status) => printable(&status.message, MAX_MESSAGE_CHARS),
        error => told(error),
    }
}

/// That a log could not be read, or not to its end.
pub(crate) fn broken(pod: &PodSight, container: &str, why: &str) -> Said {
    let (what, name) = (pod.what(), pod.name());
    let text = format!("{what}: no more of the log of container {container} in Pod {name}: {why}");
    Said::Failure(printable(&text, MAX_MESSAGE_CHARS))
}

/// Which attempt the lines that follow are of, if there are several.
async fn tell_attempt(pod: &PodSight, pods: &[PodSight], wanted: &Wanted, said: &Sender<Said>) {
    let attempts = || pods.iter().filter(|it| it.index() == pod.index() && wanted.has(it));
    let count = attempts().count();
    if count < 2 {
        return;
    }
    let number = attempts().position(|it| it.uid() == pod.uid()).unwrap_or(0) + 1;
    let how = match pod.stage() {
        Stage::Failed if pod.is_disrupted() => format!(", interrupted: {}", pod.why_failed()),
        Stage::Failed => format!(", failed: {}", pod.why_failed()),
        Stage::Succeeded => ", succeeded".to_owned(),
        Stage::Running | Stage::Waiting => String::new(),
    };
    let (what, name) = (pod.what(), pod.name());
    let text = format!("{what}, attempt {number} of {count}: Pod {name}{how}");
    say(said, Said::Note(printable(&text, MAX_MESSAGE_CHARS))).await;
}

/// Says of which Pods nothing is left. It is a failure if nobody else is there to speak.
async fn tell_gone(
    job: &Job,
    pods: &[PodSight],
    wanted: &Wanted,
    is_all: bool,
    said: &Sender<Said>,
) {
    let Some(gone) = gone(job, pods, wanted) else { return };
    let text = format!("{}: {gone}", wanted.title());
    say(said, if is_all { Said::Failure(text) } else { Said::Note(text) }).await;
}

fn gone(job: &Job, pods: &[PodSight], wanted: &Wanted) -> Option<String> {
    let status = job.status.as_ref()?;
    if !is_indexed(job) {
        let count = |count: Option<i32>| usize::try_from(count.unwrap_or(0)).unwrap_or(0);
        let ended = count(status.succeeded) + count(status.failed);
        let seen = pods.iter().filter(|pod| !pod.is_under_way()).count();
        let missing = ended.saturating_sub(seen);
        let logs = "gone, and what they printed with them";
        return (missing > 0).then(|| format!("{} {logs}", are(missing, "Pod")));
    }
    let read = |text: &Option<String>| {
        IndexSet::parse_lenient(text.as_deref().unwrap_or(""), completions(job))
    };
    let mut over = read(&status.completed_indexes);
    over.union(&read(&status.failed_indexes));
    let seen: IndexSet = pods.iter().filter_map(PodSight::index).collect();
    let is_wanted = |index: u32| wanted.indexes.as_ref().is_none_or(|it| it.contains(index));
    let missing: IndexSet =
        over.iter().filter(|index| is_wanted(*index) && !seen.contains(*index)).collect();
    (!missing.is_empty())
        .then(|| format!("no Pod is left of the indexes {}", words::indexes(&missing)))
}

fn are(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count, noun))
}

/// Says who has not begun, and why. It is a failure if nobody else is there to speak.
pub(crate) async fn tell_waiting(
    calls: &Calls,
    pods: &[PodSight],
    wanted: &Wanted,
    is_all: bool,
    said: &Sender<Said>,
) {
    let is_waiting = |pod: &&PodSight| wanted.has(pod) && has_not_begun(pod);
    let mut waiting = pods.iter().filter(is_waiting);
    let word = |text: String| if is_all { Said::Failure(text) } else { Said::Note(text) };
    for pod in waiting.by_ref().take(MAX_WAITING) {
        let why = why_not_begun(calls, pod).await;
        say(
            said,
            word(printable(&format!("{} has not begun: {why}", pod.what()), MAX_MESSAGE_CHARS)),
        )
        .await;
    }
    let rest = waiting.count();
    if rest > 0 {
        say(said, word(format!("… and {rest} more have not begun"))).await;
    }
}

/// Whether nothing of a Pod has run yet.
pub(crate) fn has_not_begun(pod: &PodSight) -> bool {
    pod.is_under_way() && pod.begun_containers().next().is_none()
}

/// What a Pod waits for, by what it says itself or by what is said of it.
async fn why_not_begun(calls: &Calls, pod: &PodSight) -> String {
    if let Some(why) = pod.why_waiting() {
        return why;
    }
    if let Some(why) = calls.warning(pod.uid()).await {
        return why;
    }
    let usual = match pod.node() {
        None => "it has no node yet",
        Some(_) => "its containers are being made",
    };
    usual.to_owned()
}

/// That there is no Pod, and why if the Job says so.
pub(crate) fn no_pod(job: &Job, wanted: &Wanted) -> String {
    let title = wanted.title();
    let is_suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
    match (is_ended(job), is_suspended) {
        (true, _) => format!("{title}: no Pod was made"),
        (false, true) => format!("{title}: no Pod has been made yet: it has spec.suspend: true"),
        (false, false) => format!("{title}: no Pod has been made yet"),
    }
}
