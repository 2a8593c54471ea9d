//! `stint run` as its users meet it: the real binary, real processes.

mod ends;
mod indexes;
mod kit;
mod manifests;
mod stopping;
mod terminal;
