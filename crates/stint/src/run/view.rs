//! What is shown while Jobs run: bars on a terminal, a line for each change elsewhere.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::screen::Screen;
use crate::printable::{MAX_MESSAGE_CHARS, printable, printable_ends};
use crate::progress::{Change, Progress};
use crate::words::{self, Counts};

/// Most Jobs with a bar of their own: what fits on a usual terminal.
const MAX_BARS: usize = 12;

/// How many fit on a terminal of so many rows, if that is known: beneath them there is the latest
/// failure with its last lines, and the cursor.
fn bars_on(rows: u16) -> usize {
    match usize::from(rows) {
        0 => MAX_BARS,
        rows => rows.saturating_sub(2 + MAX_TAIL_LINES).clamp(1, MAX_BARS),
    }
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

    fn of_terminal() -> Self {
        let size = rustix::termios::tcgetwinsize(io::stderr());
        Self::of(size.map_or(80, |size| size.ws_col))
    }

    fn template(self) -> String {
        match self.bar {
            0 => "{prefix} {wide_msg}".to_owned(),
            width => format!("{{prefix}} [{{bar:{width}}}] {{wide_msg}}"),
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
            View::Live(Live::new(progress, screen))
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
            View::Quiet | View::Plain(..) => {}
            View::Live(live) => live.draw(progress, tail, now),
        }
    }

    /// Whether it shows what failures wrote last.
    pub(crate) fn wants_tail(&self) -> bool {
        matches!(self, View::Live(_))
    }

    /// What redraws itself, for others who write to the terminal.
    pub(crate) fn bars(&self) -> Option<MultiProgress> {
        match self {
            View::Quiet | View::Plain(..) => None,
            View::Live(live) => Some(live.all.clone()),
        }
    }

    /// Takes away what redraws itself.
    pub(crate) fn close(&mut self) {
        if let View::Live(live) = self {
            let all = live.all.clone();
            live.screen.draw(move || drop(all.clear()));
        }
        *self = View::Quiet;
    }
}

/// Bars on a terminal.
pub(crate) struct Live {
    all: MultiProgress,
    /// That of the last drawing: the terminal may have another size at the next.
    layout: Option<Layout>,
    titles: Vec<String>,
    bars: Arc<Bars>,
    screen: Screen,
}

struct Bars {
    jobs: Vec<ProgressBar>,
    /// The latest failure, and a line for each of its last.
    failure: ProgressBar,
    tail: Vec<ProgressBar>,
}

impl Live {
    fn new(progress: &Progress, screen: Screen) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let size = rustix::termios::tcgetwinsize(io::stderr());
        let shown = progress.jobs().iter().take(bars_on(size.map_or(0, |size| size.ws_row)));
        let titles = shown.clone().map(|job| job.title.clone()).collect();
        let jobs =
            shown.map(|job| all.add(ProgressBar::new(job.counts().total.unwrap_or(0)))).collect();
        let line = || {
            let line = all.add(ProgressBar::new(0));
            line.set_style(style("{wide_msg}"));
            line
        };
        let failure = line();
        let tail = (0..MAX_TAIL_LINES).map(|_| line()).collect();
        let bars = Arc::new(Bars { jobs, failure, tail });
        Live { all, layout: None, titles, bars, screen }
    }

    fn draw(&mut self, progress: &Progress, tail: &[String], now: Instant) {
        let layout = Layout::of_terminal();
        if self.layout.replace(layout) != Some(layout) {
            let (bars, titles) = (self.bars.clone(), layout.titles(&self.titles));
            self.screen.draw(move || bars.arrange(layout, titles));
        }
        let shown = progress.jobs().iter().take(self.bars.jobs.len());
        let jobs: Vec<(u64, String)> = shown
            .map(|job| {
                let (counts, elapsed) = (job.counts(), job.elapsed(now));
                let pace = words::pace(&job.counts_of_this_run(), elapsed);
                let pace = pace.map(|pace| format!(", {pace}")).unwrap_or_default();
                let (counted, time) = (layout.counts(&counts), words::time(elapsed));
                (counts.done, format!("{counted}{pace}, {time}"))
            })
            .collect();
        let hidden = progress.jobs().len().saturating_sub(jobs.len());
        let rest = (hidden > 0).then(|| format!("… and {hidden} more Jobs"));
        let latest = progress.latest_failure().map(|(job, failure)| {
            let (title, what) = (printable_ends(&job.title, 30), failure.what());
            let why = printable(&failure.told(), MAX_TAIL_CHARS);
            format!("{title}: {what} failed: {why}")
        });
        let waits = progress.jobs().iter().find_map(|job| {
            let waits = job.waits()?;
            let why = printable(&waits.why, MAX_MESSAGE_CHARS);
            Some(format!("{}: {} waits: {why}", printable_ends(&job.title, 30), waits.what))
        });
        let lines: Vec<String> = waits.into_iter().chain(latest).chain(rest).collect();
        let failure = lines.join("; ");
        let last = &tail[tail.len().saturating_sub(self.bars.tail.len())..];
        let tail: Vec<String> =
            last.iter().map(|line| format!("  | {}", printable(line, MAX_TAIL_CHARS))).collect();
        let bars = self.bars.clone();
        self.screen.draw(move || bars.show(jobs, failure, tail));
    }
}

impl Bars {
    /// Makes them fit the terminal.
    fn arrange(&self, layout: Layout, titles: Vec<String>) {
        for (bar, title) in self.jobs.iter().zip(titles) {
            bar.set_style(style(&layout.template()).progress_chars("=> "));
            bar.set_prefix(title);
        }
    }

    /// Draws them, which takes as long as the terminal does.
    fn show(&self, jobs: Vec<(u64, String)>, failure: String, tail: Vec<String>) {
        for (bar, (done, message)) in self.jobs.iter().zip(jobs) {
            bar.set_position(done);
            bar.set_message(message);
        }
        self.failure.set_message(failure);
        let nothing = std::iter::repeat_with(String::new);
        for (bar, line) in self.tail.iter().zip(tail.into_iter().chain(nothing)) {
            bar.set_message(line);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
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
}

impl Plain {
    fn new(progress: &Progress, now: Instant) -> Self {
        let told = || Told { failures: 0, next: now + FIRST_PAUSE, pause: FIRST_PAUSE };
        Plain { jobs: progress.jobs().iter().map(|_| told()).collect() }
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
                Some(format!("{title}: {} failed: {why}{note}\n", failure.what()))
            }
            Change::PodWaits { job, waits } => {
                let title = &progress.jobs()[*job].title;
                let why = printable(&waits.why, MAX_MESSAGE_CHARS);
                Some(format!("{title}: {} waits: {why}\n", waits.what))
            }
            // The summary tells it all if there is one Job.
            Change::Ended { .. } if self.jobs.len() == 1 => None,
            Change::Ended { job } => {
                let job = &progress.jobs()[*job];
                let how = job.why().map_or("not finished", |condition| condition.type_.as_str());
                Some(format!("{}: {how} in {}\n", job.title, words::time(job.elapsed(now))))
            }
            Change::Counted { job } => {
                let told = &mut self.jobs[*job];
                if now < told.next {
                    return None;
                }
                told.pause = (told.pause * 2).min(LAST_PAUSE);
                told.next = now + told.pause;
                let job = &progress.jobs()[*job];
                Some(format!("{}: {}\n", job.title, words::counts(&job.counts())))
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
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work", "uid": "u"},
            "spec": {"completions": 4, "template": {}}, "status": {"succeeded": 1},
        }))
        .expect("it is a Job");
        let mut progress = Progress::default();
        progress.add(job, IndexSet::new(), now);
        progress
    }

    #[test]
    fn counts_are_told_ever_more_rarely() {
        let now = Instant::now();
        let progress = progress(now);
        let mut plain = Plain::new(&progress, now);
        let told: Vec<u64> = (0..100)
            .filter(|second| {
                let now = now + Duration::from_secs(*second);
                plain.line(&Change::Counted { job: 0 }, &progress, now).is_some()
            })
            .collect();
        assert_eq!(told, [1, 3, 7, 15, 31, 61, 91]);
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
    fn bars_leave_room_for_the_latest_failure() {
        let rows = [(0, 12), (1, 1), (6, 1), (10, 5), (17, 12), (24, 12), (60, 12)];
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
        };
        let change = Change::PodFailed { job: 0, failure };
        let told: Vec<String> =
            (0..100).filter_map(|_| plain.line(&change, &progress, now)).collect();
        assert_eq!(told.len(), 10);
        assert_eq!(told[0], "work: index 3 failed: exit code 1\n");
        assert_eq!(told[9], "work: index 3 failed: exit code 1; more are counted only\n");
    }
}
