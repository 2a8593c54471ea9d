//! Stint's controller on a cluster: within this process, or as the program that users run.

use stint_controller::{Config, Controller};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::authority::User;
use crate::cluster::{Cluster, ClusterError};
use crate::process::Process;
pub use crate::program::{Build, Mode};
use crate::program::{Program, Setup};

/// A controller that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Stint {
    running: Running,
}

#[derive(Debug)]
enum Running {
    Task { task: JoinHandle<()>, stop: Option<oneshot::Sender<()>> },
    Program(Box<Program>),
}

impl Stint {
    /// Starts it as its own user ([`User::controller`]).
    pub async fn start(cluster: &Cluster, build: &Build, mode: Mode) -> Result<Self, ClusterError> {
        let user = User::controller(mode);
        let running = match build {
            Build::Library => {
                let config = match mode {
                    Mode::Replace => Config::default(),
                    Mode::Beside => Config::beside(),
                };
                let controller = Controller::new(cluster.client(&user).await?, config);
                let (stop, stopped) = oneshot::channel::<()>();
                let stopped = async move { drop(stopped.await) };
                Running::Task { task: tokio::spawn(controller.run(stopped)), stop: Some(stop) }
            }
            Build::Program(path) => {
                let program = {
                    let log = format!("stint-{}", mode.word());
                    Program::start(cluster, path, &Setup::new(mode, &log))?
                };
                Running::Program(Box::new(program))
            }
        };
        Ok(Stint { running })
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) {
        match &mut self.running {
            Running::Task { task, stop } => {
                drop(stop.take());
                let _ = task.await;
            }
            Running::Program(program) => program.process.stop().await,
        }
    }

    /// Ends it in the middle of what it does.
    pub async fn kill(mut self) {
        match &mut self.running {
            Running::Task { task, .. } => {
                task.abort();
                let _ = task.await;
            }
            Running::Program(program) => program.process.kill().await,
        }
    }

    /// The process, if it is one: to be paused and resumed.
    pub fn process(&mut self) -> Option<&mut Process> {
        match &mut self.running {
            Running::Task { .. } => None,
            Running::Program(program) => Some(&mut program.process),
        }
    }
}

impl Drop for Stint {
    fn drop(&mut self) {
        if let Running::Task { task, .. } = &self.running {
            task.abort();
        }
    }
}
