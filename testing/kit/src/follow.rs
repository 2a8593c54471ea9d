//! A kind as it changes, for as long as anybody looks, whatever becomes of the server meanwhile.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::StreamExt;
use http::Request;
use kube::core::WatchEvent;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// How soon a watch that broke off is begun anew.
const AGAIN: Duration = Duration::from_millis(100);

/// Tells everything that is at `path`, and then what happens to it. A watch that breaks off goes on
/// where it was; it ends when the server has forgotten what came since, and that is told, too.
pub async fn follow<K>(client: Client, path: &str, mut tell: impl FnMut(WatchEvent<K>))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut newest = None;
    loop {
        let since = newest.map(|version: u64| format!("&resourceVersion={version}"));
        let query = format!("watch=true&timeoutSeconds=31536000{}", since.unwrap_or_default());
        let request = Request::get(format!("{path}?{query}")).body(Vec::new());
        match client.request_events::<K>(request.expect("a request")).await {
            Ok(events) => {
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    let Ok(event) = event else { break };
                    match &event {
                        WatchEvent::Added(object)
                        | WatchEvent::Modified(object)
                        | WatchEvent::Deleted(object) => newest = newest.max(version(object)),
                        WatchEvent::Bookmark(_) => {}
                        WatchEvent::Error(_) => return tell(event),
                    }
                    tell(event);
                }
            }
            Err(kube::Error::Api(status)) if status.code == 410 => {
                return tell(WatchEvent::Error(status));
            }
            Err(_) => {}
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn version(object: &impl ResourceExt) -> Option<u64> {
    object.resource_version().and_then(|version| version.parse().ok())
}
