//! What somebody does to a Job that has come to rest.

use std::collections::BTreeMap;

use kube::api::PropagationPolicy;
use stint_kit::{End, Fate};

/// An index of an Indexed Job; none: the Job is not Indexed, and its Pods are all alike.
pub(crate) type Place = Option<u32>;

/// What becomes of the Pods of each place, one after the other.
pub(crate) type Courses = BTreeMap<Place, Vec<Fate>>;

/// What somebody does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A Pod that runs ends.
    Finish {
        place: Place,
        end: End,
    },
    /// Somebody deletes a Pod.
    Evict {
        place: Place,
    },
    /// The containers of a Pod are said to have restarted so often.
    Restart {
        place: Place,
        count: u32,
    },
    /// A Pod stops being one that the Job selects.
    Relabel,
    Suspend,
    Resume,
    Scale {
        parallelism: u32,
    },
    /// parallelism and completions become this.
    Resize {
        completions: u32,
    },
    BackoffLimit {
        limit: u32,
    },
    MaxFailedIndexes {
        most: u32,
    },
    /// The Job has been active for longer than it may from now on.
    Deadline,
    /// The Job goes that many seconds after its end.
    Ttl {
        seconds: u32,
    },
    /// A label and an annotation of the Job.
    Label,
    /// Labels, annotations and the node selector of Pods to come.
    Template,
    /// The same, where the template of a Job that has run can be changed with one controller and not
    /// with the other: it is changed back, or refused.
    TryTemplate,
    Delete {
        propagation: PropagationPolicy,
    },
    /// From now on all Pods come to an end.
    Release,
}
