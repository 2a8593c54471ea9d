//! Sixteen clients that do everything at once. Here for as long as a test may take; longer with
//! `STINT_LOAD_SECONDS=60`, which also tells what it came to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;

use crate::reach::{config_map, config_maps, over_the_wire};

const CLIENTS: u64 = 16;

#[test]
fn sixteen_clients_at_once_get_no_error_that_is_not_theirs() {
    let seconds = std::env::var("STINT_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(2, |text| text.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let requests = Arc::new(AtomicU64::new(0));
    let counted = requests.clone();
    // A window that is full soon, so that what grows afterwards is a leak.
    let store = stint_store::Options { window_changes: 2_000, ..stint_store::Options::default() };
    runtime.block_on(over_the_wire(store, |client| async move {
        let until = Instant::now() + Duration::from_secs(seconds);
        let half = Instant::now() + Duration::from_secs(seconds) / 2;
        let clients = (0..CLIENTS)
            .map(|number| tokio::spawn(live(number, client.clone(), until, counted.clone())));
        let clients: Vec<_> = clients.collect();
        tokio::time::sleep_until(half.into()).await;
        let before = resident_bytes();
        for client in clients {
            client.await.expect("it gets no error");
        }
        let after = resident_bytes();
        println!(
            "{seconds} s: {} requests, {} MB resident at half time, {} MB at the end",
            counted.load(Ordering::Relaxed),
            before / 1_000_000,
            after / 1_000_000
        );
        // In a short run the heap is still warming up.
        let slack = 64 * 1_000_000;
        assert!(after < before + slack, "memory grew from {before} to {after} bytes");
    }));
    assert!(requests.load(Ordering::Relaxed) > CLIENTS);
}

/// One client: creates, reads, lists, patches, replaces, watches and deletes its own objects,
/// and one that all share.
async fn live(number: u64, client: Client, until: Instant, requests: Arc<AtomicU64>) {
    let api = config_maps(client);
    let post = PostParams::default();
    let mut round = 0_u64;
    while Instant::now() < until {
        let name = format!("c{number}-{}", round % 20);
        let value = "v".repeat(usize::try_from(round % 3_000).expect("it is small"));
        let created = api.create(&post, &config_map(&name, &value)).await.expect("it is new");
        let version = created.metadata.resource_version.clone().expect("it has one");
        let mut events = api
            .watch(&WatchParams::default().fields(&format!("metadata.name={name}")), &version)
            .await
            .expect("it starts")
            .boxed();
        let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
        api.patch(&name, &PatchParams::default(), &patch).await.expect("it is there");
        events.next().await.expect("the patch is told").expect("it can be read");
        drop(events);
        let shared = Patch::Merge(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {format!("c{number}"): round.to_string()}
        }));
        match api.patch("shared", &PatchParams::default(), &shared).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {
                // Whoever comes first makes it.
                match api.create(&post, &config_map("shared", "")).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(other) => panic!("{other}"),
                }
            }
            Err(other) => panic!("{other}"),
        }
        let listed = api.list(&ListParams::default().limit(50)).await.expect("a list");
        assert!(!listed.items.is_empty());
        let mut current = api.get(&name).await.expect("it is there");
        current.data = config_map(&name, "replaced").data;
        api.replace(&name, &post, &current).await.expect("nobody else writes it");
        api.delete(&name, &DeleteParams::default()).await.expect("it is there");
        requests.fetch_add(8, Ordering::Relaxed);
        round += 1;
    }
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("it is there");
    let kilobytes: u64 =
        line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kilobytes * 1024
}
