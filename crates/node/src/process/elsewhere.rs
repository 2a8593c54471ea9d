//! Where there are no namespaces, no process descriptors and no subreapers, nothing is promised.

use futures_util::future::BoxFuture;

use super::{Isolation, Options};
use crate::runtime::{Runtime, RuntimeError, Sandbox, SandboxSpec};

/// The runtime that starts containers as processes; on Linux.
#[derive(Debug)]
pub struct ProcessRuntime {
    never: std::convert::Infallible,
}

impl ProcessRuntime {
    /// Fails: this is not Linux.
    pub async fn start(_: Options) -> Result<Self, RuntimeError> {
        Err(RuntimeError::Unsupported(
            "containers run as processes on Linux only: run the node on a Linux machine".into(),
        ))
    }

    /// How containers are kept apart.
    pub fn isolation(&self) -> Isolation {
        match self.never {}
    }

    /// Why they are not kept apart better, or limited better, if they are not.
    pub fn notes(&self) -> Vec<String> {
        match self.never {}
    }

    /// Ends everything and waits until it is gone.
    pub async fn stop(self) {
        match self.never {}
    }
}

impl Runtime for ProcessRuntime {
    fn make_sandbox(
        &self,
        _: SandboxSpec,
    ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>> {
        match self.never {}
    }

    fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        match self.never {}
    }

    fn uses_images(&self) -> bool {
        match self.never {}
    }

    fn name(&self) -> &'static str {
        match self.never {}
    }
}
