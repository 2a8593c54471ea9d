//! Sixteen clients that do everything at once, to Jobs, Pods and ConfigMaps on a durable store.
//! Here for as long as a test may take; longer with `STINT_LOAD_SECONDS=60`, which also tells
//! what it came to.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stint_local::Storage;

use crate::reach::{config_map, config_maps, over_the_wire};

const CLIENTS: u64 = 16;

/// The namespace of all that is written.
const NAMESPACE: &str = "kube-public";

#[test]
fn sixteen_clients_at_once_get_no_error_that_is_not_theirs() {
    let seconds = std::env::var("STINT_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(2, |text| text.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let requests = Arc::new(AtomicU64::new(0));
    let counted = requests.clone();
    let folder = tempfile::tempdir().expect("a folder");
    let storage = Storage::Folder(folder.path().join("store"));
    // A window and buffers that are full soon, so that what grows afterwards is a leak.
    let store = stint_store::Options {
        window_changes: 2_000,
        write_buffer_bytes: 2 * 1024 * 1024,
        ..stint_store::Options::default()
    };
    runtime.block_on(over_the_wire(storage, store, |client| async move {
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
        let slack = 24 * 1_000_000;
        assert!(after < before + slack, "memory grew from {before} to {after} bytes");
    }));
    assert!(requests.load(Ordering::Relaxed) > CLIENTS);
}

/// One client: its own objects of each kind in turn, and one that all share.
async fn live(number: u64, client: Client, until: Instant, requests: Arc<AtomicU64>) {
    let shared = Shared { api: config_maps(client.clone()), number };
    let mut round = 0_u64;
    while Instant::now() < until {
        let name = format!("c{number}-{}", round % 20);
        // All sizes up to 3 KB, from the start.
        let text = "v".repeat(usize::try_from(round * 991 % 3_000).expect("it is small"));
        match (number + round) % 3 {
            0 => {
                let made = config_map(&name, &text);
                live_one::<ConfigMap>(&client, &made, json!({"data": {"value": "new"}})).await;
            }
            1 => {
                let made = read(json!({"metadata": {"name": name}, "spec": pod_spec(&text)}));
                let active = json!({"spec": {"activeDeadlineSeconds": 100}});
                live_one::<Pod>(&client, &made, active).await;
            }
            _ => {
                let template = json!({"spec": pod_spec(&text)});
                let spec = json!({"completions": 9, "parallelism": 3, "template": template});
                let made = read(json!({"metadata": {"name": name}, "spec": spec}));
                live_one::<Job>(&client, &made, json!({"spec": {"parallelism": 2}})).await;
            }
        }
        shared.write(round).await;
        requests.fetch_add(9, Ordering::Relaxed);
        round += 1;
    }
}

/// An object from its beginning to its end: created, watched, patched in two ways, listed, read,
/// replaced and deleted.
async fn live_one<K>(client: &Client, object: &K, change: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let api = Api::<K>::namespaced(client.clone(), NAMESPACE);
    let (name, post, patch) = (object.name_any(), PostParams::default(), PatchParams::default());
    let created = api.create(&post, object).await.expect("it is new");
    let version = created.resource_version().expect("it has one");
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = api.watch(&only, &version).await.expect("it starts").boxed();
    let label = json!({"metadata": {"labels": {"seen": "yes"}}});
    api.patch(&name, &patch, &Patch::Strategic(label)).await.expect("it is there");
    events.next().await.expect("the patch is told").expect("it can be read");
    drop(events);
    api.patch(&name, &patch, &Patch::Merge(change)).await.expect("it is there");
    let seen = ListParams::default().labels("seen=yes").limit(50);
    assert!(!api.list(&seen).await.expect("a list").items.is_empty());
    let mut current = api.get(&name).await.expect("it is there");
    current.annotations_mut().insert("replaced".to_owned(), "yes".to_owned());
    api.replace(&name, &post, &current).await.expect("nobody else writes it");
    let at_once = DeleteParams::background().grace_period(0);
    api.delete(&name, &at_once).await.expect("it is there");
}

/// The object that all clients write.
struct Shared {
    api: Api<ConfigMap>,
    number: u64,
}

impl Shared {
    async fn write(&self, round: u64) {
        let data = json!({"data": {format!("c{}", self.number): round.to_string()}});
        match self.api.patch("shared", &PatchParams::default(), &Patch::Merge(data)).await {
            Ok(_) => {}
            // Whoever comes first makes it.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                match self.api.create(&PostParams::default(), &config_map("shared", "")).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(other) => panic!("{other}"),
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn pod_spec(text: &str) -> Value {
    json!({
        "restartPolicy": "Never",
        // Nobody but its client writes it.
        "schedulerName": "nobody",
        "containers": [{"name": "c", "image": "busybox", "args": [text]}],
    })
}

fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("it is of the kind")
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("it is there");
    let kilobytes: u64 =
        line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kilobytes * 1024
}
