//! A runtime whose containers do what their command says: `sleep 5 exit 1`, `forever`,
//! `polite`, `stubborn`, `say hello exit 0`, `sleep 3 vanish`.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use stint_node::{
    Clock, Container, ContainerSpec, Ending, ExecOutcome, Exit, Runtime, RuntimeError, Sandbox,
    SandboxSpec, Signal, Stdio,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How long a container takes to start whose command begins with `slow`.
const SLOW_START: Duration = Duration::from_secs(5);

/// What has happened, with the second at which it did.
#[derive(Clone, Debug)]
pub(crate) struct Fake {
    clock: Clock,
    began: Instant,
    history: Arc<Mutex<Vec<(f64, String)>>>,
    specs: Arc<Mutex<Vec<ContainerSpec>>>,
    sandboxes: Arc<Mutex<Vec<SandboxSpec>>>,
    leftovers: Arc<Mutex<Vec<String>>>,
    cannot_mount: Arc<AtomicBool>,
    gone: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new(clock: Clock) -> Self {
        Fake {
            clock,
            began: Instant::now(),
            history: Arc::default(),
            specs: Arc::default(),
            sandboxes: Arc::default(),
            leftovers: Arc::default(),
            cannot_mount: Arc::default(),
            gone: Arc::default(),
        }
    }

    /// Pretends that an earlier process has left this Pod running.
    pub(crate) fn leave(&self, uid: &str) {
        self.leftovers.lock().expect("nobody panics here").push(uid.to_owned());
    }

    /// Pretends that nothing can be mounted on this machine.
    pub(crate) fn forbid_mounts(&self) {
        self.cannot_mount.store(true, Ordering::Relaxed);
    }

    /// All that has happened, in order.
    pub(crate) fn history(&self) -> Vec<String> {
        self.timed().into_iter().map(|(_, what)| what).collect()
    }

    /// The same with times in seconds.
    pub(crate) fn timed(&self) -> Vec<(f64, String)> {
        self.history.lock().expect("nobody panics here").clone()
    }

    /// When something has happened for the first time.
    pub(crate) fn at(&self, wanted: &str) -> f64 {
        let timed = self.timed();
        let found = timed.iter().find(|(_, what)| what == wanted);
        found.unwrap_or_else(|| panic!("{wanted} never happened: {timed:#?}")).0
    }

    /// What the first container of this name was asked to be.
    pub(crate) fn spec(&self, name: &str) -> ContainerSpec {
        let specs = self.specs.lock().expect("nobody panics here");
        specs.iter().find(|spec| spec.name == name).expect("it was asked for").clone()
    }

    pub(crate) fn sandboxes(&self) -> Vec<SandboxSpec> {
        self.sandboxes.lock().expect("nobody panics here").clone()
    }

    /// How many sandboxes were closed or dropped.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    fn note(&self, what: String) {
        let at = self.began.elapsed().as_secs_f64();
        self.history.lock().expect("nobody panics here").push((at, what));
    }
}

impl Runtime for Fake {
    fn make_sandbox(
        &self,
        spec: SandboxSpec,
    ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>> {
        self.sandboxes.lock().expect("nobody panics here").push(spec);
        let made: Box<dyn Sandbox> = Box::new(FakeSandbox { fake: self.clone() });
        std::future::ready(Ok(made)).boxed()
    }

    fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>> {
        let found = self.leftovers.lock().expect("nobody panics here").clone();
        std::future::ready(Ok(found)).boxed()
    }

    fn uses_images(&self) -> bool {
        false
    }

    fn no_mounts(&self) -> Option<String> {
        self.cannot_mount.load(Ordering::Relaxed).then(|| "not on this machine".to_owned())
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}

#[derive(Debug)]
struct FakeSandbox {
    fake: Fake,
}

impl Drop for FakeSandbox {
    fn drop(&mut self) {
        self.fake.gone.fetch_add(1, Ordering::Relaxed);
    }
}

impl Sandbox for FakeSandbox {
    fn start(
        &self,
        spec: ContainerSpec,
        output: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Container>, RuntimeError>> {
        let fake = self.fake.clone();
        async move {
            let name = spec.name.clone();
            if spec.command[0] == "nonsense" {
                return Err(RuntimeError::CannotRun {
                    reason: "StartError",
                    exit_code: 128,
                    message: "there is no program nonsense".to_owned(),
                });
            }
            if spec.command[0] == "unsupported" {
                return Err(RuntimeError::Unsupported("not on this machine".to_owned()));
            }
            if spec.command[0] == "slow" {
                tokio::time::sleep(SLOW_START).await;
            }
            fake.note(format!("start {name}"));
            assert_ne!(spec.command[0], "panic", "as the test wants it");
            fake.specs.lock().expect("nobody panics here").push(spec.clone());
            let (signals, inbox) = mpsc::unbounded_channel();
            let (exited, exit) = watch::channel(None);
            tokio::spawn(live(fake.clone(), spec, output, inbox, exited));
            let (started_at, began) = (fake.clock.now(), Instant::now());
            let container: Box<dyn Container> =
                Box::new(FakeContainer { fake, name, started_at, began, signals, exit });
            Ok(container)
        }
        .boxed()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

/// Lives as the command says.
async fn live(
    fake: Fake,
    spec: ContainerSpec,
    output: Stdio,
    mut inbox: mpsc::UnboundedReceiver<Signal>,
    exited: watch::Sender<Option<Exit>>,
) {
    let is_polite = spec.command.iter().any(|word| word == "polite");
    let is_stubborn = spec.command.iter().any(|word| word == "stubborn");
    let mut stdout = std::fs::File::from(output.stdout);
    let act = async {
        let mut words = spec.command.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().expect("the script goes on").as_str();
            match word.as_str() {
                "sleep" => {
                    let seconds = next().parse().expect("seconds");
                    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                }
                "say" => writeln!(stdout, "{}", next()).expect("somebody listens"),
                "exit" => return Ending::Code(next().parse().expect("a code")),
                "vanish" => return Ending::Lost,
                "slow" => {}
                _ => std::future::pending().await,
            }
        }
        Ending::Code(0)
    };
    let told = async {
        loop {
            match inbox.recv().await {
                Some(Signal::Kill) | None => return Ending::Signal(9),
                Some(Signal::Terminate) if is_polite => return Ending::Code(0),
                Some(Signal::Terminate) if !is_stubborn => return Ending::Signal(15),
                Some(_) => {}
            }
        }
    };
    let ending = tokio::select! {
        ending = act => ending,
        ending = told => ending,
    };
    drop((stdout, output.stderr));
    fake.note(format!("end {} {}", spec.name, ending.code()));
    let exit = Exit { ending, at: fake.clock.now(), out_of_memory: false };
    exited.send_replace(Some(exit));
}

#[derive(Debug)]
struct FakeContainer {
    fake: Fake,
    name: String,
    started_at: Timestamp,
    began: Instant,
    signals: mpsc::UnboundedSender<Signal>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Container for FakeContainer {
    fn started_at(&self) -> Timestamp {
        self.started_at
    }

    fn wait(&self) -> BoxFuture<'_, Exit> {
        let mut exit = self.exit.clone();
        async move {
            let exit = exit.wait_for(Option::is_some).await.expect("it says how it ended");
            exit.expect("it was waited for")
        }
        .boxed()
    }

    fn signal(&self, signal: Signal) {
        self.fake.note(format!("{signal:?} {}", self.name));
        let _ = self.signals.send(signal);
    }

    /// `ok`, `bad`, `bad-before 5`, `bad-after 5` (seconds since the start), `take 5`.
    fn exec(
        &self,
        command: Vec<String>,
        limit: Option<Duration>,
        _keep: usize,
    ) -> BoxFuture<'_, Result<ExecOutcome, RuntimeError>> {
        self.fake.note(format!("exec {} {}", self.name, command.join(" ")));
        let age = self.began.elapsed().as_secs_f64();
        async move {
            let number = command.get(1).and_then(|text| text.parse::<f64>().ok());
            let number = number.unwrap_or(0.0);
            let is_good = match command[0].as_str() {
                "bad" => false,
                "bad-before" => age >= number,
                "bad-after" => age < number,
                "take" => {
                    let taken = Duration::from_secs_f64(number);
                    if let Some(limit) = limit.filter(|limit| *limit < taken) {
                        tokio::time::sleep(limit).await;
                        return Ok(ExecOutcome { ending: None, output: Vec::new() });
                    }
                    tokio::time::sleep(taken).await;
                    true
                }
                _ => true,
            };
            let code = i32::from(!is_good);
            Ok(ExecOutcome { ending: Some(Ending::Code(code)), output: Vec::new() })
        }
        .boxed()
    }
}
