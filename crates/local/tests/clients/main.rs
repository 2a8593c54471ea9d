//! kube-rs against the API server, in process and over the wire: the same tests, the same code
//! behind both.

mod load;
mod reach;
mod reading;
mod watching;
mod writing;
