//! The controller: news in, ledgers asked, calls out, outcomes settled. One task owns all of
//! it; feeds and calls are tasks of their own, and speak to it by messages.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use stint_api::view::ManagedBy;
use stint_ledger::metric::Metric;
use stint_ledger::op::{Applied, Op, OpId, OpKind, Outcome};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::answer::{Failure, Weather};
use crate::calls::{Answer, Calls, Listing, Target};
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::{Dispatch, Lane};
use crate::election::{Election, ElectionConfig};
use crate::events::{Again, EventCall, Events};
use crate::feed::{Feed, News};
use crate::health::{Health, Role};
use crate::job::{SeenJob, WireJob};
use crate::limit::Verb;
use crate::metrics::Metrics;
use crate::path;
use crate::pod::{SeenPod, WirePod};
use crate::refusals::{self, Refusals};
use crate::rival::Rival;
use crate::router::{Asked, Asker, JobUid, Router};
use crate::selection::Selection;
use crate::term::Term;
use crate::ticks::Ticks;
use crate::words::{Wish, Word};

/// How many messages of a feed may wait. Each is a batch; a feed that has to wait reads no
/// more, and its server holds what comes.
const MESSAGES: usize = 64;

/// How many messages and answers are taken in before the ledgers are asked: what comes
/// together is dealt with together.
const GULP: usize = 512;

/// How often a call is repeated that the server was too busy for, before the ledger is told.
const BUSY_REPEATS: u32 = 4;

/// The longest sleep, in case the clock of this machine is set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// How long the calls under way may take to end when the controller is stopped. Almost all take
/// milliseconds; one that hangs must not keep the Lease from the next replica, which is to go on
/// within two seconds. What is given up may still arrive: `term` says why that is harmless.
const FAREWELL: Duration = Duration::from_secs(1);

/// After how long without a status from the built-in controller it is no longer said to run beside
/// this one: it writes at every step of a Job, and the alert of docs/kubernetes.md looks back as far.
const RIVAL_QUIET: Duration = Duration::from_secs(600);

/// The name under which it is said that Jobs and Pods are apart.
const STORES: &str = "etcd";

/// The name under which another controller is in the way.
const RIVAL: &str = "kube-controller-manager";

/// Runs Jobs.
pub struct Controller {
    client: Client,
    config: Config,
    metrics: Metrics,
    health: Health,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Controller {
    /// A controller on an API. Calls must not be repeated by the client: `Client::new` on a
    /// plain service does not.
    pub fn new(client: Client, config: Config) -> Self {
        let health = Health::new(Ticks::system());
        Controller { client, config, metrics: Metrics::new(), health }
    }

    /// What it counts.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs Jobs until `shutdown` resolves. When this future is dropped everything stops at
    /// once, which is as safe: the API's objects are all the state there is.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        self.health.set_role(Role::Leader);
        let mut core = Core::new(&self, Term::for_ever());
        tokio::pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => {}
            () = core.run() => {}
        }
        core.finish_calls().await;
    }

    /// Runs Jobs whenever this replica leads, until `shutdown` resolves; then the calls under
    /// way are finished and the lease is given back.
    ///
    /// Whoever loses the lease forgets everything, with the calls under way, and begins anew as
    /// a standby: the API's objects are all the state there is.
    pub async fn run_elected(self, config: ElectionConfig, shutdown: impl Future<Output = ()>) {
        let (health, metrics) = (self.health.clone(), self.metrics.clone());
        let election = Election::new(self.client.clone(), config, health, metrics);
        let term = election.term();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut elected = JoinSet::new();
        elected.spawn(election.run(async { drop(stopped.await) }));
        tokio::pin!(shutdown);
        loop {
            let term = tokio::select! {
                () = &mut shutdown => break,
                term = term.begins() => term,
            };
            let mut core = Core::new(&self, term.clone());
            let is_stopped = tokio::select! {
                () = &mut shutdown => true,
                () = term.ends() => false,
                () = core.run() => unreachable!("it runs until it is dropped"),
            };
            if is_stopped {
                core.finish_calls().await;
                break;
            }
            core.feeds.shutdown().await;
            drop(core);
            self.rest();
        }
        self.rest();
        drop(stop);
        elected.join_next().await;
    }

    /// Nothing is run any more, and so there is nothing to tell of it.
    fn rest(&self) {
        self.health.rests();
        self.health.resolved(RIVAL);
        self.health.resolved(STORES);
        self.metrics.rests();
    }
}

struct Core {
    router: Router,
    dispatch: Dispatch<Work>,
    events: Events,
    calls: Calls,
    metrics: Metrics,
    health: Health,
    /// Whether it was said that Jobs and Pods are apart.
    has_told_of_stores: bool,
    /// Whether somebody else does the same, where that can be.
    rival: Option<Rival>,
    /// When it was last seen to do so.
    rival_seen: Option<Instant>,
    refusals: Refusals,
    /// Whether it stops: nothing is begun any more, and what was done is told.
    is_leaving: bool,
    clock: Clock,
    scopes: Vec<Option<String>>,
    jobs: mpsc::Receiver<(usize, News<SeenJob>)>,
    jobs_sender: mpsc::Sender<(usize, News<SeenJob>)>,
    pods: mpsc::Receiver<(usize, News<SeenPod>)>,
    pods_sender: mpsc::Sender<(usize, News<SeenPod>)>,
    feeds: JoinSet<()>,
    /// Which Pod feeds have been started.
    has_pods: Vec<bool>,
    /// How many lists have never been whole.
    lists_missing: usize,
    has_listed_pods: Vec<bool>,
    in_flight: JoinSet<Done>,
    listings: HashMap<Arc<str>, Listings>,
}

/// A call that waits or is under way.
#[derive(Debug)]
struct Work {
    lane: Lane,
    verb: Verb,
    repeats: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    Op(Target, Op),
    /// The Pods of some Jobs of a namespace.
    List(Arc<str>, Vec<Selection>),
    Tell(EventCall),
}

/// The Jobs that share a list of a namespace's Pods.
#[derive(Debug, Default)]
struct Listings {
    /// Those that the list under way is for.
    served: Vec<(JobUid, Asker)>,
    /// Those that came later, and need the next one.
    waiting: Vec<(JobUid, Asker)>,
}

/// A call that was answered.
#[derive(Debug)]
struct Done {
    job: JobUid,
    work: Work,
    took: Duration,
    result: Finished,
}

#[derive(Debug)]
enum Finished {
    Op(Answer),
    List(Result<Listing, Failure>),
    Tell(Result<(), Failure>),
}

impl Finished {
    fn weather(&self) -> Weather {
        match self {
            Finished::Op(answer) => answer.weather,
            Finished::List(Ok(_)) | Finished::Tell(Ok(())) => Weather::Fine,
            Finished::List(Err(failure)) | Finished::Tell(Err(failure)) => failure.weather(),
        }
    }

    /// How many requests it took: adopting a Pod asks for its Job first.
    fn sent(&self, what: &What) -> u32 {
        match (self, what) {
            (Finished::List(Ok(listing)), _) => listing.pages,
            (_, What::Op(_, Op { kind: OpKind::AdoptPod(_), .. })) => 2,
            (Finished::Op(_) | Finished::List(Err(_)) | Finished::Tell(_), _) => 1,
        }
    }

    fn is_success(&self) -> bool {
        match self {
            Finished::Op(answer) => matches!(answer.outcome, Outcome::Applied(_)),
            Finished::List(result) => result.is_ok(),
            Finished::Tell(result) => result.is_ok(),
        }
    }
}

impl Core {
    fn new(controller: &Controller, term: Term) -> Self {
        let Controller { client, config, metrics, health } = controller;
        let (client, metrics, health) = (client.clone(), metrics.clone(), health.clone());
        let scopes: Vec<Option<String>> = match config.namespaces.is_empty() {
            true => vec![None],
            false => config.namespaces.iter().cloned().map(Some).collect(),
        };
        let finalizer: Arc<str> = config.finalizer.as_str().into();
        let (jobs_sender, jobs) = mpsc::channel(MESSAGES);
        let (pods_sender, pods) = mpsc::channel(MESSAGES);
        Core {
            router: Router::new(config.settings(), finalizer.clone(), scopes.iter().cloned()),
            dispatch: Dispatch::new(config.max_inflight, config.qps, Instant::now()),
            events: Events::default(),
            calls: Calls { client, finalizer, timeout: config.call_timeout, term },
            metrics,
            health,
            has_told_of_stores: false,
            rival: (config.manages == ManagedBy::BuiltIn).then(Rival::default),
            rival_seen: None,
            refusals: Refusals::default(),
            is_leaving: false,
            clock: config.clock.clone(),
            has_pods: vec![false; scopes.len()],
            lists_missing: 2 * scopes.len(),
            has_listed_pods: vec![false; scopes.len()],
            scopes,
            jobs,
            jobs_sender,
            pods,
            pods_sender,
            feeds: JoinSet::new(),
            in_flight: JoinSet::new(),
            listings: HashMap::new(),
        }
    }

    async fn run(&mut self) {
        for scope in 0..self.scopes.len() {
            let feed: Feed<WireJob> = Feed {
                client: self.calls.client.clone(),
                path: path::jobs(self.scopes[scope].as_deref()),
                finalizer: self.calls.finalizer.clone(),
                scope,
                listener: self.jobs_sender.clone(),
                health: self.health.clone(),
            };
            self.feeds.spawn(feed.run());
        }
        loop {
            self.ask_ledgers();
            self.start_calls();
            self.metrics.set_depths(
                self.dispatch.waiting(),
                self.dispatch.in_flight(),
                self.dispatch.limit(),
            );
            self.metrics.set_held(self.router.jobs_held(), self.router.pods_held());
            self.forget_rival();
            self.health.turned(self.lists_missing);
            let nap = self.nap();
            tokio::select! {
                Some((scope, news)) = self.jobs.recv() => self.take_jobs(scope, news),
                Some((scope, news)) = self.pods.recv() => self.take_pods(scope, news),
                Some(done) = self.in_flight.join_next() => self.take_done(done),
                Some(ended) = self.feeds.join_next() => panic!("a feed has ended: {ended:?}"),
                () = tokio::time::sleep(nap) => {}
            }
            self.gulp();
        }
    }

    /// Takes in what else is there.
    fn gulp(&mut self) {
        for _ in 0..GULP {
            let mut is_idle = true;
            if let Some(done) = self.in_flight.try_join_next() {
                self.take_done(done);
                is_idle = false;
            }
            if let Ok((scope, news)) = self.jobs.try_recv() {
                self.take_jobs(scope, news);
                is_idle = false;
            }
            if let Ok((scope, news)) = self.pods.try_recv() {
                self.take_pods(scope, news);
                is_idle = false;
            }
            if is_idle {
                return;
            }
        }
    }

    fn take_jobs(&mut self, scope: usize, news: News<SeenJob>) {
        let is_listed = matches!(news, News::Listed(_));
        self.look_for_rival(scope, &news);
        self.router.take_jobs(scope, news);
        for metric in self.router.take_external() {
            self.metrics.record("", metric);
        }
        // Pods come after the first list of Jobs: most of them have one that is known then.
        if is_listed && !std::mem::replace(&mut self.has_pods[scope], true) {
            self.lists_missing -= 1;
            let feed: Feed<WirePod> = Feed {
                client: self.calls.client.clone(),
                path: path::all_pods(self.scopes[scope].as_deref()),
                finalizer: self.calls.finalizer.clone(),
                scope,
                listener: self.pods_sender.clone(),
                health: self.health.clone(),
            };
            self.feeds.spawn(feed.run());
        }
    }

    fn take_pods(&mut self, scope: usize, news: News<SeenPod>) {
        let is_listed = matches!(news, News::Listed(_));
        self.router.take_pods(scope, news);
        if is_listed && !std::mem::replace(&mut self.has_listed_pods[scope], true) {
            self.lists_missing -= 1;
        }
    }

    /// Says so if the built-in controller runs the same Jobs.
    fn look_for_rival(&mut self, scope: usize, news: &News<SeenJob>) {
        let found = self.rival.as_mut().and_then(|rival| rival.note(scope, news));
        let Some((namespace, job)) = found else {
            return;
        };
        self.metrics.rival_wrote();
        self.rival_seen = Some(Instant::now());
        let why = "the built-in Job controller runs beside this one, which is there to replace it: \
                   start kube-controller-manager with --controllers=*,-job-controller, or let this \
                   one run only the Jobs that name it in spec.managedBy";
        if self.health.trouble(RIVAL, why) {
            tracing::error!(
                namespace,
                job,
                "kube-controller-manager has just written the status of this Job: {why}"
            );
        }
    }

    /// Takes back that the built-in controller runs the same Jobs, once it has been quiet for long.
    fn forget_rival(&mut self) {
        if self.rival_seen.take_if(|seen| seen.elapsed() >= RIVAL_QUIET).is_some()
            && self.health.resolved(RIVAL)
        {
            let minutes = RIVAL_QUIET.as_secs() / 60;
            tracing::info!("kube-controller-manager has written no status for {minutes} minutes");
        }
    }

    /// How long to sleep if nothing happens.
    fn nap(&self) -> Duration {
        if self.router.has_dirty() {
            return Duration::ZERO;
        }
        let now = self.clock.now();
        let wake = self.router.wake_at().into_iter().chain(self.events.wake_at()).min();
        let wake = wake.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        let dispatch = self.dispatch.wake_at(Instant::now());
        let dispatch = dispatch.map(|at| at.saturating_duration_since(Instant::now()));
        wake.into_iter().chain(dispatch).chain([LONGEST_SLEEP]).min().unwrap_or(LONGEST_SLEEP)
    }

    fn ask_ledgers(&mut self) {
        let now = self.clock.now();
        for uid in self.router.take_dirty(now) {
            let began = std::time::Instant::now();
            let Some(asked) = self.router.ask(&uid, now) else { continue };
            self.metrics.synced(asked.mode, &asked.ops, began.elapsed());
            self.take_ops(&uid, asked);
        }
        for Again { job_uid, call, repeats } in self.events.take_due(now) {
            self.tell(&job_uid, call, repeats);
        }
    }

    fn take_ops(&mut self, uid: &JobUid, asked: Asked) {
        let Asked { target, mode, ops, is_over, is_torn } = asked;
        if is_torn {
            self.tell_of_stores(&target);
        }
        for op in ops {
            match op.kind {
                // Jobs of others are counted when they are seen, once.
                OpKind::Record(Metric::External { .. }) => {}
                OpKind::Record(metric) => self.metrics.record(mode, metric),
                OpKind::EmitEvent(event) => {
                    if let Some(call) = self.events.say(&target, &event, self.clock.now()) {
                        self.tell(uid, call, 0);
                    }
                }
                _ if self.is_leaving => {}
                OpKind::LookUpPods => self.share_listing(&target, op.id),
                kind => {
                    let (lane, verb) = manner(&kind);
                    let op = Op { id: op.id, kind };
                    let job = &*target.job_name;
                    tracing::debug!(job, op = op.id.0, "asked to {}", Wish(&op.kind));
                    let what = What::Op(target.clone(), op);
                    self.dispatch.push(uid, lane, Work { lane, verb, repeats: 0, what });
                }
            }
        }
        if is_over {
            for call in self.events.forget(uid, self.clock.now()) {
                self.tell(uid, call, 0);
            }
        }
    }

    /// Says, once, that this API cannot be worked with.
    fn tell_of_stores(&mut self, target: &Target) {
        let why = "the API server keeps Jobs and Pods in different etcds (--etcd-servers-overrides): their \
                   resourceVersions cannot be compared, and Jobs may stand still after a leader has changed; \
                   keep both in one";
        self.health.trouble(STORES, why);
        if !std::mem::replace(&mut self.has_told_of_stores, true) {
            let (namespace, job) = (&*target.namespace, &*target.job_name);
            tracing::error!(
                namespace,
                job,
                "the Pods were looked up after the status of this Job was seen, and are older: {why}"
            );
        }
    }

    fn tell(&mut self, uid: &JobUid, call: EventCall, repeats: u32) {
        let (lane, verb) = (Lane::Event, Verb::Event);
        let what = What::Tell(call);
        self.dispatch.push(uid, lane, Work { lane, verb, repeats, what });
    }

    /// Lets a Job wait for a list of its namespace's Pods that begins after this.
    fn share_listing(&mut self, target: &Target, id: OpId) {
        let listings = self.listings.entry(target.namespace.clone()).or_default();
        let asker = Asker { ledger: target.ledger, op: id };
        listings.waiting.push((target.job_uid.clone(), asker));
        if listings.served.is_empty() {
            listings.served = std::mem::take(&mut listings.waiting);
            self.list(&target.namespace);
        }
    }

    fn list(&mut self, namespace: &Arc<str>) {
        let served = self.listings.get(namespace).into_iter().flat_map(|it| &it.served);
        let jobs = served.map(|(uid, _)| self.router.selection(uid)).collect();
        let what = What::List(namespace.clone(), jobs);
        let work = Work { lane: Lane::First, verb: Verb::List, repeats: 0, what };
        // It waits as if it were a Job of its own.
        self.dispatch.push(&format!("pods of {namespace}").into(), Lane::First, work);
    }

    fn start_calls(&mut self) {
        let now = self.clock.now();
        while let Some((job, work)) = self.dispatch.next(Instant::now()) {
            let is_late = self.is_leaving && !matches!(work.what, What::Tell(_));
            if is_late || !self.is_wanted(&job, &work, now) {
                self.dispatch.take_back();
                continue;
            }
            let calls = self.calls.clone();
            self.in_flight.spawn(async move {
                let began = Instant::now();
                let result = match &work.what {
                    What::Op(target, op) => Finished::Op(calls.run(target, &op.kind).await),
                    What::List(namespace, jobs) => {
                        Finished::List(calls.list_pods(namespace, jobs).await)
                    }
                    What::Tell(call) => Finished::Tell(calls.tell(call).await),
                };
                Done { job, work, took: began.elapsed(), result }
            });
        }
    }

    /// Whether a call that had to wait is still to be made. Pods are created only as long as
    /// their Job wants them; everything else does no harm.
    fn is_wanted(&mut self, job: &JobUid, work: &Work, now: Timestamp) -> bool {
        match &work.what {
            What::Op(target, Op { id, kind: OpKind::CreatePod(_) }) => {
                let asker = Asker { ledger: target.ledger, op: *id };
                self.router.still_wants(job, asker, now)
            }
            What::Op(..) | What::List(..) | What::Tell(_) => true,
        }
    }

    fn take_done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let done = done.expect("calls do not panic, and are cancelled with us only");
        let Done { job, mut work, took, result } = done;
        let weather = result.weather();
        self.metrics.called(work.verb, result.is_success(), took);
        let sent = result.sent(&work.what);
        self.dispatch.done(Instant::now(), &job, work.verb, (took, sent), weather);
        if matches!(weather, Weather::Busy(_)) && work.repeats < BUSY_REPEATS {
            work.repeats += 1;
            let lane = work.lane;
            return self.dispatch.put_back(&job, lane, work);
        }
        match (work.what, result) {
            (What::Op(target, op), Finished::Op(answer)) => {
                let (job_name, id) = (&*target.job_name, op.id.0);
                tracing::debug!(job = job_name, op = id, "{}", Word(&answer.outcome));
                if let Some(seen) = answer.unreadable {
                    self.router.cannot_read(&job, *seen);
                }
                self.note_refusal(&job, &target, &op.kind, (&answer.outcome, weather));
                let asker = Asker { ledger: target.ledger, op: op.id };
                let template = answer.template.as_deref();
                self.router.settle_with(&job, asker, answer.outcome, template);
            }
            (What::List(namespace, _), Finished::List(listing)) => {
                self.take_listing(&namespace, listing);
            }
            (What::Tell(call), Finished::Tell(result)) => {
                if let Err(failure) = result {
                    let lost = Again { job_uid: job, call, repeats: work.repeats };
                    self.events.take_failure(lost, &failure, self.clock.now());
                }
            }
            (What::Op(..) | What::List(..) | What::Tell(_), _) => {
                unreachable!("a call finishes as what it is")
            }
        }
    }

    fn note_refusal(
        &mut self,
        uid: &JobUid,
        target: &Target,
        kind: &OpKind,
        (outcome, weather): (&Outcome, Weather),
    ) {
        if let Outcome::Refused(refusal) = outcome {
            let (verb, reason) = refusals::words(kind, refusal, weather);
            self.metrics.refused(verb, reason);
        }
        if let Some(why) = refusals::rejection(kind, outcome, weather)
            && self.refusals.is_news(uid, Instant::now())
        {
            let (namespace, job) = (&*target.namespace, &*target.job_name);
            tracing::warn!(namespace, job, why, "the API server refused to {}", Wish(kind));
        }
    }

    fn take_listing(&mut self, namespace: &Arc<str>, listing: Result<Listing, Failure>) {
        let Some(listings) = self.listings.get_mut(namespace) else { return };
        let served = std::mem::take(&mut listings.served);
        listings.served = std::mem::take(&mut listings.waiting);
        let goes_on = !listings.served.is_empty();
        match listing {
            Ok(Listing { pods, version, .. }) => {
                for ((uid, id), pods) in served.into_iter().zip(pods) {
                    let pods = Outcome::Applied(Applied::Pods { pods, version });
                    self.router.settle(&uid, id, pods);
                }
            }
            Err(failure) => {
                for (uid, id) in served {
                    self.router.settle(&uid, id, failure.clone().outcome());
                }
            }
        }
        if goes_on {
            self.list(namespace);
        } else {
            self.listings.remove(namespace);
        }
    }

    /// Lets the calls under way end, and tells of what came of them.
    async fn finish_calls(&mut self) {
        self.feeds.shutdown().await;
        self.is_leaving = true;
        if tokio::time::timeout(FAREWELL, self.say_farewell()).await.is_err() {
            tracing::debug!("some calls were still under way");
        }
    }

    async fn say_farewell(&mut self) {
        let mut has_told_all = false;
        loop {
            self.ask_ledgers();
            self.start_calls();
            let pause = self.dispatch.wake_at(Instant::now());
            tokio::select! {
                Some(done) = self.in_flight.join_next() => self.take_done(done),
                // Events that have to wait, as the server has asked for it or by `--qps`.
                () = tokio::time::sleep_until(pause.unwrap_or_else(Instant::now)), if pause.is_some() => {}
                else => {
                    if std::mem::replace(&mut has_told_all, true) {
                        return;
                    }
                    for Again { job_uid, call, repeats } in self.events.take_last(self.clock.now()) {
                        self.tell(&job_uid, call, repeats);
                    }
                }
            }
        }
    }
}

/// Where an op waits, and what it is like.
fn manner(kind: &OpKind) -> (Lane, Verb) {
    match kind {
        OpKind::CreatePod(_) => (Lane::Create, Verb::Create),
        OpKind::DeletePod(_) => (Lane::Pod, Verb::Delete),
        OpKind::RemoveFinalizer(_) | OpKind::AdoptPod(_) | OpKind::ReleasePod(_) => {
            (Lane::Pod, Verb::Patch)
        }
        OpKind::WriteStatus { .. } => (Lane::First, Verb::Status),
        OpKind::LookUpJob | OpKind::LookUpPod(_) => (Lane::First, Verb::Get),
        OpKind::LookUpPods => (Lane::First, Verb::List),
        OpKind::EmitEvent(_) | OpKind::Record(_) => (Lane::Event, Verb::Event),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Pending, pending};
    use std::task::{Context, Poll};

    use http::{Request, Response};
    use kube::client::Body;
    use tower_service::Service;

    use super::*;
    use crate::feed::Change;
    use crate::rival::BUILT_IN;
    use crate::rival::tests::job;

    /// A server that never answers.
    #[derive(Clone)]
    struct Silent;

    impl Service<Request<Body>> for Silent {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Pending<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            pending()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_built_in_controller_runs_beside_this_one_until_it_has_been_quiet_for_long() {
        let controller = Controller::new(Client::new(Silent, "default"), Config::default());
        let health = controller.health();
        let mut core = Core::new(&controller, Term::for_ever());
        let news = core.jobs_sender.clone();
        let mut running = JoinSet::new();
        running.spawn(async move { core.run().await });
        let says = || health.ready().unwrap_or_else(|text| text).contains(RIVAL);
        for second in 1..3 {
            let written = Change::Seen(job(BUILT_IN, "status", second));
            news.send((0, News::Changes(vec![written]))).await.expect("it listens");
            tokio::time::sleep(RIVAL_QUIET - LONGEST_SLEEP).await;
            assert!(says());
        }
        tokio::time::sleep(2 * LONGEST_SLEEP).await;
        assert!(!says());
    }
}
