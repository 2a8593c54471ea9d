//! How wishes are carried out: each as a future that ends with what has been done.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use k8s_openapi::api::core::v1::{Container as ContainerOfSpec, Pod, PodSpec};
use tokio::sync::MutexGuard;

use super::{Begun, Done, FolderIs, Shared, SharedSandbox, Worker};
use crate::ask::Asked;
use crate::begun;
use crate::calls::PodRef;
use crate::console::Console;
use crate::container_spec::{Ingredients, container_spec};
use crate::descriptors::explained;
use crate::events::EventCall;
use crate::field::Surroundings;
use crate::hosts::PodNames;
use crate::life::{Fact, LEAST_GRACE, NotStarted, ProbeKind};
use crate::logs::{Pump, Writer};
use crate::namespace_needs::{self, REMEDY};
use crate::path;
use crate::runtime::{ContainerSpec, Ending, RuntimeError, SandboxSpec};
use crate::security::pod_limits;
use crate::sources::{Needs, Sources};
use crate::spares::HOSTS;
use crate::termination;
use crate::volumes::{self, NotMade, Volumes};

impl Worker {
    /// Makes what the containers of the Pod share.
    pub(super) fn prepare(&mut self) {
        let address = match (is_on_host(&self.pod), self.address) {
            (true, _) => Some(self.shared.options.host_address),
            (false, Some(address)) => Some(address),
            (false, None) => {
                self.address = self.shared.addresses.lock().expect("nobody panics").take();
                self.address
            }
        };
        let Some(address) = address else {
            let message = "no address is left for the Pod".to_owned();
            let fact = Fact::NotPrepared { reason: "FailedCreatePodSandBox", message };
            return self.do_it(async move { Done::Fact(fact) });
        };
        self.reporter.set_address(address);
        let shared = self.shared.clone();
        if !shared.runtime.uses_images() && !shared.has_said_images.swap(true, Ordering::Relaxed) {
            tracing::info!("images are not used: containers run the programs of this machine");
        }
        let (pod, target) = (self.pod.clone(), self.target.clone());
        let sandbox = self.sandbox.clone();
        self.do_it(async move {
            match prepare(&shared, pod, target, address, sandbox).await {
                Ok(volumes) => Done::Prepared(volumes),
                Err(fact) => Done::Fact(fact),
            }
        });
    }

    /// Writes what has changed into the volumes.
    pub(super) fn refresh(&mut self) {
        let (shared, pod, target) = (self.shared.clone(), self.pod.clone(), self.target.clone());
        let (around, state) = (self.around(), self.folder.clone());
        self.do_it(async move {
            let needs = Needs::of_volumes(&pod);
            let sources = Sources::fetch(&shared.calls, &target.namespace, &needs).await;
            let written = match sources {
                Ok(sources) => {
                    let folder = shared.pod_folder(&target.uid);
                    let writing = move || match *state.lock().expect("nobody panics with it") {
                        FolderIs::Kept => volumes::refresh(&pod, &folder, &sources, &around),
                        FolderIs::Removed => Ok(()),
                    };
                    let writing = tokio::task::spawn_blocking(writing).await;
                    writing.expect("writing does not panic")
                }
                Err(error) => Err(NotMade::Later(error.to_string())),
            };
            // As with a kubelet containers go on with what they have.
            if let Err(NotMade::Later(why) | NotMade::Never(why)) = written {
                let PodRef { namespace, name, .. } = &target;
                tracing::debug!(namespace, name, why, "the volumes of a Pod stay as they are");
            }
            Done::Refreshed
        });
    }

    pub(super) fn start(&mut self, cell: usize) {
        let Some(container) = self.container_of_spec(cell).cloned() else { return };
        let job = Start {
            run: self.life.cells[cell].run,
            around: self.around(),
            shared: self.shared.clone(),
            pod: self.pod.clone(),
            target: self.target.clone(),
            sandbox: self.sandbox.clone(),
            turn: self.turn.clone(),
            volumes: self.volumes.clone(),
            is_ending: self.is_ending.clone(),
            container,
        };
        self.do_it(async move {
            match job.run().await {
                Ok(begun) => Done::Started { cell, begun },
                Err(why) => Done::Fact(Fact::NotStarted { cell, why }),
            }
        });
    }

    /// Waits for the end of a run, and for all it has written.
    pub(super) fn wait_for(&mut self, cell: usize, begun: Begun) {
        let run = self.life.cells[cell].run;
        let Some(spec) = self.container_of_spec(cell).cloned() else { return };
        let (shared, target) = (self.shared.clone(), self.target.clone());
        let Begun { container, pump, console, message } = begun;
        shared.consoles.enter(&target.uid, &spec.name, run, container.clone(), console);
        self.do_it(async move {
            let exit = container.wait().await;
            shared.consoles.leave(&target.uid, &spec.name, run);
            pump.finish().await;
            let has_failed = exit.ending.code() != 0;
            let reading = tokio::task::spawn_blocking(move || {
                let log = || shared.logs.tail(&target, &spec.name, run);
                termination::message(&spec, message.as_deref(), has_failed, log)
            });
            let said = reading.await.expect("reading does not panic");
            let is_lost = exit.ending == Ending::Lost;
            let end = termination::end(exit, container.started_at(), run, said);
            Done::Fact(match is_lost {
                true => Fact::Lost { cell, end },
                false => Fact::Ended { cell, end },
            })
        });
    }

    pub(super) fn probe(&mut self, cell: usize, kind: ProbeKind) {
        let Some(asked) = self.asked(cell) else { return };
        let run = self.life.cells[cell].run;
        let probe = match kind {
            ProbeKind::Startup => asked.spec.startup_probe.clone(),
            ProbeKind::Liveness => asked.spec.liveness_probe.clone(),
            ProbeKind::Readiness => asked.spec.readiness_probe.clone(),
        };
        self.do_it(async move {
            let probe = probe.unwrap_or_default();
            let answer = asked.probe(&probe).await;
            Done::Fact(Fact::Probed { cell, run, kind, answer })
        });
    }

    pub(super) fn post_start(&mut self, cell: usize) {
        let Some(asked) = self.asked(cell) else { return };
        let run = self.life.cells[cell].run;
        self.do_it(async move {
            let hook = asked.spec.lifecycle.as_ref().and_then(|it| it.post_start.clone());
            let answer = asked.hook(&hook.unwrap_or_default(), None).await;
            Done::Fact(Fact::PostStarted { cell, run, answer })
        });
    }

    pub(super) fn pre_stop(&mut self, cell: usize) {
        let Some(asked) = self.asked(cell) else { return };
        let run = self.life.cells[cell].run;
        let limit = self.grace.unwrap_or(self.life.plan.grace).max(LEAST_GRACE);
        self.do_it(async move {
            let hook = asked.spec.lifecycle.as_ref().and_then(|it| it.pre_stop.clone());
            let answer = asked.hook(&hook.unwrap_or_default(), Some(limit)).await;
            Done::Fact(Fact::PreStopped { cell, run, answer })
        });
    }

    pub(super) fn close(&mut self) {
        let sandbox = self.sandbox.clone();
        self.do_it(async move {
            let taken = sandbox.write().await.take();
            if let Some(sandbox) = taken {
                sandbox.close().await;
            }
            Done::Fact(Fact::Closed)
        });
    }

    pub(super) fn send_event(&mut self, call: EventCall) {
        let calls = self.shared.calls.clone();
        let namespace = self.target.namespace.clone();
        self.do_it(async move {
            let sent = match &call {
                EventCall::Create(body) => {
                    calls.send(Method::POST, &path::events(&namespace), path::JSON, body).await
                }
                EventCall::Count { name, body } => {
                    let path = path::object(&namespace, "events", name);
                    calls.send(Method::PATCH, &path, path::MERGE, body).await
                }
            };
            // Events are a courtesy: one that is lost is not sent again.
            if let Err(error) = sent {
                tracing::debug!(%error, "an event was not written");
            }
            Done::Told
        });
    }

    fn asked(&self, cell: usize) -> Option<Asked> {
        Some(Asked {
            spec: self.container_of_spec(cell)?.clone(),
            container: self.containers[cell].clone()?,
            address: self.around().pod_address,
        })
    }

    fn around(&self) -> Surroundings {
        let options = &self.shared.options;
        Surroundings {
            pod_address: self.address.unwrap_or(options.host_address),
            host_address: options.host_address,
            cpu_millis: options.cpu_millis,
            memory_bytes: options.memory_bytes,
        }
    }

    fn container_of_spec(&self, cell: usize) -> Option<&ContainerOfSpec> {
        let spec = spec_of(&self.pod)?;
        spec.init_containers.iter().flatten().chain(&spec.containers).nth(cell)
    }
}

fn spec_of(pod: &Pod) -> Option<&PodSpec> {
    pod.spec.as_ref()
}

/// Makes the volumes, the hosts file and the sandbox of a Pod.
async fn prepare(
    shared: &Arc<Shared>,
    pod: Arc<Pod>,
    target: PodRef,
    address: Ipv4Addr,
    sandbox: SharedSandbox,
) -> Result<Volumes, Fact> {
    let unmounted = |message: String| Fact::NotPrepared { reason: "FailedMount", message };
    if let Some(why) = shared.runtime.no_mounts() {
        let wanted = namespace_needs::of(&pod);
        if !wanted.is_empty() {
            let message = format!("{}: {why}; {REMEDY}", wanted.join(", "));
            return Err(Fact::Impossible { reason: "CreatePodSandboxError", message });
        }
    }
    let needs = Needs::of_volumes(&pod);
    let sources = Sources::fetch(&shared.calls, &target.namespace, &needs).await;
    let sources = sources.map_err(|error| unmounted(error.to_string()))?;
    let _place = shared.starts.acquire().await.expect("it is never closed");
    let around = Surroundings {
        pod_address: address,
        host_address: shared.options.host_address,
        cpu_millis: shared.options.cpu_millis,
        memory_bytes: shared.options.memory_bytes,
    };
    let hosts_file = hosts_file(shared, &pod);
    let made = make_files(shared, &pod, sources, around).await;
    let volumes = made.map_err(|why| match why {
        NotMade::Later(message) => unmounted(message),
        // Nobody could ever help it, and who waits for the Pod should know.
        NotMade::Never(message) => Fact::Impossible { reason: "FailedMount", message },
    })?;
    let none = PodSpec::default();
    let spec = spec_of(&pod).unwrap_or(&none);
    let hostname = (!is_on_host(&pod)).then(|| PodNames::of(&pod).hostname(spec));
    let asked = SandboxSpec {
        uid: target.uid,
        hostname,
        hosts_file,
        address,
        shares_processes: spec.share_process_namespace == Some(true) || spec.host_pid == Some(true),
        limits: pod_limits(spec),
    };
    match shared.runtime.make_sandbox(asked).await {
        Ok(made) => {
            *sandbox.write().await = Some(made);
            Ok(volumes)
        }
        Err(error @ (RuntimeError::CannotRun { .. } | RuntimeError::Unsupported(_))) => {
            Err(Fact::Impossible { reason: "CreatePodSandboxError", message: error.to_string() })
        }
        Err(error @ RuntimeError::Machine { .. }) => {
            Err(Fact::NotPrepared { reason: "FailedCreatePodSandBox", message: error.to_string() })
        }
    }
}

/// The file that stands at /etc/hosts in a Pod, if there is one.
fn hosts_file(shared: &Shared, pod: &Pod) -> Option<PathBuf> {
    let has_one = !is_on_host(pod) && shared.runtime.no_mounts().is_none();
    has_one.then(|| shared.pod_folder(&PodRef::of(pod).uid).join(HOSTS))
}

/// Makes the files of a Pod: its folder, its hosts file and its volumes.
async fn make_files(
    shared: &Arc<Shared>,
    pod: &Arc<Pod>,
    sources: Sources,
    around: Surroundings,
) -> Result<Volumes, NotMade> {
    let (shared, pod) = (shared.clone(), pod.clone());
    let making = move || {
        let folder = shared.pod_folder(&PodRef::of(&pod).uid);
        let made = shared.spares.make(&folder);
        made.map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        if let Some(file) = hosts_file(&shared, &pod) {
            let added = shared.hosts.add(&pod, file.clone(), around.pod_address);
            added.map_err(|error| {
                // The next try is to have another one.
                shared.spares.discard(&folder);
                format!("cannot write the hosts file: {error}")
            })?;
            shared.spares.seal(&file);
        }
        volumes::make(&pod, &folder, &sources, &around)
    };
    tokio::task::spawn_blocking(making).await.expect("making does not panic")
}

fn is_on_host(pod: &Pod) -> bool {
    spec_of(pod).is_some_and(|spec| spec.host_network == Some(true))
}

/// Why nothing is started any more.
const ENDING: &str = "the Pod is ending";

/// One start of a container.
#[derive(Clone)]
struct Start {
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    target: PodRef,
    sandbox: SharedSandbox,
    turn: Arc<tokio::sync::Mutex<()>>,
    volumes: Arc<Volumes>,
    container: ContainerOfSpec,
    around: Surroundings,
    is_ending: Arc<AtomicBool>,
    run: u32,
}

impl Start {
    async fn run(self) -> Result<Begun, NotStarted> {
        let later = |reason, message| NotStarted::Later { reason, message };
        let shared = &self.shared;
        let needs = Needs::of_environment(&self.container);
        let sources = Sources::fetch(&shared.calls, &self.target.namespace, &needs).await;
        let sources =
            sources.map_err(|error| later("CreateContainerConfigError", error.to_string()))?;
        let turn = self.turn.lock().await;
        let _place = shared.starts.acquire().await.expect("it is never closed");
        self.restore_files().await.map_err(|why| later("CreateContainerError", why))?;
        let begun =
            begun::file(&shared.pod_folder(&self.target.uid), &self.container.name, self.run);
        // What the container finds at its path for last words.
        let path = self.container.termination_message_path.as_deref().unwrap_or("");
        let has_message = shared.runtime.no_mounts().is_none() && !path.is_empty();
        let message = has_message.then(|| begun.clone());
        let (spec, writer) = self.describe(sources, message.clone(), &begun).await?;
        let started = self.start_noted(spec, writer, message, turn).await;
        if let Err(NotStarted::Later { .. }) = &started {
            begun::take_back(&begun);
        }
        started
    }

    /// Has the runtime start what was noted to have begun.
    async fn start_noted(
        &self,
        spec: ContainerSpec,
        mut writer: Writer,
        message: Option<PathBuf>,
        turn: MutexGuard<'_, ()>,
    ) -> Result<Begun, NotStarted> {
        let later = |reason, message| NotStarted::Later { reason, message };
        let machine = |error: std::io::Error| later("CreateContainerError", explained(&error));
        let (stdio, inlets, console) =
            Console::open(&self.container, spec.user).map_err(machine)?;
        writer.reserve().map_err(machine)?;
        let pump = Pump::start(inlets, writer, self.shared.logs.clock().clone());
        let sandbox = self.sandbox.read().await;
        let Some(sandbox) = sandbox.as_ref() else {
            return Err(later("CreateContainerError", "the Pod is being closed".to_owned()));
        };
        if self.is_ending.load(Ordering::Relaxed) {
            return Err(later("CreateContainerError", ENDING.to_owned()));
        }
        // The next one comes after this one was asked for, not after it was started.
        drop(turn);
        match sandbox.start(spec, stdio).await {
            Ok(container) => Ok(Begun { container: Arc::from(container), pump, console, message }),
            Err(RuntimeError::CannotRun { reason, exit_code, message }) => {
                Err(NotStarted::Never { reason: reason.to_owned(), code: exit_code, message })
            }
            // Nobody could ever help it: as with a program that is not there, it has failed.
            Err(RuntimeError::Unsupported(message)) => Err(NotStarted::never(message)),
            Err(error @ RuntimeError::Machine { .. }) => {
                Err(later("RunContainerError", error.to_string()))
            }
        }
    }

    /// Makes the files of the Pod again if somebody has removed them: without its folder it could
    /// never start. What containers have written is lost.
    async fn restore_files(&self) -> Result<(), String> {
        let shared = &self.shared;
        let folder = shared.pod_folder(&self.target.uid);
        if folder.exists() {
            return Ok(());
        }
        let PodRef { namespace, name, .. } = &self.target;
        let path = folder.display();
        tracing::warn!(namespace, name, %path, "the folder of a Pod is gone, and is made again");
        let needs = Needs::of_volumes(&self.pod);
        let sources = Sources::fetch(&shared.calls, namespace, &needs).await;
        let sources = sources.map_err(|error| error.to_string())?;
        // They are where they were.
        match make_files(shared, &self.pod, sources, self.around.clone()).await {
            Ok(_) => Ok(()),
            Err(NotMade::Later(why) | NotMade::Never(why)) => Err(why),
        }
    }

    /// What the runtime is asked for, and where its output goes: a matter of files. If there is nothing in
    /// its way it is noted to have begun, with them, as each look at a disk takes a turn of another thread.
    async fn describe(
        &self,
        sources: Sources,
        message_file: Option<PathBuf>,
        begun: &Path,
    ) -> Result<(ContainerSpec, Writer), NotStarted> {
        let (this, begun) = (self.clone(), begun.to_owned());
        let describing = tokio::task::spawn_blocking(move || {
            let ingredients = Ingredients {
                base_env: &this.shared.options.env,
                hostname: &PodNames::of(&this.pod).short,
                sources: &sources,
                volumes: &this.volumes,
                around: &this.around,
                own_user: this.shared.own_user,
                message_file,
            };
            let spec = container_spec(&this.pod, &this.container, this.run, &ingredients)?;
            let later = |message| NotStarted::Later { reason: "CreateContainerError", message };
            if this.is_ending.load(Ordering::Relaxed) {
                return Err(later(ENDING.to_owned()));
            }
            begun::note(&begun).map_err(|error| {
                later(format!("cannot create {}: {}", begun.display(), explained(&error)))
            })?;
            this.shared.spares.seal(&begun);
            let Start { shared, target, container, run, .. } = &this;
            let is_awaited = shared.options.log_readers.expect(&this.pod);
            Ok((spec, shared.logs.begin(target, &container.name, *run, is_awaited)))
        });
        describing.await.expect("describing does not panic")
    }
}
