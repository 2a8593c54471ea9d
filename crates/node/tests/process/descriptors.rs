//! The limit on descriptors: the node has as many as it may have, containers what it was started
//! with, and where that is not enough it says so.

use std::process::{Command, Output};

use crate::kit::{Node, block_on, settings, start, start_with};

/// More than the limits below leave room for.
const CONTAINERS: usize = 80;

/// Runs a test of this file in a process of its own, under a limit.
fn run(test: &str, limit: &str) -> Output {
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("descriptors::{test}"), "--ignored", "--nocapture"])
        .output()
        .unwrap()
}

#[test]
fn a_node_may_have_more_descriptors_than_it_was_started_with_and_containers_may_not() {
    let output = run("more_containers_than_the_limit_allows", "-Sn 64");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("all of them run"), "{output:?}");
}

#[test]
#[ignore = "run by another, in a process of its own with a low limit"]
fn more_containers_than_the_limit_allows() {
    stint_node::raise_descriptor_limit();
    block_on(async {
        let node = Node::start(settings()[0]).await;
        let sandbox = node.sandbox().await;
        let mut running = Vec::new();
        for _ in 0..CONTAINERS {
            let mut started = start(&*sandbox, "ulimit -Sn; exec sleep 1000").await;
            assert_eq!(started.line().await, "64");
            running.push(started);
        }
        println!("all of them run");
        sandbox.close().await;
        node.stop().await;
    });
}

#[test]
fn where_the_limit_cannot_be_raised_the_remedy_is_named() {
    let output = run("fewer_containers_than_wanted", "-n 64");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("it was refused"), "{output:?}");
}

#[test]
#[ignore = "run by another, in a process of its own with a low limit"]
fn fewer_containers_than_wanted() {
    stint_node::raise_descriptor_limit();
    block_on(async {
        let node = Node::start(settings()[0]).await;
        let sandbox = node.sandbox().await;
        let mut running = Vec::new();
        let refused = loop {
            assert!(running.len() < CONTAINERS, "there is no room for so many");
            match start_with(&*sandbox, "exec sleep 1000", |_| {}).await {
                Ok(started) => running.push(started),
                Err(error) => break error.to_string(),
            }
        };
        assert!(refused.contains("ulimit -n") && refused.contains("64 descriptors"), "{refused}");
        println!("it was refused");
        drop(running);
        sandbox.close().await;
        node.stop().await;
    });
}
