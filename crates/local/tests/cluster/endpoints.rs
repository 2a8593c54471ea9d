//! Which Pods are behind a Service, as clients learn it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use stint_local::Options;

use crate::kit::{self, Still};

struct Apis {
    services: Api<Service>,
    pods: Api<Pod>,
    slices: Api<EndpointSlice>,
    endpoints: Api<Endpoints>,
}

fn apis(client: &Client) -> Apis {
    Apis {
        services: Api::default_namespaced(client.clone()),
        pods: Api::default_namespaced(client.clone()),
        slices: Api::default_namespaced(client.clone()),
        endpoints: Api::default_namespaced(client.clone()),
    }
}

fn service(name: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"team": "x"}},
        "spec": {
            "selector": {"app": app},
            "ports": [{"name": "web", "port": 80, "targetPort": "http"}],
        },
    })
}

fn pod(name: &str, app: &str, port: i32) -> Value {
    let mut pod = kit::pod(name, &[]);
    pod["metadata"]["labels"] = json!({"app": app});
    pod["spec"]["nodeName"] = json!("here");
    pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": port}]);
    pod
}

fn running(number: usize, is_ready: bool) -> Value {
    let ip = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    json!({
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
    })
}

async fn run(apis: &Apis, name: &str, app: &str, number: usize, is_ready: bool) {
    kit::create(&apis.pods, pod(name, app, 8080)).await;
    kit::report(&apis.pods, name, running(number, is_ready)).await;
}

/// The endpoints of all slices, by Pod.
fn told(slices: &BTreeMap<String, EndpointSlice>) -> BTreeMap<String, Endpoint> {
    let endpoints = slices.values().flat_map(|slice| slice.endpoints.iter().flatten());
    let named = endpoints.map(|endpoint| {
        let reference = endpoint.target_ref.as_ref().expect("a Pod");
        (reference.name.clone().expect("a name"), endpoint.clone())
    });
    named.collect()
}

/// The Pods that all slices tell to be ready.
fn ready(slices: &BTreeMap<String, EndpointSlice>) -> BTreeSet<String> {
    let is_ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().and_then(|it| it.ready);
    told(slices).into_iter().filter(|(_, it)| is_ready(it) == Some(true)).map(|it| it.0).collect()
}

/// The Pods of Endpoints: ready and not.
fn listed(endpoints: &Endpoints) -> [BTreeSet<String>; 2] {
    let mut names = [BTreeSet::new(), BTreeSet::new()];
    for subset in endpoints.subsets.iter().flatten() {
        for (names, list) in names.iter_mut().zip([&subset.addresses, &subset.not_ready_addresses])
        {
            let references = list.iter().flatten().filter_map(|it| it.target_ref.clone());
            names.extend(references.filter_map(|reference| reference.name));
        }
    }
    names
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_ring_behind_a_headless_service_finds_each_other_by_name() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let apis = apis(&client);
        let mut headless = service("ring", "ring");
        headless["spec"] =
            json!({"clusterIP": "None", "selector": {"app": "ring"}, "publishNotReadyAddresses": true});
        let service = kit::create(&apis.services, headless).await;
        for number in 0..8 {
            let name = format!("ring-{number}");
            let mut pod = pod(&name, "ring", 8080);
            pod["spec"]["hostname"] = json!(name);
            pod["spec"]["subdomain"] = json!("ring");
            kit::create(&apis.pods, pod).await;
            kit::report(&apis.pods, &name, running(number, false)).await;
        }
        let slices = kit::until(&apis.slices, "eight", |all| told(all).len() == 8).await;
        assert_eq!(slices.len(), 1);
        let slice = slices.values().next().expect("there is one");
        assert_eq!(slice.address_type, "IPv4");
        assert_eq!(slice.ports.as_deref().unwrap_or_default(), []);
        let labels: BTreeMap<&str, &str> =
            slice.labels().iter().map(|(key, value)| (&**key, &**value)).collect();
        let wanted = [
            ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
            ("kubernetes.io/service-name", "ring"),
            ("service.kubernetes.io/headless", ""),
            ("team", "x"),
        ];
        assert_eq!(labels, BTreeMap::from(wanted));
        let owner = &slice.owner_references()[0];
        assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("Service", service.uid().as_ref()));
        for (name, endpoint) in told(&slices) {
            assert_eq!(endpoint.hostname.as_ref(), Some(&name));
            assert_eq!(endpoint.node_name.as_deref(), Some("here"));
            let conditions = endpoint.conditions.expect("they are told");
            let told = [conditions.ready, conditions.serving, conditions.terminating];
            assert_eq!(told, [Some(true), Some(false), Some(false)]);
        }
        let all = kit::until(&apis.endpoints, "Endpoints", |all| {
            all.get("ring").is_some_and(|it| listed(it)[0].len() == 8)
        })
        .await;
        let subsets = all["ring"].subsets.as_ref().expect("subsets");
        let hostnames = subsets[0].addresses.iter().flatten().filter_map(|it| it.hostname.clone());
        assert_eq!(hostnames.count(), 8);
        kit::delete(&apis.services, "ring", &DeleteParams::default()).await;
        kit::until(&apis.slices, "no slice", |all| all.is_empty()).await;
        kit::until(&apis.endpoints, "no Endpoints", |all| all.is_empty()).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_service_tells_who_is_ready_and_follows_its_pods_and_its_selector() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let apis = apis(&client);
        kit::create(&apis.services, service("web", "a")).await;
        // A Service without Pods has a slice that says so.
        kit::until(&apis.slices, "an empty slice", |all| all.len() == 1).await;
        run(&apis, "a1", "a", 1, true).await;
        run(&apis, "a2", "a", 2, false).await;
        run(&apis, "b1", "b", 3, true).await;
        let both = |one: &'static [&str], two: &'static [&str]| {
            let wanted: [BTreeSet<String>; 2] =
                [one, two].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let (slices, endpoints) = (&apis.slices, &apis.endpoints);
            async move {
                kit::until(slices, "the slices", |all| {
                    ready(all) == wanted[0] && told(all).len() == wanted[0].len() + wanted[1].len()
                })
                .await;
                kit::until(endpoints, "the Endpoints", |all| {
                    all.get("web").is_some_and(|it| listed(it) == wanted)
                })
                .await;
            }
        };
        both(&["a1"], &["a2"]).await;
        // Readiness comes and goes.
        kit::report(&apis.pods, "a2", running(2, true)).await;
        both(&["a1", "a2"], &[]).await;
        kit::report(&apis.pods, "a1", running(1, false)).await;
        both(&["a2"], &["a1"]).await;
        // Who has ended is left out.
        kit::report(&apis.pods, "a1", json!({"phase": "Succeeded"})).await;
        both(&["a2"], &[]).await;
        // Others are selected.
        let patch = Patch::Merge(json!({"spec": {"selector": {"app": "b"}}}));
        apis.services.patch("web", &PatchParams::default(), &patch).await.expect("a patch");
        both(&["b1"], &[]).await;
        // A Pod is renamed into the selection.
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "b"}}}));
        apis.pods.patch("a2", &PatchParams::default(), &patch).await.expect("a patch");
        both(&["a2", "b1"], &[]).await;
        // One that goes is told to go on serving, but not to those who read Endpoints.
        kit::delete(&apis.pods, "a2", &DeleteParams::default().grace_period(3600)).await;
        kit::until(&apis.slices, "one that goes", |all| {
            let conditions = told(all).remove("a2").and_then(|it| it.conditions);
            conditions.is_some_and(|it| {
                [it.ready, it.serving, it.terminating] == [Some(false), Some(true), Some(true)]
            })
        })
        .await;
        kit::until(&apis.endpoints, "one less", |all| listed(&all["web"])[0] == set(["b1"])).await;
        kit::delete(&apis.pods, "a2", &DeleteParams::default().grace_period(0)).await;
        both(&["b1"], &[]).await;
        // What somebody else takes away is made again.
        let slice = apis.slices.list(&Default::default()).await.expect("a list").items.remove(0);
        kit::delete(&apis.slices, &slice.name_any(), &DeleteParams::default()).await;
        kit::until(&apis.slices, "a new slice", |all| {
            ready(all) == set(["b1"]) && !all.contains_key(&slice.name_any())
        })
        .await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn pods_with_different_ports_under_one_name_stand_apart() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let apis = apis(&client);
        kit::create(&apis.services, service("web", "a")).await;
        for (number, port) in [(1, 8001), (2, 8002), (3, 8001)] {
            let name = format!("p{number}");
            kit::create(&apis.pods, pod(&name, "a", port)).await;
            kit::report(&apis.pods, &name, running(number, true)).await;
        }
        let slices =
            kit::until(&apis.slices, "all three", |all| told(all).len() == 3 && all.len() == 2)
                .await;
        let ports: BTreeMap<i32, usize> = slices
            .values()
            .map(|slice| {
                let port = &slice.ports.as_ref().expect("ports")[0];
                assert_eq!(port.name.as_deref(), Some("web"));
                (port.port.expect("a number"), slice.endpoints.iter().flatten().count())
            })
            .collect();
        assert_eq!(ports, BTreeMap::from([(8001, 2), (8002, 1)]));
        let all = kit::until(&apis.endpoints, "all three", |all| {
            all.get("web").is_some_and(|it| listed(it)[0].len() == 3)
        })
        .await;
        assert_eq!(all["web"].subsets.as_ref().map(Vec::len), Some(2));
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// However many Pods come while time stands still, there are two writes: one at once, and one
/// after the pause.
#[tokio::test(start_paused = true)]
async fn many_changes_are_few_writes() {
    let still = Still::new();
    let options = Options { clock: still.clock(), ..Options::default() };
    let (cluster, client) = kit::start_with(options).await;
    still
        .watched(&cluster, async {
            let apis = apis(&client);
            kit::create(&apis.services, service("web", "a")).await;
            kit::until(&apis.slices, "the first write", |all| all.len() == 1).await;
            kit::until(&apis.endpoints, "the first write", |all| all.len() == 1).await;
            let pods = stream::iter(0..250).map(|number| {
                let (apis, name) = (&apis, format!("p{number}"));
                async move { run(apis, &name, "a", number, true).await }
            });
            pods.buffer_unordered(16).for_each(|()| async {}).await;
            let before = kit::requests(&client).await;
            tokio::time::advance(Duration::from_millis(250)).await;
            kit::until(&apis.slices, "all Pods", |all| told(all).len() == 250 && all.len() == 3)
                .await;
            // Three slices and the Endpoints are written, and the empty slice goes; that is
            // seen, and looked at once more.
            let made = kit::requests(&client).await - before;
            assert!(made <= 20, "{made} requests");
        })
        .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn services_without_a_selector_are_left_alone() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let apis = apis(&client);
        let by_hand = json!({"metadata": {"name": "by-hand"}, "spec": {"ports": [{"port": 80}]}});
        kit::create(&apis.services, by_hand).await;
        let addresses = json!([{"ip": "192.0.2.1"}]);
        let subsets = json!([{"addresses": addresses, "ports": [{"port": 80}]}]);
        let endpoints = json!({"metadata": {"name": "by-hand"}, "subsets": subsets});
        let endpoints = kit::create(&apis.endpoints, endpoints).await;
        // Another Service shows that there was time.
        kit::create(&apis.services, service("web", "a")).await;
        kit::until(&apis.endpoints, "others", |all| all.contains_key("web")).await;
        let now = apis.endpoints.get("by-hand").await.expect("it is there");
        assert_eq!(now.resource_version(), endpoints.resource_version());
        let slices = apis.slices.list(&Default::default()).await.expect("a list").items;
        let of = |slice: &EndpointSlice| slice.labels()["kubernetes.io/service-name"].clone();
        assert_eq!(slices.iter().map(of).collect::<Vec<_>>(), ["web"]);
        kit::delete(&apis.services, "by-hand", &DeleteParams::default()).await;
        kit::delete(&apis.services, "web", &DeleteParams::default()).await;
        kit::until(&apis.endpoints, "the end of ours", |all| !all.contains_key("web")).await;
        assert!(apis.endpoints.get_opt("by-hand").await.expect("an answer").is_some());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_restart_finds_what_has_changed_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let apis = apis(&client);
        for (name, app) in [("stays", "a"), ("goes", "b")] {
            kit::create(&apis.services, service(name, app)).await;
            run(&apis, &format!("{name}-1"), app, 1, true).await;
        }
        kit::until(&apis.endpoints, "both", |all| {
            let has = |name: &str| all.get(name).is_some_and(|it| listed(it)[0].len() == 1);
            has("stays") && has("goes")
        })
        .await;
    })
    .await;
    // The answer to a deletion is all that is waited for: what follows from it may be left.
    let apis = apis(&client);
    kit::delete(&apis.services, "goes", &DeleteParams::default()).await;
    kit::report(&apis.pods, "stays-1", json!({"phase": "Failed"})).await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let apis = self::apis(&client);
        kit::until(&apis.endpoints, "one of them, empty", |all| {
            all.keys().eq(["stays"]) && listed(&all["stays"])[0].is_empty()
        })
        .await;
        kit::until(&apis.slices, "one slice, empty", |all| all.len() == 1 && told(all).is_empty())
            .await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
