//! The parts of the cluster that run beside each other, and that none of them ends unnoticed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;

use tokio::sync::{oneshot, watch};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tracing::error;

/// A part of the cluster has ended, which none of them should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {task} task has failed: {reason}")]
pub struct TaskFailure {
    /// Which part.
    pub task: &'static str,
    /// Why.
    pub reason: String,
}

/// Tasks that are about to be started together.
#[derive(Debug, Default)]
pub(crate) struct Starting {
    set: JoinSet<Infallible>,
    names: HashMap<Id, &'static str>,
}

impl Starting {
    /// Starts a task that never ends by itself.
    pub(crate) fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Infallible> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Watches over the tasks from now on.
    pub(crate) fn watch_over(self) -> Tasks {
        let (stop, stopped) = oneshot::channel();
        let (failed, failure) = watch::channel(None);
        let guard = tokio::spawn(guard(self, stopped, failed));
        Tasks { stop: Some(stop), guard, failure }
    }
}

/// Tasks under way. They are stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Tasks {
    stop: Option<oneshot::Sender<()>>,
    guard: JoinHandle<()>,
    failure: watch::Receiver<Option<TaskFailure>>,
}

impl Tasks {
    /// The first failure of a task, as soon as there is one.
    pub(crate) async fn failed(&self) -> TaskFailure {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(failure) => failure.clone().expect("it was waited for"),
            // The tasks were stopped: none of them will fail any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops all of them, and waits until they are.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        if let Err(error) = (&mut self.guard).await {
            error!(%error, "the tasks' guard has failed");
        }
    }
}

async fn guard(
    mut tasks: Starting,
    mut stopped: oneshot::Receiver<()>,
    failed: watch::Sender<Option<TaskFailure>>,
) {
    loop {
        let ended = tokio::select! {
            // The sender is dropped in order to stop.
            _ = &mut stopped => break,
            Some(ended) = tasks.set.join_next() => ended,
            else => break,
        };
        let Err(error) = ended;
        let failure = TaskFailure { task: tasks.names[&error.id()], reason: reason(error) };
        error!(task = failure.task, reason = failure.reason, "a part of the cluster has failed");
        failed.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(failure);
            is_first
        });
    }
    tasks.set.shutdown().await;
}

fn reason(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was cancelled".to_owned() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_reported_with_its_name() {
        let mut starting = Starting::default();
        starting.spawn("idle", std::future::pending());
        starting.spawn("broken", async { panic!("no {}", "ground") });
        let tasks = starting.watch_over();
        let failure = tasks.failed().await;
        assert_eq!(failure, TaskFailure { task: "broken", reason: "no ground".to_owned() });
        tasks.stop().await;
    }
}
