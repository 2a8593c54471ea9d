//! What a seed stands for. All chance is here, and nothing else decides but the version of
//! Kubernetes, in one place: the same seed gives the same script.
//!
//! Scripts are such that the [`Model`] is sure of them: what it is unsure of is proposed, and
//! taken back. The rest, some in eight, are [races](super::race) on purpose.

use std::collections::BTreeMap;

use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use stint_kit::{End, Fate};

use super::model::Model;
use super::race;
use super::script::{Scope, Script, Turn, manifest};
use super::spec::{failure, spec};
use super::step::{Courses, Place, Step};
use crate::dice::Dice;
use crate::version::Version;

/// How often something else is proposed when the model is unsure.
const TRIES: u32 = 12;

/// A script has no more steps than that.
const TURNS: usize = 14;

/// A TTL that passes within a test.
const SHORT_TTL: u32 = 10;

/// How many seconds Pods take to end whose ending must be seen: longer than a controller takes to
/// write down that they do, also on a machine that has much to do.
const SLOWLY: u32 = 12;

/// The script of a seed.
pub(crate) fn generate(seed: u64, version: Version) -> Script {
    let mut dice = Dice::new(seed);
    if dice.percent(12) {
        return race::generate(dice, seed);
    }
    let spec = spec(&mut dice, seed);
    let is_slow = dice.percent(10);
    let farewell = match dice.percent(60) {
        _ if is_slow => Some(SLOWLY),
        true => Some(dice.between(0, 2)),
        false => None,
    };
    let stays = stays(farewell);
    // What backoff may cost: one delay (10 s) or two (20 s more), and now and then three.
    let budget = match dice.below(100) {
        0..45 => 10,
        45..95 => 30,
        _ => 70,
    };
    let mut courses = Courses::new();
    let mut model = Model::new(&spec, &courses, farewell.is_some(), budget).begin();
    for _ in 0..TRIES {
        let proposed = propose_courses(&mut dice, &spec);
        let begun = Model::new(&spec, &proposed, farewell.is_some(), budget).begin();
        if begun.is_ok() {
            (courses, model) = (proposed, begun);
            break;
        }
    }
    let mut play = Play {
        model: model.expect("a Job whose Pods all run on is at rest"),
        turns: Vec::new(),
        finales: Courses::new(),
        is_slow,
        version,
    };
    for _ in 0..dice.below(6) {
        play.go_on(&mut dice);
    }
    play.conclude(&mut dice);
    let labels = match dice.percent(40) {
        true => json!({"team": dice.pick(&["red", "blue"])}),
        false => json!({}),
    };
    let annotations = match dice.percent(30) {
        true => json!({"example.com/note": "from the Job"}),
        false => json!({}),
    };
    let is_fleeting = play.model.ttl.is_some_and(|ttl| ttl < SHORT_TTL);
    Script {
        seed,
        manifest: manifest(seed, spec, labels, annotations),
        stays,
        courses,
        finales: play.finales,
        turns: play.turns,
        end: play.model.end.expect("it was brought to its end"),
        is_fleeting,
        scope: Scope::Full,
    }
}

/// What becomes of Pods that run on.
pub(crate) fn stays(farewell: Option<u32>) -> Fate {
    match farewell {
        Some(seconds) => Fate::runs().farewell(seconds.into()),
        None => Fate::runs(),
    }
}

/// An end after a moment.
pub(crate) fn fate(dice: &mut Dice, end: End) -> Fate {
    let fate = Fate { end, ..Fate::succeeds() };
    let fate = if dice.percent(50) { fate } else { fate.after(dice.between(1, 2).into()) };
    if dice.percent(30) { fate.farewell(dice.below(2).into()) } else { fate }
}

fn propose_courses(dice: &mut Dice, spec: &Value) -> Courses {
    if dice.percent(25) {
        return Courses::new();
    }
    let is_indexed = spec["completionMode"] == "Indexed";
    // Indexes that the Job does not have yet: it may grow.
    let places: Vec<Place> = if is_indexed { (0..8).map(Some).collect() } else { vec![None] };
    let mut courses = BTreeMap::new();
    for place in places {
        let mut course = Vec::new();
        for _ in 0..dice.below(if is_indexed { 3 } else { 5 }) {
            let succeeds = dice.percent(60);
            let end = if succeeds { End::Succeeds } else { failure(dice) };
            course.push(fate(dice, end));
            if succeeds && is_indexed {
                break;
            }
        }
        courses.insert(place, course);
    }
    courses
}

struct Play {
    model: Model,
    turns: Vec<Turn>,
    finales: Courses,
    /// Whether Pods take so long to end that they must be seen to terminate.
    is_slow: bool,
    version: Version,
}

impl Play {
    /// Takes a step that the model is sure of.
    fn go_on(&mut self, dice: &mut Dice) {
        for _ in 0..TRIES {
            if self.model.end.is_some() {
                return;
            }
            if let Some(step) = self.propose(dice)
                && self.try_step(step)
            {
                return;
            }
        }
    }

    fn try_step(&mut self, step: Step) -> bool {
        let Ok(next) = self.model.after(&step) else { return false };
        self.push(step, next);
        true
    }

    fn push(&mut self, step: Step, next: Model) {
        let seen = Some(next.told_to_end).filter(|count| self.is_slow && *count > 0);
        self.turns.push(Turn { rest: self.model.rest(), step, terminating: seen });
        self.model = next;
    }

    fn propose(&self, dice: &mut Dice) -> Option<Step> {
        let places = self.model.places();
        let place = (!places.is_empty()).then(|| dice.pick(&places));
        if self.model.is_suspended && dice.percent(60) {
            return Some(if dice.percent(60) { Step::Resume } else { self.template() });
        }
        let step = match dice.below(100) {
            0..10 => Step::Finish { place: place?, end: End::Succeeds },
            10..42 => Step::Finish { place: place?, end: failure(dice) },
            42..52 => Step::Evict { place: place? },
            52..57 => Step::Restart { place: place?, count: dice.between(1, 4) },
            57..60 => {
                place?;
                Step::Relabel
            }
            60..69 if self.model.is_suspended => Step::Resume,
            60..69 => Step::Suspend,
            69..79 => Step::Scale { parallelism: dice.below(6) },
            79..87 => Step::Resize { completions: dice.between(1, 7) },
            87..90 if self.model.counts_per_index() && dice.percent(60) => {
                Step::MaxFailedIndexes { most: dice.below(3) }
            }
            87..90 => Step::BackoffLimit { limit: dice.below(5) },
            90..92 => Step::Deadline,
            92..94 => Step::Ttl { seconds: dice.below(2) },
            94..96 => Step::Label,
            96..98 => self.template(),
            _ => Step::Delete {
                propagation: dice.pick(&[
                    PropagationPolicy::Background,
                    PropagationPolicy::Foreground,
                    PropagationPolicy::Orphan,
                ]),
            },
        };
        Some(step)
    }

    /// A change of the template, which is taken by both or not.
    fn template(&self) -> Step {
        match self.version.keeps_start_time() && self.model.has_started {
            true => Step::TryTemplate,
            false => Step::Template,
        }
    }

    /// Brings the Job to its end: all at once if it is sure what comes of that, else one Pod after
    /// the other.
    fn conclude(&mut self, dice: &mut Dice) {
        if self.model.end.is_none() && self.model.is_suspended {
            self.try_step(Step::Resume);
        }
        if self.model.end.is_none() && self.model.rest().active == 0 {
            self.try_step(Step::Scale { parallelism: 7 });
        }
        for attempt in 0..TRIES {
            if self.model.end.is_some() {
                return;
            }
            let finales =
                if attempt == TRIES - 1 { Courses::new() } else { self.propose_finales(dice) };
            let prepared = self.model.with_finales(&finales);
            if let Ok(next) = prepared.after(&Step::Release)
                && next.end.is_some()
            {
                self.push(Step::Release, next);
                self.finales = finales;
                return;
            }
        }
        while self.model.end.is_none() && self.turns.len() < TURNS {
            let place = self.model.places().first().copied();
            let is_taken = place
                .is_some_and(|place| self.try_step(Step::Finish { place, end: End::Succeeds }));
            if !is_taken {
                break;
            }
        }
        if self.model.end.is_none() && !self.try_step(Step::Deadline) {
            self.try_step(Step::Delete { propagation: PropagationPolicy::Background });
        }
    }

    fn propose_finales(&self, dice: &mut Dice) -> Courses {
        let mut finales = Courses::new();
        for place in self.model.open_places() {
            let course = (0..dice.below(3)).map(|_| {
                let end = if dice.percent(70) { End::Succeeds } else { failure(dice) };
                fate(dice, end)
            });
            finales.insert(place, course.collect());
        }
        finales
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const COUNT: u64 = 5000;

    fn newest() -> Version {
        Version::read("v1.36.0").expect("a version")
    }

    #[test]
    fn a_seed_alone_says_what_is_given() {
        for seed in 0..50 {
            assert_eq!(generate(seed, newest()).told(), generate(seed, newest()).told());
        }
    }

    #[test]
    fn most_seeds_are_compared_in_full() {
        let is_full = |seed: &u64| generate(*seed, newest()).scope == Scope::Full;
        assert!((0..COUNT).filter(is_full).count() as u64 > COUNT * 4 / 5);
    }

    #[test]
    fn every_field_and_step_and_end_occurs() {
        let mut seen = BTreeSet::new();
        for script in (0..COUNT).map(|seed| generate(seed, newest())) {
            let fields = script.manifest["spec"].as_object().expect("a spec");
            seen.extend(fields.keys().cloned());
            let word =
                |step: &Step| format!("{step:?}").split([' ', '{']).next().unwrap().to_owned();
            seen.extend(script.turns.iter().map(|turn| word(&turn.step)));
            seen.insert(script.end);
        }
        let expected = [
            "",
            "Complete CompletionsReached",
            "Complete SuccessPolicy",
            "Failed BackoffLimitExceeded",
            "Failed DeadlineExceeded",
            "Failed FailedIndexes",
            "Failed MaxFailedIndexesExceeded",
            "Failed PodFailurePolicy",
            "activeDeadlineSeconds",
            "backoffLimit",
            "backoffLimitPerIndex",
            "completionMode",
            "completions",
            "manualSelector",
            "maxFailedIndexes",
            "parallelism",
            "podFailurePolicy",
            "podReplacementPolicy",
            "selector",
            "successPolicy",
            "suspend",
            "template",
            "ttlSecondsAfterFinished",
            "BackoffLimit",
            "Deadline",
            "Delete",
            "Evict",
            "Finish",
            "Label",
            "MaxFailedIndexes",
            "Relabel",
            "Release",
            "Resize",
            "Restart",
            "Resume",
            "Scale",
            "Suspend",
            "Template",
            "Ttl",
        ];
        for word in expected {
            assert!(seen.contains(word), "{word} never occurs: {seen:?}");
        }
    }

    #[test]
    fn jobs_are_deleted_in_each_way_also_where_nothing_is_open() {
        let scripts = (0..COUNT).map(|seed| generate(seed, newest()));
        let full = scripts.filter(|script| script.scope == Scope::Full);
        let turns: Vec<Turn> = full.flat_map(|script| script.turns).collect();
        for way in ["Background", "Foreground", "Orphan"] {
            let is_meant = |turn: &&Turn| match &turn.step {
                Step::Delete { propagation } => format!("{propagation:?}") == way,
                _ => false,
            };
            let count = turns.iter().filter(is_meant).count();
            assert!(count >= 10, "{way}: {count}");
        }
    }

    #[test]
    fn the_template_of_a_job_that_has_run_is_only_tried_where_start_times_stay() {
        let older = Version::read("v1.34.0").expect("a version");
        let count = |version: Version, is_meant: fn(&Turn) -> bool| {
            let scripts = (0..COUNT).map(|seed| generate(seed, version));
            scripts.flat_map(|script| script.turns).filter(is_meant).count()
        };
        let has_run = |turn: &Turn| matches!(turn.step, Step::Template) && turn.rest.has_started;
        let is_tried =
            |turn: &Turn| matches!(turn.step, Step::TryTemplate) && turn.rest.has_started;
        assert!(count(newest(), has_run) > 0 && count(newest(), is_tried) == 0);
        assert!(count(older, has_run) == 0 && count(older, is_tried) > 0);
    }
}
