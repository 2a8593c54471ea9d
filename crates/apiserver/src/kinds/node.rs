//! Nodes: where Pods run.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::node as rules;

use crate::kind::{Context, Kind, Manners, Names, Part, resets_of_status};
use crate::object;
use crate::table::{self, Column};

/// Nodes.
#[derive(Debug)]
pub(super) struct Nodes;

impl Kind for Nodes {
    type Object = Node;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Node",
        plural: "nodes",
        singular: "node",
        short_names: &["no"],
        categories: &[],
        is_namespaced: false,
    };

    const MANNERS: Manners = Manners { has_status: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "nodes";

    const FIELDS: &'static [&'static str] = &["spec.unschedulable"];

    fn tracked(object: &mut Node, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        resets_of_status(part)
    }

    fn prepare_for_create(object: &mut Node, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(new: &mut Node, old: &Node, part: Part, _context: &Context<'_>) {
        match part {
            Part::Status => rules::prepare_for_status_update(new, old),
            Part::Whole | Part::Finalize => rules::prepare_for_update(new, old),
        }
    }

    fn validate_create(object: &Node, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Node,
        old: &Node,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        match part {
            Part::Status => rules::validate_status_update(new, old),
            Part::Whole | Part::Finalize => rules::validate_update(new, old),
        }
    }

    fn field<'o>(object: &'o Node, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::node::COLUMNS
    }

    fn cells(object: &Node, now: Timestamp) -> Vec<Value> {
        table::node::cells(object, now)
    }
}
