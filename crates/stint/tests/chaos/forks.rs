//! A Pod that makes more and more processes.

use std::time::{Duration, Instant};

use crate::home::{as_everybody, job, marker};
use crate::kit::{eventually, marked, zombies};

/// Each doubles itself eight times over: 2^8 that sleep at last, half of them without a parent.
const SCRIPT: &str = "\
bomb() { if [ $1 = 0 ]; then sleep 3600; else bomb $(($1 - 1)) & bomb $(($1 - 1)); fi; }
trap '' TERM; bomb 8
";

const SLEEPERS: usize = 256;

/// Everything else goes on meanwhile; a debug build on a busy machine is not quick.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_pod_that_multiplies_ends_as_a_whole_and_disturbs_nobody() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        kubectl.give(&job(home, "bomb", 1, "  backoffLimit: 0\n", SCRIPT), "create -f -");
        eventually("all of them are there", || marked(&marker(home)).len() >= SLEEPERS);
        let begun = Instant::now();
        let beside = job(home, "beside", 2, "  parallelism: 2\n", "exit 0");
        kubectl.give(&beside, "create -f -");
        kubectl.run("wait --for=condition=complete job/beside --timeout=60s");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        kubectl.run("delete job bomb --cascade=foreground --timeout=60s");
        assert!(marked(&marker(home)).is_empty());
        eventually("nobody has ended unnoticed", || zombies(server.pid()).is_empty());
        assert!(server.stop().success());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}
