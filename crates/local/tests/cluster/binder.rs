//! Pods get their nodes: as many as there is room for, each by one request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::ResourceExt;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::response::Status;
use serde_json::{Value, json};
use stint_api::quantity::Quantity;
use stint_local::Options;

use crate::kit::{self, Still};

const PODS: usize = 5_000;

/// What is used of each node, as told by a watch.
#[derive(Default)]
struct Usage {
    pods: HashMap<String, (String, i64)>,
    nodes: HashMap<String, (usize, i64)>,
    ended: HashSet<String>,
}

impl Usage {
    fn see(&mut self, pod: &Pod, is_gone: bool) {
        if let Some((node, cpu)) = self.pods.remove(&pod.name_any()) {
            let used = self.nodes.get_mut(&node).expect("it was used");
            *used = (used.0 - 1, used.1 - cpu);
        }
        let has_ended = matches!(kit::phase(pod), "Succeeded" | "Failed");
        if has_ended {
            self.ended.insert(pod.name_any());
        }
        let Some(node) = kit::node_of(pod).filter(|_| !is_gone && !has_ended) else { return };
        let cpu = cpu(pod);
        self.pods.insert(pod.name_any(), (node.to_owned(), cpu));
        let used = self.nodes.entry(node.to_owned()).or_default();
        *used = (used.0 + 1, used.1 + cpu);
    }
}

/// What a Pod asks for, in thousandths.
fn cpu(pod: &Pod) -> i64 {
    let resources = pod.spec.as_ref().and_then(|spec| spec.containers[0].resources.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let text = requests.and_then(|requests| requests.get("cpu"));
    text.map_or(0, |text| text.0.parse::<Quantity>().expect("an amount").milli_value())
}

/// Watches Pods, checks at every step that no node has more than `pods` and `cpu`, and does
/// something about each change, until `is_over`.
async fn oversee<F: Future<Output = ()>>(
    pods: &Api<Pod>,
    (most_pods, most_cpu): (usize, i64),
    react: impl Fn(Pod) -> Option<F>,
    mut is_over: impl FnMut(&Usage) -> bool,
) -> Usage {
    let mut usage = Usage::default();
    let params = WatchParams::default().initial_events();
    let mut watch = pods.watch(&params, "").await.expect("a watch").into_stream().boxed();
    let mut works = FuturesUnordered::new();
    loop {
        let event = tokio::select! {
            event = watch.next() => event.expect("the watch goes on").expect("an event"),
            Some(()) = works.next() => continue,
        };
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                usage.see(&pod, false);
                works.extend(react(pod));
            }
            WatchEvent::Deleted(pod) => usage.see(&pod, true),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => panic!("{status:?}"),
        }
        for (node, (pods, cpu)) in &usage.nodes {
            assert!(*pods <= most_pods && *cpu <= most_cpu, "{node} has {pods} with {cpu}m");
        }
        if is_over(&usage) {
            return usage;
        }
    }
}

async fn create_all(pods: &Api<Pod>, all: impl Iterator<Item = Value>) {
    let creations = stream::iter(all).map(|pod| kit::create(pods, pod)).buffer_unordered(64);
    creations.for_each(|_| async {}).await;
}

/// Ends Pods that have a node, as the node would.
fn ending(pods: &Api<Pod>) -> impl Fn(Pod) -> Option<BoxFuture<'static, ()>> {
    let pods = pods.clone();
    move |pod| {
        let is_running = kit::node_of(&pod).is_some() && kit::phase(&pod) == "Pending";
        let (pods, name) = (pods.clone(), pod.name_any());
        let end = async move { kit::report(&pods, &name, json!({"phase": "Succeeded"})).await };
        is_running.then(|| end.boxed())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_pods_go_through_two_nodes_that_are_never_overfull() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        kit::create(&nodes, kit::node("a", "10", 50)).await;
        kit::create(&nodes, kit::node("b", "10", 50)).await;
        let sizes = ["0m", "100m", "250m", "700m", "5000m"];
        let asking =
            (0..PODS).map(|index| kit::asking(&format!("p{index}"), sizes[index % sizes.len()]));
        let mut fullest = 0;
        let overseeing = oversee(&pods, (50, 10_000), ending(&pods), |usage| {
            fullest = usage.nodes.values().fold(fullest, |most, (_, cpu)| most.max(*cpu));
            usage.ended.len() == PODS
        });
        tokio::join!(create_all(&pods, asking), overseeing);
        assert!(fullest > 5_000, "the room is used: {fullest}m");
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_bound_by_one_request() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        kit::create(&nodes, kit::node("a", "1000", PODS)).await;
        let before = kit::requests(&client).await;
        tokio::join!(create_many(&pods, PODS), all_bound(&pods, PODS));
        let made = kit::requests(&client).await - before;
        // A creation and a binding each; and what goes on when a cluster starts.
        assert!(made <= 2 * PODS + 100, "{made} requests");
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it alone, with --release, --ignored and --nocapture"]
async fn how_fast_pods_are_bound() {
    let (cluster, client) = kit::in_memory().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let count = 50_000;
    let began = Instant::now();
    create_many(&pods, count).await;
    let created = began.elapsed().as_secs_f64();
    let before = kit::requests(&client).await;
    let began = Instant::now();
    kit::create(&nodes, kit::node("a", "1000", count)).await;
    all_bound(&pods, count).await;
    let bound = began.elapsed().as_secs_f64();
    let made = kit::requests(&client).await - before;
    let speed = |seconds: f64| count as f64 / seconds;
    println!("{count} Pods created in {created:.2} s, {:.0} a second", speed(created));
    println!("and bound in {bound:.2} s, {:.0} a second, by {made} requests", speed(bound));
    cluster.shutdown().await.expect("it ends");
}

async fn create_many(pods: &Api<Pod>, count: usize) {
    create_all(pods, (0..count).map(|index| kit::asking(&format!("p{index}"), "1m"))).await;
}

async fn all_bound(pods: &Api<Pod>, count: usize) {
    let nothing = |_| None::<std::future::Ready<()>>;
    oversee(pods, (count, 1_000_000), nothing, |usage| usage.pods.len() == count).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_the_middle_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    let (count, room) = (300, 100);
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        kit::create(&nodes, kit::node("a", "1000", room)).await;
        // The cluster ends as soon as some are bound, whatever is under way.
        tokio::join!(create_many(&pods, count), all_bound(&pods, 30));
    })
    .await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        oversee(&pods, (room, 1_000_000), ending(&pods), |usage| usage.ended.len() == count).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// Somebody else binds the same Pods at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_bound_by_another_is_counted_where_it_is() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let (count, room) = (400, 300);
        kit::create(&nodes, kit::node("a", "1000", room)).await;
        let meddle = |index: usize| {
            let pods = pods.clone();
            async move {
                let name = format!("p{index}");
                kit::create(&pods, kit::asking(&name, "1m")).await;
                let target = json!({"kind": "Node", "name": "elsewhere"});
                let binding = json!({"metadata": {"name": name}, "target": target});
                let params = PostParams::default();
                let made =
                    pods.create_subresource::<Value, Status>("binding", &name, &params, &binding);
                made.await.is_ok()
            }
        };
        let meddled = stream::iter(0..count).map(meddle).buffer_unordered(64);
        let elsewhere = meddled.filter(|is_ours| std::future::ready(*is_ours)).count().await;
        let here = (count - elsewhere).min(room);
        let on = |all: &BTreeMap<String, Pod>, node: &str| {
            all.values().filter(|pod| kit::node_of(pod) == Some(node)).count()
        };
        let all =
            kit::until(&pods, "as many bindings as there is room for", |all| on(all, "a") == here)
                .await;
        assert_eq!(on(&all, "elsewhere"), elsewhere);
        // What was lost to the other is free again: it can be filled to the last place.
        let more = room - here;
        create_all(&pods, (0..more + 1).map(|index| kit::asking(&format!("q{index}"), "1m"))).await;
        kit::until(&pods, "a full node", |all| on(all, "a") == room).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_says_why_until_there_is_room() {
    let still = Still::new();
    let options = Options { clock: still.clock(), ..Options::default() };
    let (cluster, client) = kit::start_with(options).await;
    still
        .watched(&cluster, async {
            let nodes: Api<Node> = Api::all(client.clone());
            let pods: Api<Pod> = Api::default_namespaced(client.clone());
            let events: Api<Event> = Api::default_namespaced(client.clone());
            kit::create(&nodes, kit::node("a", "1", 10)).await;
            kit::create(&pods, kit::asking("small", "500m")).await;
            kit::until(&pods, "a binding", |all| kit::node_of(&all["small"]).is_some()).await;
            kit::create(&pods, kit::asking("large", "1")).await;
            let mut picky = kit::pod("picky", &[]);
            picky["spec"]["nodeSelector"] = json!({"disk": "ssd"});
            kit::create(&pods, picky).await;
            let told = |pod: &Pod| {
                let conditions = pod.status.as_ref()?.conditions.as_ref()?;
                let found =
                    conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
                Some((found.status.clone(), found.reason.clone()?, found.message.clone()?))
            };
            let all = still
                .pass_until(&pods, |all| {
                    told(&all["large"]).is_some() && told(&all["picky"]).is_some()
                })
                .await;
            let why = |name: &str| {
                let found = all.get(name).and_then(told);
                let (status, reason, message) = found.expect("it was told");
                assert_eq!((status.as_str(), reason.as_str()), ("False", "Unschedulable"));
                message
            };
            assert_eq!(why("large"), "0/1 nodes are available: 1 Insufficient cpu.");
            assert_eq!(
                why("picky"),
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            );
            let said = kit::until(&events, "two Events", |all| all.len() == 2).await;
            for event in said.values() {
                assert_eq!(event.reason.as_deref(), Some("FailedScheduling"));
                assert_eq!(event.type_.as_deref(), Some("Warning"));
                let name = event.involved_object.name.as_deref().expect("a Pod");
                assert_eq!(event.message.as_deref(), Some(&*why(name)));
            }
            // It is said once.
            let before = pods.get("large").await.expect("it waits").resource_version();
            for seconds in [40, 80, 120] {
                still.go_to(seconds).await;
                pods.list(&ListParams::default()).await.expect("a list");
            }
            assert_eq!(pods.get("large").await.expect("it waits").resource_version(), before);
            kit::delete(&pods, "picky", &DeleteParams::default()).await;
            kit::report(&pods, "small", json!({"phase": "Failed"})).await;
            let all = kit::until(&pods, "room", |all| kit::node_of(&all["large"]).is_some()).await;
            assert_eq!(told(&all["large"]), None, "nothing is left of why it waited");
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn gates_hold_a_pod_back_and_cordons_a_node() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut cordoned = kit::node("a", "1", 10);
        cordoned["spec"] = json!({"unschedulable": true});
        kit::create(&nodes, cordoned).await;
        let mut gated = kit::pod("gated", &[]);
        gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
        kit::create(&pods, gated).await;
        kit::create(&pods, kit::pod("free", &[])).await;
        let open = Patch::Merge(json!({"spec": {"unschedulable": null}}));
        nodes.patch("a", &PatchParams::default(), &open).await.expect("a patch");
        kit::until(&pods, "a binding", |all| kit::node_of(&all["free"]).is_some()).await;
        assert_eq!(kit::node_of(&pods.get("gated").await.expect("it waits")), None);
        let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
        pods.patch("gated", &PatchParams::default(), &open).await.expect("a patch");
        kit::until(&pods, "a binding", |all| kit::node_of(&all["gated"]) == Some("a")).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
