//! The logs of a Job as they grow, also of Pods that come later, until the Job has ended and all
//! is said.
//!
//! The logs of the last two runs of a container are kept. One that is started again soon may have had a
//! run that was never seen: so with each run the one before is read, if it was not followed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use k8s_openapi::api::batch::v1::Job;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::past::{broken, has_not_begun, no_pod, refusal, tell_waiting};
use super::said::{Said, say};
use super::wanted::Wanted;
use crate::away::Away;
use crate::calls::{CallError, Calls, Seen, watch_jobs, watch_pods};
use crate::job_lookup::{job_watch_path, pods_of, pods_path};
use crate::log_lines::{Part, open, pump};
use crate::pod_sight::PodSight;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::is_ended;
use crate::spool::Patience;

/// Most logs that are followed at once. Each is a connection, and a server has room for some
/// hundreds; the others wait until one of these ends.
const MAX_FOLLOWED: usize = 256;

/// Most Pods of which is said what they wait for.
const MAX_WAITING: usize = 5;

/// How much news may wait to be taken in.
const MAX_WAITING_NEWS: usize = 1024;

/// Why a Job is not followed to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the cluster does not answer any more: {0}")]
    Lost(String),
}

/// Follows a Job that has not ended. `pods` are those that are there now, in order.
pub(crate) async fn follow(
    calls: &Calls,
    job: &Job,
    pods: &[PodSight],
    wanted: &Arc<Wanted>,
    part: Part,
    said: Sender<Said>,
    is_full: watch::Receiver<bool>,
) -> Result<(), FollowError> {
    let speakers = pods.iter().filter(|pod| wanted.has(pod));
    let count = speakers.map(|pod| wanted.containers(pod).len()).sum();
    let mut follower = Follower {
        calls: calls.clone(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        wanted: wanted.clone(),
        has_prefix: wanted.needs_prefix(count, true),
        begun: HashMap::new(),
        streams: JoinSet::new(),
        room: Arc::new(Semaphore::new(MAX_FOLLOWED)),
        has_told_room: false,
        waiting: HashMap::new(),
        said,
        is_full,
    };
    if count == 0 {
        follower.tell_wait(job, pods).await;
    }
    for pod in pods {
        follower.observe(pod, part, Since::Start).await;
    }
    // Of those who begin from now on everything is new.
    let whole = Part { tail_lines: None, since_seconds: None, ..part };
    follower.until_the_end(job, whole).await?;
    // The end may be known before the last Pods are.
    for pod in pods_of(calls, job).await? {
        follower.observe(&pod, whole, Since::Later).await;
    }
    while follower.streams.join_next().await.is_some() {}
    Ok(())
}

struct Follower {
    calls: Calls,
    /// That of the Job.
    uid: String,
    wanted: Arc<Wanted>,
    has_prefix: bool,
    /// What has begun of the Pods that are there.
    begun: HashMap<String, BegunPod>,
    streams: JoinSet<()>,
    room: Arc<Semaphore>,
    has_told_room: bool,
    /// The Pods that have not begun, and what was said of why.
    waiting: HashMap<String, String>,
    said: Sender<Said>,
    is_full: watch::Receiver<bool>,
}

#[derive(Default)]
struct BegunPod {
    /// Containers that have begun.
    containers: HashMap<String, Begun>,
    /// Whether it has ended, for those who read what it has printed.
    is_over: Arc<AtomicBool>,
}

#[derive(Default)]
struct Begun {
    /// The number of the first run that is not followed yet.
    next_run: u32,
    /// Tells when what was followed of it is read.
    before: Option<oneshot::Receiver<()>>,
}

/// Since when a Pod is known: of those that were there at the start only the newest runs are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Start,
    Later,
}

/// A run of a container, and what is read before it.
struct Turn {
    run: u32,
    /// Whether the run before it was not followed.
    is_missed: bool,
    before: Option<oneshot::Receiver<()>>,
    read: oneshot::Sender<()>,
}

impl Follower {
    /// Takes in news until the Job has ended or is gone.
    async fn until_the_end(&mut self, job: &Job, part: Part) -> Result<(), FollowError> {
        let (sender, mut seen) = channel(MAX_WAITING_NEWS);
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let (job_path, pod_path) = (job_watch_path(namespace, name), pods_path(job));
        let client = self.calls.client();
        let mut watches = JoinSet::new();
        let (of_job, of_pods) = (client.clone(), client.clone());
        let news = sender.clone();
        watches.spawn(async move { watch_jobs(of_job, &job_path, news).await });
        watches.spawn(async move { watch_pods(of_pods, &pod_path, sender).await });
        let mut away = Away::default();
        while let Some(seen) = seen.recv().await {
            match seen {
                Seen::Pod(pod, _) if !pod.is_of(&self.uid) => {}
                Seen::Pod(pod, true) => self.forget(&pod),
                Seen::Pod(pod, false) => self.observe(&pod, part, Since::Later).await,
                Seen::Job(job, is_gone) => {
                    // Another of the same name is there only when this one has gone.
                    let is_other = job.metadata.uid.as_ref() != Some(&self.uid);
                    if is_gone || is_other || is_ended(&job) {
                        return Ok(());
                    }
                }
                Seen::Lost(why) => {
                    if away.is_for_good(Instant::now()) {
                        return Err(FollowError::Lost(why));
                    }
                }
            }
        }
        Ok(())
    }

    /// Says that there is nothing to show yet, and what is waited for.
    async fn tell_wait(&mut self, job: &Job, pods: &[PodSight]) {
        if pods.iter().any(|pod| self.wanted.has(pod)) {
            tell_waiting(&self.calls, pods, &self.wanted, false, &self.said).await;
        } else {
            say(&self.said, Said::Note(no_pod(job, &self.wanted))).await;
        }
        let text = format!("{}: waiting for a container to begin", self.wanted.title());
        say(&self.said, Said::Note(text)).await;
        for pod in pods.iter().filter(|pod| has_not_begun(pod)).take(MAX_WAITING) {
            let why = pod.why_waiting().unwrap_or_default();
            self.waiting.insert(pod.uid().to_owned(), why);
        }
    }

    /// Says what a Pod waits for that has not begun, once for each reason, and of some only.
    async fn tell_reason(&mut self, pod: &PodSight) {
        if !has_not_begun(pod) {
            self.waiting.remove(pod.uid());
            return;
        }
        let Some(why) = pod.why_waiting() else { return };
        let is_known = self.waiting.get(pod.uid()).is_some_and(|told| *told == why);
        let has_room = self.waiting.len() < MAX_WAITING || self.waiting.contains_key(pod.uid());
        if is_known || !has_room {
            return;
        }
        let text = printable(&format!("{} has not begun: {why}", pod.what()), MAX_MESSAGE_CHARS);
        say(&self.said, Said::Note(text)).await;
        self.waiting.insert(pod.uid().to_owned(), why);
    }

    /// A Pod was seen: what it says is followed from its beginning.
    async fn observe(&mut self, pod: &PodSight, part: Part, since: Since) {
        if !self.wanted.has(pod) {
            return;
        }
        self.tell_reason(pod).await;
        for (container, run) in self.wanted.containers(pod) {
            let begun = self.begun.entry(pod.uid().to_owned()).or_default();
            begun.is_over.store(!pod.is_under_way(), Ordering::Relaxed);
            let is_over = begun.is_over.clone();
            let of_container = begun.containers.entry(container.to_owned()).or_default();
            if of_container.next_run > run {
                continue;
            }
            let is_missed = since == Since::Later && of_container.next_run < run;
            of_container.next_run = run + 1;
            let (read, after) = oneshot::channel();
            let before = of_container.before.replace(after);
            let turn = Turn { run, is_missed, before, read };
            if self.streams.len() >= MAX_FOLLOWED && !self.has_told_room {
                self.has_told_room = true;
                let text = format!(
                    "note: {MAX_FOLLOWED} logs are followed at once; others wait until one of \
                     them ends. --index shows some of them"
                );
                say(&self.said, Said::Note(text)).await;
            }
            // Those that are over leave room for what they kept.
            while self.streams.try_join_next().is_some() {}
            self.begin(pod.clone(), container.to_owned(), part, turn, is_over);
        }
    }

    /// A Pod is gone: nothing of it begins any more.
    fn forget(&mut self, pod: &PodSight) {
        self.waiting.remove(pod.uid());
        self.begun.remove(pod.uid());
    }

    fn begin(
        &mut self,
        pod: PodSight,
        container: String,
        part: Part,
        turn: Turn,
        is_over: Arc<AtomicBool>,
    ) {
        let (room, said) = (self.room.clone(), self.said.clone());
        let client = self.calls.client().clone();
        let prefix = match self.has_prefix {
            true => self.wanted.prefix(&pod, &container),
            false => String::new(),
        };
        let patience = Patience { is_full: self.is_full.clone(), is_over };
        self.streams.spawn(async move {
            let Turn { run, is_missed, before, read } = turn;
            let mut place = room.acquire().await;
            // Both are open before either is read: with every new run an old one goes that nobody
            // has opened.
            let log = open(&client, &pod, &container, Part { run: Some(run), ..part }).await;
            let missed = match run.checked_sub(1).filter(|_| is_missed) {
                // Whoever does not know the number of a run knows the one before.
                Some(run) => {
                    let part = Part { run: Some(run), is_previous: true, follows: false, ..part };
                    open(&client, &pod, &container, part).await.ok()
                }
                None => None,
            };
            if let Some(mut before) = before
                && before.try_recv() == Err(TryRecvError::Empty)
            {
                // Those before may need the place to get there. Nobody else leaves it: all that wait
                // would open their logs before anybody reads one.
                drop(place);
                let _ = before.await;
                place = room.acquire().await;
            }
            if let Some(missed) = missed {
                let _ = pump(missed, &prefix, &said, patience.clone()).await;
            }
            let ended = match log {
                Ok(log) => {
                    pump(log, &prefix, &said, patience).await.map_err(|error| error.to_string())
                }
                Err(error) => Err(refusal(&error)),
            };
            drop(place);
            let _ = read.send(());
            if let Err(why) = ended {
                say(&said, broken(&pod, &container, &why)).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use clap::Parser;
    use futures_util::future::BoxFuture;
    use futures_util::stream::{BoxStream, StreamExt, once};
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::task::yield_now;
    use tower_service::Service;

    use super::*;
    use crate::logs_args::LogsArgs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LogsArgs,
    }

    /// Gives out logs with nothing in them that all end at the same moment.
    #[derive(Clone)]
    struct Logs {
        is_over: watch::Receiver<bool>,
        /// Each log that is open has a share.
        open: Arc<()>,
    }

    impl Service<Request<Body>> for Logs {
        type Response = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;
        type Error = Infallible;
        type Future = Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            let Logs { mut is_over, open } = self.clone();
            let end: BoxFuture<'static, ()> = Box::pin(async move {
                let _open = open;
                let _ = is_over.wait_for(|is_over| *is_over).await;
            });
            let nothing = once(end).filter_map(|()| ready(None));
            ready(Ok(Response::new(StreamBody::new(nothing.boxed()))))
        }
    }

    fn pod(index: usize, restarts: usize) -> PodSight {
        let status = json!([{"name": "main", "state": {"running": {}}, "restartCount": restarts}]);
        let metadata = json!({"name": format!("work-{index}"), "uid": index.to_string()});
        let pod = json!({"metadata": metadata, "status": {"containerStatuses": status}});
        serde_json::from_value(pod).expect("it is a Pod")
    }

    /// Whoever opens all of them before one is read has more connections than a server gives.
    #[tokio::test]
    async fn no_more_logs_are_open_than_are_followed_at_once() {
        let over = watch::Sender::new(false);
        let open = Arc::new(());
        let logs = Logs { is_over: over.subscribe(), open: open.clone() };
        let count = || Arc::strong_count(&open) - 2;
        let job: Job = serde_json::from_value(json!({"spec": {"template": {"spec":
            {"containers": [{"name": "main"}]}}}}))
        .expect("it is a Job");
        let args = Line::try_parse_from(["logs", "work"]).expect("it is well-formed").args;
        let (said, _heard) = channel(MAX_FOLLOWED);
        let mut follower = Follower {
            calls: Calls::new(Client::new(logs, "default")),
            uid: String::new(),
            wanted: Arc::new(Wanted::new(&job, &args).expect("it can be wanted")),
            has_prefix: true,
            begun: HashMap::new(),
            streams: JoinSet::new(),
            room: Arc::new(Semaphore::new(MAX_FOLLOWED)),
            has_told_room: false,
            waiting: HashMap::new(),
            said,
            is_full: watch::Sender::new(false).subscribe(),
        };
        let pods = 2 * MAX_FOLLOWED;
        for (restarts, since) in [(0, Since::Start), (1, Since::Later)] {
            over.send_replace(false);
            for index in 0..pods {
                follower.observe(&pod(index, restarts), Part::default(), since).await;
            }
            // Whatever can be done is done.
            for _ in 0..100 * pods {
                yield_now().await;
            }
            assert_eq!(count(), MAX_FOLLOWED, "with {restarts} restarts");
            over.send_replace(true);
            while follower.streams.join_next().await.is_some() {}
            assert_eq!(count(), 0, "with {restarts} restarts");
        }
    }
}
