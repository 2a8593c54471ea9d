//! The rules of Jobs and Pod templates as data, each true to a real API server.

mod dump;
mod job;
mod pages;
mod pod;
mod rows;
