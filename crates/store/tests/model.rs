//! Any sequence of writes, deletes, transactions, compactions and restarts gives the reads,
//! lists and watches that a plain model gives.

use proptest::prelude::*;
use std::collections::BTreeMap;
use stint_store::{Change, Condition, Options, Page, Revision, Store, StoreError, Watch, Write};

const KEYS: [&str; 7] = ["/a", "/a/1", "/a/2", "/a/2/x", "/ab", "/b/1", "ü"];
const PREFIXES: [&str; 6] = ["", "/", "/a", "/a/", "/b/1", "/nothing"];
const WINDOW: usize = 20;

#[derive(Clone, Debug)]
enum Step {
    Transact(Vec<Planned>),
    /// To this much of the way from the oldest to the newest revision, or beyond it.
    Compact(u64),
    Restart,
}

#[derive(Clone, Debug)]
struct Planned {
    key: usize,
    condition: Wish,
    value: Option<u8>,
}

/// A condition, before it is known what is stored.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Absent,
    Present,
    Any,
    AtCurrent,
    AtWrong,
}

fn steps(restarts: u32) -> impl Strategy<Value = Vec<Step>> {
    let wish = prop_oneof![
        1 => Just(Wish::Absent),
        1 => Just(Wish::Present),
        5 => Just(Wish::Any),
        3 => Just(Wish::AtCurrent),
        1 => Just(Wish::AtWrong),
    ];
    let planned = (0..KEYS.len(), wish, prop::option::weighted(0.7, any::<u8>()))
        .prop_map(|(key, condition, value)| Planned { key, condition, value });
    let step = prop_oneof![
        20 => prop::collection::vec(planned.clone(), 1).prop_map(Step::Transact),
        5 => prop::collection::vec(planned, 0..5).prop_map(Step::Transact),
        2 => (0..12_u64).prop_map(Step::Compact),
        restarts => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_is_like_the_model(steps in steps(0)) {
        let options = Options { window_changes: WINDOW, ..Options::default() };
        check(|| Store::in_memory(options.clone()), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_store_on_disk_is_like_the_model_also_after_restarts(steps in steps(3)) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            window_changes: WINDOW,
            // So small that tables are written all the time.
            write_buffer_bytes: 1024,
            ..Options::default()
        };
        check(|| Store::open(folder.path(), options.clone()).expect("it is whole"), &steps);
    }
}

fn check(open: impl Fn() -> Store, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut store = open();
    let mut model = Model::default();
    let mut followers: Vec<Follower> =
        PREFIXES.iter().map(|prefix| Follower::new(&store, prefix)).collect();
    for step in steps {
        match step {
            Step::Transact(planned) => {
                let writes: Vec<Write> = model.resolve(planned);
                let done = runtime.block_on(store.transact(writes.clone()));
                model.transact(&writes, done);
            }
            Step::Compact(part) => {
                let to = model.floor + (model.newest() - model.floor) * part / 10;
                let oldest = runtime.block_on(store.compact(Revision::new(to)));
                model.compact(to, oldest);
            }
            Step::Restart => {
                drop(store);
                store = open();
                followers.iter_mut().for_each(|follower| follower.resume(&store));
            }
        }
        followers.iter_mut().for_each(|follower| follower.catch_up(&model));
        // Comparing everything takes longer than a step does.
        if !matches!(step, Step::Transact(_)) {
            model.compare(&store);
        }
    }
    model.compare(&store);
}

/// One write as the model remembers it: the values are those of [`Seen`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct Happened {
    revision: u64,
    key: String,
    before: Option<Seen>,
    after: Option<Seen>,
}

/// Value, created, modified.
type Seen = (Vec<u8>, u64, u64);

/// The whole history, and the oldest revision that is kept.
#[derive(Debug)]
struct Model {
    history: Vec<Happened>,
    floor: u64,
}

impl Default for Model {
    fn default() -> Self {
        Model { history: Vec::new(), floor: Revision::EMPTY.get() }
    }
}

impl Model {
    fn newest(&self) -> u64 {
        self.history.last().map_or(Revision::EMPTY.get(), |happened| happened.revision)
    }

    fn state(&self, revision: u64) -> BTreeMap<String, Seen> {
        let mut state = BTreeMap::new();
        for happened in self.history.iter().filter(|happened| happened.revision <= revision) {
            match &happened.after {
                Some(seen) => state.insert(happened.key.clone(), seen.clone()),
                None => state.remove(&happened.key),
            };
        }
        state
    }

    fn resolve(&self, planned: &[Planned]) -> Vec<Write> {
        let state = self.state(u64::MAX);
        let resolve = |planned: &Planned| {
            let key = KEYS[planned.key];
            let current = state.get(key).map_or(7, |(_, _, modified)| *modified);
            let condition = match planned.condition {
                Wish::Absent => Condition::Absent,
                Wish::Present => Condition::Present,
                Wish::Any => Condition::Any,
                Wish::AtCurrent => Condition::At(Revision::new(current)),
                Wish::AtWrong => Condition::At(Revision::new(current + 1)),
            };
            match planned.value {
                Some(value) => Write::put(key, condition, vec![value; usize::from(value)]),
                None => Write::delete(key, condition),
            }
        };
        planned.iter().map(resolve).collect()
    }

    /// Does what the store did, if it should have done it.
    fn transact(
        &mut self,
        writes: &[Write],
        done: Result<Vec<std::sync::Arc<Change>>, StoreError>,
    ) {
        let newest_before = self.newest();
        let length_before = self.history.len();
        let mut state = self.state(u64::MAX);
        for write in writes {
            let before = state.get(&*write.key).cloned();
            let holds = match write.condition {
                Condition::Absent => before.is_none(),
                Condition::Present => before.is_some(),
                Condition::Any => true,
                Condition::At(revision) => {
                    before.as_ref().is_some_and(|(_, _, modified)| *modified == revision.get())
                }
            };
            let stint_store::Operation::Put(value) = &write.operation else {
                if !holds || before.is_none() {
                    return self.refuse(length_before, before, done);
                }
                state.remove(&*write.key);
                self.happen(write, before, None);
                continue;
            };
            if !holds {
                return self.refuse(length_before, before, done);
            }
            let revision = self.newest() + 1;
            let created = before.as_ref().map_or(revision, |(_, created, _)| *created);
            let after = (value.to_vec(), created, revision);
            state.insert(write.key.to_string(), after.clone());
            self.happen(write, before, Some(after));
        }
        let done = done.expect("every condition holds");
        let done: Vec<_> = done.iter().map(|change| happened(change)).collect();
        assert_eq!(done, self.history[length_before..]);
        if !writes.is_empty() {
            let kept = self.newest().saturating_sub(WINDOW as u64).min(newest_before);
            self.floor = self.floor.max(kept);
        }
    }

    fn happen(&mut self, write: &Write, before: Option<Seen>, after: Option<Seen>) {
        let (revision, key) = (self.newest() + 1, write.key.to_string());
        self.history.push(Happened { revision, key, before, after });
    }

    fn refuse<T: std::fmt::Debug>(
        &mut self,
        length_before: usize,
        before: Option<Seen>,
        done: Result<T, StoreError>,
    ) {
        self.history.truncate(length_before);
        match done {
            Err(StoreError::Conflict { current, .. }) => {
                assert_eq!(current.as_deref().map(seen), before, "a conflict shows what is there");
            }
            other => panic!("a condition does not hold: {other:?}"),
        }
    }

    fn compact(&mut self, to: u64, oldest: Result<Revision, StoreError>) {
        if to > self.newest() {
            assert!(matches!(oldest, Err(StoreError::Future { .. })), "{oldest:?}");
            return;
        }
        self.floor = self.floor.max(to);
        assert_eq!(oldest.expect("it has happened").get(), self.floor);
    }

    /// Compares everything that can be read.
    fn compare(&self, store: &Store) {
        assert_eq!(store.revision().get(), self.newest());
        assert_eq!(store.oldest().get(), self.floor);
        for revision in self.floor..=self.newest() {
            let state = self.state(revision);
            let at = Revision::new(revision);
            for key in KEYS {
                let found = store.get_at(key, at).expect("it is kept");
                assert_eq!(found.as_deref().map(seen).as_ref(), state.get(key));
            }
            for prefix in PREFIXES {
                self.compare_list(store, prefix, at, &state);
                let mut watch = store.watch(prefix, at).expect("it is kept");
                let found: Vec<_> = watch
                    .take()
                    .expect("it is kept")
                    .iter()
                    .map(|change| happened(change))
                    .collect();
                let expected = |happened: &&Happened| {
                    happened.revision > revision && happened.key.starts_with(prefix)
                };
                let expected: Vec<_> = self.history.iter().filter(expected).cloned().collect();
                assert_eq!(found, expected, "changes of {prefix:?} after {revision}");
                assert_eq!(watch.seen().get(), self.newest(), "also if nothing matches");
            }
        }
        let (past, future) = (Revision::new(self.floor - 1), Revision::new(self.newest() + 1));
        assert!(matches!(store.get_at("/a", past), Err(StoreError::Compacted { .. })));
        assert!(matches!(store.watch("/a", past), Err(StoreError::Compacted { .. })));
        assert!(matches!(store.count("/a", Some(past)), Err(StoreError::Compacted { .. })));
        assert!(matches!(store.get_at("/a", future), Err(StoreError::Future { .. })));
        assert!(matches!(store.watch("/a", future), Err(StoreError::Future { .. })));
        assert!(matches!(store.count("/a", Some(future)), Err(StoreError::Future { .. })));
    }

    fn compare_list(
        &self,
        store: &Store,
        prefix: &str,
        at: Revision,
        state: &BTreeMap<String, Seen>,
    ) {
        let expected: Vec<_> = state.iter().filter(|(key, _)| key.starts_with(prefix)).collect();
        assert_eq!(store.count(prefix, Some(at)).expect("it is kept"), expected.len());
        let pages = [(None, true), (Some(1), true), (Some(3), true), (Some(3), false)];
        for (limit, counts_rest) in pages {
            let mut after = None;
            let mut found = Vec::new();
            loop {
                let page = Page { at: Some(at), after: after.clone(), limit, counts_rest };
                let listing = store.list(prefix, page).expect("it is kept");
                assert_eq!(listing.revision, at);
                let Some(last) = listing.entries.last() else { break };
                after = Some(last.key.clone());
                found.extend(
                    listing.entries.iter().map(|entry| (entry.key.to_string(), seen(entry))),
                );
                let left = expected.len() - found.len();
                assert_eq!(listing.remaining, if counts_rest { left } else { left.min(1) });
                assert_eq!(listing.has_more(), left > 0);
            }
            let found: Vec<_> = found.iter().map(|(key, seen)| (key, seen)).collect();
            assert_eq!(found, expected, "{prefix:?} as of {at}");
        }
    }
}

/// A watcher that follows from the first revision on, through restarts.
#[derive(Debug)]
struct Follower {
    prefix: &'static str,
    watch: Watch,
    delivered: Vec<Happened>,
}

impl Follower {
    fn new(store: &Store, prefix: &'static str) -> Self {
        let watch = store.watch(prefix, Revision::EMPTY).expect("nothing happened yet");
        Follower { prefix, watch, delivered: Vec::new() }
    }

    fn resume(&mut self, store: &Store) {
        self.watch = store.watch(self.prefix, self.watch.seen()).expect("it is still kept");
    }

    fn catch_up(&mut self, model: &Model) {
        let news = self.watch.take().expect("it was never behind");
        self.delivered.extend(news.iter().map(|change| happened(change)));
        let expected = |happened: &&Happened| happened.key.starts_with(self.prefix);
        let expected: Vec<_> = model.history.iter().filter(expected).cloned().collect();
        assert_eq!(self.delivered, expected);
    }
}

fn happened(change: &Change) -> Happened {
    Happened {
        revision: change.revision.get(),
        key: change.key.to_string(),
        before: change.before.as_deref().map(seen),
        after: change.after.as_deref().map(seen),
    }
}

fn seen(entry: &stint_store::Entry) -> Seen {
    (entry.value.to_vec(), entry.created.get(), entry.modified.get())
}
