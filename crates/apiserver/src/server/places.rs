//! How many requests are under way at once, and whose turn it is when there are more. It must not
//! know what requests ask for.
//!
//! ```text
//! comes ──a place is free──▶ under way ──answered──▶ being read ──to its end, or dropped──▶ gone
//!   │                                                   │ not read for a while, and somebody waits
//!   │ none is free                                      ▼
//!   └──▶ waits ──too long──▶ refused                 taken back: what was left of it is dropped
//! ```
//!
//! Bodies of requests have places of their own, before that: a request has one from when its body
//! begins to come until it is under way itself. A body that does not come is taken back as an
//! answer is that is not read.
//!
//! # Guarantees
//!
//! - The user with the fewest places gets the next one, and of its connections the one with the fewest: a
//!   client that asks for thousands of things at once waits for itself, and hardly anybody else does.
//! - Somebody who does not read what was asked for, or does not send what is to be written, keeps
//!   nobody waiting for longer than [`Limits::stall_time`](super::Limits::stall_time), and of an
//!   answer leaves nothing in memory but what was sent already.
//! - A place is given back whatever happens to what it was for, a panic included.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::{Lease, Lent};

/// Who shares a turn: one caller on one connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    /// The name of the caller.
    pub(super) user: String,
    /// Where the connection comes from; none within this process.
    pub(super) address: Option<SocketAddr>,
}

/// The places of a server. Clones are handles to the same ones.
#[derive(Clone, Debug)]
pub(super) struct Places {
    state: Arc<Mutex<State>>,
    stall_time: Duration,
}

#[derive(Debug, Default)]
struct State {
    free: usize,
    /// How many places each client has; none of them is zero.
    taken: HashMap<Client, usize>,
    /// The same of each user, on whatever connections.
    taken_by_user: HashMap<String, usize>,
    /// Who waits; none of the lines is empty. While anybody does, nothing is free.
    waiting: HashMap<Client, VecDeque<Waiting>>,
    /// What can be taken back: answers that are being read, and bodies that are coming.
    loans: HashMap<u64, Loan>,
    last_id: u64,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    turn: oneshot::Sender<Place>,
}

#[derive(Debug)]
struct Loan {
    client: Client,
    /// When the client last did its part.
    since: Instant,
    what: Lending,
}

#[derive(Debug)]
enum Lending {
    /// An answer that is being read.
    Answer(Lent),
    /// A body that is coming; whoever reads it learns that this is gone.
    Body { _reader: oneshot::Sender<Infallible> },
}

impl Places {
    /// So many places; an answer that is not read for `stall_time` has none for long.
    pub(super) fn new(count: usize, stall_time: Duration) -> Self {
        let state = State { free: count, ..State::default() };
        Places { state: Arc::new(Mutex::new(state)), stall_time }
    }

    /// A place, as soon as it is this client's turn; none if that takes too long.
    pub(super) async fn take(&self, client: Client, queue_time: Duration) -> Option<Place> {
        let mut ticket = match self.ask(client) {
            Ok(place) => return Some(place),
            Err(ticket) => ticket,
        };
        timeout(queue_time, ticket.wait()).await.ok()
    }

    fn ask(&self, client: Client) -> Result<Place, Ticket> {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            state.count(&client);
            return Ok(self.given(client));
        }
        let (turn, given) = oneshot::channel();
        let id = state.next_id();
        state.waiting.entry(client.clone()).or_default().push_back(Waiting { id, turn });
        drop(state);
        Err(Ticket { places: self.clone(), client, id, given })
    }

    /// A place of this client is free: whose turn is it?
    fn give_back(&self, client: &Client) {
        let mut state = self.state();
        state.discount(client);
        while let Some((next, turn)) = state.next_turn() {
            state.count(&next);
            let Err(mut place) = turn.send(self.given(next)) else { return };
            // Whoever it was has just left. Its end must not come back here: this is locked.
            place.is_given = false;
            state.discount(&place.client);
        }
        state.free += 1;
    }

    /// Takes the places back of those who have not done their part for too long, as far as anybody
    /// waits. When to look again; none if nothing is lent.
    fn take_back(&self, now: Instant) -> Option<Instant> {
        loop {
            let mut state = self.state();
            let slowest = state.loans.iter().min_by_key(|(_, loan)| loan.since);
            let (&id, loan) = slowest?;
            let stalled_at = loan.since + self.stall_time;
            if state.waiting.is_empty() || stalled_at > now {
                return Some(stalled_at);
            }
            let Loan { client, what, .. } = state.loans.remove(&id).expect("it was just there");
            drop(state);
            // Given back at the end, also if what is dropped here panics.
            let _place = self.given(client);
            match what {
                Lending::Answer(answer) => answer.take_back(),
                Lending::Body { .. } => {}
            }
        }
    }

    fn given(&self, client: Client) -> Place {
        Place { places: self.clone(), client, is_given: true }
    }

    /// Whether nobody has a place that could be taken back.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.state().loans.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics here")
    }
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A client has one place more.
    fn count(&mut self, client: &Client) {
        *self.taken.entry(client.clone()).or_default() += 1;
        match self.taken_by_user.get_mut(&client.user) {
            Some(count) => *count += 1,
            None => drop(self.taken_by_user.insert(client.user.clone(), 1)),
        }
    }

    /// A client has one place less.
    fn discount(&mut self, client: &Client) {
        let count = self.taken.get_mut(client).expect("who has a place is counted");
        *count -= 1;
        if *count == 0 {
            self.taken.remove(client);
        }
        let count = self.taken_by_user.get_mut(&client.user).expect("so is every user");
        *count -= 1;
        if *count == 0 {
            self.taken_by_user.remove(&client.user);
        }
    }

    /// The first of those who wait of the user with the fewest places, and of that user's clients
    /// the one with the fewest; of several such the one who has waited longest.
    fn next_turn(&mut self) -> Option<(Client, oneshot::Sender<Place>)> {
        let order = |(client, line): &(&Client, &VecDeque<Waiting>)| {
            let by_user = self.taken_by_user.get(&client.user).copied().unwrap_or(0);
            let taken = self.taken.get(client).copied().unwrap_or(0);
            (by_user, taken, line.front().map(|first| first.id))
        };
        let client = self.waiting.iter().min_by_key(order)?.0.clone();
        let line = self.waiting.get_mut(&client).expect("it was just there");
        let first = line.pop_front().expect("no line is empty");
        if line.is_empty() {
            self.waiting.remove(&client);
        }
        Some((client, first.turn))
    }
}

/// A place in the line.
struct Ticket {
    places: Places,
    client: Client,
    id: u64,
    given: oneshot::Receiver<Place>,
}

impl Ticket {
    async fn wait(&mut self) -> Place {
        loop {
            let look_again = self.places.take_back(Instant::now());
            let look_again = look_again.unwrap_or_else(|| Instant::now() + self.places.stall_time);
            tokio::select! {
                given = &mut self.given => return given.expect("whoever waits gets a turn"),
                () = sleep_until(look_again) => {}
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.places.state();
        if let Some(line) = state.waiting.get_mut(&self.client) {
            line.retain(|waiting| waiting.id != self.id);
            if line.is_empty() {
                state.waiting.remove(&self.client);
            }
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    client: Client,
    /// Whether it is to be given back.
    is_given: bool,
}

impl Place {
    /// The same for an answer that is being read.
    pub(super) fn lend(self, answer: Lent) -> Box<dyn Lease> {
        Box::new(self.lent(Lending::Answer(answer)))
    }

    /// The same for a request whose body is coming.
    pub(super) fn receive(self) -> Receiving {
        let (_reader, taken_back) = oneshot::channel();
        Receiving { borrowed: self.lent(Lending::Body { _reader }), taken_back }
    }

    fn lent(mut self, what: Lending) -> Borrowed {
        let mut state = self.places.state();
        let id = state.next_id();
        let client = self.client.clone();
        state.loans.insert(id, Loan { client, since: Instant::now(), what });
        drop(state);
        self.is_given = false;
        Borrowed { places: self.places.clone(), id }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_given {
            self.places.give_back(&self.client);
        }
    }
}

/// A place that can be taken back.
struct Borrowed {
    places: Places,
    id: u64,
}

impl Borrowed {
    /// The place, to be kept from now on; none if it was taken back.
    fn keep(self) -> Option<Place> {
        let loan = self.places.state().loans.remove(&self.id)?;
        Some(self.places.given(loan.client))
    }
}

impl Lease for Borrowed {
    fn renew(&self) {
        if let Some(loan) = self.places.state().loans.get_mut(&self.id) {
            loan.since = Instant::now();
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let loan = self.places.state().loans.remove(&self.id);
        if let Some(loan) = loan {
            self.places.give_back(&loan.client);
        }
    }
}

/// The place of a body that is coming.
pub(super) struct Receiving {
    borrowed: Borrowed,
    taken_back: oneshot::Receiver<Infallible>,
}

impl Receiving {
    /// The body, and the place for as long as it waits; nothing if that was taken back. All of it
    /// must come in time, as a few bytes now and then would hold a place for as long as somebody
    /// likes.
    pub(super) async fn read<T>(mut self, body: impl Future<Output = T>) -> Option<(T, Place)> {
        let body = tokio::select! {
            biased;
            body = body => body,
            _ = &mut self.taken_back => return None,
        };
        Some((body, self.borrowed.keep()?))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use http_body::Body as _;

    use super::*;
    use crate::answer::Body;

    const LONG: Duration = Duration::from_secs(3600);

    fn client(port: u16) -> Client {
        Client { user: "admin".to_owned(), address: Some(([127, 0, 0, 1], port).into()) }
    }

    /// Who gets places, in which order, if each gives his back as soon as he has it.
    async fn turns(places: &Places, held: Vec<Place>, clients: &[u16]) -> Vec<u16> {
        let (turn, mut turns) = tokio::sync::mpsc::unbounded_channel();
        for &port in clients {
            let (places, turn) = (places.clone(), turn.clone());
            tokio::spawn(async move {
                let place = places.take(client(port), LONG).await.expect("a turn");
                turn.send(port).expect("somebody listens");
                drop(place);
            });
            // They come one after another.
            tokio::task::yield_now().await;
        }
        drop((held, turn));
        let mut order = Vec::new();
        while let Some(port) = turns.recv().await {
            order.push(port);
        }
        order
    }

    #[tokio::test]
    async fn whoever_has_the_fewest_places_is_next() {
        let places = Places::new(2, LONG);
        let held = [
            places.take(client(1), LONG).await.expect("it is free"),
            places.take(client(2), LONG).await.expect("it is free"),
        ];
        let [first, second] = held;
        // The one who comes back is the second's; the first still has one.
        let order = turns(&places, vec![second], &[1, 1, 1, 2, 3]).await;
        assert_eq!(order[..2], [2, 3], "{order:?}");
        drop(first);
        assert_eq!(places.state().free, 2);
        assert!(places.state().taken.is_empty() && places.state().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_user_with_many_connections_is_one_user() {
        let places = Places::new(2, LONG);
        let mut held = Vec::new();
        for port in [1, 2] {
            held.push(places.take(client(port), LONG).await.expect("it is free"));
        }
        let (turn, mut turns) = tokio::sync::mpsc::unbounded_channel();
        for (user, port) in [("admin", 3), ("admin", 4), ("view", 5)] {
            let client = Client { user: user.to_owned(), ..client(port) };
            let (places, turn) = (places.clone(), turn.clone());
            tokio::spawn(async move {
                let _place = places.take(client, LONG).await.expect("a turn");
                turn.send(user).expect("somebody listens");
            });
            tokio::task::yield_now().await;
        }
        held.pop();
        assert_eq!(
            turns.recv().await,
            Some("view"),
            "the other user has a place on another connection"
        );
        drop((held, turn));
        while turns.recv().await.is_some() {}
        assert_eq!(places.state().free, 2);
        assert!(places.state().taken_by_user.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_gives_up_waiting_takes_nothing() {
        let places = Places::new(1, LONG);
        let held = places.take(client(1), LONG).await.expect("it is free");
        assert!(places.take(client(2), Duration::from_secs(1)).await.is_none());
        assert!(places.state().waiting.is_empty());
        // One whose turn comes when nobody waits for it any more.
        let Err(ticket) = places.ask(client(3)) else { panic!("nothing is free") };
        drop(held);
        assert_eq!(places.state().free, 0, "it is the third's");
        drop(ticket);
        assert_eq!(places.state().free, 1);
        assert!(places.state().taken.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_panics_loses_no_place() {
        let places = Places::new(1, Duration::from_secs(5));
        let place = places.take(client(1), LONG).await.expect("it is free");
        let pieces = std::iter::from_fn(|| -> Option<bytes::Bytes> { panic!("on purpose") });
        let mut body = Body::pieces(pieces).lent(|answer| place.lend(answer), ());
        // Whoever catches a panic may keep what it came from.
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut context = Context::from_waker(Waker::noop());
            let _ = Pin::new(&mut body).poll_frame(&mut context);
        }));
        assert!(polled.is_err());
        drop(places.take(client(2), LONG).await.expect("a turn"));
        assert_eq!(places.state().free, 1);
    }
}
