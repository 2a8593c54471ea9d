//! Limits that hold for all processes of a container together: control groups, version 2. A group
//! is made only for who has limits. Where no group can be made, the caller falls back to what can
//! be said of a single process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::runtime::Limits;

/// The share of a core is given out in slices of a tenth of a second, the kernel's own default.
const CPU_PERIOD_US: u64 = 100_000;

/// The kernel refuses less time per period than a millisecond.
const CPU_QUOTA_MIN_US: u64 = 1_000;

/// The controllers that limits need.
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// The node's own group, in which others are made.
#[derive(Debug)]
pub(super) struct Groups {
    base: PathBuf,
}

impl Groups {
    /// Makes the node's group where this process may: in the group that it runs in, or in one
    /// above, that hands the controllers down. What helpers of the node's that are gone have left
    /// there is removed.
    pub(super) fn open(node: &str) -> Result<Groups, &'static str> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (root, own) = own_group(&mounts, &own).ok_or("there is no cgroup2 file system")?;
        let mut found = "no control group of this user hands down cpu and memory";
        for parent in own.ancestors().take_while(|path| path.starts_with(&root)) {
            if !has_controllers(&parent.join("cgroup.controllers")) {
                found = "the cgroup2 file system has no cpu and memory controllers";
                continue;
            }
            // In a group with processes in it this is refused, except at the root.
            if !has_controllers(&parent.join("cgroup.subtree_control"))
                && hand_down(parent).is_err()
            {
                continue;
            }
            // Each helper has its own: an earlier one may still be ending what it has.
            let base = parent.join(format!("stint-{node}-{}", std::process::id()));
            if make(&base).is_ok() && hand_down(&base).is_ok() {
                remove_stale(parent, node);
                return Ok(Groups { base });
            }
            let _ = fs::remove_dir(&base);
        }
        Err(found)
    }

    /// Makes the group of a sandbox; containers' groups can be made in it.
    pub(super) fn make_sandbox(&self, sandbox: u64, limits: &Limits) -> io::Result<PathBuf> {
        let group = self.base.join(format!("sandbox-{sandbox}"));
        make(&group)?;
        hand_down(&group)?;
        apply(&group, limits)?;
        Ok(group)
    }

    /// Makes the group of a container, in its sandbox's if that has one.
    pub(super) fn make_container(
        &self,
        sandbox: Option<&Path>,
        run: u64,
        limits: &Limits,
    ) -> io::Result<PathBuf> {
        let group = sandbox.unwrap_or(&self.base).join(format!("container-{run}"));
        make(&group)?;
        apply(&group, limits)?;
        // A container ends as a whole: what is left of one after the kernel took a part of it
        // would go on as if nothing had happened.
        fs::write(group.join("memory.oom.group"), "1")?;
        Ok(group)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        remove(&self.base);
    }
}

/// Whether the kernel has ended a process of this group for want of memory.
pub(super) fn out_of_memory(group: &Path) -> bool {
    fs::read_to_string(group.join("memory.events")).is_ok_and(|events| counts_kills(&events))
}

fn counts_kills(events: &str) -> bool {
    events.lines().any(|line| {
        line.split_once(' ').is_some_and(|(name, count)| name == "oom_kill" && count.trim() != "0")
    })
}

/// Ends whatever is in a group, and removes it and those in it.
pub(super) fn remove(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// Removes the groups of helpers that are no more.
fn remove_stale(parent: &Path, node: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let helper = name.to_str().and_then(|name| helper_in(name, node));
        if helper.is_some_and(|helper| !Path::new(&format!("/proc/{helper}")).exists()) {
            remove(&entry.path());
        }
    }
}

/// The process whose group this is, if it is the node's.
fn helper_in(name: &str, node: &str) -> Option<u32> {
    name.strip_prefix("stint-")?.strip_prefix(node)?.strip_prefix('-')?.parse().ok()
}

fn make(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn hand_down(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), "+cpu +memory")
}

fn has_controllers(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| {
        CONTROLLERS.iter().all(|name| text.split_ascii_whitespace().any(|word| word == *name))
    })
}

fn apply(group: &Path, limits: &Limits) -> io::Result<()> {
    for (file, value) in settings(limits) {
        fs::write(group.join(file), value)?;
    }
    if limits.memory_bytes.is_some() {
        // What does not fit is not swapped out instead, as on a Kubernetes node; not every kernel
        // counts swap.
        let _ = fs::write(group.join("memory.swap.max"), "0");
    }
    Ok(())
}

/// What is written where.
fn settings(limits: &Limits) -> Vec<(&'static str, String)> {
    let cpu = limits.cpu_millis.map(|millis| {
        let quota = (u128::from(millis) * u128::from(CPU_PERIOD_US) / 1000)
            .clamp(CPU_QUOTA_MIN_US.into(), u64::MAX.into());
        ("cpu.max", format!("{quota} {CPU_PERIOD_US}"))
    });
    let memory = limits.memory_bytes.map(|bytes| ("memory.max", bytes.to_string()));
    cpu.into_iter().chain(memory).collect()
}

/// Where cgroup2 is mounted, and the folder of the group that this process is in.
fn own_group(mounts: &str, groups: &str) -> Option<(PathBuf, PathBuf)> {
    let (root, mounted) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        (right.split(' ').next() == Some("cgroup2"))
            .then_some((PathBuf::from(left.next()?), PathBuf::from(left.next()?)))
    })?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    // What is above the mount's root cannot be seen from here.
    let below = Path::new(own).strip_prefix(&root).unwrap_or(Path::new(""));
    Some((mounted.clone(), mounted.join(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_what_the_kernel_reads() {
        let row = |cpu_millis, memory_bytes| settings(&Limits { cpu_millis, memory_bytes });
        assert_eq!(row(None, None), []);
        assert_eq!(row(Some(250), None), [("cpu.max", "25000 100000".into())]);
        assert_eq!(row(Some(1), None), [("cpu.max", "1000 100000".into())]);
        assert_eq!(
            row(Some(4000), Some(1 << 20)),
            [("cpu.max", "400000 100000".into()), ("memory.max", "1048576".into())]
        );
    }

    #[test]
    fn the_name_of_a_group_says_whose_it_is() {
        for (name, helper) in [
            ("stint-1-2-77", Some(77)),
            ("stint-1-3-77", None),
            ("stint-1-2", None),
            ("stint-1-2-", None),
            ("stint-1-2-x", None),
            ("1-2-77", None),
        ] {
            assert_eq!(helper_in(name, "1-2"), helper, "{name}");
        }
    }

    #[test]
    fn the_own_group_is_found_below_the_mount() {
        let mounts = "22 27 0:21 / /proc rw - proc proc rw\n\
                      41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
        let found = own_group(mounts, "1:cpu:/x\n0::/user.slice/a.scope\n");
        let path = PathBuf::from;
        assert_eq!(
            found,
            Some((path("/sys/fs/cgroup"), path("/sys/fs/cgroup/user.slice/a.scope")))
        );
        let inner = mounts.replace("0:38 /", "0:38 /docker/1");
        let found = own_group(&inner, "0::/docker/1/deep\n");
        assert_eq!(found, Some((path("/sys/fs/cgroup"), path("/sys/fs/cgroup/deep"))));
        assert_eq!(own_group("", "0::/\n"), None);
        assert_eq!(own_group(mounts, "4:memory:/a\n"), None);
    }

    #[test]
    fn only_kills_count_as_out_of_memory() {
        assert!(!counts_kills("low 0\noom 3\noom_kill 0\noom_group_kill 0\n"));
        assert!(counts_kills("low 0\noom 3\noom_kill 2\noom_group_kill 1\n"));
        assert!(!counts_kills(""));
    }
}
