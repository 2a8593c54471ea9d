//! `stint run` as its users meet it: the real binary, real processes.

mod emulator;
mod ends;
mod examples;
mod indexes;
#[path = "../kit/mod.rs"]
mod kit;
mod manifests;
mod reasons;
mod stopping;
mod terminal;
