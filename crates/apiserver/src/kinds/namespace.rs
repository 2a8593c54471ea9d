//! Namespaces: what names are unique within.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::namespace as rules;

use crate::kind::{Context, Kind, Manners, Names, Part, PartOf, resets_of_status};
use crate::object;
use crate::table::{self, Column};

/// Namespaces.
#[derive(Debug)]
pub(super) struct Namespaces;

impl Kind for Namespaces {
    type Object = Namespace;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        singular: "namespace",
        short_names: &["ns"],
        categories: &[],
        is_namespaced: false,
    };

    const MANNERS: Manners = Manners {
        returns_deleted: true,
        has_status: true,
        deletes_collections: false,
        is_marked_first: true,
        ..Manners::USUAL
    };

    const STORED_UNDER: &'static str = "namespaces";

    const PARTS: &'static [PartOf] = &[("finalize", "Namespace", &["update"])];

    const FIELDS: &'static [&'static str] = &["status.phase"];

    fn tracked(object: &mut Namespace, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        resets_of_status(part)
    }

    fn prepare_for_create(object: &mut Namespace, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut Namespace,
        old: &Namespace,
        part: Part,
        _context: &Context<'_>,
    ) {
        match part {
            Part::Status => rules::prepare_for_status_update(new, old),
            Part::Finalize => rules::prepare_for_finalize(new, old),
            Part::Whole => rules::prepare_for_update(new, old),
        }
    }

    fn validate_create(object: &Namespace, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Namespace,
        old: &Namespace,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        match part {
            Part::Status => rules::validate_status_update(new, old),
            Part::Finalize => rules::validate_finalize(new, old),
            Part::Whole => rules::validate_update(new, old),
        }
    }

    fn field<'o>(object: &'o Namespace, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::namespace::COLUMNS
    }

    fn cells(object: &Namespace, now: Timestamp) -> Vec<Value> {
        table::namespace::cells(object, now)
    }

    fn may_delete(object: &Namespace) -> Result<(), &'static str> {
        const KEPT: [&str; 3] = ["default", "kube-system", "kube-public"];
        match object.metadata.name.as_deref() {
            Some(name) if KEPT.contains(&name) => Err("this namespace may not be deleted"),
            _ => Ok(()),
        }
    }

    /// A namespace stays until whoever empties it takes its finalizer off the spec.
    fn is_held(object: &Namespace) -> bool {
        let spec = object.spec.as_ref();
        spec.and_then(|spec| spec.finalizers.as_ref()).is_some_and(|held| !held.is_empty())
    }

    fn mark_deleted(object: &mut Namespace) {
        // A namespace takes as long as it takes.
        object.metadata.deletion_grace_period_seconds = None;
        object.status.get_or_insert_default().phase = Some("Terminating".to_owned());
    }
}
