//! What can be said about how Jobs are run, to every command that runs them.

use clap::Args;
use clap::error::ErrorKind;
use jiff::SignedDuration;
use stint_controller::{BackoffDelays, Config, MAX_IN_FLIGHT};

/// How Jobs are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "How Jobs are run")]
pub(crate) struct JobArgs {
    /// How long to wait after the first failure of a Pod: 500ms, 10s, 2m
    ///
    /// Doubled with each failure that follows.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = read_duration)]
    pub(crate) pod_failure_backoff_base: SignedDuration,

    /// The longest wait after failures of Pods
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = read_duration)]
    pub(crate) pod_failure_backoff_max: SignedDuration,

    /// Count Pods that a stop or a crash of stint has ended as failures
    ///
    /// As Kubernetes counts the Pods of a node that goes down, unless the Job's podFailurePolicy
    /// ignores the condition DisruptionTarget. Without this such Pods are replaced at the next
    /// start as if they had never been, unless a rule of that policy says something else of them.
    #[arg(long)]
    pub(crate) count_interrupted_pods: bool,

    /// The most API calls at once
    ///
    /// How many there are adapts to what the API server bears, up to this.
    #[arg(long, value_name = "COUNT", default_value_t = MAX_IN_FLIGHT, value_parser = read_count)]
    pub(crate) max_inflight: usize,

    /// The most API calls a second [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = read_rate)]
    pub(crate) qps: Option<f64>,
}

impl JobArgs {
    /// What clap cannot tell by itself.
    pub(crate) fn wrong_usage(&self) -> Option<(ErrorKind, &'static str)> {
        if self.pod_failure_backoff_base > self.pod_failure_backoff_max {
            let message = "--pod-failure-backoff-base is longer than --pod-failure-backoff-max: \
                           make one of them fit the other";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        None
    }

    /// The controller that is asked for.
    pub(crate) fn config(&self) -> Config {
        let delays = BackoffDelays {
            base: self.pod_failure_backoff_base,
            cap: self.pod_failure_backoff_max,
        };
        Config {
            delays,
            max_inflight: self.max_inflight,
            qps: self.qps,
            forgives_nodes: !self.count_interrupted_pods,
            ..Config::default()
        }
    }
}

pub(crate) fn read_duration(text: &str) -> Result<SignedDuration, String> {
    let wanted = "give a number and a unit, such as 500ms, 10s or 2m";
    let duration: SignedDuration = text.parse().map_err(|_| wanted.to_owned())?;
    if duration.is_negative() {
        return Err("it cannot be negative".to_owned());
    }
    Ok(duration)
}

pub(crate) fn read_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("give a whole number, at least 1".to_owned()),
    }
}

pub(crate) fn read_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if f64::is_finite(rate) && rate > 0.0 => Ok(rate),
        _ => Err("give a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        let millis = |text: &str| read_duration(text).map(|duration| duration.as_millis());
        for (text, expected) in [("500ms", 500), ("10s", 10_000), ("1m30s", 90_000), ("0s", 0)] {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in ["", "10", "ten", "-1s", "s", "1s 2parsecs"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_and_rates_are_above_zero() {
        assert_eq!((read_count("1"), read_rate("0.5")), (Ok(1), Ok(0.5)));
        for text in ["0", "-1", "many", ""] {
            assert!(read_count(text).is_err() && read_rate(text).is_err(), "{text}");
        }
        for text in ["NaN", "inf"] {
            assert!(read_rate(text).is_err(), "{text}");
        }
    }
}
