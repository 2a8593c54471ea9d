//! Timings of the store. Prints a table; nothing is asserted.
//!
//! The folder is made where the build's files are, or in `STINT_BENCH_FOLDER`: temporary
//! folders are often in memory, where a sync costs nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stint_store::{Condition, Options, Page, Revision, Store, Write};

/// About the size of a Pod.
const VALUE_BYTES: usize = 3 * 1024;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    runtime.expect("a runtime").block_on(async {
        watchers().await;
        durable_writes(1, 2_000).await;
        durable_writes(64, 1_500).await;
        durable_writes(512, 200).await;
        starting().await;
        list_beside_writers().await;
    });
}

/// Writers that each overwrite keys of their own, one after the other.
async fn durable_writes(writers: usize, writes_each: usize) {
    let folder = folder();
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    let since = Instant::now();
    let latencies = write_all(&store, writers, writes_each).await;
    let took = since.elapsed();
    let rate = (writers * writes_each) as f64 / took.as_secs_f64();
    println!(
        "{rate:>12.0} durable writes of 3 KB a second with {writers} writers \
         (median {:.2?}, 99 % below {:.2?})",
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100],
    );
    store.close().await.expect("it was open");
}

/// Writes, and answers how long each took, in order.
async fn write_all(store: &Store, writers: usize, writes_each: usize) -> Vec<Duration> {
    let value = bytes::Bytes::from(value());
    let work = |writer: usize| {
        let (store, value) = (store.clone(), value.clone());
        async move {
            let mut latencies = Vec::with_capacity(writes_each);
            for number in 0..writes_each {
                let key = format!("/pods/{writer}/{}", number % 500);
                let since = Instant::now();
                let write = Write::put(key, Condition::Any, value.clone());
                store.write(write).await.expect("nothing is in the way");
                latencies.push(since.elapsed());
            }
            latencies
        }
    };
    let tasks: Vec<_> = (0..writers).map(|writer| tokio::spawn(work(writer))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("a writer does not panic"));
    }
    latencies.sort();
    latencies
}

/// Opening a store that holds 100,000 objects.
async fn starting() {
    let folder = folder();
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    fill(&store, 100_000).await;
    store.close().await.expect("it was open");
    drop(store);
    let since = Instant::now();
    let store = Store::open(folder.path(), Options::default()).expect("it is whole");
    let took = since.elapsed();
    assert_eq!(store.count("", None).expect("the newest"), 100_000);
    println!("{took:>12.1?} to open a store of 100,000 objects of 3 KB");
}

/// Twenty watchers of every change.
async fn watchers() {
    const CHANGES: usize = 100_000;
    const WATCHERS: usize = 20;
    let options =
        Options { window_changes: CHANGES, window_bytes: usize::MAX, ..Options::default() };
    for count in [0, 1, WATCHERS] {
        let store = Store::in_memory(options.clone());
        let watch = |_| {
            let mut watch = store.watch("/pods/", Revision::EMPTY).expect("nothing happened yet");
            tokio::spawn(async move {
                let mut seen = 0;
                while seen < CHANGES {
                    seen += watch.next().await.expect("it keeps up").len();
                }
            })
        };
        let watching: Vec<_> = (0..count).map(watch).collect();
        let since = Instant::now();
        fill(&store, CHANGES).await;
        for watcher in watching {
            watcher.await.expect("a watcher does not panic");
        }
        let took = since.elapsed();
        println!(
            "{took:>12.1?} for 100,000 changes of 3 KB in memory, watched by {count}; at most {} MB",
            peak_memory_megabytes()
        );
    }
}

/// Writers with and without somebody who lists 100,000 objects all the time.
async fn list_beside_writers() {
    let folder = folder();
    let store = Store::open(folder.path(), Options::default()).expect("an empty folder");
    fill(&store, 100_000).await;
    let since = Instant::now();
    let listing = store.list("/pods/", Page::default()).expect("the newest");
    println!("{:>12.1?} to list {} objects", since.elapsed(), listing.entries.len());
    let since = Instant::now();
    let page = Page { limit: Some(500), ..Page::default() };
    let listing = store.list("/pods/", page).expect("the newest");
    println!(
        "{:>12.1?} for the first 500 and the number of the rest, {}",
        since.elapsed(),
        listing.remaining
    );
    writes_beside(&store, "alone", |_| {}).await;
    writes_beside(&store, "beside a thread that only counts", |stop| {
        let mut count = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            count = std::hint::black_box(count + 1);
        }
    })
    .await;
    writes_beside(&store, "beside a thread that lists 100,000 all the time", {
        let store = store.clone();
        move |stop| {
            while !stop.load(Ordering::Relaxed) {
                store.list("/pods/", Page::default()).expect("the newest");
            }
        }
    })
    .await;
    store.close().await.expect("it was open");
}

/// 64 writers, with something else going on until they are done.
async fn writes_beside(
    store: &Store,
    what: &str,
    beside: impl FnOnce(&AtomicBool) + Send + 'static,
) {
    let stop = Arc::new(AtomicBool::new(false));
    let beside = std::thread::spawn({
        let stop = stop.clone();
        move || beside(&stop)
    });
    let since = Instant::now();
    let latencies = write_all(store, 64, 500).await;
    let took = since.elapsed();
    stop.store(true, Ordering::Relaxed);
    beside.join().expect("nothing panics");
    println!(
        "{:>12.0} durable writes a second with 64 writers, {what} (99 % below {:.2?}, longest {:.2?})",
        (64.0 * 500.0) / took.as_secs_f64(),
        latencies[latencies.len() * 99 / 100],
        latencies[latencies.len() - 1],
    );
}

/// Creates objects, a hundred in each transaction.
async fn fill(store: &Store, count: usize) {
    let value = value();
    for hundred in 0..count / 100 {
        // Each has bytes of its own, so that memory tells whether they are copied later.
        let create = |number| {
            let key = format!("/pods/{hundred}-{number}");
            Write::create(key, bytes::Bytes::copy_from_slice(&value))
        };
        store.transact((0..100).map(create).collect()).await.expect("nothing is in the way");
    }
}

/// Bytes that do not compress.
fn value() -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..VALUE_BYTES).map(next).collect()
}

fn folder() -> tempfile::TempDir {
    let default = || {
        let binary = std::env::current_exe().expect("a benchmark has a file");
        binary.parent().expect("which is in a folder").to_owned()
    };
    let parent = std::env::var_os("STINT_BENCH_FOLDER").map_or_else(default, PathBuf::from);
    tempfile::tempdir_in(parent).expect("a folder")
}

/// The most memory that this process has had so far, on Linux.
fn peak_memory_megabytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.unwrap_or(0) / 1024
}
