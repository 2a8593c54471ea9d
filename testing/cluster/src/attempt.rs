//! Scenarios that may panic, beside each other.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

thread_local! {
    /// Where this thread has panicked last.
    static PLACE: RefCell<String> = RefCell::default();
}

/// From now on a panic of a scenario is kept for whoever reports of it. Those of tasks beside the
/// scenarios are shown at once.
pub fn keep_panics() {
    let show = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if tokio::task::try_id().is_some() {
            show(info);
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PLACE.with_borrow_mut(|last| *last = place);
    }));
}

/// Runs a scenario: how long it took, and what came of it.
pub async fn attempt<T>(scenario: impl Future<Output = T>) -> (Duration, Result<T, String>) {
    let began = Instant::now();
    // What a scenario leaves half done is thrown away with its cluster.
    let result = AssertUnwindSafe(scenario).catch_unwind().await;
    let result = result.map_err(|payload| {
        let place = PLACE.with_borrow(String::clone);
        format!("{place}: {}", said(payload))
    });
    (began.elapsed(), result)
}

/// What a panic says.
fn said(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(words) => *words,
        Err(other) => match other.downcast::<&str>() {
            Ok(words) => (*words).to_owned(),
            Err(_) => "a panic without words".to_owned(),
        },
    }
}
