//! ConfigMaps: plain settings for Pods.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::kinds::config_map as rules;

use crate::kind::{Context, Kind, Names, Part};
use crate::table::{self, Column};

/// ConfigMaps.
#[derive(Debug)]
pub(super) struct ConfigMaps;

impl Kind for ConfigMaps {
    type Object = ConfigMap;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        singular: "configmap",
        short_names: &["cm"],
        categories: &[],
        is_namespaced: true,
    };

    const STORED_UNDER: &'static str = "configmaps";

    fn prepare_for_create(object: &mut ConfigMap, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut ConfigMap,
        old: &ConfigMap,
        part: Part,
        _context: &Context<'_>,
    ) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &ConfigMap, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &ConfigMap,
        old: &ConfigMap,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o ConfigMap, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::config_map::COLUMNS
    }

    fn cells(object: &ConfigMap, now: Timestamp) -> Vec<Value> {
        table::config_map::cells(object, now)
    }
}
