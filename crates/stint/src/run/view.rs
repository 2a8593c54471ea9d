//! What is shown while Jobs run: bars on a terminal, a line for each change elsewhere.

use std::time::{Duration, Instant};

use super::frame::Size;
use super::screen::Screen;
use crate::printable::{MAX_MESSAGE_CHARS, printable, printable_ends};
use crate::progress::{Change, JobProgress, Progress};
use crate::words::{self, Counts};

/// Most Jobs with a bar of their own: what fits on a usual terminal.
const MAX_BARS: usize = 12;

/// How many fit on a terminal of so many rows: beneath them there is the latest failure with its
/// last lines, and above them a line of what was there before.
fn bars_on(rows: u16) -> usize {
    usize::from(rows).saturating_sub(2 + MAX_TAIL_LINES).clamp(1, MAX_BARS)
}

/// How many failures of a Job are told one by one; the others are in the counts.
const MAX_TOLD_FAILURES: u64 = 10;

/// How soon a Job's counts are told again, where each time is a line, and how rarely at last.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// How many lines of a log stand beneath the bars.
const MAX_TAIL_LINES: usize = 3;

/// Most characters of a log line beneath the bars.
const MAX_TAIL_CHARS: usize = 100;

/// How much of a line its parts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    title: usize,
    /// None: there is no room for one.
    bar: usize,
    /// Whether counts are told in as few words as possible.
    is_short: bool,
}

impl Layout {
    /// For a terminal of so many columns.
    fn of(columns: u16) -> Self {
        match columns {
            0..60 => Layout { title: 10, bar: 0, is_short: true },
            60..100 => Layout { title: 11, bar: 5, is_short: true },
            100..140 => Layout { title: 20, bar: 10, is_short: true },
            140.. => Layout { title: 30, bar: 16, is_short: false },
        }
    }

    /// The line of a Job.
    fn line(self, title: &str, counts: &Counts, message: &str) -> String {
        match self.bar {
            0 => format!("{title} {message}"),
            width => format!("{title} [{}] {message}", bar(width, counts)),
        }
    }

    /// The titles of Jobs, all as long as the longest.
    fn titles(self, titles: &[String]) -> Vec<String> {
        let longest = titles.iter().map(|title| title.chars().count()).max().unwrap_or(0);
        let width = longest.min(self.title);
        let shown = titles.iter().map(|title| printable_ends(title, self.title));
        shown.map(|title| format!("{title:<width$}")).collect()
    }

    fn counts(self, counts: &Counts) -> String {
        if self.is_short { words::short_counts(counts) } else { words::counts(counts) }
    }
}

/// Where progress is shown.
pub(crate) enum View {
    /// Nowhere.
    Quiet,
    /// Bars that redraw themselves.
    Live(Live),
    /// A line for each change.
    Plain(Plain, Screen),
}

impl View {
    /// The view for these Jobs.
    pub(crate) fn new(
        is_quiet: bool,
        is_terminal: bool,
        progress: &Progress,
        screen: Screen,
        now: Instant,
    ) -> Self {
        if is_quiet {
            View::Quiet
        } else if is_terminal {
            View::Live(Live { screen })
        } else {
            View::Plain(Plain::new(progress, now), screen)
        }
    }

    /// Something happened.
    pub(crate) fn show(&mut self, change: &Change, progress: &Progress, now: Instant) {
        match self {
            View::Quiet | View::Live(_) => {}
            View::Plain(plain, screen) => {
                if let Some(line) = plain.line(change, progress, now) {
                    screen.say(line);
                }
            }
        }
    }

    /// Time has passed; `tail` is what the latest failure wrote last.
    pub(crate) fn tick(&mut self, progress: &Progress, tail: &[String], now: Instant) {
        match self {
            View::Quiet => {}
            View::Plain(plain, screen) => {
                for line in plain.due(progress, now) {
                    screen.say(line);
                }
            }
            View::Live(live) => live.draw(progress, tail, now),
        }
    }

    /// Whether it shows what failures wrote last.
    pub(crate) fn wants_tail(&self) -> bool {
        matches!(self, View::Live(_))
    }

    /// Takes away what redraws itself.
    pub(crate) fn close(&mut self) {
        if let View::Live(live) = self {
            let frame = live.screen.frame().clone();
            live.screen.draw(move || frame.clear());
        }
        *self = View::Quiet;
    }
}

/// Bars on a terminal.
pub(crate) struct Live {
    screen: Screen,
}

impl Live {
    fn draw(&self, progress: &Progress, tail: &[String], now: Instant) {
        let lines = lines(progress, tail, Size::of_terminal(), now);
        let frame = self.screen.frame().clone();
        self.screen.draw(move || frame.show(lines));
    }
}

/// What is drawn on a terminal of this size: a line for each Job, the latest failure, and what it
/// wrote last.
fn lines(progress: &Progress, tail: &[String], size: Size, now: Instant) -> Vec<String> {
    let layout = Layout::of(size.columns);
    let shown = &progress.jobs()[..progress.jobs().len().min(bars_on(size.rows))];
    let titles: Vec<String> = shown.iter().map(|job| job.title.clone()).collect();
    let jobs = shown.iter().zip(layout.titles(&titles)).map(|(job, title)| {
        let (counts, elapsed) = (job.counts(), job.elapsed(now));
        let pace = words::pace(&job.counts_of_this_run(), elapsed);
        let pace = pace.map(|pace| format!(", {pace}")).unwrap_or_default();
        let (counted, time) = (layout.counts(&counts), words::time(elapsed));
        layout.line(&title, &counts, &format!("{counted}{pace}, {time}"))
    });
    let hidden = progress.jobs().len() - shown.len();
    let rest = (hidden > 0).then(|| format!("… and {hidden} more Jobs"));
    let latest = progress.latest_failure().map(|(job, failure)| {
        let (title, what) = (printable_ends(&job.title, 30), failure.what());
        let why = printable(&failure.told(), MAX_TAIL_CHARS);
        format!("{title}: {what} {}: {why}", failure.happened())
    });
    let waits = progress.jobs().iter().find_map(|job| {
        let waits = job.waits()?;
        let why = printable(&waits.why, MAX_MESSAGE_CHARS);
        Some(format!("{}: {} waits: {why}", printable_ends(&job.title, 30), waits.what))
    });
    let failure: Vec<String> = waits.into_iter().chain(latest).chain(rest).collect();
    let failure = (!failure.is_empty()).then(|| failure.join("; "));
    let last = &tail[tail.len().saturating_sub(MAX_TAIL_LINES)..];
    let tail = last.iter().map(|line| format!("  | {}", printable(line, MAX_TAIL_CHARS)));
    jobs.chain(failure).chain(tail).collect()
}

/// How much of a Job is done, in so many columns; nothing if nobody knows how much there is.
fn bar(width: usize, counts: &Counts) -> String {
    let filled = match counts.total {
        None => 0,
        Some(0) => width,
        // At most the width, which is that of a terminal.
        Some(total) => (width as u64 * counts.done.min(total) / total) as usize,
    };
    let is_begun = counts.total.is_some() && counts.done > 0 && filled < width;
    let head = if is_begun { ">" } else { "" };
    format!("{:<width$}", "=".repeat(filled) + head)
}

/// A line for each change.
pub(crate) struct Plain {
    jobs: Vec<Told>,
}

/// What was told of a Job.
struct Told {
    failures: u64,
    next: Instant,
    pause: Duration,
    /// Whether something was counted since its counts were told.
    is_untold: bool,
    /// How they were told.
    text: String,
    /// Whether the Job has: what was counted is told with that.
    has_ended: bool,
}

impl Told {
    fn end(&mut self) {
        (self.has_ended, self.is_untold) = (true, false);
    }

    /// The counts of a Job, now that it is time for them, unless they are as they were: there is more in a
    /// status.
    fn tell(&mut self, job: &JobProgress, now: Instant) -> Option<String> {
        self.is_untold = false;
        let text = format!("{}: {}\n", job.title, words::counts(&job.counts()));
        if text == self.text {
            return None;
        }
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        self.next = now + self.pause;
        self.text.clone_from(&text);
        Some(text)
    }
}

impl Plain {
    fn new(progress: &Progress, now: Instant) -> Self {
        let (next, pause) = (now + FIRST_PAUSE, FIRST_PAUSE);
        let told = || {
            let text = String::new();
            Told { failures: 0, next, pause, is_untold: false, text, has_ended: false }
        };
        Plain { jobs: progress.jobs().iter().map(|_| told()).collect() }
    }

    /// The lines about what has changed and was not told yet, of the Jobs whose time has come.
    fn due(&mut self, progress: &Progress, now: Instant) -> Vec<String> {
        let all = self.jobs.iter_mut().zip(progress.jobs());
        let due = all.filter(|(told, _)| told.is_untold && told.next <= now);
        due.filter_map(|(told, job)| told.tell(job, now)).collect()
    }

    /// The line about a change, if it is worth one now.
    fn line(&mut self, change: &Change, progress: &Progress, now: Instant) -> Option<String> {
        match change {
            Change::PodFailed { job, failure } => {
                let told = &mut self.jobs[*job];
                told.failures += 1;
                if told.failures > MAX_TOLD_FAILURES {
                    return None;
                }
                let note =
                    if told.failures == MAX_TOLD_FAILURES { "; more are counted only" } else { "" };
                let title = &progress.jobs()[*job].title;
                let why = printable(&failure.told(), MAX_MESSAGE_CHARS);
                let (what, happened) = (failure.what(), failure.happened());
                let again =
                    if failure.goes_on { ", and its container is started again" } else { "" };
                Some(format!("{title}: {what} {happened}: {why}{again}{note}\n"))
            }
            Change::PodWaits { job, waits } => {
                let title = &progress.jobs()[*job].title;
                let why = printable(&waits.why, MAX_MESSAGE_CHARS);
                Some(format!("{title}: {} waits: {why}\n", waits.what))
            }
            // The summary tells it all if there is one Job.
            Change::Ended { job } if self.jobs.len() == 1 => {
                self.jobs[*job].end();
                None
            }
            Change::Ended { job } => {
                self.jobs[*job].end();
                let job = &progress.jobs()[*job];
                let how = job.why().map_or("not finished", |condition| condition.type_.as_str());
                Some(format!("{}: {how} in {}\n", job.title, words::time(job.elapsed(now))))
            }
            Change::Counted { job } => {
                let told = &mut self.jobs[*job];
                if now < told.next || told.has_ended {
                    told.is_untold = !told.has_ended;
                    return None;
                }
                told.tell(&progress.jobs()[*job], now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::json;
    use stint_api::index_set::IndexSet;

    use super::*;
    use crate::progress::Failure;
    use crate::words::Counted;

    fn progress(now: Instant) -> Progress {
        progress_after(1, now)
    }

    fn progress_after(succeeded: u64, now: Instant) -> Progress {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work", "uid": "u"},
            "spec": {"completions": 4, "template": {}}, "status": {"succeeded": succeeded},
        }))
        .expect("it is a Job");
        let mut progress = Progress::default();
        progress.add(job, IndexSet::new(), now);
        progress
    }

    #[test]
    fn counts_are_told_ever_more_rarely() {
        let now = Instant::now();
        let mut plain = Plain::new(&progress(now), now);
        let told: Vec<u64> = (0..100)
            .filter(|second| {
                let progress = progress_after(*second, now);
                let now = now + Duration::from_secs(*second);
                plain.line(&Change::Counted { job: 0 }, &progress, now).is_some()
            })
            .collect();
        assert_eq!(told, [1, 3, 7, 15, 31, 61, 91]);
    }

    /// Nothing may happen for hours after it.
    #[test]
    fn a_change_that_came_too_soon_is_told_later_and_once() {
        let begun = Instant::now();
        let at = |millis: u64| begun + Duration::from_millis(millis);
        let progress = progress(begun);
        let mut plain = Plain::new(&progress, begun);
        assert_eq!(plain.due(&progress, at(5_000)), [""; 0], "nothing has changed");
        let mut plain = Plain::new(&progress, begun);
        assert_eq!(plain.line(&Change::Counted { job: 0 }, &progress, at(500)), None);
        assert_eq!(plain.due(&progress, at(900)), [""; 0]);
        assert_eq!(plain.due(&progress, at(1_000)), ["work: 1 of 4 done, 3 waiting\n"]);
        assert_eq!(plain.due(&progress, at(9_000)), [""; 0], "it is told");
        let counted = Change::Counted { job: 0 };
        assert_eq!(plain.line(&counted, &progress, at(9_500)), None, "no count has changed");
        let progress = progress_after(2, begun);
        let told = plain.line(&counted, &progress, at(9_500));
        assert_eq!(told.as_deref(), Some("work: 2 of 4 done, 2 waiting\n"));
        assert_eq!(plain.due(&progress, at(90_000)), [""; 0], "it was told at once");
        assert_eq!(plain.line(&counted, &progress, at(10_000)), None);
        assert_eq!(plain.due(&progress, at(90_000)), [""; 0], "the counts are the same");
    }

    #[test]
    fn narrow_terminals_have_room_for_what_matters() {
        let counts = Counts {
            total: Some(5000),
            done: 1234,
            failed: 12,
            counted: Counted::Indexes,
            running: 32,
            waiting: Some(3722),
        };
        let pace = words::pace(&counts, Duration::from_secs(10)).expect("some are done");
        let short = format!("1234/5000, 12 failed, 32 run, 3722 wait, {pace}");
        let long =
            format!("1234 of 5000 done, 12 indexes failed, 32 running, 3722 waiting, {pace}");
        for (columns, needs) in
            [(40, "1234/5000, 12 failed, 32 run"), (80, &*short), (120, &*short), (140, &*long)]
        {
            let layout = Layout::of(columns);
            let around = layout.title + 1 + if layout.bar == 0 { 0 } else { layout.bar + 3 };
            let message = format!("{}, {pace}", layout.counts(&counts));
            let room = usize::from(columns) - around;
            let shown: String = message.chars().take(room).collect();
            assert!(shown.contains(needs), "{columns}: {shown}");
        }
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        let rows = [
            (Some(4), 0, "     "),
            (Some(1000), 1, ">    "),
            (Some(4), 2, "==>  "),
            (Some(1000), 999, "====>"),
            (Some(4), 4, "====="),
            (Some(0), 0, "====="),
            (None, 7, "     "),
        ];
        for (total, done, expected) in rows {
            let counted = Counted::Pods;
            let counts = Counts { total, done, failed: 0, counted, running: 0, waiting: None };
            assert_eq!(bar(5, &counts), expected, "{done} of {total:?}");
        }
    }

    #[test]
    fn bars_leave_room_for_the_latest_failure() {
        let rows = [(1, 1), (6, 1), (10, 5), (17, 12), (24, 12), (60, 12)];
        for (height, expected) in rows {
            assert_eq!(bars_on(height), expected, "{height} rows");
        }
    }

    #[test]
    fn only_the_first_failures_are_told_one_by_one() {
        let now = Instant::now();
        let progress = progress(now);
        let mut plain = Plain::new(&progress, now);
        let failure = Failure {
            index: Some(3),
            namespace: "default".to_owned(),
            pod: "work-3".to_owned(),
            container: None,
            why: "exit code 1".to_owned(),
            times: 1,
            uid: "u".to_owned(),
            goes_on: false,
            run: None,
            ran: None,
            others: Vec::new(),
            interruptions: 0,
            is_interruption: false,
        };
        let change = Change::PodFailed { job: 0, failure };
        let told: Vec<String> =
            (0..100).filter_map(|_| plain.line(&change, &progress, now)).collect();
        assert_eq!(told.len(), 10);
        assert_eq!(told[0], "work: index 3 failed: exit code 1\n");
        assert_eq!(told[9], "work: index 3 failed: exit code 1; more are counted only\n");
    }
}
