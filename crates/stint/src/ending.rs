//! The end of the process at a signal, whatever it is doing: after the first one asked for an end,
//! or once there is nothing to wait for but cleaning up.
//!
//! ```text
//!   signal ─▶ the work is dropped ─▶ the runtime stops ─▶ the helper ends all processes of Pods
//!                                                              └─▶ the temporary folder goes ─▶ exit
//! ```
//!
//! Each step has its time, as a disk or a reader may be stuck: the process ends anyway.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, process, thread};

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::place::{remove_folder, tell_left};
use crate::signals::Signals;

/// Within which time signals are one.
const SAME_TIME: Duration = Duration::from_millis(100);

/// How long the work may take to be dropped: it may be writing to somebody who does not read.
const DROP_TIME: Duration = Duration::from_secs(1);

/// How long tasks that cannot be dropped may take.
const RUNTIME_TIME: Duration = Duration::from_secs(2);

/// How long the folder may take: as long as its Pods write into it, it is not gone.
const REMOVAL_TIME: Duration = Duration::from_secs(10);

/// How long it may stay closed to its own user.
const SEALED_TIME: Duration = Duration::from_secs(1);

/// How long it takes until it is tried again.
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// What is known of how this process ends at a signal.
#[derive(Clone)]
pub(crate) struct Ending {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Mutex<Option<Runtime>>,
    code: AtomicU8,
    temporary: Mutex<Option<PathBuf>>,
    begun: Notify,
    /// Whether the work is dropped.
    is_dropped: Mutex<bool>,
    dropped: Condvar,
}

impl Ending {
    /// `code` is the exit code until another is known.
    pub(crate) fn new(runtime: Runtime, code: u8) -> Self {
        let shared = Shared {
            runtime: Mutex::new(Some(runtime)),
            code: AtomicU8::new(code),
            temporary: Mutex::new(None),
            begun: Notify::new(),
            is_dropped: Mutex::new(false),
            dropped: Condvar::new(),
        };
        Ending { shared: Arc::new(shared) }
    }

    /// Does the work, and stops the runtime. It does not return if a signal ends the process.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        let handle =
            lock(&self.shared.runtime).as_ref().expect("it has not ended").handle().clone();
        let done = handle.block_on(async {
            tokio::select! {
                biased;
                () = self.shared.begun.notified() => None,
                done = work => Some(done),
            }
        });
        let Some(done) = done else {
            *lock(&self.shared.is_dropped) = true;
            self.shared.dropped.notify_all();
            loop {
                thread::park();
            }
        };
        // Nobody is to wait for the lock while tasks that cannot be dropped have their time.
        let runtime = lock(&self.shared.runtime).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(RUNTIME_TIME);
        }
        done
    }

    /// What became of the work is known.
    pub(crate) fn set_code(&self, code: u8) {
        self.shared.code.store(code, Ordering::SeqCst);
    }

    /// What nobody else removes if the process ends.
    pub(crate) fn remove(&self, temporary: Option<PathBuf>) {
        *lock(&self.shared.temporary) = temporary;
    }

    /// Ends the process at the next signal. What comes at once is still the first: `timeout`
    /// signals its command, and then everybody around it.
    pub(crate) fn at_next(&self, mut signals: Signals) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            signals.next().await;
            while begun.elapsed() < SAME_TIME {
                signals.next().await;
            }
            // Not here: the runtime goes, and this task with it.
            thread::spawn(move || shared.end());
        });
    }
}

impl Shared {
    fn end(&self) -> ! {
        self.begun.notify_one();
        let is_dropped = lock(&self.is_dropped);
        let dropped = self.dropped.wait_timeout_while(is_dropped, DROP_TIME, |is| !*is);
        drop(dropped);
        // The helper loses whom it works for, and ends everything that it has started.
        let runtime = lock(&self.runtime).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(RUNTIME_TIME);
        }
        let folder = lock(&self.temporary).take();
        if let Some(folder) = folder {
            remove(&folder);
        }
        process::exit(i32::from(self.code.load(Ordering::SeqCst)))
    }
}

/// Removes a folder into which somebody may write for a moment yet.
fn remove(folder: &Path) {
    let begun = Instant::now();
    let error = loop {
        match remove_folder(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => return,
            // Time changes little of that: what a Pod that is dying has just sealed can be opened.
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && begun.elapsed() >= SEALED_TIME =>
            {
                break error;
            }
            Err(error) if begun.elapsed() >= REMOVAL_TIME => break error,
            Err(_) => thread::sleep(REMOVAL_PAUSE),
        }
    };
    let folder = folder.to_owned();
    let telling = thread::spawn(move || tell_left(&folder, &error));
    let begun = Instant::now();
    while !telling.is_finished() && begun.elapsed() < DROP_TIME {
        thread::sleep(REMOVAL_PAUSE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A disk that does not answer, for example.
    #[test]
    fn a_call_that_never_returns_does_not_keep_the_process() {
        let (told, ended) = channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
            let ending = Ending::new(runtime, 0);
            let done = ending.block_on(async {
                tokio::task::spawn_blocking(|| {
                    loop {
                        thread::park();
                    }
                });
                7
            });
            told.send(done).expect("somebody waits");
        });
        assert_eq!(ended.recv_timeout(5 * RUNTIME_TIME), Ok(7));
    }
}
