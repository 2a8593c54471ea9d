//! Standard streams that are closed, or that nobody reads.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, as_everybody, job};
use crate::kit::{Kubectl, Server, ended, eventually, indexed};

/// Runs a command with some of its streams closed, which only a shell can do.
fn with_streams(home: &Home, streams: &str, arguments: &[&str]) -> Command {
    let mut shell = home.command("sh");
    shell.arg("-c").arg(format!("exec \"$0\" \"$@\" {streams}")).arg(home.program());
    shell.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

#[test]
fn runs_go_well_without_standard_streams() {
    as_everybody(|home| {
        // What a Pod reads and writes is its own, whatever stint was given.
        let script = "cat; echo out; echo err >&2; ls /proc/self/fd | wc -l > /shared/count; \
                      readlink /proc/self/fd/0 > /shared/input";
        let shared = home.folder("shared");
        let manifest = indexed("closed", 1, "", script)
            + &format!(
                "        volumeMounts: [{{name: shared, mountPath: /shared}}]\n      \
                 volumes: [{{name: shared, hostPath: {{path: {}}}}}]\n",
                shared.display()
            );
        let file = home.file("job.yaml", &manifest);
        let file = file.to_str().expect("UTF-8");
        for streams in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "<&- >&-", "> /dev/full"] {
            let data = home.path("run-data");
            let data = data.to_str().expect("UTF-8");
            let arguments = ["run", "--logs", "--data-dir", data, file];
            let ended = ended(with_streams(home, streams, &arguments).spawn().expect("it starts"));
            // Output that was asked for and is lost is the one thing that goes wrong.
            let code = if streams == "> /dev/full" { 3 } else { 0 };
            assert_eq!(ended.code, Some(code), "{streams}: {ended:?}");
            if streams == "<&-" {
                let mut lines = ended.lines();
                lines.sort_unstable();
                assert_eq!(lines, ["[closed/0] err", "[closed/0] out"]);
            }
            let read = |name: &str| fs::read_to_string(shared.join(name)).expect("it was written");
            assert_eq!(read("input").trim(), "/dev/null", "{streams}");
            // Three, and the folder that is listed.
            assert_eq!(read("count").trim(), "4", "{streams}");
            assert_eq!(damaged(&home.path("run-data")), None, "{streams}");
            fs::remove_dir_all(home.path("run-data")).expect("it is there");
        }
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

/// A file of the data folder with something in it that was meant for a stream.
fn damaged(folder: &std::path::Path) -> Option<String> {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is"));
    entries.into_iter().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return if path.ends_with("logs") { None } else { damaged(&path) };
        }
        let text = String::from_utf8_lossy(&fs::read(&path).expect("it can be read")).into_owned();
        let is_damaged = text.contains("Complete in") || text.contains("[closed/0]");
        is_damaged.then(|| path.display().to_string())
    })
}

#[test]
fn a_reader_that_has_gone_ends_no_run() {
    as_everybody(|home| {
        let script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done";
        let file = home.file("job.yaml", &job(home, "unread", 3, "  parallelism: 3\n", script));
        let mut command = home.run_command(&["--logs"]);
        let mut run = command.arg(file).spawn().expect("it starts");
        drop((run.stdout.take(), run.stderr.take()));
        // What SIGPIPE would have made of it, but for the Job, which has come to its end.
        assert_eq!(run.wait().expect("it ends").code(), Some(141));
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

/// Far fewer than the Pods would need that are to run at once.
#[test]
fn what_pods_print_is_kept_if_descriptors_are_short() {
    as_everybody(|home| {
        // All that there is room for are there when the first of them prints.
        let script = "sleep 1; echo $JOB_COMPLETION_INDEX; sleep 1";
        let file = home.file("job.yaml", &job(home, "short", 80, "  parallelism: 80\n", script));
        let mut shell = home.command("sh");
        shell.args(["-c", "ulimit -n 120; exec \"$0\" run --logs --timeout 120s \"$1\""]);
        shell.arg(home.program()).arg(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = ended(shell.spawn().expect("it starts"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("Too many open files"), "they were not short: {ended:?}");
        let mut lines = ended.lines();
        lines.sort_unstable();
        let mut expected: Vec<String> = (0..80).map(|it| format!("[short/{it}] {it}")).collect();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{}", ended.stderr);
    });
}

#[test]
fn a_server_needs_no_standard_streams() {
    as_everybody(|home| {
        let data = home.path("data");
        let data = data.to_str().expect("UTF-8");
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data];
        let mut server =
            with_streams(home, "<&- >&- 2>&-", &serve).spawn().expect("the binary starts");
        let kubeconfig = home.path("data/kubeconfig");
        eventually("it serves", || kubeconfig.exists());
        let kubectl = Kubectl::of(&kubeconfig, &home.path("home"));
        kubectl.give(&job(home, "quiet", 2, "  parallelism: 2\n", "echo said"), "create -f -");
        kubectl.run("wait --for=condition=complete job/quiet --timeout=60s");
        assert_eq!(kubectl.run("logs -l job-name=quiet"), "said\nsaid\n");
        kill_process(Pid::from_child(&server), Signal::TERM).expect("it runs");
        assert!(server.wait().expect("it ends").success());
        // Nothing was written where it does not belong: the store is whole.
        let (server, kubectl) = home.server();
        assert_eq!(kubectl.run("get job quiet -o jsonpath={.status.succeeded}"), "2");
        assert!(Server::stop(server).success());
    });
}
