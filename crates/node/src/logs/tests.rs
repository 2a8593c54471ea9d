//! Logs written and read back in a folder of the test's own. No containers.

use std::io::Write as _;
use std::os::fd::OwnedFd;

use futures_util::StreamExt;
use serde_json::json;

use super::*;
use crate::console::Console;
use crate::runtime::{Ending, Stdio};
use crate::session::{Piece, Wanted};

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "status": {"containerStatuses": [
            {"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ErrImage"}}},
            {"name": "quiet", "image": "", "imageID": "", "ready": false, "restartCount": 3,
                "state": {"terminated": {"exitCode": 0}}},
        ]},
    }))
    .expect("a Pod")
}

fn logs(folder: &Path, rotation: LogRotation) -> Logs {
    let now = || Timestamp::from_second(1_800_000_000).expect("a time");
    Logs::new(folder.to_path_buf(), rotation, Clock::new(now))
}

fn of_main() -> LogOptions {
    LogOptions { container: "main".to_owned(), ..LogOptions::default() }
}

async fn read(logs: &Logs, options: LogOptions) -> String {
    let pieces: Vec<Bytes> = logs.open(&pod(), &options).expect("it has run").collect().await;
    String::from_utf8(pieces.concat()).expect("text")
}

/// What a container without input is started with, and what is read of it.
fn pipes() -> (Stdio, Inlets) {
    let (stdio, inlets, _) = Console::open(&Default::default(), None).expect("pipes");
    (stdio, inlets)
}

/// A container that writes this to its outputs and ends.
async fn write(logs: &Logs, run: u32, stdout: &str, stderr: &str) {
    let (output, inlets) = pipes();
    let writer = logs.begin(&PodRef::of(&pod()), "main", run, false);
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    let put = |fd: OwnedFd, text: &str| {
        let (mut file, text) = (fs::File::from(fd), text.to_owned());
        tokio::task::spawn_blocking(move || file.write_all(text.as_bytes()).expect("heard"))
    };
    put(output.stdout, stdout).await.expect("written");
    put(output.stderr, stderr).await.expect("written");
    pump.finish().await;
}

#[tokio::test]
async fn a_log_is_read_as_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    write(&logs, 0, "one\ntwo\nthree", "").await;
    write(&logs, 1, "four\nfive\n", "bad\n").await;
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.join(" ")
    };
    assert_eq!(read(&logs, LogOptions { previous: true, ..of_main() }).await, "one\ntwo\nthree");
    assert_eq!(lines(read(&logs, of_main()).await), "bad five four");
    let only = |stream| LogOptions { stream, ..of_main() };
    assert_eq!(read(&logs, only(LogStream::Stdout)).await, "four\nfive\n");
    assert_eq!(read(&logs, only(LogStream::Stderr)).await, "bad\n");
    let previous = |options: LogOptions| LogOptions { previous: true, ..options };
    let tail = |lines| previous(LogOptions { tail_lines: Some(lines), ..of_main() });
    let rows =
        [(0, ""), (1, "three"), (2, "two\nthree"), (3, "one\ntwo\nthree"), (9, "one\ntwo\nthree")];
    for (count, expected) in rows {
        assert_eq!(read(&logs, tail(count)).await, expected, "the last {count}");
    }
    let limit = previous(LogOptions { limit_bytes: Some(5), ..of_main() });
    assert_eq!(read(&logs, limit).await, "one\nt");
    let timed = previous(LogOptions { timestamps: true, limit_bytes: Some(35), ..of_main() });
    assert_eq!(read(&logs, timed).await, "2027-01-15T08:00:00.000000000Z one\n");
    let since = |second: i64| {
        let since = Timestamp::from_second(1_800_000_000 + second).expect("a time");
        previous(LogOptions { since: Some(since), ..of_main() })
    };
    assert_eq!(read(&logs, since(0)).await, "one\ntwo\nthree");
    assert_eq!(read(&logs, since(1)).await, "");
    // After the Pod's end, and after a restart of the node, the files are all there is.
    logs.finish("u");
    let mut later = pod();
    let statuses = later.status.as_mut().and_then(|status| status.container_statuses.as_mut());
    let main = &mut statuses.expect("there are some")[0];
    main.restart_count = 1;
    main.state = Some(serde_json::from_value(json!({"running": {}})).expect("a state"));
    let found: Vec<Bytes> = logs.open(&later, &of_main()).expect("it has run").collect().await;
    assert_eq!(lines(String::from_utf8(found.concat()).expect("text")), "bad five four");
    assert_eq!(logs.tail(&PodRef::of(&later), "main", 0), "one\ntwo\nthree");
    let first = LogOptions { run: Some(0), ..of_main() };
    let found: Vec<Bytes> = logs.open(&later, &first).expect("it has run").collect().await;
    assert_eq!(found.concat(), b"one\ntwo\nthree");
    // The run before the one that a container waits for is the last one.
    let statuses = later.status.as_mut().and_then(|status| status.container_statuses.as_mut());
    let main = &mut statuses.expect("there are some")[0];
    let ended = json!({"terminated": {"exitCode": 1}});
    main.last_state = Some(serde_json::from_value(ended).expect("a state"));
    main.state = Some(serde_json::from_value(json!({"waiting": {}})).expect("a state"));
    let found = logs.open(&later, &previous(of_main())).expect("it has run");
    let found: Vec<Bytes> = found.collect().await;
    assert_eq!(lines(String::from_utf8(found.concat()).expect("text")), "bad five four");
    // One whose hook is under way has begun, although it is said to wait.
    let statuses = later.status.as_mut().and_then(|status| status.container_statuses.as_mut());
    statuses.expect("there are some")[0].container_id = Some("process://u.main.1".to_owned());
    let found = logs.open(&later, &previous(of_main())).expect("it has run");
    let found: Vec<Bytes> = found.collect().await;
    assert_eq!(found.concat(), b"one\ntwo\nthree");
    logs.kept().remove_all_but(|uid| uid == "u");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    logs.kept().remove_all_but(|_| false);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn the_log_of_a_pod_that_comes_later_is_not_taken_for_an_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    fs::create_dir(folder.path().join("ns_gone_old")).expect("a folder");
    let kept = logs.kept();
    write(&logs, 0, "new\n", "").await;
    kept.remove_all_but(|_| false);
    assert_eq!(read(&logs, of_main()).await, "new\n");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[tokio::test]
async fn what_has_not_run_has_no_log_and_what_said_nothing_has_an_empty_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    let why = logs.open(&pod(), &of_main()).err().expect("it has not run");
    assert!(why.contains("is waiting to start: ErrImage"), "{why}");
    let quiet = LogOptions { container: "quiet".to_owned(), ..LogOptions::default() };
    assert_eq!(read(&logs, quiet).await, "");
    write(&logs, 0, "", "").await;
    assert_eq!(read(&logs, LogOptions { follow: true, ..of_main() }).await, "");
    let why = logs.open(&pod(), &LogOptions { previous: true, ..of_main() }).err();
    assert!(why.expect("there is none").contains("previous terminated container"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "no file was made");
}

#[tokio::test]
async fn a_reader_follows_across_parts_and_misses_nothing_that_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let rotation = LogRotation { part_bytes: 20_000, parts: 1_000 };
    let logs = logs(folder.path(), rotation);
    let text: String = (0..20_000).map(|i| format!("line {i}\n")).collect();
    let (output, inlets) = pipes();
    let writer = logs.begin(&PodRef::of(&pod()), "main", 0, false);
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    let follow = LogOptions { follow: true, ..of_main() };
    let reading = logs.open(&pod(), &follow).expect("it runs").collect::<Vec<Bytes>>();
    let reading = tokio::spawn(reading);
    let written = text.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let mut file = fs::File::from(output.stdout);
        file.write_all(written.as_bytes()).expect("heard");
        drop(output.stderr);
    });
    writing.await.expect("written");
    pump.finish().await;
    let read = reading.await.expect("read").concat();
    assert!(read == text.as_bytes(), "{} of {} bytes", read.len(), text.len());
    let folder = folder.path().join("ns_p_u").join("main");
    assert!(parts_of(&folder, 0).len() > 5, "it was several parts");
    let tail = LogOptions { tail_lines: Some(5_000), ..of_main() };
    let last: String = (15_000..20_000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(self::read(&logs, tail).await, last, "from the end across parts");
}

#[tokio::test]
async fn output_without_end_takes_the_room_of_its_parts_and_leaves_others_theirs() {
    const MEGABYTES: usize = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let rotation = LogRotation { part_bytes: 1 << 20, parts: 3 };
    let logs = logs(folder.path(), rotation);
    let (output, inlets) = pipes();
    let writer = logs.begin(&PodRef::of(&pod()), "loud", 0, false);
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    let loud = tokio::task::spawn_blocking(move || {
        let mut file = fs::File::from(output.stdout);
        let block = format!("{}\n", "x".repeat(1023)).repeat(1024);
        for _ in 0..MEGABYTES {
            file.write_all(block.as_bytes()).expect("heard");
        }
    });
    // Beside it another container is heard at once.
    write(&logs, 0, "quiet\n", "").await;
    assert_eq!(read(&logs, of_main()).await, "quiet\n");
    loud.await.expect("written");
    pump.finish().await;
    let folder = folder.path().join("ns_p_u").join("loud");
    let sizes: Vec<u64> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().expect("it is there").len())
        .collect();
    assert!(sizes.len() == 3 && sizes.iter().all(|size| *size <= 1 << 20), "{sizes:?}");
}

/// A pump whose container has written this and ended, while another process holds its outputs.
fn held(logs: &Logs, container: &str, text: &str) -> (Pump, Stdio) {
    let (output, inlets) = pipes();
    rustix::io::write(&output.stdout, text.as_bytes()).expect("there is room for it");
    let writer = logs.begin(&PodRef::of(&pod()), container, 0, false);
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    (pump, output)
}

#[tokio::test(start_paused = true)]
async fn all_that_was_written_before_the_end_is_kept_whoever_holds_the_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    let (pump, _held) = held(&logs, "main", "one\ntwo\nEND");
    pump.finish().await;
    assert_eq!(read(&logs, of_main()).await, "one\ntwo\nEND");
}

#[tokio::test]
async fn who_still_writes_after_the_end_is_not_waited_for_without_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation { part_bytes: 1 << 40, parts: 1 });
    let (pump, held) = held(&logs, "main", "first\n");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writing = std::thread::spawn(move || {
        let mut file = fs::File::from(held.stdout);
        // Until nobody reads any more.
        while stopped.try_recv().is_err() && file.write_all(&[b'x'; 4096]).is_ok() {}
    });
    pump.finish().await;
    let first = LogOptions { limit_bytes: Some(6), ..of_main() };
    assert_eq!(read(&logs, first).await, "first\n");
    drop(stop);
    writing.join().expect("it has ended");
}

#[tokio::test]
async fn who_is_attached_hears_what_is_written_from_then_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    let (stdio, inlets, console) = Console::open(&Default::default(), None).expect("pipes");
    let writer = logs.begin(&PodRef::of(&pod()), "main", 0, false);
    let errors = console.attach(Wanted { stderr: true, ..Wanted::default() }).expect("attached");
    let all = Wanted { stdin: true, stdout: true, stderr: true, terminal: false };
    let all = console.attach(all).expect("attached");
    assert!(all.stdin.is_none(), "the container has no input");
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    rustix::io::write(&stdio.stdout, b"no line yet").expect("there is room for it");
    let mut all = all.output;
    // As it is written, not line by line as in the log.
    assert_eq!(all.next().await, Some(Piece::Stdout(Bytes::from_static(b"no line yet"))));
    rustix::io::write(&stdio.stderr, b"oh\n").expect("there is room for it");
    drop(stdio);
    pump.finish().await;
    let oh = Piece::Stderr(Bytes::from_static(b"oh\n"));
    let end = Piece::Ended(Ending::Code(0));
    assert_eq!(all.collect::<Vec<_>>().await, [oh.clone(), end.clone()]);
    assert_eq!(errors.output.collect::<Vec<_>>().await, [oh, end.clone()]);
    // Who comes too late hears that.
    let late = console.attach(Wanted { stdout: true, ..Wanted::default() }).expect("attached");
    assert_eq!(late.output.collect::<Vec<_>>().await, [end]);
}

#[tokio::test]
async fn who_is_attached_and_does_not_read_stops_the_container_but_not_its_end() {
    const BYTES: usize = 4 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation::default());
    let (stdio, inlets, console) = Console::open(&Default::default(), None).expect("pipes");
    let writer = logs.begin(&PodRef::of(&pod()), "main", 0, false);
    let session = console.attach(Wanted { stdout: true, ..Wanted::default() }).expect("attached");
    let pump = Pump::start(inlets, writer, logs.clock().clone());
    rustix::io::ioctl_fionbio(&stdio.stdout, true).expect("a pipe");
    // Until nothing moves any more: what is in the pipe, and what waits for who is attached.
    let (mut written, mut pauses) = (0, 0);
    while written < BYTES && pauses < 1_000 {
        match rustix::io::write(&stdio.stdout, &[b'x'; 1000]) {
            Ok(count) => (written, pauses) = (written + count, 0),
            Err(_) => {
                pauses += 1;
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
    }
    assert!(written < 1 << 20, "{written} bytes");
    drop(stdio);
    pump.finish().await;
    assert_eq!(read(&logs, of_main()).await.len(), written, "all of it is in the log");
    let heard: Vec<Piece> = session.output.collect().await;
    assert!(
        heard.len() < 10 && heard.last() == Some(&Piece::Ended(Ending::Code(0))),
        "{}",
        heard.len()
    );
}

/// How much parts of this size take of the text of `numbered`.
const SMALL: LogRotation = LogRotation { part_bytes: 20_000, parts: 2 };

fn numbered(lines: usize) -> String {
    (0..lines).map(|i| format!("line {i:020}\n")).collect()
}

/// A container that has begun, and its pump.
fn begun(logs: &Logs, run: u32) -> (Stdio, Pump) {
    begun_for(logs, run, false)
}

/// The same, with a reader who is to come.
fn begun_for(logs: &Logs, run: u32, is_awaited: bool) -> (Stdio, Pump) {
    let (output, inlets) = pipes();
    let writer = logs.begin(&PodRef::of(&pod()), "main", run, is_awaited);
    (output, Pump::start(inlets, writer, logs.clock().clone()))
}

/// It writes this from a thread of its own, so that time may pass meanwhile, and ends.
async fn end((output, pump): (Stdio, Pump), text: &str) {
    let text = text.to_owned();
    let (written, is_written) = tokio::sync::oneshot::channel();
    let writing = std::thread::spawn(move || {
        fs::File::from(output.stdout).write_all(text.as_bytes()).expect("heard");
        let _ = written.send(());
    });
    is_written.await.expect("written");
    writing.join().expect("it has ended");
    pump.finish().await;
}

fn parts_left(folder: &Path, run: u32) -> usize {
    parts_of(&folder.join("ns_p_u").join("main"), run).len()
}

#[tokio::test]
async fn a_part_stays_until_those_who_read_have_come_past_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), SMALL);
    let text = numbered(5_000);
    let container = begun(&logs, 0);
    let follow = LogOptions { follow: true, ..of_main() };
    // Both came in time, and read when all is written.
    let follower = logs.open(&pod(), &follow).expect("it runs");
    let reader = logs.open(&pod(), &of_main()).expect("it runs");
    let of_the_last = LogOptions { tail_lines: Some(4_000), ..of_main() };
    end(container, &text).await;
    assert!(parts_left(folder.path(), 0) > 10, "{}", parts_left(folder.path(), 0));
    let last: String = text.split_inclusive('\n').skip(1_000).collect();
    assert_eq!(self::read(&logs, of_the_last).await, last);
    for reader in [follower, reader] {
        let read = reader.collect::<Vec<Bytes>>().await.concat();
        assert!(read == text.as_bytes(), "{} of {} bytes", read.len(), text.len());
    }
    assert_eq!(parts_left(folder.path(), 0), 2, "what nobody needs any more is gone");
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_read_is_given_up_and_told_how_much_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), SMALL);
    let text = numbered(60_000);
    let is_timed = [false, true];
    let container = begun(&logs, 0);
    let readers = is_timed.map(|timestamps| {
        let options = LogOptions { follow: true, timestamps, ..of_main() };
        logs.open(&pod(), &options).expect("it runs")
    });
    end(container, &text).await;
    assert_eq!(parts_left(folder.path(), 0), 2);
    for (reader, is_timed) in readers.into_iter().zip(is_timed) {
        let read = reader.collect::<Vec<Bytes>>().await.concat();
        let read = String::from_utf8(read).expect("text");
        let (told, rest) = read.split_once('\n').expect("there are lines");
        let time = if is_timed { "2027-01-15T08:00:00.000000000Z " } else { "" };
        let told = told.strip_prefix(time).and_then(|told| told.strip_prefix("stint: "));
        let (bytes, why) = told.and_then(|told| told.split_once(' ')).expect("it is told");
        assert_eq!(why, "bytes are left out here, as they were not read in time");
        let missed: usize = bytes.parse().expect("a number");
        let rest = rest.replace(time, "");
        assert!(text[missed..] == rest, "{missed} and {} of {}", rest.len(), text.len());
    }
}

#[tokio::test]
async fn what_is_removed_is_read_to_its_end_and_then_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), LogRotation { part_bytes: 20_000, parts: 50 });
    let text = numbered(5_000);
    end(begun(&logs, 0), &text).await;
    let first = logs.open(&pod(), &of_main()).expect("it has run");
    end(begun(&logs, 1), &text).await;
    end(begun(&logs, 2), "second\n").await;
    assert!(parts_left(folder.path(), 0) > 5, "somebody reads it");
    assert!(first.collect::<Vec<Bytes>>().await.concat() == text.as_bytes());
    assert_eq!(parts_left(folder.path(), 0), 0);
    let second = LogOptions { run: Some(1), ..of_main() };
    let second = logs.open(&pod(), &second).expect("it has run");
    logs.remove(&PodRef::of(&pod()));
    assert_eq!(parts_left(folder.path(), 2), 0);
    assert!(second.collect::<Vec<Bytes>>().await.concat() == text.as_bytes());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn a_reader_who_is_awaited_may_come_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = logs(folder.path(), SMALL);
    let text = numbered(5_000);
    end(begun_for(&logs, 0, true), &text).await;
    end(begun_for(&logs, 1, true), "another\n").await;
    let tail = LogOptions { tail_lines: Some(1), previous: true, ..of_main() };
    assert_eq!(self::read(&logs, tail).await, "line 00000000000000004999\n");
    let whole = LogOptions { previous: true, ..of_main() };
    assert!(self::read(&logs, whole).await == text, "nobody else takes its place");
    assert_eq!(parts_left(folder.path(), 0), 2);
}
