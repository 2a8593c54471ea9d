//! How many watches and logs go on at once, or visits, and how many of them may be one client's. It must not
//! know what they tell.
//!
//! # Guarantees
//!
//! - A client may have a small part of what is left for all others ([`SHARE`]), and always one as
//!   long as any is left. It takes more than two hundred greedy connections to leave none: a
//!   connection has 250 at most, and each that comes finds less than the one before.
//! - Nobody is refused where there is no limit.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::places::Client;

/// Which part of those that are left one client may have: of ten thousand that is more than a
/// connection can have under way, and of a thousand as many as a client needs that watches every
/// kind.
pub(super) const SHARE: usize = 32;

/// The watches and logs of some clients. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub(super) struct LongRunning {
    /// None if there may be any number.
    state: Option<Arc<Mutex<State>>>,
}

#[derive(Debug)]
struct State {
    /// Which part of those that are left one client may have.
    share: usize,
    left: usize,
    /// How many each client has; none of them is zero.
    taken: HashMap<Client, usize>,
}

/// Why there is no place for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// How many are left, for whoever has fewer.
    left: usize,
    /// How many the client has.
    taken: usize,
}

impl LongRunning {
    /// At most so many, and for one client no more than such a part of those that are left.
    pub(super) fn at_most(count: usize, share: usize) -> Self {
        let state = State { share, left: count, taken: HashMap::new() };
        LongRunning { state: Some(Arc::new(Mutex::new(state))) }
    }

    /// Any number.
    pub(super) fn unlimited() -> Self {
        LongRunning { state: None }
    }

    /// A place for one more.
    pub(super) fn take(&self, client: Client) -> Result<Held, Refused> {
        let Some(shared) = &self.state else { return Ok(Held { taken: None }) };
        let mut state = lock(shared);
        let (left, taken) = (state.left, state.taken.get(&client).copied().unwrap_or(0));
        if taken * state.share >= left {
            return Err(Refused { left, taken });
        }
        state.left -= 1;
        *state.taken.entry(client.clone()).or_default() += 1;
        drop(state);
        Ok(Held { taken: Some((shared.clone(), client)) })
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nobody panics here")
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused { left: 0, .. } => {
                f.write_str("Too many watches are under way, please try again later.")
            }
            Refused { left, taken } => write!(
                f,
                "Too many watches are under way on this connection: it has {taken}, and of the \
                 {left} that are left others may want some. Please end some of them, or try again \
                 later."
            ),
        }
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    taken: Option<(Arc<Mutex<State>>, Client)>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((state, client)) = &self.taken else { return };
        let mut state = lock(state);
        state.left += 1;
        let count = state.taken.get_mut(client).expect("who has one is counted");
        *count -= 1;
        if *count == 0 {
            state.taken.remove(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> Client {
        Client { user: "admin".to_owned(), address: Some(([127, 0, 0, 1], port).into()) }
    }

    /// As many as a client can get.
    fn greedy(watches: &LongRunning, port: u16) -> Vec<Held> {
        std::iter::from_fn(|| watches.take(client(port)).ok()).collect()
    }

    #[test]
    fn nobody_gets_more_than_a_share_of_what_is_left() {
        let watches = LongRunning::at_most(330, SHARE);
        let first = greedy(&watches, 1);
        assert_eq!(first.len(), 10);
        let second = greedy(&watches, 2);
        assert_eq!(second.len(), 10);
        let refused = watches.take(client(1)).expect_err("it has its share");
        assert_eq!(refused, Refused { left: 310, taken: 10 });
        let said = refused.to_string();
        assert!(said.contains("it has 10, and of the 310 that are left"), "{said}");
        drop((first, second));
        let state = watches.state.expect("it is limited");
        let state = lock(&state);
        assert_eq!((state.left, state.taken.len()), (330, 0));
    }

    #[test]
    fn one_user_can_have_half_of_the_visits() {
        let visits = LongRunning::at_most(128, 1);
        let first = greedy(&visits, 1);
        let second = greedy(&visits, 2);
        assert_eq!((first.len(), second.len()), (64, 32));
    }

    #[test]
    fn two_hundred_greedy_connections_leave_some() {
        /// As many as a connection can have.
        const STREAMS: usize = 250;
        let watches = LongRunning::at_most(10_000, SHARE);
        let some = |port| (0..STREAMS).map_while(move |_| watches.take(client(port)).ok());
        let held: Vec<Vec<Held>> = (0..200).map(|port| some.clone()(port).collect()).collect();
        assert_eq!(held[0].len(), STREAMS);
        assert!(held.iter().all(|held| !held.is_empty()));
    }
}
