//! What tests of a controller share, on whatever API server it runs: [`play`]s are Jobs with what
//! becomes of them, a [`Driver`] gives Pods their fates, and a [`History`] sees that what must hold
//! does. A [`Stage`] is all of that on one API.
//!
//! It must not know which controller or which server is tested.

mod act;
mod answered;
pub mod collector;
mod driver;
mod fate;
mod follow;
mod history;
pub mod job;
mod live_plays;
mod node;
pub mod play;
mod plays;
mod stage;

pub use act::be_seen_by_the_collector;
pub use driver::Driver;
pub use fate::{End, Fate, Span, Who};
pub use follow::follow;
pub use history::{History, Life};
pub use play::Play;
pub use stage::{NAMESPACE, Stage, Time};
