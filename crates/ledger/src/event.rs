//! What the ledger is told of the world.

use stint_api::view::{JobView, JobViewError};

use crate::pod_facts::PodFacts;

/// Something that was seen.
#[derive(Clone, Debug)]
pub enum Event {
    /// The Job at some version.
    JobSeen(Box<JobView>),
    /// The Job at some version, in a form that this version of the ledger does not know.
    JobUnreadable {
        /// Its version.
        version: u64,
        /// What could not be read.
        error: JobViewError,
    },
    /// At this version the Job does not exist. Old news if it has been seen since. Whoever
    /// lists all Jobs anew says so to every ledger whose Job is not in the list: an older list
    /// may have made the watch forget it before.
    JobGone {
        /// The version of its deletion, or of the list that it is not in.
        version: u64,
    },
    /// A Pod at some version; `is_selected` if the Job's selector matches its labels.
    PodSeen {
        /// What is known of it.
        facts: Box<PodFacts>,
        /// Whether the Job's selector matches it.
        is_selected: bool,
    },
    /// At this version a Pod does not exist. Old news if it has been seen since.
    PodGone {
        /// Its uid.
        uid: String,
        /// The version of its deletion, or of the list that it is not in.
        version: u64,
    },
    /// Every Pod that existed at this version has been told of, as it was then or later:
    /// a Pod that is not known, and has not changed since, is old news. To be said after
    /// a list, and now and then as the watch goes on.
    PodsCurrent {
        /// The version.
        version: u64,
    },
}
