//! Programs that end when their parent does, however it does.
#![allow(unsafe_code)]

use std::process::Command;

/// Has the system kill the program when the thread that started it is gone.
#[cfg(target_os = "linux")]
pub(crate) fn end_with_parent(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    let parent = rustix::process::getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before that.
        if getppid() != Some(parent) {
            return Err(io::Error::other("whoever started it is gone"));
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes two system calls, allocates nothing unless it fails
    // because the parent is gone, and takes no lock.
    unsafe { command.pre_exec(tie) };
}

/// Elsewhere no system does that: what was started stays if who started it is killed.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_with_parent(_command: &mut Command) {}
