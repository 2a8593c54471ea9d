//! A server that is killed again and again in the middle of a Job.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::home::{Home, as_everybody, is_root, job, marker};
use crate::kit::{eventually, marked};

const COMPLETIONS: usize = 24;

/// Each index fails once by itself, on its first attempt that gets so far; then it succeeds, and
/// writes that down. The last one waits until the kills are over. Whoever runs beside another
/// attempt at the same index finds its lock taken, which the kernel gives back with the process.
const SCRIPT: &str = "\
cd /shared; i=$JOB_COMPLETION_INDEX
exec 9>lock-$i; flock -n 9 || echo $i >> overlaps
sleep 0.0$((i % 8))
mkdir failed-$i 2>/dev/null && exit 1
[ $i != 23 ] || until [ -e gate ]; do sleep 0.02; done
echo $i >> succeeded
";

#[test]
fn a_job_survives_fifty_kills_of_its_server() {
    kill_again_and_again(&Home::mine(), 50);
}

#[test]
fn an_ordinary_users_job_survives_kills_of_its_server() {
    // Whoever is no ordinary user is in the other test already.
    if is_root() {
        kill_again_and_again(&Home::of_an_ordinary_user(), 15);
    }
}

/// Whoever is killed by force can clear nothing up.
#[test]
fn a_run_that_is_killed_leaves_no_process_and_the_next_one_clears_up() {
    as_everybody(|home| {
        let up = home.folder("shared");
        let script = format!("touch {}/$JOB_COMPLETION_INDEX; sleep 1000", up.display());
        let file = home.file("long.yaml", &job(home, "long", 3, "  parallelism: 3\n", &script));
        let mut run = home.run_command(&[]).arg(file).spawn().expect("it starts");
        let begun = || fs::read_dir(&up).expect("it is there").count();
        eventually("its Pods run", || begun() == 3);
        run.kill().expect("it was started");
        run.wait().expect("it has ended");
        eventually("nobody is left", || marked(&marker(home)).is_empty());
        let left = home.strays();
        assert_eq!(left.len(), 1, "{left:?}");
        // What was made within the last minute may be about to be used.
        let lock = fs::File::options().write(true).open(left[0].join("stint.lock"));
        let long_ago = SystemTime::now() - Duration::from_secs(120);
        lock.expect("it is there").set_modified(long_ago).expect("it can be set");
        let next = home.run(&job(home, "short", 1, "", "sleep 1"), &[]);
        assert_eq!(next.code, Some(0), "{next:?}");
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

fn kill_again_and_again(home: &Home, kills: u32) {
    let mut random = Random::new();
    let shared = home.folder("shared");
    let (server, kubectl) = home.server();
    kubectl.give(&manifest(home, &shared.display().to_string()), "create -f -");
    server.kill();
    for _ in 0..kills {
        // What is random is the moment. One in four is killed before it serves.
        let moment = Duration::from_micros(random.below(400_000));
        if random.below(4) == 0 {
            let mut child = home.serve(&[]).stdout(Stdio::null()).spawn().expect("it starts");
            thread::sleep(moment / 2);
            child.kill().expect("it was started");
            child.wait().expect("it has ended");
        } else {
            let (server, _) = home.server();
            thread::sleep(moment);
            server.kill();
        }
    }
    let (server, kubectl) = home.server();
    fs::write(shared.join("gate"), "").expect("it is ours");
    kubectl.run("wait --for=condition=complete job/killed --timeout=240s");
    let status = kubectl.json("get job killed")["status"].clone();
    assert_eq!(status["succeeded"], COMPLETIONS, "{status}");
    assert_eq!(status["completedIndexes"], format!("0-{}", COMPLETIONS - 1), "{status}");
    assert_eq!(status["failedIndexes"], "", "{status}");
    assert!(status["failed"].as_u64().unwrap_or(0) <= COMPLETIONS as u64, "{status}");
    assert!(!shared.join("overlaps").exists(), "two Pods of an index at once");
    let succeeded = fs::read_to_string(shared.join("succeeded")).expect("some have");
    let succeeded: BTreeSet<usize> =
        succeeded.lines().map(|line| line.parse().expect("an index")).collect();
    assert!(succeeded.into_iter().eq(0..COMPLETIONS), "what is counted has happened");
    let pods = kubectl.json("get pods -l job-name=killed");
    let held = |pod: &&Value| !pod["metadata"]["finalizers"].is_null();
    let pods = pods["items"].as_array().expect("a list");
    assert_eq!(pods.iter().filter(held).count(), 0, "{pods:?}");
    let is_alive = |pod: &&Value| pod["status"]["phase"] == "Running";
    assert_eq!(pods.iter().filter(is_alive).count(), 0, "{pods:?}");
    eventually("nobody is left", || marked(&marker(home)).is_empty());
    assert!(server.stop().success());
    assert!(home.strays().is_empty(), "{:?}", home.strays());
}

/// A disruption is no failure: an index that failed by itself more than once has failed.
fn manifest(home: &Home, shared: &str) -> String {
    let more = "  parallelism: 4\n  backoffLimitPerIndex: 1\n  podFailurePolicy:\n    rules:\n    \
                - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}\n";
    let text = job(home, "killed", COMPLETIONS as u32, more, SCRIPT);
    format!(
        "{text}        volumeMounts: [{{name: shared, mountPath: /shared}}]\n      \
         volumes: [{{name: shared, hostPath: {{path: {shared}}}}}]\n"
    )
}

/// Numbers from a seed (splitmix64). `STINT_CHAOS_SEED` plays the same moments again, as far as
/// the machine does.
struct Random {
    state: u64,
}

impl Random {
    fn new() -> Self {
        let given = std::env::var("STINT_CHAOS_SEED").ok();
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let state = given.map_or_else(
            || since_epoch.expect("it is later than 1970").as_nanos() as u64,
            |seed| seed.parse().expect("STINT_CHAOS_SEED is a number"),
        );
        eprintln!("STINT_CHAOS_SEED={state}");
        Random { state }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
