//! The process runtime against the machine: real processes, in every setting that whoever runs
//! the tests can have. Root has all of them, since it can become somebody else.
#![cfg(target_os = "linux")]

mod beside;
mod descriptors;
mod ending;
mod exec;
mod isolation;
mod kit;
mod limits;
mod mounts;
mod orphans;
mod pace;
mod starting;
