//! The helper: a small process with one thread that forks, so that the server, which is large and
//! has many, never does. It does what the server asks, reaps what has ended, and ends everything
//! when the server is gone.
//!
//! ```text
//! server ── socket ── helper ─┬─ keeper ── first process of a container ── …
//!              │              ├─ keeper ── …
//!              └── reports ───┴─ …
//! ```

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::stdio::stdin;

use super::Isolation;
use super::cgroup::{self, Groups};
use super::channel::Receiver;
use super::isolation::{self, Found, OF_A_SANDBOX};
use super::keeper::{self, Reach, Task, View, report};
use super::sys::{self, Fork, Pid, SharedNumber};
use super::templates::Templates;
use super::tree;
use super::wire::{Begin, Failure, Launch, Ready, Report, Request, Wire};
use crate::runtime::{Limits, Mount};

/// Runs the helper until its server is gone. Standard input is its socket.
pub(super) fn run() -> ! {
    sys::block_signals();
    sys::reset_signals();
    // Not the server's: what is made on the way to a mount is for whoever a container runs as.
    sys::set_umask(0o022);
    sys::close_from(3);
    let mut receiver = Receiver::new();
    let begin = match receiver.receive(stdin()) {
        Ok(Some((message, _))) => Request::from_bytes(&message),
        Ok(None) => sys::exit(0),
        Err(error) => {
            eprintln!("the process helper is started by a node, with a socket as input: {error}");
            sys::exit(2);
        }
    };
    let Ok(Request::Begin(begin)) = begin else {
        eprintln!("the process helper was sent something else than how to begin");
        sys::exit(2);
    };
    match Helper::new(begin) {
        Ok(helper) => helper.serve(receiver),
        Err(failure) => report(&Report::Refused { failure }),
    }
    sys::exit(0)
}

struct Helper {
    children: OwnedFd,
    folder: PathBuf,
    found: Found,
    machine_name: String,
    groups: Option<Groups>,
    /// What processes had before server and helper allowed themselves more.
    descriptors: Rlimit,
    /// Where one child tells the number of another.
    told: SharedNumber,
    templates: Templates,
    sandboxes: HashMap<u64, Sandbox>,
    /// The sandbox whose namespaces the helper is in.
    current: Option<u64>,
    runs: HashMap<u64, Run>,
    pids: HashMap<Pid, Child>,
}

struct Sandbox {
    hostname: Option<String>,
    shares_processes: bool,
    limits: Limits,
    /// Its uts and ipc namespaces, while the helper is in others.
    namespaces: Option<[OwnedFd; 2]>,
    /// The first process of the pid namespace that its containers share.
    first: Option<Pid>,
    group: Option<PathBuf>,
    runs: HashSet<u64>,
    closing: bool,
}

struct Run {
    keeper: Pid,
    reach: Reach,
    sandbox: u64,
    /// The container that it runs beside.
    beside: Option<u64>,
    group: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Child {
    Keeper(u64),
    First(u64),
}

impl Sandbox {
    /// Without a control group each process has what all of them may have together.
    fn limit_processes(&self, launch: &mut Launch) {
        let both = [launch.limits.memory_bytes, self.limits.memory_bytes];
        launch.limits.memory_bytes = both.into_iter().flatten().min();
    }
}

impl Helper {
    fn new(begin: Begin) -> Result<Helper, Failure> {
        let machine = |what: &'static str| move |error: io::Error| Failure::machine(what, &error);
        // Neither more nor less likely to be ended for want of memory than others; containers
        // inherit it.
        let _ = fs::write("/proc/self/oom_score_adj", "0");
        let (current, maximum) = begin.descriptors;
        let descriptors = Rlimit { current, maximum };
        let most = getrlimit(Resource::Nofile).maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
        sys::become_subreaper().map_err(machine("becoming a subreaper"))?;
        // Before the user namespace, in which the groups would belong to nobody.
        let groups = Groups::open(&begin.node);
        let mut found = isolation::settle(begin.isolation, &begin.folder)?;
        if let Err(why) = &groups {
            found.notes.push(format!("limits hold for single processes only: {why}"));
        }
        let ready = Ready {
            isolation: found.isolation,
            own_processes: found.own_processes,
            control_groups: groups.is_ok(),
            notes: found.notes.clone(),
        };
        let helper = Helper {
            children: sys::child_signals().map_err(machine("watching for ended processes"))?,
            folder: begin.folder,
            found,
            machine_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            groups: groups.ok(),
            descriptors,
            told: SharedNumber::new().map_err(machine("sharing memory"))?,
            templates: Templates::new(),
            sandboxes: HashMap::new(),
            current: None,
            runs: HashMap::new(),
            pids: HashMap::new(),
        };
        report(&Report::Ready(ready));
        Ok(helper)
    }

    fn serve(mut self, mut receiver: Receiver) {
        loop {
            let mut ready = [
                PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            let _ = poll(&mut ready, None);
            let [asked, ended] = ready.map(|fd| !fd.revents().is_empty());
            if ended {
                self.reap();
            }
            if asked {
                match receiver.receive(stdin()) {
                    Ok(Some((message, fds))) => match Request::from_bytes(&message) {
                        Ok(request) => self.handle(request, fds),
                        Err(_) => break,
                    },
                    Ok(None) | Err(_) => break,
                }
            }
        }
        self.end();
    }

    /// The server is gone: everything ends.
    fn end(mut self) {
        for sandbox in self.sandboxes.keys().copied().collect::<Vec<_>>() {
            self.close(sandbox);
        }
        while !self.pids.is_empty() {
            match sys::reap(None, true) {
                Ok(Some((pid, status))) => self.reaped(pid, status),
                Ok(None) | Err(_) => break,
            }
        }
        tree::end_descendants(&HashSet::new());
    }

    fn handle(&mut self, request: Request, fds: Vec<OwnedFd>) {
        match request {
            // It was the first one.
            Request::Begin(_) => {}
            Request::Open { sandbox, hostname, shares_processes, limits } => {
                self.sandboxes.insert(
                    sandbox,
                    Sandbox {
                        hostname,
                        shares_processes,
                        limits,
                        namespaces: None,
                        first: None,
                        group: None,
                        runs: HashSet::new(),
                        closing: false,
                    },
                );
            }
            Request::Start { sandbox, run, launch, mounts } => {
                let started = streams(fds, launch.has_stdin)
                    .and_then(|streams| self.start(sandbox, run, launch, &mounts, streams));
                self.settle(run, started);
            }
            Request::Exec { container, run, launch } => {
                let started = streams(fds, launch.has_stdin)
                    .and_then(|streams| self.exec(container, run, launch, streams));
                self.settle(run, started);
            }
            Request::Signal { run, signal } => {
                if let Some(run) = self.runs.get(&run) {
                    keeper::signal(run.keeper, run.reach, signal);
                }
            }
            Request::Close { sandbox } => self.close(sandbox),
        }
    }

    /// Remembers who was forked, or says why nobody was.
    fn settle(&mut self, run: u64, started: Result<Run, Failure>) {
        match started {
            Ok(state) => {
                self.pids.insert(state.keeper, Child::Keeper(run));
                if let Some(sandbox) = self.sandboxes.get_mut(&state.sandbox) {
                    sandbox.runs.insert(run);
                }
                self.runs.insert(run, state);
            }
            Err(failure) => {
                report(&Report::Failed { run, failure });
                report(&Report::Gone { run, out_of_memory: false });
            }
        }
    }

    fn start(
        &mut self,
        id: u64,
        run: u64,
        mut launch: Launch,
        mounts: &[Mount],
        streams: Streams,
    ) -> Result<Run, Failure> {
        let isolated = self.found.isolation != Isolation::None;
        self.enter(id)?;
        let group = self.group_for(id, run, &mut launch)?;
        let template = self.templates.find_or_make(mounts, &self.folder);
        let sandbox = &self.sandboxes[&id];
        let shared = sandbox.first.filter(|_| self.found.own_processes);
        let own_pids = self.found.own_processes && shared.is_none();
        let reach = if own_pids { Reach::Namespace } else { Reach::Descendants };
        let task = Task {
            run,
            launch: &launch,
            reach,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            group: group.clone(),
            descriptors: self.descriptors,
            view: if isolated {
                let own_processes = self.found.own_processes;
                View::Own { mounts, folder: &self.folder, own_processes, template }
            } else {
                View::Same
            },
        };
        let mut namespaces = if own_pids { libc::CLONE_NEWPID } else { 0 };
        if isolated && template.is_none() {
            namespaces |= libc::CLONE_NEWNS;
        }
        let forked = match shared {
            None => sys::fork(namespaces),
            Some(first) => fork_into(first, &self.told, namespaces),
        };
        match forked {
            Ok(Fork::Child) => keeper::keep(task),
            Ok(Fork::Parent(keeper)) => Ok(Run { keeper, reach, sandbox: id, beside: None, group }),
            Err(error) => {
                group.iter().for_each(|group| cgroup::remove(group));
                Err(Failure::machine("starting a process", &error))
            }
        }
    }

    /// Goes into a sandbox's uts and ipc namespaces, which those that are forked get; they are
    /// made if there are none yet. The first process of a shared pid namespace, too.
    fn enter(&mut self, id: u64) -> Result<(), Failure> {
        let machine = |what: &'static str| move |error: io::Error| Failure::machine(what, &error);
        if self.sandboxes.get(&id).is_none_or(|sandbox| sandbox.closing) {
            return Err(Failure::cannot_run("the sandbox was closed"));
        }
        if self.found.isolation == Isolation::None {
            return Ok(());
        }
        if self.current != Some(id) {
            let left = self.current.take().and_then(|left| self.sandboxes.get_mut(&left));
            if let Some(left) = left.filter(|left| left.namespaces.is_none()) {
                let open = |name| File::open(name).map(OwnedFd::from);
                let [uts, ipc] = ["/proc/self/ns/uts", "/proc/self/ns/ipc"].map(open);
                let keep = machine("keeping the namespaces of a sandbox");
                left.namespaces = Some([uts.map_err(keep)?, ipc.map_err(keep)?]);
            }
            let sandbox = self.sandboxes.get_mut(&id).expect("it was found above");
            match &sandbox.namespaces {
                Some([uts, ipc]) => sys::join_namespace(uts.as_fd(), libc::CLONE_NEWUTS)
                    .and_then(|()| sys::join_namespace(ipc.as_fd(), libc::CLONE_NEWIPC))
                    .map_err(machine("entering the namespaces of a sandbox"))?,
                None => {
                    sys::unshare(OF_A_SANDBOX).map_err(machine("making uts and ipc namespaces"))?;
                    // A new namespace has the name of the one before, which is another Pod's.
                    let name = sandbox.hostname.as_ref().unwrap_or(&self.machine_name);
                    sys::set_hostname(name).map_err(|error| {
                        Failure::cannot_run(format!("setting the host name {name:?}: {error}"))
                    })?;
                }
            }
            self.current = Some(id);
        }
        let sandbox = self.sandboxes.get_mut(&id).expect("it was found above");
        if sandbox.shares_processes && sandbox.first.is_none() && self.found.own_processes {
            match sys::fork(libc::CLONE_NEWPID).map_err(machine("making a pid namespace"))? {
                Fork::Child => be_first(),
                Fork::Parent(first) => {
                    sandbox.first = Some(first);
                    self.pids.insert(first, Child::First(id));
                }
            }
        }
        Ok(())
    }

    /// The control group of a container with limits. Where there are none, what can be said of
    /// single processes stays in `launch`.
    fn group_for(
        &mut self,
        id: u64,
        run: u64,
        launch: &mut Launch,
    ) -> Result<Option<PathBuf>, Failure> {
        let sandbox = self.sandboxes.get_mut(&id).expect("it was found before");
        let limited = |limits: &Limits| *limits != Limits::default();
        if !limited(&sandbox.limits) && !limited(&launch.limits) {
            return Ok(None);
        }
        let Some(groups) = &self.groups else {
            sandbox.limit_processes(launch);
            return Ok(None);
        };
        let refused =
            |error: io::Error| Failure::machine("making a control group for its limits", &error);
        if limited(&sandbox.limits) && sandbox.group.is_none() {
            sandbox.group = Some(groups.make_sandbox(id, &sandbox.limits).map_err(refused)?);
        }
        let made = groups.make_container(sandbox.group.as_deref(), run, &launch.limits);
        made.map(Some).map_err(refused)
    }

    fn exec(
        &mut self,
        container: u64,
        run: u64,
        mut launch: Launch,
        streams: Streams,
    ) -> Result<Run, Failure> {
        let Some(beside) = self.runs.get(&container) else {
            return Err(Failure::cannot_run("the container has ended"));
        };
        let mut kinds: Vec<(&str, libc::c_int)> = Vec::new();
        if self.found.isolation != Isolation::None {
            kinds.extend([
                ("mnt", libc::CLONE_NEWNS),
                ("uts", libc::CLONE_NEWUTS),
                ("ipc", libc::CLONE_NEWIPC),
            ]);
        }
        if self.found.own_processes {
            kinds.push(("pid", libc::CLONE_NEWPID));
        }
        let namespaces = kinds
            .into_iter()
            .map(|(name, kind)| {
                let path = format!("/proc/{}/ns/{name}", beside.keeper);
                File::open(path).map(|file| (OwnedFd::from(file), kind))
            })
            .collect::<io::Result<Vec<_>>>()
            // The keeper ends when its container does, before it is reaped.
            .map_err(|_| Failure::cannot_run("the container has ended"))?;
        let sandbox = beside.sandbox;
        if beside.group.is_none() {
            self.sandboxes[&sandbox].limit_processes(&mut launch);
        }
        let reach = if self.found.own_processes { Reach::Session } else { Reach::Descendants };
        let task = Task {
            run,
            launch: &launch,
            reach,
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            group: beside.group.clone(),
            descriptors: self.descriptors,
            view: View::Of { namespaces },
        };
        match sys::fork(0).map_err(|error| Failure::machine("starting a process", &error))? {
            Fork::Child => keeper::keep(task),
            Fork::Parent(keeper) => {
                Ok(Run { keeper, reach, sandbox, beside: Some(container), group: None })
            }
        }
    }

    fn close(&mut self, id: u64) {
        let Some(sandbox) = self.sandboxes.get_mut(&id) else {
            report(&Report::Closed { sandbox: id });
            return;
        };
        sandbox.closing = true;
        sandbox.namespaces = None;
        // With the first process of a shared pid namespace all others in it end.
        if let Some(first) = sandbox.first {
            let _ = sys::kill(first, libc::SIGKILL);
        }
        for run in sandbox.runs.iter().filter_map(|run| self.runs.get(run)) {
            keeper::signal(run.keeper, run.reach, libc::SIGKILL);
        }
        self.finish_closing(id);
    }

    fn finish_closing(&mut self, id: u64) {
        let empty = |sandbox: &Sandbox| sandbox.runs.is_empty() && sandbox.first.is_none();
        let over = |sandbox: &&mut Sandbox| sandbox.closing && empty(sandbox);
        if self.sandboxes.get_mut(&id).filter(over).is_some() {
            let sandbox = self.sandboxes.remove(&id).expect("it was found above");
            sandbox.group.iter().for_each(|group| cgroup::remove(group));
            report(&Report::Closed { sandbox: id });
        }
    }

    fn reap(&mut self) {
        let mut signals = [0; 128];
        while rustix::io::read(&self.children, &mut signals).is_ok() {}
        while let Ok(Some((pid, status))) = sys::reap(None, false) {
            self.reaped(pid, status);
        }
    }

    fn reaped(&mut self, pid: Pid, status: i32) {
        match self.pids.remove(&pid) {
            Some(Child::Keeper(run)) => self.gone(run, status),
            Some(Child::First(sandbox)) => {
                if let Some(sandbox) = self.sandboxes.get_mut(&sandbox) {
                    sandbox.first = None;
                }
                self.finish_closing(sandbox);
            }
            // Somebody whose keeper has ended before.
            None => {}
        }
    }

    fn gone(&mut self, id: u64, status: i32) {
        let Some(run) = self.runs.remove(&id) else { return };
        if status != 0 && run.reach == Reach::Descendants {
            // The keeper was ended by somebody else: who it kept are the helper's own now.
            tree::end_descendants(&self.pids.keys().copied().collect());
        }
        let sandbox = self.sandboxes.get(&run.sandbox);
        let others = sandbox.into_iter().flat_map(|sandbox| &sandbox.runs);
        for other in others.filter_map(|other| self.runs.get(other)) {
            if other.beside == Some(id) {
                keeper::signal(other.keeper, other.reach, libc::SIGKILL);
            }
        }
        let out_of_memory = run.group.as_deref().is_some_and(cgroup::out_of_memory);
        run.group.iter().for_each(|group| cgroup::remove(group));
        report(&Report::Gone { run: id, out_of_memory });
        if let Some(sandbox) = self.sandboxes.get_mut(&run.sandbox) {
            sandbox.runs.remove(&id);
        }
        self.finish_closing(run.sandbox);
    }
}

/// Forks into the pid namespace of another process. Only children of who enters one are in
/// it, and who is not root in the machine's own cannot come back, so that a child enters and
/// forks in its parent's stead.
fn fork_into(first: Pid, told: &SharedNumber, namespaces: libc::c_int) -> io::Result<Fork> {
    let namespace = File::open(format!("/proc/{first}/ns/pid"))?;
    told.set(0);
    let between = match sys::fork(0)? {
        Fork::Parent(between) => between,
        Fork::Child => {
            let forked = sys::join_namespace(namespace.as_fd(), libc::CLONE_NEWPID)
                .and_then(|()| sys::fork(namespaces | libc::CLONE_PARENT));
            match forked {
                Ok(Fork::Child) => return Ok(Fork::Child),
                Ok(Fork::Parent(pid)) => told.set(pid),
                Err(error) => told.set(-error.raw_os_error().unwrap_or(libc::EIO)),
            }
            sys::exit(0)
        }
    };
    sys::reap(Some(between), true)?;
    match told.get() {
        pid if pid > 0 => Ok(Fork::Parent(pid)),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// What came with a request.
struct Streams {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

fn streams(fds: Vec<OwnedFd>, has_stdin: bool) -> Result<Streams, Failure> {
    let mut fds = fds.into_iter();
    match (fds.next(), fds.next(), fds.next()) {
        (Some(stdout), Some(stderr), stdin) if stdin.is_some() == has_stdin => {
            Ok(Streams { stdin, stdout, stderr })
        }
        // The kernel leaves descriptors out if this process may not have more.
        _ => {
            let error = io::Error::from_raw_os_error(libc::EMFILE);
            Err(Failure::machine("receiving the input and the outputs", &error))
        }
    }
}

/// The first process of a pid namespace that containers share: takes in who loses a parent.
fn be_first() -> ! {
    sys::set_death_signal(libc::SIGKILL);
    // Nothing of the server's or of other sandboxes is held here.
    if let Ok(null) = File::open("/dev/null") {
        let _ = sys::copy_to(null.as_fd(), 0);
    }
    sys::close_from(3);
    loop {
        while let Ok(Some(_)) = sys::reap(None, false) {}
        sys::wait_signal(&[libc::SIGCHLD]);
    }
}
