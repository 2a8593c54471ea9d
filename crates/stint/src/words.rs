//! Times, counts and lists of indexes, as they are told to people.

use std::time::Duration;

use jiff::SignedDuration;
use stint_api::index_set::IndexSet;

/// Most characters of a list of indexes: some lines of a terminal.
const MAX_INDEX_CHARS: usize = 300;

/// What there is to count in a Job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How many completions are to be reached in this run; none if the Pods decide.
    pub(crate) total: Option<u64>,
    pub(crate) done: u64,
    /// Failed indexes, or failed Pods where indexes do not fail by themselves: `counted` says
    /// which.
    pub(crate) failed: u64,
    pub(crate) counted: Counted,
    pub(crate) running: u64,
    /// Those that have not begun, or wait for another try.
    pub(crate) waiting: Option<u64>,
}

/// What fails in a Job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counted {
    #[default]
    Pods,
    /// Each has a number of failures of its own (`backoffLimitPerIndex`).
    Indexes,
}

impl Counted {
    /// `1 Pod`, `2 Pods`, `1 index`, `2 indexes`.
    pub(crate) fn told(self, count: u64) -> String {
        let noun = match (self, count) {
            (Counted::Pods, 1) => "Pod",
            (Counted::Pods, _) => "Pods",
            (Counted::Indexes, 1) => "index",
            (Counted::Indexes, _) => "indexes",
        };
        format!("{count} {noun}")
    }
}

/// `0.42s`, `12.3s`, `3m05s`, `2h04m`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{:.2}s", time.as_secs_f64()),
        10..=59 => format!("{:.1}s", time.as_secs_f64()),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `42s`, `3m05s`, `2h04m`, `3d04h`: between times that are known to the second.
pub(crate) fn age(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// `1,3-5`; cut after a whole range if it is long.
pub(crate) fn indexes(set: &IndexSet) -> String {
    let text = set.to_string();
    if text.len() <= MAX_INDEX_CHARS {
        return text;
    }
    let end = text[..MAX_INDEX_CHARS].rfind(',').unwrap_or(MAX_INDEX_CHARS);
    format!("{},…", &text[..end])
}

/// `6 of 8 done, 2 indexes failed, 1 running, 1 waiting`.
pub(crate) fn counts(counts: &Counts) -> String {
    let mut text = match counts.total {
        Some(total) => format!("{} of {total} done", counts.done),
        None => format!("{} done", counts.done),
    };
    if counts.failed > 0 {
        text += &format!(", {} failed", counts.counted.told(counts.failed));
    }
    if counts.running > 0 {
        text += &format!(", {} running", counts.running);
    }
    if let Some(waiting) = counts.waiting.filter(|waiting| *waiting > 0) {
        text += &format!(", {waiting} waiting");
    }
    text
}

/// `6/8, 2 failed, 1 run, 1 wait`, where there is little room.
pub(crate) fn short_counts(counts: &Counts) -> String {
    let mut text = match counts.total {
        Some(total) => format!("{}/{total}", counts.done),
        None => format!("{} done", counts.done),
    };
    let waiting = counts.waiting.unwrap_or(0);
    for (count, word) in [(counts.failed, "failed"), (counts.running, "run"), (waiting, "wait")] {
        if count > 0 {
            text += &format!(", {count} {word}");
        }
    }
    text
}

/// How fast it goes and how long it will take at that: `3.2/s, 12.0s left`. Nothing before
/// anything is done.
pub(crate) fn pace(counts: &Counts, elapsed: Duration) -> Option<String> {
    let seconds = elapsed.as_secs_f64();
    if counts.done == 0 || seconds < 0.5 {
        return None;
    }
    let rate = counts.done as f64 / seconds;
    let shown =
        if rate >= 0.1 { format!("{rate:.1}/s") } else { format!("{:.1}/min", rate * 60.0) };
    // What has failed for good takes no more time.
    let left = counts.waiting.map(|waiting| waiting + counts.running);
    match left.filter(|left| *left > 0) {
        Some(left) => {
            let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
            Some(format!("{shown}, {} left", time(left)))
        }
        None => Some(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Counts = Counts {
        total: None,
        done: 0,
        failed: 0,
        counted: Counted::Pods,
        running: 0,
        waiting: None,
    };

    #[test]
    fn times_are_short() {
        let rows = [(420, "0.42s"), (12_345, "12.3s"), (185_000, "3m05s"), (7_440_000, "2h04m")];
        for (millis, expected) in rows {
            assert_eq!(time(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn ages_are_whole_seconds() {
        let rows = [(0, "0s"), (-5, "0s"), (59, "59s"), (185, "3m05s"), (7_440, "2h04m")];
        for (seconds, expected) in rows.into_iter().chain([(273_600, "3d04h")]) {
            assert_eq!(age(SignedDuration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn counts_leave_out_what_is_nothing() {
        let some =
            Counts { total: Some(8), done: 4, failed: 2, running: 1, waiting: Some(1), ..NONE };
        assert_eq!(counts(&some), "4 of 8 done, 2 Pods failed, 1 running, 1 waiting");
        assert_eq!(short_counts(&some), "4/8, 2 failed, 1 run, 1 wait");
        let open = Counts { done: 3, ..Counts::default() };
        assert_eq!((&*counts(&open), &*short_counts(&open)), ("3 done", "3 done"));
    }

    #[test]
    fn the_pace_says_how_long_it_will_take() {
        let some = Counts { total: Some(8), done: 4, running: 1, waiting: Some(3), ..NONE };
        assert_eq!(pace(&some, Duration::from_secs(2)).as_deref(), Some("2.0/s, 2.00s left"));
        assert_eq!(pace(&Counts { done: 0, ..some }, Duration::from_secs(2)), None);
        let some_failed = Counts { failed: 2, waiting: Some(1), ..some };
        assert_eq!(
            pace(&some_failed, Duration::from_secs(2)).as_deref(),
            Some("2.0/s, 1.00s left")
        );
        let done = Counts { done: 8, running: 0, waiting: Some(0), ..some };
        assert_eq!(pace(&done, Duration::from_secs(160)).as_deref(), Some("3.0/min"));
    }

    #[test]
    fn a_long_list_of_indexes_is_cut_between_two() {
        let odd: IndexSet = (0..500).map(|index| index * 2).collect();
        let text = indexes(&odd);
        assert!(text.len() <= MAX_INDEX_CHARS + 5 && text.ends_with(",…"), "{text}");
    }
}
