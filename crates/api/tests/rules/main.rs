//! The rules of Jobs, Pod templates, Pods and other kinds as data, each true to a real API server.
//! `testing/rules` reads and plays the rows.

mod core_pod;
mod job;
mod judge;
mod kinds;
mod pages;
mod pod;
