//! What containers write.

use futures_util::StreamExt;
use serde_json::json;
use stint_node::{LogOptions, Node, Options};

use crate::cluster::{Cluster, main, phase, status_of};

async fn read(node: &Node, cluster: &Cluster, name: &str, options: LogOptions) -> String {
    let pod = cluster.find(name).await.expect("it is there");
    let options = LogOptions { container: "main".to_owned(), ..options };
    let pieces: Vec<_> = node.logs().open(&pod, &options).expect("it has run").collect().await;
    String::from_utf8(pieces.concat()).expect("text")
}

#[tokio::test]
async fn logs_can_be_read_while_a_container_runs_and_after() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    cluster.script("p", "say one say two sleep 0.2 say three exit 0").await;
    // On a busy machine it may be over before anybody has looked.
    cluster.wait("p", "has begun", |pod| matches!(phase(pod), "Running" | "Succeeded")).await;
    let follow = LogOptions { follow: true, ..LogOptions::default() };
    assert_eq!(read(&node, &cluster, "p", follow).await, "one\ntwo\nthree\n");
    cluster.wait_phase("p", "Succeeded").await;
    let tail = LogOptions { tail_lines: Some(1), ..LogOptions::default() };
    assert_eq!(read(&node, &cluster, "p", tail).await, "three\n");
    cluster.delete("p", None).await;
    cluster.wait_gone("p").await;
    let folder = cluster.folder.path().join("logs");
    while std::fs::read_dir(&folder).expect("a folder").count() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_last_that_were_stopped_leave_their_logs_and_nobody_else_does() {
    let cluster = Cluster::new().await;
    let options = Options { stopped_logs: 2, ..cluster.options() };
    let _node = cluster.start_with(options);
    let stopped = ["stopped-0", "stopped-1", "stopped-2"];
    for name in stopped {
        cluster.script(name, "say one sleep 3600 exit 0").await;
    }
    cluster.script("done", "say two exit 0").await;
    cluster.script("failed", "say three exit 1").await;
    let folder = cluster.folder.path().join("logs");
    let logs = || {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect::<Vec<String>>()
    };
    for name in stopped {
        cluster.wait_phase(name, "Running").await;
    }
    cluster.wait_phase("done", "Succeeded").await;
    cluster.wait_phase("failed", "Failed").await;
    for name in ["done", "failed"] {
        cluster.delete(name, None).await;
        cluster.wait_gone(name).await;
    }
    let is_others = |name: &String| !name.contains("_stopped-");
    let began = std::time::Instant::now();
    while logs().iter().any(is_others) {
        assert!(began.elapsed().as_secs() < 60, "{:?}", logs());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for name in stopped {
        cluster.delete(name, None).await;
        cluster.wait_gone(name).await;
    }
    while logs().len() > 2 {
        assert!(began.elapsed().as_secs() < 60, "{:?}", logs());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let mut left = logs();
    left.sort();
    let is_of = |log: &String, pod: &str| log.contains(&format!("_{pod}_"));
    assert!(left.len() == 2, "{left:?}");
    assert!(is_of(&left[0], "stopped-1") && is_of(&left[1], "stopped-2"), "{left:?}");
}

#[tokio::test]
async fn the_log_of_the_run_before_can_be_read() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main("say hello exit 1")]});
    cluster.create("p", spec).await;
    cluster
        .wait("p", "has run twice", |pod| {
            pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some())
                && status_of(pod, "main").restart_count == 1
        })
        .await;
    let previous = LogOptions { previous: true, ..LogOptions::default() };
    assert_eq!(read(&node, &cluster, "p", previous).await, "hello\n");
}

#[tokio::test]
async fn a_container_that_fails_may_leave_its_last_words() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("say goodbye exit 1");
    container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    cluster.create("p", json!({"containers": [container]})).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    let end = status_of(&pod, "main").state.clone().and_then(|it| it.terminated);
    assert_eq!(end.and_then(|it| it.message).as_deref(), Some("goodbye\n"));
}
