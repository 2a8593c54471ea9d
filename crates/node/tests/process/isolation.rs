//! What Pods do not share with each other and with the machine, and what is done where that is
//! not possible.

use std::fs;

use stint_node::{Ending, Isolation, ProcessRuntime, Runtime, RuntimeError};

use crate::kit::{
    self, Setting, block_on, in_each_namespace, in_each_setting, is_root, mount, new_folder,
    options, sandbox_spec, start, start_with,
};

#[test]
fn without_a_choice_the_best_that_is_possible_is_chosen() {
    block_on(async {
        let setting = Setting { isolation: Isolation::None, lowered: false };
        let folder = new_folder(setting);
        let mut options = options(setting, folder.path());
        options.isolation = None;
        let runtime = ProcessRuntime::start(options).await.unwrap();
        let best = if is_root() { Isolation::Root } else { Isolation::User };
        assert_eq!(runtime.isolation(), best, "{:?}", runtime.notes());
        assert!(runtime.no_mounts().is_none());
        assert!(!runtime.uses_images());
        assert_eq!(runtime.name(), "process");
        runtime.stop().await;
    });
}

#[test]
fn namespaces_of_root_are_refused_to_others_with_the_reason() {
    block_on(async {
        let setting = Setting { isolation: Isolation::Root, lowered: is_root() };
        let folder = new_folder(setting);
        match ProcessRuntime::start(options(setting, folder.path())).await {
            Err(RuntimeError::Unsupported(message)) => {
                assert!(message.contains("CAP_SYS_ADMIN"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_helper_that_is_none_is_an_error_that_names_it() {
    block_on(async {
        let setting = Setting { isolation: Isolation::None, lowered: false };
        let folder = new_folder(setting);
        for (program, said) in [("/no/helper", "/no/helper"), ("/bin/true", "it ended at once")] {
            let mut options = options(setting, folder.path());
            options.helper.program = program.into();
            let error = ProcessRuntime::start(options).await.unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    });
}

#[test]
fn each_pod_has_its_own_host_name_and_the_machine_keeps_its() {
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    in_each_namespace(async |node| {
        let named = |name: &'static str| {
            node.sandbox_with(move |spec| spec.hostname = Some(name.to_owned()))
        };
        let (one, other, unnamed) =
            (named("one").await, named("other").await, node.sandbox().await);
        let script = "cat /proc/sys/kernel/hostname";
        // In turns, so that the helper changes between sandboxes.
        for _ in 0..2 {
            for (sandbox, name) in [(&one, "one"), (&other, "other"), (&unnamed, machine.trim())] {
                let (_, output) = start(&**sandbox, script).await.end().await;
                assert_eq!(output.trim(), name);
            }
        }
        for sandbox in [one, other, unnamed] {
            sandbox.close().await;
        }
        assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), machine);
    });
}

#[test]
fn containers_of_a_pod_share_ipc_and_host_name_but_neither_processes_nor_mounts() {
    in_each_namespace(async |node| {
        let script = "for n in uts ipc pid mnt; do readlink /proc/self/ns/$n; done";
        let namespaces = |output: String| -> Vec<String> {
            let lines: Vec<String> = output.lines().map(str::to_owned).collect();
            assert_eq!(lines.len(), 4, "{output}");
            lines
        };
        let sandbox = node.sandbox().await;
        let (mut one, mut other) = (
            start(&*sandbox, &format!("{script}; echo; exec sleep 1000")).await,
            start(&*sandbox, &format!("{script}; echo; exec sleep 1000")).await,
        );
        let mut first = Vec::new();
        let mut second = Vec::new();
        for _ in 0..4 {
            first.push(one.line().await);
            second.push(other.line().await);
        }
        let elsewhere = namespaces(node.prints(script).await);
        let own: Vec<String> = ["uts", "ipc", "pid", "mnt"]
            .iter()
            .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).unwrap())
            .map(|link| link.to_str().unwrap().to_owned())
            .collect();
        for (at, shared) in [(0, true), (1, true), (2, false), (3, false)] {
            assert_eq!(first[at] == second[at], shared, "{first:?} {second:?}");
            for others in [&elsewhere, &own] {
                assert_ne!(first[at], others[at]);
                assert_ne!(second[at], others[at]);
            }
        }
        sandbox.close().await;
    });
}

#[test]
fn a_container_sees_its_own_processes_only() {
    in_each_namespace(async |node| {
        // The keeper, the shell, and what lists them.
        let output = node.prints("ls -d /proc/[0-9]* | wc -l; echo $$").await;
        let lines: Vec<&str> = output.split_whitespace().collect();
        assert_eq!(lines[1], "2", "the first process after the keeper");
        let count: u32 = lines[0].parse().unwrap();
        assert!(count <= 5, "{output}");
    });
}

#[test]
fn containers_see_each_other_if_the_pod_says_so() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox_with(|spec| spec.shares_processes = true).await;
        let unique = kit::unique();
        let script = format!("sleep {unique} & echo started; wait");
        let mut one = start(&*sandbox, &script).await;
        assert_eq!(one.line().await, "started");
        let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
        let (exit, output) = start(&*sandbox, look).await.end().await;
        assert!(output.contains(&unique), "{exit:?} {output}");
        // A finished container leaves nothing behind, and the others alone.
        let left = kit::unique();
        let daemon = format!("setsid sh -c 'sleep {left} & echo left' & wait; echo over");
        let (exit, output) = start(&*sandbox, &daemon).await.end().await;
        assert_eq!(exit.ending, Ending::Code(0), "{output}");
        assert_eq!(kit::who_has(&left), [] as [i32; 0]);
        kit::eventually("the other one sleeps", || kit::who_has(&unique).len() == 1).await;
        if node.has_namespaces() {
            let outside = kit::unique();
            let apart = node.sandbox().await;
            let other = start(&*apart, &format!("exec sleep {outside}")).await;
            let (_, output) = start(&*sandbox, look).await.end().await;
            assert!(!output.contains(&outside), "{output}");
            drop(other);
            apart.close().await;
        }
        sandbox.close().await;
        assert_eq!(kit::who_has(&unique), [] as [i32; 0]);
    });
}

#[test]
fn the_hosts_file_of_the_pod_stands_in_its_place() {
    let machine = fs::read("/etc/hosts").unwrap();
    in_each_namespace(async |node| {
        let hosts = node.file("hosts", "127.0.0.1 somebody\n");
        let sandbox = node.sandbox_with(|spec| spec.hosts_file = Some(hosts.clone())).await;
        let mut reader = start(&*sandbox, "cat /etc/hosts; read go < /etc/hosts; echo $go").await;
        assert_eq!(reader.line().await, "127.0.0.1 somebody");
        assert_eq!(reader.end().await.1.trim(), "127.0.0.1 somebody");
        let (exit, _) = start(&*sandbox, "echo 127.0.0.1 else >> /etc/hosts").await.end().await;
        assert_eq!(exit.ending, Ending::Code(0));
        sandbox.close().await;
        assert_eq!(fs::read_to_string(hosts).unwrap(), "127.0.0.1 somebody\n127.0.0.1 else\n");
        assert_eq!(fs::read("/etc/hosts").unwrap(), machine);
    });
}

#[test]
fn the_hosts_file_is_not_covered_by_a_mount_around_it_but_by_one_in_its_place() {
    in_each_namespace(async |node| {
        let hosts = node.file("table", "127.0.0.1 somebody\n");
        let own = node.file("own", "127.0.0.1 own\n");
        let folder = hosts.parent().expect("it is in a folder").to_owned();
        let sandbox = node.sandbox_with(|spec| spec.hosts_file = Some(hosts.clone())).await;
        for (mounts, expected) in [
            (vec![mount(&folder, "/etc")], "127.0.0.1 somebody"),
            (vec![mount(&own, "/etc/hosts"), mount(&folder, "/etc")], "127.0.0.1 own"),
        ] {
            let started = start_with(&*sandbox, "cat /etc/hosts", |spec| spec.mounts = mounts);
            let (exit, output) = started.await.expect("it starts").end().await;
            assert_eq!((exit.ending, output.trim()), (Ending::Code(0), expected));
        }
        sandbox.close().await;
    });
}

#[test]
fn without_namespaces_what_needs_mounts_is_refused_and_the_rest_runs() {
    in_each_setting(async |node| {
        assert_eq!(node.runtime.no_mounts().is_none(), node.has_namespaces());
        if node.has_namespaces() {
            return;
        }
        let hosts = node.file("hosts", "");
        let mut spec = sandbox_spec();
        spec.hosts_file = Some(hosts.clone());
        let refusals = [node.runtime.make_sandbox(spec).await.err(), {
            let sandbox = node.sandbox().await;
            let mounts = vec![mount(&hosts, "/some/where")];
            let refused = start_with(&*sandbox, "true", |spec| spec.mounts = mounts).await.err();
            let (exit, _) = start(&*sandbox, "exit 5").await.end().await;
            assert_eq!(exit.ending, Ending::Code(5));
            sandbox.close().await;
            refused
        }];
        for (refused, target) in refusals.into_iter().zip(["/etc/hosts", "/some/where"]) {
            match refused {
                Some(RuntimeError::Unsupported(message)) => {
                    for part in [target, "run stint as root", "user namespaces"] {
                        assert!(message.contains(part), "{message}");
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        let sandbox = node.sandbox_with(|spec| spec.hostname = Some("ignored".into())).await;
        let (exit, _) = start(&*sandbox, "true").await.end().await;
        assert_eq!(exit.ending, Ending::Code(0));
        sandbox.close().await;
    });
}
