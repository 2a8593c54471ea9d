//! Jobs as they change: a line for each change, as soon as it is one.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use thiserror::Error;
use tokio::sync::mpsc::channel;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::state::State;
use super::table::{Row, Table};
use crate::away::Away;
use crate::calls::{Seen, watch_jobs};
use crate::stdout::write;

/// How often changes are shown: a Job of many Pods changes all the time.
const TICK: Duration = Duration::from_millis(500);

/// How much news may wait to be taken in.
const MAX_WAITING_NEWS: usize = 1024;

/// Why it cannot be watched any more.
#[derive(Debug, Error)]
pub(crate) enum WatchError {
    #[error("the cluster does not answer any more: {0}")]
    Lost(String),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

/// How the watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The Job has ended.
    Ended,
    /// It is gone.
    Gone,
}

/// Shows the Jobs of a list as they change, after those that are there now. If there is one Job
/// only, `uid` is its own, and its end is the end.
pub(crate) async fn watch(
    client: Client,
    path: String,
    jobs: &[Job],
    uid: Option<&str>,
    table: &mut Table,
) -> Result<Watched, WatchError> {
    let now = Timestamp::now();
    let rows: Vec<Row> = jobs.iter().map(|job| Row::new(job, false, now)).collect();
    let text: String = std::iter::once(table.head(&rows))
        .chain(rows.iter().map(|row| table.row(row)).collect::<Vec<_>>())
        .collect();
    write(&text)?;
    if uid.is_some() && jobs.iter().any(|job| State::of(job).is_end()) {
        return Ok(Watched::Ended);
    }
    let mut changes =
        Changes { shown: jobs.iter().map(key).zip(rows).collect(), ..Default::default() };
    let (sender, mut news) = channel(MAX_WAITING_NEWS);
    let mut watches = JoinSet::new();
    watches.spawn(async move { watch_jobs(client, &path, sender).await });
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut away = Away::default();
    loop {
        let mut end = None;
        tokio::select! {
            Some(seen) = news.recv() => match seen {
                Seen::Job(job, is_gone) => {
                    let is_own = uid.is_none() || job.metadata.uid.as_deref() == uid;
                    end = match is_own {
                        _ if uid.is_none() => None,
                        // Another of the same name is there only when this one has gone.
                        false => Some(Watched::Gone),
                        true if is_gone => Some(Watched::Gone),
                        true => State::of(&job).is_end().then_some(Watched::Ended),
                    };
                    if is_own {
                        changes.observe(&job, is_gone);
                    }
                }
                Seen::Lost(why) if away.is_for_good(Instant::now()) => {
                    return Err(WatchError::Lost(why));
                }
                Seen::Pod(..) | Seen::Lost(_) => {}
            },
            _ = ticks.tick() => {}
        }
        // The first tick comes at once, and each one after it when there was time for changes.
        let is_time = end.is_some() || changes.last_shown.is_none_or(|it| it.elapsed() >= TICK);
        if is_time {
            write(&changes.take(table))?;
        }
        if let Some(end) = end {
            return Ok(end);
        }
    }
}

/// What has changed since it was last shown.
#[derive(Debug, Default)]
struct Changes {
    shown: BTreeMap<(String, String), Row>,
    fresh: BTreeMap<(String, String), Row>,
    last_shown: Option<Instant>,
}

impl Changes {
    fn observe(&mut self, job: &Job, is_gone: bool) {
        self.fresh.insert(key(job), Row::new(job, is_gone, Timestamp::now()));
    }

    /// The lines to be shown now.
    fn take(&mut self, table: &mut Table) -> String {
        let mut text = String::new();
        for (key, row) in std::mem::take(&mut self.fresh) {
            if self.shown.get(&key).is_some_and(|shown| shown.is_like(&row)) {
                continue;
            }
            text += &table.row(&row);
            self.shown.insert(key, row);
        }
        if !text.is_empty() {
            self.last_shown = Some(Instant::now());
        }
        text
    }
}

fn key(job: &Job) -> (String, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&job.metadata.namespace), text(&job.metadata.name))
}
