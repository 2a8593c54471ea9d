//! What containers may use. By control groups where the machine has them for us, by limits on
//! single processes where it has not; the tests hold either to what it promises.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stint_node::{Ending, Limits};

use crate::kit::{Node, in_each_setting, start, start_with, unique};

const MIB: u64 = 1 << 20;

/// Uses as many MiB as it says, in a variable of a shell's child.
fn use_memory(mib: u64) -> String {
    format!("x=$(head -c {} /dev/zero | tr '\\0' x); echo ${{#x}}", mib * MIB)
}

/// Whether this machine has control groups for the node's user, as the machine itself tells it:
/// a group with both controllers, this process's or one above, that this user may write to, and
/// that hands them down or can.
fn has_groups(node: &Node) -> bool {
    let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mounts = text(Path::new("/proc/self/mountinfo"));
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(mounted) = mount.and_then(|line| line.split(' ').nth(4)).map(PathBuf::from) else {
        return false;
    };
    let groups = text(Path::new("/proc/self/cgroup"));
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let may_write = |path: &Path| {
        let found = fs::metadata(path);
        let is_own = found.is_ok_and(|it| node.user() == 0 || it.uid() == node.user());
        is_own && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
    };
    let folder = mounted.join(own);
    let mut above = folder.ancestors().take_while(|folder| folder.starts_with(&mounted));
    above.any(|folder| {
        let has_both = |file: &str| {
            let names = text(&folder.join(file));
            ["cpu", "memory"].iter().all(|name| names.split_whitespace().any(|it| it == *name))
        };
        // A group with processes hands nothing down, except the machine's own.
        let is_top = !folder.join("cgroup.type").exists();
        let is_empty = text(&folder.join("cgroup.procs")).is_empty();
        let can_hand_down =
            (is_top || is_empty) && may_write(&folder.join("cgroup.subtree_control"));
        has_both("cgroup.controllers")
            && may_write(folder)
            && (has_both("cgroup.subtree_control") || can_hand_down)
    })
}

#[test]
fn that_there_are_no_groups_is_said() {
    in_each_setting(async |node| {
        let is_said = |note: &String| note.starts_with("limits hold for single processes");
        assert_eq!(node.runtime.notes().iter().any(is_said), !has_groups(node));
    });
}

#[test]
fn within_its_memory_a_container_runs_and_beyond_it_does_not() {
    in_each_setting(async |node| {
        let limit = |spec: &mut stint_node::ContainerSpec| {
            spec.limits = Limits { cpu_millis: None, memory_bytes: Some(64 * MIB) };
        };
        let (exit, output) = node.run_with(&use_memory(8), limit).await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "8388608\n"));
        assert!(!exit.out_of_memory);
        let (exit, output) = node.run_with(&use_memory(200), limit).await;
        assert_ne!(exit.ending, Ending::Code(0), "{output}");
        // Only a control group knows whom the kernel has ended.
        assert_eq!(exit.out_of_memory, has_groups(node), "{output}");
    });
}

/// A busy container that ends when the kernel has made it wait, as it tells in its own group.
const BUSY: &str = "group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); cat $group/cpu.max; \
                    until grep -q 'nr_throttled [1-9]' $group/cpu.stat; do :; done";

#[test]
fn a_container_has_no_more_cpu_than_its_limit() {
    in_each_setting(async |node| {
        let limits = Limits { cpu_millis: Some(100), memory_bytes: None };
        if !has_groups(node) {
            // Nobody can hold the limit, and nobody is kept from running by it.
            let (exit, output) = node.run_with("echo runs", |spec| spec.limits = limits).await;
            assert_eq!((exit.ending, &*output), (Ending::Code(0), "runs\n"));
            return;
        }
        let (exit, output) = node.run_with(BUSY, |spec| spec.limits = limits).await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "10000 100000\n"));
        // What all containers of a Pod may have together is the group above.
        let sandbox = node.sandbox_with(|spec| spec.limits = limits).await;
        let above = BUSY.replace(r"s/^0:://p", r"s/^0::\(.*\)\/[^/]*$/\1/p");
        let more = |spec: &mut stint_node::ContainerSpec| spec.limits.cpu_millis = Some(2000);
        let (exit, output) = start_with(&*sandbox, &above, more).await.unwrap().end().await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "10000 100000\n"));
        sandbox.close().await;
    });
}

#[test]
fn the_limit_of_the_pod_holds_for_each_container() {
    in_each_setting(async |node| {
        let limits = Limits { cpu_millis: None, memory_bytes: Some(64 * MIB) };
        let sandbox = node.sandbox_with(|spec| spec.limits = limits).await;
        let (exit, _) = start(&*sandbox, &use_memory(8)).await.end().await;
        assert_eq!(exit.ending, Ending::Code(0));
        let more = |spec: &mut stint_node::ContainerSpec| {
            spec.limits.memory_bytes = Some(1024 * MIB);
        };
        let started = start_with(&*sandbox, &use_memory(200), more).await.unwrap();
        let (exit, output) = started.end().await;
        assert_ne!(exit.ending, Ending::Code(0), "{output}");
        sandbox.close().await;
    });
}

#[test]
fn what_runs_beside_a_container_has_its_limits() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start_with(&*sandbox, "exec sleep 1000", |spec| {
            spec.limits.memory_bytes = Some(64 * MIB);
        })
        .await
        .unwrap();
        let exec = |mib| {
            let command = vec!["sh".into(), "-c".into(), use_memory(mib)];
            started.container.exec(command, None, 100)
        };
        assert_eq!(exec(8).await.unwrap().ending, Some(Ending::Code(0)));
        assert_ne!(exec(200).await.unwrap().ending, Some(Ending::Code(0)));
        sandbox.close().await;
    });
}

#[test]
fn without_groups_memory_is_limited_for_each_process_and_addresses_are_not() {
    in_each_setting(async |node| {
        let (_, output) = node
            .run_with("ulimit -d; ulimit -v", |spec| {
                spec.limits = Limits { cpu_millis: Some(100), memory_bytes: Some(64 * MIB) };
            })
            .await;
        let data = if has_groups(node) { "unlimited" } else { "65536" };
        assert_eq!(output, format!("{data}\nunlimited\n"));
        assert_eq!(node.prints("ulimit -d").await, "unlimited\n");
    });
}

#[test]
fn no_group_is_left_and_none_is_made_without_limits() {
    in_each_setting(async |node| {
        let unique = unique();
        let own = |node: &Node| -> Vec<std::path::PathBuf> { groups_of(node) };
        let before = own(node).len();
        let sandbox = node.sandbox().await;
        let mut plain = start(&*sandbox, &format!("echo up; exec sleep {unique}")).await;
        assert_eq!(plain.line().await, "up");
        assert_eq!(own(node).len(), before);
        let mut limited = start_with(&*sandbox, "echo up; exec sleep 1000", |spec| {
            spec.limits = Limits { cpu_millis: Some(100), memory_bytes: Some(64 * MIB) };
        })
        .await
        .unwrap();
        assert_eq!(limited.line().await, "up");
        assert_eq!(own(node).len(), before + usize::from(has_groups(node)));
        sandbox.close().await;
        assert_eq!(own(node).len(), before);
    });
}

/// The control groups below the node's, wherever that is.
fn groups_of(node: &Node) -> Vec<std::path::PathBuf> {
    let metadata = std::fs::metadata(node.folder.path()).unwrap();
    let name = format!("stint-{:x}-{:x}", metadata.dev(), metadata.ino());
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let path = entry.path();
            // Below the helper's own, whose name ends with its number.
            let parent = folder.file_name().and_then(|parent| parent.to_str());
            if parent.is_some_and(|parent| parent.starts_with(&name)) {
                found.push(path.clone());
            }
            folders.push(path);
        }
    }
    found
}
