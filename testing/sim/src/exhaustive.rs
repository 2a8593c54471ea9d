//! Every interleaving of a small world.
//!
//! Depth first over all choices within a budget of faults, with visited worlds hashed. The
//! steps are coarse, so that worlds stay few: a request is done and answered in one, unless
//! its answer is lost; a Pod goes from pending to its end in one; what a watch tells that an
//! answer has told before comes at once; bookmarks come and time passes only when nothing
//! else can happen. Random runs have none of these limits.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::Change;
use crate::calm;
use crate::choice::{Choice, PodAct, UserAct};
use crate::controller::Flight;
use crate::fingerprint::{Fingerprints, VERSION_BASE};
use crate::invariant::{Broken, rest};
use crate::node;
use crate::run::{Options, Run, caught};
use crate::scenario::{Fates, Faults, Scenario};
use crate::world::World;

/// Requests of the past that may still be carried out.
const MAX_LATE: usize = 1;

/// How often something may still go wrong.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Crashes.
    pub crashes: u32,
    /// Lost answers.
    pub lost: u32,
    /// Evictions.
    pub evictions: u32,
    /// Failures of Pods.
    pub failures: u32,
    /// Times at which the watches are held back, for as long as one likes.
    pub lags: u32,
    /// Whether they are being held back.
    pub is_lagging: bool,
    /// Whether requests are carried out in the order in which they were sent.
    pub is_ordered: bool,
    /// What users will do, in this order.
    pub users: Vec<UserAct>,
}

impl Budget {
    /// Nothing goes wrong, but for a watch that lags once.
    pub fn calm() -> Self {
        Self {
            crashes: 0,
            lost: 0,
            evictions: 0,
            failures: 0,
            lags: 1,
            is_lagging: false,
            is_ordered: false,
            users: Vec::new(),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.crashes, "crash"),
            (self.lost, "lost answer"),
            (self.evictions, "eviction"),
            (self.failures, "failure"),
            (self.lags, "lag"),
        ];
        let present = counts.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = present.map(|(count, what)| format!("{count} {what}")).collect();
        f.write_str(&words.join(", "))?;
        f.write_str(if self.is_ordered { "; in order" } else { "" })
    }
}

/// A small world to search.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// The setting.
    pub scenario: Arc<Scenario>,
    /// What may go wrong.
    pub budget: Budget,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Search {
    /// Different worlds.
    pub states: usize,
    /// Choices that were tried.
    pub transitions: u64,
    /// Whether every world within the budget was seen.
    pub is_complete: bool,
    /// A run that breaks an invariant, with the choices that lead to it.
    pub broken: Option<Run>,
}

impl Case {
    /// A Job with this spec; one crash, one lost answer, one eviction.
    pub fn new(name: &'static str, spec: Value, users: Vec<UserAct>) -> Self {
        let mut spec = spec;
        spec["template"] = json!({"spec": {"restartPolicy": "Never"}});
        let scenario = Scenario {
            spec,
            fates: Fates { failure: 0, exit_codes: 1 },
            faults: Faults::default(),
            users: Vec::new(),
            leaders: 1,
            has_bystander: false,
            chaos_steps: 0,
        };
        let budget = Budget { crashes: 1, lost: 1, evictions: 1, users, ..Budget::calm() };
        Self { name, scenario: Arc::new(scenario), budget }
    }

    /// The same, with so many Pods that may fail.
    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.budget.failures = failures;
        self
    }

    /// The faults one by one, with watches that lag at any one time and requests that overtake
    /// each other; then all together, with watches that tell at once and requests in order.
    ///
    /// Two kinds of worlds are too many for that. Where a user acts, which may be at any
    /// moment, the lag is a fault like the others, one of which happens, and requests keep
    /// their order. So they do where one of three indexes is evicted, and these have no fourth
    /// rung.
    pub fn ladder(&self) -> Vec<Case> {
        let has_users = !self.budget.users.is_empty();
        let is_small = self.scenario.spec["completions"].as_u64() < Some(3);
        let faults: &[(u32, u32, u32, u32)] = if has_users {
            &[(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
        } else if is_small {
            &[(1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1), (1, 1, 1, 0)]
        } else {
            &[(1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)]
        };
        let case = |&(crashes, lost, evictions, lags): &(u32, u32, u32, u32)| {
            let budget = Budget {
                crashes,
                lost,
                evictions,
                lags,
                is_ordered: lags == 0 || has_users || (evictions > 0 && !is_small),
                ..self.budget.clone()
            };
            Case { budget, ..self.clone() }
        };
        faults.iter().map(case).collect()
    }

    /// The small worlds that are always searched.
    pub fn all() -> Vec<Case> {
        let rule = json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]});
        let indexed = |completions: u32| json!({"completionMode": "Indexed", "completions": completions, "parallelism": 2});
        let with = |mut spec: Value, key: &str, value: Value| {
            spec[key] = value;
            spec
        };
        vec![
            Case::new("NonIndexed, 2", json!({"completions": 2, "parallelism": 2}), vec![]),
            Case::new("Indexed, 2", indexed(2), vec![]),
            Case::new("Indexed, 3", indexed(3), vec![]),
            Case::new(
                "backoffLimitPerIndex",
                with(indexed(2), "backoffLimitPerIndex", json!(1)),
                vec![],
            )
            .with_failures(1),
            Case::new(
                "successPolicy",
                with(indexed(2), "successPolicy", json!({"rules": [{"succeededIndexes": "0"}]})),
                vec![],
            ),
            Case::new(
                "podFailurePolicy and replacement of failed Pods only",
                with(indexed(2), "podFailurePolicy", json!({"rules": [rule]})),
                vec![],
            ),
            Case::new("suspend and resume", indexed(2), vec![UserAct::Suspend, UserAct::Resume]),
            Case::new("scale-down", indexed(2), vec![UserAct::Scale(1)]),
        ]
    }
}

/// Searches a small world, up to so many states.
pub fn search(case: &Case, max_states: usize, options: &Options) -> Search {
    let mut search = Search { states: 0, transitions: 0, is_complete: true, broken: None };
    let mut visited = HashSet::new();
    let mut fingerprints = Fingerprints::default();
    let mut world = World::with_versions_from(Arc::clone(&case.scenario), VERSION_BASE);
    world.ignored.clone_from(&options.ignored);
    if let Err(broken) = caught(|| world.ask_all(0)) {
        search.broken = Some(failed(case, Vec::new(), broken));
        return search;
    }
    visited.insert(fingerprints.of(&world, &case.budget));
    // A world, what is left to try in it, and the step that led to it.
    let mut path: Vec<Step> = Vec::new();
    let steps = enabled(&world, &case.budget);
    let mut stack = vec![(world, case.budget.clone(), steps)];
    while let Some((world, budget, steps)) = stack.last_mut() {
        let Some(step) = steps.pop() else {
            stack.pop();
            path.pop();
            continue;
        };
        search.transitions += 1;
        let (mut next, mut left) = (world.clone(), budget.clone());
        spend(&mut left, &step);
        let taken = match &step {
            Step::Take(choice) => caught(|| next.take(choice)),
            Step::HoldBack => Ok(true),
        };
        path.push(step);
        let has_moved = match taken {
            Ok(has_moved) => has_moved,
            Err(broken) => {
                search.broken = Some(failed(case, path, broken));
                break;
            }
        };
        left.is_lagging &= has_news(&next);
        if !has_moved || !visited.insert(fingerprints.of(&next, &left)) {
            path.pop();
            continue;
        }
        if visited.len() >= max_states {
            search.is_complete = false;
            break;
        }
        let steps = enabled(&next, &left);
        if steps.is_empty()
            && let Err(broken) = rest::check(&next)
        {
            search.broken = Some(failed(case, path, broken));
            break;
        }
        stack.push((next, left, steps));
    }
    search.states = visited.len();
    search
}

/// A step of a search.
#[derive(Clone, Debug)]
enum Step {
    Take(Choice),
    /// From now on the watches tell nothing, until it is chosen that they do.
    HoldBack,
}

fn failed(case: &Case, steps: Vec<Step>, broken: Broken) -> Run {
    let choice = |step| match step {
        Step::Take(choice) => Some(choice),
        Step::HoldBack => None,
    };
    let choices = steps.into_iter().filter_map(choice).collect();
    let scenario = Arc::clone(&case.scenario);
    Run { scenario, choices, result: Err(broken), trace: Vec::new() }
}

/// What the watches of the only controller have not told yet: Jobs, and Pods.
fn news(world: &World) -> (Option<&Change>, Option<&Change>) {
    let controller = &world.controllers[0];
    let is_of_jobs = |change: &&Change| matches!(change, Change::Job(_) | Change::JobGone { .. });
    let is_of_pods = |change: &&Change| !is_of_jobs(change);
    (
        world.api.since(controller.jobs_cursor).iter().find(is_of_jobs),
        world.api.since(controller.pods_cursor).iter().find(is_of_pods),
    )
}

fn has_news(world: &World) -> bool {
    let (jobs, pods) = news(world);
    jobs.is_some() || pods.is_some()
}

fn enabled(world: &World, budget: &Budget) -> Vec<Step> {
    // Of the requests that a crash leaves on their way, one at most is carried out: which,
    // and when, is searched.
    if world.late.len() > MAX_LATE {
        let drop = |flight: &Flight| Step::Take(Choice::DropLate(flight.key.clone()));
        return world.late.iter().map(drop).collect();
    }
    let controller = &world.controllers[0];
    let (job_news, pod_news) = news(world);
    let deliver_pods = Choice::DeliverPods(0, u32::MAX);
    let mut deliveries = Vec::new();
    for (news, choice) in [(job_news, Choice::DeliverJob(0)), (pod_news, deliver_pods)] {
        match news {
            // What is old news to the ledger changes nothing whenever it comes: it comes now.
            Some(change) if controller.is_old_news(change) => return vec![Step::Take(choice)],
            Some(_) => deliveries.push(Step::Take(choice)),
            None => {}
        }
    }
    if !deliveries.is_empty() && !budget.is_lagging {
        if budget.lags > 0 {
            deliveries.push(Step::HoldBack);
        }
        return deliveries;
    }
    let mut choices: Vec<Choice> = Vec::new();
    let at_once = if budget.is_ordered { 1 } else { usize::MAX };
    for flight in controller.flights.iter().take(at_once) {
        choices.push(Choice::Do(0, flight.key.clone()));
        if budget.lost > 0 {
            choices.push(Choice::LoseAnswer(0, flight.key.clone()));
            choices.push(Choice::TimeOut(0, flight.key.clone()));
        }
    }
    for flight in &world.late {
        choices.push(Choice::ApplyLate(flight.key.clone()));
    }
    if budget.crashes > 0 && !rest::is_over(world) {
        choices.push(Choice::Crash(0, 0, 0));
    }
    for pod in world.api.now.pods.values() {
        let mut add = |act| {
            if node::can(&pod.facts, act, false) {
                choices.push(Choice::Pod(pod.facts.name.clone(), act));
            }
        };
        add(PodAct::EndAtOnce(0));
        if budget.failures > 0 {
            add(PodAct::EndAtOnce(1));
        }
        if budget.evictions > 0 {
            add(PodAct::Evict);
        }
        add(PodAct::Terminate(false));
        add(PodAct::MarkFailed);
    }
    // Users and time come last: they are always possible, and not always needed.
    if let Some(act) = budget.users.first() {
        choices.push(Choice::User(act.clone()));
    }
    let is_idle = choices.is_empty() && deliveries.is_empty();
    if is_idle && controller.pods_cursor < world.api.version() {
        choices.push(Choice::DeliverPods(0, 1));
    } else if let (true, Some(millis)) = (is_idle, calm::millis_to_wake(world)) {
        choices.push(Choice::Wait(millis));
    }
    deliveries.into_iter().chain(choices.into_iter().map(Step::Take)).collect()
}

fn spend(budget: &mut Budget, step: &Step) {
    let Step::Take(choice) = step else {
        budget.lags -= 1;
        budget.is_lagging = true;
        return;
    };
    if matches!(choice, Choice::Crash(..)) {
        budget.crashes -= 1;
    } else if matches!(choice, Choice::LoseAnswer(..) | Choice::TimeOut(..)) {
        budget.lost -= 1;
    } else if matches!(choice, Choice::Pod(_, PodAct::Evict)) {
        budget.evictions -= 1;
    } else if matches!(choice, Choice::Pod(_, PodAct::EndAtOnce(1))) {
        budget.failures -= 1;
    } else if matches!(choice, Choice::User(_)) {
        budget.users.remove(0);
    }
}
