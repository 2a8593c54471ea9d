//! A kind as it changes, for as long as anybody looks, whatever becomes of the server meanwhile.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::StreamExt;
use http::Request;
use kube::core::{ObjectList, WatchEvent};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// How soon a watch that broke off is begun anew.
const AGAIN: Duration = Duration::from_millis(100);

/// Tells everything that is at `path`, and then what happens to it. A watch that breaks off goes on
/// where it was. Where the server has forgotten what came since (it was started again), what is
/// there now is told instead, and what is gone; whatever came and went meanwhile is not.
pub async fn follow<K>(client: Client, path: &str, mut tell: impl FnMut(WatchEvent<K>))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut known = Known::default();
    loop {
        let since = known.newest.map(|version| format!("&resourceVersion={version}"));
        let query = format!("watch=true&timeoutSeconds=31536000{}", since.unwrap_or_default());
        let request = Request::get(format!("{path}?{query}")).body(Vec::new());
        let has_forgotten = match client.request_events::<K>(request.expect("a request")).await {
            Ok(events) => {
                let mut events = std::pin::pin!(events);
                let mut has_forgotten = false;
                while let Some(Ok(event)) = events.next().await {
                    if matches!(event, WatchEvent::Error(_)) {
                        has_forgotten = true;
                        break;
                    }
                    known.note(&event);
                    tell(event);
                }
                has_forgotten
            }
            Err(kube::Error::Api(status)) => status.code == 410,
            Err(_) => false,
        };
        let request = Request::get(path).body(Vec::new()).expect("a request");
        if has_forgotten && let Ok(list) = client.request::<ObjectList<K>>(request).await {
            known.compare(list).into_iter().for_each(&mut tell);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// What was told.
struct Known<K> {
    /// What is there, by uid.
    objects: HashMap<String, K>,
    newest: Option<u64>,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Known { objects: HashMap::new(), newest: None }
    }
}

impl<K: ResourceExt + Clone> Known<K> {
    fn note(&mut self, event: &WatchEvent<K>) {
        let (WatchEvent::Added(object)
        | WatchEvent::Modified(object)
        | WatchEvent::Deleted(object)) = event
        else {
            return;
        };
        self.newest = self.newest.max(parsed(object.resource_version()));
        let uid = object.uid().unwrap_or_default();
        match event {
            WatchEvent::Deleted(_) => drop(self.objects.remove(&uid)),
            _ => drop(self.objects.insert(uid, object.clone())),
        }
    }

    /// What must have happened since, by what is there now.
    fn compare(&mut self, list: ObjectList<K>) -> Vec<WatchEvent<K>> {
        let mut before = std::mem::take(&mut self.objects);
        let mut events = Vec::new();
        for object in list.items {
            let uid = object.uid().unwrap_or_default();
            self.objects.insert(uid.clone(), object.clone());
            match before.remove(&uid) {
                Some(old) if old.resource_version() == object.resource_version() => {}
                Some(_) => events.push(WatchEvent::Modified(object)),
                None => events.push(WatchEvent::Added(object)),
            }
        }
        self.newest = parsed(list.metadata.resource_version);
        // Names are used again: what is gone is told before what came.
        let gone = before.into_values().map(WatchEvent::Deleted);
        gone.chain(events).collect()
    }
}

fn parsed(version: Option<String>) -> Option<u64> {
    version.and_then(|version| version.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    fn pod(uid: &str, version: &str) -> Pod {
        let pod = json!({"metadata": {"name": uid, "uid": uid, "resourceVersion": version}});
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn what_happened_unseen_is_told_by_what_is_left() {
        let mut known = Known::default();
        for (uid, version) in [("same", "3"), ("changed", "4"), ("gone", "5")] {
            known.note(&WatchEvent::Added(pod(uid, version)));
        }
        let list = json!({
            "apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "9"},
            "items": [pod("same", "3"), pod("changed", "7"), pod("new", "8")],
        });
        let events = known.compare(serde_json::from_value(list).expect("a list"));
        let told: Vec<String> = events
            .iter()
            .map(|event| match event {
                WatchEvent::Added(pod) => format!("came {}", pod.name_any()),
                WatchEvent::Modified(pod) => format!("changed {}", pod.name_any()),
                WatchEvent::Deleted(pod) => format!("went {}", pod.name_any()),
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => "?".to_owned(),
            })
            .collect();
        assert_eq!(told, ["went gone", "changed changed", "came new"]);
        assert_eq!(known.newest, Some(9));
    }
}
