//! Where a Job comes to rest, told before it does, from its spec and what becomes of its Pods.
//!
//! A Job is at rest when each of its Pods has ended, counts, and is replaced where it must be, or
//! runs until somebody does something about it. Of the way there the order is open: Pods end side
//! by side, and replacements come after delays. The model says where it leads only if every order
//! leads there, and otherwise that it is [`Unsure`], with the reason. What one step does to a Job
//! at rest is always certain.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use stint_kit::End;

use super::policy::{TOLD_TO_END, Verdict, is_met, judge};
use super::step::{Courses, Place, Step};

/// Why it is not certain where a Job comes to rest, or that it does in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsure(pub(crate) &'static str);

/// Which Pods run.
#[derive(Clone, Debug, PartialEq)]
enum Live {
    /// Those of these indexes.
    Places(BTreeSet<u32>),
    /// So many; which ones is open, or there are no indexes.
    Some(u32),
}

/// A Job at rest.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) active: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// How many Pods are left that have ended, also those whose failure was ignored.
    pub(crate) ended: u32,
    pub(crate) is_suspended: bool,
    /// Whether it has run.
    pub(crate) has_started: bool,
    /// The indexes of its Pods, if they have some and it is certain which.
    pub(crate) indexes: Option<BTreeSet<u32>>,
}

/// A Job and what is to come.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    is_indexed: bool,
    restarts_containers: bool,
    parallelism: u32,
    completions: Option<u32>,
    backoff_limit: u32,
    limit_per_index: Option<u32>,
    max_failed_indexes: Option<u32>,
    failure_policy: Value,
    success_policy: Value,
    replaces_failed_only: bool,
    pub(crate) is_suspended: bool,
    /// How the Pods end that do, before one of their place runs on.
    courses: BTreeMap<Place, Vec<End>>,
    /// The same for what comes after [`Step::Release`]; the last ones succeed.
    finales: BTreeMap<Place, Vec<End>>,
    is_released: bool,
    /// Whether Pods have a node, which ends them when they are deleted.
    has_node: bool,
    live: Live,
    succeeded: u32,
    failed: u32,
    ended: u32,
    completed: BTreeSet<u32>,
    failed_indexes: BTreeSet<u32>,
    failures: BTreeMap<u32, u32>,
    has_failed_by_policy: bool,
    /// How many replacements came with a delay: by index if each has a delay of its own.
    delays: BTreeMap<Place, u32>,
    /// How many seconds delays may take together.
    budget: u32,
    /// Whether it has run.
    pub(crate) has_started: bool,
    has_shrunk: bool,
    has_restarted: bool,
    /// How many Pods were told to end by the last step, or by the Job because of it.
    pub(crate) told_to_end: u32,
    pub(crate) ttl: Option<u32>,
    /// How it has ended: `Complete CompletionsReached`; empty: it was deleted.
    pub(crate) end: Option<String>,
}

impl Model {
    /// A Job with this spec that nobody has looked at yet.
    pub(crate) fn new(spec: &Value, courses: &Courses, has_node: bool, budget: u32) -> Self {
        let number = |key: &str| spec[key].as_u64().map(|it| it as u32);
        let is_indexed = spec["completionMode"] == "Indexed";
        let limit_per_index = number("backoffLimitPerIndex");
        let has_policy = !spec["podFailurePolicy"].is_null();
        Model {
            is_indexed,
            restarts_containers: spec["template"]["spec"]["restartPolicy"] == "OnFailure",
            parallelism: number("parallelism").unwrap_or(1),
            // Where neither is said, both are 1.
            completions: number("completions").or(number("parallelism").is_none().then_some(1)),
            backoff_limit: number("backoffLimit").unwrap_or(if limit_per_index.is_some() {
                u32::MAX
            } else {
                6
            }),
            limit_per_index,
            max_failed_indexes: number("maxFailedIndexes"),
            failure_policy: spec["podFailurePolicy"].clone(),
            success_policy: spec["successPolicy"].clone(),
            replaces_failed_only: has_policy || spec["podReplacementPolicy"] == "Failed",
            is_suspended: spec["suspend"] == true,
            courses: ends(courses),
            finales: BTreeMap::new(),
            is_released: false,
            has_node,
            live: if is_indexed { Live::Places(BTreeSet::new()) } else { Live::Some(0) },
            succeeded: 0,
            failed: 0,
            ended: 0,
            completed: BTreeSet::new(),
            failed_indexes: BTreeSet::new(),
            failures: BTreeMap::new(),
            has_failed_by_policy: false,
            delays: BTreeMap::new(),
            budget,
            has_started: false,
            has_shrunk: false,
            has_restarted: false,
            told_to_end: 0,
            ttl: number("ttlSecondsAfterFinished"),
            end: None,
        }
    }

    /// Where it rests first.
    pub(crate) fn begin(&self) -> Result<Self, Unsure> {
        let mut next = self.clone();
        next.settle()?;
        Ok(next)
    }

    /// Where it rests after a step.
    pub(crate) fn after(&self, step: &Step) -> Result<Self, Unsure> {
        let mut next = Model { told_to_end: 0, ..self.clone() };
        next.take(step)?;
        if matches!(step, Step::Evict { .. }) && self.replaces_failed_only {
            // It counts when it has ended; others that go because of that go later.
            next.told_to_end = 1;
        }
        Ok(next)
    }

    /// The same with what is to become of Pods after [`Step::Release`].
    pub(crate) fn with_finales(&self, finales: &Courses) -> Self {
        Model { finales: ends(finales), ..self.clone() }
    }

    /// What can be seen of it.
    pub(crate) fn rest(&self) -> Rest {
        Rest {
            active: self.live(),
            succeeded: self.successes(),
            failed: self.failed,
            ended: self.ended,
            is_suspended: self.is_suspended,
            has_started: self.has_started,
            indexes: match &self.live {
                Live::Places(places) => Some(places.clone()),
                Live::Some(_) => None,
            },
        }
    }

    /// The places with Pods that run, each once, if they are known.
    pub(crate) fn places(&self) -> Vec<Place> {
        match &self.live {
            Live::Places(places) => places.iter().copied().map(Some).collect(),
            Live::Some(0) => Vec::new(),
            Live::Some(_) if self.is_indexed => Vec::new(),
            Live::Some(_) => vec![None],
        }
    }

    /// Whether indexes fail one by one.
    pub(crate) fn counts_per_index(&self) -> bool {
        self.limit_per_index.is_some()
    }

    /// The places that need more Pods.
    pub(crate) fn open_places(&self) -> Vec<Place> {
        if self.is_indexed { self.remaining().into_iter().map(Some).collect() } else { vec![None] }
    }

    fn take(&mut self, step: &Step) -> Result<(), Unsure> {
        match step {
            Step::Finish { place, end } => {
                self.remove(*place);
                self.see(*place, end)?;
            }
            Step::Evict { place } => self.evict(*place)?,
            Step::Restart { count, .. } => {
                // Their number is known of the Pods that run only; one step of that kind is enough.
                if self.has_restarted || !self.restarts_containers {
                    return Err(Unsure("restarts are told once"));
                }
                self.has_restarted = true;
                if *count >= self.backoff_limit.max(1) {
                    self.fail("BackoffLimitExceeded");
                    return Ok(());
                }
            }
            Step::Relabel => match &mut self.live {
                Live::Some(count) if !self.is_indexed => *count -= 1,
                _ => return Err(Unsure("two Pods of an index would run")),
            },
            Step::Suspend => {
                if self.completions.is_none() && self.succeeded > 0 {
                    // It would be complete without a startTime, which the API refuses.
                    return Err(Unsure("a work queue with a success has no Pods any more"));
                }
                self.check_removal()?;
                self.forget(0);
                self.is_suspended = true;
            }
            Step::Resume => self.is_suspended = false,
            Step::Scale { parallelism } => self.parallelism = *parallelism,
            Step::Resize { completions } => self.resize(*completions)?,
            Step::BackoffLimit { .. } if self.has_restarted => {
                return Err(Unsure("how many restarts there are is not followed"));
            }
            Step::BackoffLimit { limit } => self.backoff_limit = *limit,
            Step::MaxFailedIndexes { most } => {
                if !self.counts_per_index() || Some(*most) > self.completions {
                    return Err(Unsure("the API refuses it"));
                }
                self.max_failed_indexes = Some(*most);
            }
            Step::Deadline => {
                if self.is_suspended {
                    return Err(Unsure("a suspended Job has no deadline"));
                }
                self.fail("DeadlineExceeded");
                return Ok(());
            }
            Step::Ttl { seconds } => self.ttl = Some(*seconds),
            Step::Label => {}
            Step::Template | Step::TryTemplate => {
                if !self.is_suspended {
                    return Err(Unsure("the template of a Job that runs cannot be changed"));
                }
            }
            Step::Delete { .. } => {
                self.end = Some(String::new());
                return Ok(());
            }
            Step::Release => {
                if self.parallelism == 0 || self.is_suspended {
                    return Err(Unsure("nothing ends"));
                }
                self.release()?;
            }
        }
        self.settle()
    }

    fn evict(&mut self, place: Place) -> Result<(), Unsure> {
        if self.replaces_failed_only && !self.has_node {
            return Err(Unsure("nobody ends a Pod without a node"));
        }
        self.remove(place);
        self.told_to_end += 1;
        self.see(place, &End::Fails(TOLD_TO_END))?;
        // It goes when it has ended.
        self.ended -= 1;
        Ok(())
    }

    /// Lets all Pods that run end. They are the first to: those of a place that has several are
    /// alike.
    fn release(&mut self) -> Result<(), Unsure> {
        if let Live::Some(_) = self.live
            && self.is_indexed
            && self.finales.values().any(|ends| !ends.is_empty())
        {
            return Err(Unsure("which indexes run is open"));
        }
        self.is_released = true;
        if self.completions.is_none() && (self.live() > 1 || self.succeeded > 0) {
            if self.finales.values().any(|ends| !ends.is_empty()) {
                return Err(Unsure("whether a Pod of a work queue is replaced is open"));
            }
            self.succeeded += self.live();
        }
        self.live = match self.live {
            Live::Places(_) => Live::Places(BTreeSet::new()),
            Live::Some(_) if self.is_indexed => Live::Places(BTreeSet::new()),
            Live::Some(_) => Live::Some(0),
        };
        Ok(())
    }

    fn resize(&mut self, completions: u32) -> Result<(), Unsure> {
        let check = self.check_removal();
        let Live::Places(live) = &mut self.live else {
            return Err(Unsure("which indexes run is open"));
        };
        if self.is_suspended || !self.success_policy.is_null() || completions == 0 {
            return Err(Unsure("the API may refuse it, or the status that follows"));
        }
        if self.max_failed_indexes.is_some_and(|most| most > completions) {
            return Err(Unsure("the API refuses it"));
        }
        let before = self.completions.unwrap_or(0);
        if completions < before {
            check?;
        }
        if self.has_shrunk && completions > before {
            // An index that had succeeded would be run again.
            return Err(Unsure("an index may come back"));
        }
        self.has_shrunk |= completions < before;
        let before = live.len();
        live.retain(|index| *index < completions);
        self.told_to_end += (before - live.len()) as u32;
        self.completed.retain(|index| *index < completions);
        self.failed_indexes.retain(|index| *index < completions);
        self.failures.retain(|index, _| *index < completions);
        (self.parallelism, self.completions) = (completions, Some(completions));
        Ok(())
    }

    /// Lets all Pods go but so many. What an index has failed before is known by its Pod alone.
    fn forget(&mut self, count: u32) {
        self.told_to_end += self.live() - count;
        match &mut self.live {
            Live::Places(places) if count == 0 => {
                self.failures.retain(|index, _| !places.contains(index));
                places.clear();
            }
            Live::Places(_) => self.live = Live::Some(count),
            Live::Some(_) if count == 0 && self.is_indexed => {
                self.live = Live::Places(BTreeSet::new());
            }
            Live::Some(live) => *live = count,
        }
    }

    /// Goes on until nothing happens by itself any more.
    fn settle(&mut self) -> Result<(), Unsure> {
        self.judge_end();
        if self.end.is_some() || self.is_suspended {
            return Ok(());
        }
        self.has_started = true;
        if self.live() > self.wanted() {
            self.scale_down()?;
        }
        if self.is_indexed {
            self.settle_indexes()?
        } else {
            self.settle_alike()?
        }
        let delay = |count: &u32| 10 * (2_u32.pow((*count).min(20)) - 1);
        match self.delays.values().map(delay).max() {
            Some(longest) if longest > self.budget => Err(Unsure("it takes too long")),
            _ => Ok(()),
        }
    }

    /// Which Pods go is chosen by ages, in whole seconds: open, unless all do or all are alike.
    fn scale_down(&mut self) -> Result<(), Unsure> {
        let wanted = self.wanted();
        if wanted > 0 && self.is_indexed {
            let has_courses =
                self.open_places().iter().any(|place| !self.course(*place).is_empty());
            if has_courses || !self.failures.is_empty() || !self.success_policy.is_null() {
                return Err(Unsure("which indexes go is open, and they are not alike"));
            }
        }
        if wanted > 0 && self.has_restarted {
            return Err(Unsure("which Pod goes is open, and they are not alike"));
        }
        self.check_removal()?;
        self.forget(wanted);
        Ok(())
    }

    /// A Pod that the Job removes itself does not count, but the built-in controller looks at its
    /// exit code all the same, if it comes to it between the end of the Pod and its deletion.
    fn check_removal(&self) -> Result<(), Unsure> {
        let end = End::Fails(TOLD_TO_END);
        match judge(&self.failure_policy, &end) {
            Verdict::FailsJob if self.has_node && self.live() > 0 => {
                Err(Unsure("whether a Pod that the Job removes is seen to end is open"))
            }
            _ => Ok(()),
        }
    }

    fn settle_alike(&mut self) -> Result<(), Unsure> {
        // With one Pod at a time there is one order only.
        let is_alone = self.wanted() == 1 && self.live() == 0;
        while self.live() < self.wanted() {
            let Some(end) = self.course(None).first().cloned() else {
                self.live = Live::Some(self.wanted());
                break;
            };
            self.advance(None);
            if !is_alone && self.completions.is_none() && matches!(end, End::Succeeds) {
                return Err(Unsure("after a success a work queue gets no more Pods"));
            }
            self.see(None, &end)?;
            if self.is_over_early() && !is_alone {
                return Err(Unsure("the Job ends while other Pods come and go"));
            }
            self.judge_end();
            if self.end.is_some() {
                return Ok(());
            }
        }
        self.judge_end();
        Ok(())
    }

    fn settle_indexes(&mut self) -> Result<(), Unsure> {
        let remaining = self.remaining();
        let wanted = self.wanted().min(remaining.len() as u32);
        let live = match &self.live {
            Live::Places(live) => live.clone(),
            Live::Some(_)
                if remaining.iter().any(|index| !self.course(Some(*index)).is_empty()) =>
            {
                return Err(Unsure("which indexes run is open"));
            }
            Live::Some(_) => {
                self.live = match wanted == remaining.len() as u32 {
                    true => Live::Places(remaining),
                    false => Live::Some(wanted),
                };
                return Ok(());
            }
        };
        let waiting: Vec<u32> = remaining.difference(&live).copied().collect();
        let moving = waiting.iter().any(|index| !self.course(Some(*index)).is_empty());
        let is_alone = live.is_empty() && wanted == 1 && self.limit_per_index.is_none();
        if !moving {
            return self.fill(live, &waiting, wanted);
        }
        if is_alone { self.settle_one_by_one() } else { self.settle_side_by_side(live, &waiting) }
    }

    /// The lowest indexes come first, if none of those that wait has a delay of its own.
    fn fill(
        &mut self,
        mut live: BTreeSet<u32>,
        waiting: &[u32],
        wanted: u32,
    ) -> Result<(), Unsure> {
        let free = wanted.saturating_sub(live.len() as u32) as usize;
        let has_delay = |index: &u32| {
            self.failures.contains_key(index) || self.delays.contains_key(&Some(*index))
        };
        if free < waiting.len() && self.limit_per_index.is_some() && waiting.iter().any(has_delay) {
            return Err(Unsure("whether an index that waits gets a place before others is open"));
        }
        live.extend(waiting.iter().take(free));
        self.live = Live::Places(live);
        Ok(())
    }

    fn settle_one_by_one(&mut self) -> Result<(), Unsure> {
        while self.end.is_none() {
            let Some(index) = self.remaining().first().copied() else { break };
            let Some(end) = self.course(Some(index)).first().cloned() else {
                self.live = Live::Places([index].into());
                break;
            };
            self.advance(Some(index));
            self.see(Some(index), &end)?;
            self.judge_end();
        }
        Ok(())
    }

    fn settle_side_by_side(
        &mut self,
        mut live: BTreeSet<u32>,
        waiting: &[u32],
    ) -> Result<(), Unsure> {
        let before = self.completed.clone();
        let mut has_stopped = false;
        let all = (live.len() + waiting.len()) as u32;
        for index in waiting {
            let place = Some(*index);
            let had_course = !self.course(place).is_empty();
            while !self.is_finished(*index) {
                let Some(end) = self.course(place).first().cloned() else {
                    live.insert(*index);
                    break;
                };
                self.advance(place);
                self.see(place, &end)?;
            }
            has_stopped |= had_course && !self.completed.contains(index);
        }
        // A place is left for those that come to an end, or everybody has one.
        if live.len() as u32 >= self.parallelism && all > self.parallelism {
            return Err(Unsure("whether an index gets a place before others stay there is open"));
        }
        self.live = Live::Places(live);
        if self.is_over_early() {
            return Err(Unsure("the Job ends while other Pods come and go"));
        }
        if is_met(&self.success_policy, &self.completed) {
            // It is met by the last of them, or somewhere on the way.
            let is_last = self.completed.difference(&before).all(|index| {
                let mut others = self.completed.clone();
                others.remove(index);
                !is_met(&self.success_policy, &others)
            });
            if !is_last || has_stopped {
                return Err(Unsure("the success policy is met while other Pods come and go"));
            }
        }
        self.judge_end();
        Ok(())
    }

    /// Whether there is an end that does not wait for all Pods.
    fn is_over_early(&self) -> bool {
        let failed_indexes = self.failed_indexes.len() as u32;
        self.has_failed_by_policy
            || self.failed > self.backoff_limit
            || self.max_failed_indexes.is_some_and(|most| failed_indexes > most)
    }

    /// Ends it if it is to end (job-semantics 5.2).
    fn judge_end(&mut self) {
        if self.end.is_some() {
            return;
        }
        let failed_indexes = self.failed_indexes.len() as u32;
        let finished = failed_indexes + self.completed.len() as u32;
        if self.has_failed_by_policy {
            self.fail("PodFailurePolicy");
        } else if self.failed > self.backoff_limit {
            self.fail("BackoffLimitExceeded");
        } else if self.max_failed_indexes.is_some_and(|most| failed_indexes > most) {
            self.fail("MaxFailedIndexesExceeded");
        } else if failed_indexes > 0 && Some(finished) >= self.completions {
            self.fail("FailedIndexes");
        } else if is_met(&self.success_policy, &self.completed) {
            self.finish("Complete SuccessPolicy");
        } else if self.live() == 0 && self.has_enough() {
            self.finish("Complete CompletionsReached");
        }
    }

    fn has_enough(&self) -> bool {
        match self.completions {
            Some(completions) => self.successes() >= completions,
            None => self.succeeded > 0,
        }
    }

    fn fail(&mut self, reason: &str) {
        self.failed += self.live();
        self.finish(&format!("Failed {reason}"));
    }

    fn finish(&mut self, end: &str) {
        self.told_to_end += self.live();
        self.live = Live::Some(0);
        self.end = Some(end.to_owned());
    }

    /// Counts a Pod.
    fn see(&mut self, place: Place, end: &End) -> Result<(), Unsure> {
        self.ended += 1;
        if matches!(end, End::Succeeds) {
            match place {
                Some(index) => drop(self.completed.insert(index)),
                None => self.succeeded += 1,
            }
            return Ok(());
        }
        match judge(&self.failure_policy, end) {
            Verdict::Ignored => {}
            Verdict::Counts => {
                self.failed += 1;
                if let (Some(index), Some(limit)) = (place, self.limit_per_index) {
                    let failures = self.failures.entry(index).or_default();
                    *failures += 1;
                    if *failures > limit {
                        self.failed_indexes.insert(index);
                    }
                }
            }
            Verdict::FailsIndex => {
                self.failed += 1;
                self.failed_indexes.extend(place);
            }
            Verdict::FailsJob => {
                self.failed += 1;
                self.has_failed_by_policy = true;
            }
        }
        let is_replaced = !self.is_over_early() && place.is_none_or(|it| !self.is_finished(it));
        if is_replaced {
            let own = place.filter(|_| self.limit_per_index.is_some());
            *self.delays.entry(own).or_default() += 1;
        }
        Ok(())
    }

    fn remove(&mut self, place: Place) {
        match (&mut self.live, place) {
            (Live::Places(live), Some(index)) => assert!(live.remove(&index), "it runs"),
            (Live::Some(count), None) => *count -= 1,
            (live, _) => panic!("{live:?} has no {place:?}"),
        }
    }

    /// What is still to become of the Pods of a place.
    fn course(&self, place: Place) -> &[End] {
        let courses = if self.is_released { &self.finales } else { &self.courses };
        match courses.get(&place).map(Vec::as_slice) {
            None | Some([]) if self.is_released => &[End::Succeeds],
            other => other.unwrap_or_default(),
        }
    }

    fn advance(&mut self, place: Place) {
        let courses = if self.is_released { &mut self.finales } else { &mut self.courses };
        if let Some(course) = courses.get_mut(&place).filter(|course| !course.is_empty()) {
            course.remove(0);
        }
    }

    fn live(&self) -> u32 {
        match &self.live {
            Live::Places(places) => places.len() as u32,
            Live::Some(count) => *count,
        }
    }

    fn successes(&self) -> u32 {
        if self.is_indexed { self.completed.len() as u32 } else { self.succeeded }
    }

    fn wanted(&self) -> u32 {
        match self.completions {
            Some(completions) => {
                self.parallelism.min(completions - self.successes().min(completions))
            }
            None if self.succeeded > 0 => self.live(),
            None => self.parallelism,
        }
    }

    fn remaining(&self) -> BTreeSet<u32> {
        (0..self.completions.unwrap_or(0)).filter(|index| !self.is_finished(*index)).collect()
    }

    fn is_finished(&self, index: u32) -> bool {
        self.completed.contains(&index) || self.failed_indexes.contains(&index)
    }
}

fn ends(courses: &Courses) -> BTreeMap<Place, Vec<End>> {
    let ends = |fates: &Vec<stint_kit::Fate>| fates.iter().map(|fate| fate.end.clone()).collect();
    courses.iter().map(|(place, fates)| (*place, ends(fates))).collect()
}
