//! A revisioned key-value store with watches: memory serves reads, fjall makes it durable.
//!
//! Every write has a revision of its own, taken from one counter for the whole store. A write
//! may ask for the revision its key is at, so that two writers cannot overwrite each other
//! unseen. Lists and single reads see the store as of one revision, the newest or an older one
//! of the kept window, and a watch delivers every change after a revision of that window, also
//! after a restart.
//!
//! The store never hears of Jobs, Pods or HTTP: a key is a text, a value is bytes. What is on
//! disk is described in `docs/store-format.md`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stint_store::StoreError> {
//! use stint_store::{Condition, Options, Page, Store, Write};
//!
//! let store = Store::in_memory(Options::default());
//! let created = store.write(Write::create("/fruit/apple", "green")).await?;
//! let mut watch = store.watch("/fruit/", created.revision)?;
//! store.write(Write::put("/fruit/apple", Condition::At(created.revision), "red")).await?;
//!
//! let seen = watch.next().await?;
//! assert_eq!(seen[0].after.as_ref().expect("it was put").value, "red");
//! let then = Page { at: Some(created.revision), ..Page::default() };
//! assert_eq!(store.list("/fruit/", then)?.entries[0].value, "green");
//! # store.close().await
//! # }
//! ```

mod commit;
mod committer;
mod disk;
mod entry;
mod error;
mod floor;
mod folder;
mod list;
mod lock;
mod mark;
mod memory;
mod options;
mod place;
mod record;
mod revision;
mod shared;
mod stage;
mod store;
mod watch;
mod write;

pub use entry::{Change, Entry};
pub use error::StoreError;
pub use list::{Listing, Page};
pub use lock::{FileLock, LockError};
pub use options::{Options, WINDOW_BYTES, WINDOW_CHANGES, WRITE_BUFFER_BYTES};
pub use revision::Revision;
pub use store::Store;
pub use watch::Watch;
pub use write::{
    Condition, Guard, MAX_KEY_BYTES, MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES,
    MAX_VALUE_BYTES, Operation, Write,
};
