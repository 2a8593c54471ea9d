//! Watches that end, go on elsewhere, and fall behind.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};

use crate::reach::{config_map, config_maps, each_way};

/// What a watcher knows: names and values.
type Known = BTreeMap<String, String>;

fn name(object: &ConfigMap) -> String {
    object.metadata.name.clone().expect("it has a name")
}

fn value(object: &ConfigMap) -> String {
    object.data.as_ref().expect("it has data")["value"].clone()
}

async fn list(api: &Api<ConfigMap>) -> (Known, String) {
    let list = api.list(&ListParams::default().labels("test=yes")).await.expect("a list");
    let version = list.metadata.resource_version.expect("it has a version");
    (list.items.iter().map(|item| (name(item), value(item))).collect(), version)
}

/// Follows changes from a version until `count` were told; the version of the last.
async fn follow(api: &Api<ConfigMap>, known: &mut Known, from: &str, count: usize) -> String {
    let params = WatchParams::default().labels("test=yes");
    let stream = api.watch(&params, from).await.expect("it starts");
    let mut events = stream.boxed().take(count);
    let mut version = from.to_owned();
    while let Some(event) = events.try_next().await.expect("it goes on") {
        let object = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                known.insert(name(&object), value(&object));
                object
            }
            WatchEvent::Deleted(object) => {
                known.remove(&name(&object)).expect("it was known");
                object
            }
            other => panic!("{other:?}"),
        };
        version = object.metadata.resource_version.expect("it has a version");
    }
    version
}

#[test]
fn a_watch_goes_on_where_another_ended() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        let (mut known, mut version) = list(&api).await;
        let post = PostParams::default();
        for round in 0..20 {
            // While nobody watches.
            api.create(&post, &config_map(&format!("r{round}"), "new")).await.expect("new");
            let mut changed = config_map("r0", &format!("changed {round}"));
            changed.metadata.resource_version = None;
            api.replace("r0", &post, &changed).await.expect("it is there");
            let mut count = 2;
            if round > 0 && round % 3 == 0 {
                let victim = format!("r{}", round - 1);
                api.delete(&victim, &DeleteParams::default()).await.expect("it is there");
                count += 1;
            }
            version = follow(&api, &mut known, &version, count).await;
            assert_eq!(known, list(&api).await.0, "round {round}");
        }
    });
}

#[test]
fn a_watch_from_a_version_that_is_not_kept_is_told_so_and_a_list_helps() {
    let small = stint_store::Options { window_changes: 32, ..stint_store::Options::default() };
    each_way(small, |client| async {
        let api = config_maps(client);
        let (_, old) = list(&api).await;
        for number in 0..200 {
            let object = config_map(&format!("n{number}"), "");
            api.create(&PostParams::default(), &object).await.expect("new");
        }
        let params = WatchParams::default().labels("test=yes");
        let mut events = api.watch(&params, &old).await.expect("it starts").boxed();
        match events.next().await.expect("it says something").expect("it can be read") {
            WatchEvent::Error(status) => assert_eq!(status.code, 410),
            other => panic!("{other:?}"),
        }
        let (mut known, version) = list(&api).await;
        assert_eq!(known.len(), 200);
        api.create(&PostParams::default(), &config_map("last", "")).await.expect("new");
        follow(&api, &mut known, &version, 1).await;
        assert!(known.contains_key("last"));
    });
}

#[test]
fn a_watcher_that_does_not_read_holds_up_nobody_and_is_told_that_it_fell_behind() {
    let small = stint_store::Options { window_changes: 32, ..stint_store::Options::default() };
    each_way(small, |client| async {
        let api = config_maps(client);
        let (_, version) = list(&api).await;
        let params = WatchParams::default().labels("test=yes");
        let mut events = api.watch(&params, &version).await.expect("it starts").boxed();
        // Far more than fits into all the buffers on the way.
        let large = "x".repeat(100_000);
        for number in 0..300 {
            let object = config_map(&format!("n{number}"), &large);
            api.create(&PostParams::default(), &object).await.expect("writers do not wait");
        }
        let mut told = 0;
        let last = loop {
            match events.next().await {
                Some(Ok(WatchEvent::Added(_))) => told += 1,
                Some(Ok(WatchEvent::Error(status))) => break status.code,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(last, 410, "after {told} events");
        assert!(told < 300, "what fell out of the window was not kept for it");
    });
}

#[test]
fn an_initial_list_can_be_streamed() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        for number in 0..150 {
            let object = config_map(&format!("n{number}"), "");
            api.create(&PostParams::default(), &object).await.expect("new");
        }
        let params = WatchParams::default().labels("test=yes").initial_events();
        let mut events = api.watch(&params, "0").await.expect("it starts").boxed();
        let mut added = 0;
        loop {
            match events.next().await.expect("it goes on").expect("it can be read") {
                WatchEvent::Added(_) => added += 1,
                WatchEvent::Bookmark(bookmark) => {
                    let annotations = &bookmark.metadata.annotations;
                    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(added, 150);
        api.create(&PostParams::default(), &config_map("later", "")).await.expect("new");
        match events.next().await.expect("it goes on").expect("it can be read") {
            WatchEvent::Added(object) => assert_eq!(name(&object), "later"),
            other => panic!("{other:?}"),
        }
    });
}
