//! A Job and an API around its ledger, in which everything is done the moment it is asked for, and
//! Pods end as soon as they exist.

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use stint_api::feature_gates::FeatureGates;
use stint_api::prepare::prepare_for_create;
use stint_api::view::JobView;
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::op::{Applied, NewPod, Op, OpKind, Outcome};
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

pub(crate) struct World {
    job: Job,
    ledger: JobLedger,
    now: Timestamp,
    version: u64,
    pub(crate) writes: u64,
}

impl World {
    pub(crate) fn new(completions: u32, parallelism: u32) -> Self {
        let mut job: Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
            "spec": {
                "completions": completions, "parallelism": parallelism, "completionMode": "Indexed",
                "template": {"spec": {"restartPolicy": "Never", "containers": []}},
            },
        }))
        .expect("a Job");
        prepare_for_create(&mut job, &FeatureGates::default());
        let mut ledger = JobLedger::new(Settings::default(), "j", "u");
        ledger.observe(Event::JobSeen(Box::new(JobView::parse(&job).expect("a Job"))));
        ledger.observe(Event::PodsCurrent { version: 1 });
        let now = Timestamp::from_second(1_000_000).expect("a time");
        Self { job, ledger, now, version: 1, writes: 0 }
    }

    pub(crate) fn run(&mut self) {
        while self.job.status.as_ref().is_none_or(|status| status.completion_time.is_none()) {
            let ops = self.ledger.next(self.now);
            assert!(!ops.is_empty(), "the Job is stuck");
            for op in ops {
                self.answer(op);
            }
            self.ledger.observe(Event::PodsCurrent { version: self.version });
        }
    }

    fn answer(&mut self, op: Op) {
        self.version += 1;
        let outcome = match op.kind {
            OpKind::CreatePod(new) => {
                let mut pod = self.pod(new);
                self.ledger.settle(op.id, Outcome::Applied(Applied::Pod(Box::new(pod.clone()))));
                self.version += 1;
                pod.version = self.version;
                pod.phase = PodPhase::Succeeded;
                self.ledger.observe(Event::PodSeen { facts: Box::new(pod), is_selected: true });
                return;
            }
            OpKind::RemoveFinalizer(pod) => {
                self.ledger.observe(Event::PodGone { uid: pod.uid, version: self.version });
                Outcome::Applied(Applied::NoPod)
            }
            OpKind::WriteStatus { status, .. } => {
                self.writes += 1;
                self.job.status = Some(*status);
                self.job.metadata.resource_version = Some(self.version.to_string());
                let job = JobView::parse(&self.job).expect("a Job");
                Outcome::Applied(Applied::Job(Box::new(job)))
            }
            OpKind::EmitEvent(_) | OpKind::Record(_) => return,
            other => panic!("nothing goes wrong here: {other:?}"),
        };
        self.ledger.settle(op.id, outcome);
    }

    fn pod(&self, new: NewPod) -> PodFacts {
        PodFacts {
            uid: format!("00000000-0000-0000-0000-{:012}", self.version),
            name: new.name,
            version: self.version,
            owner: Owner::Controller("u".to_owned()),
            is_tracked: true,
            phase: PodPhase::Running,
            created: self.now,
            is_deleted: false,
            index: new.index,
            failure_count: 0,
            ignored_failure_count: 0,
            interruption_count: 0,
            is_scheduled: true,
            ready_since: None,
            restart_count: 0,
            finished_at: self.now,
            exits: Vec::new(),
            conditions: Vec::new(),
        }
    }
}

/// A Job that somebody else has begun, with all of its Pods running.
pub(crate) struct Begun {
    world: World,
    pods: Vec<PodFacts>,
}

impl Begun {
    pub(crate) fn new(completions: u32) -> Self {
        let mut world = World::new(completions, completions);
        world.version = 2;
        let start_time = Some(Time(world.now));
        world.job.status = Some(JobStatus { start_time, ..JobStatus::default() });
        world.job.metadata.resource_version = Some("2".to_owned());
        let mut pods = Vec::new();
        for index in 0..completions {
            world.version += 1;
            let name = format!("j-{index}-aaaaa");
            pods.push(world.pod(NewPod {
                name,
                index: Some(index),
                failure_count: None,
                ignored_failure_count: 0,
                interruption_count: 0,
            }));
        }
        Begun { world, pods }
    }

    /// From the list, and the look past it, to the first write: how many writes that are.
    pub(crate) fn take_over(&self) -> usize {
        let Begun { world, pods } = self;
        let version = world.version;
        let job = || Box::new(JobView::parse(&world.job).expect("a Job"));
        let mut ledger = JobLedger::new(Settings::default(), "j", "u");
        ledger.observe(Event::JobSeen(job()));
        for facts in pods.iter().cloned() {
            ledger.observe(Event::PodSeen { facts: Box::new(facts), is_selected: true });
        }
        ledger.observe(Event::PodsCurrent { version });
        for op in ledger.next(world.now) {
            let pods = || pods.iter().map(|facts| (facts.clone(), true)).collect();
            let applied = match op.kind {
                OpKind::LookUpJob => Applied::Job(job()),
                OpKind::LookUpPods => Applied::Pods { pods: pods(), version },
                other => panic!("nothing else comes first: {other:?}"),
            };
            ledger.settle(op.id, Outcome::Applied(applied));
        }
        ledger.next(world.now).len()
    }
}
