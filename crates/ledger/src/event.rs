//! What the ledger is told of the world.

use stint_api::view::JobView;

use crate::pod_facts::PodFacts;

/// Something that was seen.
#[derive(Clone, Debug)]
pub enum Event {
    /// The Job at some version.
    JobSeen(Box<JobView>),
    /// The Job no longer exists.
    JobGone,
    /// A Pod at some version; `is_selected` if the Job's selector matches its labels.
    PodSeen {
        /// What is known of it.
        facts: Box<PodFacts>,
        /// Whether the Job's selector matches it.
        is_selected: bool,
    },
    /// A Pod no longer exists.
    PodGone {
        /// Its uid.
        uid: String,
    },
    /// Every Pod that existed at this version has been told of: what is not known does
    /// not exist.
    PodsCurrent {
        /// The version.
        version: u64,
    },
}
