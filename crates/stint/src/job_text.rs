//! What is said of a Job and its failures, in every place where it is said. Text made from values.

use stint_api::index_set::IndexSet;

use crate::color::{Painter, Style};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::{End, Failure, JobProgress};
use crate::words::{self, Counted};

/// Most failures that are shown with their last lines.
pub(crate) const MAX_SHOWN_FAILURES: usize = 3;

/// How many lines of a log are shown.
pub(crate) const TAIL_LINES: usize = 5;

/// Most characters of a line of a log: two lines of a terminal.
const MAX_LINE_CHARS: usize = 160;

/// The bytes in which it is seen that a line has more characters than that.
pub(crate) const MAX_LINE_BYTES: usize = 4 * (MAX_LINE_CHARS + 1);

/// A failure and the last lines that its container wrote.
pub(crate) type Tail = (Failure, Vec<String>);

/// How a Job ended, or that it has not, and why.
pub(crate) fn headline(job: &JobProgress, elapsed: &str, painter: Painter) -> String {
    let title = painter.paint(Style::Message, &job.title);
    match job.end() {
        End::Complete => {
            let word = painter.paint(Style::Frame, "Complete");
            format!("{title}: {word} in {elapsed}\n")
        }
        End::Failed => {
            let word = painter.paint(Style::Error, "Failed");
            let why = job.why().map(|condition| {
                let reason = condition.reason.as_deref().unwrap_or("no reason");
                format!(": {reason}: {}", condition.message.as_deref().unwrap_or(""))
            });
            let why = printable(&why.unwrap_or_default(), MAX_MESSAGE_CHARS);
            format!("{title}: {word} after {elapsed}{why}\n")
        }
        End::Unfinished => {
            let word = painter.paint(Style::Warning, "not finished");
            let gone = if job.is_gone { ": it was deleted" } else { "" };
            format!("{title}: {word} after {elapsed}{gone}\n")
        }
    }
}

/// What is completed and what has failed, in indexes and in Pods.
pub(crate) fn count_rows(job: &JobProgress) -> String {
    let mut text = String::new();
    let (succeeded, failed) = job.pods();
    if job.is_indexed() {
        let completed = job.completed_indexes();
        let total = job.counts().total.unwrap_or(0);
        let count = completed.count();
        text += &row("completed", &format!("{count} of {total}{}", listed(&completed)));
        let failed = job.failed_indexes();
        if !failed.is_empty() {
            text += &row("failed", &(Counted::Indexes.told(failed.count()) + &listed(&failed)));
        }
        let (earlier, left_out) = (&job.earlier, job.left_out());
        if !earlier.is_empty() {
            let note = format!("{}{}", earlier.count(), listed(earlier));
            text += &row("before", &format!("{note}: completed by an earlier run"));
        }
        if !left_out.is_empty() {
            let note = format!("{}{}", left_out.count(), listed(&left_out));
            text += &row("left out", &format!("{note}: not run here, and counted as completed"));
        }
    }
    let retries = match job.retries {
        0 => String::new(),
        1 => "; 1 retry".to_owned(),
        count => format!("; {count} retries"),
    };
    text + &row("Pods", &format!("{succeeded} succeeded, {failed} failed{retries}"))
}

/// That no further try will do better, if so.
pub(crate) fn alike_row(job: &JobProgress) -> String {
    let Some((count, why)) = job.failed_alike() else { return String::new() };
    let why = printable(why, MAX_MESSAGE_CHARS);
    row("every try", &format!("failed the same way, {count} times: {why}"))
}

/// A line with a name in front.
pub(crate) fn row(name: &str, value: &str) -> String {
    format!("  {name:<10} {value}\n")
}

/// What failed, and what it wrote last.
pub(crate) fn failure((failure, lines): &Tail) -> String {
    let container = failure.container.as_ref().map(|name| format!(" in container {name}"));
    let times = failure.tally();
    let why = printable(&failure.told(), MAX_MESSAGE_CHARS);
    let what = printable(&failure.what(), MAX_MESSAGE_CHARS);
    let container = printable(&container.unwrap_or_default(), MAX_MESSAGE_CHARS);
    let mut text = format!("  {what} {}{container}{times}: {why}\n", failure.happened());
    for line in lines {
        text += &format!("    | {}\n", printable(line, MAX_LINE_CHARS));
    }
    text
}

fn listed(set: &IndexSet) -> String {
    if set.is_empty() { String::new() } else { format!(": {}", words::indexes(set)) }
}
