//! What must always hold, by name, and why.
//!
//! The checks are in the modules below, by the moment at which they are made: `pods` when a
//! request about Pods is sent or carried out, `inheritance` and, where two lead, `leaders` when a Pod is created, `status`
//! when a status is written, `pace` when a ledger is asked, `rest` when everything has come to
//! rest. None of them asks a ledger.

pub mod inheritance;
pub mod leaders;
pub mod pace;
pub mod pods;
pub mod rest;
pub mod status;

use std::fmt;

/// An invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// No Pod is in two counters, or in one twice.
    CountedOnce,
    /// A counter and its list change together.
    CounterGrowsByItsList,
    /// A uid leaves its list only without its finalizer.
    CountedWithoutFinalizer,
    /// A uid is listed only for a Pod that has ended.
    ListedAfterItsEnd,
    /// `succeeded` is the number of completed indexes.
    SucceededIsCompleted,
    /// Counters and index sets never shrink.
    NeverBack,
    /// Every status obeys the API server's rules.
    StatusRules,
    /// A finalizer goes only once the status accounts for its Pod.
    FinalizerAccounted,
    /// At rest no Pod bears a finalizer that nobody will remove.
    NoStrandedFinalizer,
    /// An index fails only after its limit of failures.
    IndexFailures,
    /// A new Pod of an index has one failure more than the Pod before it.
    InheritsFailures,
    /// An index has one live Pod when only failed Pods are replaced.
    OneLivePodPerIndex,
    /// No more Pods are active than wanted.
    NotMoreThanWanted,
    /// Two leaders make no more Pods than one of them would.
    LeadersAgree,
    /// No Pod is asked for after the end is decided.
    NoPodAfterTheEnd,
    /// A Job is not finished while it has Pods.
    NotFinishedWhileBusy,
    /// At rest a suspended Job has no active Pods.
    SuspendedIsIdle,
    /// Conditions follow the diagram of KEP-3998.
    ConditionOrder,
    /// An end has its reason in the status it is written with.
    EndIsJustified,
    /// No end is written while one of higher precedence is due.
    EndPrecedence,
    /// A Pod is not replaced before its backoff is over.
    BackoffRespected,
    /// A controller keeps its hands off the Jobs of others.
    HandsOff,
    /// A Job that cannot be read is left alone.
    UnreadableLeftAlone,
    /// What has failed is not asked for again at the same moment.
    NoHotLoop,
    /// A ledger asks to be woken later than now.
    WakesLater,
    /// Once faults stop, the Job reaches its end.
    Ends,
    /// An end stays.
    EndStays,
    /// The final status is what the history of the Pods says.
    MatchesReference,
    /// The ledger does not panic.
    NoPanic,
    /// Breaks on purpose, where the shrinker is tested.
    Artificial,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Invariant; 30] = [
        Invariant::CountedOnce,
        Invariant::CounterGrowsByItsList,
        Invariant::CountedWithoutFinalizer,
        Invariant::ListedAfterItsEnd,
        Invariant::SucceededIsCompleted,
        Invariant::NeverBack,
        Invariant::StatusRules,
        Invariant::FinalizerAccounted,
        Invariant::NoStrandedFinalizer,
        Invariant::IndexFailures,
        Invariant::InheritsFailures,
        Invariant::OneLivePodPerIndex,
        Invariant::NotMoreThanWanted,
        Invariant::LeadersAgree,
        Invariant::NoPodAfterTheEnd,
        Invariant::NotFinishedWhileBusy,
        Invariant::SuspendedIsIdle,
        Invariant::ConditionOrder,
        Invariant::EndIsJustified,
        Invariant::EndPrecedence,
        Invariant::BackoffRespected,
        Invariant::HandsOff,
        Invariant::UnreadableLeftAlone,
        Invariant::NoHotLoop,
        Invariant::WakesLater,
        Invariant::Ends,
        Invariant::EndStays,
        Invariant::MatchesReference,
        Invariant::NoPanic,
        Invariant::Artificial,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::CountedOnce => "counted-once",
            Invariant::CounterGrowsByItsList => "counter-grows-by-its-list",
            Invariant::CountedWithoutFinalizer => "counted-without-finalizer",
            Invariant::ListedAfterItsEnd => "listed-after-its-end",
            Invariant::SucceededIsCompleted => "succeeded-is-completed",
            Invariant::NeverBack => "never-back",
            Invariant::StatusRules => "status-rules",
            Invariant::FinalizerAccounted => "finalizer-accounted",
            Invariant::NoStrandedFinalizer => "no-stranded-finalizer",
            Invariant::IndexFailures => "index-failures",
            Invariant::InheritsFailures => "inherits-failures",
            Invariant::OneLivePodPerIndex => "one-live-pod-per-index",
            Invariant::NotMoreThanWanted => "not-more-than-wanted",
            Invariant::LeadersAgree => "leaders-agree",
            Invariant::NoPodAfterTheEnd => "no-pod-after-the-end",
            Invariant::NotFinishedWhileBusy => "not-finished-while-busy",
            Invariant::SuspendedIsIdle => "suspended-is-idle",
            Invariant::ConditionOrder => "condition-order",
            Invariant::EndIsJustified => "end-is-justified",
            Invariant::EndPrecedence => "end-precedence",
            Invariant::BackoffRespected => "backoff-respected",
            Invariant::HandsOff => "hands-off",
            Invariant::UnreadableLeftAlone => "unreadable-left-alone",
            Invariant::NoHotLoop => "no-hot-loop",
            Invariant::WakesLater => "wakes-later",
            Invariant::Ends => "ends",
            Invariant::EndStays => "end-stays",
            Invariant::MatchesReference => "matches-reference",
            Invariant::NoPanic => "no-panic",
            Invariant::Artificial => "artificial",
        }
    }

    /// What it protects, and what excuses it.
    pub fn why(self) -> &'static str {
        match self {
            Invariant::CountedOnce => {
                "a retried backoff limit or success would otherwise be wrong; excused for a Pod that a \
                 user made untraceable while it bore the finalizer: without owner and label, or \
                 given to a stranger"
            }
            Invariant::CounterGrowsByItsList => {
                "the list is the only way into a counter; excused by a forged list only"
            }
            Invariant::CountedWithoutFinalizer => {
                "a Pod with its finalizer would be counted again after a crash; excused as counted-once"
            }
            Invariant::ListedAfterItsEnd => {
                "a Pod that runs may still succeed; excused by a status that a user forged"
            }
            Invariant::SucceededIsCompleted => "clients read either; nothing excuses it",
            Invariant::NeverBack => {
                "clients take counts for facts; excused by scaling an elastic Job down, and \
                 where a user wrote nonsense into the status"
            }
            Invariant::StatusRules => "the API server refuses such a status; nothing excuses it",
            Invariant::FinalizerAccounted => {
                "a Pod without it can vanish uncounted; excused for a Pod whose index a user took"
            }
            Invariant::NoStrandedFinalizer => {
                "such a Pod can never be deleted; excused for Pods nobody can trace to a Job"
            }
            Invariant::IndexFailures => {
                "backoffLimitPerIndex promises limit plus one tries; excused where failure counts \
                 were stripped"
            }
            Invariant::InheritsFailures => {
                "the failures of an index are counted from Pod to Pod and nowhere else; excused \
                 where users made or changed Pods of the index, by requests of the past, by two \
                 leaders, by the gate of limits per index, and for a Job or an index that was \
                 given up"
            }
            Invariant::OneLivePodPerIndex => {
                "two Pods would do the work of one index; excused by Pods that users made or \
                 changed, by requests of the past, by two leaders, and by the gate of replacement \
                 policies"
            }
            Invariant::NotMoreThanWanted => {
                "parallelism is a promise to whoever pays; excused by Pods that users made or \
                 changed, by requests of the past, and by two leaders"
            }
            Invariant::LeadersAgree => {
                "two replicas that both believe to lead do no harm; excused by Pods that users \
                 made or changed, by requests of the past, by names that are free again because \
                 their Pods are gone, and by Pods that changed their mind"
            }
            Invariant::NoPodAfterTheEnd => "it would run for nothing; nothing excuses it",
            Invariant::NotFinishedWhileBusy => {
                "a finished Job is not looked at again; excused by Pods that others made unseen"
            }
            Invariant::SuspendedIsIdle => {
                "who suspends a Job wants its resources back; nothing excuses it"
            }
            Invariant::ConditionOrder => "clients act on conditions once; nothing excuses it",
            Invariant::EndIsJustified => "an end cannot be taken back; nothing but forgery excuses",
            Invariant::EndPrecedence => "job-semantics 5.2 is the contract; closed gates excuse it",
            Invariant::BackoffRespected => {
                "a crash loop must not become a storm; excused by clocks that jump, by Pods that \
                 users made or changed, and by two leaders"
            }
            Invariant::HandsOff => "managedBy names one controller; nothing excuses it",
            Invariant::UnreadableLeftAlone => "what is not understood must not be broken",
            Invariant::NoHotLoop => {
                "an API server in trouble must be given time; excused by clocks that jump"
            }
            Invariant::WakesLater => "a ledger that wakes at once never sleeps",
            Invariant::Ends => "every Job must come to its end once the weather clears",
            Invariant::EndStays => "clients stop looking at a finished Job",
            Invariant::MatchesReference => {
                "the same fates must give the same result whatever happened on the way; excused \
                 by a status that a user wrote"
            }
            Invariant::NoPanic => "one Job must not take the controller down; nothing excuses it",
            Invariant::Artificial => "a shrinker needs something to shrink",
        }
    }

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|invariant| invariant.name() == name)
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invariant that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which one.
    pub invariant: Invariant,
    /// How.
    pub details: String,
}

impl Broken {
    /// This one, in this way.
    pub fn new(invariant: Invariant, details: String) -> Self {
        Self { invariant, details }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})\n  {}", self.invariant, self.invariant.why(), self.details)
    }
}

/// What a check says.
pub type Checked = Result<(), Broken>;

/// Fails with the details if a condition does not hold.
pub fn holds(is_so: bool, invariant: Invariant, details: impl FnOnce() -> String) -> Checked {
    if is_so { Ok(()) } else { Err(Broken::new(invariant, details())) }
}
