//! What the containers of Jobs print, line by line, with the Job and the index in front.
//!
//! The logs of the last two runs of a container are kept. A container that is started again soon may
//! have had a run that was never seen: so with each run the one before is read, and by the times of
//! the lines it is known what was read before.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::AsyncBufRead;
use kube::Client;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::sleep;

use super::screen::Screen;
use crate::log_lines::{self, Line, MAX_WAITING_LINES, Part, open_path, read_line};
use crate::pod_sight::{PodSight, Stage};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::recent::Recent;
use crate::spool::Patience;

/// How many logs are read at once: twice as many as Pods run at once, if nobody says otherwise.
const MAX_FOLLOWED: usize = 2_000;

/// How many logs wait to be read: twice as many as there are of Pods that have ended.
const MAX_QUEUED: usize = 10_000;

/// How often a log is asked for, and the first wait in between, doubled each time.
const MAX_TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How many runs of a container it is remembered of what was read.
const MAX_SPANS: usize = 4;

/// Follows the logs of containers as they begin.
pub(crate) struct JobLogs {
    /// The Pods that have not ended.
    begun: HashMap<String, BegunPod>,
    /// The Pods that have ended: nothing of them begins any more.
    over: Recent,
    runs: Sender<Run>,
    screen: Screen,
    is_full: watch::Receiver<bool>,
    is_left_out_told: bool,
}

#[derive(Default)]
struct BegunPod {
    /// Of each container the number of its next run.
    containers: HashMap<String, Begun>,
    /// Whether it has ended, for those who read what it has printed.
    is_over: Arc<AtomicBool>,
}

#[derive(Default)]
struct Begun {
    next_run: u32,
    /// What was read of the runs before, once it is.
    before: Option<oneshot::Receiver<Spans>>,
}

impl JobLogs {
    /// And where the lines come from. Whether there is room for them is told by `is_full`.
    pub(crate) fn new(
        client: Client,
        screen: Screen,
        is_full: watch::Receiver<bool>,
    ) -> (Self, Receiver<Line>) {
        let (lines, received) = channel(MAX_WAITING_LINES);
        let (runs, wanted) = channel(MAX_QUEUED);
        tokio::spawn(follow_all(client, wanted, lines, screen.clone()));
        let begun = HashMap::new();
        let over = Recent::default();
        (JobLogs { begun, over, runs, screen, is_full, is_left_out_told: false }, received)
    }

    /// Leaves out what a Pod has printed that had ended before.
    pub(crate) fn leave_out(&mut self, pod: &PodSight) {
        self.over.insert(pod.uid());
    }

    /// A Pod of a Job was seen, or was seen for the last time.
    pub(crate) fn observe(&mut self, pod: &PodSight, is_gone: bool, title: &str) {
        if is_gone {
            self.forget(pod);
            self.over.remove(pod.uid());
            return;
        }
        if self.over.contains(pod.uid()) {
            return;
        }
        for (container, number) in pod.begun_containers() {
            let of_pod = self.begun.entry(pod.uid().to_owned()).or_default();
            let begun = of_pod.containers.entry(container.to_owned()).or_default();
            if begun.next_run > number {
                continue;
            }
            begun.next_run = number + 1;
            let (read, after) = oneshot::channel();
            let before = begun.before.replace(after);
            let patience =
                Patience { is_full: self.is_full.clone(), is_over: of_pod.is_over.clone() };
            let run = Run::new(pod, (container, number), title, before, read, patience);
            if self.runs.try_send(run).is_err() && !self.is_left_out_told {
                self.is_left_out_told = true;
                let text = "what some Pods print is left out here, as it is read too slowly\n";
                self.screen.say(text.to_owned());
            }
        }
        if matches!(pod.stage(), Stage::Succeeded | Stage::Failed) {
            self.forget(pod);
            self.over.insert(pod.uid());
        }
    }

    /// Nothing of it begins any more.
    fn forget(&mut self, pod: &PodSight) {
        if let Some(begun) = self.begun.remove(pod.uid()) {
            begun.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// Follows what is asked for, so many at once.
async fn follow_all(
    client: Client,
    mut wanted: Receiver<Run>,
    lines: Sender<Line>,
    screen: Screen,
) {
    let places = Arc::new(Semaphore::new(MAX_FOLLOWED));
    while let Some(run) = wanted.recv().await {
        let place = places.clone().acquire_owned().await.expect("it is never closed");
        let (client, lines, screen) = (client.clone(), lines.clone(), screen.clone());
        tokio::spawn(async move {
            run.follow(&client, &lines, &screen).await;
            drop(place);
        });
    }
}

/// A run of a container.
struct Run {
    path: String,
    /// That of the run before, if there may be one.
    previous: Option<String>,
    prefix: String,
    before: Option<oneshot::Receiver<Spans>>,
    read: oneshot::Sender<Spans>,
    patience: Patience,
}

/// Why a log was not read to its end.
enum Cut {
    Failed(kube::Error),
    Broken(std::io::Error),
    /// Nobody wants the lines any more.
    Unwanted,
}

impl Run {
    fn new(
        pod: &PodSight,
        (container, number): (&str, u32),
        title: &str,
        before: Option<oneshot::Receiver<Spans>>,
        read: oneshot::Sender<Spans>,
        patience: Patience,
    ) -> Self {
        let prefix = log_lines::prefix(title, pod, pod.has_several().then_some(container));
        let path = |number: u32, follows: bool| {
            let part = Part { follows, run: Some(number), has_timestamps: true, ..Part::default() };
            log_lines::path(pod, container, part)
        };
        let previous = number.checked_sub(1).map(|number| path(number, false));
        Run { path: path(number, true), previous, prefix, before, read, patience }
    }

    async fn follow(self, client: &Client, lines: &Sender<Line>, screen: &Screen) {
        let Run { path, previous, prefix, mut before, read, mut patience } = self;
        let mut spans = Spans::default();
        let mut pause = FIRST_PAUSE;
        for number in 1..=MAX_TRIES {
            let read = async {
                // Both are open before either is read, also while the runs before are: with every new
                // run an old one goes that nobody has opened.
                let log = open_path(client, &path).await.map_err(Cut::Failed)?;
                let previous = match &previous {
                    Some(previous) => open_path(client, previous).await.ok(),
                    None => None,
                };
                if let Some(before) = before.take() {
                    spans = before.await.unwrap_or_default();
                }
                if let Some(log) = previous {
                    let _ = copy(log, &prefix, lines, &mut spans, &mut patience).await;
                }
                copy(log, &prefix, lines, &mut spans, &mut patience).await
            };
            let why = match read.await {
                Ok(()) => break,
                Err(Cut::Unwanted) => return,
                Err(Cut::Failed(kube::Error::Api(status))) => {
                    let is_final = status.code == 404 || number == MAX_TRIES;
                    is_final.then_some(status.message)
                }
                Err(Cut::Failed(error)) => (number == MAX_TRIES).then(|| error.to_string()),
                Err(Cut::Broken(error)) => (number == MAX_TRIES).then(|| error.to_string()),
            };
            if let Some(why) = why {
                let why = printable(&why, MAX_MESSAGE_CHARS);
                screen.say(format!("{prefix}its log cannot be shown: {why}\n"));
                break;
            }
            sleep(pause).await;
            pause *= 2;
        }
        if let Some(before) = before {
            spans = before.await.unwrap_or_default();
        }
        let _ = read.send(spans);
    }
}

/// The times between which lines were read: from the first to the last of each run.
#[derive(Debug, Default)]
struct Spans {
    all: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Spans {
    /// Times have the same form always, so that their bytes have the order of the times.
    fn contains(&self, time: &[u8]) -> bool {
        self.all.iter().any(|(first, last)| (first.as_slice()..=last.as_slice()).contains(&time))
    }

    fn add(&mut self, span: Option<(Vec<u8>, Vec<u8>)>) {
        self.all.extend(span);
        if self.all.len() > MAX_SPANS {
            self.all.remove(0);
        }
    }
}

/// Passes on the lines of a log that were not read before.
async fn copy(
    log: impl AsyncBufRead,
    prefix: &str,
    lines: &Sender<Line>,
    spans: &mut Spans,
    patience: &mut Patience,
) -> Result<(), Cut> {
    let mut log = std::pin::pin!(log);
    let mut text = LogText { prefix, before: spans, read: None, is_within: false, is_known: false };
    let mut line = Vec::new();
    let cut = loop {
        let read = read_line(&mut log, &mut line).await;
        if let Some(shown) =
            Some(&line).filter(|line| !line.is_empty()).and_then(|it| text.take(it))
        {
            let mut shown = shown;
            shown.is_needed = patience.wait().await;
            lines.send(shown).await.map_err(|_| Cut::Unwanted)?;
        }
        match read {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(Cut::Broken(error)),
        }
    };
    let read = text.read;
    spans.add(read);
    cut
}

/// The lines of a log, each with its time in front; a long one comes in pieces.
struct LogText<'a> {
    prefix: &'a str,
    before: &'a Spans,
    /// The first and the last time of what is new.
    read: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether a line goes on, and whether it was read before.
    is_within: bool,
    is_known: bool,
}

impl LogText<'_> {
    /// What is shown of a line or of a piece of one; nothing if that was before.
    fn take(&mut self, line: &[u8]) -> Option<Line> {
        let mut text = line;
        if !self.is_within
            && let Some(end) = line.iter().position(|byte| *byte == b' ')
        {
            let time = &line[..end];
            text = &line[end + 1..];
            self.is_known = self.before.contains(time);
            if !self.is_known {
                let (_, last) = self.read.get_or_insert_with(|| (time.to_vec(), time.to_vec()));
                time.clone_into(last);
            }
        }
        let is_whole = text.last() == Some(&b'\n');
        self.is_within = !is_whole;
        if self.is_known {
            return None;
        }
        let mut shown = Line::new(self.prefix, text);
        if !is_whole {
            shown.text.push(b'\n');
        }
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_is_not_shown_again() {
        let mut before = Spans::default();
        let at = |second: u32| format!("2030-01-01T00:00:{second:02}.000000000Z");
        before.add(Some((at(3).into_bytes(), at(5).into_bytes())));
        let mut text = LogText {
            prefix: "[a] ",
            before: &before,
            read: None,
            is_within: false,
            is_known: false,
        };
        let mut shown = Vec::new();
        for second in 1..8 {
            // A line that is too long comes in two pieces.
            let first = format!("{} line {second}", at(second)).into_bytes();
            let pieces = [text.take(&first), text.take(b"and more\n")];
            shown.extend(pieces.into_iter().flatten().flat_map(|line| line.text));
        }
        let shown = String::from_utf8(shown).expect("it is text");
        let numbers: Vec<&str> =
            shown.lines().filter_map(|line| line.strip_prefix("[a] line ")).collect();
        assert_eq!(numbers, ["1", "2", "6", "7"]);
        assert_eq!(shown.matches("[a] and more\n").count(), 4);
        let (first, last) = text.read.expect("there is something new");
        assert_eq!((first, last), (at(1).into_bytes(), at(7).into_bytes()));
    }
}
