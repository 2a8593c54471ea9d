//! What is told to those who watch a Job: which of the things that a ledger says become Events
//! of the API, and which only raise the count of one that is there. It must not know how they
//! are sent.
//!
//! As client-go's recorder does it: the same thing said again is counted; of many similar
//! things (one for each Pod) the first ten are told one by one and the rest together, as
//! "(combined from similar events)". Other than there the last word is never lost: counts are
//! written when they are due, what is said once (that a Job completed) is never among what is
//! dropped, and what the API did not take is told again, ever later, until a quarter of an hour
//! has passed. A controller that is stopped tells what it still has to say in the second that it takes; one
//! that crashes, or loses its lease, does not. A Job of 10,000 Pods costs a dozen calls, and one more every ten seconds.
//!
//! An Event has its name before it is sent, so that telling it twice is a refusal and never a
//! second Event.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stint_api::names::{BATCH_V1, JOB_KIND, event};
use stint_ledger::op::{JobEvent, Refusal};

use crate::answer::Failure;
use crate::calls::Target;

/// How many similar things are told one by one: as in client-go.
const DISTINCT: usize = 10;

/// For how long things are similar: as in client-go.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

/// How often the count of an Event is written.
const COUNT_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// The longest message: as long as the API allows.
const MESSAGE_BYTES: usize = 1024;

/// How soon a call is repeated that came to nothing: the first time, and at most.
const REPEAT_FIRST: SignedDuration = SignedDuration::from_secs(1);
const REPEAT_LAST: SignedDuration = SignedDuration::from_mins(2);

/// How often: 1, 2, 4 … 64 and five times 120 seconds are a little more than twelve minutes,
/// longer than an API server takes to be replaced.
const REPEATS: u32 = 12;

/// How many calls wait to be repeated at most: at 1 KB each, 4 MB. Those beyond are lost: so
/// many Jobs at once on an API that takes none of their Events have nobody who watches.
const MOST_REPEATS: usize = 4_096;

/// What to ask of the API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventCall {
    /// A new Event.
    Create { namespace: Arc<str>, body: Value },
    /// A higher count of one that is there.
    Count { namespace: Arc<str>, name: String, body: Value },
}

/// What has been told, by Job.
#[derive(Debug, Default)]
pub(crate) struct Events {
    jobs: HashMap<Arc<str>, Told>,
    /// When counts are to be written, by time.
    due: BTreeSet<(Timestamp, Arc<str>)>,
    /// Calls that came to nothing, by when they are repeated and a number.
    again: BTreeMap<(Timestamp, u64), Again>,
    last_again: u64,
    /// The Jobs whose groups began then, the oldest first.
    began: VecDeque<(Timestamp, Arc<str>)>,
    last_name: i128,
}

/// A call and the Job that it is of.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) job_uid: Arc<str>,
    pub(crate) call: EventCall,
    /// How often it has come to nothing.
    pub(crate) repeats: u32,
}

#[derive(Debug)]
struct Told {
    namespace: Arc<str>,
    job_name: Arc<str>,
    groups: BTreeMap<(bool, String), Group>,
}

/// Similar things.
#[derive(Debug)]
struct Group {
    began: Timestamp,
    distinct: Vec<Series>,
    combined: Option<Series>,
}

/// One Event of the API.
#[derive(Debug)]
struct Series {
    name: String,
    message: String,
    count: u32,
    first: Timestamp,
    last: Timestamp,
    written: Timestamp,
    is_written: bool,
}

impl Events {
    /// Takes in what a ledger says; what to ask of the API at once, if anything.
    pub(crate) fn say(
        &mut self,
        target: &Target,
        said: &JobEvent,
        now: Timestamp,
    ) -> Option<EventCall> {
        self.forget_old(now);
        self.last_name = now.as_nanosecond().max(self.last_name + 1);
        let name = format!("{}.{:x}", target.job_name, self.last_name);
        let told = self.jobs.entry(target.job_uid.clone()).or_insert_with(|| Told {
            namespace: target.namespace.clone(),
            job_name: target.job_name.clone(),
            groups: BTreeMap::new(),
        });
        let key = (said.is_warning, said.reason.to_string());
        let began = &mut self.began;
        let group = told.groups.entry(key).or_insert_with(|| {
            began.push_back((now, target.job_uid.clone()));
            Group::new(now)
        });
        let message = cut(&said.message);
        let known = group.distinct.iter().position(|series| series.message == message);
        let series = match known {
            Some(place) => &mut group.distinct[place],
            None if group.distinct.len() < DISTINCT => {
                group.distinct.push(Series::new(name, message.to_owned(), now));
                let series = group.distinct.last().expect("it was just put there");
                return Some(series.create(target, said.is_warning, &said.reason));
            }
            None => {
                let message = cut(&format!("(combined from similar events): {message}")).to_owned();
                match &mut group.combined {
                    Some(series) => {
                        series.message = message;
                        series
                    }
                    combined => {
                        let series = combined.insert(Series::new(name, message, now));
                        return Some(series.create(target, said.is_warning, &said.reason));
                    }
                }
            }
        };
        series.count += 1;
        series.last = now;
        let due = series.due();
        if due <= now {
            return Some(series.write(&target.namespace, now));
        }
        if series.is_written {
            series.is_written = false;
            self.due.insert((due, target.job_uid.clone()));
        }
        None
    }

    /// What is to be told now: counts that are due, and what came to nothing before.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Again> {
        let mut calls = Vec::new();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let (_, uid) = self.due.pop_first().expect("there is a first");
            let Some(told) = self.jobs.get_mut(&uid) else { continue };
            let series = told.groups.values_mut().flat_map(Group::series);
            for series in series.filter(|series| !series.is_written && series.due() <= now) {
                calls.push(Again::first(&uid, series.write(&told.namespace, now)));
            }
        }
        self.forget_old(now);
        while let Some(again) = self.again.first_entry().filter(|it| it.key().0 <= now) {
            let mut again = again.remove();
            // It may have come to more by now.
            if let EventCall::Count { name, .. } = &again.call
                && let Some(count) = self.count_again(&again.job_uid, name, now)
            {
                again.call = count;
            }
            calls.push(again);
        }
        calls
    }

    /// What has not been told yet, whenever it is due: the controller stops.
    pub(crate) fn take_last(&mut self, now: Timestamp) -> Vec<Again> {
        let mut calls: Vec<Again> = std::mem::take(&mut self.again).into_values().collect();
        self.due.clear();
        for (uid, told) in &mut self.jobs {
            let series = told.groups.values_mut().flat_map(Group::series);
            for series in series.filter(|series| !series.is_written) {
                calls.push(Again::first(uid, series.write(&told.namespace, now)));
            }
        }
        calls
    }

    /// When something is to be told next.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        let due = self.due.first().map(|(at, _)| *at);
        let again = self.again.first_key_value().map(|((at, _), _)| *at);
        due.into_iter().chain(again).min()
    }

    /// Takes note that a call came to nothing; it is told again if that can help.
    pub(crate) fn take_failure(&mut self, lost: Again, failure: &Failure, now: Timestamp) {
        let Again { job_uid, mut call, repeats } = lost;
        match (&call, failure) {
            // It was there before: the answer to an earlier try was lost. It may have come to
            // more since.
            (EventCall::Create { body, .. }, Failure::Refused(Refusal::AlreadyExists, _)) => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                match self.count_again(&job_uid, name, now) {
                    Some(count) => call = count,
                    None => return,
                }
            }
            // The Event that is counted is not there; it never was, or has expired.
            (EventCall::Count { name, .. }, Failure::Refused(Refusal::NotFound, _)) => {
                match self.create_again(&job_uid, name, now) {
                    Some(create) => call = create,
                    None => return,
                }
            }
            // It will not be taken another time either.
            (
                _,
                Failure::Refused(
                    Refusal::Rejected(_) | Refusal::NotFound | Refusal::NamespaceGoes(_),
                    _,
                ),
            ) => return,
            (
                _,
                Failure::Refused(
                    Refusal::TryLater(_) | Refusal::Conflict | Refusal::AlreadyExists,
                    _,
                )
                | Failure::Lost(_),
            ) => {}
        }
        if repeats >= REPEATS || self.again.len() >= MOST_REPEATS {
            tracing::debug!(?failure, "an event is not told");
            return;
        }
        let pause = REPEAT_FIRST.saturating_mul(1 << repeats.min(REPEATS)).min(REPEAT_LAST);
        self.repeat(now.checked_add(pause).unwrap_or(now), job_uid, call, repeats + 1);
    }

    fn repeat(&mut self, at: Timestamp, job_uid: Arc<str>, call: EventCall, repeats: u32) {
        self.last_again += 1;
        self.again.insert((at, self.last_again), Again { job_uid, call, repeats });
    }

    /// The count that an Event has come to, if that is more than one.
    fn count_again(&mut self, uid: &Arc<str>, name: &str, now: Timestamp) -> Option<EventCall> {
        let told = self.jobs.get_mut(uid)?;
        let mut series = told.groups.values_mut().flat_map(Group::series);
        let series = series.find(|series| series.name == name && series.count > 1)?;
        Some(series.write(&told.namespace, now))
    }

    /// The Event of this name, with the count it has come to.
    fn create_again(&mut self, uid: &Arc<str>, name: &str, now: Timestamp) -> Option<EventCall> {
        let told = self.jobs.get_mut(uid)?;
        let target = Target {
            namespace: told.namespace.clone(),
            job_name: told.job_name.clone(),
            job_uid: uid.clone(),
            ledger: 0,
            mould: None,
        };
        for ((is_warning, reason), group) in &mut told.groups {
            if let Some(series) = group.series().find(|series| series.name == name) {
                (series.is_written, series.written) = (true, now);
                return Some(series.create(&target, *is_warning, reason));
            }
        }
        None
    }

    /// Forgets what nothing is similar to any more; what has not been written of it is.
    fn forget_old(&mut self, now: Timestamp) {
        let is_old = |began: Timestamp| now.duration_since(began) > WINDOW;
        while let Some((_, uid)) = self.began.pop_front_if(|(began, _)| is_old(*began)) {
            let Some(told) = self.jobs.get_mut(&uid) else { continue };
            let namespace = told.namespace.clone();
            let old = told.groups.extract_if(.., |_, group| is_old(group.began));
            let old: Vec<EventCall> =
                old.flat_map(|(_, group)| group.unwritten(&namespace, now)).collect();
            if told.groups.is_empty() {
                self.jobs.remove(&uid);
            }
            for call in old {
                self.repeat(now, uid.clone(), call, 0);
            }
        }
    }

    /// Forgets a Job; what has not been written of it is.
    pub(crate) fn forget(&mut self, job_uid: &str, now: Timestamp) -> Vec<EventCall> {
        let Some(told) = self.jobs.remove(job_uid) else { return Vec::new() };
        tracing::trace!(job = %told.job_name, "events forgotten");
        self.due.retain(|(_, uid)| **uid != *job_uid);
        let groups = told.groups.into_values();
        groups.flat_map(|group| group.unwritten(&told.namespace, now)).collect()
    }
}

impl Again {
    fn first(job_uid: &Arc<str>, call: EventCall) -> Self {
        Again { job_uid: job_uid.clone(), call, repeats: 0 }
    }
}

impl Group {
    fn new(now: Timestamp) -> Self {
        Group { began: now, distinct: Vec::new(), combined: None }
    }

    fn series(&mut self) -> impl Iterator<Item = &mut Series> {
        self.distinct.iter_mut().chain(&mut self.combined)
    }

    /// The counts that have not been written.
    fn unwritten(mut self, namespace: &Arc<str>, now: Timestamp) -> Vec<EventCall> {
        let series = self.series().filter(|series| !series.is_written);
        series.map(|series| series.write(namespace, now)).collect()
    }
}

impl Series {
    fn new(name: String, message: String, now: Timestamp) -> Self {
        Series { name, message, count: 1, first: now, last: now, written: now, is_written: true }
    }

    fn due(&self) -> Timestamp {
        self.written.checked_add(COUNT_EVERY).unwrap_or(Timestamp::MAX)
    }

    fn write(&mut self, namespace: &Arc<str>, now: Timestamp) -> EventCall {
        self.is_written = true;
        self.written = now;
        EventCall::Count {
            namespace: namespace.clone(),
            name: self.name.clone(),
            body: json!({
                "count": self.count,
                "message": self.message,
                "lastTimestamp": seconds(self.last),
            }),
        }
    }

    fn create(&self, target: &Target, is_warning: bool, reason: &str) -> EventCall {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": &*target.namespace},
            "involvedObject": {
                "apiVersion": BATCH_V1,
                "kind": JOB_KIND,
                "namespace": &*target.namespace,
                "name": &*target.job_name,
                "uid": &*target.job_uid,
            },
            "type": if is_warning { "Warning" } else { "Normal" },
            "reason": reason,
            "message": self.message,
            "source": {"component": event::COMPONENT},
            "reportingComponent": event::COMPONENT,
            "reportingInstance": "",
            "firstTimestamp": seconds(self.first),
            "lastTimestamp": seconds(self.last),
            "count": self.count,
        });
        EventCall::Create { namespace: target.namespace.clone(), body }
    }
}

/// A time as objects carry it: in whole seconds.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES)]
}

#[cfg(test)]
mod tests {
    use crate::answer::Weather;

    use super::*;

    fn target() -> Target {
        Target {
            namespace: "ns".into(),
            job_name: "j".into(),
            job_uid: "u".into(),
            ledger: 1,
            mould: None,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    fn said(reason: &'static str, message: &str) -> JobEvent {
        JobEvent { is_warning: false, reason: reason.into(), message: message.to_owned() }
    }

    #[test]
    fn ten_thousand_pods_cost_a_dozen_calls_and_the_last_count_is_right() {
        let mut events = Events::default();
        let mut calls = Vec::new();
        for pod in 0..10_000 {
            let message = format!("Created pod: j-{pod}");
            calls.extend(events.say(&target(), &said("SuccessfulCreate", &message), at(0)));
        }
        calls.extend(events.say(&target(), &said("Completed", "Job completed"), at(0)));
        assert_eq!(calls.len(), 12);
        assert_eq!(events.wake_at(), Some(at(10)));
        assert!(events.take_due(at(9)).is_empty());
        let due = events.take_due(at(10));
        let [Again { call: EventCall::Count { body, .. }, .. }] = &due[..] else {
            panic!("{due:?}")
        };
        assert_eq!(body["count"], 9_990);
        assert_eq!(body["message"], "(combined from similar events): Created pod: j-9999");
        assert_eq!(events.wake_at(), None);
    }

    #[test]
    fn the_same_said_again_is_counted() {
        let mut events = Events::default();
        let quota = said("FailedCreate", "Error creating: exceeded quota");
        let Some(EventCall::Create { body, .. }) = events.say(&target(), &quota, at(0)) else {
            panic!("the first time is told")
        };
        assert_eq!(body["involvedObject"]["name"], "j");
        assert_eq!(body["count"], 1);
        assert_eq!(events.say(&target(), &quota, at(1)), None);
        let Some(EventCall::Count { body: counted, name, .. }) =
            events.say(&target(), &quota, at(20))
        else {
            panic!("after a while the count is written")
        };
        assert_eq!(counted["count"], 3);
        assert_eq!(body["metadata"]["name"], name);
        assert!(events.take_due(at(30)).is_empty(), "it was written already");
    }

    #[test]
    fn what_is_not_written_when_a_job_goes_is_written_then() {
        let mut events = Events::default();
        let again = said("FailedCreate", "no");
        assert!(events.say(&target(), &again, at(0)).is_some());
        assert!(events.say(&target(), &again, at(1)).is_none());
        assert_eq!(events.forget("u", at(2)).len(), 1);
        assert!(events.forget("u", at(2)).is_empty() && events.wake_at().is_none());
    }

    fn lost() -> Failure {
        Failure::Lost("503".to_owned())
    }

    fn refused(refusal: Refusal) -> Failure {
        Failure::Refused(refusal, Weather::Fine)
    }

    #[test]
    fn what_came_to_nothing_is_told_again_ever_later_and_not_for_ever() {
        let mut events = Events::default();
        let call = events.say(&target(), &said("Completed", "Job completed"), at(0));
        let mut again = Again::first(&"u".into(), call.expect("it is told"));
        let call = again.call.clone();
        let (mut now, mut pauses) = (at(0), Vec::new());
        loop {
            events.take_failure(again, &lost(), now);
            let Some(next) = events.wake_at() else { break };
            assert!(events.take_due(next - SignedDuration::from_millis(1)).is_empty());
            pauses.push(next.duration_since(now).as_secs());
            now = next;
            let mut due = events.take_due(now);
            again = due.pop().expect("it is told again");
            assert!(due.is_empty() && again.call == call, "{due:?}");
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120, 120]);
    }

    #[test]
    fn it_is_told_again_though_its_job_is_gone() {
        let mut events = Events::default();
        let call = events.say(&target(), &said("Completed", "Job completed"), at(0));
        assert!(events.forget("u", at(0)).is_empty());
        let again = Again::first(&"u".into(), call.expect("it is told"));
        events.take_failure(again, &lost(), at(0));
        assert_eq!(events.take_due(at(1)).len(), 1);
    }

    #[test]
    fn what_cannot_be_taken_or_was_is_not_told_again() {
        let mut events = Events::default();
        let call = events.say(&target(), &said("Completed", "Job completed"), at(0));
        let call = call.expect("it is told");
        for refusal in
            [Refusal::AlreadyExists, Refusal::NotFound, Refusal::Rejected("no".to_owned())]
        {
            let again = Again::first(&"u".into(), call.clone());
            events.take_failure(again, &refused(refusal), at(0));
            assert_eq!(events.wake_at(), None);
        }
    }

    #[test]
    fn a_count_of_an_event_that_is_not_there_makes_it() {
        let mut events = Events::default();
        let quota = said("FailedCreate", "exceeded quota");
        let Some(EventCall::Create { body: first, .. }) = events.say(&target(), &quota, at(0))
        else {
            panic!("the first time is told")
        };
        assert!(events.say(&target(), &quota, at(1)).is_none());
        let due = events.take_due(at(10)).pop().expect("a count");
        events.take_failure(due, &refused(Refusal::NotFound), at(11));
        let due = events.take_due(at(12)).pop().expect("it is told");
        let EventCall::Create { body, .. } = due.call else { panic!("{due:?}") };
        assert_eq!(body["metadata"]["name"], first["metadata"]["name"]);
        assert_eq!(body["firstTimestamp"], first["firstTimestamp"]);
        assert_eq!((&body["count"], &body["lastTimestamp"]), (&json!(2), &json!(seconds(at(1)))));
    }

    #[test]
    fn a_count_that_is_told_again_is_the_last_one() {
        let mut events = Events::default();
        let quota = said("FailedCreate", "exceeded quota");
        let call = events.say(&target(), &quota, at(0)).expect("it is told");
        let create = Again::first(&"u".into(), call);
        for second in 1..=3 {
            assert!(events.say(&target(), &quota, at(second)).is_none());
        }
        let due = events.take_due(at(10)).pop().expect("a count");
        assert!(events.say(&target(), &quota, at(11)).is_none());
        events.take_failure(due, &lost(), at(11));
        // It was made before its answer was lost.
        events.take_failure(create, &refused(Refusal::AlreadyExists), at(11));
        let counts = events.take_due(at(12)).into_iter().map(|due| match due.call {
            EventCall::Count { body, .. } => body["count"].clone(),
            EventCall::Create { .. } => panic!("it is there"),
        });
        assert_eq!(counts.collect::<Vec<_>>(), [5, 5]);
    }

    #[test]
    fn calls_that_wait_to_be_repeated_are_so_many_at_most() {
        let mut events = Events::default();
        let call = events.say(&target(), &said("Completed", "Job completed"), at(0));
        let call = call.expect("it is told");
        for _ in 0..MOST_REPEATS + 10 {
            events.take_failure(Again::first(&"u".into(), call.clone()), &lost(), at(0));
        }
        assert_eq!(events.take_due(at(1)).len(), MOST_REPEATS);
    }

    #[test]
    fn what_was_told_of_jobs_that_stay_is_forgotten() {
        let mut events = Events::default();
        for job in 0..100 {
            let target = Target { job_uid: format!("u{job}").into(), ..target() };
            for reason in ["SuccessfulCreate", "Completed"] {
                assert!(events.say(&target, &said(reason, "x"), at(job)).is_some());
            }
        }
        assert!(events.say(&target(), &said("FailedCreate", "no"), at(600)).is_some());
        assert!(events.say(&target(), &said("FailedCreate", "no"), at(601)).is_none());
        assert!(events.take_due(at(605)).is_empty());
        assert_eq!(events.jobs.len(), 96);
        // The count that was due long ago is written all the same.
        let due = events.say(&target(), &said("Completed", "x"), at(3_000));
        assert!(due.is_some_and(|call| matches!(call, EventCall::Create { .. })));
        let due = events.take_due(at(3_000));
        let [Again { call: EventCall::Count { body, .. }, .. }] = &due[..] else {
            panic!("{due:?}")
        };
        assert_eq!(body["count"], 2);
        assert_eq!((events.jobs.len(), events.began.len()), (1, 1));
        assert!(events.take_due(at(9_000)).is_empty());
        assert!(events.jobs.is_empty() && events.began.is_empty());
    }
}
