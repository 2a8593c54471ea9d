//! What can be set when a store is opened. It knows no files.

/// How many changes are kept by default: at 20,000 writes a second, which is what the store is
/// made for, a watcher may be away for three seconds.
pub const WINDOW_CHANGES: usize = 65_536;

/// How many bytes of changes are kept by default: 128 MiB are 40,000 changes of 3 KB, about
/// the size of a Pod, and a fair part of a small machine's memory.
pub const WINDOW_BYTES: usize = 128 * 1024 * 1024;

/// How many bytes fjall gathers in memory before it writes a sorted table: its own default.
/// Half as much would mean twice the tables to merge, twice as much a longer start.
pub const WRITE_BUFFER_BYTES: u64 = 64 * 1024 * 1024;

/// What can be set when a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most changes that are kept for watches and for reads at older revisions. One commit
    /// may exceed it until the next one.
    pub window_changes: usize,
    /// The most bytes of changes that are kept, likewise: the changes with the values that they
    /// put, and those that they superseded.
    pub window_bytes: usize,
    /// How many bytes fjall gathers before it writes a table. It is fixed when the folder is
    /// created.
    pub write_buffer_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            window_changes: WINDOW_CHANGES,
            window_bytes: WINDOW_BYTES,
            write_buffer_bytes: WRITE_BUFFER_BYTES,
        }
    }
}
