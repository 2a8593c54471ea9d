//! Whether a caller may do what a request wants, and how a refusal is said. It must not know
//! the rules themselves, which are in `roles`.

use super::{Attributes, Identity, roles};
use stint_api::field_error::quote;
use thiserror::Error;

/// A refusal, with what the details of its `Status` need. The answer is 403, and its message
/// is this error's text, which is kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Forbidden {
    /// The API group that was asked for, empty for the core group and for paths.
    pub group: String,
    /// The resource that was asked for, empty for paths. It is the `kind` of the details.
    pub resource: String,
    /// The object's name, where the address had one.
    pub name: Option<String>,
    message: String,
}

/// Whether a caller may do what a request wants.
pub fn authorize(identity: &Identity, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
    if roles::may(identity, attributes) {
        return Ok(());
    }
    Err(Forbidden {
        group: attributes.group.to_owned(),
        resource: attributes.resource.to_owned(),
        name: attributes.name.map(str::to_owned),
        message: message(identity, attributes),
    })
}

/// The whole message: what is forbidden, and why.
fn message(identity: &Identity, asked: &Attributes<'_>) -> String {
    let reason = harmless(&reason(identity, asked));
    let resource = match asked.group {
        "" => asked.resource.to_owned(),
        group => format!("{}.{group}", asked.resource),
    };
    match asked.name {
        _ if !asked.is_resource() => format!("forbidden: {reason}"),
        Some(name) => format!("{resource} {} is forbidden: {reason}", quote(name)),
        None => format!("{resource} is forbidden: {reason}"),
    }
}

/// Who cannot do what.
fn reason(identity: &Identity, asked: &Attributes<'_>) -> String {
    let user = quote(&identity.user);
    let verb = asked.verb;
    if !asked.is_resource() {
        return format!("User {user} cannot {verb} path {}", quote(asked.path));
    }
    let resource = match asked.subresource {
        Some(subresource) => quote(&format!("{}/{subresource}", asked.resource)),
        None => quote(asked.resource),
    };
    let place = match asked.namespace {
        Some(namespace) => format!("in the namespace {}", quote(namespace)),
        None => "at the cluster scope".to_owned(),
    };
    let group = quote(asked.group);
    format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
}

/// A text that no browser takes for a page.
fn harmless(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(identity: &Identity, attributes: Attributes<'_>) -> Forbidden {
        authorize(identity, &attributes).expect_err("this is not allowed")
    }

    #[test]
    fn a_refusal_names_the_object_the_user_the_verb_and_the_place() {
        let forbidden = refusal(
            &Identity::edit(),
            Attributes {
                verb: "patch",
                group: "batch",
                resource: "jobs",
                subresource: Some("status"),
                namespace: Some("default"),
                name: Some("x"),
                path: "/apis/batch/v1/namespaces/default/jobs/x/status",
            },
        );
        assert_eq!(
            forbidden.to_string(),
            r#"jobs.batch "x" is forbidden: User "edit" cannot patch resource "jobs/status" in API group "batch" in the namespace "default""#
        );
        assert_eq!((forbidden.group.as_str(), forbidden.resource.as_str()), ("batch", "jobs"));
        assert_eq!(forbidden.name.as_deref(), Some("x"));
    }

    #[test]
    fn a_refusal_for_the_cluster_has_no_namespace_and_one_for_a_list_no_name() {
        let attributes = Attributes { verb: "list", resource: "secrets", ..Attributes::default() };
        assert_eq!(
            refusal(&Identity::view(), attributes).to_string(),
            r#"secrets is forbidden: User "view" cannot list resource "secrets" in API group "" at the cluster scope"#
        );
    }

    #[test]
    fn a_refusal_for_a_path_names_the_path() {
        let forbidden = refusal(&Identity::view(), Attributes::of_path("post", "/version"));
        assert_eq!(forbidden.to_string(), r#"forbidden: User "view" cannot post path "/version""#);
    }

    #[test]
    fn a_refusal_is_no_page() {
        let attributes = Attributes::of_path("get", "/<script>&\"\n");
        assert_eq!(
            refusal(&Identity::view(), attributes).to_string(),
            r#"forbidden: User "view" cannot get path "/&lt;script&gt;&amp;\"\n""#
        );
    }

    #[test]
    fn what_is_allowed_is_not_refused() {
        let attributes = Attributes {
            verb: "create",
            group: "batch",
            resource: "jobs",
            namespace: Some("default"),
            ..Attributes::default()
        };
        assert_eq!(authorize(&Identity::edit(), &attributes), Ok(()));
    }
}
