//! What the suites of the embedded cluster share: the binary under test as `run` and as
//! `serve`, the real kubectl, manifests, and looking for processes.

#![allow(dead_code, unused_imports, reason = "not every suite needs all of it")]

mod bench;
pub(crate) mod home;
mod kubectl;
mod processes;
mod server;

pub(crate) use bench::{Bench, Ended, ended, example, indexed};
pub(crate) use kubectl::{Kubectl, text};
pub(crate) use processes::{eventually, is_anybody_marked, marked, peak_bytes, zombies};
pub(crate) use server::{Server, command, refused};
