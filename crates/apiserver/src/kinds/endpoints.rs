//! Endpoints: where the Pods of a Service are, in the old form.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Endpoints;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::endpoints as rules;

use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::object;
use crate::table::{self, Column};

/// EndpointsKind.
#[derive(Debug)]
pub(super) struct EndpointsKind;

impl Kind for EndpointsKind {
    type Object = Endpoints;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Endpoints",
        plural: "endpoints",
        singular: "endpoints",
        short_names: &["ep"],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners = Manners {
        creates_on_update: true,
        deprecation: Some(
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        ..Manners::USUAL
    };

    const STORED_UNDER: &'static str = "endpoints";

    fn tracked(object: &mut Endpoints, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn prepare_for_create(object: &mut Endpoints, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut Endpoints,
        old: &Endpoints,
        part: Part,
        _context: &Context<'_>,
    ) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &Endpoints, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Endpoints,
        old: &Endpoints,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o Endpoints, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::endpoints::COLUMNS
    }

    fn cells(object: &Endpoints, now: Timestamp) -> Vec<Value> {
        table::endpoints::cells(object, now)
    }
}
