//! ServiceAccounts: who Pods are.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::kinds::service_account as rules;

use crate::kind::{Context, Kind, Manners, Names, Part};
use crate::table::{self, Column};

/// ServiceAccounts.
#[derive(Debug)]
pub(super) struct ServiceAccounts;

impl Kind for ServiceAccounts {
    type Object = ServiceAccount;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        singular: "serviceaccount",
        short_names: &["sa"],
        categories: &[],
        is_namespaced: true,
    };

    const MANNERS: Manners = Manners { returns_deleted: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "serviceaccounts";

    fn prepare_for_create(object: &mut ServiceAccount, _context: &Context<'_>) {
        rules::prepare_for_create(object);
    }

    fn prepare_for_update(
        new: &mut ServiceAccount,
        old: &ServiceAccount,
        part: Part,
        _context: &Context<'_>,
    ) {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::prepare_for_update(new, old);
    }

    fn validate_create(object: &ServiceAccount, _context: &Context<'_>) -> Vec<FieldError> {
        rules::validate_create(object)
    }

    fn validate_update(
        new: &ServiceAccount,
        old: &ServiceAccount,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        debug_assert_eq!(part, Part::Whole, "the kind has no parts");
        rules::validate_update(new, old)
    }

    fn field<'o>(object: &'o ServiceAccount, name: &str) -> Cow<'o, str> {
        rules::field(object, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::service_account::COLUMNS
    }

    fn cells(object: &ServiceAccount, now: Timestamp) -> Vec<Value> {
        table::service_account::cells(object, now)
    }
}
