//! How many calls the server bears at once.
//!
//! ```text
//!   begin ─▶ doubling with each round trip ─▶ one more with each round trip
//!                        │                              │
//!                        └──── too slow: a tenth less, down to eight ──┤
//!                        └──── refused, lost: half, down to one ───────┘
//! ```
//!
//! As TCP does it: more as long as that goes well, much less at once when it does not. A server
//! that answers slowly is one that has queued; that is noticed before it has to refuse. A queue
//! holds up everybody: calls of which some are slow and others are not (a webhook of one
//! namespace) are no queue, and cost the others nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::answer::Weather;

/// How many calls are under way at first: about what one core of an API server works on.
const FIRST: f64 = 16.0;

/// Never fewer than this.
const LEAST: f64 = 1.0;

/// Never fewer than this only because answers are slow: half of what there is at first. A server
/// that cannot bear so many refuses.
const LEAST_SLOW: f64 = 8.0;

/// How many answers of a verb are looked back on. Whether they are slow is judged when there
/// are as many, and by the fast ones among them.
const RECENT: usize = 16;

/// Which of them counts, the fastest first: three quarters are slower.
const JUDGED: usize = RECENT / 4;

/// Answers may take so many times as long as they do at best, and this long besides, before
/// they count as slow: a server that queues nothing varies by that much.
const SLOW_FACTOR: u32 = 4;
const SLOW_SLACK: Duration = Duration::from_millis(50);

/// A call that takes no longer than so many times as long as at best has not waited behind others. Both
/// are taken for this much longer: what is answered at once may take some milliseconds as well.
const QUEUED_FACTOR: f64 = 2.0;
const QUEUED_SLACK: Duration = Duration::from_millis(5);

/// For how long it is believed how many calls of a verb make no queue.
const UNQUEUED_AGE: Duration = Duration::from_secs(1);

/// For how long the best time of an answer is believed. A server may have become slower for
/// good: its objects have grown.
const BEST_AGE: Duration = Duration::from_secs(60);

/// The shortest time between two cuts: what is under way was sent without knowing.
const CUT_EVERY: Duration = Duration::from_millis(200);

/// What a call is like, for how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verb {
    /// A POST.
    Create,
    /// A PATCH of a Pod.
    Patch,
    /// A PATCH of a Job's status.
    Status,
    /// A DELETE.
    Delete,
    /// A GET of one object.
    Get,
    /// A list.
    List,
    /// An Event.
    Event,
}

impl Verb {
    /// How it is called in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Status => "status",
            Verb::Delete => "delete",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Event => "event",
        }
    }
}

const VERBS: usize = 7;

/// How many calls the server bears.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    limit: f64,
    most: f64,
    is_doubling: bool,
    last_cut: Option<Instant>,
    times: [Option<Times>; VERBS],
}

/// How long the calls of a verb take.
#[derive(Clone, Copy, Debug)]
struct Times {
    best: Duration,
    best_since: Instant,
    /// The last ones; the oldest of them is at `count` modulo their number.
    recent: [Duration; RECENT],
    count: usize,
    /// How many calls the server worked on at once when the last one was answered.
    unqueued: f64,
    noted: Instant,
}

impl Limit {
    /// A limit that stays at `most` or below.
    pub(crate) fn new(most: usize) -> Self {
        let most = (most as f64).max(LEAST);
        let limit = FIRST.min(most);
        Limit { limit, most, is_doubling: true, last_cut: None, times: [None; VERBS] }
    }

    /// How many calls may be under way.
    pub(crate) fn calls(&self) -> usize {
        self.limit as usize
    }

    /// How many calls may be under way without a queue in the server: TCP Vegas' measure. It is told by
    /// the verb that bears most, as others may wait for a webhook and not for the server. It is never
    /// fewer than slowness alone can bring the limit down to.
    pub(crate) fn unqueued_calls(&self, now: Instant) -> usize {
        let is_new = |times: &&Times| {
            times.count >= RECENT && now.duration_since(times.noted) < UNQUEUED_AGE
        };
        let known = self.times.iter().flatten().filter(is_new).map(|times| times.unqueued);
        let unqueued = known.reduce(f64::max).unwrap_or(FIRST);
        unqueued.max(LEAST_SLOW).min(self.limit) as usize
    }

    /// Takes note of an answer; `in_flight` is how many calls were under way with it.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        verb: Verb,
        took: Duration,
        weather: Weather,
        in_flight: usize,
    ) {
        match weather {
            Weather::Busy(_) | Weather::Trouble => self.cut(now, took, 0.5, LEAST),
            Weather::Fine if self.is_slow(now, verb, took, in_flight) => {
                self.cut(now, took, 0.9, LEAST_SLOW);
            }
            // Where not even half of it was needed nothing has been learned.
            Weather::Fine if (in_flight as f64) < self.limit / 2.0 => {}
            Weather::Fine => {
                let more = if self.is_doubling { 1.0 } else { 1.0 / self.limit };
                self.limit = (self.limit + more).min(self.most);
            }
        }
    }

    /// Takes less at once, but not less than `least` where it was more.
    fn cut(&mut self, now: Instant, took: Duration, factor: f64, least: f64) {
        self.is_doubling = false;
        let is_known = |last: Instant| now.duration_since(last) < CUT_EVERY.max(took);
        if !self.last_cut.is_some_and(is_known) {
            self.last_cut = Some(now);
            self.limit = (self.limit * factor).max(least.min(self.limit));
        }
    }

    fn is_slow(&mut self, now: Instant, verb: Verb, took: Duration, in_flight: usize) -> bool {
        let known = &mut self.times[verb as usize];
        let times = known.get_or_insert_with(|| Times {
            best: took,
            best_since: now,
            recent: [took; RECENT],
            count: 0,
            unqueued: FIRST,
            noted: now,
        });
        times.note(now, took);
        let (best, judged) = (times.best, times.judged());
        let speed = (best + QUEUED_SLACK).as_secs_f64() / (judged + QUEUED_SLACK).as_secs_f64();
        times.unqueued = in_flight as f64 * QUEUED_FACTOR * speed;
        times.count >= RECENT && judged > best * SLOW_FACTOR + SLOW_SLACK
    }
}

impl Times {
    fn note(&mut self, now: Instant, took: Duration) {
        self.noted = now;
        self.recent[self.count % RECENT] = took;
        self.count += 1;
        let is_old = now.duration_since(self.best_since) > BEST_AGE;
        if took <= self.best || is_old {
            self.best = if is_old { self.judged().min(took) } else { took };
            self.best_since = now;
        }
    }

    /// How long a call takes that nothing but the server holds up.
    fn judged(&self) -> Duration {
        let mut recent = self.recent;
        *recent.select_nth_unstable(JUDGED).1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FAST: Duration = Duration::from_millis(5);

    #[test]
    fn it_doubles_until_the_server_asks_for_less_and_then_grows_slowly() {
        let mut limit = Limit::new(100);
        let mut now = Instant::now();
        let round = |limit: &mut Limit, now: &mut Instant, weather| {
            *now += Duration::from_secs(1);
            let calls = limit.calls();
            for _ in 0..calls {
                limit.note(*now, Verb::Create, FAST, weather, calls);
            }
        };
        let mut seen = vec![limit.calls()];
        for weather in [Weather::Fine, Weather::Fine, Weather::Fine, Weather::Busy(None)] {
            round(&mut limit, &mut now, weather);
            seen.push(limit.calls());
        }
        assert_eq!(seen, [16, 32, 64, 100, 50]);
        round(&mut limit, &mut now, Weather::Fine);
        assert!((50..=51).contains(&limit.calls()), "{}", limit.calls());
        for _ in 0..20 {
            round(&mut limit, &mut now, Weather::Trouble);
        }
        assert_eq!(limit.calls(), 1);
    }

    #[test]
    fn slow_answers_mean_that_the_server_has_queued() {
        let mut limit = Limit::new(100);
        let mut now = Instant::now();
        limit.note(now, Verb::Create, FAST, Weather::Fine, 16);
        let before = limit.calls();
        for _ in 0..400 {
            now += Duration::from_millis(100);
            limit.note(now, Verb::Create, Duration::from_millis(400), Weather::Fine, 16);
        }
        assert!(limit.calls() < before, "{} of {before}", limit.calls());
        // Slowness alone takes no more than that.
        assert_eq!(limit.calls(), 8);
        limit.note(now + Duration::from_secs(1), Verb::Create, FAST, Weather::Trouble, 8);
        assert_eq!(limit.calls(), 4);
    }

    /// A webhook holds up the creations of a namespace: every so-many-th takes half a second.
    /// Calls end in the order of time, and as many are under way as may be.
    #[test]
    fn slow_calls_of_some_do_not_take_the_place_of_all() {
        for one_in in [2, 4] {
            let start = Instant::now();
            let mut limit = Limit::new(64);
            let mut under_way = BTreeSet::new();
            let (mut at, mut number) = (Duration::ZERO, 0_u64);
            while at < Duration::from_secs(70) {
                while under_way.len() < limit.calls() {
                    number += 1;
                    let took = Duration::from_millis(if number % one_in == 0 { 500 } else { 5 });
                    under_way.insert((at + took, number, took));
                }
                let in_flight = under_way.len();
                let (end, _, took) = under_way.pop_first().expect("some are under way");
                at = end;
                limit.note(start + at, Verb::Create, took, Weather::Fine, in_flight);
            }
            assert!(limit.calls() > 32, "one in {one_in} is slow: {} at once", limit.calls());
        }
    }

    #[test]
    fn how_many_calls_make_no_queue_is_told_by_how_long_they_take() {
        let mut limit = Limit::new(100);
        let now = Instant::now();
        assert_eq!(limit.unqueued_calls(now), 16, "nothing is known yet");
        let answers = |limit: &mut Limit, verb, millis, in_flight| {
            let took = Duration::from_millis(millis);
            for _ in 0..100 {
                limit.note(now, verb, took, Weather::Fine, in_flight);
            }
            limit.unqueued_calls(now)
        };
        assert_eq!(answers(&mut limit, Verb::Create, 5, 100), 100, "no more than at all");
        assert_eq!(answers(&mut limit, Verb::Create, 5, 40), 80);
        assert_eq!(answers(&mut limit, Verb::Create, 15, 40), 40);
        assert_eq!(answers(&mut limit, Verb::Create, 25, 40), 26);
        assert_eq!(answers(&mut limit, Verb::Create, 65, 40), 11);
        assert_eq!(answers(&mut limit, Verb::Create, 65, 20), 8, "so many hold up nobody");
        // A webhook holds up creations, and nothing else.
        assert_eq!(answers(&mut limit, Verb::Patch, 5, 40), 80);
        assert_eq!(limit.unqueued_calls(now + UNQUEUED_AGE), 16, "that is long ago");
    }

    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut limit = Limit::new(100);
        for _ in 0..100 {
            limit.note(Instant::now(), Verb::Get, FAST, Weather::Fine, 1);
        }
        assert_eq!(limit.calls(), 16);
    }
}
