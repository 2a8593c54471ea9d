//! What callers are told about themselves, and that it is what happens to them.

use serde_json::json;

use super::*;
use crate::access::Role;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn ask(review: Review, identity: &Identity, body: &Value) -> Result<Value, Status> {
    let body = body.to_string();
    review
        .answer(identity, NOW, body.as_bytes(), Format::Json, FieldValidation::Strict)
        .map(|answered| answered.object)
}

fn may(identity: &Identity, resource: Value) -> bool {
    let body = json!({"spec": {"resourceAttributes": resource}});
    let answer = ask(Review::Access, identity, &body).expect("an answer");
    assert_eq!(answer["spec"], body["spec"]);
    answer["status"]["allowed"].as_bool().expect("a decision")
}

#[test]
fn access_is_what_the_roles_say() {
    let jobs = |verb: &str, part: &str| {
        json!({"verb": verb, "group": "batch", "resource": "jobs", "subresource": part,
               "namespace": "a", "name": "b"})
    };
    let rows = [
        (Identity::admin(), jobs("patch", "status"), true),
        (Identity::edit(), jobs("patch", ""), true),
        (Identity::edit(), jobs("patch", "status"), false),
        (Identity::view(), jobs("list", ""), true),
        (Identity::view(), jobs("create", ""), false),
        (
            Identity::node("here"),
            json!({"verb": "update", "resource": "nodes", "name": "here"}),
            true,
        ),
        (
            Identity::node("here"),
            json!({"verb": "update", "resource": "nodes", "name": "x"}),
            false,
        ),
        (Identity::view(), json!({"verb": "get", "resource": "secrets"}), false),
    ];
    for (identity, asked, expected) in rows {
        assert_eq!(may(&identity, asked.clone()), expected, "{} {asked}", identity.user);
    }
}

#[test]
fn a_star_is_all_there_is() {
    let star = |verb: &str, group: &str, resource: &str| json!({"verb": verb, "group": group, "resource": resource});
    let rows = [
        (Identity::admin(), star("*", "*", "*"), true),
        (Identity::admin(), star("*", "nowhere", "*"), true),
        (Identity::edit(), star("*", "nowhere", "*"), false),
        (Identity::edit(), star("*", "*", "*"), false),
        // A node is not theirs to create.
        (Identity::edit(), star("create", "*", "*"), false),
        (Identity::edit(), star("list", "*", "*"), true),
        (Identity::edit(), star("*", "", "configmaps"), true),
        (Identity::edit(), star("*", "", "nodes"), false),
        (Identity::view(), star("list", "batch", "*"), true),
        (Identity::view(), star("get", "", "*"), false),
        (Identity::view(), star("*", "batch", "jobs"), false),
    ];
    for (identity, asked, expected) in rows {
        assert_eq!(may(&identity, asked.clone()), expected, "{} {asked}", identity.user);
    }
}

#[test]
fn paths_are_asked_for_by_their_method() {
    let rows = [
        (Identity::view(), "get", "/version", true),
        (Identity::view(), "post", "/version", false),
        (Identity::view(), "get", "/nowhere", false),
        (Identity::admin(), "get", "/nowhere", true),
    ];
    for (identity, verb, path, expected) in rows {
        let body = json!({"spec": {"nonResourceAttributes": {"verb": verb, "path": path}}});
        let answer = ask(Review::Access, &identity, &body).expect("an answer");
        assert_eq!(answer["status"]["allowed"], expected, "{} {verb} {path}", identity.user);
    }
}

#[test]
fn a_question_that_is_none_is_refused() {
    let rows = [
        (
            Review::Access,
            json!({"spec": {}}),
            "SelfSubjectAccessReview.authorization.k8s.io \"\" is invalid: \
             spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes \
             or resourceAttributes must be specified",
        ),
        (
            Review::Access,
            json!({"metadata": {"name": "a"}, "spec": {"resourceAttributes": {}}}),
            "SelfSubjectAccessReview.authorization.k8s.io \"\" is invalid: metadata: Invalid \
             value: {\"name\":\"a\"}: must be empty",
        ),
        (
            Review::Access,
            json!({"spec": {"resourceAttributes": {"labelSelector": {}}}}),
            "SelfSubjectAccessReview.authorization.k8s.io \"\" is invalid: \
             spec.resourceAttributes.labelSelector.requirements: Required value: when \
             spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is \
             required",
        ),
        (Review::Rules, json!({"spec": {}}), "no namespace on request"),
    ];
    for (review, body, expected) in rows {
        let refused = ask(review, &Identity::admin(), &body).expect_err("refused");
        assert_eq!(refused.message(), expected);
    }
}

#[test]
fn whoever_asks_is_told_their_name_and_groups() {
    let answer = ask(Review::Subject, &Identity::edit(), &json!({})).expect("an answer");
    assert_eq!(
        answer["status"]["userInfo"],
        json!({"username": "edit", "groups": ["stint:edit", "system:authenticated"]})
    );
}

/// Every rule of every role against the decision itself, both ways.
#[test]
fn the_rules_are_the_decisions() {
    let mut compared = 0;
    for role in Role::ALL {
        let identity = Identity::of(role, "here");
        for namespace in ["default", "kube-node-lease"] {
            let body = json!({"spec": {"namespace": namespace}});
            let answer = ask(Review::Rules, &identity, &body).expect("an answer");
            let rules = answer["status"]["resourceRules"].as_array().expect("rules");
            for served in all_resources() {
                for verb in &served.verbs {
                    for name in ["here", "there"] {
                        let attributes = Attributes {
                            verb,
                            group: served.group,
                            resource: served.plural,
                            subresource: served.part,
                            namespace: served.is_namespaced.then_some(namespace),
                            name: Some(name),
                            path: "",
                        };
                        let decided = authorize(&identity, &attributes).is_ok();
                        let told = rules.iter().any(|rule| grants(rule, verb, &served, name));
                        let resource = served.path_name();
                        assert_eq!(told, decided, "{role} {verb} {resource} {name} in {namespace}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1_000, "only {compared} decisions were compared");
}

fn grants(rule: &Value, verb: &str, served: &ServedResource, name: &str) -> bool {
    let has = |list: &str, item: &str| {
        let items = rule[list].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().any(|known| known == item || known == "*")
    };
    has("verbs", verb)
        && has("apiGroups", served.group)
        && has("resources", &served.path_name())
        && (rule["resourceNames"].is_null() || has("resourceNames", name))
}
