//! The containers that run on this node now, for those who come to one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::api::core::v1::Pod;

use crate::console::Console;
use crate::runtime::{Container, RuntimeError};
use crate::session::{self, Session, Wanted};

/// The containers that run now. Clones are handles to the same ones.
#[derive(Clone, Debug, Default)]
pub struct Consoles {
    /// By the uids of their Pods, and by their names.
    live: Arc<Mutex<HashMap<String, HashMap<String, Visited>>>>,
}

/// A container that runs.
#[derive(Clone)]
pub struct Visited {
    container: Arc<dyn Container>,
    console: Console,
    run: u32,
}

impl fmt::Debug for Visited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visited").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Consoles {
    /// A container of a Pod, if it runs.
    pub fn find(&self, pod: &Pod, container: &str) -> Option<Visited> {
        let uid = pod.metadata.uid.as_deref().unwrap_or("");
        self.lock().get(uid).and_then(|of_pod| of_pod.get(container)).cloned()
    }

    /// A container runs from now on.
    pub(crate) fn enter(
        &self,
        uid: &str,
        name: &str,
        run: u32,
        container: Arc<dyn Container>,
        console: Console,
    ) {
        let visited = Visited { container, console, run };
        self.lock().entry(uid.to_owned()).or_default().insert(name.to_owned(), visited);
    }

    /// This run of a container has ended.
    pub(crate) fn leave(&self, uid: &str, name: &str, run: u32) {
        if let Some(of_pod) = self.lock().get_mut(uid)
            && of_pod.get(name).is_some_and(|visited| visited.run == run)
        {
            of_pod.remove(name);
        }
    }

    /// A Pod has ended.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Visited>>> {
        self.live.lock().expect("nobody panics with it")
    }
}

impl Visited {
    /// Runs a program beside the container, for as long as the session is held.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] if it does not run.
    pub async fn exec(self, command: Vec<String>, wanted: Wanted) -> Result<Session, RuntimeError> {
        session::exec(&*self.container, command, wanted).await
    }

    /// Attaches to the container: to what it writes from now on, and to its input if it has one.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] if the machine has no room for that.
    pub fn attach(self, wanted: Wanted) -> Result<Session, RuntimeError> {
        let what = || "attaching to the container".to_owned();
        let attached = self.console.attach(wanted);
        attached.map_err(|source| RuntimeError::Machine { what: what(), source })
    }
}
