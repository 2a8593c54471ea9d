//! One piece of work, and all who do it in turn: so that whatever else the machine does meanwhile
//! meets each of them.

use serde_json::Value;

use crate::error::BenchError;
use crate::metric::{Metric, Sample};
use crate::report::Row;
use crate::spread::Spread;

/// How often everything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// How often without being measured, first.
    pub warmups: usize,
    /// How often measured; one at least.
    pub repetitions: usize,
}

/// Somebody who does the work, and measures it.
pub(crate) struct Entrant<'a> {
    pub(crate) who: String,
    pub(crate) run: Box<dyn FnMut() -> Result<Sample, BenchError> + 'a>,
}

impl<'a> Entrant<'a> {
    pub(crate) fn new(
        who: impl Into<String>,
        run: impl FnMut() -> Result<Sample, BenchError> + 'a,
    ) -> Self {
        Entrant { who: who.into(), run: Box::new(run) }
    }
}

/// A piece of work: what there is to be said about it.
pub(crate) type Work = Vec<(&'static str, Value)>;

/// Has all entrants do it, and tells on standard error how far that is.
pub(crate) fn hold(
    rounds: Rounds,
    work: &Work,
    mut entrants: Vec<Entrant<'_>>,
) -> Result<Vec<Row>, BenchError> {
    let mut samples = vec![Vec::new(); entrants.len()];
    let total = rounds.warmups + rounds.repetitions.max(1);
    for round in 0..total {
        let is_warmup = round < rounds.warmups;
        for place in order(round, entrants.len()) {
            let entrant = &mut entrants[place];
            let note = if is_warmup { ", to warm up" } else { "" };
            eprintln!("{}: {}, round {} of {total}{note}", words(work), entrant.who, round + 1);
            let sample = (entrant.run)()?;
            if !is_warmup {
                samples[place].push(sample);
            }
        }
    }
    let rows = entrants.into_iter().zip(samples);
    Ok(rows.map(|(entrant, samples)| row(work, entrant.who, &samples)).collect())
}

/// Who comes when in a round: to and fro, so that nobody always follows the same one.
fn order(round: usize, count: usize) -> Box<dyn Iterator<Item = usize>> {
    if round.is_multiple_of(2) { Box::new(0..count) } else { Box::new((0..count).rev()) }
}

fn row(work: &Work, who: String, samples: &[Sample]) -> Row {
    let figures = samples[0].values.iter().map(|(metric, _)| {
        let values = samples.iter().filter_map(|sample| value(sample, metric));
        (metric.clone(), Spread::of(values.collect()))
    });
    Row { work: work.clone(), who, figures: figures.collect() }
}

fn value(sample: &Sample, metric: &Metric) -> Option<f64> {
    sample.values.iter().find(|(it, _)| it == metric).map(|(_, value)| *value)
}

/// The work in one line.
pub(crate) fn words(work: &Work) -> String {
    let part = |(name, value): &(&str, Value)| match value {
        Value::String(text) => format!("{name} {text}"),
        Value::Number(number) => format!("{name} {}", grouped(&number.to_string())),
        other => format!("{name} {other}"),
    };
    work.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// A whole number with commas.
pub(crate) fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;
    use crate::metric::WALL;

    #[test]
    fn entrants_take_turns_and_warm_ups_do_not_count() {
        let log = RefCell::new(String::new());
        let entrant = |name: &'static str| {
            let log = &log;
            let mut count = 0.0;
            Entrant::new(name, move || {
                log.borrow_mut().push_str(name);
                count += 1.0;
                Ok(Sample::default().with(WALL, count))
            })
        };
        let rounds = Rounds { warmups: 1, repetitions: 3 };
        let work = vec![("indexes", json!(1000))];
        let rows = hold(rounds, &work, vec![entrant("a"), entrant("b")]).expect("rows");
        assert_eq!(*log.borrow(), "abbaabba");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].who.as_str(), rows[1].figures[0].1.median), ("b", 3.0));
        assert_eq!(words(&work), "indexes 1,000");
    }

    #[test]
    fn a_failure_ends_the_contest() {
        let failing = Entrant::new("a", || {
            Err(BenchError::Program { program: "a".into(), what: "failed".into() })
        });
        let rounds = Rounds { warmups: 0, repetitions: 2 };
        let error = hold(rounds, &Vec::new(), vec![failing]).expect_err("it fails");
        assert_eq!(error.to_string(), "a failed");
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = ["1", "999", "1000", "1234567"].map(grouped);
        assert_eq!(shown, ["1", "999", "1,000", "1,234,567"]);
    }
}
