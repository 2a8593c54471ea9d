//! What a container starts with, how it ends by itself, and what cannot start.

use stint_node::{Ending, Mount, RuntimeError};

use crate::kit::{
    container_spec, in_each_namespace, in_each_setting, is_root, mount, start, start_spec,
    start_with,
};

#[test]
fn the_way_a_container_ends_is_told() {
    in_each_setting(async |node| {
        for (script, ending) in [
            ("exit 0", Ending::Code(0)),
            ("exit 3", Ending::Code(3)),
            ("exit 255", Ending::Code(255)),
            ("kill -TERM $$", Ending::Signal(15)),
            ("kill -KILL $$", Ending::Signal(9)),
            ("kill -SEGV $$", Ending::Signal(11)),
            ("kill -RTMIN $$; sleep 100", Ending::Signal(34)),
        ] {
            let before = jiff::Timestamp::now();
            let (exit, _) = node.run(script).await;
            assert_eq!(exit.ending, ending, "{script}");
            assert!(exit.at >= before && exit.at <= jiff::Timestamp::now(), "{script}");
            assert!(!exit.out_of_memory, "{script}");
        }
    });
}

#[test]
fn several_may_wait_and_ask_again() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "read line < /dev/null; exit 4").await;
        let container = &started.container;
        let (one, other) = tokio::join!(container.wait(), container.wait());
        assert_eq!(one, other);
        assert_eq!(container.wait().await, one);
        assert_eq!(one.ending, Ending::Code(4));
        assert!(container.started_at() <= one.at);
        sandbox.close().await;
    });
}

#[test]
fn a_container_starts_as_a_program_expects() {
    in_each_setting(async |node| {
        let user = node.user();
        for (script, expected) in [
            ("pwd", "/"),
            ("umask", "0022"),
            // Empty, not closed.
            ("readlink /proc/self/fd/0; cat", "/dev/null"),
            // ls has one of its own for the folder.
            ("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3"),
            // A session of its own: the shell is its first process.
            ("test $(ps -o sid= -p $$) = $$ && echo first", "first"),
            (
                "cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)' | cut -f2 | sort -u",
                "0000000000000000",
            ),
            ("cat /proc/self/oom_score_adj", "0"),
            ("echo out; echo err >&2", "out\nerr"),
            ("test $$ = 1 || echo not the first process", "not the first process"),
        ] {
            assert_eq!(node.prints(script).await.trim(), expected, "{script}");
        }
        assert_eq!(node.prints("id -u").await.trim(), user.to_string());
    });
}

#[test]
fn more_descriptors_are_not_inherited_than_the_server_had() {
    in_each_setting(async |node| {
        let own = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let own = own.map_or("unlimited".to_owned(), |count| count.to_string());
        assert_eq!(node.prints("ulimit -n").await.trim(), own);
    });
}

#[test]
fn the_environment_is_what_was_given_and_a_mark() {
    in_each_setting(async |node| {
        let (_, output) = node
            .run_with("", |spec| {
                spec.command = vec!["/usr/bin/env".into()];
                spec.env = vec![("A".into(), "b c=d".into()), ("E".into(), String::new())];
            })
            .await;
        let mut lines: Vec<&str> = output.lines().collect();
        let mark = lines.pop().unwrap();
        assert_eq!(lines, ["A=b c=d", "E="]);
        assert!(mark.starts_with("STINT_POD="), "{mark}");
    });
}

#[test]
fn arguments_arrive_as_they_are_however_long() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let long = "x".repeat(100_000);
        let mut spec =
            container_spec(&["sh", "-c", "printf '%s|' \"$1\" \"$2\" ${#3} ${#4}", "sh"]);
        spec.command.extend(["a b\n".into(), String::new(), long.clone(), "é'\"".into()]);
        spec.env.push(("LONG".into(), long));
        let (exit, output) = start_spec(&*sandbox, spec).await.unwrap().end().await;
        assert_eq!(exit.ending, Ending::Code(0));
        let (start, end) = output.split_once("100000|").unwrap();
        assert_eq!(start, "a b\n||");
        // Characters or bytes, as the shell counts.
        assert!(["3|", "4|"].contains(&end), "{output}");
        sandbox.close().await;
    });
}

#[test]
fn the_working_directory_is_entered() {
    in_each_setting(async |node| {
        let folder = node.volume("here");
        let (_, output) =
            node.run_with("pwd", |spec| spec.working_dir = Some(folder.clone())).await;
        assert_eq!(output.trim(), folder.to_str().unwrap());
    });
}

#[test]
fn a_program_that_cannot_run_is_an_error_of_the_start() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let plain = node.file("plain", "no program");
        let broken = node.program("broken", "#!/nowhere/interpreter\n");
        let nonsense = node.program("nonsense", "\x01\x02 no program at all");
        for (command, expected) in [
            ("nope", "exec: \"nope\": executable file not found in $PATH".to_owned()),
            ("", "exec: \"\": executable file not found in $PATH".to_owned()),
            ("/no/pe", "exec: \"/no/pe\": stat /no/pe: no such file or directory".to_owned()),
            ("/etc/passwd/x", "no such file or directory".to_owned()),
            (plain.to_str().unwrap(), "permission denied".to_owned()),
            ("/", "permission denied".to_owned()),
            (broken.to_str().unwrap(), "not the interpreter".to_owned()),
            (nonsense.to_str().unwrap(), "exec format error".to_owned()),
        ] {
            let refused = start_spec(&*sandbox, container_spec(&[command])).await.err();
            match refused {
                Some(RuntimeError::CannotRun { reason, exit_code, message }) => {
                    assert_eq!((reason, exit_code), ("StartError", 128), "{command}");
                    assert!(
                        message.ends_with(&expected) || message.contains(&expected),
                        "{message}"
                    );
                    assert!(message.starts_with("exec: "), "{message}");
                }
                other => panic!("{command}: {other:?}"),
            }
        }
        // The sandbox is as good as before.
        let (exit, _) = start(&*sandbox, "exit 7").await.end().await;
        assert_eq!(exit.ending, Ending::Code(7));
        sandbox.close().await;
    });
}

#[test]
fn a_working_directory_is_made_in_a_volume_and_nowhere_else() {
    in_each_namespace(async |node| {
        let (volume, outside) = (node.volume("volume"), node.volume("outside"));
        std::os::unix::fs::symlink(&outside, volume.join("out")).unwrap();
        let run = async |dir: &str, read_only: bool| {
            let sandbox = node.sandbox().await;
            let started = start_with(&*sandbox, "pwd", |spec| {
                spec.mounts = vec![Mount { read_only, ..mount(&volume, "/stint-work") }];
                spec.working_dir = Some(dir.into());
            })
            .await;
            let said = match started {
                Ok(started) => started.end().await.1,
                Err(error) => error.to_string(),
            };
            sandbox.close().await;
            said
        };
        assert_eq!(run("/stint-work/a/b", false).await, "/stint-work/a/b\n");
        assert!(volume.join("a/b").is_dir());
        for (dir, read_only) in [("/stint-work/c", true), ("/stint-nowhere", false)] {
            let said = run(dir, read_only).await;
            assert!(said.contains(dir) && said.contains("mount a volume there"), "{said}");
        }
        assert!(run("/stint-work/out/d", false).await.contains("no such file or directory"));
        assert!(!outside.join("d").exists(), "the machine's own folders stay as they are");
    });
}

#[test]
fn a_working_directory_that_does_not_exist_is_an_error_of_the_start() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let file = node.file("file", "");
        for folder in ["/no/where", file.to_str().unwrap()] {
            let change = |spec: &mut stint_node::ContainerSpec| {
                spec.working_dir = Some(folder.into());
            };
            match start_with(&*sandbox, "true", change).await.err() {
                Some(RuntimeError::CannotRun { exit_code: 128, message, .. }) => {
                    assert!(message.starts_with("working directory "), "{message}");
                    assert!(message.contains(folder), "{message}");
                }
                other => panic!("{folder}: {other:?}"),
            }
        }
        sandbox.close().await;
    });
}

#[test]
fn who_names_the_nodes_own_user_runs_anywhere() {
    in_each_setting(async |node| {
        let (user, group) = (node.user(), node.group());
        let (exit, output) = node
            .run_with("id -u; id -g", |spec| {
                spec.user = Some(user);
                spec.group = Some(group);
                spec.groups = vec![group];
            })
            .await;
        assert_eq!(exit.ending, Ending::Code(0));
        assert_eq!(output, format!("{user}\n{group}\n"));
    });
}

#[test]
fn another_user_takes_root_and_the_error_says_so() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start_with(&*sandbox, "id -u; id -g; id -G", |spec| {
            spec.user = Some(1234);
            spec.group = Some(2345);
            spec.groups = vec![3456, 4567];
        })
        .await;
        if is_root() && !node.setting.lowered {
            let (exit, output) = started.unwrap().end().await;
            assert_eq!(exit.ending, Ending::Code(0));
            assert_eq!(output, "1234\n2345\n2345 3456 4567\n");
        } else {
            match started.err() {
                Some(RuntimeError::Unsupported(message)) => {
                    for part in ["user 1234", "group 2345", "[3456, 4567]", "as root"] {
                        assert!(message.contains(part), "{message}");
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        sandbox.close().await;
    });
}
