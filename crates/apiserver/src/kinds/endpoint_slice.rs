//! EndpointSlices: where the Pods of a Service are.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::endpoint_slice as rules;

use crate::kind::{Context, Kind, Names, Part};
use crate::object;
use crate::table::{self, Column};

/// EndpointSlices.
#[derive(Debug)]
pub(super) struct EndpointSlices;

impl Kind for EndpointSlices {
    type Object = EndpointSlice;

    const NAMES: Names = Names {
        group: "discovery.k8s.io",
        version: "v1",
        kind: "EndpointSlice",
        plural: "endpointslices",
        singular: "endpointslice",
        short_names: &[],
        categories: &[],
        is_namespaced: true,
    };

    const STORED_UNDER: &'static str = "discovery.k8s.io/endpointslices";

    fn tracked(object: &mut EndpointSlice, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn prepare_for_create(object: &mut EndpointSlice, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut EndpointSlice,
        old: &EndpointSlice,
        part: Part,
        _context: &Context<'_>,
    ) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &EndpointSlice, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &EndpointSlice,
        old: &EndpointSlice,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o EndpointSlice, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::endpoint_slice::COLUMNS
    }

    fn cells(object: &EndpointSlice, now: Timestamp) -> Vec<Value> {
        table::endpoint_slice::cells(object, now)
    }
}
