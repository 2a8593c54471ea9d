//! ResourceQuotas and LimitRanges: what a namespace may have is what it gets, whoever asks at the
//! same time, and what has ended makes room.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event, LimitRange, Node, Pod, ResourceQuota};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stint_apiserver::access::Identity;
use stint_local::{Cluster, Options};

use crate::kit;

fn quota(name: &str, hard: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"hard": hard}})
}

/// What a quota says of usage, once it says what it limits.
fn used(quota: &ResourceQuota) -> BTreeMap<String, String> {
    let status = quota.status.clone().unwrap_or_default();
    let used = status.hard.and(status.used).unwrap_or_default();
    used.into_iter().map(|(name, amount)| (name, amount.0)).collect()
}

/// Waits until a quota says that so much is used.
async fn until_used(quotas: &Api<ResourceQuota>, name: &str, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect();
    let is_so = |all: &BTreeMap<String, ResourceQuota>| {
        all.get(name).is_some_and(|quota| used(quota) == expected)
    };
    kit::until(quotas, &format!("{name} with {expected:?}"), is_so).await;
}

async fn try_pod(pods: &Api<Pod>, pod: Value) -> Result<Pod, String> {
    let pod = serde_json::from_value(pod).expect("a Pod");
    match pods.create(&PostParams::default(), &pod).await {
        Ok(pod) => Ok(pod),
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
            Err(status.message.clone())
        }
        Err(error) => panic!("{error}"),
    }
}

fn apis(client: &Client) -> (Api<ResourceQuota>, Api<Pod>) {
    (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()))
}

#[tokio::test]
async fn what_is_there_is_counted_and_what_ends_makes_room() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        kit::create(&pods, kit::asking("early", "100m")).await;
        kit::create(
            &quotas,
            quota(
                "q",
                json!({"pods": "2", "count/pods": "3", "requests.cpu": "1", "secrets": "9"}),
            ),
        )
        .await;
        let of = |pods: &'static str, count: &'static str, cpu: &'static str| {
            [("pods", pods), ("count/pods", count), ("requests.cpu", cpu), ("secrets", "0")]
        };
        until_used(&quotas, "q", &of("1", "1", "100m")).await;
        kit::create(&pods, kit::asking("a", "200m")).await;
        let charged = quotas.get("q").await.expect("it is there");
        assert_eq!(used(&charged)["pods"], "2", "it is charged at once");
        assert_eq!(used(&charged)["requests.cpu"], "300m");
        let refused = try_pod(&pods, kit::asking("b", "1")).await.expect_err("it is full");
        assert_eq!(
            refused,
            "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1, used: \
             pods=2,requests.cpu=300m, limited: pods=2,requests.cpu=1"
        );
        // Who has ended needs nothing, but is still an object.
        kit::report(&pods, "early", json!({"phase": "Succeeded"})).await;
        until_used(&quotas, "q", &of("1", "2", "200m")).await;
        kit::create(&pods, kit::asking("b", "700m")).await;
        kit::report(&pods, "a", json!({"phase": "Failed"})).await;
        until_used(&quotas, "q", &of("1", "3", "700m")).await;
        let refused = try_pod(&pods, kit::asking("c", "100m")).await.expect_err("it is full");
        assert!(refused.contains("requested: count/pods=1, used: count/pods=3"), "{refused}");
        kit::delete(&pods, "early", &DeleteParams::default()).await;
        until_used(&quotas, "q", &of("1", "2", "700m")).await;
        kit::create(&pods, kit::asking("c", "100m")).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn limits_and_what_they_are_about_may_change() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        kit::create(&quotas, quota("q", json!({"pods": "0", "persistentvolumeclaims": "1"}))).await;
        until_used(&quotas, "q", &[("pods", "0"), ("persistentvolumeclaims", "0")]).await;
        try_pod(&pods, kit::pod("a", &[])).await.expect_err("there is no room");
        let patch = json!({"spec": {"hard": {
            "pods": "1", "persistentvolumeclaims": null, "count/jobs.batch": "7"}}});
        let params = PatchParams::default();
        quotas.patch("q", &params, &Patch::Merge(patch)).await.expect("it may change");
        until_used(&quotas, "q", &[("pods", "0"), ("count/jobs.batch", "0")]).await;
        kit::create(&pods, kit::pod("a", &[])).await;
        let made = kit::create(&maps, kit::map("a", &[])).await;
        assert_eq!(made.name_any(), "a", "nothing is said of config maps");
        kit::delete(&quotas, "q", &DeleteParams::default()).await;
        kit::create(&pods, kit::pod("b", &[])).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_restart_counts_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        kit::create(&quotas, quota("q", json!({"pods": "2"}))).await;
        until_used(&quotas, "q", &[("pods", "0")]).await;
        kit::create(&pods, kit::pod("a", &[])).await;
        kit::create(&pods, kit::pod("b", &[])).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        let full = try_pod(&pods, kit::pod("c", &[])).await.expect_err("it is full");
        assert!(full.ends_with("requested: pods=1, used: pods=2, limited: pods=2"), "{full}");
        // Somebody has written what is not so.
        let wrong = json!({"status": {"used": {"pods": "0"}}});
        let params = PatchParams::default();
        quotas.patch_status("q", &params, &Patch::Merge(wrong)).await.expect("a status");
        until_used(&quotas, "q", &[("pods", "2")]).await;
        kit::delete(&pods, "a", &DeleteParams::default()).await;
        until_used(&quotas, "q", &[("pods", "1")]).await;
        kit::create(&pods, kit::pod("c", &[])).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// Many ask at once for few places, again and again, while others leave theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn there_are_never_more_than_a_quota_has_room_for() {
    const ROOM: usize = 7;
    const ROUNDS: usize = 12;
    const AT_ONCE: usize = 40;
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        let hard = json!({"pods": ROOM.to_string(), "requests.cpu": "70"});
        kit::create(&quotas, quota("q", hard)).await;
        until_used(&quotas, "q", &[("pods", "0"), ("requests.cpu", "0")]).await;
        for round in 0..ROUNDS {
            let tries = (0..AT_ONCE).map(|number| {
                // Some ask for the same name.
                let name = format!("p-{round}-{}", number / 2);
                let pod: Pod = serde_json::from_value(kit::asking(&name, "10")).expect("a Pod");
                let pods = pods.clone();
                tokio::spawn(async move { pods.create(&PostParams::default(), &pod).await.is_ok() })
            });
            let made = join_all(tries).await;
            let made = made.into_iter().filter(|made| *made.as_ref().expect("no panic")).count();
            let all = pods.list(&ListParams::default()).await.expect("a list").items;
            let active: Vec<&Pod> = all.iter().filter(|pod| kit::phase(pod) == "Pending").collect();
            assert!(active.len() <= ROOM, "{} Pods in round {round}", active.len());
            assert!(round > 0 || made == ROOM, "{made} were made, and there was room for {ROOM}");
            // Whoever leaves does so while the next ones ask.
            for pod in active.iter().take(1 + round % ROOM) {
                kit::report(&pods, &pod.name_any(), json!({"phase": "Succeeded"})).await;
            }
        }
        let all = pods.list(&ListParams::default()).await.expect("a list").items;
        let active = all.iter().filter(|pod| kit::phase(pod) == "Pending").count();
        let (count, cpu) = (active.to_string(), (10 * active).to_string());
        until_used(&quotas, "q", &[("pods", count.as_str()), ("requests.cpu", cpu.as_str())]).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_job_is_told_of_a_full_quota_and_goes_on_when_there_is_room() {
    let cluster = Cluster::start(Options::default()).await.expect("it starts");
    let client = cluster.client(Identity::admin());
    kit::watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let events: Api<Event> = Api::default_namespaced(client.clone());
        let ranges: Api<LimitRange> = Api::default_namespaced(client.clone());
        let limits = json!([{"type": "Container", "default": {"cpu": "1"}}]);
        kit::create(&ranges, json!({"metadata": {"name": "l"}, "spec": {"limits": limits}})).await;
        kit::create(&quotas, quota("q", json!({"requests.cpu": "2"}))).await;
        until_used(&quotas, "q", &[("requests.cpu", "0")]).await;
        let mut job = kit::job("work");
        job["spec"]["completions"] = json!(5);
        job["spec"]["parallelism"] = json!(5);
        kit::create(&jobs, job).await;
        let is_told = |event: &Event| {
            event.involved_object.kind.as_deref() == Some("Job")
                && event.reason.as_deref() == Some("FailedCreate")
                && event.message.as_deref().is_some_and(|text| {
                    text.starts_with("Error creating: pods \"work-")
                        && text.ends_with(
                            "is forbidden: exceeded quota: q, requested: requests.cpu=1, used: \
                             requests.cpu=2, limited: requests.cpu=2",
                        )
                })
        };
        kit::until(&events, "an Event", |all| all.values().any(is_told)).await;
        let mut ended = 0;
        while ended < 5 {
            let expected = (5 - ended).min(2);
            let is_active = |pod: &&Pod| kit::phase(pod) == "Pending";
            let all = kit::until(&pods, "Pods of the Job", |all| {
                all.values().filter(is_active).count() >= expected
            })
            .await;
            let active: Vec<&Pod> = all.values().filter(is_active).collect();
            assert!(active.len() <= 2, "the quota has room for two");
            let told = active[0].annotations().get("kubernetes.io/limit-ranger");
            let expected = "LimitRanger plugin set: cpu request for container main; cpu limit for \
                            container main";
            assert_eq!(told.map(String::as_str), Some(expected));
            kit::report(&pods, &active[0].name_any(), json!({"phase": "Succeeded"})).await;
            ended += 1;
        }
        kit::until(&jobs, "its end", |all| {
            let status = all["work"].status.clone().unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            status.succeeded == Some(5) && conditions.iter().any(|it| it.type_ == "Complete")
        })
        .await;
        until_used(&quotas, "q", &[("requests.cpu", "0")]).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_nobody_removes_counts_until_its_time_is_over() {
    let time = kit::Still::new();
    let options = Options { clock: time.clock(), ..Options::default() };
    let (cluster, client) = kit::start_with(options).await;
    time.watched(&cluster, async {
        let (quotas, pods) = apis(&client);
        kit::create(&quotas, quota("q", json!({"pods": "1", "count/pods": "9"}))).await;
        until_used(&quotas, "q", &[("pods", "0"), ("count/pods", "0")]).await;
        let nodes: Api<Node> = Api::all(client.clone());
        kit::create(&nodes, kit::node("nowhere", "4", 9)).await;
        let mut pod = kit::pod("lost", &[]);
        pod["spec"]["nodeName"] = json!("nowhere");
        kit::create(&pods, pod).await;
        kit::delete(&pods, "lost", &DeleteParams::default().grace_period(60)).await;
        let is_free = |all: &BTreeMap<String, ResourceQuota>| used(&all["q"])["pods"] == "0";
        // Its grace, and as long again, as upstream counts it.
        time.go_to(119).await;
        assert!(!is_free(&BTreeMap::from([(
            "q".to_owned(),
            quotas.get("q").await.expect("it is there")
        )])));
        time.pass_until(&quotas, is_free).await;
        kit::create(&pods, kit::pod("next", &[])).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
