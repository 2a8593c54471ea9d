//! A model of the API, the kubelet and the users around one Job and its ledger.
//!
//! The API keeps versions, unique names and finalizers, and checks every status by the
//! rules of a real API server. Whatever the ledger does wrong ends a run with the name of
//! the invariant it broke.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stint_api::closed_set::JobConditionType;
use stint_api::condition;
use stint_api::feature_gates::FeatureGates;
use stint_api::index_set::IndexSet;
use stint_api::prepare::prepare_for_create;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::view::JobView;
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::op::{Applied, NewPod, Op, OpKind, Outcome, PodRef, Refusal};
use stint_ledger::pod_facts::{ContainerExit, Owner, PodCondition, PodFacts, PodPhase};

use crate::random::Random;
use crate::scenario::{Action, Faults, Scenario};

/// Steps after which nothing goes wrong any more.
const CALM_AFTER: u64 = 2_000;
/// Steps after which a Job that has not ended never will.
const MAX_STEPS: u64 = 20_000;
/// The uid of the Job.
const JOB_UID: &str = "job-uid";

/// An invariant that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which one.
    pub invariant: &'static str,
    /// How.
    pub details: String,
}

/// What came of a run without a broken invariant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Steps until everything was at rest.
    pub steps: u64,
    /// Ops that were run.
    pub ops: u64,
    /// Pods that were created.
    pub pods: u64,
}

/// The world of one seed.
pub struct World {
    scenario: Scenario,
    random: Random,
    now: Timestamp,
    version: u64,
    job: Job,
    pods: BTreeMap<String, PodFacts>,
    ledger: JobLedger,
    watch: VecDeque<Event>,
    /// Uids that have left the uncounted list into a counter.
    counted: BTreeSet<String>,
    /// The lowest completions and the highest parallelism that the Job ever had.
    least_completions: u32,
    most_parallelism: usize,
    summary: Summary,
    /// What happened, one line each.
    pub trace: Vec<String>,
}

type Checked = Result<(), Broken>;

impl World {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let scenario = Scenario::from_seed(seed);
        let mut job: Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": JOB_UID, "resourceVersion": "1"},
            "spec": scenario.spec,
        }))
        .expect("a scenario's Job is well typed");
        let pod = job.spec.get_or_insert_default().template.spec.get_or_insert_default();
        pod.restart_policy = Some("Never".to_owned());
        prepare_for_create(&mut job, &FeatureGates::default());
        let mut world = Self {
            random: Random::new(seed ^ 0x5eed),
            now: Timestamp::from_second(1_000_000).expect("a time"),
            version: 1,
            trace: vec![
                format!("job {}", scenario.spec),
                format!("{:?} {:?}", scenario.fates, scenario.faults),
            ],
            scenario,
            job,
            pods: BTreeMap::new(),
            ledger: JobLedger::new(Settings::default(), "j", JOB_UID),
            watch: VecDeque::new(),
            counted: BTreeSet::new(),
            least_completions: u32::MAX,
            most_parallelism: 0,
            summary: Summary::default(),
        };
        world.note_scale();
        world.restart();
        world
    }

    /// Runs until the Job has ended and nothing moves.
    pub fn run(&mut self) -> Result<Summary, Broken> {
        for step in 0..MAX_STEPS {
            self.summary.steps = step;
            if step == CALM_AFTER {
                self.scenario.faults = Faults::default();
            }
            self.act(step);
            self.deliver();
            if self.random.chance(self.scenario.faults.crash) {
                self.say("crash".to_owned());
                self.restart();
            }
            let ops = self.ledger.next(self.now);
            let is_idle = ops.is_empty();
            for op in ops {
                self.execute(op)?;
                self.check_pods()?;
            }
            self.kubelet();
            self.collect();
            if is_idle && self.watch.is_empty() {
                if self.is_at_rest(step) {
                    return self.check_end().map(|()| self.summary);
                }
                self.advance()?;
            }
        }
        Err(broken("every Job ends once faults stop", format!("{:#?}", self.job.status)))
    }

    fn is_at_rest(&self, step: u64) -> bool {
        let is_over = self.is_finished() || self.job.metadata.deletion_timestamp.is_some();
        let is_plan_done = self.scenario.plan.iter().all(|(at, _)| *at < step);
        is_over && is_plan_done && self.pods.values().all(|pod| !pod.is_tracked)
    }

    fn say(&mut self, line: String) {
        self.trace.push(line);
    }

    /// A new ledger from a list, as after a crash.
    fn restart(&mut self) {
        self.watch.clear();
        self.ledger = JobLedger::new(Settings::default(), "j", JOB_UID);
        self.ledger.observe(Event::JobSeen(Box::new(self.view())));
        for facts in self.pods.values() {
            self.ledger
                .observe(Event::PodSeen { facts: Box::new(facts.clone()), is_selected: true });
        }
        self.ledger.observe(Event::PodsCurrent { version: self.version });
    }

    fn view(&self) -> JobView {
        JobView::parse(&self.job).expect("the world's Job is valid")
    }

    fn status(&self) -> JobStatus {
        self.job.status.clone().unwrap_or_default()
    }

    fn has(&self, kind: JobConditionType) -> bool {
        condition::is_true(condition::of(self.job.status.as_ref()), kind)
    }

    fn is_finished(&self) -> bool {
        condition::is_finished(condition::of(self.job.status.as_ref()))
    }

    fn is_decided(&self) -> bool {
        self.has(JobConditionType::FailureTarget) || self.has(JobConditionType::SuccessCriteriaMet)
    }

    fn bump(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn publish(&mut self, name: &str) {
        let version = self.bump();
        let facts = self.pods.get_mut(name).expect("a Pod that is published exists");
        facts.version = version;
        let facts = Box::new(facts.clone());
        self.watch.push_back(Event::PodSeen { facts, is_selected: true });
    }

    fn advance(&mut self) -> Checked {
        let next = self.now.checked_add(SignedDuration::from_secs(1)).expect("time goes on");
        let wake_at = self.ledger.wake_at();
        if wake_at.is_some_and(|at| at <= self.now) {
            return Err(broken(
                "a ledger that was asked does not wake at once",
                format!("{wake_at:?}"),
            ));
        }
        self.now = wake_at.map_or(next, |at| at.max(next));
        Ok(())
    }

    fn deliver(&mut self) {
        while !self.watch.is_empty() && !self.random.chance(self.scenario.faults.slow_watch) {
            if let Some(event) = self.watch.pop_front() {
                self.ledger.observe(event);
            }
        }
    }

    /// What users do in this step.
    fn act(&mut self, step: u64) {
        let plan = self.scenario.plan.clone();
        for (_, action) in plan.into_iter().filter(|(at, _)| *at == step) {
            if self.is_finished() || self.job.metadata.deletion_timestamp.is_some() {
                continue;
            }
            self.say(format!("step {step}: {action:?}"));
            let spec = self.job.spec.as_mut().expect("a Job has a spec");
            match action {
                Action::Suspend => spec.suspend = Some(true),
                Action::Resume => spec.suspend = Some(false),
                Action::Parallelism(count) => spec.parallelism = Some(count),
                Action::Scale(count) => {
                    spec.parallelism = Some(count);
                    spec.completions = Some(count);
                }
                Action::DeletePod => {
                    let active = self.pods.values().find(|pod| pod.is_active());
                    if let Some(name) = active.map(|pod| pod.name.clone()) {
                        self.mark_deleted(&name);
                    }
                    continue;
                }
                Action::DeleteJob => self.job.metadata.deletion_timestamp = Some(Time(self.now)),
            }
            self.note_scale();
            let generation = self.job.metadata.generation.unwrap_or(0);
            self.job.metadata.generation = Some(generation + 1);
            self.job.metadata.resource_version = Some(self.bump().to_string());
            self.watch.push_back(Event::JobSeen(Box::new(self.view())));
        }
    }

    fn note_scale(&mut self) {
        let spec = self.job.spec.as_ref().expect("a Job has a spec");
        let parallelism = spec.parallelism.unwrap_or(1) as usize;
        self.most_parallelism = self.most_parallelism.max(parallelism);
        let completions = spec.completions.map_or(u32::MAX, |count| count as u32);
        self.least_completions = self.least_completions.min(completions);
    }

    fn execute(&mut self, op: Op) -> Checked {
        if matches!(op.kind, OpKind::EmitEvent(_)) {
            return Ok(());
        }
        self.summary.ops += 1;
        self.say(format!("{:?}", op.kind));
        let faults = self.scenario.faults;
        if self.random.chance(faults.refused) {
            self.say("  refused".to_owned());
            self.ledger.settle(op.id, Outcome::Refused(Refusal::TryLater));
            return Ok(());
        }
        let is_lost = self.random.chance(faults.lost_answer);
        if is_lost && self.random.chance(50) {
            self.say("  lost before it was applied".to_owned());
            self.ledger.settle(op.id, Outcome::InDoubt);
            return Ok(());
        }
        let outcome = match op.kind {
            OpKind::CreatePod(pod) => self.create(pod)?,
            OpKind::DeletePod(pod) => self.delete(&pod),
            OpKind::RemoveFinalizer(pod) => self.untrack(&pod)?,
            OpKind::WriteStatus { version, status } => self.write(version, *status)?,
            OpKind::LookUpJob => Outcome::Applied(Applied::Job(Box::new(self.view()))),
            OpKind::LookUpPod(name) => self.answer(&name),
            OpKind::AdoptPod(pod) | OpKind::ReleasePod(pod) => {
                return Err(broken("only orphans are adopted", format!("{pod:?}")));
            }
            OpKind::EmitEvent(_) => return Ok(()),
        };
        if is_lost {
            self.say("  lost after it was applied".to_owned());
        }
        self.ledger.settle(op.id, if is_lost { Outcome::InDoubt } else { outcome });
        Ok(())
    }

    fn answer(&self, name: &str) -> Outcome {
        match self.pods.get(name) {
            Some(facts) => Outcome::Applied(Applied::Pod(Box::new(facts.clone()))),
            None => Outcome::Applied(Applied::NoPod),
        }
    }

    fn create(&mut self, new: NewPod) -> Result<Outcome, Broken> {
        if self.pods.contains_key(&new.name) {
            return Ok(Outcome::Refused(Refusal::AlreadyExists));
        }
        if self.is_decided() {
            return Err(broken("no Pod is created after the end is decided", new.name));
        }
        self.summary.pods += 1;
        let facts = PodFacts {
            name: new.name.clone(),
            uid: format!("uid-{}", self.summary.pods),
            version: 0,
            owner: Owner::Controller(JOB_UID.to_owned()),
            is_tracked: true,
            phase: PodPhase::Pending,
            created: self.now,
            is_deleted: false,
            index: new.index,
            failure_count: new.failure_count.unwrap_or(0),
            ignored_failure_count: new.ignored_failure_count,
            is_scheduled: true,
            ready_since: None,
            restart_count: 0,
            finished_at: self.now,
            exits: Vec::new(),
            conditions: Vec::new(),
        };
        self.pods.insert(new.name.clone(), facts);
        self.publish(&new.name);
        Ok(self.answer(&new.name))
    }

    fn find(&self, pod: &PodRef) -> bool {
        self.pods.get(&pod.name).is_some_and(|facts| facts.uid == pod.uid)
    }

    fn mark_deleted(&mut self, name: &str) {
        let facts = self.pods.get_mut(name).expect("a Pod that is deleted exists");
        if !facts.is_deleted {
            facts.is_deleted = true;
            facts.finished_at = self.now;
            self.publish(name);
        }
    }

    fn delete(&mut self, pod: &PodRef) -> Outcome {
        if !self.find(pod) {
            return Outcome::Refused(Refusal::NotFound);
        }
        self.mark_deleted(&pod.name);
        self.collect();
        self.answer(&pod.name)
    }

    fn untrack(&mut self, pod: &PodRef) -> Result<Outcome, Broken> {
        if !self.find(pod) {
            return Ok(Outcome::Refused(Refusal::NotFound));
        }
        let facts = self.pods[&pod.name].clone();
        if pod.version.is_some_and(|version| version != facts.version) {
            return Ok(Outcome::Refused(Refusal::Conflict));
        }
        self.check_accounted(&facts)?;
        if facts.is_tracked {
            self.pods.get_mut(&pod.name).expect("it was just there").is_tracked = false;
            self.publish(&pod.name);
        }
        self.collect();
        Ok(self.answer(&pod.name))
    }

    fn check_accounted(&self, facts: &PodFacts) -> Checked {
        let status = self.status();
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let lists = |uids: &Option<Vec<String>>| {
            uids.as_ref().is_some_and(|uids| uids.contains(&facts.uid))
        };
        let completed =
            IndexSet::parse_lenient(status.completed_indexes.as_deref().unwrap_or(""), u32::MAX);
        let is_written = lists(&uncounted.succeeded)
            || lists(&uncounted.failed)
            || self.counted.contains(&facts.uid)
            || facts.index.is_some_and(|index| completed.contains(index));
        // What never counts: an index that the Job does not have, ends that nobody waits
        // for, a failure that the policy ignores, a Pod that is deleted because the Job
        // has succeeded, and one that runs and is removed by the Job itself.
        let is_given_up = facts.is_deleted && facts.phase != PodPhase::Succeeded;
        let counts_by_now =
            facts.is_finished() || (is_given_up && self.has(JobConditionType::FailureTarget));
        let never_counts = !counts_by_now
            || facts.index.is_some_and(|index| index >= self.least_completions)
            || self.is_finished()
            || self.job.metadata.deletion_timestamp.is_some()
            || (facts.phase != PodPhase::Succeeded && self.is_ignored(facts))
            || (is_given_up && self.has(JobConditionType::SuccessCriteriaMet));
        if is_written || never_counts {
            return Ok(());
        }
        Err(broken(
            "a finalizer goes only once the status accounts for its Pod",
            format!("{facts:?}"),
        ))
    }

    fn is_ignored(&self, facts: &PodFacts) -> bool {
        let job = self.view();
        job.failure_policy.as_ref().is_some_and(|policy| {
            !stint_ledger::pod_failure_policy::judge(policy, "ns", facts, true).counts()
        })
    }

    fn write(&mut self, version: u64, status: JobStatus) -> Result<Outcome, Broken> {
        let current =
            self.job.metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
        if current != Some(version) {
            return Ok(Outcome::Refused(Refusal::Conflict));
        }
        let mut new = self.job.clone();
        new.status = Some(status);
        let errors = validate_job_status_update(&new, &self.job, &FeatureGates::default());
        if let Some(error) = errors.first() {
            return Err(broken("every status obeys the API server's rules", error.to_string()));
        }
        self.check_counts(&new)?;
        self.job = new;
        self.job.metadata.resource_version = Some(self.bump().to_string());
        self.watch.push_back(Event::JobSeen(Box::new(self.view())));
        Ok(Outcome::Applied(Applied::Job(Box::new(self.view()))))
    }

    /// What leaves the uncounted list is counted, once, and its finalizer is gone.
    fn check_counts(&mut self, new: &Job) -> Checked {
        let is_indexed = self
            .job
            .spec
            .as_ref()
            .is_some_and(|spec| spec.completion_mode.as_deref() == Some("Indexed"));
        let old_status = self.status();
        let new_status = new.status.clone().unwrap_or_default();
        let lists = |pods: &Option<UncountedTerminatedPods>| {
            let pods = pods.clone().unwrap_or_default();
            (pods.succeeded.unwrap_or_default(), pods.failed.unwrap_or_default())
        };
        let old_lists = lists(&old_status.uncounted_terminated_pods);
        let new_lists = lists(&new_status.uncounted_terminated_pods);
        let sides = [
            (old_lists.0, new_lists.0, old_status.succeeded, new_status.succeeded, !is_indexed),
            (old_lists.1, new_lists.1, old_status.failed, new_status.failed, true),
        ];
        for (old, new, before, after, is_counter) in sides {
            let left: Vec<&String> = old.iter().filter(|uid| !new.contains(uid)).collect();
            let grown = after.unwrap_or(0) - before.unwrap_or(0);
            if is_counter && grown as usize != left.len() {
                return Err(broken(
                    "a counter grows by what leaves its list",
                    format!("{left:?} {grown}"),
                ));
            }
            for uid in left {
                let is_tracked = self.pods.values().any(|pod| pod.uid == *uid && pod.is_tracked);
                if is_tracked || !self.counted.insert(uid.clone()) {
                    return Err(broken(
                        "every Pod is counted once, without its finalizer",
                        uid.clone(),
                    ));
                }
            }
            if let Some(uid) = new.iter().find(|uid| self.counted.contains(*uid)) {
                return Err(broken("what is counted is never uncounted again", uid.clone()));
            }
        }
        Ok(())
    }

    /// Pods start, end, and are evicted.
    fn kubelet(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            if self.pods[&name].is_finished() || !self.random.chance(35) {
                continue;
            }
            let fates = self.scenario.fates;
            let fails = self.random.chance(fates.failure);
            let is_evicted = self.random.chance(fates.eviction);
            let exit_code = 1 + self.random.below(fates.exit_codes) as i32;
            let now = self.now;
            let facts = self.pods.get_mut(&name).expect("it was just there");
            if facts.is_deleted {
                // Ended by SIGTERM, unless it was about to end anyway.
                let is_done = facts.phase == PodPhase::Running && !fails && exit_code == 1;
                facts.phase = if is_done { PodPhase::Succeeded } else { PodPhase::Failed };
            } else if is_evicted {
                facts.is_deleted = true;
                let condition_type = "DisruptionTarget".to_owned();
                facts.conditions.push(PodCondition { condition_type, status: "True".to_owned() });
            } else if facts.phase == PodPhase::Pending {
                facts.phase = PodPhase::Running;
                facts.ready_since = Some(now);
            } else if fails {
                facts.phase = PodPhase::Failed;
                facts.exits = vec![ContainerExit { name: "main".to_owned(), exit_code }];
            } else {
                facts.phase = PodPhase::Succeeded;
            }
            facts.finished_at = now;
            self.publish(&name);
        }
    }

    /// Removes what is deleted, has ended, and is held by no finalizer.
    fn collect(&mut self) {
        let is_gone = |pod: &PodFacts| pod.is_deleted && pod.is_finished() && !pod.is_tracked;
        let gone: Vec<String> =
            self.pods.values().filter(|pod| is_gone(pod)).map(|pod| pod.name.clone()).collect();
        for name in gone {
            let facts = self.pods.remove(&name).expect("it was just there");
            self.bump();
            self.watch.push_back(Event::PodGone { uid: facts.uid });
        }
    }

    fn check_pods(&self) -> Checked {
        let mut indexes = BTreeSet::new();
        let keeps_place = self
            .job
            .spec
            .as_ref()
            .is_some_and(|spec| spec.pod_replacement_policy.as_deref() == Some("Failed"));
        let is_live = |pod: &&PodFacts| !pod.is_finished() && (keeps_place || !pod.is_deleted);
        for pod in self.pods.values().filter(is_live) {
            if pod.index.is_some_and(|index| !indexes.insert(index)) {
                return Err(broken("an index has one live Pod", format!("{pod:?}")));
            }
        }
        let active = self.pods.values().filter(|pod| pod.is_active()).count();
        if active > self.most_parallelism {
            return Err(broken("no more Pods are active than wanted", format!("{active}")));
        }
        Ok(())
    }

    fn check_end(&self) -> Checked {
        if self.job.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let status = self.status();
        let completed = status.completed_indexes.as_deref().unwrap_or("");
        let completed = IndexSet::parse_lenient(completed, u32::MAX).count();
        let spec = self.job.spec.as_ref().expect("a Job has a spec");
        let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
        if is_indexed && completed != status.succeeded.unwrap_or(0) as u64 {
            return Err(broken("succeeded equals the completed indexes", format!("{status:?}")));
        }
        let reached = status.succeeded.unwrap_or(0) >= spec.completions.unwrap_or(1);
        let by_policy = condition::of(self.job.status.as_ref())
            .iter()
            .any(|condition| condition.reason.as_deref() == Some("SuccessPolicy"));
        let was_scaled =
            self.least_completions != spec.completions.map_or(u32::MAX, |count| count as u32);
        if self.has(JobConditionType::Complete) && !reached && !by_policy && !was_scaled {
            return Err(broken(
                "Complete means that completions were reached",
                format!("{status:?}"),
            ));
        }
        Ok(())
    }
}

fn broken(invariant: &'static str, details: String) -> Broken {
    Broken { invariant, details }
}
