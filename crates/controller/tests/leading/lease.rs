//! Who leads, and from when on.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::replica::{Cluster, LEASE, NAMESPACE, Replica, until};

fn leaders(replicas: &[&Replica]) -> usize {
    replicas.iter().filter(|replica| replica.leads()).count()
}

#[tokio::test(start_paused = true)]
async fn of_three_replicas_one_leads_and_the_others_say_who() {
    let cluster = Cluster::new().await;
    let replicas = [cluster.start("a"), cluster.start("b"), cluster.start("c")];
    let all: Vec<&Replica> = replicas.iter().collect();
    until("somebody leads", async || leaders(&all) == 1).await;
    for _ in 0..600 {
        sleep(Duration::from_millis(100)).await;
        assert_eq!(leaders(&all), 1);
    }
    let holder = cluster.holder().await;
    let standbys = all.iter().filter(|replica| !replica.leads());
    for standby in standbys {
        assert_eq!(standby.health.ready(), Ok(format!("standby; {holder} leads")));
    }
    let leader = all.iter().find(|replica| replica.leads()).expect("one leads");
    assert_eq!(leader.health.ready(), Ok("leading".to_owned()));
    assert!(leader.metrics.text().contains("leader_election_master_status{name=\"stint\"} 1"));
    // Every two seconds, and not more often.
    let writes: u32 = all.iter().map(|replica| replica.net.lease_writes()).sum();
    assert!((25..=35).contains(&writes), "{writes}");
}

#[tokio::test(start_paused = true)]
async fn after_a_clean_stop_the_next_leads_within_two_seconds() {
    let cluster = Cluster::new().await;
    let mut leader = cluster.start("0");
    until("it leads", async || leader.leads()).await;
    for number in 1..6 {
        let next = cluster.start(&number.to_string());
        sleep(Duration::from_secs(7)).await;
        assert!(leader.leads() && !next.leads());
        let began = Instant::now();
        leader.stop().await;
        until("the next leads and has listed", async || {
            next.health.ready() == Ok("leading".into())
        })
        .await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        leader = next;
    }
    let lease = cluster.leases().get("stint").await.expect("a lease");
    let spec = lease.spec.expect("a spec");
    assert_eq!(spec.lease_transitions, Some(5));
    leader.stop().await;
    assert_eq!(cluster.holder().await, "");
}

/// Stops a leader after `meanwhile`, and says how long the next one took to lead and list.
async fn hand_over(meanwhile: impl AsyncFnOnce(&Cluster, &Replica)) -> Duration {
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    until("it has listed", async || leader.health.ready() == Ok("leading".into())).await;
    let next = cluster.start("b");
    until("the other stands by", async || next.health.ready().is_ok()).await;
    meanwhile(&cluster, &leader).await;
    let began = Instant::now();
    leader.stop().await;
    until("the next leads and has listed", async || next.health.ready() == Ok("leading".into()))
        .await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_renewal_on_its_way_does_not_keep_the_lease() {
    let took = hand_over(async |cluster, leader| {
        let version = || async {
            let lease = cluster.leases().get(LEASE).await.expect("a lease");
            lease.metadata.resource_version
        };
        let before = version().await;
        leader.net.lose_renewal();
        // It has arrived, and whoever sent it does not know.
        until("it is renewed", async || version().await != before).await;
    })
    .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_has_just_labelled_is_given_back() {
    let took = hand_over(async |cluster, _| {
        let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "by-me"}}}));
        let labelled = cluster.leases().patch(LEASE, &PatchParams::default(), &label).await;
        labelled.expect("it can be labelled");
    })
    .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_hang_do_not_keep_the_lease() {
    let took = hand_over(async |cluster, leader| {
        leader.net.hang_work();
        cluster.create("work", json!({"completions": 3, "parallelism": 3})).await;
        until("it writes", async || leader.net.hanging() > 0).await;
    })
    .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_leads_no_more_says_of_no_jobs_that_it_holds_them() {
    let gauges = ["jobs_held", "pods_held", "calls_waiting", "calls_in_flight"];
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    cluster.create("work", json!({"completions": 3, "parallelism": 3})).await;
    let pods: Api<Pod> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let has_pods = async || {
        let all = pods.list(&ListParams::default()).await.expect("Pods can be listed");
        all.items.len() == 3 && leader.metrics.text().contains("_pods_held 3")
    };
    until("it works", has_pods).await;
    // What it does next is under way when it loses the Lease.
    leader.net.hang_work();
    let job = Patch::Merge(json!({"spec": {"parallelism": 0}}));
    cluster.jobs().patch("work", &PatchParams::default(), &job).await.expect("it can be patched");
    until("it writes", async || leader.net.hanging() > 0).await;
    let text = leader.metrics.text();
    for gauge in ["jobs_held 1", "pods_held 3"] {
        assert!(text.contains(&format!("stint_controller_{gauge}\n")), "{gauge}: {text}");
    }
    assert!(!text.contains("stint_controller_calls_in_flight 0\n"), "{text}");
    leader.net.cut(true);
    until("it steps down", async || !leader.leads()).await;
    until("it has forgotten", async || {
        let text = leader.metrics.text();
        gauges.iter().all(|gauge| text.contains(&format!("stint_controller_{gauge} 0\n")))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_next_leads_when_the_lease_is_over_and_not_before() {
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    until("it leads", async || leader.leads()).await;
    let next = cluster.start("b");
    sleep(Duration::from_secs(20)).await;
    leader.kill();
    let took = until("the next leads", async || next.leads()).await;
    // The last renewal was up to two seconds before.
    assert!((12_900..=15_600).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_stops_before_anybody_else_begins_and_stands_by_again() {
    for hangs in [false, true] {
        let cluster = Cluster::new().await;
        let leader = cluster.start("a");
        until("it leads", async || leader.leads()).await;
        let next = cluster.start("b");
        sleep(Duration::from_secs(20)).await;
        if hangs {
            leader.net.hang(true)
        } else {
            leader.net.cut(true)
        }
        let stopped = until("it steps down", async || !leader.leads()).await;
        assert!((7_900..=10_100).contains(&stopped.as_millis()), "{stopped:?}");
        assert!(!next.leads());
        let gap = until("the next leads", async || next.leads()).await;
        assert!(gap >= Duration::from_secs(4), "{gap:?}");
        leader.net.cut(false);
        leader.net.hang(false);
        until("it stands by", async || {
            leader.health.ready().is_ok_and(|it| it.contains("b leads"))
        })
        .await;
        next.stop().await;
        let took = until("it leads again", async || leader.leads()).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_finds_the_lease_with_somebody_else_steps_down() {
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    until("it leads", async || leader.leads()).await;
    let mut lease = cluster.leases().get("stint").await.expect("a lease");
    lease.spec.as_mut().expect("a spec").holder_identity = Some("thief".to_owned());
    let stolen = cluster.leases().replace("stint", &PostParams::default(), &lease).await;
    stolen.expect("it can be written");
    let took = until("it steps down", async || !leader.leads()).await;
    assert!(took <= Duration::from_millis(2_100), "{took:?}");
    // The thief never renews it.
    let took = until("it leads again", async || leader.leads()).await;
    assert!((14_000..=16_100).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_others_touch_or_delete_is_kept() {
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    until("it leads", async || leader.leads()).await;
    let _other = cluster.start("b");
    for round in 0..10 {
        sleep(Duration::from_millis(1_300)).await;
        if round % 3 == 2 {
            let gone = cluster.leases().delete("stint", &DeleteParams::default()).await;
            gone.expect("it can be deleted");
            continue;
        }
        // The leader's next renewal conflicts.
        let mut lease = cluster.leases().get("stint").await.expect("a lease");
        lease.metadata.labels = Some([("round".to_owned(), round.to_string())].into());
        // It may just have been renewed.
        let _ = cluster.leases().replace("stint", &PostParams::default(), &lease).await;
        assert!(leader.leads());
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_go_wrong_by_hours_change_nothing() {
    for skew in [-7_200, 7_200] {
        let cluster = Cluster::new().await;
        let leader = cluster.start_skewed("a", skew);
        until("it leads", async || leader.leads()).await;
        let next = cluster.start("b");
        for _ in 0..300 {
            sleep(Duration::from_millis(200)).await;
            assert!(leader.leads() && !next.leads());
        }
        leader.kill();
        let took = until("the next leads", async || next.leads()).await;
        assert!((12_900..=15_600).contains(&took.as_millis()), "{took:?}");
    }
}
