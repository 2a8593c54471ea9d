//! The runtime as the node sees it: a helper that is started again when it dies.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::deaths::Deaths;
use super::leftovers::{self, Whose};
use super::link::{Link, machine};
use super::sandbox::{ProcessSandbox, no_mounts};
use super::{Isolation, Options};
use crate::runtime::{Runtime, RuntimeError, Sandbox, SandboxSpec};

/// The runtime that starts containers as processes of this machine. Dropping it ends all of them.
#[derive(Debug)]
pub struct ProcessRuntime {
    shared: Arc<Shared>,
}

/// What the runtime and its sandboxes share.
#[derive(Debug)]
pub(super) struct Shared {
    options: Options,
    /// What the node is called on this machine: the same whenever it is started on its folder.
    pub(super) node: String,
    link: Mutex<Arc<Link>>,
    /// Held while a new helper is started, so that one is.
    deaths: tokio::sync::Mutex<Deaths>,
    stopped: AtomicBool,
}

impl ProcessRuntime {
    /// Starts the helper, which finds out what is possible here.
    pub async fn start(options: Options) -> Result<Self, RuntimeError> {
        let folder = options.folder.display().to_string();
        let prepared = || -> io::Result<Options> {
            fs::create_dir_all(&options.folder)?;
            Ok(Options { folder: fs::canonicalize(&options.folder)?, ..options.clone() })
        };
        let options = prepared().map_err(machine(format!("preparing the folder {folder}")))?;
        let metadata =
            fs::metadata(&options.folder).map_err(machine(format!("reading {folder}")))?;
        let node = format!("{:x}-{:x}", metadata.dev(), metadata.ino());
        let link = Arc::new(Link::start(&options, &node).await?);
        Ok(ProcessRuntime {
            shared: Arc::new(Shared {
                options,
                node,
                link: Mutex::new(link),
                deaths: tokio::sync::Mutex::new(Deaths::none(Instant::now())),
                stopped: AtomicBool::new(false),
            }),
        })
    }

    /// How containers are kept apart.
    pub fn isolation(&self) -> Isolation {
        self.shared.latest_link().ready.isolation
    }

    /// Why they are not kept apart better, or limited better, if they are not.
    pub fn notes(&self) -> Vec<String> {
        self.shared.latest_link().ready.notes.clone()
    }

    /// Ends everything and waits until it is gone.
    pub async fn stop(self) {
        let ended = self.shared.latest_link().ended();
        drop(self);
        ended.await;
    }
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.latest_link().stop();
    }
}

impl Shared {
    fn latest_link(&self) -> Arc<Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The helper, or a new one if it has died.
    pub(super) async fn link(&self) -> Result<Arc<Link>, RuntimeError> {
        let link = self.latest_link();
        if !link.is_over() {
            return Ok(link);
        }
        let mut deaths = self.deaths.lock().await;
        let link = self.latest_link();
        if !link.is_over() {
            return Ok(link);
        }
        if self.stopped.load(Ordering::SeqCst) {
            return Err(stopped());
        }
        let pause = deaths.another(Instant::now());
        let pause_seconds = pause.as_secs();
        tracing::warn!(pause_seconds, "the process helper has died and is started again");
        tokio::time::sleep(pause).await;
        if self.stopped.load(Ordering::SeqCst) {
            return Err(stopped());
        }
        let link = Link::start(&self.options, &self.node).await;
        deaths.began(Instant::now());
        let link = Arc::new(link?);
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link.clone();
        if self.stopped.load(Ordering::SeqCst) {
            link.stop();
        }
        Ok(link)
    }
}

fn stopped() -> RuntimeError {
    let error = io::Error::new(io::ErrorKind::NotConnected, "the runtime was stopped");
    machine("starting a container")(error)
}

impl Runtime for ProcessRuntime {
    fn make_sandbox(
        &self,
        spec: SandboxSpec,
    ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>> {
        Box::pin(async move {
            let sandbox = ProcessSandbox::open(self.shared.clone(), spec).await?;
            Ok(Box::new(sandbox) as Box<dyn Sandbox>)
        })
    }

    fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        let helper = leftovers::Helper::AllBut(self.shared.latest_link().id.clone());
        let whose = Whose { node: self.shared.node.clone(), helper };
        Box::pin(async move {
            tokio::task::spawn_blocking(move || leftovers::end(&whose))
                .await
                .map_err(io::Error::other)
                .and_then(|ended| ended)
                .map_err(machine("ending what an earlier process has left"))
        })
    }

    fn uses_images(&self) -> bool {
        false
    }

    fn no_mounts(&self) -> Option<String> {
        let link = self.shared.latest_link();
        (!link.can_mount()).then(|| no_mounts(&link))
    }

    fn name(&self) -> &'static str {
        "process"
    }
}
