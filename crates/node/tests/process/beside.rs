//! Programs beside a container with an input, outputs and a terminal of their own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use stint_node::{Beside, Container, Ending, RuntimeError, Stdio};

use crate::kit::{eventually, in_each_setting, start, start_with, unique, who_has};

fn command(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(ToOwned::to_owned).to_vec()
}

/// What a program is written to, and what it is read by.
struct Pipes {
    stdin: File,
    stdout: File,
    stderr: File,
}

async fn beside(
    container: &dyn Container,
    script: &str,
) -> Result<(Box<dyn Beside>, Pipes), RuntimeError> {
    let [(stdin, typed), (out, stdout), (err, stderr)] =
        std::array::from_fn(|_| std::io::pipe().expect("a pipe"));
    let stdio = Stdio {
        stdin: Some(stdin.into()),
        stdout: stdout.into(),
        stderr: stderr.into(),
        is_terminal: false,
    };
    let begun = container.start_beside(command(script), stdio).await?;
    let file = |fd: OwnedFd| File::from(fd);
    Ok((
        begun,
        Pipes { stdin: file(typed.into()), stdout: file(out.into()), stderr: file(err.into()) },
    ))
}

async fn all(mut file: File) -> String {
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        // A terminal whose other end is gone is an error, not an end.
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        text
    });
    reading.await.expect("reading does not panic")
}

#[test]
fn it_reads_its_input_to_the_end_and_writes_to_both_outputs() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start_with(&*sandbox, "exec sleep 1000", |spec| {
            spec.env.push(("A".into(), "b".into()))
        })
        .await
        .unwrap();
        let script = "cat; echo $A >&2; exit 7";
        let (begun, mut pipes) = beside(&*started.container, script).await.unwrap();
        pipes.stdin.write_all(b"one\ntwo\n").expect("it reads");
        drop(pipes.stdin);
        assert_eq!(begun.wait().await, Ending::Code(7));
        assert_eq!(all(pipes.stdout).await, "one\ntwo\n");
        assert_eq!(all(pipes.stderr).await, "b\n");
        sandbox.close().await;
    });
}

/// A terminal: the end of who sits at it, and what a program is started with.
fn terminal() -> (OwnedFd, Stdio) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = openpt(flags).expect("a terminal");
    grantpt(&near).and_then(|()| unlockpt(&near)).expect("it is ours");
    let far = ioctl_tiocgptpeer(&near, flags).expect("its other end");
    let copy = || far.try_clone().expect("a descriptor");
    let (stdin, stdout) = (Some(copy()), copy());
    (near, Stdio { stdin, stdout, stderr: far, is_terminal: true })
}

/// A shell at a terminal gives each of its jobs a process group of its own.
#[test]
fn it_ends_with_all_of_its_session_when_nobody_holds_it_any_more() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let unique = unique();
        let script = format!("trap '' HUP TERM; set -m; sleep {unique} & sleep {unique}");
        let (_near, stdio) = terminal();
        let begun = started.container.start_beside(command(&script), stdio).await.unwrap();
        eventually("both run", || who_has(&unique).len() == 2).await;
        drop(begun);
        eventually("both are gone", || who_has(&unique).is_empty()).await;
        sandbox.close().await;
    });
}

#[test]
fn what_it_leaves_in_its_session_ends_with_it() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let unique = unique();
        let script = format!("trap '' HUP; set -m; sleep {unique} & echo begun");
        let (near, stdio) = terminal();
        let begun = started.container.start_beside(command(&script), stdio).await.unwrap();
        assert_eq!(begun.wait().await, Ending::Code(0));
        assert_eq!(who_has(&unique), [] as [i32; 0]);
        let shown = all(File::from(near)).await;
        assert!(shown.contains("begun\r\n"), "{shown:?}");
        sandbox.close().await;
    });
}

#[test]
fn its_terminal_is_that_of_its_session() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let (near, stdio) = terminal();
        let script = "test -t 0 -a -t 1 -a -t 2 && echo all; echo by name > /dev/tty; \
                      echo $TERM; read typed; echo got $typed >&2; kill -INT 0; sleep 1000";
        let begun = started.container.start_beside(command(script), stdio).await.unwrap();
        let mut typist = File::from(near.try_clone().expect("a descriptor"));
        typist.write_all(b"something\n").expect("it is read");
        let ending = begun.wait().await;
        let shown = all(File::from(near)).await.replace("\r\n", "\n");
        for line in ["all\n", "by name\n", "xterm\n", "got something\n"] {
            assert!(shown.contains(line), "{line:?}: {shown:?}");
        }
        assert_eq!(ending, Ending::Signal(2));
        sandbox.close().await;
    });
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    in_each_setting(async |node| {
        let sandbox = node.sandbox().await;
        let started = start(&*sandbox, "exec sleep 1000").await;
        let (_, pipe) = std::io::pipe().expect("a pipe");
        let (stdout, stderr) = (pipe.try_clone().expect("a descriptor").into(), pipe.into());
        let stdio = Stdio { stdin: None, stdout, stderr, is_terminal: false };
        match started.container.start_beside(vec!["nope".to_owned()], stdio).await {
            Err(RuntimeError::CannotRun { message, .. }) => {
                assert_eq!(message, "exec: \"nope\": executable file not found in $PATH");
            }
            other => panic!("{other:?}"),
        }
        sandbox.close().await;
    });
}
