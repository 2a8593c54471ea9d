//! What a Job costs in its ledger alone: every index from start to Complete, with Pods
//! that end as soon as they exist and an API that answers at once.
//!
//! `cargo bench -p stint-ledger` prints a line for each size, and with `-- INDEXES
//! PARALLELISM` for that one alone. Times are of the processor, where the kernel tells them:
//! a busy machine takes longer, and the ledger does not. Nothing here is asserted: timings
//! belong to docs/benchmarks.md.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use stint_api::feature_gates::FeatureGates;
use stint_api::prepare::prepare_for_create;
use stint_api::view::JobView;
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::op::{Applied, NewPod, Op, OpKind, Outcome};
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

fn main() -> ExitCode {
    // Cargo hands every benchmark the flag `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let sizes: Option<Vec<u32>> = args.iter().map(|arg| size(arg)).collect();
    let Some(sizes) = sizes.filter(|sizes| matches!(sizes.len(), 0 | 2)) else {
        eprintln!("usage: cargo bench -p stint-ledger -- [INDEXES PARALLELISM]");
        eprintln!("Both from 1 to {MAX_SIZE}; without them the sizes of docs/benchmarks.md.");
        return ExitCode::from(2);
    };
    println!(
        "{:>10} {:>11} {:>12} {:>12} {:>8} {:>14}",
        "indexes", "parallelism", "total", "per Pod", "writes", "peak so far"
    );
    match sizes[..] {
        [completions, parallelism] => measure(completions, parallelism),
        _ => {
            for (completions, parallelism) in SIZES {
                measure(completions, parallelism);
            }
            measure_takeover(100_000);
        }
    }
    ExitCode::SUCCESS
}

/// A count that a Job can have: the API's are below 2^31, and a Job without Pods costs nothing
/// that could be measured.
fn size(arg: &str) -> Option<u32> {
    arg.parse().ok().filter(|size| (1..=MAX_SIZE).contains(size))
}

const MAX_SIZE: u32 = i32::MAX as u32;

/// Indexes and parallelism, in the order of the memory they take.
const SIZES: [(u32, u32); 6] = [
    (1_000, 100),
    (10_000, 100),
    (100_000, 100),
    (1_000_000, 100),
    (10_000, 10_000),
    (100_000, 100_000),
];

/// A Job that somebody else has begun, with all of its Pods running: from the list to the
/// first write.
fn measure_takeover(completions: u32) {
    let mut world = World::new(completions, completions);
    world.version = 2;
    let start_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now));
    world.job.status = Some(JobStatus { start_time, ..JobStatus::default() });
    world.job.metadata.resource_version = Some("2".to_owned());
    let pods: Vec<PodFacts> = (0..completions)
        .map(|index| {
            world.version += 1;
            let name = format!("j-{index}-aaaaa");
            let index = Some(index);
            world.pod(NewPod {
                name,
                index,
                failure_count: None,
                ignored_failure_count: 0,
                interruption_count: 0,
            })
        })
        .collect();
    let version = world.version;
    let job = || Box::new(JobView::parse(&world.job).expect("a Job"));
    let start = Clock::now();
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
    let writes = ledger.next(world.now).len();
    let total = start.elapsed();
    let per_pod = total / completions;
    println!(
        "{completions:>10} {:>11} {total:>12.2?} {per_pod:>12.2?} {writes:>8} {:>14}",
        "taken over",
        peak_memory()
    );
}

/// Small Jobs are run again and again until there were so many Pods: the kernel tells the time
/// of the processor to some milliseconds.
const PODS: u32 = 100_000;

fn measure(completions: u32, parallelism: u32) {
    let rounds = (PODS / completions).max(1);
    let mut writes = 0;
    let start = Clock::now();
    for _ in 0..rounds {
        let mut world = World::new(completions, parallelism);
        world.run();
        writes = world.writes;
    }
    let total = start.elapsed() / rounds;
    let per_pod = total / completions;
    println!(
        "{completions:>10} {parallelism:>11} {total:>12.2?} {per_pod:>12.2?} {writes:>8} {:>14}",
        peak_memory()
    );
}

struct World {
    job: Job,
    ledger: JobLedger,
    now: Timestamp,
    version: u64,
    writes: u64,
}

impl World {
    fn new(completions: u32, parallelism: u32) -> Self {
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

    fn run(&mut self) {
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

/// How long this process has run: the wall clock, and the time of the processor.
struct Clock {
    wall: Instant,
    processor: Option<Duration>,
}

impl Clock {
    fn now() -> Self {
        Self { wall: Instant::now(), processor: processor_time() }
    }

    fn elapsed(&self) -> Duration {
        let processor = processor_time().zip(self.processor);
        processor.map_or_else(|| self.wall.elapsed(), |(now, start)| now.saturating_sub(start))
    }
}

/// What the only thread of this process has had of the processor, as the kernel tells it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos)).filter(|time| !time.is_zero())
}

/// The most memory this process ever had, as the kernel tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
