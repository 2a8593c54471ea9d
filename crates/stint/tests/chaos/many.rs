//! Many short Pods. Ten thousand of them are measured in docs/benchmarks.md.

use crate::home::{as_everybody, job, marker};
use crate::kit::{eventually, marked, peak_bytes, zombies};

/// How many are enough to see what is not given back, and few enough for a debug build.
const MANY: u32 = 300;

/// How many are enough to see that another user's are treated alike.
const SOME: u32 = 60;

/// A thousand Pods take some 70 MB.
const MAX_BYTES: u64 = 300 << 20;

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
fn a_run_of_many_short_pods_leaves_nothing_behind() {
    as_everybody(|home| {
        let manifest = job(home, "many", SOME, "  parallelism: 50\n", "exit 0");
        let ended = home.run(&manifest, &["-o", "json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.json()["status"]["succeeded"], SOME);
        assert!(marked(&marker(home)).is_empty());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}
