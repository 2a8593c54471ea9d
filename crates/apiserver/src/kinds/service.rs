//! Services: names and addresses for Pods.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::kinds::service as rules;
use stint_api::quota::Counted;

use crate::kind::{Context, Kind, Manners, Names, Part, resets_of_status};
use crate::object;
use crate::table::{self, Column};

/// Services.
#[derive(Debug)]
pub(super) struct Services;

impl Kind for Services {
    type Object = Service;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Service",
        plural: "services",
        singular: "service",
        short_names: &["svc"],
        categories: &["all"],
        is_namespaced: true,
    };

    const MANNERS: Manners = Manners {
        creates_on_update: true,
        returns_deleted: true,
        has_status: true,
        takes_address: true,
        ..Manners::USUAL
    };

    const STORED_UNDER: &'static str = "services";

    const FIELDS: &'static [&'static str] = &["spec.clusterIP", "spec.type"];

    fn tracked(object: &mut Service, _gates: &FeatureGates) -> Vec<u8> {
        rules::set_defaults(object);
        object::to_stored(object)
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        resets_of_status(part)
    }

    fn counted(service: &Service, _now: Timestamp) -> Option<Counted> {
        Some(Counted::service(service))
    }

    /// A Service may become one that takes ports of nodes.
    fn counted_change(new: &Service, old: &Service, _now: Timestamp) -> Option<Counted> {
        Some(Counted::service(new).changed_from(Counted::service(old)))
    }

    fn prepare_for_create(object: &mut Service, context: &Context<'_>) {
        rules::prepare_for_create(object, &mut || (context.free_address)());
    }

    fn prepare_for_update(new: &mut Service, old: &Service, part: Part, context: &Context<'_>) {
        match part {
            Part::Status => rules::prepare_for_status_update(new, old),
            Part::Whole | Part::Finalize => {
                rules::prepare_for_update(new, old, &mut || (context.free_address)())
            }
        }
    }

    fn validate_create(object: &Service, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &Service,
        old: &Service,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        match part {
            Part::Status => rules::validate_status_update(new, old),
            Part::Whole | Part::Finalize => rules::validate_update(new, old),
        }
    }

    fn field<'o>(object: &'o Service, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::service::COLUMNS
    }

    fn cells(object: &Service, now: Timestamp) -> Vec<Value> {
        table::service::cells(object, now)
    }
}
