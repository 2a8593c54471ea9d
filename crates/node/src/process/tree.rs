//! Who descends from whom, by /proc: how the processes of a container are found where they have
//! no pid namespace of their own.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::sys::{self, Pid};

/// All processes that descend from this one, but for those in `except` and who is below them.
pub(super) fn descendants(of: Pid, except: &HashSet<Pid>) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, parent) in parents().into_iter().filter(|(pid, _)| !except.contains(pid)) {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&of).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        next += 1;
        found.extend(children.remove(pid).unwrap_or_default());
    }
    found
}

/// Who lives in a session. `processes` is a folder that lists everybody, as /proc. Who has ended and
/// was not taken note of does not live.
pub(super) fn of_session(processes: BorrowedFd<'_>, session: Pid) -> Vec<Pid> {
    let Ok(entries) = Dir::read_from(processes) else { return Vec::new() };
    let living = entries.filter_map(Result::ok).filter_map(|entry| {
        let pid: Pid = entry.file_name().to_str().ok()?.parse().ok()?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(processes, format!("{pid}/stat"), flags, Mode::empty()).ok()?;
        let stat = io::read_to_string(File::from(file)).ok()?;
        lives_in(&stat, session).then_some(pid)
    });
    living.collect()
}

fn lives_in(stat: &str, session: Pid) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let mut fields = fields.split_ascii_whitespace();
    let has_ended = matches!(fields.next(), None | Some("Z" | "X"));
    !has_ended && fields.nth(2).and_then(|it| it.parse().ok()) == Some(session)
}

/// The pauses of who waits for something that nobody tells: short at first, and then longer, so that
/// what takes long takes no processor.
#[derive(Debug)]
pub(super) struct Patience {
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { pause: Duration::from_micros(50) }
    }
}

impl Patience {
    /// Waits for a while.
    pub(super) fn wait(&mut self) {
        const LONGEST: Duration = Duration::from_millis(20);
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

/// Every process of the machine that can be seen, and its parent.
pub(super) fn parents() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let pid: Pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((pid, parent(pid)?))
        })
        .collect()
}

/// The parent of a process.
pub(super) fn parent(of: Pid) -> Option<Pid> {
    parent_in(&fs::read_to_string(format!("/proc/{of}/stat")).ok()?)
}

/// The name stands in parentheses and may contain anything, parentheses too.
fn parent_in(stat: &str) -> Option<Pid> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Sends a signal to all that descend from this process, itself excepted.
pub(super) fn signal_descendants(signal: i32) {
    for pid in descendants(own(), &HashSet::new()) {
        // One that has ended meanwhile, or that became another user, is left.
        let _ = sys::kill(pid, signal);
    }
}

/// Ends all that descend from this process and takes their statuses, until nobody is left but
/// the children in `except` and those below them. This process must be a subreaper, so that
/// nobody gets away by losing a parent: who is no child yet becomes one.
pub(super) fn end_descendants(except: &HashSet<Pid>) {
    let mut patience = Patience::default();
    loop {
        // Who has no child has no descendant either, and most containers leave nobody behind.
        if except.is_empty() && has_no_child() {
            return;
        }
        // Only the children, which one file lists: a look at the whole machine takes longer than
        // processes live that do nothing but start others and end.
        let (mut found, mut has_reaped) = (false, false);
        for pid in children().into_iter().filter(|pid| !except.contains(pid)) {
            found |= sys::kill(pid, libc::SIGKILL).is_ok();
            has_reaped |= matches!(sys::reap(Some(pid), false), Ok(Some(_)));
        }
        // The list may lack some while others come and go. Who became another user stays.
        let refuses = |pid: &Pid| sys::kill(*pid, libc::SIGKILL).is_err();
        if !found && descendants(own(), except).iter().all(refuses) {
            return;
        }
        // Whoever waits for a slow disk ends when that answers.
        match has_reaped {
            true => patience = Patience::default(),
            false => patience.wait(),
        }
    }
}

fn own() -> Pid {
    std::process::id() as Pid
}

/// The children of this process, which has one thread.
fn children() -> Vec<Pid> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel without this list.
        Err(_) => descendants(own(), &HashSet::new()),
    }
}

/// Takes the statuses of those who have ended, and says whether that were all.
fn has_no_child() -> bool {
    loop {
        match sys::reap(None, false) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_stands_behind_the_last_parenthesis() {
        for (stat, parent) in [
            ("7 (sh) S 3 7 7 0", Some(3)),
            ("7 (a) R 9) S 4 7", Some(4)),
            ("7 ((x y) (z)) Z 5", Some(5)),
            ("7 (sh) S", None),
            ("", None),
        ] {
            assert_eq!(parent_in(stat), parent, "{stat}");
        }
    }

    #[test]
    fn who_has_ended_does_not_live_in_its_session() {
        for (stat, expected) in [
            ("7 (sh) S 3 7 7 0", true),
            ("7 (sh) R 3 7 7 0", true),
            ("7 (a) Z 1 7) D 3 7 7", true),
            ("8 (sh) S 7 8 7 0", true),
            ("7 (sh) Z 3 7 7 0", false),
            ("7 (sh) X 3 7 7 0", false),
            ("7 (sh) S 7 7 3 0", false),
            ("7 (sh", false),
            ("", false),
        ] {
            assert_eq!(lives_in(stat, 7), expected, "{stat}");
        }
    }

    #[test]
    fn a_child_and_its_child_are_found() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; read wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
            &mut line,
        )
        .unwrap();
        let grandchild: Pid = line.trim().parse().unwrap();
        let found = descendants(std::process::id() as Pid, &HashSet::new());
        assert!(found.contains(&(child.id() as Pid)), "{found:?}");
        assert!(found.contains(&grandchild), "{found:?}");
        sys::kill(grandchild, libc::SIGKILL).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
