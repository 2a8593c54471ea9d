//! How long something took, in two or three figures: `119s`, `2m5s`, `3h5m`, `400d`.
//!
//! The same as HumanDuration of k8s.io/apimachinery, which kubectl's users read ages in.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What is said of a time that is not known.
pub const UNKNOWN: &str = "<unknown>";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Leap days are not counted.
const YEAR: i64 = 365 * DAY;

/// No duration is longer than Go's: 2^63 nanoseconds, 292 years.
const LONGEST: SignedDuration = SignedDuration::from_nanos(i64::MAX);

/// A duration in words. A little before zero is zero, because clocks differ; more than that
/// is `<invalid>`.
pub fn human(duration: SignedDuration) -> String {
    let seconds = duration.min(LONGEST).as_secs();
    let (days, hours, minutes) = (seconds / DAY, seconds / HOUR, seconds / MINUTE);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(minutes, "m", seconds % MINUTE, "s"),
        _ if seconds < 3 * HOUR => format!("{minutes}m"),
        _ if seconds < 8 * HOUR => two(hours, "h", minutes % 60, "m"),
        _ if seconds < 2 * DAY => format!("{hours}h"),
        _ if seconds < 8 * DAY => two(days, "d", hours % 24, "h"),
        _ if seconds < 2 * YEAR => format!("{days}d"),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", days % 365, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The time since a moment, `<unknown>` if there is none.
pub fn since(moment: Option<&Time>, now: Timestamp) -> String {
    ago(moment.map(|time| time.0), now)
}

/// The time since a moment that is known to the microsecond.
pub fn since_micro(moment: Option<&MicroTime>, now: Timestamp) -> String {
    ago(moment.map(|time| time.0), now)
}

/// Whether a time is one. Go writes the first moment of the year 1 for a time that is not set.
pub(super) fn is_set(moment: Timestamp) -> bool {
    const GO_ZERO_SECOND: i64 = -62_135_596_800;
    moment.as_second() != GO_ZERO_SECOND || moment.subsec_nanosecond() != 0
}

fn ago(moment: Option<Timestamp>, now: Timestamp) -> String {
    match moment.filter(|moment| is_set(*moment)) {
        Some(moment) => human(now.duration_since(moment)),
        None => UNKNOWN.to_owned(),
    }
}

/// A number of large units and a number of small ones, unless there are none of those.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        return format!("{large}{large_unit}");
    }
    format!("{large}{large_unit}{small}{small_unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: i64 = 1;
    const S: i64 = 1_000_000_000;
    const M: i64 = 60 * S;
    const H: i64 = 60 * M;
    const D: i64 = 24 * H;
    const Y: i64 = 365 * D;

    /// The right side is what HumanDuration of k8s.io/apimachinery v0.36.3 prints.
    const ROWS: [(i64, &str); 72] = [
        (i64::MIN, "<invalid>"),
        (-Y, "<invalid>"),
        (-H, "<invalid>"),
        (-2 * S - N, "<invalid>"),
        (-2 * S, "<invalid>"),
        (-2 * S + N, "0s"),
        (-S - S / 2, "0s"),
        (-S, "0s"),
        (-S + N, "0s"),
        (-N, "0s"),
        (0, "0s"),
        (N, "0s"),
        (S - N, "0s"),
        (S, "1s"),
        (59 * S, "59s"),
        (60 * S, "60s"),
        (61 * S, "61s"),
        (119 * S, "119s"),
        (2 * M - N, "119s"),
        (2 * M, "2m"),
        (2 * M + S, "2m1s"),
        (2 * M + 5 * S, "2m5s"),
        (3 * M, "3m"),
        (9 * M + 59 * S, "9m59s"),
        (10 * M - N, "9m59s"),
        (10 * M, "10m"),
        (10 * M + S, "10m"),
        (59 * M, "59m"),
        (60 * M, "60m"),
        (119 * M, "119m"),
        (120 * M + 59 * S, "120m"),
        (179 * M + 59 * S, "179m"),
        (3 * H - N, "179m"),
        (3 * H, "3h"),
        (3 * H + 59 * S, "3h"),
        (3 * H + M, "3h1m"),
        (3 * H + 5 * M, "3h5m"),
        (7 * H, "7h"),
        (7 * H + 59 * M, "7h59m"),
        (8 * H - N, "7h59m"),
        (8 * H, "8h"),
        (8 * H + 59 * M, "8h"),
        (24 * H, "24h"),
        (47 * H + 59 * M, "47h"),
        (48 * H - N, "47h"),
        (48 * H, "2d"),
        (48 * H + 59 * M, "2d"),
        (49 * H, "2d1h"),
        (2 * D + 3 * H, "2d3h"),
        (7 * D, "7d"),
        (7 * D + 23 * H, "7d23h"),
        (8 * D - N, "7d23h"),
        (8 * D, "8d"),
        (8 * D + 23 * H, "8d"),
        (30 * D, "30d"),
        (364 * D, "364d"),
        (365 * D, "365d"),
        (400 * D, "400d"),
        (2 * Y - H, "729d"),
        (2 * Y - N, "729d"),
        (2 * Y, "2y"),
        (2 * Y + 23 * H, "2y"),
        (2 * Y + D, "2y1d"),
        (2 * Y + 35 * D, "2y35d"),
        (3 * Y, "3y"),
        (7 * Y + 364 * D, "7y364d"),
        (8 * Y - N, "7y364d"),
        (8 * Y, "8y"),
        (8 * Y + 364 * D, "8y"),
        (100 * Y, "100y"),
        (292 * Y, "292y"),
        (i64::MAX, "292y"),
    ];

    #[test]
    fn durations_are_printed_as_upstream_prints_them() {
        for (nanoseconds, expected) in ROWS {
            let printed = human(SignedDuration::from_nanos(nanoseconds));
            assert_eq!(printed, expected, "{nanoseconds} ns");
        }
    }

    #[test]
    fn what_is_longer_than_a_duration_of_go_is_the_longest() {
        assert_eq!(human(SignedDuration::MAX), "292y");
        assert_eq!(human(SignedDuration::MIN), "<invalid>");
    }

    #[test]
    fn a_time_that_is_not_set_is_not_known() {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().expect("a time");
        let time = |text: &str| Time(text.parse().expect("a time"));
        assert_eq!(since(None, now), "<unknown>");
        assert_eq!(since(Some(&time("0001-01-01T00:00:00Z")), now), "<unknown>");
        assert_eq!(since(Some(&time("0001-01-01T00:00:01Z")), now), "292y");
        assert_eq!(since(Some(&time("2026-05-01T11:59:57Z")), now), "3s");
        assert_eq!(since_micro(None, now), "<unknown>");
        let almost = MicroTime("2026-05-01T11:59:57.000001Z".parse().expect("a time"));
        assert_eq!(since_micro(Some(&almost), now), "2s");
    }
}
