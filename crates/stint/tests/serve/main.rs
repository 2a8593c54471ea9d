//! `stint serve` as its users meet it: the real binary, on a socket, with the real kubectl.

mod kubectl;
mod pods;
mod process;
mod server;
