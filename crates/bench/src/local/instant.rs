//! A runtime without processes: each container has succeeded the moment it is started.

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use jiff::Timestamp;
use stint_node::{
    Container, ContainerSpec, Ending, ExecOutcome, Exit, Runtime, RuntimeError, Sandbox,
    SandboxSpec, Signal, Stdio,
};

/// The runtime, its sandboxes and its containers: none of them has anything to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstantRuntime;

impl Runtime for InstantRuntime {
    fn make_sandbox(
        &self,
        _: SandboxSpec,
    ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>> {
        Box::pin(ready(Ok(Box::new(InstantRuntime) as Box<dyn Sandbox>)))
    }

    fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn uses_images(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "instant"
    }
}

impl Sandbox for InstantRuntime {
    fn start(
        &self,
        _: ContainerSpec,
        _: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Container>, RuntimeError>> {
        Box::pin(ready(Ok(Box::new(Ended(Timestamp::now())) as Box<dyn Container>)))
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

/// A container that has ended when it was started.
#[derive(Debug)]
struct Ended(Timestamp);

impl Container for Ended {
    fn started_at(&self) -> Timestamp {
        self.0
    }

    fn wait(&self) -> BoxFuture<'_, Exit> {
        let exit = Exit { ending: Ending::Code(0), at: self.0, out_of_memory: false };
        Box::pin(ready(exit))
    }

    fn signal(&self, _: Signal) {}

    fn exec(
        &self,
        _: Vec<String>,
        _: Option<Duration>,
        _: usize,
    ) -> BoxFuture<'_, Result<ExecOutcome, RuntimeError>> {
        let none = "there is nothing to run it beside".to_owned();
        Box::pin(ready(Err(RuntimeError::Unsupported(none))))
    }
}
