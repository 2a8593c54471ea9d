//! The hash of a world, to know one that was seen before.
//!
//! The Debug text of everything that can make a difference later is written into a buffer
//! that is used again and again. Versions and the numbers of ops are only ever compared, so
//! each is replaced by its rank among those that occur, and versions that every watch has told
//! by the order in which they occur: news is always newer than those, and they are asked only
//! whether they are the same. Worlds that differ in nothing but how many steps it took to get
//! there, and in which order, are one. Two lanes of 64 bits: with a million states the
//! chance that two different ones meet is below 10^-26.

use std::fmt::{self, Write};

use crate::api::Change;
use crate::controller::Controller;
use crate::world::World;

/// Versions of a world that is searched begin here, above every other number in its text.
pub const VERSION_BASE: u64 = 7_000_000_000_000;
/// More than there are old versions in a small world.
const OLD_VERSIONS: u64 = 1 << 32;
/// What stands before the number of an op.
const OP_MARKS: [&str; 2] = ["OpId(", "last_op: "];

/// Hashes worlds.
#[derive(Debug, Default)]
pub struct Fingerprints {
    text: String,
}

impl Fingerprints {
    /// The hash of a world. Of the history only what is counted is in it: how two worlds that
    /// are the same now came about makes no difference to what a ledger does next.
    pub fn of(&mut self, world: &World, budget: &impl fmt::Debug) -> u128 {
        self.text.clear();
        write_all(&mut self.text, world, budget).expect("a String takes every text");
        let numbers = numbers(&self.text);
        let told = |controller: &Controller| controller.jobs_cursor.min(controller.pods_cursor);
        let floor = world.controllers.iter().map(told).min().unwrap_or(0);
        // Versions that every watch has told: which are the same matters, their order not.
        let mut old: Vec<u64> = Vec::new();
        let mut versions: Vec<u64> = Vec::new();
        let mut ops: Vec<u64> = Vec::new();
        for number in &numbers {
            match number.kind {
                Kind::Version if number.value > floor => versions.push(number.value),
                Kind::Version if !old.contains(&number.value) => old.push(number.value),
                Kind::Version => {}
                Kind::Op => ops.push(number.value),
            }
        }
        versions.sort_unstable();
        versions.dedup();
        ops.sort_unstable();
        ops.dedup();
        let mut hasher = Hasher(1, 2);
        let mut from = 0;
        for number in &numbers {
            hasher.write(&self.text.as_bytes()[from..number.from]);
            let rank = |among: &[u64]| among.partition_point(|other| *other < number.value) as u64;
            let word = match number.kind {
                Kind::Version if number.value > floor => OLD_VERSIONS + rank(&versions),
                Kind::Version => {
                    let place = old.iter().position(|other| *other == number.value);
                    place.expect("every old version was noted") as u64
                }
                Kind::Op => rank(&ops),
            };
            hasher.write_word(word);
            from = number.to;
        }
        hasher.write(&self.text.as_bytes()[from..]);
        u128::from(hasher.0) << 64 | u128::from(hasher.1)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Version,
    Op,
}

struct Number {
    from: usize,
    to: usize,
    value: u64,
    kind: Kind,
}

/// The numbers of a text that are versions or name ops.
fn numbers(text: &str) -> Vec<Number> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let from = at;
        let mut value: u64 = 0;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            value = value.wrapping_mul(10).wrapping_add(u64::from(bytes[at] - b'0'));
            at += 1;
        }
        let is_op = OP_MARKS.iter().any(|mark| bytes[..from].ends_with(mark.as_bytes()));
        if is_op {
            found.push(Number { from, to: at, value, kind: Kind::Op });
        } else if (VERSION_BASE..VERSION_BASE * 2).contains(&value) {
            found.push(Number { from, to: at, value, kind: Kind::Version });
        }
    }
    found
}

/// Two hashes of what is written.
struct Hasher(u64, u64);

impl Hasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_word(u64::from_le_bytes(word) ^ (chunk.len() as u64) << 59);
        }
    }

    fn write_word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.1 = (self.1 ^ word).wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
    }
}

fn write_all(to: &mut String, world: &World, budget: &impl fmt::Debug) -> fmt::Result {
    write!(to, "{budget:?} {}", world.now)?;
    if let Some(job) = &world.api.now.job {
        write!(to, "{} {:?} {:?}", job.version, job.deletion, job.job.status)?;
    }
    for life in world.history.jobs.values() {
        write!(to, "{:?}", life.counted)?;
    }
    write!(to, "{:?}", world.api.now.pods)?;
    for controller in &world.controllers {
        for change in world.api.since(controller.jobs_cursor.min(controller.pods_cursor)) {
            write_change(to, change)?;
        }
        write!(to, "{} {}", controller.jobs_cursor, controller.pods_cursor)?;
        write!(to, "{:?}", controller.ledgers)?;
        for flight in &controller.flights {
            write!(to, "{} {:?} {:?} {:?}", flight.key, flight.id, flight.kind, flight.outcome)?;
        }
    }
    for flight in &world.late {
        write!(to, "{} {:?} {}", flight.key, flight.kind, flight.sent_at)?;
    }
    Ok(())
}

fn write_change(to: &mut String, change: &Change) -> fmt::Result {
    match change {
        Change::Job(job) => write!(to, "{} {:?}", job.version, job.job.status),
        Change::JobGone { uid } => write!(to, "{uid}"),
        Change::Pod(pod) | Change::PodGone(pod) => write!(to, "{:?}", pod.facts),
    }
}
