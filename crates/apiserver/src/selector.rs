//! Selectors of lists and watches: which objects are wanted. They know no HTTP and no store.

pub mod field;
pub mod label;
