//! How much memory there is for Pods: what the machine has, or less where this process is in control
//! groups with limits, as in a container.

use std::fs;
use std::path::{Path, PathBuf};

/// The memory that this process can use, in bytes.
pub(crate) fn memory_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    let all = system.totalram as u64 * u64::from(system.mem_unit);
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mounts = text(Path::new("/proc/self/mountinfo"));
    let groups = text(Path::new("/proc/self/cgroup"));
    memory_limit(&mounts, &groups, text).map_or(all, |limit| limit.min(all))
}

/// The least of the limits of this process's group and all above it, in both versions of control
/// groups: a machine may have either, or both.
fn memory_limit(mounts: &str, groups: &str, text: impl Fn(&Path) -> String) -> Option<u64> {
    let limits = mounts.lines().filter_map(Hierarchy::of_memory).flat_map(|hierarchy| {
        let folders = hierarchy.folders(groups);
        folders.into_iter().map(move |folder| folder.join(hierarchy.file))
    });
    // A group without a limit says `max`, or a number that no machine has.
    limits.filter_map(|file| text(&file).trim().parse().ok()).min()
}

/// A mounted tree of control groups that limits memory.
struct Hierarchy<'m> {
    /// Which group is at the top of the mount.
    root: &'m Path,
    mounted: &'m Path,
    /// How the line of /proc/self/cgroup is told: by the controller, or by having none.
    controller: &'static str,
    file: &'static str,
}

impl<'m> Hierarchy<'m> {
    /// Reads a line of /proc/self/mountinfo.
    fn of_memory(line: &'m str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3).map(Path::new);
        let (root, mounted) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let (controller, file) = match kind {
            "cgroup2" => ("", "memory.max"),
            "cgroup" if options.split(',').any(|it| it == "memory") => {
                ("memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        Some(Hierarchy { root, mounted, controller, file })
    }

    /// The folders of this process's group and of all above it that can be seen.
    fn folders(&self, groups: &str) -> Vec<PathBuf> {
        let own = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|it| it == self.controller).then_some(path)
        });
        let own = Path::new(own.unwrap_or("/"));
        // What is above the mount's root cannot be seen from here.
        let below = own.strip_prefix(self.root).unwrap_or(Path::new(""));
        let own = self.mounted.join(below);
        own.ancestors()
            .take_while(|folder| folder.starts_with(self.mounted))
            .map(Path::to_path_buf)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
    const V1: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn limit(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        memory_limit(mounts, groups, |path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map_or_else(String::new, |(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_least_limit_on_the_way_up_holds() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "4096\n"),
            ("/sys/fs/cgroup/memory.max", "8192\n"),
            ("/sys/fs/cgroup/other/memory.max", "1\n"),
        ];
        assert_eq!(limit(V2, "0::/a/b\n", &files), Some(4096));
        assert_eq!(limit(V2, "0::/\n", &files), Some(8192));
        assert_eq!(limit(V2, "0::/none\n", &files[..1]), None);
        assert_eq!(limit("", "0::/a\n", &files), None);
    }

    #[test]
    fn the_older_version_is_looked_at_too() {
        let files = [
            ("/sys/fs/cgroup/memory/p/memory.limit_in_bytes", "2048\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limit(V1, "4:memory:/p\n1:cpu,cpuacct:/q\n0::/\n", &files), Some(2048));
        assert_eq!(limit(V1, "4:memory:/q\n", &files), Some(9_223_372_036_854_771_712));
    }

    #[test]
    fn in_a_container_the_mount_begins_at_its_own_group() {
        let mounts = V2.replace("0:38 /", "0:38 /docker/1");
        let files = [("/sys/fs/cgroup/memory.max", "512\n")];
        assert_eq!(limit(&mounts, "0::/docker/1\n", &files), Some(512));
        assert_eq!(limit(&mounts, "0::/\n", &files), Some(512));
    }
}
