//! The system calls that have no safe wrapper elsewhere, each behind a safe function. This is the
//! only file of the runtime with unsafe code; it knows nothing of containers.
//!
//! # Assumptions
//! Everything here but [`pidfd_open`], [`pidfd_kill`] and [`watch`] is called in the helper and the
//! processes forked off it, all of which have one thread. That is what makes a plain fork safe:
//! no other thread can hold a lock that the child would wait for.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::io::unix::AsyncFd;

/// A process's number.
pub(super) type Pid = libc::pid_t;

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old one, and the number of the new one.
    Parent(Pid),
}

/// Forks, with the namespaces that `flags` asks for (`CLONE_NEW…`, `CLONE_PARENT`).
pub(super) fn fork(flags: libc::c_int) -> io::Result<Fork> {
    let flags = (flags | libc::SIGCHLD) as libc::c_long;
    let none = 0 as libc::c_long;
    // SAFETY: without CLONE_VM and without a new stack this is a fork: the child has a copy of
    // all memory and goes on from here. The caller has one thread (see above). s390x takes the
    // stack first.
    #[cfg(not(target_arch = "s390x"))]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    // SAFETY: as above.
    #[cfg(target_arch = "s390x")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, none, flags, none, none, none) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid as Pid)),
    }
}

/// How much stack whoever is started by [`start_borrowing`] has: it makes some calls and formats an
/// error at most. What is not touched takes no memory.
const BORROWED_STACK_BYTES: usize = 256 * 1024;

/// Starts a process that works with this one's memory until it runs a program or exits; if `work` comes
/// back, with the code that it returns. This one stands still until then. So nothing of it is copied, which
/// is what a fork costs.
pub(super) fn start_borrowing(mut work: impl FnMut() -> libc::c_int) -> io::Result<Pid> {
    extern "C" fn begin(work: *mut libc::c_void) -> libc::c_int {
        let work = work.cast::<&mut dyn FnMut() -> libc::c_int>();
        // SAFETY: it is what is handed over below, and stays there while that stands still.
        unsafe { (*work)() }
    }
    // Aligned as a stack has to be, wherever it begins.
    let mut stack = Vec::<u128>::with_capacity(BORROWED_STACK_BYTES / size_of::<u128>());
    let mut work: &mut dyn FnMut() -> libc::c_int = &mut work;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own, all of it within `stack`, which grows down on every
    // machine that is supported. It shares the memory, but CLONE_VFORK has this thread, the only one (see
    // above), stand still until the child runs a program or ends: `work` and `stack` outlive its
    // use of them, and nobody else looks at what it changes meanwhile.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(begin, top.cast(), flags, ptr::from_mut(&mut work).cast())
    };
    check(pid)
}

/// Ends this process at once, without running anything that its parent has registered.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not come back.
    unsafe { libc::_exit(code) }
}

/// Runs another program in this process. Comes back only if that is not possible.
pub(super) fn exec(program: &CStr, args: &[CString], env: &[CString]) -> io::Error {
    let args: Vec<*const libc::c_char> =
        args.iter().map(|arg| arg.as_ptr()).chain([ptr::null()]).collect();
    let env: Vec<*const libc::c_char> =
        env.iter().map(|entry| entry.as_ptr()).chain([ptr::null()]).collect();
    // SAFETY: both are arrays of pointers to strings that outlive the call, ended by a null.
    unsafe { libc::execve(program.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Blocks every signal that can be blocked, for this process and those forked off it.
pub(super) fn block_signals() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set before sigprocmask reads it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut());
    }
}

/// Gives every signal its usual meaning; none is ignored. Those that libc keeps for itself
/// neither, which `signal` would refuse: whoever started the node may have ignored them.
pub(super) fn reset_signals() {
    const SET_BYTES: usize = 8;
    // All zero is the default action, no flags and no other signals blocked; no kernel's
    // structure is larger.
    let default = [0_u64; 8];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the kernel reads the structure only, and puts no function of ours anywhere.
        // What cannot be changed (SIGKILL, SIGSTOP) is refused and stays.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                SET_BYTES,
            )
        };
    }
}

/// Lets every signal through.
pub(super) fn unblock_signals() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before sigprocmask reads it.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// A signal that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Which one.
    pub(super) signal: i32,
    /// Who sent it; 0 if that is a process outside of this one's pid namespace.
    pub(super) sender: Pid,
    /// What the sender gave with it; 0 if it was not queued with a value.
    pub(super) value: i32,
}

/// Waits for one of these signals, which are blocked.
pub(super) fn wait_signal(signals: &[i32]) -> Received {
    let mut set = MaybeUninit::uninit();
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: the set is initialised before it is read; info is written by the kernel, and
        // zero is a valid value for all of it.
        let signal = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            libc::sigwaitinfo(set.as_ptr(), info.as_mut_ptr())
        };
        if signal < 0 {
            continue;
        }
        // SAFETY: sigwaitinfo has filled it; the union's other members overlap with integers.
        let (sender, value) = unsafe {
            let info = info.assume_init_ref();
            let value = if info.si_code == libc::SI_QUEUE {
                info.si_value().sival_ptr as usize as i32
            } else {
                0
            };
            (info.si_pid(), value)
        };
        return Received { signal, sender, value };
    }
}

/// Sends a signal with a value. The receiver takes them one by one, none is lost.
pub(super) fn queue_signal(pid: Pid, signal: i32, value: i32) -> io::Result<()> {
    let value = libc::sigval { sival_ptr: value as usize as *mut libc::c_void };
    // SAFETY: the pointer is a number in disguise that nobody follows.
    check(unsafe { libc::sigqueue(pid, signal, value) }).map(drop)
}

/// Sends a signal. A negative number is a process group, -1 everybody in this pid namespace but
/// its first process and this one.
pub(super) fn kill(pid: Pid, signal: i32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Takes the status of a child that has ended: of any, or of one. `None` if none has.
pub(super) fn reap(pid: Option<Pid>, wait: bool) -> io::Result<Option<(Pid, i32)>> {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        let found = unsafe {
            libc::waitpid(
                pid.unwrap_or(-1),
                &mut status,
                if wait { 0 } else { libc::WNOHANG } | libc::__WALL,
            )
        };
        match check(found) {
            Ok(0) => return Ok(None),
            Ok(pid) => return Ok(Some((pid, status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Which signal this process gets when the one that forked it ends; 0 for none.
pub(super) fn set_death_signal(signal: i32) {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong, 0, 0, 0) };
}

/// Makes this process the parent of those descendants whose parent has ended.
pub(super) fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Makes new namespaces for this process, or for its children.
pub(super) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: only namespaces are unshared; file descriptors and memory stay as they are.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Joins a namespace.
pub(super) fn join_namespace(namespace: BorrowedFd<'_>, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: takes a descriptor that is open, and a number.
    check(unsafe { libc::setns(namespace.as_raw_fd(), kind) }).map(drop)
}

/// What the machine is called in this uts namespace.
pub(super) fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the name has.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Starts a session without a terminal, with this process as its first.
pub(super) fn start_session() -> io::Result<()> {
    // SAFETY: takes nothing.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Makes a terminal that of the session whose first process this is.
pub(super) fn take_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor that is open, and a number.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).map(drop)
}

/// The bits that new files do not get.
pub(super) fn set_umask(mask: libc::mode_t) {
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(mask) };
}

/// Makes `to` a copy of `from`, which is not closed at exec.
pub(super) fn copy_to(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    // SAFETY: in these processes the numbers 0 to 2 belong to nobody but the caller.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Closes all descriptors from this number on. Who calls it has forgotten their owners.
pub(super) fn close_from(first: RawFd) {
    // SAFETY: the owners are never used again, as the caller promises. Raw calls that fail on an
    // old kernel are followed by the slow way.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first as libc::c_uint, libc::c_uint::MAX, 0) == 0 {
            return;
        }
        for fd in first..libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 1 << 20) as RawFd {
            libc::close(fd);
        }
    }
}

/// Closes all descriptors from this number on but one, which has that number then. Who calls it
/// has forgotten the owners of the others.
pub(super) fn close_all_but(kept: OwnedFd, first: RawFd) -> io::Result<OwnedFd> {
    let kept = kept.into_raw_fd();
    // SAFETY: whoever had this number is not used again, as the caller promises; `kept` has an
    // owner here and nowhere else, and so has the copy after the others are closed.
    unsafe {
        if kept != first {
            check(libc::dup2(kept, first))?;
        }
        close_from(first + 1);
        Ok(OwnedFd::from_raw_fd(first))
    }
}

/// Has all descriptors from this number on closed at exec.
pub(super) fn close_at_exec_from(first: RawFd) {
    // SAFETY: sets a flag on whatever is open. All our descriptors have it already, so that a
    // kernel that cannot do it does no harm.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// Becomes a user. What is `None` stays; the groups are set if `groups` is given.
pub(super) fn become_user(
    user: Option<u32>,
    group: Option<u32>,
    groups: Option<&[u32]>,
) -> io::Result<()> {
    const KEEP: u32 = u32::MAX;
    if let Some(groups) = groups {
        // SAFETY: the kernel reads as many numbers as there are.
        check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
    }
    if let Some(group) = group {
        // SAFETY: takes numbers only. The user's number comes last: it takes the right away.
        check(unsafe { libc::setresgid(group, group, group) })?;
    }
    if let Some(user) = user.filter(|user| *user != KEEP) {
        // SAFETY: as above.
        check(unsafe { libc::setresuid(user, user, user) })?;
    }
    Ok(())
}

/// Has nothing be written through a mount: a tree that was just cloned, with all below it, or,
/// if `path` is given, the one mount that stands there.
pub(super) fn make_read_only(tree: BorrowedFd<'_>, path: Option<&CStr>) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if path.is_none() { libc::AT_EMPTY_PATH | libc::AT_RECURSIVE } else { 0 };
    // SAFETY: path and attributes outlive the call, and the size is the structure's.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            path.unwrap_or(c"").as_ptr(),
            flags as libc::c_uint,
            &attributes as *const libc::mount_attr,
            size_of::<libc::mount_attr>(),
        )
    };
    check(done as libc::c_int).map(drop)
}

/// Makes the working directory the root, and the old root what stands there.
pub(super) fn pivot_here() -> io::Result<()> {
    // SAFETY: both are constant strings.
    let done = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    check(done as libc::c_int).map(drop)
}

/// A descriptor that can be read when a child has ended.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is initialised before it is read, and the descriptor is new and ours.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        Ok(OwnedFd::from_raw_fd(check(fd)?))
    }
}

/// A descriptor of a process: its number may be given to another, this one is not.
pub(super) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and the descriptor is new and ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        Ok(OwnedFd::from_raw_fd(check(fd as libc::c_int)?))
    }
}

/// Ends a process.
pub(super) fn pidfd_kill(process: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no information is given with the signal; the rest are numbers.
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            libc::SIGKILL,
            ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    check(done as libc::c_int).map(drop)
}

/// A descriptor that tokio watches.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd has one descriptor, always the same, open until it is dropped.
    unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)
}

/// A number that is the same in this process and all that are forked off it.
#[derive(Debug)]
pub(super) struct SharedNumber(&'static AtomicI32);

impl SharedNumber {
    /// A new one, zero. It stays for as long as the process lives.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: a new page of zeroes, aligned, never unmapped, so that the reference is good
        // for ever; only atomic accesses are made to it.
        unsafe {
            let page = libc::mmap(
                ptr::null_mut(),
                size_of::<AtomicI32>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if page == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(SharedNumber(&*page.cast::<AtomicI32>()))
        }
    }

    /// Sets it.
    pub(super) fn set(&self, value: i32) {
        self.0.store(value, Ordering::SeqCst);
    }

    /// What it was set to.
    pub(super) fn get(&self) -> i32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
