//! Watches that nobody reads. A body is asked for more only when there is room for it on its way to the
//! client, so one that nobody reads is never asked again, and would not learn that its time is over.
//!
//! # Guarantees
//!
//! - A watch that was not asked for more for so long is dropped, with all that it keeps. Whoever reads
//!   on finds it ended behind the last line that was told, as if its time were up: half a line is never
//!   told. What is on its way to the client stays there, and so does the watch's place, until the client
//!   reads on or is gone: places bound what all those take who do not read.
//! - One that has told everything that has happened is being asked, however long nothing happens.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The events of a watch, until they are taken back.
type Slot = Arc<Mutex<Option<Events>>>;

/// The watches that wait to be asked for more. Clones are handles to the same ones.
#[derive(Clone)]
pub(crate) struct Unread {
    state: Arc<Mutex<State>>,
    patience: Duration,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, (Instant, Slot)>,
    last_id: u64,
    /// Whether somebody looks for those that have waited for too long.
    is_watched: bool,
}

impl Unread {
    /// A watch may wait for so long.
    pub(crate) fn new(patience: Duration) -> Self {
        Unread { state: Arc::default(), patience }
    }

    /// The same events, for as long as they are read.
    pub(super) fn lend(&self, events: impl Stream<Item = Bytes> + Send + 'static) -> Lent {
        let slot: Slot = Arc::new(Mutex::new(Some(Box::pin(events))));
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        drop(state);
        let lent = Lent { unread: self.clone(), id, slot };
        lent.wait();
        lent
    }

    /// Drops those that have waited for too long, until none waits.
    async fn watch_over(self) {
        let mut look_at = Instant::now() + self.patience;
        loop {
            sleep_until(look_at).await;
            let now = Instant::now();
            let mut late = Vec::new();
            let next;
            {
                let mut state = lock(&self.state);
                state.waiting.retain(|_, (since, slot)| {
                    let is_late = *since + self.patience <= now;
                    if is_late {
                        late.push(slot.clone());
                    }
                    !is_late
                });
                next = state.waiting.values().map(|(since, _)| *since + self.patience).min();
                state.is_watched = next.is_some();
            }
            for slot in late {
                let events = lock(&slot).take();
                drop(events);
            }
            // Whoever begins to wait from here on finds that nobody looks, and sees to it.
            match next {
                Some(time) => look_at = time,
                None => return,
            }
        }
    }
}

impl std::fmt::Debug for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unread")
    }
}

/// Nothing is left half done by whoever panics: what is kept are whole entries.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events that are taken back if nobody reads them.
pub(super) struct Lent {
    unread: Unread,
    id: u64,
    slot: Slot,
}

impl Lent {
    /// From now on it waits to be asked.
    fn wait(&self) {
        let mut state = lock(&self.unread.state);
        state.waiting.insert(self.id, (Instant::now(), self.slot.clone()));
        // Without a runtime there is nobody who could be slow.
        if !state.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            state.is_watched = true;
            runtime.spawn(self.unread.clone().watch_over());
        }
    }

    fn is_asked(&self) {
        lock(&self.unread.state).waiting.remove(&self.id);
    }
}

impl Stream for Lent {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.is_asked();
        let polled = match lock(&self.slot).as_mut() {
            Some(events) => events.as_mut().poll_next(context),
            None => return Poll::Ready(None),
        };
        if let Poll::Ready(Some(_)) = polled {
            self.wait();
        }
        polled
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.is_asked();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Events, and what is gone when they are.
    fn events(unread: &Unread, count: usize) -> (Lent, Arc<()>) {
        let kept = Arc::new(());
        let (first, held) = (stream::iter(0..count), kept.clone());
        let events = first.map(|_| Bytes::from_static(b"event")).chain(stream::pending());
        let events = events.inspect(move |_| drop(held.clone()));
        (unread.lend(events), kept)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_read_is_dropped_in_time_whether_or_not_some_was() {
        let unread = Unread::new(PATIENCE);
        for is_begun in [false, true] {
            let (mut lent, kept) = events(&unread, 2);
            if is_begun {
                assert_eq!(lent.next().await, Some(Bytes::from_static(b"event")));
            }
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            assert_eq!(Arc::strong_count(&kept), 2, "{is_begun}");
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(Arc::strong_count(&kept), 1, "{is_begun}");
            assert_eq!(lent.next().await, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_read_everything_waits_for_as_long_as_it_takes() {
        let unread = Unread::new(PATIENCE);
        let (mut lent, kept) = events(&unread, 1);
        assert!(lent.next().await.is_some());
        let next = tokio::time::timeout(100 * PATIENCE, lent.next()).await;
        assert!(next.is_err(), "nothing happens");
        assert_eq!(Arc::strong_count(&kept), 2);
        drop(lent);
        assert!(lock(&unread.state).waiting.is_empty());
    }
}
