//! What this machine lets this user do: which namespaces there are, and by which right. It is
//! found out by doing it once, in a process that ends afterwards.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount};

use super::Isolation;
use super::mounts;
use super::sys::{self, Fork};
use super::wire::{Failure, FailureKind};
use crate::runtime::Mount;

/// The namespaces that a container's keeper starts in, beside those of its sandbox.
pub(super) const OF_A_CONTAINER: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWPID;

/// The namespaces of a sandbox.
pub(super) const OF_A_SANDBOX: libc::c_int = libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) isolation: Isolation,
    /// Whether /proc can be mounted. Where it cannot, containers have no pid namespaces: with
    /// the /proc of another namespace a process cannot even find itself.
    pub(super) own_processes: bool,
    pub(super) notes: Vec<String>,
}

/// Finds out what is possible, and enters the user namespace if there is to be one.
pub(super) fn settle(wanted: Option<Isolation>, folder: &Path) -> Result<Found, Failure> {
    let candidates = match &wanted {
        Some(isolation) => std::slice::from_ref(isolation),
        None => &[Isolation::Root, Isolation::User, Isolation::None],
    };
    let mut notes = Vec::new();
    for isolation in candidates.iter().copied() {
        let enter = isolation == Isolation::User;
        let outcome = match isolation {
            Isolation::None => Trial { works: true, own_processes: false, stage: "" },
            Isolation::Root | Isolation::User => attempt(enter, folder),
        };
        if outcome.works {
            if enter {
                enter_user_namespace().map_err(|error| {
                    Failure::machine("entering a user namespace, which worked just now", &error)
                })?;
            }
            if isolation != Isolation::None && !outcome.own_processes {
                notes.push("/proc cannot be mounted, so that containers see all processes".into());
            }
            return Ok(Found { isolation, own_processes: outcome.own_processes, notes });
        }
        notes.push(format!("{}: {}", isolation.described(), outcome.stage));
    }
    Err(Failure::new(
        FailureKind::Unsupported,
        format!("containers cannot be kept apart as was asked for ({})", notes.join("; ")),
    ))
}

impl Isolation {
    fn described(self) -> &'static str {
        match self {
            Isolation::Root => "namespaces as root",
            Isolation::User => "namespaces within a user namespace",
            Isolation::None => "no namespaces",
        }
    }
}

struct Trial {
    works: bool,
    own_processes: bool,
    stage: &'static str,
}

/// The steps of a trial; its process ends with the number of the one that failed.
const STAGES: [&str; 5] = [
    "the trial itself could not be made",
    "a user namespace cannot be made (see user.max_user_namespaces, \
     kernel.apparmor_restrict_unprivileged_userns, or the seccomp profile around this process)",
    "pid, mount, uts and ipc namespaces cannot be made (it takes CAP_SYS_ADMIN)",
    "nothing can be mounted",
    "mounts cannot be placed (it takes Linux 5.12)",
];
const ALL_WORKS: i32 = 100;
const ALL_BUT_PROC: i32 = 101;

fn attempt(enter: bool, folder: &Path) -> Trial {
    let failed = |stage| Trial { works: false, own_processes: false, stage };
    let Ok(forked) = sys::fork(0) else { return failed(STAGES[0]) };
    let pid = match forked {
        Fork::Child => {
            if enter && enter_user_namespace().is_err() {
                sys::exit(1);
            }
            let code = match sys::fork(OF_A_CONTAINER | OF_A_SANDBOX) {
                Err(_) => 2,
                Ok(Fork::Child) => sys::exit(try_mounts(folder)),
                Ok(Fork::Parent(pid)) => exit_code(pid),
            };
            sys::exit(code)
        }
        Fork::Parent(pid) => pid,
    };
    match exit_code(pid) {
        ALL_WORKS => Trial { works: true, own_processes: true, stage: "" },
        ALL_BUT_PROC => Trial { works: true, own_processes: false, stage: "" },
        code => failed(STAGES.get(code as usize).unwrap_or(&STAGES[0])),
    }
}

fn exit_code(pid: sys::Pid) -> i32 {
    match sys::reap(Some(pid), true) {
        Ok(Some((_, status))) if libc::WIFEXITED(status) => libc::WEXITSTATUS(status),
        _ => 0,
    }
}

/// All that the mounts of a container need, in a mount namespace that ends with this process.
fn try_mounts(folder: &Path) -> i32 {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    if mounts::begin().is_err() || mount("stint", folder, "tmpfs", flags, None).is_err() {
        return 3;
    }
    let proc = mounts::mount_proc().is_ok();
    let source = folder.join("source");
    // Whatever there is at the root, this is not: the trial includes what is most difficult.
    let target = Path::new("/.stint-trial");
    let mount = Mount { source: source.clone(), target: target.into(), read_only: true };
    let placed = fs::create_dir(&source).is_ok()
        && mounts::mount_all(&[mount], folder).is_ok()
        && target.is_dir()
        && fs::write(target.join("file"), b"").is_err();
    match (placed, proc) {
        (false, _) => 4,
        (true, true) => ALL_WORKS,
        (true, false) => ALL_BUT_PROC,
    }
}

/// Makes this process root in a user namespace where it is still the user that it was.
fn enter_user_namespace() -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    sys::unshare(libc::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
