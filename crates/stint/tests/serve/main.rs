//! `stint serve` as its users meet it: the real binary, on a socket, with the real kubectl.

mod described;
mod everyday;
#[path = "../kit/mod.rs"]
mod kit;
mod kubectl;
mod logs;
mod look;
mod pods;
mod process;
mod quota;
mod status;
mod visits;
