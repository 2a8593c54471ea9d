//! What came of a run, for a person who wants to know what to do next. Text made from values.

use std::path::PathBuf;
use std::time::Instant;

use stint_api::index_set::IndexSet;

use crate::color::Painter;
use crate::job_text::{self, Tail};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::{End, JobProgress, Slow};
use crate::shell_word::quoted;
use crate::words;

/// The longest list of indexes that stands in the midst of advice; longer ones have a line of their own.
const MAX_ONLY_CHARS: usize = 200;

/// The longest of those: half of what Linux takes as one argument.
const MAX_LONG_ONLY_CHARS: usize = 64 * 1024;

/// Most of those that were still running.
const MAX_RUNNING: usize = 8;

/// What became of the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    /// They are gone.
    Gone,
    /// They are in this temporary folder.
    Kept { folder: PathBuf, logs: PathBuf },
    /// They are in the data folder.
    Data { folder: PathBuf, logs: PathBuf },
}

/// The summary of one Job.
pub(crate) fn of_job(job: &JobProgress, tails: &[Tail], painter: Painter, now: Instant) -> String {
    let mut text = job_text::headline(job, &words::time(job.elapsed(now)), painter);
    text += &job_text::count_rows(job);
    text += &job_text::alike_row(job);
    if job.slowest().len() > 1 {
        text += &job_text::row("slowest", &timed(job.slowest()));
    }
    if job.end() == End::Unfinished {
        text += &running_row(&job.running(now));
    }
    if let Some(waits) = job.waits().filter(|_| job.end() == End::Unfinished) {
        let why = printable(&waits.why, MAX_MESSAGE_CHARS);
        text += &job_text::row("waiting", &format!("{}: {why}", waits.what));
    }
    // What all have in common is said.
    let alike = job.failed_alike().map(|(_, why)| why);
    let is_said = |(failure, lines): &&Tail| lines.is_empty() && alike == Some(&*failure.told());
    for tail in tails.iter().filter(|it| !is_said(it)) {
        text += &job_text::failure(tail);
    }
    let rest = job.failures().count().saturating_sub(tails.len());
    if rest > 0 && alike.is_none() && job.end() != End::Complete {
        text += &format!("  … and {rest} more\n");
    }
    text
}

/// What was still running, and for how long it had.
fn running_row(running: &[Slow]) -> String {
    if running.is_empty() {
        return String::new();
    }
    let shown = &running[..running.len().min(MAX_RUNNING)];
    let rest = running.len() - shown.len();
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    job_text::row("running", &format!("{}{rest}", timed(shown)))
}

fn timed(all: &[Slow]) -> String {
    let words: Vec<String> =
        all.iter().map(|it| format!("{} {}", it.what, words::time(it.time))).collect();
    words.join(", ")
}

/// What a person may want to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// Run what failed again: these indexes, if they are known.
    Retry(Option<IndexSet>),
    /// The same of a run of some indexes: the others are not wanted now either.
    RetrySome(Option<IndexSet>),
    /// Run all of it again: there are no indexes to choose from.
    Anew,
    /// Go on with what was stopped: these indexes, if they are known; `is_late` if its time was up.
    GoOn {
        left: Option<IndexSet>,
        is_late: bool,
    },
}

/// Where the logs are and what to do next, if there is anything to do; `again` is what followed
/// `stint run`, and `is_stdin` whether it reads a manifest there.
pub(crate) fn advice(logs: &Logs, next: &Next, again: &str, is_stdin: bool) -> String {
    let mut text = String::new();
    match logs {
        Logs::Gone => {}
        Logs::Kept { folder, logs } => {
            text += &format!("logs: {}\n", logs.display());
            text += &format!("      remove them with: rm -r {}\n", quoted(folder));
        }
        Logs::Data { logs, .. } => text += &format!("logs: {}\n", logs.display()),
    }
    let input = if is_stdin { "      with the manifest on standard input again\n" } else { "" };
    let input = &(long_only(next, logs, again) + input);
    match (next, logs) {
        (Next::Nothing, _) => {}
        (Next::Anew, _) => {
            text += &format!("next: mend what failed, then stint run {again}\n{input}");
        }
        (Next::Retry(indexes), Logs::Gone | Logs::Kept { .. }) => {
            let only = only(indexes.as_ref());
            text += &format!("next: mend what failed, then stint run {only}{again}\n{input}");
            if indexes.is_some() {
                text += "      after a run with --data-dir DIR, --retry-failed runs what failed\n";
            }
        }
        (Next::RetrySome(indexes), _) => {
            let only = only(indexes.as_ref());
            text += &format!("next: mend what failed, then stint run {only}{again}\n{input}");
        }
        (Next::Retry(_), Logs::Data { .. }) => {
            text +=
                &format!("next: mend what failed, then stint run --retry-failed {again}\n{input}");
        }
        (Next::GoOn { is_late, .. }, Logs::Data { .. }) => {
            let more = more_time(*is_late);
            text += &format!("next: stint run {again} goes on from here{more}\n{input}");
        }
        (Next::GoOn { left, is_late }, Logs::Gone | Logs::Kept { .. }) => {
            let (only, more) = (only(left.as_ref()), more_time(*is_late));
            let what = if only.is_empty() { "begins anew" } else { "runs what is left" };
            text += &format!("next: stint run {only}{again} {what}{more}\n{input}");
            text += "      a run with --data-dir DIR can be stopped, and goes on from there\n";
        }
    }
    text
}

/// The option that chooses these indexes; none if they are not known, or too many to paste.
fn only(indexes: Option<&IndexSet>) -> String {
    let text = indexes.map(ToString::to_string).filter(|text| text.len() <= MAX_ONLY_CHARS);
    text.map_or(String::new(), |text| format!("--only-indexes {text} "))
}

/// The command that runs what is left, where that is too long to be named before.
fn long_only(next: &Next, logs: &Logs, again: &str) -> String {
    let indexes = match (next, logs) {
        (Next::Nothing | Next::Anew, _)
        | (Next::Retry(_) | Next::GoOn { .. }, Logs::Data { .. }) => None,
        (Next::RetrySome(indexes), _) => indexes.as_ref(),
        (Next::Retry(indexes) | Next::GoOn { left: indexes, .. }, _) => indexes.as_ref(),
    };
    let text = indexes.map(ToString::to_string).unwrap_or_default();
    if text.len() <= MAX_ONLY_CHARS {
        return String::new();
    }
    if text.len() > MAX_LONG_ONLY_CHARS {
        let many = "those that are left are too many to be named";
        return format!("      that runs all indexes: {many}\n");
    }
    let command = format!("stint run --only-indexes {text} {again}");
    format!("      that runs all indexes; only what is left: {command}\n")
}

fn more_time(is_late: bool) -> &'static str {
    if is_late { "; give it a longer --timeout" } else { "" }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::json;

    use super::*;
    use crate::progress::{Failure, Progress};

    #[test]
    fn a_failed_job_says_what_failed_and_why() {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work", "uid": "u"},
            "spec": {"completions": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                "template": {}},
            "status": {"succeeded": 2, "failed": 2, "completedIndexes": "0,3", "failedIndexes": "2",
                "conditions": [{"type": "Failed", "status": "True", "reason": "FailedIndexes",
                    "message": "Job has failed indexes"}]},
        }))
        .expect("it is a Job");
        let now = Instant::now();
        let mut progress = Progress::default();
        let preset = IndexSet::parse_strict("0", 4).expect("it is a list");
        progress.add(job, preset, now);
        let failure = Failure {
            index: Some(2),
            namespace: "default".to_owned(),
            pod: "work-2-a".to_owned(),
            container: Some("main".to_owned()),
            why: "exit code 1".to_owned(),
            times: 2,
            uid: "p".to_owned(),
            goes_on: false,
            run: None,
            ran: None,
            others: Vec::new(),
            interruptions: 0,
            is_interruption: false,
        };
        let tails = [(failure, vec!["oh \u{1b}[2Jno".to_owned()])];
        let text = of_job(&progress.jobs()[0], &tails, Painter::new(false), now);
        let expected = "\
work: Failed after 0.00s: FailedIndexes: Job has failed indexes
  completed  1 of 3: 3
  failed     1 index: 2
  left out   1: 0: not run here, and counted as completed
  Pods       1 succeeded, 2 failed
  index 2 failed in container main, 2 times: exit code 1
    | oh \\u{1b}[2Jno
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_long_list_of_indexes_is_named_in_a_line_of_its_own() {
        let odd: IndexSet = (0..500).map(|index| index * 2).collect();
        let line = format!("only what is left: stint run --only-indexes {odd} a.yaml\n");
        let gone = Next::GoOn { left: Some(odd.clone()), is_late: false };
        for next in [Next::Retry(Some(odd.clone())), Next::RetrySome(Some(odd)), gone.clone()] {
            let text = advice(&Logs::Gone, &next, "a.yaml", false);
            assert!(text.contains(&line), "{text}");
        }
        let data = Logs::Data { folder: "d".into(), logs: "d/node/logs".into() };
        assert!(!advice(&data, &gone, "a.yaml", false).contains("only what is left"));
        let many: IndexSet = (0..50_000).map(|index| index * 2).collect();
        let text = advice(&Logs::Gone, &Next::Retry(Some(many)), "a.yaml", false);
        assert!(text.contains("too many to be named\n"), "{text}");
    }

    #[test]
    fn advice_is_given_only_where_there_is_something_to_do() {
        assert_eq!(advice(&Logs::Gone, &Next::Nothing, "a.yaml", false), "");
        let data = Logs::Data { folder: "d".into(), logs: "d/node/logs".into() };
        let again = "--data-dir d a.yaml";
        let text = advice(&data, &Next::Retry(None), again, false);
        assert!(text.contains("stint run --retry-failed --data-dir d a.yaml\n"), "{text}");
        let stopped = |left: Option<&str>, is_late| {
            let left = left.map(|text| IndexSet::parse_strict(text, 10).expect("it is a list"));
            Next::GoOn { left, is_late }
        };
        let text = advice(&data, &stopped(Some("1"), false), again, false);
        assert!(
            text.ends_with("next: stint run --data-dir d a.yaml goes on from here\n"),
            "{text}"
        );
        let text = advice(&Logs::Gone, &stopped(Some("4-9"), true), "a.yaml", false);
        assert_eq!(
            text,
            "next: stint run --only-indexes 4-9 a.yaml runs what is left; give it a longer --timeout\n      \
             a run with --data-dir DIR can be stopped, and goes on from there\n"
        );
        let text = advice(&Logs::Gone, &stopped(None, false), "a.yaml", false);
        assert!(text.starts_with("next: stint run a.yaml begins anew\n"), "{text}");
        let kept = Logs::Kept { folder: "/tmp/x".into(), logs: "/tmp/x/logs".into() };
        assert!(advice(&kept, &Next::Retry(None), "a.yaml", false).contains("rm -r /tmp/x\n"));
        let spaced = Logs::Kept { folder: "/tmp/my x".into(), logs: "/tmp/my x/logs".into() };
        let text = advice(&spaced, &Next::Anew, "a.yaml", false);
        assert!(
            text.contains("rm -r '/tmp/my x'\nnext: mend what failed, then stint run a.yaml\n")
        );
        let text = advice(&data, &Next::Anew, again, false);
        assert!(text.contains("then stint run --data-dir d a.yaml\n"), "{text}");
        let some = IndexSet::parse_strict("3,7-9", 10).expect("it is a list");
        let text = advice(&kept, &Next::Retry(Some(some)), "a.yaml", false);
        assert!(text.contains("stint run --only-indexes 3,7-9 a.yaml\n"), "{text}");
        let some = IndexSet::parse_strict("3", 10).expect("it is a list");
        let text = advice(&data, &Next::RetrySome(Some(some)), "--data-dir d -", true);
        assert!(
            text.ends_with(
                "then stint run --only-indexes 3 --data-dir d -\n      \
                 with the manifest on standard input again\n"
            ),
            "{text}"
        );
        assert!(!advice(&data, &Next::Nothing, "-", true).contains("standard input"));
        let odd: IndexSet = (0..500).map(|index| index * 2).collect();
        let text = advice(&kept, &Next::Retry(Some(odd)), "a.yaml", false);
        assert!(text.contains("then stint run a.yaml\n"), "{text}");
    }
}
