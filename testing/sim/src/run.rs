//! A random run from a seed, and the replay of recorded choices.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::calm;
use crate::choice::Choice;
use crate::invariant::{Broken, Invariant, holds};
use crate::random::Random;
use crate::scenario::Scenario;
use crate::world::{Stats, World};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The setting.
    pub scenario: Arc<Scenario>,
    /// The choices that were taken before the calm.
    pub choices: Vec<Choice>,
    /// How much happened, or what broke.
    pub result: Result<Stats, Broken>,
    /// What happened, one line each, if that was asked for.
    pub trace: Vec<String>,
}

/// What a run does besides running.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to keep a trace.
    pub is_traced: bool,
    /// Invariants that are not looked at.
    pub ignored: BTreeSet<Invariant>,
    /// Whether a world breaks in which two waits of 20 s were taken by choice, for a test of
    /// the shrinker.
    pub breaks_on_purpose: bool,
}

/// Runs a seed: choices at random, then the calm.
pub fn from_seed(seed: u64, options: &Options) -> Run {
    let scenario = Arc::new(Scenario::from_seed(seed));
    let mut choices = Vec::new();
    let steps = scenario.chaos_steps;
    let random = &mut Random::new(seed ^ 0x5eed_5eed);
    guarded(scenario, options, |world| {
        for _ in 0..steps {
            choices.push(draw(world, random));
            if !world.take(&choices[choices.len() - 1])? {
                choices.pop();
            }
            break_on_purpose(&choices, options)?;
        }
        calm::settle(world)
    })
    .with(choices)
}

/// Takes the choices that can be taken, then lets the world calm down.
pub fn replay(scenario: &Arc<Scenario>, choices: &[Choice], options: &Options) -> Run {
    guarded(Arc::clone(scenario), options, |world| {
        for choice in choices {
            world.take(choice)?;
        }
        break_on_purpose(choices, options)?;
        calm::settle(world)
    })
    .with(choices.to_vec())
}

fn break_on_purpose(choices: &[Choice], options: &Options) -> Result<(), Broken> {
    let long_waits = choices.iter().filter(|choice| **choice == Choice::Wait(20_000)).count();
    holds(!options.breaks_on_purpose || long_waits < 2, Invariant::Artificial, || {
        format!("{long_waits} long waits")
    })
}

fn draw(world: &World, random: &mut Random) -> Choice {
    let mut menu = world.enabled(random);
    let total: u64 = menu.iter().map(|(weight, _)| u64::from(*weight)).sum();
    let mut at = random.below(total.max(1));
    for place in 0..menu.len() {
        let weight = u64::from(menu[place].0);
        if at < weight {
            return menu.swap_remove(place).1;
        }
        at -= weight;
    }
    unreachable!("time can always pass")
}

impl Run {
    fn with(mut self, choices: Vec<Choice>) -> Self {
        self.choices = choices;
        self
    }
}

/// Runs a world, and keeps what came of it.
fn guarded(
    scenario: Arc<Scenario>,
    options: &Options,
    body: impl FnOnce(&mut World) -> Result<(), Broken>,
) -> Run {
    let mut world = World::new(Arc::clone(&scenario));
    world.ignored.clone_from(&options.ignored);
    world.trace = options.is_traced.then(Vec::new);
    let result = caught(|| {
        // What was sent when the controllers started, before anyone looked.
        for c in world.first_leaders() {
            world.ask_all(c)?;
        }
        body(&mut world)
    });
    let result = result.map(|()| world.stats);
    Run { scenario, choices: Vec::new(), result, trace: world.trace.unwrap_or_default() }
}

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be reported as a broken invariant.
pub fn is_catching() -> bool {
    IS_CATCHING.get()
}

/// Does something with a world; a panic is a broken invariant.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T, Broken>) -> Result<T, Broken> {
    IS_CATCHING.set(true);
    let result = catch_unwind(AssertUnwindSafe(act));
    IS_CATCHING.set(false);
    result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Broken::new(Invariant::NoPanic, text.to_owned()))
    })
}
