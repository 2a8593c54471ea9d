//! What the server and the helper say to each other, and how it is written: fixed numbers, little
//! end first, and everything of varying length after its length. Both are the same program, so
//! there are no versions. It knows nothing of sockets.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::Isolation;
use crate::runtime::{Limits, Mount};

/// What the server asks of the helper. None but `Begin` and `Close` has an answer of its own:
/// what becomes of a run is told in [`Report`]s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The first one.
    Begin(Begin),
    /// There is a sandbox.
    Open { sandbox: u64, hostname: Option<String>, shares_processes: bool, limits: Limits },
    /// Start a container, with its outputs and, if it has one, its input.
    Start { sandbox: u64, run: u64, launch: Launch, mounts: Vec<Mount> },
    /// Run a program beside a container, with the same.
    Exec { container: u64, run: u64, launch: Launch },
    /// Send a signal to all processes of a run.
    Signal { run: u64, signal: i32 },
    /// End everything in a sandbox, and say when it is gone.
    Close { sandbox: u64 },
}

/// How the helper is to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    /// The node's folder.
    pub(super) folder: PathBuf,
    /// What the node is called on this machine.
    pub(super) node: String,
    /// How containers are to be kept apart, if that is not the helper's choice.
    pub(super) isolation: Option<Isolation>,
    /// How many descriptors a container may have by itself, and at most.
    pub(super) descriptors: (Option<u64>, Option<u64>),
}

/// A program and how it is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) working_dir: Option<PathBuf>,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) groups: Vec<u32>,
    pub(super) limits: Limits,
    /// Whether its standard input comes with the outputs; else it is empty.
    pub(super) has_stdin: bool,
    /// Whether they are one terminal, which is to be that of its session.
    pub(super) is_terminal: bool,
}

/// What the server is told, by the helper or by the keeper of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The helper is there.
    Ready(Ready),
    /// The helper cannot work.
    Refused { failure: Failure },
    /// The program runs. Times are nanoseconds since 1970.
    Started { run: u64, at: i64 },
    /// It does not. `Gone` follows.
    Failed { run: u64, failure: Failure },
    /// Its first process has ended, with this status of `wait`. `Gone` follows.
    Exited { run: u64, status: i32, at: i64 },
    /// Nothing of it is left.
    Gone { run: u64, out_of_memory: bool },
    /// Nothing of the sandbox is left.
    Closed { sandbox: u64 },
}

/// What the helper found that it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    /// How containers are kept apart.
    pub(super) isolation: Isolation,
    /// Whether they have process numbers of their own.
    pub(super) own_processes: bool,
    /// Whether limits are held by control groups.
    pub(super) control_groups: bool,
    /// Why not more, for a person.
    pub(super) notes: Vec<String>,
}

/// Why something does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

/// What can be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// Another description of the container.
    CannotRun,
    /// Another machine, or another user.
    Unsupported,
    /// Trying again; the machine gave this error number.
    Machine(i32),
}

impl Failure {
    /// The most that is said of a failure: it goes into the status of a Pod, into one packet, and with all
    /// around it into one page, which every pipe takes without a reader.
    const MESSAGE_BYTES: usize = 4000;

    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > Self::MESSAGE_BYTES {
            message.truncate(message.floor_char_boundary(Self::MESSAGE_BYTES));
            message.push('…');
        }
        Failure { kind, message }
    }

    /// The container's description is at fault.
    pub(super) fn cannot_run(message: impl Into<String>) -> Self {
        Failure::new(FailureKind::CannotRun, message)
    }

    /// The machine is.
    pub(super) fn machine(what: impl Into<String>, error: &std::io::Error) -> Self {
        Failure::new(FailureKind::Machine(error.raw_os_error().unwrap_or(libc::EIO)), what)
    }
}

/// Bytes that are no message. Only a broken helper writes such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process helper and the server do not understand each other")]
pub(super) struct Malformed;

/// What can be written and read back.
pub(super) trait Wire: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Result<Self, Malformed>;

    /// The bytes of a whole message.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        self.put(&mut bytes);
        bytes
    }

    /// A whole message of these bytes.
    fn from_bytes(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let message = Self::take(&mut bytes)?;
        if bytes.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

fn take_bytes<'a>(from: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (bytes, rest) = from.split_at_checked(count).ok_or(Malformed)?;
    *from = rest;
    Ok(bytes)
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                let bytes = take_bytes(from, size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().map_err(|_| Malformed)?))
            }
        }
    )*};
}

numbers!(u8, u32, u64, i32, i64);

impl Wire for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(u8::take(from)? != 0)
    }
}

fn put_slice(bytes: &[u8], to: &mut Vec<u8>) {
    (bytes.len() as u64).put(to);
    to.extend_from_slice(bytes);
}

fn take_slice<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let count = usize::try_from(u64::take(from)?).map_err(|_| Malformed)?;
    take_bytes(from, count)
}

impl Wire for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_slice(self.as_bytes(), to);
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        String::from_utf8(take_slice(from)?.to_vec()).map_err(|_| Malformed)
    }
}

impl Wire for PathBuf {
    fn put(&self, to: &mut Vec<u8>) {
        put_slice(self.as_os_str().as_bytes(), to);
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(PathBuf::from(OsString::from_vec(take_slice(from)?.to_vec())))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|item| item.put(to));
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let count = u64::take(from)?;
        (0..count).map(|_| T::take(from)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|item| item.put(to));
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        bool::take(from)?.then(|| T::take(from)).transpose()
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }
    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

macro_rules! structures {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Wire for $name {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }
            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                Ok($name { $($field: Wire::take(from)?),* })
            }
        }
    )*};
}

structures! {
    Begin { folder, node, isolation, descriptors }
    Launch { command, env, working_dir, user, group, groups, limits, has_stdin, is_terminal }
    Limits { cpu_millis, memory_bytes }
    Mount { source, target, read_only }
    Ready { isolation, own_processes, control_groups, notes }
    Failure { kind, message }
}

/// Enums: each variant has a number, then its fields in their order.
macro_rules! choices {
    ($($name:ident { $($tag:literal => $variant:ident $({ $($field:ident),* })? $(($inner:ident))?),* $(,)? })*) => {$(
        impl Wire for $name {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $($name::$variant $({ $($field),* })? $(($inner))? => {
                        u8::put(&$tag, to);
                        $($($field.put(to);)*)?
                        $($inner.put(to);)?
                    })*
                }
            }
            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(match u8::take(from)? {
                    $($tag => {
                        $(let $inner = Wire::take(from)?;)?
                        $name::$variant $({ $($field: Wire::take(from)?),* })? $(($inner))?
                    })*
                    _ => return Err(Malformed),
                })
            }
        }
    )*};
}

choices! {
    Isolation { 0 => Root, 1 => User, 2 => None }
    FailureKind { 0 => CannotRun, 1 => Unsupported, 2 => Machine(number) }
    Request {
        0 => Begin(begin),
        1 => Open { sandbox, hostname, shares_processes, limits },
        2 => Start { sandbox, run, launch, mounts },
        3 => Exec { container, run, launch },
        4 => Signal { run, signal },
        5 => Close { sandbox },
    }
    Report {
        0 => Ready(ready),
        1 => Refused { failure },
        2 => Started { run, at },
        3 => Failed { run, failure },
        4 => Exited { run, status, at },
        5 => Gone { run, out_of_memory },
        6 => Closed { sandbox },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_request() -> Vec<Request> {
        let launch = Launch {
            command: vec!["sh".into(), "-c".into(), "é".into()],
            env: vec![("A".into(), String::new()), ("B".into(), "x=y".into())],
            working_dir: Some(PathBuf::from(OsString::from_vec(b"/not\xffutf-8".to_vec()))),
            user: Some(7),
            group: None,
            groups: vec![1, u32::MAX],
            limits: Limits { cpu_millis: Some(u64::MAX), memory_bytes: None },
            has_stdin: true,
            is_terminal: false,
        };
        let mount = Mount { source: "/a".into(), target: "/b".into(), read_only: true };
        vec![
            Request::Begin(Begin {
                folder: "/f".into(),
                node: "n".into(),
                isolation: Some(Isolation::User),
                descriptors: (Some(1024), None),
            }),
            Request::Open {
                sandbox: 1,
                hostname: Some("h".into()),
                shares_processes: true,
                limits: Limits::default(),
            },
            Request::Start { sandbox: 1, run: 2, launch: launch.clone(), mounts: vec![mount] },
            Request::Exec { container: 2, run: 3, launch },
            Request::Signal { run: 3, signal: -1 },
            Request::Close { sandbox: 1 },
        ]
    }

    fn every_report() -> Vec<Report> {
        let failure = Failure::new(FailureKind::Machine(12), "no memory");
        vec![
            Report::Ready(Ready {
                isolation: Isolation::None,
                own_processes: false,
                control_groups: true,
                notes: vec!["why".into()],
            }),
            Report::Refused { failure: Failure::new(FailureKind::Unsupported, "old") },
            Report::Started { run: 1, at: i64::MIN },
            Report::Failed { run: 1, failure },
            Report::Exited { run: 1, status: 256, at: 5 },
            Report::Gone { run: 1, out_of_memory: true },
            Report::Closed { sandbox: 9 },
        ]
    }

    fn reads_back<T: Wire + PartialEq + std::fmt::Debug>(messages: Vec<T>) {
        for message in messages {
            let bytes = message.to_bytes();
            assert_eq!(T::from_bytes(&bytes).as_ref(), Ok(&message));
            for end in 0..bytes.len() {
                assert_eq!(
                    T::from_bytes(&bytes[..end]),
                    Err(Malformed),
                    "{message:?} cut at {end}"
                );
            }
            assert_eq!(T::from_bytes(&[&bytes[..], &[0]].concat()), Err(Malformed));
        }
    }

    #[test]
    fn every_message_reads_back_and_no_part_of_one_does() {
        reads_back(every_request());
        reads_back(every_report());
    }

    #[test]
    fn a_long_message_of_a_failure_is_cut_between_characters() {
        let failure = Failure::cannot_run("é".repeat(5000));
        assert_eq!(failure.message.chars().count(), 2001);
        assert!(failure.message.ends_with("é…"));
    }
}
