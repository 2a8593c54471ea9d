//! The store as its users see it, one promise at a time.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stint_store::{
    Condition, MAX_KEY_BYTES, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, MAX_VALUE_BYTES,
    Options, Page, Revision, Store, StoreError, Write,
};

fn put(key: &str, value: &str) -> Write {
    Write::put(key, Condition::Any, value.to_owned())
}

#[tokio::test]
async fn a_value_is_found_under_its_key_with_the_revisions_it_was_created_and_modified_at() {
    let store = Store::in_memory(Options::default());
    let created = store.write(Write::create("/a", "1")).await.expect("there is no a");
    store.write(put("/b", "2")).await.expect("nothing is in the way");
    let modified = store.write(put("/a", "3")).await.expect("nothing is in the way");
    let entry = store.get("/a").expect("it was put");
    assert_eq!(entry.value, "3");
    assert_eq!((entry.created, entry.modified), (created.revision, modified.revision));
    assert_eq!(modified.before.as_ref().expect("there was one").value, "1");
    let old = store.get_at("/a", created.revision).expect("it is kept");
    assert_eq!(old.expect("it was there").value, "1");
}

#[tokio::test]
async fn the_second_of_two_writers_that_read_the_same_revision_is_refused() {
    let store = Store::in_memory(Options::default());
    let read = store.write(put("/a", "1")).await.expect("nothing is in the way").revision;
    let first = Write::put("/a", Condition::At(read), "2");
    let first = store.write(first).await.expect("it is at what was read");
    let second = Write::put("/a", Condition::At(read), "3");
    let error = store.write(second).await.expect_err("it has moved on");
    let StoreError::Conflict { current: Some(current), .. } = &error else { panic!("{error:?}") };
    assert_eq!(current.modified, first.revision);
    assert_eq!(error.to_string(), "/a: it must be at revision 2, but it is stored at revision 3");
    assert_eq!(store.revision(), first.revision, "a refused write takes no revision");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_many_increment_loses_no_increment() {
    const TASKS: u64 = 16;
    const EACH: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    store.write(put("/counter", "0")).await.expect("nothing is in the way");
    let increment = |store: Store| async move {
        let mut done = 0;
        while done < EACH {
            let entry = store.get("/counter").expect("it is never deleted");
            let text = str::from_utf8(&entry.value).expect("it is text");
            let next = text.parse::<u64>().expect("it is a number") + 1;
            let at = Condition::At(entry.modified);
            match store.write(Write::put("/counter", at, next.to_string())).await {
                Ok(change) => {
                    let read = store.get("/counter").expect("it is never deleted").modified;
                    assert!(read >= change.revision, "one reads what one wrote");
                    done += 1;
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(increment(store.clone()))).collect();
    for task in tasks {
        task.await.expect("an incrementer does not panic");
    }
    drop(store);
    let store = Store::open(folder.path(), Options::default()).expect("it is whole");
    assert_eq!(store.get("/counter").expect("it is there").value, (TASKS * EACH).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_beside_writers_show_whole_transactions_as_of_their_revision() {
    // More keys than are looked at under one hold of the lock, and a window so small that it
    // passes by while a list is under way.
    const PAIRS: usize = 1500;
    let options = Options { window_changes: 100, ..Options::default() };
    let store = Store::in_memory(options);
    let pair = |number: usize, value: usize| {
        ["/left/", "/right/"].map(|side| put(&format!("{side}{number:05}"), &value.to_string()))
    };
    for number in 0..PAIRS {
        store.transact(pair(number, 0).to_vec()).await.expect("nothing is in the way");
    }
    let lister = std::thread::spawn({
        let store = store.clone();
        move || {
            let mut last = Revision::EMPTY;
            for _ in 0..30 {
                let listing = store.list("/", Page::default()).expect("the newest");
                assert!(listing.revision >= last, "time does not go back");
                last = listing.revision;
                assert_eq!(listing.entries.len(), 2 * PAIRS);
                let (left, right) = listing.entries.split_at(PAIRS);
                for (left, right) in left.iter().zip(right) {
                    assert_eq!(left.value, right.value, "half a transaction");
                    assert!(right.modified <= listing.revision);
                }
            }
        }
    });
    let mut value = 0;
    while !lister.is_finished() {
        value += 1;
        store.transact(pair(value % PAIRS, value).to_vec()).await.expect("nothing is in the way");
    }
    lister.join().expect("every list is consistent");
}

#[tokio::test]
async fn watchers_share_each_change_and_see_their_prefix_only() {
    let store = Store::in_memory(Options::default());
    let mut all = store.watch("", Revision::EMPTY).expect("nothing happened yet");
    let mut some = store.watch("/a/", Revision::EMPTY).expect("nothing happened yet");
    let written = store.write(put("/a/1", "x")).await.expect("nothing is in the way");
    store.write(put("/b/1", "y")).await.expect("nothing is in the way");
    let (all, some) = (all.next().await.expect("kept"), some.next().await.expect("kept"));
    assert_eq!((all.len(), some.len()), (2, 1));
    assert!(Arc::ptr_eq(&all[0], &some[0]), "they are shared");
    assert!(Arc::ptr_eq(&all[0], &written), "also with the writer");
}

#[tokio::test]
async fn a_waiting_watch_is_woken_and_knows_what_it_has_seen_even_if_nothing_matches() {
    let store = Store::in_memory(Options::default());
    let mut watch = store.watch("/a/", Revision::EMPTY).expect("nothing happened yet");
    let other = store.write(put("/b/1", "x")).await.expect("nothing is in the way");
    {
        let mut next = std::pin::pin!(watch.next());
        assert!(poll_once(next.as_mut()).await.is_none(), "nothing happened to /a/");
    }
    assert_eq!(watch.seen(), other.revision);
    let waiting = tokio::spawn(async move { watch.next().await });
    let written = store.write(put("/a/1", "x")).await.expect("nothing is in the way");
    let seen = waiting.await.expect("a watch does not panic").expect("kept");
    assert_eq!(seen[0].revision, written.revision);
}

/// Polls once, and answers what came of it.
async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn a_watch_that_falls_out_of_the_window_says_so() {
    for options in [
        Options { window_changes: 10, ..Options::default() },
        Options { window_bytes: 2048, ..Options::default() },
    ] {
        let store = Store::in_memory(options);
        let mut watch = store.watch("", Revision::EMPTY).expect("nothing happened yet");
        for number in 0..30 {
            store.write(put("/a", &number.to_string())).await.expect("nothing is in the way");
        }
        let error = watch.next().await.expect_err("it is far behind");
        assert!(matches!(error, StoreError::Compacted { .. }), "{error:?}");
        let mut watch = store.watch("", store.oldest()).expect("it is kept");
        let kept = watch.next().await.expect("it is kept").len();
        assert!((5..=15).contains(&kept), "{kept}");
    }
}

#[tokio::test]
async fn a_watch_of_what_is_quiet_sleeps_through_the_rest_and_never_falls_out_of_the_window() {
    let store = Store::in_memory(Options { window_changes: 10, ..Options::default() });
    let mut watch = store.watch("/a/", Revision::EMPTY).expect("nothing happened yet");
    let woken = Arc::new(Woken::default());
    let waker = std::task::Waker::from(woken.clone());
    let mut context = std::task::Context::from_waker(&waker);
    let mut next = Box::pin(watch.next());
    assert!(next.as_mut().poll(&mut context).is_pending(), "nothing happened");
    for number in 0..50 {
        store.write(put("/b", &number.to_string())).await.expect("nothing is in the way");
    }
    assert_eq!(woken.0.load(Ordering::SeqCst), 0, "nothing happened to /a/");
    let written = store.write(put("/a/1", "x")).await.expect("nothing is in the way");
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    let seen = next.await.expect("it has not fallen behind");
    assert_eq!(seen.iter().map(|change| change.revision).collect::<Vec<_>>(), [written.revision]);
}

/// Counts how often it is woken.
#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_a_restart_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    let first = store.write(put("/a", "1")).await.expect("nothing is in the way");
    let second = store.write(put("/a", "2")).await.expect("nothing is in the way");
    let third = store.write(Write::delete("/a", Condition::Any)).await.expect("it is there");
    store.close().await.expect("it was open");
    let store = Store::open(folder.path(), Options::default()).expect("it is whole");
    let mut watch = store.watch("", first.revision).expect("it is kept");
    let seen = watch.next().await.expect("it is kept");
    assert_eq!(seen, [second, third], "with what was before and after");
}

#[tokio::test]
async fn a_closed_store_refuses_writes_ends_watches_and_goes_on_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    let mut watch = store.watch("", Revision::EMPTY).expect("nothing happened yet");
    store.write(put("/a", "1")).await.expect("nothing is in the way");
    assert!(!store.is_closed());
    store.close().await.expect("it was open");
    assert!(store.is_closed());
    store.close().await.expect("closing twice is closing once");
    assert!(matches!(store.write(put("/a", "2")).await, Err(StoreError::Closed)));
    assert!(matches!(store.compact(Revision::EMPTY).await, Err(StoreError::Closed)));
    assert_eq!(store.get("/a").expect("it is there").value, "1");
    assert_eq!(watch.next().await.expect("what happened is delivered").len(), 1);
    assert!(matches!(watch.next().await, Err(StoreError::Closed)));
    Store::open(folder.path(), Options::default()).expect("the folder is free");
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let store = Store::in_memory(Options::default());
    let refused = |error: StoreError| matches!(error, StoreError::TooLarge { .. });
    let key = put(&"k".repeat(MAX_KEY_BYTES + 1), "");
    assert!(refused(store.write(key).await.expect_err("the key is too long")));
    let value = Write::create("/a", vec![0; MAX_VALUE_BYTES + 1]);
    assert!(refused(store.write(value).await.expect_err("the value is too long")));
    let many = vec![put("/a", ""); MAX_TRANSACTION_WRITES + 1];
    assert!(refused(store.transact(many).await.expect_err("they are too many")));
    let value = vec![0; MAX_VALUE_BYTES];
    let much = MAX_TRANSACTION_BYTES / MAX_VALUE_BYTES + 1;
    let much = vec![Write::put("/a", Condition::Any, value); much];
    assert!(refused(store.transact(much).await.expect_err("they are too large")));
    let largest = Write::create("k".repeat(MAX_KEY_BYTES), vec![0; MAX_VALUE_BYTES]);
    store.write(largest).await.expect("it is just small enough");
    assert_eq!(store.transact(Vec::new()).await.expect("nothing is in the way"), []);
}

#[test]
fn a_folder_of_another_format_or_with_something_else_in_it_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Store::open(folder.path(), Options::default());
    drop(open().expect("an empty folder"));
    std::fs::write(folder.path().join("format"), "stint store, format 2\n").expect("room");
    let error = open().expect_err("it is from the future");
    assert!(matches!(error, StoreError::UnknownFormat { found: 2, .. }), "{error:?}");

    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("thesis.txt"), "three years of work").expect("room");
    let error = Store::open(folder.path(), Options::default()).expect_err("it is not empty");
    assert!(error.to_string().contains("it holds \"thesis.txt\""), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1);
}

#[test]
fn nobody_else_can_look_into_a_store() {
    let outer = tempfile::tempdir().expect("a folder");
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    let folder = outer.path().join("missing");
    let empty = outer.path().join("empty");
    std::fs::create_dir(&empty).expect("there is room");
    set(&empty, 0o755);
    for folder in [&folder, &empty] {
        let open = || drop(Store::open(folder, Options::default()).expect("it is a store"));
        open();
        assert_eq!(mode(folder), 0o700, "a new one");
        let files = ["lock", "format", "mark"].map(|name| folder.join(name));
        for file in &files {
            assert_eq!(mode(file), 0o600, "{}", file.display());
            set(file, 0o644);
        }
        set(folder, 0o755);
        open();
        assert_eq!(mode(folder), 0o700, "one that was open to others");
        assert!(files.iter().all(|file| mode(file) == 0o600));
    }
    let strange = outer.path().join("strange");
    std::fs::create_dir_all(strange.join("data")).expect("there is room");
    set(&strange, 0o755);
    Store::open(&strange, Options::default()).expect_err("it has no format");
    assert_eq!(mode(&strange), 0o755, "what is not a store is left as it is");
}

#[tokio::test]
async fn dropping_the_last_handle_finishes_what_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    for number in 0..50 {
        // Polled once, a write is under way. Nobody waits for its answer.
        let mut write = Box::pin(store.write(put(&format!("/{number}"), "x")));
        poll_once(write.as_mut()).await;
    }
    drop(store);
    let store = Store::open(folder.path(), Options::default()).expect("it is whole");
    assert_eq!(store.count("/", None).expect("the newest"), 50);
}
