//! The rules of Jobs, Pod templates, Pods and other kinds as rows of data:
//! `crates/api/tests/rules/*/*.yaml`. Here a row is read, played by the rules of stint-api, and put
//! as requests that any API server can be sent. CONTRIBUTING.md has the keys.
//!
//! What should come of a row is judged by others: `crates/api/tests/rules` by what was played, and
//! the suite `rules` of `testing/cluster` by what kube-apiserver answers.

pub mod case;
pub mod exchange;
pub mod job;
pub mod kinds;
pub mod pod;
pub mod rows;
pub mod template;
