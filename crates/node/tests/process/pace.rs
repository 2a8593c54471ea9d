//! How many one-container Pods a second go through the runtime: sandbox, container, wait, close.
//! Not a test of a number, which depends on the machine; `cargo test --release -p stint-node
//! --test process -- --ignored --nocapture pace` prints it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use stint_node::{Ending, Isolation, Mount, Runtime};

use crate::kit::{Node, block_on, container_spec, mount, sandbox_spec, settings, start_spec};

/// How many are underway at a time.
const AT_A_TIME: usize = 32;

async fn run_pods(node: Arc<Node>, count: usize, mounts: Vec<Mount>) -> f64 {
    let next = Arc::new(AtomicUsize::new(0));
    let before = Instant::now();
    let workers: Vec<_> = (0..AT_A_TIME)
        .map(|_| {
            let (node, next, mounts) = (node.clone(), next.clone(), mounts.clone());
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    let mut spec = sandbox_spec();
                    spec.hostname = Some("host".into());
                    let sandbox = node.runtime.make_sandbox(spec).await.unwrap();
                    let mut spec = container_spec(&["/bin/true"]);
                    spec.mounts = mounts.clone();
                    let started = start_spec(&*sandbox, spec).await.unwrap();
                    assert_eq!(started.container.wait().await.ending, Ending::Code(0));
                    sandbox.close().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    count as f64 / before.elapsed().as_secs_f64()
}

#[test]
fn many_pods_at_a_time_all_end_well() {
    for setting in settings() {
        block_on(async {
            let node = Arc::new(Node::start(setting).await);
            run_pods(node.clone(), 300, vec![]).await;
            Arc::into_inner(node).expect("all workers are done").stop().await;
        });
    }
}

#[test]
#[ignore = "measures"]
fn pace() {
    for setting in settings() {
        block_on(async {
            let node = Arc::new(Node::start(setting).await);
            let rate = run_pods(node.clone(), 5000, vec![]).await;
            println!("{setting:?}: {rate:.0} Pods a second");
            if setting.isolation != Isolation::None {
                let volume = node.volume("volume");
                let file = node.file("file", "");
                for (name, mounts) in [
                    ("/etc/hosts", vec![mount(&file, "/etc/hosts")]),
                    ("/data", vec![mount(&volume, "/data-of-a-test")]),
                    ("/dev/termination-log", vec![mount(&file, "/dev/termination-log")]),
                ] {
                    let rate = run_pods(node.clone(), 3000, mounts).await;
                    println!("{setting:?}, mounting {name}: {rate:.0} Pods a second");
                }
            }
            Arc::into_inner(node).expect("all workers are done").stop().await;
        });
    }
}
