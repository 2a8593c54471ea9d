//! How long an index set takes at the sizes a large Job has.
//!
//! `cargo bench -p stint-api` prints the median of several runs. Nothing here is
//! asserted: timings belong to docs/benchmarks.md.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use stint_api::index_set::IndexSet;

/// As many runs as give a steady median on a noisy machine within a few seconds.
const RUNS: usize = 31;

fn main() {
    let scattered = shuffled((0..200_000).step_by(2));
    let contiguous = shuffled(0..100_000);
    let full: IndexSet = scattered.iter().copied().collect();
    let text = full.to_string();
    report("100,000 scattered inserts, then the text", || {
        let mut set = IndexSet::new();
        for &index in &scattered {
            set.insert(index);
        }
        set.to_string().len() as u64
    });
    report("  the same inserts into a BTreeSet of indexes", || {
        let mut set = BTreeSet::new();
        for &index in &scattered {
            set.insert(index);
        }
        set.len() as u64
    });
    report("  the same inserts into one sorted vector", || {
        let mut set = Vec::new();
        for &index in &scattered {
            if let Err(place) = set.binary_search(&index) {
                set.insert(place, index);
            }
        }
        set.len() as u64
    });
    report("100,000 scattered inserts", || {
        let mut set = IndexSet::new();
        for &index in &scattered {
            set.insert(index);
        }
        set.count()
    });
    report("the text of 100,000 scattered indexes", || full.to_string().len() as u64);
    report("0 to 99,999 inserted in random order", || {
        let mut set = IndexSet::new();
        for &index in &contiguous {
            set.insert(index);
        }
        set.count()
    });
    report("100,000 scattered indexes read strictly", || {
        IndexSet::parse_strict(&text, 200_000).map_or(0, |set| set.count())
    });
    report("100,000 lookups among 100,000 intervals", || {
        contiguous.iter().filter(|&&index| full.contains(index)).count() as u64
    });
    report("the first 1,000 missing of 100,000 intervals", || {
        full.first_missing(1_000, 200_000).len() as u64
    });
    report("0-2147483646 read, complemented and counted", || {
        let all = IndexSet::parse_strict("0-2147483646", i32::MAX as u32).expect("well formed");
        all.complement(i32::MAX as u32).count() + all.count()
    });
}

fn report(name: &str, mut run: impl FnMut() -> u64) {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("{:>12.3?}  {name}", times[RUNS / 2]);
}

/// The numbers in an order that is the same each time and has no pattern to exploit
/// (a linear congruential generator drives a Fisher-Yates shuffle).
fn shuffled(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..numbers.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(last, (state >> 33) as usize % (last + 1));
    }
    numbers
}
