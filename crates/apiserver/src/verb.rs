//! What can be done with the objects of a kind. Each verb is a file; none knows HTTP, and none
//! knows a kind by name.

pub(crate) mod apply;
pub(crate) mod charge;
mod create;
pub(crate) mod delete;
mod limit;
pub(crate) mod list;
pub(crate) mod metadata;
mod track;
mod update;
pub(crate) mod watch;

pub(crate) use update::{Change, Which, patch_failed};
