//! How wishes are carried out: each as a future that ends with what has been done.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::Method;
use k8s_openapi::api::core::v1::{Container as ContainerOfSpec, Pod, PodSpec};

use super::{Done, Shared, SharedSandbox, Worker};
use crate::ask::Asked;
use crate::calls::PodRef;
use crate::container_spec::{Ingredients, container_spec};
use crate::events::EventCall;
use crate::field::Surroundings;
use crate::hosts::PodNames;
use crate::life::{Fact, NotStarted, ProbeKind};
use crate::logs::{Pump, pipes};
use crate::path;
use crate::runtime::{Container, RuntimeError, SandboxSpec};
use crate::security::pod_limits;
use crate::sources::{Needs, Sources};
use crate::termination;
use crate::volumes::{self, Volumes};

impl Worker {
    /// Makes what the containers of the Pod share.
    pub(super) fn prepare(&mut self) {
        let is_on_host = spec_of(&self.pod).is_some_and(|spec| spec.host_network == Some(true));
        let address = match (is_on_host, self.address) {
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
            match prepare(&shared, pod, target, address, is_on_host, sandbox).await {
                Ok(volumes) => Done::Prepared(volumes),
                Err(fact) => Done::Fact(fact),
            }
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
            volumes: self.volumes.clone(),
            container,
        };
        self.do_it(async move {
            match job.run().await {
                Ok((container, pump, message)) => Done::Started { cell, container, pump, message },
                Err(why) => Done::Fact(Fact::NotStarted { cell, why }),
            }
        });
    }

    /// Waits for the end of a run, and for all it has written.
    pub(super) fn wait_for(
        &mut self,
        cell: usize,
        container: Arc<dyn Container>,
        pump: Pump,
        message: Option<PathBuf>,
    ) {
        let run = self.life.cells[cell].run;
        let Some(spec) = self.container_of_spec(cell).cloned() else { return };
        let (shared, target) = (self.shared.clone(), self.target.clone());
        self.do_it(async move {
            let exit = container.wait().await;
            pump.finish().await;
            let has_failed = exit.ending.code() != 0;
            let log = || shared.logs.tail(&target, &spec.name, run);
            let said = termination::message(&spec, message.as_deref(), has_failed, log);
            let end = termination::end(exit, container.started_at(), run, said);
            Done::Fact(Fact::Ended { cell, end })
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
        let limit = self.grace.unwrap_or(self.life.plan.grace);
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
    is_on_host: bool,
    sandbox: SharedSandbox,
) -> Result<Volumes, Fact> {
    let unmounted = |message: String| Fact::NotPrepared { reason: "FailedMount", message };
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
    let folder = shared.pod_folder(&target.uid);
    let has_hosts = !is_on_host && shared.runtime.can_mount();
    let hosts_file = has_hosts.then(|| folder.join("hosts"));
    let making = {
        let (pod, hosts, file) = (pod.clone(), shared.hosts.clone(), hosts_file.clone());
        move || -> Result<Volumes, String> {
            make_folder(&folder)?;
            if let Some(file) = file {
                let added = hosts.add(&pod, file, address);
                added.map_err(|error| format!("cannot write the hosts file: {error}"))?;
            }
            volumes::make(&pod, &folder, &sources, &around)
        }
    };
    let made = tokio::task::spawn_blocking(making).await.expect("making does not panic");
    let volumes = made.map_err(unmounted)?;
    let none = PodSpec::default();
    let spec = spec_of(&pod).unwrap_or(&none);
    let hostname = (!is_on_host).then(|| PodNames::of(&pod).hostname(spec));
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

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

/// One start of a container.
struct Start {
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    target: PodRef,
    sandbox: SharedSandbox,
    volumes: Arc<Volumes>,
    container: ContainerOfSpec,
    around: Surroundings,
    run: u32,
}

impl Start {
    async fn run(self) -> Result<(Arc<dyn Container>, Pump, Option<PathBuf>), NotStarted> {
        let later = |reason, message| NotStarted::Later { reason, message };
        let shared = &self.shared;
        let needs = Needs::of_environment(&self.container);
        let sources = Sources::fetch(&shared.calls, &self.target.namespace, &needs).await;
        let sources =
            sources.map_err(|error| later("CreateContainerConfigError", error.to_string()))?;
        let _place = shared.starts.acquire().await.expect("it is never closed");
        let message = self.message_file().map_err(|why| later("CreateContainerError", why))?;
        let ingredients = Ingredients {
            base_env: &shared.options.env,
            hostname: &PodNames::of(&self.pod).short,
            sources: &sources,
            volumes: &self.volumes,
            around: &self.around,
            own_user: shared.own_user,
            message_file: message.clone(),
        };
        let spec = container_spec(&self.pod, &self.container, self.run, &ingredients)?;
        let machine = |error: std::io::Error| later("CreateContainerError", error.to_string());
        let (output, inlets) = pipes().map_err(machine)?;
        let writer = shared.logs.begin(&self.target, &self.container.name, self.run);
        let pump = Pump::start(inlets, writer, shared.logs.clock().clone()).map_err(machine)?;
        let sandbox = self.sandbox.read().await;
        let Some(sandbox) = sandbox.as_ref() else {
            return Err(later("CreateContainerError", "the Pod is being closed".to_owned()));
        };
        match sandbox.start(spec, output).await {
            Ok(container) => Ok((Arc::from(container), pump, message)),
            Err(RuntimeError::CannotRun { reason, exit_code, message }) => {
                Err(NotStarted::Never { reason: reason.to_owned(), code: exit_code, message })
            }
            // Nobody could ever help it: as with a program that is not there, it has failed.
            Err(RuntimeError::Unsupported(message)) => Err(NotStarted::Never {
                reason: "ContainerCannotRun".to_owned(),
                code: 128,
                message,
            }),
            Err(error @ RuntimeError::Machine { .. }) => {
                Err(later("RunContainerError", error.to_string()))
            }
        }
    }

    /// The file that the container finds at its path for last words.
    fn message_file(&self) -> Result<Option<PathBuf>, String> {
        let path = self.container.termination_message_path.as_deref().unwrap_or("");
        if !self.shared.runtime.can_mount() || path.is_empty() {
            return Ok(None);
        }
        let folder = self.shared.pod_folder(&self.target.uid);
        let file = folder.join(format!("{}.{}.message", self.container.name, self.run));
        let made = fs::File::create(&file).and_then(|file| {
            use std::os::unix::fs::PermissionsExt;
            // Whoever the container runs as may write.
            file.set_permissions(fs::Permissions::from_mode(0o666))
        });
        made.map_err(|error| format!("cannot create {}: {error}", file.display()))?;
        Ok(Some(file))
    }
}
