//! Every kind there is, one file each. To add one: write its file, and name it here.

mod config_map;
mod endpoint_slice;
mod endpoints;
mod event;
mod events_event;
mod job;
mod lease;
mod limit_range;
mod namespace;
mod node;
mod pod;
mod resource_quota;
mod secret;
mod service;
mod service_account;

use crate::kind::{AnyKind, Of};

/// Every kind, in the order of discovery.
pub static ALL: &[&dyn AnyKind] = &[
    &Of::<config_map::ConfigMaps>::THE,
    &Of::<endpoints::EndpointsKind>::THE,
    &Of::<event::Events>::THE,
    &Of::<limit_range::LimitRanges>::THE,
    &Of::<namespace::Namespaces>::THE,
    &Of::<node::Nodes>::THE,
    &Of::<pod::Pods>::THE,
    &Of::<resource_quota::ResourceQuotas>::THE,
    &Of::<secret::Secrets>::THE,
    &Of::<service_account::ServiceAccounts>::THE,
    &Of::<service::Services>::THE,
    &Of::<events_event::EventsEvents>::THE,
    &Of::<job::Jobs>::THE,
    &Of::<lease::Leases>::THE,
    &Of::<endpoint_slice::EndpointSlices>::THE,
];

/// The kind of a resource.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static dyn AnyKind> {
    ALL.iter().copied().find(|kind| {
        let names = kind.names();
        names.plural == plural && names.group == group && names.version == version
    })
}

/// Namespaces, which everything else is in.
pub(crate) fn namespaces() -> &'static dyn AnyKind {
    &Of::<namespace::Namespaces>::THE
}

/// Pods, which have parts of their own.
pub(crate) fn pods() -> &'static dyn AnyKind {
    &Of::<pod::Pods>::THE
}

/// LimitRanges, which say what Pods get and may ask for.
pub(crate) fn limit_ranges() -> &'static dyn AnyKind {
    &Of::<limit_range::LimitRanges>::THE
}

/// ResourceQuotas, which are charged for what is made.
pub(crate) fn resource_quotas() -> &'static dyn AnyKind {
    &Of::<resource_quota::ResourceQuotas>::THE
}

/// Service accounts, without which Pods are not admitted.
pub(crate) fn service_accounts() -> &'static dyn AnyKind {
    &Of::<service_account::ServiceAccounts>::THE
}

/// Services, which have addresses.
pub(crate) fn services() -> &'static dyn AnyKind {
    &Of::<service::Services>::THE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_kind_has_a_name_and_a_patch_schema_of_its_own() {
        let mut seen = HashSet::new();
        for kind in ALL {
            let names = kind.names();
            assert!(seen.insert((names.group, names.plural)), "{names:?} is there twice");
            let known = crate::patch::schema::of_kind(&names.api_version(), names.kind);
            assert!(known.is_some(), "{names:?} has no patch schema");
            assert!(!kind.columns().is_empty(), "{names:?} has no columns");
        }
    }
}
