//! What a caller may do, as rules. They are found by asking for everything that is served: a
//! role here also says what it does not allow, which the rules of a review cannot.

use k8s_openapi::api::authorization::v1::{
    NonResourceRule, ResourceRule, SubjectRulesReviewStatus,
};

use crate::access::{Attributes, Identity, READABLE_PATHS, authorize};
use crate::discovery::{ServedResource, all_resources};

/// The rules for a namespace, and for what is in none.
pub(super) fn of(identity: &Identity, namespace: &str) -> SubjectRulesReviewStatus {
    let star = || vec!["*".to_owned()];
    if is_everything_allowed(identity) {
        return SubjectRulesReviewStatus {
            resource_rules: vec![ResourceRule {
                verbs: star(),
                api_groups: Some(star()),
                resources: Some(star()),
                resource_names: None,
            }],
            non_resource_rules: vec![NonResourceRule {
                verbs: star(),
                non_resource_urls: Some(star()),
            }],
            ..SubjectRulesReviewStatus::default()
        };
    }
    let mut rules = Vec::new();
    for resource in all_resources() {
        let (any, own) = verbs(identity, namespace, &resource);
        add(&mut rules, &resource, any, None);
        add(&mut rules, &resource, own, identity.node_name());
    }
    SubjectRulesReviewStatus {
        resource_rules: rules,
        non_resource_rules: vec![NonResourceRule {
            verbs: vec!["get".to_owned()],
            non_resource_urls: Some(READABLE_PATHS.iter().map(|path| (*path).to_owned()).collect()),
        }],
        ..SubjectRulesReviewStatus::default()
    }
}

/// Whether there is nothing that the caller may not do, known here or not.
fn is_everything_allowed(identity: &Identity) -> bool {
    let all = Attributes { verb: "*", group: "*", resource: "*", ..Attributes::default() };
    authorize(identity, &all).is_ok()
}

/// The verbs that a caller has for every object of a resource, and for the one that is its own.
fn verbs(
    identity: &Identity,
    namespace: &str,
    resource: &ServedResource,
) -> (Vec<&'static str>, Vec<&'static str>) {
    let may = |verb: &str, name: Option<&str>| {
        let attributes = Attributes {
            verb,
            group: resource.group,
            resource: resource.plural,
            subresource: resource.part,
            namespace: resource.is_namespaced.then_some(namespace),
            name,
            path: "",
        };
        authorize(identity, &attributes).is_ok()
    };
    // No object is called so.
    const ANOTHER: &str = "";
    let (mut any, mut own) = (Vec::new(), Vec::new());
    for verb in &resource.verbs {
        if may(verb, None) && may(verb, Some(ANOTHER)) {
            any.push(*verb);
        } else if identity.node_name().is_some_and(|name| may(verb, Some(name))) {
            own.push(*verb);
        }
    }
    (any, own)
}

/// Adds a rule, or a resource to the last one if it says the same.
fn add(
    rules: &mut Vec<ResourceRule>,
    resource: &ServedResource,
    verbs: Vec<&'static str>,
    only: Option<&str>,
) {
    if verbs.is_empty() {
        return;
    }
    let mut rule = ResourceRule {
        verbs: verbs.into_iter().map(str::to_owned).collect(),
        api_groups: Some(vec![resource.group.to_owned()]),
        resources: None,
        resource_names: only.map(|name| vec![name.to_owned()]),
    };
    let found = rules.iter_mut().find(|known| {
        known.verbs == rule.verbs
            && known.api_groups == rule.api_groups
            && known.resource_names == rule.resource_names
    });
    match found {
        Some(known) => known.resources.get_or_insert_default().push(resource.path_name()),
        None => {
            rule.resources = Some(vec![resource.path_name()]);
            rules.push(rule);
        }
    }
}
