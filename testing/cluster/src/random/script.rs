//! A Job, what becomes of its Pods, what is done to it, and how it must end.

use std::collections::BTreeMap;

use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use stint_kit::{End, Fate, NAMESPACE};

use super::model::Rest;
use super::step::{Courses, Place, Step};

/// What the names of the Jobs begin with, before the seed.
const PREFIX: &str = "r";

/// What a seed stands for.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) seed: u64,
    /// The Job as it is created.
    pub(crate) manifest: Value,
    /// What becomes of Pods whose course is over.
    pub(crate) stays: Fate,
    pub(crate) courses: Courses,
    /// What becomes of Pods since [`Step::Release`]; after that they succeed.
    pub(crate) finales: Courses,
    pub(crate) turns: Vec<Turn>,
    /// How it must end: `Complete CompletionsReached`; empty: it is deleted.
    pub(crate) end: String,
    /// Whether it goes by itself when it has ended.
    pub(crate) is_fleeting: bool,
    pub(crate) scope: Scope,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The rest that it waits for.
    pub(crate) rest: Rest,
    pub(crate) step: Step,
    /// How many Pods must be seen to terminate after it, if they take so long that they must.
    pub(crate) terminating: Option<u32>,
}

/// How much of what is left is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of it.
    Full,
    /// How the Job ends, and how its counts relate to each other and to its Pods; not the rest,
    /// for this reason.
    Part(&'static str),
}

impl Script {
    /// The name of the Job.
    pub(crate) fn name(&self) -> String {
        name(self.seed)
    }

    /// Whether the Job names its controller where that is not the built-in one.
    pub(crate) fn names_its_manager(&self) -> bool {
        self.seed % 2 == 1
    }

    /// How many Pods the Job leaves behind, if it is deleted so that it does.
    pub(crate) fn orphans(&self) -> Option<usize> {
        let is_orphaning = |turn: &&Turn| match &turn.step {
            Step::Delete { propagation } => *propagation == PropagationPolicy::Orphan,
            _ => false,
        };
        let position = self.turns.iter().position(|turn| is_orphaning(&turn))?;
        let Rest { active, ended, .. } = self.turns[position].rest;
        // Those that the Job had let go before are there, too.
        let is_relabel = |turn: &&Turn| matches!(turn.step, Step::Relabel);
        let released = self.turns[..position].iter().filter(is_relabel).count();
        Some((active + ended) as usize + released)
    }

    /// What becomes of the Pod that is the `turn`-th of its place, since the release or before it.
    pub(crate) fn fate(&self, place: Place, turn: usize, is_released: bool) -> Fate {
        let (courses, last) = match is_released {
            // Like those that run on, but for their end: which is which may be open.
            true => (&self.finales, Fate { end: End::Succeeds, ..self.stays.clone() }),
            false => (&self.courses, self.stays.clone()),
        };
        courses.get(&place).and_then(|course| course.get(turn)).cloned().unwrap_or(last)
    }

    /// All of it, for people.
    pub(crate) fn told(&self) -> String {
        let manifest = serde_json::to_string_pretty(&self.manifest).expect("JSON");
        let mut lines = vec![format!("the Job of seed {}:", self.seed), manifest];
        lines.extend(tell("Pods", &self.courses));
        lines.push(format!("  then, and where nothing is said: {:?}", self.stays));
        lines.push("what is done, each when it is at rest:".to_owned());
        let turn = |turn: &Turn| {
            let Turn { rest, step, terminating } = turn;
            let seen = terminating.map(|count| format!(", and {count} terminate"));
            format!("  {rest:?}: {step:?}{}", seen.unwrap_or_default())
        };
        lines.extend(self.turns.iter().map(turn));
        lines.extend(tell("Pods since the release", &self.finales));
        lines.push(format!("it must end so: {:?}; {:?}", self.end, self.scope));
        lines.join("\n")
    }
}

fn tell(what: &str, courses: &Courses) -> Vec<String> {
    let mut lines = vec![format!("{what}, by index:")];
    let busy: BTreeMap<_, _> = courses.iter().filter(|(_, course)| !course.is_empty()).collect();
    for (place, course) in busy {
        course.iter().for_each(|fate| lines.push(format!("  {place:?}: {fate:?}")));
    }
    lines
}

/// The name of a seed's Job.
pub(crate) fn name(seed: u64) -> String {
    format!("{PREFIX}{seed}")
}

/// The manifest of a Job.
pub(crate) fn manifest(seed: u64, spec: Value, labels: Value, annotations: Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name(seed), "namespace": NAMESPACE, "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    })
}
