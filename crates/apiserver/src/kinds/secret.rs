//! Secrets: settings for Pods that not everybody may read.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::secret as rules;

use crate::kind::{Context, Kind, Names, Part};
use crate::object;
use crate::table::{self, Column};

/// Secrets.
#[derive(Debug)]
pub(super) struct Secrets;

impl Kind for Secrets {
    type Object = Secret;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
        singular: "secret",
        short_names: &[],
        categories: &[],
        is_namespaced: true,
    };

    const STORED_UNDER: &'static str = "secrets";

    const FIELDS: &'static [&'static str] = &["type"];

    fn tracked(object: &mut Secret, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn prepare_for_create(object: &mut Secret, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(new: &mut Secret, old: &Secret, part: Part, _context: &Context<'_>) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &Secret, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Secret,
        old: &Secret,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o Secret, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::secret::COLUMNS
    }

    fn cells(object: &Secret, now: Timestamp) -> Vec<Value> {
        table::secret::cells(object, now)
    }
}
