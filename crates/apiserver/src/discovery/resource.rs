//! Every resource and subresource that is served, as discovery, the description of the API and
//! the review of rights tell of them.

use super::{GROUP_VERSION, GROUPS, parts};
use crate::kinds;
use crate::review;

/// A resource, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedResource {
    /// The group; empty for the core.
    pub(crate) group: &'static str,
    /// `jobs`.
    pub(crate) plural: &'static str,
    /// Which part of it: `status`.
    pub(crate) part: Option<&'static str>,
    /// `job`; empty for parts.
    pub(crate) singular: &'static str,
    /// What bodies and answers are.
    pub(crate) kind: &'static str,
    /// The group and version of the kind, where they are others than the resource's.
    pub(crate) kind_from: Option<(&'static str, &'static str)>,
    /// Whether it is in namespaces.
    pub(crate) is_namespaced: bool,
    /// What can be done with it, in the order of their names.
    pub(crate) verbs: Vec<&'static str>,
    /// What kubectl takes for it, too.
    pub(crate) short_names: &'static [&'static str],
    /// The groups of kinds that it belongs to.
    pub(crate) categories: &'static [&'static str],
}

impl ServedResource {
    /// `jobs/status`.
    pub(crate) fn path_name(&self) -> String {
        match self.part {
            Some(part) => format!("{}/{part}", self.plural),
            None => self.plural.to_owned(),
        }
    }
}

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The resources of a group, in the order of their names.
pub(crate) fn resources(group: &str) -> Vec<ServedResource> {
    let mut found: Vec<ServedResource> = Vec::new();
    for kind in kinds::ALL.iter().filter(|kind| kind.names().group == group) {
        let names = kind.names();
        let deletes_collections = kind.manners().deletes_collections;
        let whole = ServedResource {
            group: names.group,
            plural: names.plural,
            part: None,
            singular: names.singular,
            kind: names.kind,
            kind_from: None,
            is_namespaced: names.is_namespaced,
            verbs: VERBS
                .into_iter()
                .filter(|verb| deletes_collections || *verb != "deletecollection")
                .collect(),
            short_names: names.short_names,
            categories: names.categories,
        };
        for (part, kind, verbs) in parts(*kind) {
            found.push(ServedResource {
                part: Some(part),
                singular: "",
                kind,
                kind_from: (part == "eviction").then_some(("policy", GROUP_VERSION)),
                verbs: verbs.to_vec(),
                short_names: &[],
                categories: &[],
                ..whole.clone()
            });
        }
        found.push(whole);
    }
    if group.is_empty() {
        found.push(created_only("", "bindings", "binding", "Binding", true));
    }
    for names in review::ALL.map(|review| review.names()) {
        if names.group == group {
            let (plural, singular) = (names.plural, names.singular);
            found.push(created_only(names.group, plural, singular, names.kind, false));
        }
    }
    found.sort_by_key(ServedResource::path_name);
    found
}

/// Every resource of every group.
pub(crate) fn all_resources() -> Vec<ServedResource> {
    let groups = std::iter::once("").chain(GROUPS);
    groups.flat_map(resources).collect()
}

/// What is answered and kept nowhere.
fn created_only(
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    is_namespaced: bool,
) -> ServedResource {
    ServedResource {
        group,
        plural,
        part: None,
        singular,
        kind,
        kind_from: None,
        is_namespaced,
        verbs: vec!["create"],
        short_names: &[],
        categories: &[],
    }
}
