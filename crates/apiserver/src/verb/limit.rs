//! What LimitRanges make of a new object, and whether they let it in. Which kinds they are about,
//! the kinds know.

use k8s_openapi::api::core::v1::LimitRange;
use stint_store::Page;

use crate::api::{Api, prefix};
use crate::kind::AnyKind;
use crate::kinds;
use crate::object::Object;
use crate::status::Status;

impl Api {
    /// The LimitRanges that are about an object, in the order of their names.
    pub(super) fn limit_ranges(&self, kind: &dyn AnyKind, object: &dyn Object) -> Vec<LimitRange> {
        let namespace = object.meta().namespace.as_deref();
        if !kind.manners().is_limited {
            return Vec::new();
        }
        let ranges = kinds::limit_ranges();
        let listing = self
            .store
            .list(&prefix(ranges, namespace), Page::default())
            .expect("the newest revision can be read");
        let entries = listing.entries.iter();
        let read = entries.map(|entry| ranges.read_stored(&entry.value, entry.modified));
        read.map(|range| range.expect_ref::<LimitRange>().clone()).collect()
    }
}

/// Refuses an object that a LimitRange does not let in.
pub(super) fn check_limits(
    kind: &dyn AnyKind,
    object: &dyn Object,
    ranges: &[LimitRange],
) -> Result<(), Status> {
    ranges.iter().try_for_each(|range| {
        kind.check_limits(object, range).map_err(|why| {
            Status::forbidden(kind.names(), object.meta().name.as_deref().unwrap_or(""), why)
        })
    })
}
