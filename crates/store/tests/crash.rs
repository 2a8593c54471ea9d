//! kill -9 at random moments under load: no acknowledged write is lost, no half transaction is
//! ever seen, and revisions only grow.
//!
//! The test starts itself as a child. The child's writers each own two keys and move them on
//! together, one transaction after the other, and say so on a pipe once it is acknowledged. The
//! parent reads for a while, kills, opens the folder and looks.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use stint_store::{Condition, Options, Page, Revision, Store, Write};

const FOLDER: &str = "STINT_STORE_CRASH_FOLDER";
/// A start reads the whole journal, so folders that have been through a lot make slow rounds.
const FOLDERS: usize = 20;
const ROUNDS_EACH: usize = 10;
const WRITERS: usize = 8;
/// Each round reads up to this many acknowledgements before it kills.
const MOST_ACKNOWLEDGED: u64 = 300;
/// A process that is to be killed while it opens the store gets up to this long.
const OPENING: Duration = Duration::from_millis(60);
/// What is written first to every tenth folder: just short of the 64 MB at which fjall starts
/// a new journal, so that this happens under fire, too.
const ALMOST_A_JOURNAL: usize = 63_800_000;

/// Small, so that tables are written and merged, and the floor rises, all the time.
fn options() -> Options {
    Options { window_changes: 500, write_buffer_bytes: 256 * 1024, ..Options::default() }
}

/// A value that tells its writer and step, and is too long for a torn one to look whole.
fn value(writer: usize, step: u64) -> String {
    format!("{step}:{}", format!("{writer}-{step} ").repeat(40))
}

fn step_of(value: &[u8]) -> u64 {
    let text = str::from_utf8(value).expect("values are text");
    text.split_once(':').expect("values start with their step").0.parse().expect("a number")
}

#[test]
fn two_hundred_kills_under_load_lose_no_acknowledged_write() {
    let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    println!("seed {seed}");
    let mut random = Random(seed);
    for number in 0..FOLDERS {
        let folder = tempfile::tempdir().expect("a folder");
        let filled = number % 10 == 9;
        if filled {
            fill_journal(folder.path());
        }
        let second_journal = folder.path().join("data/1.jnl");
        let mut before = State::default();
        let mut round = 0;
        while round < ROUNDS_EACH || (filled && !second_journal.exists()) {
            round += 1;
            // A quarter of the rounds end before the first acknowledgement: while it opens, and
            // in a folder's first round while it is made.
            let opening = random.below(4) == 0;
            let enough = if opening { 0 } else { 1 + random.below(MOST_ACKNOWLEDGED) };
            let longest = if opening { OPENING } else { Duration::from_micros(500) };
            let pause = longest.mul_f64(random.below(1000) as f64 / 1000.0);
            let acknowledged = run_and_kill(folder.path(), enough, pause);
            let after = State::read(folder.path());
            after.check(round, &before, &acknowledged);
            before = after;
        }
    }
}

/// Makes a store whose journal is almost full.
fn fill_journal(folder: &Path) {
    let store = Store::open(folder, options()).expect("an empty folder");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let size = 100_000;
        for _ in 0..ALMOST_A_JOURNAL / size {
            store.write(Write::create("/filler", vec![7; size])).await.expect("there is room");
            store.write(Write::delete("/filler", Condition::Any)).await.expect("it is there");
        }
    });
}

/// Runs a child until it has acknowledged `enough` steps, and kills it in the midst of more.
/// Answers the last acknowledged step and revision of each writer.
fn run_and_kill(folder: &Path, enough: u64, pause: Duration) -> HashMap<usize, (u64, Revision)> {
    let mut child = spawn(folder);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut acknowledged = HashMap::new();
    let mut count = 0;
    let mut note = |line: String| {
        let Some(numbers) = line.strip_prefix("ack ") else { return false };
        let mut numbers = numbers.split(' ').map(|n| n.parse::<u64>());
        let (Some(Ok(writer)), Some(Ok(step)), Some(Ok(revision)), Some(Ok(0))) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        acknowledged.insert(writer as usize, (step, Revision::new(revision)));
        true
    };
    while count < enough {
        let line = lines.next().expect("the child writes until it is killed");
        count += u64::from(note(line.expect("the child writes text")));
    }
    let since = Instant::now();
    while since.elapsed() < pause {
        std::hint::spin_loop();
    }
    child.kill().expect("it is running");
    child.wait().expect("it was killed");
    // What was acknowledged before the kill is still in the pipe. The last line may be cut off.
    for line in lines.map_while(Result::ok) {
        note(line);
    }
    acknowledged
}

fn spawn(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("a test has a file"))
        .args(["--exact", "the_child_of_this_test_does_nothing_unless_it_is_one", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can start itself")
}

#[test]
fn the_child_of_this_test_does_nothing_unless_it_is_one() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime").block_on(async {
        let store = Store::open(folder, options()).expect("what was killed opens again");
        let writers = (0..WRITERS).map(|writer| tokio::spawn(work(store.clone(), writer)));
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("a writer goes on until it is killed");
        }
    });
}

/// Moves the writer's two keys on for ever. Every seventh step removes and recreates them.
async fn work(store: Store, writer: usize) {
    let [left, right] = keys(writer);
    let mut step = store.get(&left).map_or(0, |entry| step_of(&entry.value));
    loop {
        step += 1;
        let mut writes = Vec::new();
        for key in [&left, &right] {
            if step.is_multiple_of(7) {
                writes.push(Write::delete(key.as_str(), Condition::Present));
            }
            writes.push(Write::put(key.as_str(), Condition::Any, value(writer, step)));
        }
        let changes = store.transact(writes).await.expect("nothing is in the way");
        let revision = changes.last().expect("there were writes").revision;
        // One write call, so that a kill cuts at most the last line; the 0 ends it.
        let line = format!("ack {writer} {step} {revision} 0\n");
        std::io::stdout().write_all(line.as_bytes()).expect("the parent reads");
    }
}

fn keys(writer: usize) -> [String; 2] {
    [format!("/left/{writer}"), format!("/right/{writer}")]
}

/// What is found after a kill.
#[derive(Debug)]
struct State {
    revision: Revision,
    steps: HashMap<usize, u64>,
}

impl Default for State {
    fn default() -> Self {
        State { revision: Revision::EMPTY, steps: HashMap::new() }
    }
}

impl State {
    fn read(folder: &Path) -> Self {
        let store = Store::open(folder, options()).expect("what was killed opens again");
        let mut steps = HashMap::new();
        for writer in 0..WRITERS {
            let [left, right] = keys(writer).map(|key| store.get(&key));
            let (Some(left), Some(right)) = (&left, &right) else {
                assert_eq!(left, right, "half a transaction of writer {writer}");
                continue;
            };
            let step = step_of(&left.value);
            assert_eq!(left.value, value(writer, step), "writer {writer} wrote another value");
            assert_eq!(left.value, right.value, "half a transaction of writer {writer}");
            steps.insert(writer, step);
        }
        let all = store.list("", Page::default()).expect("the newest can be listed");
        assert_eq!(all.entries.len(), 2 * steps.len(), "nothing else was written");
        State { revision: store.revision(), steps }
    }

    fn check(&self, round: usize, before: &State, acknowledged: &HashMap<usize, (u64, Revision)>) {
        assert!(self.revision >= before.revision, "round {round}: revisions only grow");
        for writer in 0..WRITERS {
            let found = self.steps.get(&writer).copied().unwrap_or(0);
            let known = before.steps.get(&writer).copied().unwrap_or(0);
            let (step, revision) =
                acknowledged.get(&writer).copied().unwrap_or((known, before.revision));
            assert!(self.revision >= revision, "round {round}: {revision} was acknowledged");
            // The step after the last acknowledged one was under way. It may be there.
            assert!(
                found == step || found == step + 1,
                "round {round}: writer {writer} is at {found}, {step} was acknowledged"
            );
        }
    }
}

/// Splitmix64: enough to choose moments.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}
