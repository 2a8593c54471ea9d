//! Events do not stay: each is deleted a while after it was last said, and the oldest when
//! there are too many. Upstream, etcd forgets them.

use std::collections::HashMap;
use std::convert::Infallible;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use serde_json::Value;
use stint_apiserver::Clock;
use tracing::warn;

use crate::cluster::Kept;
use crate::deadlines::Deadlines;
use crate::feed::{News, whole};
use crate::pace::{now, reached, shown};
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::Key;

/// How many Events are deleted at once.
const AT_ONCE: usize = 16;

/// Deletes Events when their time is over, for ever.
pub(crate) async fn run(client: Client, kept: Kept, clock: Clock) -> Infallible {
    let names = resource::core("events");
    let mut feed = whole(resource::api(&client, names, None));
    let mut roll = Roll::new(kept);
    let mut queue = Queue::default();
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(news) = feed.next() => roll.note(news, clock.now()),
            Some((key, settled)) = works.next() => {
                // What a refusal was about is known when it is tried again.
                queue.settle(key, settled, now());
            }
            () = shown(&clock, roll.deadlines.next()) => {}
            () = reached(queue.due_at()) => {}
        }
        while let Some(key) = roll.take(clock.now()) {
            queue.add(key);
        }
        while works.len() < AT_ONCE
            && let Some(key) = queue.take(now())
        {
            let api = resource::api(&client, names, Some(&key.namespace));
            let version = roll.versions.get(&key).cloned();
            works.push(async move {
                let settled = match version {
                    None => Settled::Done,
                    Some(version) => delete(&api, &key, version).await,
                };
                (key, settled)
            });
        }
    }
}

/// The Events there are.
struct Roll {
    ttl: SignedDuration,
    most: usize,
    deadlines: Deadlines<Key>,
    versions: HashMap<Key, Preconditions>,
    /// In the midst of a list nobody knows how many there are.
    is_complete: bool,
}

impl Roll {
    fn new(kept: Kept) -> Self {
        Roll {
            ttl: SignedDuration::try_from(kept.event_ttl).unwrap_or(SignedDuration::MAX),
            most: kept.events,
            deadlines: Deadlines::default(),
            versions: HashMap::new(),
            is_complete: false,
        }
    }

    fn note(&mut self, news: News<DynamicObject>, now: Timestamp) {
        match news {
            News::Began => {
                self.deadlines.clear();
                self.versions.clear();
                self.is_complete = false;
            }
            News::Seen(event) => {
                let key = Key::of(&event.metadata);
                let time = last_said(&event).unwrap_or(now);
                let due = time.checked_add(self.ttl).unwrap_or(Timestamp::MAX);
                self.deadlines.set(key.clone(), due);
                let (uid, resource_version) = (event.metadata.uid, event.metadata.resource_version);
                self.versions.insert(key, Preconditions { uid, resource_version });
            }
            News::Gone(event) => {
                let key = Key::of(&event.metadata);
                self.deadlines.remove(&key);
                self.versions.remove(&key);
            }
            News::Complete => self.is_complete = true,
        }
    }

    /// One that is to go.
    fn take(&mut self, now: Timestamp) -> Option<Key> {
        if self.is_complete && self.deadlines.len() > self.most {
            return self.deadlines.take_first();
        }
        self.deadlines.take_due(now)
    }
}

/// When an Event was last said: the latest of the times that it tells.
fn last_said(event: &DynamicObject) -> Option<Timestamp> {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let data = &event.data;
    let told = [&data["lastTimestamp"], &data["eventTime"], &data["series"]["lastObservedTime"]];
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    told.into_iter().filter_map(time).chain(created).max()
}

/// Deletes an Event as it was last seen. If it was said again meanwhile, the watch tells.
async fn delete(api: &kube::Api<DynamicObject>, key: &Key, version: Preconditions) -> Settled {
    let params = DeleteParams::default().preconditions(version);
    match api.delete(&key.name, &params).await {
        Ok(_) => Settled::Done,
        Err(error) => match Refusal::of(&error) {
            Refusal::NotFound | Refusal::Conflict => Settled::Done,
            Refusal::AlreadyExists | Refusal::Terminating | Refusal::Expired | Refusal::Other => {
                warn!(event = ?key, error = words(&error), "it cannot be deleted now");
                Settled::Failed
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn event(name: &str, data: Value) -> News<DynamicObject> {
        let mut event = json!({
            "metadata": {
                "namespace": "n",
                "name": name,
                "creationTimestamp": "1970-01-01T00:00:10Z",
            },
        });
        event.as_object_mut().expect("an object").extend(data.as_object().expect("data").clone());
        News::Seen(serde_json::from_value(event).expect("an Event"))
    }

    fn taken(roll: &mut Roll, second: i64) -> Vec<String> {
        std::iter::from_fn(|| roll.take(at(second))).map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn an_event_goes_a_while_after_it_was_last_said() {
        let kept = Kept { event_ttl: Duration::from_secs(5), ..Kept::default() };
        let mut roll = Roll::new(kept);
        roll.note(event("created", json!({})), at(0));
        roll.note(event("again", json!({"lastTimestamp": "1970-01-01T00:00:12Z"})), at(0));
        roll.note(event("exact", json!({"eventTime": "1970-01-01T00:00:11.5Z"})), at(0));
        let series = json!({"series": {"lastObservedTime": "1970-01-01T00:00:20.000001Z"}});
        roll.note(event("series", series), at(0));
        assert_eq!(taken(&mut roll, 14), [""; 0]);
        assert_eq!(taken(&mut roll, 15), ["created"]);
        assert_eq!(taken(&mut roll, 17), ["exact", "again"]);
        assert_eq!(taken(&mut roll, 26), ["series"]);
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut roll = Roll::new(Kept { events: 2, ..Kept::default() });
        for (name, second) in [("c", 13), ("a", 11), ("d", 14), ("b", 12)] {
            let time = format!("1970-01-01T00:00:{second}Z");
            roll.note(event(name, json!({"lastTimestamp": time})), at(0));
        }
        assert_eq!(taken(&mut roll, 20), [""; 0], "the list goes on");
        roll.note(News::Complete, at(0));
        assert_eq!(taken(&mut roll, 20), ["a", "b"]);
    }
}
