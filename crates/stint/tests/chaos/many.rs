//! Many short Pods. Ten thousand of them are measured in docs/benchmarks.md.

use std::fs;

use crate::home::{as_everybody, job, marker};
use crate::kit::{ended, eventually, marked, peak_bytes, zombies};

/// How many are enough to see what is not given back, and few enough for a debug build.
const MANY: u32 = 300;

/// The same without a client who asks for all of them at the end.
const MANY_OF_A_RUN: u32 = 500;

/// How many are enough to see that another user's are treated alike.
const SOME: u32 = 60;

/// In a debug build 60 of them take 57 MB, 500 take 70 MB and 1,000 take 86 MB: some 30 KB each. Three
/// times that would be a leak.
const MAX_BYTES: u64 = 110 << 20;

#[test]
fn many_short_pods_are_counted_exactly_and_leave_nothing_behind() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        let completions = if home.user().is_none() { MANY } else { SOME };
        let manifest = job(home, "many", completions, "  parallelism: 50\n", "exit 0");
        kubectl.give(&manifest, "create -f -");
        kubectl.run("wait --for=condition=complete job/many --timeout=240s");
        let status = kubectl.json("get job many")["status"].clone();
        assert_eq!(status["succeeded"], completions, "{status}");
        assert_eq!(status["completedIndexes"], format!("0-{}", completions - 1), "{status}");
        assert!(status["failed"].is_null() && status["active"].is_null(), "{status}");
        assert!(status["uncountedTerminatedPods"].get("succeeded").is_none(), "{status}");
        let pods = kubectl.json("get pods -l job-name=many");
        let pods = pods["items"].as_array().expect("a list");
        assert_eq!(pods.len(), completions as usize);
        assert!(pods.iter().all(|pod| pod["metadata"]["finalizers"].is_null()));
        assert!(marked(&marker(home)).is_empty());
        eventually("nobody has ended unnoticed", || zombies(server.pid()).is_empty());
        let peak = peak_bytes(server.pid()).expect("it runs");
        assert!(peak < MAX_BYTES, "{peak} bytes");
        assert!(server.stop().success());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

#[test]
fn a_run_of_many_short_pods_counts_them_exactly_and_leaves_nothing_behind() {
    as_everybody(|home| {
        let completions = if home.user().is_none() { MANY_OF_A_RUN } else { SOME };
        let shared = home.folder("shared");
        // The first is there until all others have been, so that somebody can look around.
        let script = format!(
            "echo >> {0}/begun; [ $JOB_COMPLETION_INDEX != 0 ] || \
             until [ -e {0}/gate ]; do sleep 0.1; done",
            shared.display()
        );
        let manifest = job(home, "many", completions, "  parallelism: 50\n", &script);
        let file = home.file("job.yaml", &manifest);
        let mut command = home.run_command(&["-o", "json"]);
        let child = command.arg(file).spawn().expect("the binary starts");
        // However slow the machine is, some of them begin all the time.
        for count in (0..=completions).rev().step_by(20).collect::<Vec<_>>().into_iter().rev() {
            eventually("more have begun", || {
                let begun = fs::read_to_string(shared.join("begun")).unwrap_or_default();
                begun.len() >= count as usize
            });
        }
        eventually("only the first is left", || marked(&marker(home)).len() <= 2);
        eventually("nobody has ended unnoticed", || zombies(child.id()).is_empty());
        let peak = peak_bytes(child.id()).expect("it runs");
        assert!(peak < MAX_BYTES, "{peak} bytes");
        fs::write(shared.join("gate"), "").expect("it is ours");
        let ended = ended(child);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let status = &ended.json()["status"];
        assert_eq!(status["succeeded"], completions, "{status}");
        assert_eq!(status["completedIndexes"], format!("0-{}", completions - 1), "{status}");
        assert!(status["failed"].is_null() && status["active"].is_null(), "{status}");
        let said = format!("  Pods       {completions} succeeded, 0 failed\n");
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        let begun = fs::read_to_string(shared.join("begun")).expect("it is there");
        assert_eq!(begun.len(), completions as usize, "none ran twice");
        assert!(marked(&marker(home)).is_empty());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}
