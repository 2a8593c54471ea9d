//! A disk that is full: a small file system in memory, which only the server and its Pods have.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::home::{Home, as_everybody, is_root, job, marker};
use crate::kit::{Kubectl, Server, ended, eventually, marked};

/// Mounts the disk at the first argument and runs the rest, as the user of the second if there
/// is one.
const MOUNT: &str = "\
disk=$1 user=$2; shift 2
mount -t tmpfs -o size=4m,mode=777 disk \"$disk\" || exit 99
[ -n \"$user\" ] || exec \"$@\"
exec setpriv --reuid \"$user\" --regid \"$user\" --clear-groups --inh-caps=-all -- \"$@\"
";

/// What the operating system says of a full disk.
const NO_ROOM: &str = "No space left on device";

/// A run waits ten seconds for room, and some for its Pods.
const SOON: Duration = Duration::from_secs(40);

/// The beginning of something to be stored.
const LARGE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, ";

/// What the Pod writes while there is no room.
const LINE: &str = "a line that is long enough for a disk that has no room for many of them";

/// A program on a disk of 4 MiB at `disk`, in a mount namespace of its own.
fn on_a_small_disk(home: &Home, disk: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    // Whoever is not root has to be it first, in a namespace of users.
    command.args(if is_root() { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    command.args(["sh", "-c", MOUNT, "sh"]).arg(disk);
    command.arg(home.user().map_or(String::new(), |user| user.to_string()));
    command.arg(program);
    command.env("HOME", home.path("home")).env("TMPDIR", home.path("tmp"));
    command.current_dir(home.path("here")).stdin(Stdio::null());
    command
}

/// Fills a disk to its last byte with one file.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("ballast");
    let mut ballast = File::create(&path).expect("there is room");
    let filled = loop {
        if let Err(error) = ballast.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull);
    path
}

#[test]
fn a_server_on_a_full_disk_says_so_goes_on_reading_and_recovers() {
    as_everybody(|home| {
        let (disk, shared) = (home.folder("disk"), home.folder("shared"));
        let (data, kubeconfig) = (disk.join("data"), home.path("kubeconfig"));
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"];
        let mut command = on_a_small_disk(home, &disk, home.program());
        command.args(arguments);
        command.arg("--data-dir").arg(&data).arg("--kubeconfig").arg(&kubeconfig);
        command.stderr(File::create(home.path("said")).expect("it is ours"));
        let server = Server::launch(command, kubeconfig, tempfile::tempdir().expect("a folder"));
        let kubectl = Kubectl::new(&server);
        // Its view of the disk, from outside.
        let disk = PathBuf::from(format!("/proc/{}/root{}", server.pid(), disk.display()));
        // A Pod that runs when the disk fills up, and then writes more than there ever was room.
        let script = format!(
            "cd {}; touch up; until [ -e full ]; do sleep 0.05; done; \
             yes '{LINE}' | head -n 100000; touch written; \
             until [ -e room ]; do sleep 0.05; done; echo there is room",
            shared.display()
        );
        kubectl.give(&job(home, "talker", 1, "  backoffLimit: 0\n", &script), "create -f -");
        eventually("it runs", || shared.join("up").exists());
        let ballast = fill(&disk);
        fs::write(shared.join("full"), "").expect("it is ours");
        eventually("its output is lost, and it goes on", || shared.join("written").exists());
        // What is small may still find a place in what is begun.
        let large = format!("{LARGE}data: {{a: {}}}}}", "a".repeat(64 << 10));
        let refused = kubectl.fail(&large, "create -f -");
        let store = data.join("store");
        assert!(refused.contains(&format!("{}: {NO_ROOM}", store.display())), "{refused}");
        assert_eq!(kubectl.run("get jobs -o name"), "job.batch/talker\n");
        fs::remove_file(ballast).expect("it is there");
        fs::write(shared.join("room"), "").expect("it is ours");
        kubectl.run("wait --for=condition=complete job/talker --timeout=60s");
        let after = job(home, "after", 2, "  parallelism: 2\n", "echo after");
        kubectl.give(&after, "create -f -");
        kubectl.run("wait --for=condition=complete job/after --timeout=60s");
        assert_eq!(kubectl.run("logs -l job-name=after"), "after\nafter\n");
        // What is lost is lost in whole lines.
        let log = kubectl.run("logs job/talker");
        assert!(log.lines().all(|line| line == LINE || line == "there is room"));
        assert!(log.ends_with("there is room\n"), "{}", log.len());
        assert!(marked(&marker(home)).is_empty());
        assert!(server.stop().success());
        let said = fs::read_to_string(home.path("said")).expect("it is there");
        let times = |text: &str| said.lines().filter(|line| line.contains(text)).count();
        // Twice if something small found a place meanwhile.
        assert!((1..=3).contains(&times("nothing can be stored")), "{said}");
        assert_eq!(times("writes are stored again"), times("nothing can be stored"), "{said}");
        assert_eq!(times("output is lost"), 1, "{said}");
        assert!(times(NO_ROOM) < 30, "{said}");
    });
}

#[test]
fn a_run_on_a_full_disk_says_so_and_ends_and_goes_on_when_there_is_room() {
    as_everybody(|home| {
        let (disk, shared) = (home.folder("disk"), home.folder("shared"));
        // The first of them fills the disk.
        let script = format!(
            "cd {}; echo $JOB_COMPLETION_INDEX >> begun; [ -e room ] && exit 0; \
         dd if=/dev/zero of={}/ballast bs=4096 2>/dev/null; exit 0",
            shared.display(),
            disk.display()
        );
        let manifest = job(home, "filler", 4, "  parallelism: 1\n", &script);
        let file = home.file("job.yaml", &manifest);
        // Both on the same disk: the second one finds some room.
        let twice = "program=$1 disk=$2 shared=$3 file=$4
        \"$program\" run --data-dir $disk/data $file; echo $?
        rm $disk/ballast; touch $shared/room
        \"$program\" run --data-dir $disk/data $file; echo $?";
        let mut command = on_a_small_disk(home, &disk, "sh");
        command.args(["-c", twice, "sh"]).arg(home.program()).args([&disk, &shared, &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let begun = Instant::now();
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.stdout, "3\n0\n", "{ended:?}");
        assert!(begun.elapsed() < SOON, "{:?}: {ended:?}", begun.elapsed());
        let said = format!(
            "error: nothing could be stored in {disk}/data for 10 seconds: cannot write: {disk}/data/store: \
             {NO_ROOM}",
            disk = disk.display()
        );
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("nothing can be stored until there is room"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("completed  4 of 4: 0-3\n"), "{}", ended.stderr);
        assert!(marked(&marker(home)).is_empty());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

#[test]
fn nothing_begins_on_a_disk_that_is_full_already() {
    as_everybody(|home| {
        let disk = home.folder("disk");
        let file = home.file("job.yaml", &job(home, "never", 1, "", "true"));
        let full = "program=$1 disk=$2 file=$3
            dd if=/dev/zero of=$disk/ballast bs=4096 2>/dev/null
            \"$program\" run --data-dir $disk/data $file; echo $?
            \"$program\" serve --listen 127.0.0.1:0 --data-dir $disk/other; echo $?";
        let mut command = on_a_small_disk(home, &disk, "sh");
        command.args(["-c", full, "sh"]).arg(home.program()).args([&disk, &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.stdout, "3\n3\n", "{ended:?}");
        assert_eq!(ended.stderr.matches("error: ").count(), 2, "{}", ended.stderr);
        assert_eq!(ended.stderr.matches(NO_ROOM).count(), 2, "{}", ended.stderr);
        for folder in ["data", "other"] {
            let said = format!("error: cannot write in {}/{folder}: {NO_ROOM}", disk.display());
            assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        }
        let remedy = "choose another place with --data-dir";
        assert_eq!(ended.stderr.matches(remedy).count(), 2, "{}", ended.stderr);
    });
}

#[test]
fn a_run_without_room_for_temporary_files_says_where_at_once() {
    as_everybody(|home| {
        let disk = home.folder("disk");
        let file = home.file("job.yaml", &job(home, "never", 1, "", "true"));
        let full = "program=$1 disk=$2 file=$3
            mkdir $disk/tmp; dd if=/dev/zero of=$disk/ballast bs=4096 2>/dev/null
            TMPDIR=$disk/tmp \"$program\" run --timeout 3s $file; echo $?; ls $disk/tmp";
        let mut command = on_a_small_disk(home, &disk, "sh");
        command.args(["-c", full, "sh"]).arg(home.program()).args([&disk, &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.stdout, "3\n", "nothing is left, either: {ended:?}");
        let said = format!("error: cannot write in {}/tmp/stint-", disk.display());
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        assert!(ended.stderr.contains(NO_ROOM), "{}", ended.stderr);
        assert!(ended.stderr.contains("choose another place with TMPDIR"), "{}", ended.stderr);
    });
}

#[test]
fn a_run_that_cannot_keep_its_jobs_does_not_blame_their_manifest() {
    as_everybody(|home| {
        let disk = home.folder("disk");
        // Larger than what is left of the disk.
        let large = format!("{LARGE}data: {{a: {}}}}}\n---\n", "a".repeat(900 << 10));
        let manifest = large + &job(home, "never", 1, "", "true");
        let file = home.file("job.yaml", &manifest);
        let full = "program=$1 disk=$2 file=$3
            dd if=/dev/zero of=$disk/ballast bs=1024 count=3400 2>/dev/null
            \"$program\" run --data-dir $disk/data $file; echo $?";
        let mut command = on_a_small_disk(home, &disk, "sh");
        command.args(["-c", full, "sh"]).arg(home.program()).args([&disk, &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.stdout, "3\n", "{ended:?}");
        let said = format!("error: cannot keep Jobs in {}/data: ", disk.display());
        let line = ended.stderr.lines().find(|line| line.starts_with(&said));
        let is_told = |line: &str| line.contains(NO_ROOM) && line.contains("--data-dir");
        assert!(line.is_some_and(is_told), "{}", ended.stderr);
        assert!(!ended.stderr.contains("job.yaml"), "{}", ended.stderr);
    });
}

#[test]
fn a_run_that_has_no_room_for_its_pods_says_what_they_wait_for() {
    as_everybody(|home| {
        let disk = home.folder("disk");
        // The first fills the disk as long as it runs; the second fails, and has no room to be
        // tried again: files that it has changed are not handed on to the next try.
        let script = format!(
            "[ $JOB_COMPLETION_INDEX = 0 ] || {{ chmod 600 /dev/termination-log; exit 1; }}
             while :; do cat /dev/zero >> {}/ballast; sleep 0.05; done 2>/dev/null",
            disk.display()
        );
        let file = home.file("job.yaml", &job(home, "never", 2, "  parallelism: 2\n", &script));
        let full = "program=$1 disk=$2 file=$3; mkdir $disk/tmp
            TMPDIR=$disk/tmp \"$program\" run --timeout 10s $file; echo $?";
        let mut command = on_a_small_disk(home, &disk, "sh");
        command.args(["-c", full, "sh"]).arg(home.program()).args([&disk, &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.stdout, "124\n", "{ended:?}");
        let told = ended.stderr.lines().find(|line| line.starts_with("never: index 1 waits: "));
        assert!(told.is_some_and(|line| line.contains(NO_ROOM)), "{}", ended.stderr);
    });
}

#[test]
fn a_run_whose_output_has_no_room_says_so_and_ends_well() {
    as_everybody(|home| {
        let disk = home.folder("disk");
        let script = format!("yes '{LINE}' | head -n 100000");
        let file = home.file("job.yaml", &job(home, "talker", 1, "", &script));
        let mut command = on_a_small_disk(home, &disk, home.program());
        command.arg("run").arg(file).env("TMPDIR", &disk);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(command.spawn().expect("it starts"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said: Vec<&str> = ended.stderr.lines().filter(|it| it.contains(NO_ROOM)).collect();
        assert!(matches!(said[..], [line] if line.contains("output is lost")), "{}", ended.stderr);
    });
}
