//! What is told to those who watch a Pod: what becomes an Event of the API, and what only raises
//! the count of one that is there. It must not know how they are sent.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::calls::PodRef;
use crate::life::Said;

/// How many different things are told of one Pod. What comes after is in the node's own log.
const DISTINCT: usize = 20;

/// How often the count of an Event is written.
const COUNT_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// The longest message: as long as the API allows.
const MESSAGE_BYTES: usize = 1024;

/// What to ask of the API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventCall {
    /// A new Event.
    Create(Value),
    /// A higher count of one that is there.
    Count { name: String, body: Value },
}

/// What has been told of one Pod.
#[derive(Debug, Default)]
pub(crate) struct Events {
    told: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    reason: &'static str,
    message: String,
    name: String,
    count: u32,
    last: Timestamp,
    written: Timestamp,
    is_written: bool,
}

impl Events {
    /// Takes in what is to be told; what to ask of the API at once, if anything.
    pub(crate) fn say(
        &mut self,
        pod: &PodRef,
        node: &str,
        said: &Said,
        now: Timestamp,
    ) -> Option<EventCall> {
        let message = cut(&said.message);
        let known =
            self.told.iter_mut().find(|it| it.reason == said.reason && it.message == message);
        if let Some(series) = known {
            series.count += 1;
            series.last = now;
            series.is_written = false;
            let is_due = now.duration_since(series.written) >= COUNT_EVERY;
            return is_due.then(|| series.write(now));
        }
        if self.told.len() >= DISTINCT {
            tracing::info!(pod = pod.name, reason = said.reason, message, "too much to tell");
            return None;
        }
        let place = self.told.len();
        let name = format!("{}.{:x}.{place}", pod.name, now.as_nanosecond());
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": pod.namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod.name,
                "namespace": pod.namespace, "uid": pod.uid},
            "type": if said.is_warning { "Warning" } else { "Normal" },
            "reason": said.reason, "message": message, "count": 1,
            "firstTimestamp": seconds(now), "lastTimestamp": seconds(now),
            "source": {"component": "kubelet", "host": node},
            "reportingComponent": "kubelet", "reportingInstance": node,
        });
        self.told.push(Series {
            reason: said.reason,
            message: message.to_owned(),
            name,
            count: 1,
            last: now,
            written: now,
            is_written: true,
        });
        Some(EventCall::Create(body))
    }

    /// What was counted and not written yet.
    pub(crate) fn rest(&mut self, now: Timestamp) -> Vec<EventCall> {
        let rest = self.told.iter_mut().filter(|series| !series.is_written);
        rest.map(|series| series.write(now)).collect()
    }
}

impl Series {
    fn write(&mut self, now: Timestamp) -> EventCall {
        self.written = now;
        self.is_written = true;
        let body = json!({"count": self.count, "lastTimestamp": seconds(self.last)});
        EventCall::Count { name: self.name.clone(), body }
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The beginning of a message that is too long.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_said_again_is_counted_and_the_last_count_is_not_lost() {
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        let pod = PodRef { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
        let said = Said { is_warning: true, reason: "BackOff", message: "m".to_owned() };
        let mut events = Events::default();
        let Some(EventCall::Create(body)) = events.say(&pod, "n", &said, at(0)) else {
            panic!("the first is told")
        };
        assert_eq!(body["count"], 1);
        assert_eq!(events.say(&pod, "n", &said, at(5)), None);
        let Some(EventCall::Count { name, body: counted }) = events.say(&pod, "n", &said, at(10))
        else {
            panic!("after a while the count is written")
        };
        assert_eq!((counted["count"].as_u64(), &body["metadata"]["name"]), (Some(3), &json!(name)));
        assert_eq!(events.say(&pod, "n", &said, at(11)), None);
        assert_eq!(events.rest(at(12)).len(), 1);
        assert!(events.rest(at(12)).is_empty());
    }

    #[test]
    fn one_pod_cannot_tell_without_end() {
        let now = Timestamp::from_second(0).expect("a time");
        let pod = PodRef { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
        let mut events = Events::default();
        let say = |i: usize| {
            let message = format!("{i}{}", "ä".repeat(1000));
            events.say(&pod, "n", &Said { is_warning: true, reason: "Failed", message }, now)
        };
        assert_eq!((0..100).filter_map(say).count(), DISTINCT);
    }
}
