//! The rules of Jobs, Pod templates, Pods and other kinds as data, each true to a real API server.

mod core_pod;
mod dump;
mod job;
mod kinds;
mod pages;
mod pod;
mod rows;
