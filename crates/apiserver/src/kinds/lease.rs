//! Leases: who does something for now.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::kinds::lease as rules;

use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::table::{self, Column};

/// Leases.
#[derive(Debug)]
pub(super) struct Leases;

impl Kind for Leases {
    type Object = Lease;

    const NAMES: Names = Names {
        group: "coordination.k8s.io",
        version: "v1",
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        short_names: &[],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners =
        Manners { creates_on_update: true, updates_unconditionally: false, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "coordination.k8s.io/leases";

    fn prepare_for_create(object: &mut Lease, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(new: &mut Lease, old: &Lease, part: Part, _context: &Context<'_>) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &Lease, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Lease,
        old: &Lease,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o Lease, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::lease::COLUMNS
    }

    fn cells(object: &Lease, now: Timestamp) -> Vec<Value> {
        table::lease::cells(object, now)
    }
}
