//! LimitRanges: between what the Pods of a namespace may ask for things.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::LimitRange;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::limit_range as rules;

use crate::chance;
use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::object;
use crate::table::{self, Column};

/// LimitRanges.
#[derive(Debug)]
pub(super) struct LimitRanges;

impl Kind for LimitRanges {
    type Object = LimitRange;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "LimitRange",
        plural: "limitranges",
        singular: "limitrange",
        short_names: &["limits"],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners = Manners { creates_on_update: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "limitranges";

    fn tracked(object: &mut LimitRange, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    /// One without a name gets a random one, as upstream.
    fn prepare_for_create(object: &mut LimitRange, _context: &Context<'_>) {
        if object.metadata.name.as_deref().unwrap_or("").is_empty() {
            object.metadata.name = Some(chance::uid());
        }
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut LimitRange,
        old: &LimitRange,
        part: Part,
        _context: &Context<'_>,
    ) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &LimitRange, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &LimitRange,
        old: &LimitRange,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o LimitRange, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::limit_range::COLUMNS
    }

    fn cells(object: &LimitRange, now: Timestamp) -> Vec<Value> {
        table::limit_range::cells(object, now)
    }
}
