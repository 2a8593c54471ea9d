//! ResourceQuotas: how much a namespace may have.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::resource_quota as rules;
use stint_api::warning;

use crate::kind::{Context, Kind, Manners, Names, Part, resets_of_status};
use crate::object;
use crate::table::{self, Column};

/// ResourceQuotas.
#[derive(Debug)]
pub(super) struct ResourceQuotas;

impl Kind for ResourceQuotas {
    type Object = ResourceQuota;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "ResourceQuota",
        plural: "resourcequotas",
        singular: "resourcequota",
        short_names: &["quota"],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners = Manners { has_status: true, returns_deleted: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "resourcequotas";

    fn warnings(object: &ResourceQuota) -> Vec<String> {
        warning::of_quota(object)
    }

    fn tracked(object: &mut ResourceQuota, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        resets_of_status(part)
    }

    fn prepare_for_create(object: &mut ResourceQuota, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut ResourceQuota,
        old: &ResourceQuota,
        part: Part,
        _context: &Context<'_>,
    ) {
        match part {
            Part::Status => rules::prepare_for_status_update(new, old),
            Part::Whole | Part::Finalize => rules::prepare_for_update(new, old),
        }
    }

    fn validate_create(object: &ResourceQuota, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &ResourceQuota,
        old: &ResourceQuota,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        match part {
            Part::Status => rules::validate_status_update(new, old),
            Part::Whole | Part::Finalize => rules::validate_update(new, old),
        }
    }

    fn field<'o>(object: &'o ResourceQuota, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::resource_quota::COLUMNS
    }

    fn cells(object: &ResourceQuota, now: Timestamp) -> Vec<Value> {
        table::resource_quota::cells(object, now)
    }
}
