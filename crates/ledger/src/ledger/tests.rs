//! The ledger in a small world: an API that keeps versions, names and finalizers, Pods
//! that come to random ends, and faults from a seed. Every status that is written must
//! pass the API server's own rules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::jiff::SignedDuration;
use serde_json::{Value, json};
use stint_api::condition;
use stint_api::prepare::prepare_for_create;
use stint_api::validation::job_status::validate_job_status_update;

use super::*;
use crate::op::NewPod;

/// A Pod in the API.
#[derive(Clone, Debug)]
struct WorldPod {
    facts: PodFacts,
    /// Whether the kubelet has anything left to do with it.
    is_stuck: bool,
}

/// How Pods of the world end.
#[derive(Clone, Copy, Debug)]
struct Fates {
    failure_percent: u64,
    eviction_percent: u64,
    /// Indexes that always fail.
    doomed_below: u32,
    /// The exit code of those that fail.
    exit_code: i32,
}

/// What a user does, and after how many steps.
type Plan = Vec<(usize, fn(&mut Job))>;

/// What goes wrong, in percent of the ops.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost_answer: u64,
    refused: u64,
    crash: u64,
    slow_watch: u64,
}

struct World {
    seed: u64,
    now: Timestamp,
    version: u64,
    job: Job,
    pods: BTreeMap<String, WorldPod>,
    ledger: JobLedger,
    watch: VecDeque<Event>,
    fates: Fates,
    faults: Faults,
    created: u64,
    /// Every uid that ever bore the finalizer, and how it ended: `Some(true)` a success.
    ends: BTreeMap<String, (Option<u32>, Option<bool>)>,
    plan: Plan,
    /// The highest parallelism that the Job ever had.
    most_parallelism: usize,
    /// The lowest completions that it ever had.
    least_completions: u32,
    trace: Vec<String>,
}

impl World {
    fn new(spec: Value, seed: u64, fates: Fates, faults: Faults) -> Self {
        let mut job: Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": "job-uid", "resourceVersion": "1"},
            "spec": spec,
        }))
        .expect("the test's own Job is well typed");
        job.spec.get_or_insert_default().template.spec.get_or_insert_default().restart_policy =
            Some("Never".to_owned());
        prepare_for_create(&mut job, &FeatureGates::default());
        let mut world = Self {
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Timestamp::from_second(1_000_000).expect("a time"),
            version: 1,
            job,
            pods: BTreeMap::new(),
            ledger: JobLedger::new(Settings::default(), "j", "job-uid"),
            watch: VecDeque::new(),
            fates,
            faults,
            created: 0,
            ends: BTreeMap::new(),
            plan: Vec::new(),
            most_parallelism: 0,
            least_completions: u32::MAX,
            trace: Vec::new(),
        };
        world.note_scale();
        world.restart();
        world
    }

    fn note_scale(&mut self) {
        let spec = self.job.spec.as_ref().expect("a Job has a spec");
        let parallelism = spec.parallelism.unwrap_or(1) as usize;
        self.most_parallelism = self.most_parallelism.max(parallelism);
        let completions = spec.completions.map_or(u32::MAX, |count| count as u32);
        self.least_completions = self.least_completions.min(completions);
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % below
    }

    fn chance(&mut self, percent: u64) -> bool {
        percent > 0 && self.random(100) < percent
    }

    /// A new ledger from a list, as after a crash.
    fn restart(&mut self) {
        self.watch.clear();
        self.ledger = JobLedger::new(Settings::default(), "j", "job-uid");
        self.ledger.observe(Event::JobSeen(Box::new(self.view())));
        for pod in self.pods.values() {
            let facts = Box::new(pod.facts.clone());
            self.ledger.observe(Event::PodSeen { facts, is_selected: true });
        }
        self.ledger.observe(Event::PodsCurrent { version: self.version });
    }

    fn view(&self) -> JobView {
        JobView::parse(&self.job).expect("the world's Job is valid")
    }

    fn status(&self) -> JobStatus {
        self.job.status.clone().unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        condition::is_finished(condition::of(self.job.status.as_ref()))
    }

    fn bump(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn publish(&mut self, name: &str) {
        let version = self.bump();
        let pod = self.pods.get_mut(name).expect("a Pod that is published exists");
        pod.facts.version = version;
        let facts = Box::new(pod.facts.clone());
        self.watch.push_back(Event::PodSeen { facts, is_selected: true });
    }

    /// Runs until the Job has ended and nothing moves, or too long.
    fn run(&mut self) {
        for step in 0..20_000 {
            if step == 5_000 {
                self.faults = Faults::default();
            }
            self.user(step);
            self.deliver();
            if self.chance(self.faults.crash) {
                self.trace.push("crash".to_owned());
                self.restart();
            }
            let ops = self.ledger.next(self.now);
            let is_idle = ops.is_empty();
            for op in ops {
                self.execute(op);
                self.check_always();
            }
            self.kubelet();
            self.collect();
            if is_idle && self.watch.is_empty() {
                let is_over = self.is_finished() || self.job.metadata.deletion_timestamp.is_some();
                let is_plan_done = self.plan.iter().all(|(at, _)| *at < step);
                if is_over && is_plan_done && self.pods.values().all(|pod| !pod.facts.is_tracked) {
                    return;
                }
                self.advance();
            }
        }
        panic!("the Job does not end:\n{}\n{:#?}", self.tail(), self.ledger);
    }

    fn user(&mut self, step: usize) {
        let actions: Vec<fn(&mut Job)> =
            self.plan.iter().filter(|(at, _)| *at == step).map(|(_, action)| *action).collect();
        for action in actions {
            self.trace.push(format!("user at step {step}"));
            action(&mut self.job);
            self.note_scale();
            self.job.metadata.resource_version = Some(self.bump().to_string());
            self.watch.push_back(Event::JobSeen(Box::new(self.view())));
        }
    }

    fn tail(&self) -> String {
        let from = self.trace.len().saturating_sub(40);
        self.trace[from..].join("\n")
    }

    fn advance(&mut self) {
        let second = SignedDuration::from_secs(1);
        let next = self.now.checked_add(second).expect("time goes on");
        self.now = self.ledger.wake_at().map_or(next, |at| at.max(next));
    }

    fn deliver(&mut self) {
        while !self.watch.is_empty() && !self.chance(self.faults.slow_watch) {
            if let Some(event) = self.watch.pop_front() {
                self.ledger.observe(event);
            }
        }
    }

    fn execute(&mut self, op: Op) {
        self.trace.push(format!("{:?}", op.kind).chars().take(400).collect());
        if matches!(op.kind, OpKind::EmitEvent(_)) {
            return;
        }
        if self.chance(self.faults.refused) {
            self.trace.push("  refused".to_owned());
            self.ledger.settle(op.id, Outcome::Refused(Refusal::TryLater));
            return;
        }
        let is_lost = self.chance(self.faults.lost_answer);
        if is_lost && self.random(2) == 0 {
            self.trace.push("  lost before".to_owned());
            self.ledger.settle(op.id, Outcome::InDoubt);
            return;
        }
        let outcome = match op.kind {
            OpKind::CreatePod(pod) => self.create(pod),
            OpKind::DeletePod(pod) => self.delete(&pod),
            OpKind::RemoveFinalizer(pod) => self.untrack(&pod),
            OpKind::WriteStatus { version, status } => self.write(version, *status),
            OpKind::LookUpJob => Outcome::Applied(Applied::Job(Box::new(self.view()))),
            OpKind::LookUpPod(name) => match self.pods.get(&name) {
                Some(pod) => Outcome::Applied(Applied::Pod(Box::new(pod.facts.clone()))),
                None => Outcome::Applied(Applied::NoPod),
            },
            OpKind::AdoptPod(_) | OpKind::ReleasePod(_) | OpKind::EmitEvent(_) => {
                panic!("this world has no strangers")
            }
        };
        if is_lost {
            self.trace.push("  lost after".to_owned());
        }
        self.ledger.settle(op.id, if is_lost { Outcome::InDoubt } else { outcome });
    }

    fn create(&mut self, new: NewPod) -> Outcome {
        if self.pods.contains_key(&new.name) {
            return Outcome::Refused(Refusal::AlreadyExists);
        }
        assert!(!self.is_decided(), "a Pod is created after the end was decided\n{}", self.tail());
        self.created += 1;
        let uid = format!("uid-{}", self.created);
        let facts = PodFacts {
            name: new.name.clone(),
            uid: uid.clone(),
            version: 0,
            owner: Owner::Controller("job-uid".to_owned()),
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
        self.ends.insert(uid, (new.index, None));
        self.pods.insert(new.name.clone(), WorldPod { facts, is_stuck: false });
        self.publish(&new.name);
        Outcome::Applied(Applied::Pod(Box::new(self.pods[&new.name].facts.clone())))
    }

    fn is_decided(&self) -> bool {
        let status = self.status();
        let conditions = status.conditions.unwrap_or_default();
        condition::is_true(&conditions, stint_api::closed_set::JobConditionType::FailureTarget)
            || condition::is_true(
                &conditions,
                stint_api::closed_set::JobConditionType::SuccessCriteriaMet,
            )
    }

    fn find(&self, pod: &PodRef) -> bool {
        self.pods.get(&pod.name).is_some_and(|found| found.facts.uid == pod.uid)
    }

    fn is_changed(&self, pod: &PodRef) -> bool {
        pod.version.is_some_and(|version| self.pods[&pod.name].facts.version != version)
    }

    fn delete(&mut self, pod: &PodRef) -> Outcome {
        if !self.find(pod) {
            return Outcome::Refused(Refusal::NotFound);
        }
        let found = self.pods.get_mut(&pod.name).expect("it was just found");
        if !found.facts.is_deleted {
            found.facts.is_deleted = true;
            found.facts.finished_at = self.now;
            self.publish(&pod.name);
        }
        self.collect();
        match self.pods.get(&pod.name) {
            Some(found) => Outcome::Applied(Applied::Pod(Box::new(found.facts.clone()))),
            None => Outcome::Applied(Applied::NoPod),
        }
    }

    fn untrack(&mut self, pod: &PodRef) -> Outcome {
        if !self.find(pod) {
            return Outcome::Refused(Refusal::NotFound);
        }
        if self.is_changed(pod) {
            return Outcome::Refused(Refusal::Conflict);
        }
        self.check_accounted(pod);
        let found = self.pods.get_mut(&pod.name).expect("it was just found");
        if found.facts.is_tracked {
            found.facts.is_tracked = false;
            self.publish(&pod.name);
        }
        self.collect();
        match self.pods.get(&pod.name) {
            Some(found) => Outcome::Applied(Applied::Pod(Box::new(found.facts.clone()))),
            None => Outcome::Applied(Applied::NoPod),
        }
    }

    /// A finished Pod's finalizer goes only once the stored status accounts for it.
    fn check_accounted(&self, pod: &PodRef) {
        let facts = &self.pods[&pod.name].facts;
        let status = self.status();
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let lists = |uids: Option<Vec<String>>| uids.unwrap_or_default().contains(&pod.uid);
        let completed =
            IndexSet::parse_lenient(status.completed_indexes.as_deref().unwrap_or(""), u32::MAX);
        let is_accounted = match facts.phase {
            PodPhase::Succeeded => {
                lists(uncounted.succeeded)
                    || lists(uncounted.failed)
                    || facts.index.is_some_and(|index| completed.contains(index))
            }
            PodPhase::Failed => lists(uncounted.failed),
            PodPhase::Pending | PodPhase::Running => true,
        };
        // The ledger may not know yet that the Job was scaled up again.
        let never_counts = facts.index.is_some_and(|index| index >= self.least_completions)
            || self.is_finished()
            || self.job.metadata.deletion_timestamp.is_some()
            || (facts.is_deleted && facts.phase == PodPhase::Failed && self.is_decided());
        assert!(is_accounted || never_counts, "{pod:?} is not accounted for\n{}", self.tail());
    }

    fn write(&mut self, version: u64, status: JobStatus) -> Outcome {
        let current: u64 = self.job.metadata.resource_version.as_deref().unwrap().parse().unwrap();
        if version != current {
            return Outcome::Refused(Refusal::Conflict);
        }
        let mut new = self.job.clone();
        new.status = Some(status);
        let errors = validate_job_status_update(&new, &self.job, &FeatureGates::default());
        assert!(errors.is_empty(), "{errors:#?}\n{:#?}\n{}", new.status, self.tail());
        self.job = new;
        self.job.metadata.resource_version = Some(self.bump().to_string());
        self.watch.push_back(Event::JobSeen(Box::new(self.view())));
        Outcome::Applied(Applied::Job(Box::new(self.view())))
    }

    /// Pods start, end, and are evicted.
    fn kubelet(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            let facts = self.pods[&name].facts.clone();
            if facts.is_finished() || self.pods[&name].is_stuck || self.random(3) > 0 {
                continue;
            }
            let fails = facts.index.is_some_and(|index| index < self.fates.doomed_below)
                || self.chance(self.fates.failure_percent);
            let is_evicted = !facts.is_deleted && self.chance(self.fates.eviction_percent);
            let now = self.now;
            let pod = self.pods.get_mut(&name).expect("it was just there");
            match facts.phase {
                _ if is_evicted => pod.facts.is_deleted = true,
                _ if facts.is_deleted => pod.facts.phase = PodPhase::Failed,
                PodPhase::Pending => {
                    pod.facts.phase = PodPhase::Running;
                    pod.facts.ready_since = Some(now);
                }
                _ if fails => {
                    pod.facts.phase = PodPhase::Failed;
                    let name = "main".to_owned();
                    let exit_code = self.fates.exit_code;
                    pod.facts.exits = vec![crate::pod_facts::ContainerExit { name, exit_code }];
                }
                _ => pod.facts.phase = PodPhase::Succeeded,
            }
            pod.facts.finished_at = now;
            if pod.facts.is_finished() && pod.facts.is_tracked {
                let end = Some(pod.facts.phase == PodPhase::Succeeded);
                let uid = pod.facts.uid.clone();
                self.ends.get_mut(&uid).expect("it was created").1 = end;
            }
            self.publish(&name);
        }
    }

    /// Removes what is deleted, has ended, and is held by no finalizer.
    fn collect(&mut self) {
        let gone: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| {
                pod.facts.is_deleted && pod.facts.is_finished() && !pod.facts.is_tracked
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            let pod = self.pods.remove(&name).expect("it was just there");
            self.bump();
            self.watch.push_back(Event::PodGone { uid: pod.facts.uid });
        }
    }

    fn check_always(&self) {
        let mut indexes = BTreeSet::new();
        for pod in self.pods.values().filter(|pod| pod.facts.is_active()) {
            if let Some(index) = pod.facts.index {
                assert!(indexes.insert(index), "two Pods for index {index}\n{}", self.tail());
            }
        }
        let active = self.pods.values().filter(|pod| pod.facts.is_active()).count();
        assert!(active <= self.most_parallelism, "{active} Pods are active\n{}", self.tail());
    }
}

fn calm() -> Fates {
    Fates { failure_percent: 0, eviction_percent: 0, doomed_below: 0, exit_code: 1 }
}

fn rough() -> Faults {
    Faults { lost_answer: 10, refused: 5, crash: 3, slow_watch: 30 }
}

fn reason(world: &World) -> String {
    let status = world.status();
    let conditions = status.conditions.unwrap_or_default();
    let last = conditions.last().expect("a finished Job has a condition");
    format!("{} {}", last.type_, last.reason.clone().unwrap_or_default())
}

#[test]
fn an_indexed_job_completes() {
    let spec = json!({"completions": 20, "parallelism": 4, "completionMode": "Indexed"});
    let mut world = World::new(spec, 1, calm(), Faults::default());
    world.run();
    let status = world.status();
    assert_eq!(reason(&world), "Complete CompletionsReached");
    assert_eq!(status.completed_indexes.as_deref(), Some("0-19"));
    assert_eq!((status.succeeded, status.failed, world.created), (Some(20), None, 20));
}

#[test]
fn a_job_without_indexes_counts_every_pod_once_whatever_happens() {
    for seed in 0..300 {
        let spec = json!({"completions": 12, "parallelism": 3, "backoffLimit": 1000});
        let fates = Fates { failure_percent: 20, eviction_percent: 5, ..calm() };
        let mut world = World::new(spec, seed, fates, rough());
        world.run();
        let status = world.status();
        assert_eq!(reason(&world), "Complete CompletionsReached", "seed {seed}");
        let succeeded = world.ends.values().filter(|end| end.1 == Some(true)).count();
        assert_eq!(status.succeeded, Some(succeeded as i32), "seed {seed}\n{}", world.tail());
        let failed = world.created as usize - succeeded;
        assert_eq!(status.failed.unwrap_or(0), failed as i32, "seed {seed}\n{}", world.tail());
    }
}

#[test]
fn an_indexed_job_is_exact_whatever_happens() {
    for seed in 0..300 {
        let spec = json!({"completions": 9, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 1000});
        let fates = Fates { failure_percent: 20, eviction_percent: 5, ..calm() };
        let mut world = World::new(spec, seed, fates, rough());
        world.run();
        let status = world.status();
        assert_eq!(reason(&world), "Complete CompletionsReached", "seed {seed}");
        assert_eq!(status.completed_indexes.as_deref(), Some("0-8"), "seed {seed}");
    }
}

#[test]
fn indexes_that_always_fail_use_up_their_retries_and_no_more() {
    for seed in 0..200 {
        let spec = json!({"completions": 6, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 2});
        let fates = Fates { doomed_below: 2, ..calm() };
        let mut world = World::new(spec, seed, fates, rough());
        world.run();
        let status = world.status();
        assert_eq!(reason(&world), "Failed FailedIndexes", "seed {seed}");
        assert_eq!(status.failed_indexes.as_deref(), Some("0,1"), "seed {seed}");
        assert_eq!(status.completed_indexes.as_deref(), Some("2-5"), "seed {seed}");
        assert_eq!((status.failed, world.created), (Some(6), 10), "seed {seed}\n{}", world.tail());
    }
}

/// Runs a Job under many seeds and hands out each world at its end.
fn each(spec: &Value, fates: Fates, plan: &Plan, check: impl Fn(&World, u64)) {
    for seed in 0..150 {
        let mut world = World::new(spec.clone(), seed, fates, rough());
        world.plan.clone_from(plan);
        world.run();
        check(&world, seed);
    }
}

#[test]
fn a_success_policy_ends_the_job_and_its_lingering_pods_do_not_count() {
    let spec = json!({"completions": 6, "parallelism": 6, "completionMode": "Indexed",
                      "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    each(&spec, calm(), &Vec::new(), |world, seed| {
        assert!(reason(world).starts_with("Complete "), "seed {seed}");
        assert_eq!(world.status().failed, None, "seed {seed}\n{}", world.tail());
    });
}

#[test]
fn too_many_failures_fail_the_job_and_every_pod_is_counted() {
    let spec = json!({"completions": 5, "parallelism": 2, "backoffLimit": 3});
    let fates = Fates { failure_percent: 100, ..calm() };
    each(&spec, fates, &Vec::new(), |world, seed| {
        assert_eq!(reason(world), "Failed BackoffLimitExceeded", "seed {seed}");
        let failed = world.status().failed.unwrap_or(0);
        assert_eq!(failed as u64, world.created, "seed {seed}\n{}", world.tail());
        assert!((4..=5).contains(&failed), "seed {seed}: {failed}");
    });
}

#[test]
fn a_fail_job_rule_fails_the_job_at_once() {
    let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let spec = json!({"completions": 5, "parallelism": 2, "podFailurePolicy": {"rules": rules}});
    let fates = Fates { failure_percent: 100, exit_code: 42, ..calm() };
    each(&spec, fates, &Vec::new(), |world, seed| {
        assert_eq!(reason(world), "Failed PodFailurePolicy", "seed {seed}");
        assert!(world.created <= 2, "seed {seed}: {}", world.created);
    });
}

#[test]
fn a_fail_index_rule_saves_the_retries() {
    let rules = json!([{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed",
                      "backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": rules}});
    let fates = Fates { doomed_below: 1, exit_code: 42, ..calm() };
    each(&spec, fates, &Vec::new(), |world, seed| {
        assert_eq!(reason(world), "Failed FailedIndexes", "seed {seed}");
        assert_eq!(world.status().failed_indexes.as_deref(), Some("0"), "seed {seed}");
        assert_eq!((world.created, world.status().failed), (4, Some(1)), "seed {seed}");
    });
}

#[test]
fn a_suspended_job_has_no_pods_and_goes_on_when_it_is_resumed() {
    let spec = json!({"completions": 10, "parallelism": 3, "completionMode": "Indexed"});
    let plan: Plan = vec![
        (3, |job| job.spec.as_mut().unwrap().suspend = Some(true)),
        (40, |job| {
            let status = job.status.clone().unwrap_or_default();
            assert_eq!(status.active, None, "a suspended Job has Pods: {status:?}");
            job.spec.as_mut().unwrap().suspend = Some(false);
        }),
    ];
    each(&spec, calm(), &plan, |world, seed| {
        assert_eq!(reason(world), "Complete CompletionsReached", "seed {seed}");
        assert_eq!(world.status().failed, None, "seed {seed}: a suspension is no failure");
    });
}

#[test]
fn a_deleted_job_strands_no_finalizer() {
    let spec = json!({"completions": 10, "parallelism": 3, "completionMode": "Indexed"});
    let plan: Plan = vec![(4, |job| {
        let at = Timestamp::from_second(1_000_000).unwrap();
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at);
        job.metadata.deletion_timestamp = Some(time);
    })];
    each(&spec, calm(), &plan, |world, seed| {
        assert!(world.pods.values().all(|pod| !pod.facts.is_tracked), "seed {seed}");
        assert!(!world.is_finished(), "seed {seed}");
    });
}

#[test]
fn a_job_that_takes_too_long_fails() {
    let spec = json!({"completions": 5, "parallelism": 1, "activeDeadlineSeconds": 15, "backoffLimit": 100});
    let fates = Fates { failure_percent: 100, ..calm() };
    each(&spec, fates, &Vec::new(), |world, seed| {
        assert_eq!(reason(world), "Failed DeadlineExceeded", "seed {seed}");
    });
}

#[test]
fn an_elastic_job_is_scaled_down_and_up() {
    let spec = json!({"completions": 8, "parallelism": 8, "completionMode": "Indexed"});
    let plan: Plan = vec![
        (2, |job| {
            let spec = job.spec.as_mut().unwrap();
            (spec.completions, spec.parallelism) = (Some(3), Some(3));
        }),
        (6, |job| {
            let spec = job.spec.as_mut().unwrap();
            // Once the end is written down, scaling up does not undo it.
            if condition::of(job.status.as_ref()).is_empty() {
                (spec.completions, spec.parallelism) = (Some(5), Some(5));
            }
        }),
    ];
    each(&spec, calm(), &plan, |world, seed| {
        assert_eq!(reason(world), "Complete CompletionsReached", "seed {seed}");
        let completions = world.job.spec.as_ref().unwrap().completions.unwrap();
        assert_eq!(world.status().succeeded, Some(completions), "seed {seed}\n{}", world.tail());
    });
}
