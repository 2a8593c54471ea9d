//! What containers may use. By control groups where the machine has them for us, by limits on
//! single processes where it has not; the tests hold either to what it promises.

use stint_node::{Ending, Limits};

use crate::kit::{Node, in_each_setting, start, start_with, unique};

const MIB: u64 = 1 << 20;

/// Uses as many MiB as it says, in a variable of a shell's child.
fn use_memory(mib: u64) -> String {
    format!("x=$(head -c {} /dev/zero | tr '\\0' x); echo ${{#x}}", mib * MIB)
}

fn has_groups(node: &Node) -> bool {
    !node.runtime.notes().iter().any(|note| note.starts_with("limits hold for single processes"))
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

#[test]
fn the_limit_of_the_pod_holds_for_each_container() {
    in_each_setting(async |node| {
        let limits = Limits { cpu_millis: Some(500), memory_bytes: Some(64 * MIB) };
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
    use std::os::unix::fs::MetadataExt;
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
