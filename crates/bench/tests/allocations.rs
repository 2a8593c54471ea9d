//! How often a Pod of the embedded cluster asks for memory, which no machine changes by much: most of
//! what it costs is reading and writing objects, and that shows here. A change that makes it dearer is to
//! be seen, and to be worth it.
//!
//! The only test of its program: what others asked for meanwhile would be counted with it.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use stint_bench::{Task, work};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Few, and many more of them: what a cluster costs by itself is in both.
const FEW: u32 = 100;
const MANY: u32 = 500;

/// How often a Pod may ask for memory: somewhat more than it does.
const MOST: usize = 5_000;

fn asked(pods: u32) -> usize {
    let region = Region::new(COUNTING);
    work(Task::Unhurried, pods, pods).expect("it is measured");
    let change = region.change();
    change.allocations + change.reallocations
}

#[test]
fn a_pod_asks_for_memory_no_more_often_than_it_did() {
    asked(FEW);
    let each = (asked(MANY) - asked(FEW)) / (MANY - FEW) as usize;
    println!("{each} times for each Pod");
    assert!(each < MOST, "{each} times for each Pod, {MOST} are the most");
}
