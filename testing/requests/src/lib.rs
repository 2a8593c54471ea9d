//! Requests and their answers, as rows of data: `crates/apiserver/tests/requests/*.yaml` has a file
//! for each verb, read by the house's own decoder. A row is a little script that runs in a namespace
//! of its own:
//!
//! | key | what it is |
//! |---|---|
//! | `send` | the method and path of a request; the query is written without escapes |
//! | `body` | its body: JSON, or a text as it is |
//! | `type`, `accept`, `agent` | its `Content-Type`, `Accept` and `User-Agent` |
//! | `managed` | of a row: that answers say who owns what |
//! | `code`, `headers`, `answer` | what kube-apiserver 1.36.3 answered; `-`: not compared |
//! | `without` | which named items were taken out of that answer: what the embedded server does not have |
//! | `differs`, `ours` | why the embedded server answers otherwise, and how: laid over the rest, null deletes |
//!
//! What differs from run to run stands as a placeholder in answers, and in later requests for
//! what it stood for: [`placeholder`]. Protobuf is taken out of the lists of media types that there
//! are for answers, as the embedded server does not answer with it.
//!
//! Whoever runs rows sends the requests: this crate knows no socket and no clock.

pub mod differences;
pub mod placeholder;
pub mod row;
