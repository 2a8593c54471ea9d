//! Work by key: each key at most once at a time, and again if it is asked for meanwhile or was
//! refused. It knows nothing of the work, and no clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Instant;

use crate::pace;

/// What came of the work on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing is left to do until the key is asked for again.
    Done,
    /// There is more to do.
    Again,
    /// It was refused, and will be tried again after a while.
    Failed,
}

/// The keys that there is work on.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    ready: VecDeque<K>,
    /// By when they are due; the number tells those of one moment apart.
    waiting: BTreeMap<(Instant, u64), K>,
    works: HashMap<K, Work>,
    count: u64,
}

#[derive(Debug)]
struct Work {
    state: State,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Busy { is_asked_again: bool },
    Waiting((Instant, u64)),
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let (ready, waiting, works) = Default::default();
        Queue { ready, waiting, works, count: 0 }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Asks for work on a key.
    pub(crate) fn add(&mut self, key: K) {
        let Some(work) = self.works.get_mut(&key) else {
            self.works.insert(key.clone(), Work { state: State::Ready, failures: 0 });
            self.ready.push_back(key);
            return;
        };
        match work.state {
            State::Ready => {}
            State::Busy { .. } => work.state = State::Busy { is_asked_again: true },
            State::Waiting(place) => {
                work.state = State::Ready;
                self.waiting.remove(&place);
                self.ready.push_back(key);
            }
        }
    }

    /// A key to work on now.
    pub(crate) fn take(&mut self, now: Instant) -> Option<K> {
        while let Some(due) = self.waiting.first_entry()
            && due.key().0 <= now
        {
            let key = due.remove();
            self.works.get_mut(&key).expect("who waits has work").state = State::Ready;
            self.ready.push_back(key);
        }
        let key = self.ready.pop_front()?;
        let work = self.works.get_mut(&key).expect("who is ready has work");
        work.state = State::Busy { is_asked_again: false };
        Some(key)
    }

    /// Says what came of the work on a key that was taken.
    pub(crate) fn settle(&mut self, key: K, settled: Settled, now: Instant) {
        let work = self.works.get_mut(&key).expect("who was taken has work");
        let is_asked_again = work.state == State::Busy { is_asked_again: true };
        match settled {
            Settled::Done if !is_asked_again => {
                self.works.remove(&key);
            }
            Settled::Done | Settled::Again => {
                work.failures = 0;
                work.state = State::Ready;
                self.ready.push_back(key);
            }
            Settled::Failed => {
                work.failures = work.failures.saturating_add(1);
                self.count += 1;
                let place = (now + pace::delay(work.failures), self.count);
                work.state = State::Waiting(place);
                self.waiting.insert(place, key);
            }
        }
    }

    /// When the next key is due that was refused before.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_key_is_worked_on_once_at_a_time_and_again_if_asked_for_meanwhile() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.take(now), Some("a"));
        queue.add("a");
        assert_eq!(queue.take(now), None);
        queue.settle("a", Settled::Done, now);
        assert_eq!(queue.take(now), Some("a"));
        queue.settle("a", Settled::Done, now);
        assert_eq!(queue.take(now), None);
        assert!(queue.works.is_empty());
    }

    #[test]
    fn a_key_that_failed_waits_unless_it_is_asked_for() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for key in ["a", "b"] {
            queue.add(key);
            let taken = queue.take(now).expect("it was added");
            queue.settle(taken, Settled::Failed, now);
        }
        assert_eq!(queue.take(now), None);
        queue.add("b");
        assert_eq!(queue.take(now), Some("b"));
        let later = now + Duration::from_millis(5);
        assert_eq!(queue.take(later), Some("a"));
        assert_eq!(queue.take(later), None);
    }
}
