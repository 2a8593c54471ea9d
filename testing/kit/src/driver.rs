//! Gives Pods the fates that a test asks for.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::WatchEvent;
use tokio::task::JoinSet;

use crate::fate::{Fate, Place, Who};
use crate::follow::follow;
use crate::node::Node;
use crate::stage::Time;

type Fates = Arc<dyn Fn(&Who) -> Fate + Send + Sync>;

/// Drives Pods.
#[derive(Clone)]
pub struct Driver {
    fates: Fates,
    /// How many Pods there have been, by Job and index.
    seen: Arc<Mutex<HashMap<Place, usize>>>,
    held: Arc<Mutex<HashSet<String>>>,
}

impl Driver {
    /// Pods end as `fates` says.
    pub fn new(fates: impl Fn(&Who) -> Fate + Send + Sync + 'static) -> Self {
        Driver { fates: Arc::new(fates), seen: Arc::default(), held: Arc::default() }
    }

    /// From now on the new Pods of a Job run for ever, or end as they should.
    pub fn hold(&self, job: &str, is_held: bool) {
        let mut held = self.held.lock().expect("nobody panics here");
        if is_held {
            held.insert(job.to_owned())
        } else {
            held.remove(job)
        };
    }

    /// Drives the Pods of an API as long as `background` lives; what takes long takes `long`.
    pub fn start(&self, background: &mut JoinSet<()>, client: Client, clock: Time, long: Duration) {
        let node = Node::new(client.clone(), clock, long);
        background.spawn(self.clone().drive(client, node));
    }

    async fn drive(self, client: Client, node: Node) {
        let mut known: HashSet<String> = HashSet::new();
        let mut going: HashSet<String> = HashSet::new();
        let mut lives = JoinSet::new();
        let look = |event: WatchEvent<Pod>| {
            let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { return };
            while lives.try_join_next().is_some() {}
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if known.insert(uid.clone())
                && let Some(who) = self.who(&pod)
            {
                let fate = self.fate(&who);
                lives.spawn(node.clone().live(pod.clone(), fate));
            }
            if pod.metadata.deletion_timestamp.is_some()
                && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
                && going.insert(uid)
            {
                lives.spawn(node.clone().leave(pod));
            }
        };
        follow::<Pod>(client, "/api/v1/pods", look).await;
    }

    fn fate(&self, who: &Who) -> Fate {
        if self.held.lock().expect("nobody panics here").contains(&who.job) {
            return Fate::runs();
        }
        (self.fates)(who)
    }

    fn who(&self, pod: &Pod) -> Option<Who> {
        let labels = pod.metadata.labels.as_ref()?;
        let job = labels.get("job-name")?.clone();
        let index = labels.get("batch.kubernetes.io/job-completion-index");
        let index = index.and_then(|index| index.parse().ok());
        let mut seen = self.seen.lock().expect("nobody panics here");
        let count = seen.entry((job.clone(), index)).or_insert(0);
        let attempt = *count;
        *count += 1;
        let annotations = pod.metadata.annotations.as_ref();
        let key = "batch.kubernetes.io/job-index-failure-count";
        let failures = annotations.and_then(|it| it.get(key));
        let failures = failures.and_then(|count| count.parse().ok()).unwrap_or(0);
        Some(Who { job, index, attempt, failures })
    }
}
