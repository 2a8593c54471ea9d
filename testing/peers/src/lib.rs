//! Programs of others that are run beside ours, and what they use.

pub mod usage;
