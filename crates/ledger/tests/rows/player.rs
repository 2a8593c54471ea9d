//! Runs a ledger on the API, as a controller would: it tells what is seen, carries out
//! what is asked for, and asks again when the ledger wants to be asked.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::view::ManagedBy;
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::op::{Op, OpKind, Outcome, Refusal};

use crate::api::{Api, JOB_UID};
use crate::labels;
use crate::print;
use crate::row::Row;

/// A ledger that asks more often than this without time passing does not come to rest.
const MAX_ROUNDS: usize = 50;

/// Something that goes wrong with the next op of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Refuse,
    Reject,
    Bury,
    LoseRequest,
    LoseAnswer,
    CrashBefore,
    CrashAfter,
}

pub(crate) struct Player {
    pub(crate) api: Api,
    manages: ManagedBy,
    status_interval: SignedDuration,
    crowd_interval: SignedDuration,
    forgives_nodes: bool,
    show: Vec<String>,
    /// There once the row has started.
    ledger: Option<JobLedger>,
    /// What goes wrong next, by the kind of op.
    pub(crate) faults: Vec<(String, Fault)>,
    /// Kinds of ops, and watches, that are held.
    pub(crate) held: BTreeSet<String>,
    waiting: Vec<Op>,
    /// What the ledger was told of, in order.
    told: Vec<Event>,
    /// What has come of the present step.
    pub(crate) lines: Vec<String>,
    /// The status before the last line and after it, if that is a status that was written.
    written: Option<(JobStatus, JobStatus)>,
    prefix: String,
}

impl Player {
    pub(crate) fn new(row: &Row) -> Self {
        Self {
            api: Api::new(&row.job),
            manages: ManagedBy::parse(row.manages.as_deref()),
            status_interval: SignedDuration::from_secs(row.status_every),
            crowd_interval: SignedDuration::from_secs(row.crowd_every),
            forgives_nodes: row.forgives_nodes,
            show: row.show.clone(),
            ledger: None,
            faults: Vec::new(),
            held: BTreeSet::new(),
            waiting: Vec::new(),
            told: Vec::new(),
            lines: Vec::new(),
            written: None,
            prefix: String::new(),
        }
    }

    /// A new ledger that knows only what the API has, as after a crash.
    pub(crate) fn restart(&mut self) {
        let settings = Settings {
            gates: self.api.gates,
            manages: self.manages.clone(),
            status_interval: self.status_interval,
            forgives_nodes: self.forgives_nodes,
            ..Default::default()
        };
        let mut ledger = JobLedger::new(settings, "j", JOB_UID);
        ledger.space_statuses(self.crowd_interval);
        ledger.observe(self.api.job_event());
        for pod in self.api.pods.values() {
            let facts = Box::new(pod.facts.clone());
            ledger.observe(Event::PodSeen { facts, is_selected: pod.is_selected });
        }
        ledger.observe(Event::PodsCurrent { version: self.api.version });
        self.api.job_news.clear();
        self.api.pod_news.clear();
        self.waiting.clear();
        self.told.clear();
        self.ledger = Some(ledger);
    }

    /// Lets the ledger do what it wants until it wants nothing more.
    pub(crate) fn run(&mut self) {
        for _ in 0..MAX_ROUNDS {
            self.tell();
            let Some(ledger) = &mut self.ledger else {
                return;
            };
            let ops = ledger.next(self.api.now);
            if ops.is_empty() {
                if ledger.wake_at().is_some_and(|at| at <= self.api.now) {
                    self.say("(wants to be asked again at once)");
                }
                return;
            }
            self.carry_out(ops);
        }
        self.say("(does not come to rest)");
    }

    /// Lets time pass; the ledger is asked when it wants to be, and not before.
    pub(crate) fn tick(&mut self, duration: SignedDuration) {
        let start = self.api.now;
        let end = start.checked_add(duration).expect("a time");
        let wake_at = |player: &Self| player.ledger.as_ref()?.wake_at();
        let is_ahead = |player: &Self, at: &Timestamp| *at > player.api.now && *at <= end;
        while let Some(at) = wake_at(self).filter(|at| is_ahead(self, at)) {
            self.api.now = at;
            self.prefix = format!("{}: ", print::seconds(start, at));
            self.run();
        }
        self.prefix.clear();
        self.api.now = end;
    }

    /// Lets what was held go.
    pub(crate) fn release(&mut self, kind: &str) {
        assert!(self.held.remove(kind), "{kind} was not held");
        let waiting = std::mem::take(&mut self.waiting);
        let (free, held) = waiting.into_iter().partition(|op| word(&op.kind) == kind);
        self.waiting = held;
        self.carry_out(free);
    }

    /// Lets the first of those go that were held; the others stay.
    pub(crate) fn release_one(&mut self, kind: &str) {
        assert!(self.held.remove(kind), "{kind} was not held");
        let first = self.waiting.iter().position(|op| word(&op.kind) == kind);
        let op = self.waiting.remove(first.expect("one is held"));
        self.carry_out(vec![op]);
        self.held.insert(kind.to_owned());
    }

    /// Lets creations go that were held, as far as they are still wanted.
    pub(crate) fn withdraw_creations(&mut self) {
        let ledger = self.ledger.as_mut().expect("the row has started");
        let mut withdrawn = Vec::new();
        self.waiting.retain(|op| {
            let is_wanted = ledger.wants(op.id, self.api.now);
            if !is_wanted {
                ledger.withdraw(op.id);
                withdrawn.push(op.kind.clone());
            }
            is_wanted
        });
        for kind in withdrawn {
            let line = print::op(&kind, &mut self.api);
            self.say(&format!("withdrawn: {line}"));
        }
        self.release("create");
    }

    /// Tells everything once more, the oldest last.
    pub(crate) fn tell_again(&mut self) {
        let ledger = self.ledger.as_mut().expect("the row has started");
        self.told.iter().rev().cloned().for_each(|event| ledger.observe(event));
    }

    /// What has come of the step that is over.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.written = None;
        // Counters grow; in which order they do means nothing.
        if self.show == ["metrics"] {
            self.lines.sort();
        }
        std::mem::take(&mut self.lines)
    }

    /// Whether the ledger has nothing left to do, ever.
    pub(crate) fn is_empty(&self) -> bool {
        self.ledger.as_ref().is_some_and(JobLedger::is_empty)
    }

    fn tell(&mut self) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let mut news = Vec::new();
        if !self.held.contains("job") {
            news.append(&mut self.api.job_news);
        }
        if !self.held.contains("pods") {
            news.append(&mut self.api.pod_news);
            news.push(Event::PodsCurrent { version: self.api.version });
        }
        for event in news {
            ledger.observe(event.clone());
            self.told.push(event);
        }
    }

    /// Carries out ops that may run together, in an order that does not depend on the
    /// ledger's: the harness must not rely on it.
    fn carry_out(&mut self, mut ops: Vec<Op>) {
        ops.retain(|op| self.is_shown(&op.kind) || needs_outcome(&op.kind));
        ops.sort_by_cached_key(|op| {
            let line = print::op(&op.kind, &mut self.api);
            let words: Vec<_> = line.split(' ').map(labels::order).collect();
            (rank(&op.kind), words)
        });
        let many = |op: &Op| ops.iter().filter(|other| word(&other.kind) == word(&op.kind)).count();
        let crowds: Vec<(&str, usize)> = ops.iter().map(|op| (word(&op.kind), many(op))).collect();
        let mut crowd = "";
        for (op, (word, count)) in ops.iter().zip(crowds) {
            let line = print::op(&op.kind, &mut self.api);
            let before = self.api.status();
            if !self.is_shown(&op.kind) {
                if self.carry_out_one(op) {
                    return;
                }
                continue;
            }
            let is_crowd = count > print::MAX_LISTED;
            if is_crowd && crowd != word {
                crowd = word;
                self.say(&format!("{word}: {count} Pods"));
            }
            if !is_crowd {
                self.say(&line);
            }
            let earlier = self.written.take().filter(|_| word == "status");
            let lines = self.lines.len();
            if self.carry_out_one(op) {
                return;
            }
            let is_written = word == "status" && self.lines.last() == Some(&self.line(&line));
            if is_written && self.lines.len() == lines {
                self.combine(earlier, (before, self.api.status()));
            }
        }
    }

    /// Two statuses in a row are one line if one of them only says what runs: how many
    /// writes that takes is nobody's business.
    fn combine(&mut self, earlier: Option<(JobStatus, JobStatus)>, last: (JobStatus, JobStatus)) {
        let Some(earlier) = earlier.filter(|earlier| {
            print::is_plain(&earlier.0, &earlier.1) || print::is_plain(&last.0, &last.1)
        }) else {
            self.written = Some(last);
            return;
        };
        let both = (earlier.0, last.1);
        self.lines.truncate(self.lines.len() - 2);
        let change = print::status_change(&both.0, &both.1);
        if change != "unchanged" {
            self.say(&format!("status {change}"));
            self.written = Some(both);
        }
    }

    /// Carries one op out, well or badly. Returns whether the ledger has crashed.
    fn carry_out_one(&mut self, op: &Op) -> bool {
        if !needs_outcome(&op.kind) {
            return false;
        }
        let kind = word(&op.kind);
        if self.held.contains(kind) {
            self.remark("held");
            self.waiting.push(op.clone());
            return false;
        }
        let fault = self.faults.iter().position(|(of, _)| of == kind);
        let fault = fault.map(|position| self.faults.remove(position).1);
        let later = |text: &str| text.to_owned();
        let outcome = match fault {
            Some(Fault::Refuse) => Outcome::Refused(Refusal::TryLater(later("not now"))),
            Some(Fault::Bury) => {
                Outcome::Refused(Refusal::NamespaceGoes(later("the namespace is being deleted")))
            }
            Some(Fault::Reject) => Outcome::Refused(Refusal::Rejected(later("not like this"))),
            Some(Fault::LoseRequest | Fault::CrashBefore) => Outcome::InDoubt,
            Some(Fault::LoseAnswer | Fault::CrashAfter) => {
                self.api.apply(&op.kind);
                Outcome::InDoubt
            }
            None => self.api.apply(&op.kind),
        };
        self.remark_on(fault, &outcome);
        if matches!(fault, Some(Fault::CrashBefore | Fault::CrashAfter)) {
            self.restart();
            return true;
        }
        self.ledger.as_mut().expect("an op has a ledger").settle(op.id, outcome);
        false
    }

    fn remark_on(&mut self, fault: Option<Fault>, outcome: &Outcome) {
        match (fault, outcome) {
            (Some(Fault::LoseRequest), _) => self.remark("request lost"),
            (Some(Fault::LoseAnswer), _) => self.remark("answer lost"),
            (Some(Fault::CrashBefore), _) => self.remark("crash before it is done"),
            (Some(Fault::CrashAfter), _) => self.remark("crash after it is done"),
            (_, Outcome::Refused(Refusal::TryLater(_))) => self.remark("refused for now"),
            (_, Outcome::Refused(Refusal::Rejected(why))) => {
                self.remark(&format!("rejected: {why}"))
            }
            (_, Outcome::Refused(Refusal::NamespaceGoes(_))) => self.remark("the namespace goes"),
            (_, Outcome::Refused(Refusal::AlreadyExists)) => self.remark("exists already"),
            (_, Outcome::Refused(Refusal::Conflict)) => self.remark("conflict"),
            (_, Outcome::Refused(Refusal::NotFound)) => self.remark("not found"),
            (_, Outcome::Applied(_) | Outcome::InDoubt) => {}
        }
    }

    fn is_shown(&self, op: &OpKind) -> bool {
        let what = match op {
            OpKind::EmitEvent(_) => "events",
            OpKind::Record(_) => "metrics",
            _ => "writes",
        };
        self.show.iter().any(|shown| shown == what)
    }

    fn say(&mut self, text: &str) {
        self.lines.push(self.line(text));
    }

    fn line(&self, text: &str) -> String {
        format!("{}{text}", self.prefix)
    }

    /// Adds to the line of the op; once, where the line is about many.
    fn remark(&mut self, remark: &str) {
        let remark = format!(" ({remark})");
        let is_shown = self.show.iter().any(|shown| shown == "writes");
        if let Some(line) =
            self.lines.last_mut().filter(|line| is_shown && !line.ends_with(&remark))
        {
            line.push_str(&remark);
        }
    }
}

fn needs_outcome(op: &OpKind) -> bool {
    !matches!(op, OpKind::EmitEvent(_) | OpKind::Record(_))
}

/// What steps call this kind of op.
fn word(op: &OpKind) -> &'static str {
    match op {
        OpKind::CreatePod(_) => "create",
        OpKind::DeletePod(_) => "delete",
        OpKind::RemoveFinalizer(_) => "remove finalizer",
        OpKind::AdoptPod(_) => "adopt",
        OpKind::ReleasePod(_) => "release",
        OpKind::WriteStatus { .. } => "status",
        OpKind::LookUpJob | OpKind::LookUpPod(_) | OpKind::LookUpPods => "look up",
        OpKind::EmitEvent(_) => "event",
        OpKind::Record(_) => "metric",
    }
}

/// The order in which ops of one round are carried out and printed.
fn rank(op: &OpKind) -> usize {
    const ORDER: [&str; 9] = [
        "event",
        "metric",
        "look up",
        "adopt",
        "release",
        "delete",
        "create",
        "remove finalizer",
        "status",
    ];
    ORDER.iter().position(|&known| known == word(op)).expect("every kind has its place")
}
