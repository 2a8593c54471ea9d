//! The process between the helper and a container: it prepares what the container sees, starts
//! its first process, and tells the server how that ends. It is forked off the helper and runs no
//! program of its own; its memory is at the hand of the first process until that runs one.
//!
//! Where a container has a pid namespace, its keeper is the first process there: it takes in
//! whoever loses a parent, and when it ends the kernel ends everybody else in the namespace. The
//! container's own first process is the second one, for which signals mean what they usually do.
//! Elsewhere the keeper is a subreaper, and ends whoever descends from it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Rlimit;

use super::channel::Packet;
use super::launch::{Prepared, Surroundings};
use super::mounts;
use super::sys::{self, Fork, Pid};
use super::tree::{self, Patience};
use super::wire::{Failure, Launch, Report, Wire};
use crate::runtime::Mount;

/// How long is waited for the processes of a session that was killed.
const SESSION_TIME: Duration = Duration::from_secs(10);

/// How a keeper knows who belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Everybody in its pid namespace.
    Namespace,
    /// Everybody who descends from it.
    Descendants,
    /// The session of a program that runs beside a container, in whose pid namespace the keeper is
    /// not. Who leaves the session ends with the container.
    Session,
}

/// What a keeper is to do.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub(super) run: u64,
    pub(super) launch: &'a Launch,
    pub(super) reach: Reach,
    /// What it reads; nothing if there is none.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The control group.
    pub(super) group: Option<PathBuf>,
    pub(super) descriptors: Rlimit,
    pub(super) view: View<'a>,
}

/// What the container sees of the machine.
#[derive(Debug)]
pub(super) enum View<'a> {
    /// What the helper sees.
    Same,
    /// A mount namespace of its own, which the keeper is in already, or a copy of another.
    Own {
        mounts: &'a [Mount],
        folder: &'a Path,
        own_processes: bool,
        template: Option<BorrowedFd<'a>>,
    },
    /// The namespaces of another process, and their kinds.
    Of { namespaces: Vec<(OwnedFd, libc::c_int)> },
}

/// Sent by the helper, with the number of the signal that the container's processes are to get.
pub(super) fn pass_on() -> i32 {
    libc::SIGRTMIN()
}

/// Sent by the kernel when the helper has ended.
fn helper_ended() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Sends a signal to all processes of a keeper's container.
pub(super) fn signal(keeper: Pid, reach: Reach, signal: i32) {
    // Nothing is left to be signalled if the keeper has ended.
    let _ = if signal == libc::SIGKILL && reach == Reach::Namespace {
        // The kernel is quicker than anybody who would have to be asked.
        sys::kill(keeper, libc::SIGKILL)
    } else {
        sys::queue_signal(keeper, pass_on(), signal)
    };
}

/// Keeps a container until it has ended. The server's socket is standard input.
pub(super) fn keep(task: Task<'_>) -> ! {
    sys::set_death_signal(match task.reach {
        Reach::Namespace => libc::SIGKILL,
        Reach::Descendants | Reach::Session => helper_ended(),
    });
    let (run, reach) = (task.run, task.reach);
    match start(task) {
        Ok((first, processes)) => {
            report(&Report::Started { run, at: now() });
            let status = wait_for_end(first, reach);
            let exited = status.map(|status| Report::Exited { run, status, at: now() });
            match reach {
                // The kernel does it, at the end of the keeper.
                Reach::Namespace => {}
                Reach::Descendants => tree::end_descendants(&HashSet::new()),
                Reach::Session => {
                    processes.iter().for_each(|processes| end_session(first, processes.as_fd()));
                }
            }
            exited.iter().for_each(report);
        }
        Err(failure) => report(&Report::Failed { run, failure }),
    }
    sys::exit(0)
}

/// Ends who is left of a session, and waits until nobody of it lives. Those who have ended are
/// somebody else's children, who may take note of that or not: nothing runs of them any more. One
/// who does not end although it was killed waits for the machine, and ends when that answers.
fn end_session(first: Pid, processes: BorrowedFd<'_>) {
    // Most leave nobody behind, and if nobody is in the group either it is over at once.
    let _ = sys::kill(-first, libc::SIGKILL);
    let until = Instant::now() + SESSION_TIME;
    let mut patience = Patience::default();
    loop {
        // A shell with a terminal gives each of its jobs a group of its own.
        let left = tree::of_session(processes, first);
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for pid in left {
            let _ = sys::kill(pid, libc::SIGKILL);
        }
        patience.wait();
    }
}

/// Tells the server. If it is gone, the helper sees that, too.
pub(super) fn report(report: &Report) {
    let _ = Packet::new(&report.to_bytes(), Vec::new())
        .and_then(|packet| packet.send(rustix::stdio::stdin()));
}

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}

/// Starts the container's first process. For who has a session to end it also comes back with the
/// folder of the machine's processes: in the container it is another one.
fn start(task: Task<'_>) -> Result<(Pid, Option<OwnedFd>), Failure> {
    let machine = |what: &'static str| move |error: io::Error| Failure::machine(what, &error);
    let Task { launch, reach, stdin, stdout, stderr, group, descriptors, view, .. } = task;
    let prepared = Prepared::new(launch)?;
    let group = group
        .map(|group| File::options().write(true).open(group.join("cgroup.procs")))
        .transpose()
        .map_err(machine("opening the control group"))?
        .map(OwnedFd::from);
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(machine("opening /dev/null"))?;
    // Not for a keeper that the container can see: it would see the machine's processes through it.
    let processes = (reach == Reach::Session)
        .then(|| File::open("/proc").map(OwnedFd::from))
        .transpose()
        .map_err(machine("opening /proc"))?;
    enter(view, launch.working_dir.as_deref())?;
    if reach == Reach::Descendants {
        sys::become_subreaper().map_err(machine("becoming a subreaper"))?;
    }
    sys::copy_to(stdout.as_fd(), 1)
        .and_then(|()| sys::copy_to(stderr.as_fd(), 2))
        .map_err(machine("handing over the outputs"))?;
    drop((stdout, stderr));
    let (mut failures, told) = io::pipe().map_err(machine("making a pipe"))?;
    let around = Surroundings {
        stdin: stdin.as_ref().map_or(null.as_fd(), AsFd::as_fd),
        group: group.as_ref(),
        descriptors,
        death_signal: if reach == Reach::Namespace { 0 } else { libc::SIGKILL },
    };
    // Who turns into somebody else, or can be seen by processes that are there already, should not have
    // this one's memory at hand. And in a control group with too little memory for the program to begin
    // the kernel ends nobody who has only borrowed his: the program would fail in some odd way instead.
    let may_borrow =
        prepared.stays_the_same_user() && reach == Reach::Namespace && around.group.is_none();
    let first = match may_borrow {
        true => sys::start_borrowing(|| prepared.run(&around, &told)),
        false => sys::fork(0).map(|fork| match fork {
            Fork::Child => prepared.run(&around, &told),
            Fork::Parent(first) => first,
        }),
    };
    let first = first.map_err(machine("starting a process"))?;
    drop((told, stdin));
    // Whoever reads the outputs must see when the last process of the container is gone.
    sys::copy_to(null.as_fd(), 1)
        .and_then(|()| sys::copy_to(null.as_fd(), 2))
        .map_err(machine("letting go of the outputs"))?;
    let mut failure = Vec::new();
    failures.read_to_end(&mut failure).map_err(machine("reading from a pipe"))?;
    if failure.is_empty() {
        drop((failures, null, group, prepared));
        let processes = match processes {
            Some(kept) => Some(sys::close_all_but(kept, 3).map_err(machine("keeping /proc"))?),
            None => {
                sys::close_from(3);
                None
            }
        };
        return Ok((first, processes));
    }
    Err(Failure::from_bytes(&failure).unwrap_or_else(|malformed| {
        Failure::machine(malformed.to_string(), &io::ErrorKind::InvalidData.into())
    }))
}

fn enter(view: View<'_>, working_dir: Option<&Path>) -> Result<(), Failure> {
    match view {
        View::Same => Ok(()),
        View::Own { mounts, folder, own_processes, template } => {
            let begun = match template {
                None => mounts::begin(),
                Some(template) => sys::join_namespace(template, libc::CLONE_NEWNS)
                    .and_then(|()| sys::unshare(libc::CLONE_NEWNS)),
            };
            begun.map_err(|error| Failure::machine("taking mounts over", &error))?;
            if own_processes {
                mounts::mount_proc().map_err(|error| Failure::machine("mounting /proc", &error))?;
            }
            if !mounts.is_empty() {
                mounts::mount_all(mounts, folder)?;
                working_dir.iter().for_each(|folder| mounts::make_folder_within(mounts, folder));
            }
            Ok(())
        }
        View::Of { namespaces } => namespaces
            .iter()
            .try_for_each(|(namespace, kind)| sys::join_namespace(namespace.as_fd(), *kind))
            .map_err(|error| Failure::machine("entering the container", &error)),
    }
}

/// Takes the statuses of all children, until that of the first process comes; and passes signals
/// on meanwhile. None if the process was ended because the helper has: it is lost.
fn wait_for_end(first: Pid, reach: Reach) -> Option<i32> {
    let signals = [libc::SIGCHLD, pass_on(), helper_ended()];
    let helper = parent();
    let mut is_lost = false;
    loop {
        while let Ok(Some((pid, status))) = sys::reap(None, false) {
            if pid == first {
                return (!is_lost).then_some(status);
            }
        }
        let received = sys::wait_signal(&signals);
        // What the container sends is not the helper's.
        if received.signal == pass_on() && received.sender == helper {
            send(first, reach, received.value);
        } else if received.signal == helper_ended() && parent() != helper {
            is_lost = true;
            send(first, reach, libc::SIGKILL);
        }
    }
}

/// 0 if the parent is outside of this pid namespace.
fn parent() -> Pid {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid())
}

fn send(first: Pid, reach: Reach, signal: i32) {
    match reach {
        Reach::Namespace => drop(sys::kill(-1, signal)),
        // At the end of the first process all others are ended.
        Reach::Descendants if signal == libc::SIGKILL => drop(sys::kill(first, signal)),
        Reach::Descendants => tree::signal_descendants(signal),
        Reach::Session => drop(sys::kill(-first, signal).or_else(|_| sys::kill(first, signal))),
    }
}
