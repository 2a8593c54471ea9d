//! What several measurements of the same say together.

use serde_json::{Value, json};

/// The middle of some measurements, and how far they lie apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    samples: Vec<f64>,
}

impl Spread {
    /// That of these, of which there is one at least.
    pub(crate) fn of(samples: Vec<f64>) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            panic!("nothing was measured");
        };
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Spread { median: f64::midpoint(low, high), least, most, samples }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "median": self.median, "min": self.least, "max": self.most, "samples": self.samples,
        })
    }
}

/// The value that so many of a hundred do not exceed; 0 of none.
pub(crate) fn percentile(samples: &[f64], percent: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let samples: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let of = |percent| percentile(&samples, percent);
        assert_eq!([of(50), of(99), of(100)], [100.0, 198.0, 200.0]);
        assert_eq!((percentile(&[7.0], 99), percentile(&[], 50)), (7.0, 0.0));
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let of = |samples: &[f64]| Spread::of(samples.to_vec());
        let odd = of(&[3.0, 1.0, 9.0]);
        assert_eq!((odd.median, odd.least, odd.most), (3.0, 1.0, 9.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(of(&[7.0]).median, 7.0);
    }
}
