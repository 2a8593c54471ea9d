//! Everything that can happen next in a world, one readable line each.
//!
//! All chance and all timing is a [`Choice`]: a world is its scenario and the choices that
//! were taken. A choice names what it is about by names that survive the loss of others, so
//! that a shortened list of choices still means something.

use std::fmt;

use stint_api::feature_gates::Gate;
use stint_ledger::op::OpKind;

use crate::api::Propagation;

/// Which controller.
pub type ControllerId = usize;

/// Something that can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The Job watch delivers its next change.
    DeliverJob(ControllerId),
    /// The Pod watch delivers up to so many changes, or says how far it has come.
    DeliverPods(ControllerId, u32),
    /// The Pod watch delivers its last change once more.
    RepeatPod(ControllerId),
    /// The watches break, and the objects are listed anew, as they were so many versions ago.
    Relist(ControllerId, u32, u32),
    /// The controller dies and starts again from lists that are so many versions old.
    Crash(ControllerId, u32, u32),
    /// The controller is restarted with a feature gate turned off or on.
    SetGate(ControllerId, Gate, bool),
    /// The controller starts or stops to lead.
    Lead(ControllerId, bool),
    /// The controller's clock jumps by so many seconds.
    ClockJump(ControllerId, i32),
    /// A request is carried out and answered.
    Do(ControllerId, OpKey),
    /// A request is carried out; its answer is on the way.
    Apply(ControllerId, OpKey),
    /// An answer arrives.
    Answer(ControllerId, OpKey),
    /// A request is refused and answered.
    Refuse(ControllerId, OpKey, Weather),
    /// A request is carried out if it was not, and its answer is lost.
    LoseAnswer(ControllerId, OpKey),
    /// No answer comes in time; the request may still be carried out.
    TimeOut(ControllerId, OpKey),
    /// A Pod that has not been asked for yet, and that its ledger no longer wants, is not.
    Recall(ControllerId, OpKey),
    /// A request that nobody waits for any more is carried out.
    ApplyLate(OpKey),
    /// A request that nobody waits for any more is lost.
    DropLate(OpKey),
    /// Something happens to a Pod.
    Pod(String, PodAct),
    /// The garbage collector deals with a Pod whose owner is gone or going.
    CollectPod(String),
    /// The garbage collector lets a Job go whose Pods have been dealt with.
    CollectJob,
    /// A user does something.
    User(UserAct),
    /// A refusal that lasts begins, or ends.
    Storm(Storm, bool),
    /// So many milliseconds pass, and controllers that asked to be woken are.
    Wait(u32),
}

/// Names a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpKey {
    /// The Job it is for.
    pub job_uid: String,
    /// What it does.
    pub verb: Verb,
    /// The name of the Pod it is about.
    pub pod: String,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// CreatePod.
    Create,
    /// DeletePod.
    Delete,
    /// RemoveFinalizer.
    RemoveFinalizer,
    /// AdoptPod.
    Adopt,
    /// ReleasePod.
    Release,
    /// WriteStatus.
    WriteStatus,
    /// LookUpJob.
    LookUpJob,
    /// LookUpPod.
    LookUpPod,
    /// LookUpPods.
    LookUpPods,
}

impl OpKey {
    /// The key of an op; none for one that needs no outcome.
    pub fn of(job_uid: &str, kind: &OpKind) -> Option<Self> {
        let (verb, pod) = match kind {
            OpKind::CreatePod(pod) => (Verb::Create, pod.name.as_str()),
            OpKind::DeletePod(pod) => (Verb::Delete, pod.name.as_str()),
            OpKind::RemoveFinalizer(pod) => (Verb::RemoveFinalizer, pod.name.as_str()),
            OpKind::AdoptPod(pod) => (Verb::Adopt, pod.name.as_str()),
            OpKind::ReleasePod(pod) => (Verb::Release, pod.name.as_str()),
            OpKind::WriteStatus { .. } => (Verb::WriteStatus, ""),
            OpKind::LookUpJob => (Verb::LookUpJob, ""),
            OpKind::LookUpPod(name) => (Verb::LookUpPod, name.as_str()),
            OpKind::LookUpPods => (Verb::LookUpPods, ""),
            OpKind::EmitEvent(_) | OpKind::Record(_) => return None,
        };
        Some(Self { job_uid: job_uid.to_owned(), verb, pod: pod.to_owned() })
    }
}

/// Why the API refuses for no fault of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weather {
    /// 409: as if somebody had just written the object.
    Conflict,
    /// 422 or 403: an admission webhook does not like it.
    Rejected,
    /// 429.
    TooManyRequests,
    /// 5xx.
    ServerTrouble,
    /// 403 by a quota.
    Quota,
}

impl Weather {
    /// Every kind.
    pub const ALL: [Weather; 5] = [
        Weather::Conflict,
        Weather::Rejected,
        Weather::TooManyRequests,
        Weather::ServerTrouble,
        Weather::Quota,
    ];
}

/// What the API refuses for as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storm {
    /// A webhook denies every Pod.
    PodsDenied,
    /// A quota is full.
    QuotaFull,
    /// Every status is refused, with 422 or 403.
    StatusRefused,
}

impl Storm {
    /// Every kind.
    pub const ALL: [Storm; 3] = [Storm::PodsDenied, Storm::QuotaFull, Storm::StatusRefused];

    /// How a request is refused while this lasts; not at all, if it is about something else.
    pub fn refuses(self, kind: &OpKind) -> Option<Weather> {
        match (self, kind) {
            (Storm::PodsDenied, OpKind::CreatePod(_)) => Some(Weather::Rejected),
            (Storm::QuotaFull, OpKind::CreatePod(_)) => Some(Weather::Quota),
            (Storm::StatusRefused, OpKind::WriteStatus { .. }) => Some(Weather::Rejected),
            (Storm::PodsDenied | Storm::QuotaFull | Storm::StatusRefused, _other) => None,
        }
    }
}

/// What happens to a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodAct {
    /// It gets a node.
    Schedule,
    /// It runs.
    Start,
    /// It becomes ready.
    Ready,
    /// A container is restarted.
    Restart,
    /// It succeeds.
    Succeed,
    /// It fails with this exit code.
    Fail(u8),
    /// It is evicted: a condition, and its deletion.
    Evict,
    /// Being deleted, it ends, well or badly.
    Terminate(bool),
    /// Being deleted without a node, it is marked as failed by the Pod collector.
    MarkFailed,
    /// Having failed, it turns out to have succeeded.
    Recant,
    /// Having succeeded, it turns out to have failed.
    Relapse,
    /// It gets a node, runs, and ends with this exit code, all in one step.
    EndAtOnce(u8),
}

/// What a user does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserAct {
    /// Holds the Job back.
    Suspend,
    /// Lets it go on.
    Resume,
    /// Changes parallelism.
    Parallelism(i32),
    /// Scales an elastic Job.
    Scale(i32),
    /// Changes activeDeadlineSeconds.
    Deadline(i64),
    /// Changes backoffLimit.
    BackoffLimit(i32),
    /// Changes maxFailedIndexes.
    MaxFailedIndexes(i32),
    /// Deletes a Pod.
    DeletePod(String),
    /// Deletes the Job.
    DeleteJob(Propagation),
    /// Creates the Job anew under its old name.
    Recreate,
    /// Takes the finalizer off a Pod.
    StripFinalizer(String),
    /// Takes the index off a Pod.
    StripIndex(String),
    /// Takes the failure counts off a Pod.
    StripFailureCounts(String),
    /// Takes the labels off a Pod that the selector matches.
    StripLabels(String),
    /// Puts the labels of the Job onto a Pod.
    PutLabels(String),
    /// Takes the owner reference off a Pod.
    StripOwner(String),
    /// A Job of another controller adopts a Pod that is nobody's.
    GiveAway(String),
    /// Creates a Pod of their own that the selector matches.
    MakeOrphan,
    /// Creates a Pod of their own under the name of an attempt to come.
    Squat(u32, u32),
    /// Adds nonsense to the completed indexes.
    CorruptIndexes,
    /// Adds nonsense to the failed indexes.
    CorruptFailedIndexes,
    /// Adds a uid to the uncounted Pods that no Pod has.
    ForgeUncounted,
}

impl fmt::Display for OpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.verb)?;
        if !self.pod.is_empty() {
            write!(f, " {}", self.pod)?;
        }
        write!(f, " for {}", self.job_uid)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::DeliverJob(c) => write!(f, "c{c}: the Job watch delivers"),
            Choice::DeliverPods(c, u32::MAX) => write!(f, "c{c}: the Pod watch delivers all"),
            Choice::DeliverPods(c, count) => write!(f, "c{c}: the Pod watch delivers {count}"),
            Choice::RepeatPod(c) => write!(f, "c{c}: the Pod watch repeats itself"),
            Choice::Relist(c, jobs, pods) => {
                write!(f, "c{c}: lists again, Jobs {jobs} and Pods {pods} versions old")
            }
            Choice::Crash(c, jobs, pods) => {
                write!(f, "c{c}: crashes; lists Jobs {jobs} and Pods {pods} versions old")
            }
            Choice::SetGate(c, gate, is_on) => {
                write!(f, "c{c}: restarts with {}={is_on}", gate.name())
            }
            Choice::Lead(c, true) => write!(f, "c{c}: starts to lead"),
            Choice::Lead(c, false) => write!(f, "c{c}: stops to lead"),
            Choice::ClockJump(c, seconds) => write!(f, "c{c}: its clock jumps by {seconds} s"),
            Choice::Do(c, op) => write!(f, "c{c}: {op}: done and answered"),
            Choice::Apply(c, op) => write!(f, "c{c}: {op}: done"),
            Choice::Answer(c, op) => write!(f, "c{c}: {op}: answered"),
            Choice::Refuse(c, op, why) => write!(f, "c{c}: {op}: refused: {why:?}"),
            Choice::LoseAnswer(c, op) => write!(f, "c{c}: {op}: done, and the answer is lost"),
            Choice::TimeOut(c, op) => write!(f, "c{c}: {op}: no answer in time"),
            Choice::Recall(c, op) => write!(f, "c{c}: {op}: called back if it is not wanted"),
            Choice::ApplyLate(op) => write!(f, "a request of the past: {op}: done"),
            Choice::DropLate(op) => write!(f, "a request of the past: {op}: lost"),
            Choice::Pod(name, act) => write!(f, "{name}: {act:?}"),
            Choice::CollectPod(name) => write!(f, "collector: {name}"),
            Choice::CollectJob => write!(f, "collector: the Job"),
            Choice::User(act) => write!(f, "user: {act:?}"),
            Choice::Storm(storm, true) => write!(f, "the API: {storm:?} begins"),
            Choice::Storm(storm, false) => write!(f, "the API: {storm:?} ends"),
            Choice::Wait(millis) => write!(f, "{millis} ms pass"),
        }
    }
}
