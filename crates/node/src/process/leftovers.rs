//! Ends what a node that was killed has left behind. Everything that a node starts carries a mark
//! in its environment; who has one of this node's, and everybody below, is ended.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::sys::{self, Pid};
use super::tree;

/// The mark on the processes of a container: the node, the helper that started it, the Pod.
pub(super) const POD_MARK: &str = "STINT_POD";

/// The mark on a helper and its keepers: the node, the helper.
pub(super) const HELPER_MARK: &str = "STINT_PROCESS_HELPER";

/// How long what was killed may take to go. Only a process that waits for a device in the kernel
/// takes longer, and that cannot be hurried.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose processes are meant.
#[derive(Clone, Debug)]
pub(super) struct Whose {
    /// The node's.
    pub(super) node: String,
    /// Of one helper only, or of all but one.
    pub(super) helper: Helper,
}

/// Of which helper.
#[derive(Clone, Debug)]
pub(super) enum Helper {
    /// This one.
    Only(String),
    /// Any other.
    AllBut(String),
}

/// The value of a container's mark.
pub(super) fn pod_mark(node: &str, helper: &str, pod: &str) -> String {
    format!("{node}/{helper}/{pod}")
}

/// The value of a helper's mark.
pub(super) fn helper_mark(node: &str, helper: &str) -> String {
    format!("{node}/{helper}")
}

/// Ends all of them and waits until they are gone. Says which Pods something was found of.
pub(super) fn end(whose: &Whose) -> io::Result<Vec<String>> {
    let mut pods = BTreeSet::new();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = marked(whose, &mut pods);
        // A number may be another process's by now. A descriptor cannot become one's, so that who
        // is still what was looked for after it was opened is who is killed. All are looked at
        // before anybody is killed: who loses a parent has another one.
        let is_meant = |pid: Pid| {
            mark_of(pid, whose).is_some()
                || tree::parent(pid).is_some_and(|parent| found.contains(&parent))
        };
        let open = |pid: &Pid| sys::pidfd_open(*pid).ok().filter(|_| is_meant(*pid));
        let mut ended: Vec<OwnedFd> = found.iter().filter_map(open).collect();
        let mut refusal = None;
        ended.retain(|process| match sys::pidfd_kill(process.as_fd()) {
            Ok(()) => true,
            Err(error) => {
                // Who has ended meanwhile is no refusal.
                if error.raw_os_error() != Some(libc::ESRCH) {
                    refusal = Some(error);
                }
                false
            }
        });
        if let Some(error) = refusal {
            return Err(error);
        }
        if ended.is_empty() {
            return Ok(pods.into_iter().collect());
        }
        await_end(&ended, deadline);
        if Instant::now() > deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{} processes of an earlier run do not end", ended.len()),
            ));
        }
    }
}

/// Who has a mark, and everybody below. What has ended and only waits to be taken note of by its
/// parent has no environment, and is not found.
fn marked(whose: &Whose, pods: &mut BTreeSet<String>) -> HashSet<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    let mut found = Vec::new();
    for (pid, parent) in tree::parents() {
        children.entry(parent).or_default().push(pid);
        if let Some(pod) = mark_of(pid, whose) {
            pods.extend(pod);
            found.push(pid);
        }
    }
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        next += 1;
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below.into_iter().filter(|pid| !is_zombie(*pid)));
    }
    found.into_iter().collect()
}

fn mark_of(pid: Pid, whose: &Whose) -> Option<Option<String>> {
    find_mark(&fs::read(format!("/proc/{pid}/environ")).ok()?, whose)
}

fn is_zombie(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

/// Whether an environment has a mark that is meant, and the Pod's uid if it is a container's.
fn find_mark(environment: &[u8], whose: &Whose) -> Option<Option<String>> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        let is_pod = name == POD_MARK;
        if !is_pod && name != HELPER_MARK {
            return None;
        }
        let mut parts = value.splitn(3, '/');
        let (node, helper) = (parts.next()?, parts.next()?);
        let meant = node == whose.node
            && match &whose.helper {
                Helper::Only(only) => helper == only,
                Helper::AllBut(but) => helper != but,
            };
        meant.then(|| parts.next().filter(|_| is_pod).map(str::to_owned))
    })
}

fn await_end(processes: &[OwnedFd], deadline: Instant) {
    for process in processes {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = left.try_into().ok();
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], timeout.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_of_the_node_and_the_helpers_that_are_meant_count() {
        let only = Whose { node: "n".into(), helper: Helper::Only("h".into()) };
        let others = Whose { node: "n".into(), helper: Helper::AllBut("h".into()) };
        let pod = |uid: &str| Some(Some(uid.to_owned()));
        for (environment, for_only, for_others) in [
            ("A=b\0STINT_POD=n/h/uid-1\0C=d\0", pod("uid-1"), None),
            ("STINT_POD=n/g/uid-1\0", None, pod("uid-1")),
            ("STINT_POD=m/g/uid-1\0", None, None),
            ("STINT_PROCESS_HELPER=n/h\0", Some(None), None),
            ("STINT_PROCESS_HELPER=n/g\0", None, Some(None)),
            ("XSTINT_POD=n/h/uid\0", None, None),
            ("STINT_POD=n\0", None, None),
            ("STINT_POD\0", None, None),
            ("", None, None),
        ] {
            assert_eq!(find_mark(environment.as_bytes(), &only), for_only, "{environment:?}");
            assert_eq!(find_mark(environment.as_bytes(), &others), for_others, "{environment:?}");
        }
    }
}
