//! What a container sees elsewhere than it is, and that the machine keeps nothing of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stint_node::{Ending, Isolation, Mount, ProcessRuntime, RuntimeError};

use crate::kit::{
    Node, Setting, block_on, in_each_namespace, is_root, mount, new_folder, options, start,
    start_with,
};

/// Targets that exist on no machine, each in another kind of place.
fn missing_targets() -> Vec<&'static str> {
    vec![
        // At the root, and below what is missing there.
        "/stint-test-data",
        "/stint-test-data/deep/er",
        // In folders that exist.
        "/etc/stint-test",
        "/usr/stint-test/a/b",
        "/dev/stint-test",
        "/tmp/stint-test/x",
        // Through a link, where /var/run is one.
        "/var/run/stint-test/secrets",
    ]
}

#[test]
fn a_folder_and_a_file_stand_where_nothing_was() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        let file = node.file("file", "content\n");
        for target in missing_targets() {
            let inner = Path::new(target).join("inner");
            let mounts = vec![mount(&folder, target)];
            let script = format!("echo kept > {} && test -d {target}", inner.display());
            let (exit, output) = node.run_with(&script, |spec| spec.mounts = mounts).await;
            assert_eq!(exit.ending, Ending::Code(0), "{target}: {output}");
            assert_eq!(fs::read_to_string(folder.join("inner")).unwrap(), "kept\n", "{target}");
            fs::remove_file(folder.join("inner")).unwrap();

            let mounts = vec![mount(&file, target)];
            let script = format!("cat {target}; echo more >> {target}");
            let (exit, output) = node.run_with(&script, |spec| spec.mounts = mounts).await;
            assert_eq!((exit.ending, &*output), (Ending::Code(0), "content\n"), "{target}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "content\nmore\n", "{target}");
            fs::write(&file, "content\n").unwrap();

            assert!(!Path::new(target).exists(), "{target} was made on the machine");
            assert!(fs::symlink_metadata("/stint-test-data").is_err());
        }
    });
}

#[test]
fn all_of_them_together_and_everything_else_is_still_there() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        fs::write(folder.join("mark"), "").unwrap();
        let mounts: Vec<Mount> =
            missing_targets().into_iter().map(|target| mount(&folder, target)).collect();
        let marks: Vec<String> = missing_targets()
            .into_iter()
            // One that lies within another was made within its volume.
            .map(|target| format!("test -e {target}/mark || echo {target}"))
            .collect();
        // The screens are left out of the mimic of /dev.
        let listing = "ls -a / /etc /dev /usr | grep -v -e stint-test -e '^tty[0-9]' -e '^vcs'";
        let plain = node.prints(listing).await;
        let script =
            format!("{}; {listing}; echo x > /dev/null; test -s /etc/passwd", marks.join(";"));
        let (exit, output) = node.run_with(&script, |spec| spec.mounts = mounts).await;
        assert_eq!(exit.ending, Ending::Code(0), "{output}");
        assert_eq!(output, plain);
    });
}

#[test]
fn what_would_be_lost_cannot_be_written() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        for target in ["/stint-test-data", "/etc/stint-test"] {
            let parent = Path::new(target).parent().unwrap().join("stint-test-lost");
            let (exit, output) = node
                .run_with(&format!("echo > {}", parent.display()), |spec| {
                    spec.mounts = vec![mount(&folder, target)];
                })
                .await;
            assert_ne!(exit.ending, Ending::Code(0), "{target}");
            assert!(output.contains("Read-only file system"), "{output}");
            assert!(!parent.exists());
        }
        // But folders for temporary files are what they are, and nothing stays.
        let (exit, output) = node
            .run_with("echo > /tmp/stint-test-temporary && ls /tmp", |spec| {
                spec.mounts = vec![mount(&folder, "/tmp/stint-test/x")];
            })
            .await;
        assert_eq!(exit.ending, Ending::Code(0), "{output}");
        assert!(!Path::new("/tmp/stint-test-temporary").exists());
    });
}

#[test]
fn what_is_there_is_covered_for_this_container_only() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        fs::write(folder.join("mark"), "").unwrap();
        let file = node.file("file", "ours\n");
        let sandbox = node.sandbox().await;
        let covered = start_with(&*sandbox, "ls /mnt; cat /etc/passwd; read x", |spec| {
            spec.mounts = vec![mount(&folder, "/mnt"), mount(&file, "/etc/passwd")];
        })
        .await
        .unwrap();
        let (_, output) = covered.end().await;
        assert_eq!(output, "mark\nours\n");
        let (_, output) = start(&*sandbox, "ls /mnt; cat /etc/passwd").await.end().await;
        assert!(!output.contains("mark") && output.contains("root:"), "{output}");
        sandbox.close().await;
    });
}

#[test]
fn read_only_means_nobody_writes() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        fs::write(folder.join("file"), "same").unwrap();
        let file = node.file("single", "same");
        let script = "echo > /stint-test/new; echo > /stint-test/file; rm /stint-test/file; \
                      echo > /stint-single; cat /stint-test/file /stint-single >&2";
        let (exit, output) = node
            .run_with(script, |spec| {
                spec.mounts = vec![
                    Mount { read_only: true, ..mount(&folder, "/stint-test") },
                    Mount { read_only: true, ..mount(&file, "/stint-single") },
                ];
            })
            .await;
        assert_eq!(exit.ending, Ending::Code(0), "{output}");
        assert_eq!(output.matches("Read-only file system").count(), 4, "{output}");
        assert!(output.ends_with("samesame"), "{output}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    });
}

#[test]
fn mounts_come_in_their_order_and_sources_are_the_machines() {
    in_each_namespace(async |node| {
        let (outer, inner) = (node.volume("outer"), node.volume("inner"));
        fs::write(inner.join("mark"), "").unwrap();
        // A mount within a volume of the node's: its place is made in the volume.
        let (exit, output) = node
            .run_with("ls /stint-a/b; echo > /stint-a/new", |spec| {
                spec.mounts = vec![mount(&outer, "/stint-a"), mount(&inner, "/stint-a/b")];
            })
            .await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "mark\n"));
        assert!(outer.join("new").exists());
        // The node's folder is covered first, and its volumes are still found.
        let covering = node.folder.path().to_owned();
        let (exit, output) = node
            .run_with("ls /stint-b; ls /stint-c", |spec| {
                spec.mounts = vec![
                    mount(&outer, covering),
                    mount(&inner, "/stint-b"),
                    mount(&outer, "/stint-c"),
                ];
            })
            .await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "mark\nb\nnew\n"));
        // The same place twice: the later one counts.
        let (_, output) = node
            .run_with("ls /stint-d", |spec| {
                spec.mounts = vec![mount(&outer, "/stint-d"), mount(&inner, "/stint-d")];
            })
            .await;
        assert_eq!(output, "mark\n");
    });
}

#[test]
fn a_link_that_leads_nowhere_is_replaced() {
    in_each_namespace(async |node| {
        let folder = node.volume("links");
        std::os::unix::fs::symlink("/nowhere/at/all", folder.join("link")).unwrap();
        let file = node.file("file", "found\n");
        let link = folder.join("link");
        let script = format!("cat {}", link.display());
        let mounts = vec![mount(&file, &link)];
        let (_, output) = node.run_with(&script, |spec| spec.mounts = mounts).await;
        assert_eq!(output, "found\n");
        assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    });
}

#[test]
fn mounts_that_make_no_sense_are_errors_of_the_start() {
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        let file = node.file("file", "");
        let gone = node.folder.path().join("gone");
        let sandbox = node.sandbox().await;
        for (mounts, said) in [
            (mount(&folder, "/etc/passwd"), "the source is a folder, but a file is there"),
            (mount(&file, "/etc"), "the source is a file, but a folder is there"),
            (mount(&gone, "/stint-x"), "No such file or directory"),
            (mount(&folder, "/etc/passwd/x"), "Not a directory"),
            (mount(&folder, "relative"), "write an absolute path"),
            (mount(&folder, "/stint-x/../y"), "without \"..\""),
            (mount(&folder, "/"), "the machine's root stays"),
        ] {
            let target = mounts.target.display().to_string();
            match start_with(&*sandbox, "true", |spec| spec.mounts = vec![mounts]).await.err() {
                Some(RuntimeError::CannotRun { exit_code: 128, message, .. }) => {
                    assert!(message.to_lowercase().contains(&said.to_lowercase()), "{message}");
                    assert!(message.contains(&target), "{message}");
                }
                other => panic!("{target}: {other:?}"),
            }
        }
        sandbox.close().await;
    });
}

#[test]
fn nothing_is_mounted_on_the_machine() {
    let mounted = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounted();
    in_each_namespace(async |node| {
        let folder = node.volume("folder");
        let sandbox = node.sandbox().await;
        let mut started = start_with(&*sandbox, "echo up; exec sleep 1000", |spec| {
            spec.mounts = vec![mount(&folder, "/stint-x"), mount(&folder, "/etc/stint-x")];
        })
        .await
        .unwrap();
        assert_eq!(started.line().await, "up");
        assert_eq!(mounted(), before);
        sandbox.close().await;
        assert_eq!(mounted(), before);
    });
}

#[test]
fn a_mimic_is_what_the_folder_is_now() {
    in_each_namespace(async |node| {
        let (parent, source) = (node.volume("parent"), node.volume("source"));
        let target = parent.join("missing");
        let script = format!("ls {}", parent.display());
        let mounts = vec![mount(&source, &target)];
        let look = || async {
            let mounts = mounts.clone();
            node.run_with(&script, |spec| spec.mounts = mounts).await.1
        };
        // Often enough that one is made, kept, and made again.
        for name in ["a", "b", "c"] {
            let before = look().await;
            crate::kit::eventually("the clock goes on", || {
                let changed = fs::metadata(&parent).unwrap().modified().unwrap();
                changed.elapsed().unwrap_or_default() > std::time::Duration::from_millis(60)
            })
            .await;
            assert_eq!(look().await, before);
            assert_eq!(look().await, before);
            fs::write(parent.join(name), "").unwrap();
            let after = look().await;
            assert_ne!(after, before);
            assert!(after.lines().any(|line| line == name), "{after}");
        }
        assert!(!target.exists());
    });
}

#[test]
fn temporary_files_are_not_shared_between_containers() {
    in_each_namespace(async |node| {
        let volume = node.volume("volume");
        let script = "ls /tmp/stint-test-seen 2> /dev/null; echo > /tmp/stint-test-seen";
        for _ in 0..3 {
            let mounts = vec![mount(&volume, "/tmp/stint-test/x"), mount(&volume, "/stint-test")];
            let (exit, output) = node.run_with(script, |spec| spec.mounts = mounts).await;
            assert_eq!((exit.ending, &*output), (Ending::Code(0), ""));
        }
    });
}

/// Whoever a container runs as finds the way to what is mounted, whatever umask the node has.
#[test]
fn the_way_to_a_mount_is_open_whatever_the_umask_is() {
    if !is_root() {
        return;
    }
    let setting = Setting { isolation: Isolation::Root, lowered: false };
    block_on(async {
        let folder = new_folder(setting);
        let mut options = options(setting, folder.path());
        let own = std::mem::replace(&mut options.helper.program, "/bin/sh".into());
        options.helper.args = ["-c", "umask 077; exec \"$0\""].map(Into::into).to_vec();
        options.helper.args.push(own.into());
        let runtime = ProcessRuntime::start(options).await.expect("the runtime starts");
        let node = Node { runtime, setting, folder };
        let file = node.file("file", "content\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let script = "cat /stint-test-data/deep/file && umask";
        let change = |spec: &mut stint_node::ContainerSpec| {
            spec.mounts = vec![mount(&file, "/stint-test-data/deep/file")];
            (spec.user, spec.group) = (Some(54321), Some(54321));
        };
        let (exit, output) = node.run_with(script, change).await;
        assert_eq!((exit.ending, &*output), (Ending::Code(0), "content\n0022\n"));
        node.stop().await;
    });
}
