//! Where all calls of all Jobs wait for their turn.
//!
//! ```text
//!   Job a: status, look-ups │ creations │ Pods ─┐
//!   Job b: …                                    ├─ in turn ─┐
//!   Job c: …                                   ─┘           ├─▶ as many as the server bears
//!   Events, of all Jobs ──────────────── when there is room ┘
//! ```
//!
//! Jobs take turns, one call each, so that a Job with ten thousand calls holds up a Job with
//! one by a single call. Within a Job, what others wait for goes first, and the rest takes
//! turns too: removing finalizers does not wait until two thousand Pods are created.
//!
//! Turns alone are not enough: a Job with one Pod makes its few calls one after another, and in
//! between the large one would fill the server's own queue, in which nobody takes turns. So
//! while others are about, no Job has more calls under way than the server works on without one.
//!
//! No work waits for an Event, so Events go when nothing else waits, or after every so many other
//! calls: whoever watches a server that is always full still sees what its Jobs do. Where so many
//! wait that they take up memory, they take turns with the rest. They go in the order in which they
//! were told, whichever Job they are of.
//!
//! The server that is too busy is left alone, all of it; one that wants fewer Events (there is a
//! plugin for that) still gets everything else. A call that hangs keeps its place for a while
//! only: it says nothing of how many others the server bears.
//!
//! Nothing is repeated here but what the server has refused for being busy (429): it has done
//! nothing then, whatever the call. Everything else is the ledger's to decide, which knows
//! what may be asked twice.
//!
//! It must not know what the calls are.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::answer::Weather;
use crate::limit::{Limit, Verb};

/// How long nothing is sent after the server was too busy and did not say for how long: as
/// long as kube-apiserver usually asks for.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause that a server can ask for.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a call counts among those that the server works on: longer than any that is only
/// slow, and a fraction of what a call may take at all.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// The fewest calls a second that can be asked for: with one every ten seconds a Job still ends.
const LEAST_PER_SECOND: f64 = 0.1;

/// What waits for what within a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Goes before everything else: statuses and look-ups, which others wait for.
    First,
    /// Creations.
    Create,
    /// What is done to a Pod.
    Pod,
    /// Events.
    Event,
}

/// For how long a Job is about after its last call: between two of them it waits for its Pods
/// to be run, and for the news of that.
const ABOUT: Duration = Duration::from_secs(1);

/// How many other calls go before an Event that waits.
const CALLS_PER_EVENT: u32 = 8;

/// How many Events may wait for that: at 1 KB each, 4 MB. Beyond that it is one call each.
const MOST_PATIENT: usize = 4_096;

/// Calls that wait.
#[derive(Debug)]
pub(crate) struct Dispatch<W> {
    queues: HashMap<Arc<str>, Queue<W>>,
    /// The Jobs with calls that wait, the next one first.
    turns: VecDeque<Arc<str>>,
    /// The Events of all Jobs, and how many other calls have gone before the next one.
    events: VecDeque<(Arc<str>, W)>,
    calls_since_event: u32,
    waiting: usize,
    /// The calls under way, by when they were begun, the oldest first. Events are nobody's: no Job has to
    /// wait for its own.
    began: VecDeque<(Instant, Option<Arc<str>>)>,
    /// When the last call was sent of each of the last two Jobs that sent any.
    last: [Option<(Instant, Arc<str>)>; 2],
    most: usize,
    limit: Limit,
    tokens: Option<Tokens>,
    paused_until: Option<Instant>,
    events_paused_until: Option<Instant>,
}

#[derive(Debug)]
struct Queue<W> {
    first: VecDeque<W>,
    creations: VecDeque<W>,
    pods: VecDeque<W>,
    is_turn_of_pods: bool,
}

/// A limit on calls a second: up to a second's worth at once.
#[derive(Debug)]
struct Tokens {
    per_second: f64,
    left: f64,
    at: Instant,
}

impl<W> Dispatch<W> {
    /// Nothing waits yet. A `qps` that is no number of calls, or next to none, is the least
    /// that can be asked for: who wants a limit never gets none, unless it is infinite.
    pub(crate) fn new(max_inflight: usize, qps: Option<f64>, now: Instant) -> Self {
        let tokens = qps.filter(|qps| *qps != f64::INFINITY).map(|qps| {
            // `max` takes the number where the other is none.
            let per_second = qps.max(LEAST_PER_SECOND);
            if per_second != qps {
                tracing::warn!("{qps} calls a second cannot be had: {per_second} are made");
            }
            Tokens { per_second, left: per_second.max(1.0), at: now }
        });
        Dispatch {
            queues: HashMap::new(),
            turns: VecDeque::new(),
            events: VecDeque::new(),
            calls_since_event: 0,
            waiting: 0,
            began: VecDeque::new(),
            last: [None, None],
            most: max_inflight.max(1),
            limit: Limit::new(max_inflight),
            tokens,
            paused_until: None,
            events_paused_until: None,
        }
    }

    /// Lets a call of a Job wait for its turn.
    pub(crate) fn push(&mut self, job: &Arc<str>, lane: Lane, work: W) {
        self.waiting += 1;
        match lane {
            Lane::Event => self.events.push_back((job.clone(), work)),
            Lane::First => self.queue(job).first.push_back(work),
            Lane::Create => self.queue(job).creations.push_back(work),
            Lane::Pod => self.queue(job).pods.push_back(work),
        }
    }

    /// Puts back a call that the server was too busy for: it goes before its like.
    pub(crate) fn put_back(&mut self, job: &Arc<str>, lane: Lane, work: W) {
        self.waiting += 1;
        match lane {
            Lane::Event => self.events.push_front((job.clone(), work)),
            Lane::First => self.queue(job).first.push_front(work),
            Lane::Create => self.queue(job).creations.push_front(work),
            Lane::Pod => self.queue(job).pods.push_front(work),
        }
    }

    /// The queue of a Job, which takes its turn from now on.
    fn queue(&mut self, job: &Arc<str>) -> &mut Queue<W> {
        self.queues.entry(job.clone()).or_insert_with(|| {
            self.turns.push_back(job.clone());
            Queue::default()
        })
    }

    /// The next call to send, if one may be sent now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Arc<str>, W)> {
        self.paused_until = self.paused_until.filter(|until| *until > now);
        self.events_paused_until = self.events_paused_until.filter(|until| *until > now);
        if self.paused_until.is_some() || !self.has_room(now) {
            return None;
        }
        let has_event = self.may_tell(now);
        let has_turn = self.find_turn(now);
        if (!has_turn && !has_event) || !self.take_token(now) {
            return None;
        }
        let patience = if self.events.len() > MOST_PATIENT { 1 } else { CALLS_PER_EVENT };
        let is_event = has_event && (!has_turn || self.calls_since_event >= patience);
        let (job, work) = match is_event {
            true => {
                self.calls_since_event = 0;
                self.events.pop_front().expect("an Event waits")
            }
            false => {
                self.calls_since_event = self.calls_since_event.saturating_add(1);
                self.next_in_turn()
            }
        };
        self.waiting -= 1;
        self.began.push_back((now, (!is_event).then(|| job.clone())));
        if !is_event {
            self.note_sender(now, &job);
        }
        Some((job, work))
    }

    /// Whether an Event waits that may be sent: no more of them at once than make no queue for others.
    fn may_tell(&self, now: Instant) -> bool {
        self.events_paused_until.is_none()
            && !self.events.is_empty()
            && self.working(None, now) < self.limit.unqueued_calls(now)
    }

    /// Goes to the next Job that may send a call, if there is one. Those that it passes have as
    /// much under way as they may, so there are but a few.
    fn find_turn(&mut self, now: Instant) -> bool {
        for _ in 0..self.turns.len() {
            if self.may_send(&self.turns[0], now) {
                return true;
            }
            self.turns.rotate_left(1);
        }
        false
    }

    /// Whether a Job leaves enough of the server to others, if there are any.
    fn may_send(&self, job: &Arc<str>, now: Instant) -> bool {
        let is_other = |(sent, other): &(Instant, Arc<str>)| *other != *job && now - *sent < ABOUT;
        let has_others = self.turns.len() > 1 || self.last.iter().flatten().any(is_other);
        if !has_others {
            return true;
        }
        self.working(Some(job), now) < self.limit.unqueued_calls(now)
    }

    /// How many calls of a Job, or how many Events, the server works on.
    fn working(&self, job: Option<&Arc<str>>, now: Instant) -> usize {
        let working = self.began.range(self.hanging(now)..);
        working.filter(|(_, of)| of.as_ref() == job).count()
    }

    fn note_sender(&mut self, now: Instant, job: &Arc<str>) {
        if self.last[0].as_ref().is_none_or(|(_, last)| last != job) {
            self.last.swap(0, 1);
        }
        self.last[0] = Some((now, job.clone()));
    }

    fn next_in_turn(&mut self) -> (Arc<str>, W) {
        let job = self.turns.pop_front().expect("somebody waits");
        let queue = self.queues.get_mut(&job).expect("a Job that has its turn has a queue");
        let work = queue.pop().expect("a Job that has its turn has a call");
        if queue.is_empty() {
            self.queues.remove(&job);
        } else {
            self.turns.push_back(job.clone());
        }
        (job, work)
    }

    /// Takes back the call that was the next, and need not be made after all.
    pub(crate) fn take_back(&mut self) {
        self.began.pop_back();
        if let Some(tokens) = &mut self.tokens {
            tokens.left += 1.0;
        }
    }

    /// Whether the server bears another call. Those that hang are not its work, but as many as
    /// there may be at all there are at most.
    fn has_room(&self, now: Instant) -> bool {
        let working = self.began.len() - self.hanging(now);
        working < self.limit.calls() && self.began.len() < self.most
    }

    /// How many of the calls under way hang.
    fn hanging(&self, now: Instant) -> usize {
        self.began.partition_point(|(began, _)| now - *began >= HANGS_AFTER)
    }

    /// Takes note of the answer to a call, which was `sent` requests one after another.
    pub(crate) fn done(
        &mut self,
        now: Instant,
        job: &Arc<str>,
        verb: Verb,
        (took, sent): (Duration, u32),
        weather: Weather,
    ) {
        let in_flight = self.began.len() - self.hanging(now);
        self.forget_call(now, Some(job).filter(|_| verb != Verb::Event), took);
        if let Some(tokens) = &mut self.tokens {
            // One was paid for before; the others are paid for by those that come after.
            tokens.left -= f64::from(sent.max(1) - 1);
        }
        let took = took / sent.max(1);
        match (verb, weather) {
            (Verb::Event, Weather::Busy(asked)) => {
                let until = self.events_paused_until.max(Some(pause_end(now, asked)));
                self.events_paused_until = until;
            }
            (_, Weather::Busy(asked)) => {
                self.paused_until = self.paused_until.max(Some(pause_end(now, asked)));
                self.limit.note(now, verb, took, weather, in_flight);
            }
            (_, Weather::Fine | Weather::Trouble) => {
                self.limit.note(now, verb, took, weather, in_flight);
            }
        }
    }

    /// Takes out the call that has ended: the last of its Job that was begun as long ago as this one.
    fn forget_call(&mut self, now: Instant, job: Option<&Arc<str>>, took: Duration) {
        let began = now.checked_sub(took).unwrap_or(now);
        let older = self.began.partition_point(|(at, _)| *at <= began);
        let is_of_job = |(_, of): &(Instant, Option<Arc<str>>)| of.as_ref() == job;
        let place = self.began.range(..older).rposition(is_of_job);
        let place = place.or_else(|| self.began.iter().position(is_of_job));
        self.began.remove(place.expect("a call that ends was begun"));
    }

    /// When to ask again, if a call waits for nothing but the time.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let room = match self.has_room(now) {
            true => None,
            false => Some(self.next_hanging(now)?),
        };
        if self.turns.is_empty() && self.events.is_empty() {
            return None;
        }
        let first = if self.turns.iter().any(|job| self.may_send(job, now)) || self.may_tell(now) {
            now
        } else {
            // An answer makes room, or there will be none for long.
            let hanging = self.next_hanging(now);
            let events = self.events_paused_until.filter(|_| !self.events.is_empty());
            hanging.into_iter().chain(events).min()?
        };
        let token = self.tokens.as_ref().and_then(|tokens| tokens.next_at(now));
        Some(first).max(self.paused_until).max(token).max(room)
    }

    /// When the next call will count as one that hangs, if that makes room.
    fn next_hanging(&self, now: Instant) -> Option<Instant> {
        if self.began.len() >= self.most {
            return None;
        }
        let ends = self.began.iter().map(|(began, _)| *began + HANGS_AFTER);
        ends.into_iter().find(|end| *end > now)
    }

    /// How many calls wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many calls are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.began.len()
    }

    /// How many may be.
    pub(crate) fn limit(&self) -> usize {
        self.limit.calls()
    }

    fn take_token(&mut self, now: Instant) -> bool {
        let Some(tokens) = &mut self.tokens else {
            return true;
        };
        let earned = now.duration_since(tokens.at).as_secs_f64() * tokens.per_second;
        tokens.left = (tokens.left + earned).min(tokens.per_second.max(1.0));
        tokens.at = now;
        if tokens.left < 1.0 {
            return false;
        }
        tokens.left -= 1.0;
        true
    }
}

/// Until when a server is left alone that has asked for it.
fn pause_end(now: Instant, asked: Option<Duration>) -> Instant {
    now + asked.unwrap_or(BUSY_PAUSE).min(MAX_PAUSE)
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Queue {
            first: VecDeque::new(),
            creations: VecDeque::new(),
            pods: VecDeque::new(),
            is_turn_of_pods: false,
        }
    }
}

impl<W> Queue<W> {
    fn pop(&mut self) -> Option<W> {
        if let Some(work) = self.first.pop_front() {
            return Some(work);
        }
        let is_of_pods =
            !self.pods.is_empty() && (self.is_turn_of_pods || self.creations.is_empty());
        self.is_turn_of_pods = !is_of_pods;
        let lane = if is_of_pods { &mut self.pods } else { &mut self.creations };
        lane.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.creations.is_empty() && self.pods.is_empty()
    }
}

impl Tokens {
    fn next_at(&self, now: Instant) -> Option<Instant> {
        let missing = 1.0 - self.left;
        (missing > 0.0).then(|| {
            // A nanosecond more than it takes, so that rounding does not wake for nothing.
            let wait = Duration::from_secs_f64(missing / self.per_second);
            (self.at + wait + Duration::from_nanos(1)).max(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(1);

    fn drain(dispatch: &mut Dispatch<u32>, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| dispatch.next(now).map(|(_, work)| work)).collect()
    }

    /// Lets a Job have as many calls under way as the server bears, which takes 2 ms for each at first
    /// and then 40: so many are a queue. Answers how many there are.
    fn fill(dispatch: &mut Dispatch<u32>, job: &Arc<str>, now: &mut Instant) -> usize {
        let mut took = Duration::from_millis(2);
        for _ in 0..20 {
            drain(dispatch, *now);
            *now += took;
            for _ in 0..dispatch.in_flight() {
                dispatch.done(*now, job, Verb::Create, (took, 1), Weather::Fine);
            }
            took = Duration::from_millis(40);
        }
        drain(dispatch, *now).len()
    }

    #[test]
    fn a_job_with_one_call_waits_for_one_call_of_each_other() {
        let now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let (huge, small) = (Arc::from("huge"), Arc::from("small"));
        (0..1000).for_each(|work| dispatch.push(&huge, Lane::Create, work));
        dispatch.push(&small, Lane::Create, 7777);
        let sent = drain(&mut dispatch, now);
        assert_eq!(sent[..3], [0, 7777, 1]);
        assert_eq!((sent.len(), dispatch.in_flight(), dispatch.waiting()), (16, 16, 985));
    }

    #[test]
    fn while_others_are_about_no_job_fills_the_queue_of_the_server() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(64, None, now);
        let (huge, small) = (Arc::from("huge"), Arc::from("small"));
        // Alone it may have as many calls under way as the server bears, slow as that makes them.
        (0..2000).for_each(|work| dispatch.push(&huge, Lane::Create, work));
        assert_eq!(fill(&mut dispatch, &huge, &mut now), 64);
        // Then another one comes, for which as much is left as the server works on at once.
        dispatch.push(&small, Lane::Create, 7777);
        let took = Duration::from_millis(40);
        now += took;
        (0..60).for_each(|_| {
            dispatch.done(now, &huge, Verb::Create, (took, 1), Weather::Fine);
        });
        let sent = drain(&mut dispatch, now);
        assert!(sent[..2].contains(&7777), "{sent:?}");
        assert_eq!((sent.len(), dispatch.in_flight()), (5, 9));
        assert!(
            dispatch.wake_at(now).is_some_and(|at| at > now),
            "an answer, or a call that hangs"
        );
        // It is about as long as it may have more to ask for, and no longer.
        dispatch.done(now, &small, Verb::Create, (Duration::ZERO, 1), Weather::Fine);
        now += ABOUT - Duration::from_millis(1);
        assert_eq!(drain(&mut dispatch, now).len(), 0);
        now += Duration::from_millis(1);
        assert_eq!(drain(&mut dispatch, now).len(), 64 - 8);
    }

    #[test]
    fn calls_that_hang_do_not_take_the_place_of_others_of_their_job() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(64, None, now);
        let (stuck, other) = (Arc::from("stuck"), Arc::from("other"));
        (0..2000).for_each(|work| dispatch.push(&stuck, Lane::Create, work));
        let under_way = fill(&mut dispatch, &stuck, &mut now);
        (0..under_way).for_each(|_| {
            dispatch.done(now, &stuck, Verb::Create, (Duration::ZERO, 1), Weather::Fine);
        });
        dispatch.push(&other, Lane::Create, 0);
        assert_eq!(drain(&mut dispatch, now).len(), 1 + 8);
        let at = dispatch.wake_at(now).expect("it does not wait for answers alone");
        assert_eq!(at - now, HANGS_AFTER);
        dispatch.push(&other, Lane::Create, 0);
        // By then nobody knows any more how many the server works on at once.
        assert_eq!(drain(&mut dispatch, at).len(), 1 + 16);
    }

    #[test]
    fn events_fill_no_queue_of_the_server_and_their_job_does_not_wait_for_them() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(64, None, now);
        let (loud, other) = (Arc::from("loud"), Arc::from("other"));
        (0..2000).for_each(|_| dispatch.push(&loud, Lane::Create, 1));
        let under_way = fill(&mut dispatch, &loud, &mut now);
        (0..under_way).for_each(|_| {
            dispatch.done(now, &loud, Verb::Create, (Duration::ZERO, 1), Weather::Fine);
        });
        (0..20).for_each(|_| dispatch.push(&loud, Lane::Event, 2));
        dispatch.push(&other, Lane::Create, 3);
        let sent = drain(&mut dispatch, now);
        let sent = [1, 2, 3].map(|work| sent.iter().filter(|sent| **sent == work).count());
        assert_eq!(sent, [8, 8, 1]);
        assert_eq!(dispatch.wake_at(now), Some(now + HANGS_AFTER), "or an answer, and no sooner");
        dispatch.done(now, &loud, Verb::Event, (Duration::ZERO, 1), Weather::Fine);
        assert_eq!(drain(&mut dispatch, now), [2]);
    }

    #[test]
    fn within_a_job_the_status_goes_first_and_the_rest_takes_turns() {
        let now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let job = Arc::from("job");
        for work in [10, 11, 12] {
            dispatch.push(&job, Lane::Create, work);
        }
        for work in [20, 21] {
            dispatch.push(&job, Lane::Pod, work);
        }
        dispatch.push(&job, Lane::Event, 30);
        dispatch.push(&job, Lane::First, 1);
        assert_eq!(drain(&mut dispatch, now), [1, 10, 20, 11, 21, 12, 30]);
    }

    #[test]
    fn events_of_any_job_wait_for_the_calls_of_all_but_not_for_ever() {
        let now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let (loud, busy) = (Arc::from("loud"), Arc::from("busy"));
        (100..103).for_each(|work| dispatch.push(&loud, Lane::Event, work));
        (0..11).for_each(|work| dispatch.push(&busy, Lane::Create, work));
        let sent = drain(&mut dispatch, now);
        assert_eq!(sent, [0, 1, 2, 3, 4, 5, 6, 7, 100, 8, 9, 10, 101, 102]);
    }

    #[test]
    fn events_that_are_too_many_to_be_kept_take_turns_with_the_rest() {
        let now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let job = Arc::from("job");
        let many = MOST_PATIENT as u32 + 2;
        (1..=many).for_each(|event| dispatch.push(&job, Lane::Event, event));
        (0..12).for_each(|_| dispatch.push(&job, Lane::Create, 0));
        let sent = drain(&mut dispatch, now);
        assert_eq!(sent, [0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 4]);
    }

    #[test]
    fn a_server_that_asks_for_time_is_left_alone_for_that_time() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let job = Arc::from("job");
        dispatch.push(&job, Lane::Pod, 1);
        dispatch.push(&job, Lane::Pod, 2);
        assert_eq!(dispatch.next(now).expect("a call").1, 1);
        let asked = Duration::from_secs(3);
        dispatch.done(now, &job, Verb::Patch, (QUICK, 1), Weather::Busy(Some(asked)));
        dispatch.put_back(&job, Lane::Pod, 1);
        assert!(dispatch.next(now).is_none());
        assert_eq!(dispatch.wake_at(now), Some(now + asked));
        now += asked;
        assert_eq!(drain(&mut dispatch, now), [1, 2]);
    }

    #[test]
    fn a_cautious_operator_gets_no_more_calls_a_second_than_asked_for() {
        let start = Instant::now();
        let mut now = start;
        let mut dispatch = Dispatch::new(100, Some(5.0), now);
        let job = Arc::from("job");
        (0..20).for_each(|work| dispatch.push(&job, Lane::Create, work));
        let mut sent = drain(&mut dispatch, now).len();
        assert_eq!(sent, 5);
        while sent < 20 {
            now = dispatch.wake_at(now).expect("it waits for the time");
            let more = drain(&mut dispatch, now).len();
            (0..more)
                .for_each(|_| dispatch.done(now, &job, Verb::Create, (QUICK, 1), Weather::Fine));
            sent += more;
        }
        let took = now.duration_since(start).as_secs_f64();
        assert!((2.9..3.2).contains(&took), "{took}");
    }

    #[test]
    fn a_server_that_wants_fewer_events_gets_everything_else() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(100, None, now);
        let (chatty, quiet) = (Arc::from("chatty"), Arc::from("quiet"));
        (0..2).for_each(|work| dispatch.push(&chatty, Lane::Event, work));
        assert_eq!(dispatch.next(now).expect("a call").1, 0);
        let limit = dispatch.limit();
        dispatch.done(
            now,
            &chatty,
            Verb::Event,
            (QUICK, 1),
            Weather::Busy(Some(Duration::from_secs(3))),
        );
        dispatch.put_back(&chatty, Lane::Event, 0);
        assert_eq!(dispatch.limit(), limit, "Events say nothing of the rest");
        dispatch.push(&quiet, Lane::Create, 10);
        dispatch.push(&quiet, Lane::Event, 11);
        assert_eq!(drain(&mut dispatch, now), [10]);
        dispatch.push(&chatty, Lane::Pod, 20);
        assert_eq!(drain(&mut dispatch, now), [20]);
        assert_eq!(dispatch.wake_at(now), Some(now + Duration::from_secs(3)));
        assert_eq!((dispatch.waiting(), dispatch.in_flight()), (3, 2));
        now += Duration::from_secs(3);
        assert_eq!(drain(&mut dispatch, now), [0, 1, 11], "in the order in which they were told");
        assert_eq!(dispatch.waiting(), 0);
        assert!(dispatch.queues.is_empty() && dispatch.turns.is_empty());
    }

    #[test]
    fn a_call_that_hangs_holds_up_nobody() {
        let start = Instant::now();
        let mut dispatch = Dispatch::new(4, None, start);
        let job = Arc::from("job");
        // Trouble takes the limit down to one.
        for second in 0..10 {
            dispatch.push(&job, Lane::Create, 0);
            let now = start + Duration::from_secs(second);
            assert!(dispatch.next(now).is_some());
            dispatch.done(now, &job, Verb::Create, (QUICK, 1), Weather::Trouble);
        }
        let mut now = start + Duration::from_secs(10);
        assert_eq!(dispatch.limit(), 1);
        (1..=9).for_each(|work| dispatch.push(&job, Lane::Create, work));
        assert_eq!(drain(&mut dispatch, now), [1]);
        let began = now;
        now = dispatch.wake_at(now).expect("it does not wait for the answer alone");
        assert_eq!(now, began + HANGS_AFTER);
        assert_eq!(drain(&mut dispatch, now), [2]);
        // The others go on beside it, one at a time.
        dispatch.done(now, &job, Verb::Create, (Duration::ZERO, 1), Weather::Trouble);
        assert_eq!(drain(&mut dispatch, now), [3]);
        // Where all hang there are as many as there may be, and no more.
        for _ in 0..2 {
            now += HANGS_AFTER;
            assert_eq!(drain(&mut dispatch, now).len(), 1);
        }
        assert_eq!((dispatch.in_flight(), dispatch.wake_at(now)), (4, None));
    }

    #[test]
    fn a_call_of_many_requests_is_paid_for_as_many() {
        let mut now = Instant::now();
        let mut dispatch = Dispatch::new(100, Some(1.0), now);
        let job = Arc::from("job");
        (0..2).for_each(|work| dispatch.push(&job, Lane::First, work));
        assert_eq!(drain(&mut dispatch, now), [0]);
        now += Duration::from_secs(1);
        dispatch.done(now, &job, Verb::List, (Duration::from_secs(1), 5), Weather::Fine);
        assert!(dispatch.next(now).is_none(), "a second has paid for one of five");
        let next = dispatch.wake_at(now).expect("it waits for the time");
        assert_eq!((next - now).as_secs(), 4);
        assert_eq!(drain(&mut dispatch, next), [1]);
    }

    #[test]
    fn a_limit_that_is_no_number_of_calls_is_still_one() {
        for qps in [f64::NAN, -1.0, 0.0, 1e-300, f64::NEG_INFINITY] {
            let now = Instant::now();
            let mut dispatch = Dispatch::new(100, Some(qps), now);
            let job = Arc::from("job");
            (0..9).for_each(|work| dispatch.push(&job, Lane::Create, work));
            assert_eq!(drain(&mut dispatch, now).len(), 1, "{qps}");
            let next = dispatch.wake_at(now).expect("it waits for the time");
            assert!(next - now <= Duration::from_secs(11), "{qps}: {:?}", next - now);
            assert_eq!(drain(&mut dispatch, next).len(), 1, "{qps}");
        }
        let now = Instant::now();
        let mut dispatch = Dispatch::new(100, Some(f64::INFINITY), now);
        let job = Arc::from("job");
        (0..9).for_each(|work| dispatch.push(&job, Lane::Create, work));
        assert_eq!(drain(&mut dispatch, now).len(), 9);
    }

    #[test]
    fn the_limit_holds_whatever_waits() {
        let now = Instant::now();
        let mut dispatch = Dispatch::new(3, None, now);
        let job = Arc::from("job");
        (0..9).for_each(|work| dispatch.push(&job, Lane::Create, work));
        assert_eq!(drain(&mut dispatch, now), [0, 1, 2]);
        assert_eq!(dispatch.wake_at(now), None, "an answer wakes it, not the time");
        dispatch.done(now, &job, Verb::Create, (QUICK, 1), Weather::Fine);
        assert_eq!(drain(&mut dispatch, now), [3]);
    }
}
