//! Looking at the processes of this machine.

use std::fs;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it takes until something is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether a process has this in its environment.
pub(crate) fn is_anybody_marked(marker: &str) -> bool {
    !marked(marker).is_empty()
}

/// Who has this in its environment. Nobody who has ended does.
pub(crate) fn marked(marker: &str) -> Vec<u32> {
    let is_marked = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    };
    all().into_iter().filter(is_marked).collect()
}

/// The descendants of a process that have ended and that nobody has waited for.
pub(crate) fn zombies(ancestor: u32) -> Vec<u32> {
    let mut family = vec![ancestor];
    let mut ended = Vec::new();
    let mut next = 0;
    let everybody: Vec<(u32, u32, char)> = all().into_iter().filter_map(stat).collect();
    while let Some(parent) = family.get(next).copied() {
        next += 1;
        for (pid, _, state) in everybody.iter().filter(|(_, of, _)| *of == parent) {
            family.push(*pid);
            if *state == 'Z' {
                ended.push(*pid);
            }
        }
    }
    ended
}

/// The most memory that a process has had so far.
pub(crate) fn peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::sleep(PAUSE);
    }
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A process, its parent and its state.
fn stat(pid: u32) -> Option<(u32, u32, char)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have anything in it.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((pid, fields.next()?.parse().ok()?, state))
}
