//! What goes wrong on real machines, done to the real binary on purpose: every test as whoever
//! runs it, and as an ordinary user too if that is root.
#![cfg(target_os = "linux")]

mod descriptors;
mod disk;
mod forks;
mod kills;
#[path = "../kit/mod.rs"]
mod kit;
mod many;
mod output;
mod places;
mod ring;
mod sealed;
mod stubborn;

use kit::home;
