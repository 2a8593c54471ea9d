//! Gives each Pod the next fate of its place.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use stint_kit::{Fate, Who};

use super::script::Script;
use super::step::Place;

/// The scripts, by the name of the Job.
pub(crate) type Scripts = Arc<HashMap<String, Script>>;

/// How far the Pods of a stage are. Clones are the same.
#[derive(Clone)]
pub(crate) struct Fates {
    scripts: Scripts,
    turns: Arc<Mutex<Turns>>,
}

#[derive(Default)]
struct Turns {
    /// How many Pods of a place have got their fate, since the release of the Job or before it.
    counts: HashMap<(String, Place, bool), usize>,
    released: HashSet<String>,
}

impl Fates {
    pub(crate) fn new(scripts: Scripts) -> Self {
        Fates { scripts, turns: Arc::default() }
    }

    /// What becomes of a Pod that has just come.
    pub(crate) fn of(&self, who: &Who) -> Fate {
        let mut turns = self.turns.lock().expect("nobody panics here");
        self.draw(&mut turns, &who.job, who.index)
    }

    /// From now on all Pods end: what becomes of those of these places that run. They are the
    /// first of all, before any Pod that takes the place of one of them.
    pub(crate) fn release(&self, job: &str, places: &[Place]) -> Vec<Fate> {
        let mut turns = self.turns.lock().expect("nobody panics here");
        turns.released.insert(job.to_owned());
        places.iter().map(|place| self.draw(&mut turns, job, *place)).collect()
    }

    fn draw(&self, turns: &mut Turns, job: &str, place: Place) -> Fate {
        let Some(script) = self.scripts.get(job) else { return Fate::runs() };
        let is_released = turns.released.contains(job);
        let turn = turns.counts.entry((job.to_owned(), place, is_released)).or_default();
        *turn += 1;
        script.fate(place, *turn - 1, is_released)
    }
}
