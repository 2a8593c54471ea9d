//! From the start of a process to its program: what the first process of a container does before it becomes what
//! it was started for. Everything it got from the helper is put back to what a program expects.

use std::ffi::{CString, NulError};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::sys;
use super::wire::{Failure, FailureKind, Launch, Wire};

/// Where programs are looked for if the environment does not say: what container runtimes and
/// shells use.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program with all that a new process should not have to make.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    launch: &'a Launch,
    args: Vec<CString>,
    env: Vec<CString>,
    programs: Vec<CString>,
}

/// What the first process needs from who starts it.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    /// What it reads.
    pub(super) stdin: BorrowedFd<'a>,
    /// The file of a control group that takes processes in.
    pub(super) group: Option<&'a OwnedFd>,
    /// How many descriptors a process may have, before the server and the helper allowed
    /// themselves more.
    pub(super) descriptors: Rlimit,
    /// The signal for when its parent ends; 0 where a pid namespace does more than that.
    pub(super) death_signal: i32,
}

/// Who a program is to run as, as far as that differs from who starts it.
struct OtherUser {
    user: Option<u32>,
    group: Option<u32>,
    wants_groups: bool,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(launch: &'a Launch) -> Result<Self, Failure> {
        let null = |error: NulError| {
            let at = error.nul_position();
            Failure::cannot_run(format!("command or environment: a null character at byte {at}"))
        };
        let text = |text: &String| CString::new(text.as_bytes()).map_err(null);
        let env = launch
            .env
            .iter()
            .map(|(name, value)| CString::new(format!("{name}={value}")).map_err(null))
            .collect::<Result<_, _>>()?;
        let args = launch.command.iter().map(text).collect::<Result<_, _>>()?;
        let programs = candidates(launch).iter().map(text).collect::<Result<_, _>>()?;
        Ok(Prepared { launch, args, env, programs })
    }

    /// Becomes the program. If that is not possible, `told` gets to know why.
    pub(super) fn run(&self, around: &Surroundings<'_>, mut told: impl Write) -> ! {
        let failure = self.try_run(around);
        let _ = told.write_all(&failure.to_bytes());
        sys::exit(1)
    }

    fn try_run(&self, around: &Surroundings<'_>) -> Failure {
        let prepared = self
            .leave_the_helper(around)
            .and_then(|()| self.take_limits(around))
            .and_then(|()| self.become_user())
            .and_then(|()| self.enter_working_dir());
        if let Err(failure) = prepared {
            return failure;
        }
        // After the change of the user, which forgets it.
        sys::set_death_signal(around.death_signal);
        sys::close_at_exec_from(3);
        sys::reset_signals();
        sys::unblock_signals();
        self.exec()
    }

    fn leave_the_helper(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        sys::set_umask(0o022);
        sys::start_session()
            .and_then(|()| sys::copy_to(around.stdin, 0))
            .map_err(|error| Failure::machine("starting a session", &error))?;
        match self.launch.is_terminal {
            true => sys::take_terminal(rustix::stdio::stdin())
                .map_err(|error| Failure::machine("taking the terminal", &error)),
            false => Ok(()),
        }
    }

    fn take_limits(&self, around: &Surroundings<'_>) -> Result<(), Failure> {
        let refused = |error: io::Error| Failure::machine("limiting the container", &error);
        setrlimit(Resource::Nofile, around.descriptors).map_err(|error| refused(error.into()))?;
        if let Some(group) = around.group {
            return rustix::io::write(group.as_fd(), b"0")
                .map(drop)
                .map_err(|error| refused(error.into()));
        }
        // Without a control group: what each process may have of memory that is its own. Not
        // RLIMIT_AS: runtimes with a collector (Go, Java, JavaScript) reserve many times the
        // addresses that they use.
        if let Some(bytes) = self.launch.limits.memory_bytes {
            let most = getrlimit(Resource::Data).maximum.map_or(bytes, |most| most.min(bytes));
            setrlimit(Resource::Data, Rlimit { current: Some(most), maximum: Some(most) })
                .map_err(|error| refused(error.into()))?;
        }
        Ok(())
    }

    /// Whether the program runs as who this process is.
    pub(super) fn stays_the_same_user(&self) -> bool {
        self.other_user().is_none()
    }

    /// Who the program is to run as, if that is somebody else.
    fn other_user(&self) -> Option<OtherUser> {
        let Launch { user, group, groups, .. } = self.launch;
        let own_user = rustix::process::geteuid().as_raw();
        let own_group = rustix::process::getegid().as_raw();
        let user = user.filter(|user| *user != own_user);
        let group = group.filter(|group| *group != own_group);
        let mut held: Vec<u32> = rustix::process::getgroups()
            .unwrap_or_default()
            .into_iter()
            .map(|group| group.as_raw())
            .collect();
        held.push(own_group);
        let wants_groups = !groups.iter().all(|group| held.contains(group));
        let is_other = user.is_some() || group.is_some() || wants_groups;
        is_other.then_some(OtherUser { user, group, wants_groups })
    }

    fn become_user(&self) -> Result<(), Failure> {
        let Some(OtherUser { user, group, wants_groups }) = self.other_user() else {
            return Ok(());
        };
        let groups = &self.launch.groups;
        sys::become_user(user, group, Some(groups)).map_err(|error| {
            let wanted = [
                user.map(|user| format!("user {user}")),
                group.map(|group| format!("group {group}")),
                wants_groups.then(|| format!("groups {groups:?}")),
            ];
            let wanted: Vec<String> = wanted.into_iter().flatten().collect();
            let own_user = rustix::process::geteuid().as_raw();
            let own_group = rustix::process::getegid().as_raw();
            Failure::new(
                FailureKind::Unsupported,
                format!(
                    "running as {}: {error}. This node runs as user {own_user}, group {own_group}: \
                     name these, leave them out, or run the node as root",
                    wanted.join(", ")
                ),
            )
        })
    }

    fn enter_working_dir(&self) -> Result<(), Failure> {
        let folder = self.launch.working_dir.as_deref().unwrap_or(Path::new("/"));
        rustix::process::chdir(folder).map_err(|error| {
            let remedy = match error {
                rustix::io::Errno::NOENT => {
                    "; it is one of this machine, since images are not used: make it, or mount a \
                     volume there"
                }
                _ => "",
            };
            let (folder, error) = (folder.display(), describe(&error.into()));
            Failure::cannot_run(format!("working directory {folder}: {error}{remedy}"))
        })
    }

    /// As Go's os/exec words it, and so Kubernetes.
    fn exec(&self) -> Failure {
        let name = self.launch.command.first().map(String::as_str).unwrap_or_default();
        let has_slash = name.contains('/');
        let mut refusals = Vec::new();
        // Where it may be in several places, looking costs less than trying to run what is not
        // there.
        let is_one = self.programs.len() == 1;
        for program in self.programs.iter().filter(|program| is_one || !is_missing(program)) {
            let error = sys::exec(program, &self.args, &self.env);
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) if !exists(program) => {}
                Some(libc::ENOENT) => {
                    return Failure::cannot_run(format!(
                        "exec: {name:?}: no such file or directory: the program is there, but not \
                         the interpreter or loader that it names"
                    ));
                }
                Some(libc::EACCES) => refusals.push((program, error)),
                Some(libc::E2BIG | libc::ENOEXEC | libc::ELOOP | libc::ENAMETOOLONG) => {
                    let error = describe(&error);
                    return Failure::cannot_run(format!("exec: {name:?}: {error}"));
                }
                _ => return Failure::machine(format!("exec: {name:?}"), &error),
            }
        }
        let not_permitted = refusals.iter().find(|(program, _)| has_slash || exists(program));
        Failure::cannot_run(match not_permitted {
            Some((program, error)) => {
                let (error, program) = (describe(error), program.to_string_lossy());
                let which = if has_slash { String::new() } else { format!(": {program}") };
                format!("exec: {name:?}: {error}{which}")
            }
            None if has_slash => {
                format!("exec: {name:?}: stat {name}: no such file or directory")
            }
            None => {
                let unseen = unseen(refusals.iter().map(|(program, error)| (*program, error)));
                format!("exec: {name:?}: executable file not found in $PATH{unseen}")
            }
        })
    }
}

/// The folders that could not be looked into, and why: the program may be there.
fn unseen<'a>(refusals: impl Iterator<Item = (&'a CString, &'a io::Error)>) -> String {
    let folders: Vec<String> = refusals
        .map(|(program, error)| {
            let program = program.to_string_lossy();
            let folder = program.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}: {}", describe(error))
        })
        .collect();
    match folders.as_slice() {
        [] => String::new(),
        folders => {
            let user = rustix::process::geteuid().as_raw();
            let folders = folders.join(", ");
            format!(
                "; not all of it can be searched by user {user} ({folders}): give the user access, or \
                 name the program with its whole path"
            )
        }
    }
}

/// Where the program may be.
fn candidates(launch: &Launch) -> Vec<String> {
    let Some(name) = launch.command.first().filter(|name| !name.is_empty()) else {
        return Vec::new();
    };
    if name.contains('/') {
        return vec![name.clone()];
    }
    let path = launch.env.iter().rev().find(|(variable, _)| variable == "PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
    path.split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| format!("{folder}/{name}"))
        .collect()
}

/// Whether it is known that nothing is there, by the same errors as of who tries to run it.
fn is_missing(program: &CString) -> bool {
    let found = rustix::fs::stat(program.as_c_str());
    matches!(found, Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR))
}

fn exists(program: &CString) -> bool {
    rustix::fs::stat(program.as_c_str()).is_ok()
}

/// What the machine calls an error, in lower case and without its number.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Limits;

    fn launch(command: &[&str], env: &[(&str, &str)]) -> Launch {
        Launch {
            command: command.iter().map(ToString::to_string).collect(),
            env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            working_dir: None,
            user: None,
            group: None,
            groups: vec![],
            limits: Limits::default(),
            has_stdin: false,
            is_terminal: false,
        }
    }

    #[test]
    fn programs_are_looked_for_in_the_path_of_the_environment() {
        for (name, path, expected) in [
            ("a", Some("/x:/y/z"), vec!["/x/a", "/y/z/a"]),
            ("a", Some(":/x::"), vec!["/x/a"]),
            ("a", Some(""), vec![]),
            ("./a", Some("/x"), vec!["./a"]),
            ("/b/a", None, vec!["/b/a"]),
            ("", Some("/x"), vec![]),
        ] {
            let env: Vec<(&str, &str)> = path.map(|path| ("PATH", path)).into_iter().collect();
            assert_eq!(candidates(&launch(&[name], &env)), expected, "{name} in {path:?}");
        }
        assert!(candidates(&launch(&["a"], &[])).contains(&"/usr/bin/a".to_owned()));
    }

    #[test]
    fn a_null_character_is_refused_with_its_place() {
        let refused = Prepared::new(&launch(&["a", "b\0c"], &[])).unwrap_err();
        assert_eq!(refused.kind, FailureKind::CannotRun);
        assert!(refused.message.contains("at byte 1"), "{}", refused.message);
        assert!(Prepared::new(&launch(&["a"], &[("N", "\0")])).is_err());
    }
}
