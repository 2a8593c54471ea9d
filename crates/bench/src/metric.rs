//! What is measured, and how such numbers are written.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds, shown in whatever fits.
    Seconds,
    /// Bytes, shown in MiB.
    Bytes,
    /// Things.
    Count,
}

impl Unit {
    /// A number as people read it.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Unit::Seconds if value >= 100.0 => format!("{value:.0} s"),
            Unit::Seconds if value >= 1.0 => format!("{value:.2} s"),
            Unit::Seconds if value >= 1e-3 => format!("{} ms", Digits(value * 1e3)),
            Unit::Seconds => format!("{} µs", Digits(value * 1e6)),
            Unit::Bytes => format!("{:.1} MiB", value / f64::from(1 << 20)),
            Unit::Count if value.fract() == 0.0 => format!("{value}"),
            Unit::Count => format!("{value:.2}"),
        }
    }
}

/// A number with three digits that count.
struct Digits(f64);

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let behind = match self.0 {
            value if value >= 100.0 => 0,
            value if value >= 10.0 => 1,
            _ => 2,
        };
        write!(f, "{:.behind$}", self.0)
    }
}

/// Something that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    /// Its name in JSON; ends with the unit.
    pub(crate) key: Cow<'static, str>,
    /// Its name in a table; empty: it is in JSON alone.
    pub(crate) head: &'static str,
    pub(crate) unit: Unit,
}

impl Metric {
    const fn new(key: &'static str, head: &'static str, unit: Unit) -> Self {
        Metric { key: Cow::Borrowed(key), head, unit }
    }

    /// A count that is told in JSON alone.
    pub(crate) fn detail(key: String) -> Self {
        Metric { key: Cow::Owned(key), head: "", unit: Unit::Count }
    }

    /// The metric of this key; one that is not known is a detail.
    pub(crate) fn of(key: &str) -> Self {
        let known = KNOWN.iter().find(|metric| metric.key == key);
        known.cloned().unwrap_or_else(|| Metric::detail(key.to_owned()))
    }
}

pub(crate) const WALL: Metric = Metric::new("wall_seconds", "time", Unit::Seconds);
pub(crate) const WALL_PER_POD: Metric =
    Metric::new("wall_seconds_per_pod", "per Pod", Unit::Seconds);
pub(crate) const CPU: Metric = Metric::new("cpu_seconds", "CPU", Unit::Seconds);
pub(crate) const CPU_PER_POD: Metric =
    Metric::new("cpu_seconds_per_pod", "CPU per Pod", Unit::Seconds);
pub(crate) const PEAK: Metric = Metric::new("peak_bytes", "peak memory", Unit::Bytes);
pub(crate) const STATUS_WRITES: Metric = Metric::new("status_writes", "status writes", Unit::Count);
pub(crate) const STORE_WRITES_PER_POD: Metric =
    Metric::new("store_writes_per_pod", "writes per Pod", Unit::Count);
pub(crate) const API_CALLS_PER_POD: Metric =
    Metric::new("api_calls_per_pod", "calls per Pod", Unit::Count);

pub(crate) const SERVER_CPU: Metric =
    Metric::new("apiserver_cpu_seconds", "server CPU", Unit::Seconds);
pub(crate) const LAST_END: Metric =
    Metric::new("last_end_to_complete_seconds", "last end to Complete", Unit::Seconds);
pub(crate) const FIRST_POD_P50: Metric =
    Metric::new("first_pod_p50_seconds", "first Pod p50", Unit::Seconds);
pub(crate) const FIRST_POD_P99: Metric = Metric::new("first_pod_p99_seconds", "p99", Unit::Seconds);
pub(crate) const COMPLETE_P50: Metric =
    Metric::new("complete_p50_seconds", "end to Complete p50", Unit::Seconds);
pub(crate) const COMPLETE_P99: Metric = Metric::new("complete_p99_seconds", "p99", Unit::Seconds);
pub(crate) const JOB_P50: Metric = Metric::new("job_p50_seconds", "Job p50", Unit::Seconds);
pub(crate) const JOB_P99: Metric = Metric::new("job_p99_seconds", "p99", Unit::Seconds);

static KNOWN: [Metric; 16] = [
    WALL,
    WALL_PER_POD,
    CPU,
    CPU_PER_POD,
    PEAK,
    STATUS_WRITES,
    STORE_WRITES_PER_POD,
    API_CALLS_PER_POD,
    SERVER_CPU,
    LAST_END,
    FIRST_POD_P50,
    FIRST_POD_P99,
    COMPLETE_P50,
    COMPLETE_P99,
    JOB_P50,
    JOB_P99,
];

/// What was measured at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) values: Vec<(Metric, f64)>,
}

impl Sample {
    /// The same with one more value.
    pub(crate) fn with(mut self, metric: Metric, value: f64) -> Self {
        self.values.push((metric, value));
        self
    }

    /// As a worker tells it.
    pub(crate) fn json(&self) -> Value {
        let values =
            self.values.iter().map(|(metric, value)| (metric.key.to_string(), (*value).into()));
        Value::Object(values.collect::<Map<_, _>>())
    }

    /// As a worker has told it; nothing if it is something else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let Ok(Value::Object(values)) = serde_json::from_str(text) else { return None };
        let values = values.iter().map(|(key, value)| Some((Metric::of(key), value.as_f64()?)));
        let mut values: Vec<_> = values.collect::<Option<_>>()?;
        // A map has no order; tables have that of the metrics.
        let place = |metric: &Metric| KNOWN.iter().position(|it| it == metric);
        values.sort_by_key(|(metric, _)| place(metric).unwrap_or(KNOWN.len()));
        Some(Sample { values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_count() {
        let seconds = |value| Unit::Seconds.text(value);
        let shown = [123.4, 1.234, 0.1234, 0.01234, 0.0000056].map(seconds);
        assert_eq!(shown, ["123 s", "1.23 s", "123 ms", "12.3 ms", "5.60 µs"]);
        assert_eq!(Unit::Bytes.text(3_145_728.0), "3.0 MiB");
        assert_eq!([Unit::Count.text(7.0), Unit::Count.text(2.005)], ["7", "2.00"]);
    }

    #[test]
    fn a_sample_is_read_as_it_was_told() {
        let told = Sample::default().with(PEAK, 2.0).with(Metric::detail("calls".into()), 3.0);
        let read = Sample::read(&told.with(WALL, 1.5).json().to_string()).expect("a sample");
        let keys: Vec<_> = read.values.iter().map(|(it, value)| (&*it.key, *value)).collect();
        assert_eq!(keys, [("wall_seconds", 1.5), ("peak_bytes", 2.0), ("calls", 3.0)]);
        assert!(Sample::read("[1]").is_none() && Sample::read(r#"{"a": "b"}"#).is_none());
    }
}
