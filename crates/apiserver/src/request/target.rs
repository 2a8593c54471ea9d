//! What a path and a method lead to. It knows which kinds there are, and what they are called.

use http::Method;
use percent_encoding::percent_decode_str;

use crate::kind::AnyKind;
use crate::kinds;
use crate::review::Review;

/// What a request is about.
#[derive(Clone, Copy)]
pub enum Target<'p> {
    /// Objects of a kind.
    Resource(Resource<'p>),
    /// Pods of a namespace that are to be bound.
    Bindings(&'p str),
    /// A question that callers ask about themselves.
    Review(Review),
    /// What there is: `/api`, `/apis`, `/apis/batch/v1`.
    Discovery(&'p str),
    /// Anything else: `/version`, `/livez`.
    Path(&'p str),
    /// A group, version or resource that is not served.
    Unknown,
}

/// Objects of a kind, or one of them, or a part of one.
#[derive(Clone, Copy)]
pub struct Resource<'p> {
    /// Which kind.
    pub kind: &'static dyn AnyKind,
    /// In which namespace; `None`: in all, or the kind has none.
    pub namespace: Option<&'p str>,
    /// Which one; `None`: all.
    pub name: Option<&'p str>,
    /// Which part of it.
    pub subresource: Option<&'p str>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one.
    Patch,
    /// Remove one.
    Delete,
    /// Remove many.
    DeleteCollection,
}

impl Verb {
    /// As Kubernetes calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// What a method means for a resource; `None` if it means nothing.
    pub fn of(method: &Method, resource: &Resource<'_>, is_watch: bool) -> Option<Self> {
        let is_one = resource.name.is_some();
        match (method, is_one) {
            // One object is watched by selecting its name.
            (&Method::GET, false) if is_watch => Some(Verb::Watch),
            (&Method::GET, true) => Some(Verb::Get),
            (&Method::GET, false) => Some(Verb::List),
            (&Method::POST, false) => Some(Verb::Create),
            (&Method::POST, true) if resource.subresource.is_some() => Some(Verb::Create),
            (&Method::PUT, true) => Some(Verb::Update),
            (&Method::PATCH, true) => Some(Verb::Patch),
            (&Method::DELETE, true) => Some(Verb::Delete),
            (&Method::DELETE, false) => Some(Verb::DeleteCollection),
            _ => None,
        }
    }

    /// Whether it changes nothing.
    pub fn is_read(self) -> bool {
        matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

/// The most parts of a path that leads to a resource:
/// `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`.
const MAX_PARTS: usize = 8;

impl<'p> Target<'p> {
    /// Reads a path that was percent-decoded.
    pub fn of(path: &'p str) -> Self {
        let trimmed = path.strip_prefix('/').unwrap_or(path);
        let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
        let mut parts = [""; MAX_PARTS];
        let mut count = 0;
        for part in trimmed.split('/') {
            if count == MAX_PARTS {
                return Target::Unknown;
            }
            parts[count] = part;
            count += 1;
        }
        let parts = &parts[..count];
        // What is not there is passed over nowhere: what follows would be taken for something else. Clients
        // that mean all namespaces may name an empty one.
        let is_of_all = |at: usize| parts[at - 1] == "namespaces" && at + 2 == count;
        if count > 1 && (0..count).any(|at| parts[at].is_empty() && (at == 0 || !is_of_all(at))) {
            return Target::Unknown;
        }
        match parts {
            ["api"] | ["apis"] | ["api", _] | ["apis", _] | ["apis", _, _] => {
                Target::Discovery(trimmed)
            }
            ["api", version, rest @ ..] => resource("", version, rest),
            ["apis", group, version, rest @ ..] => resource(group, version, rest),
            // Clients that are made from kube-apiserver's own description ask for it so.
            ["version"] => Target::Path("/version"),
            _ => Target::Path(path),
        }
    }
}

/// Decodes the escapes of a path. A name has no slash in it, escaped or not.
pub fn decode_path(path: &str) -> Option<String> {
    if !path.contains('%') {
        return Some(path.to_owned());
    }
    let lower = path.to_ascii_lowercase();
    if lower.contains("%2f") {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok().map(|decoded| decoded.into_owned())
}

fn resource<'p>(group: &str, version: &str, parts: &[&'p str]) -> Target<'p> {
    let (namespace, rest) = match parts {
        // The namespace itself and its parts, not something within it.
        ["namespaces"] | ["namespaces", _] => (None, parts),
        ["namespaces", name, "status" | "finalize"] if !name.is_empty() => (None, parts),
        ["namespaces", "", rest @ ..] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
        _ => (None, parts),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Target::Unknown,
    };
    if let (Some(namespace), ("", "v1", ["bindings"])) = (namespace, (group, version, rest)) {
        return Target::Bindings(namespace);
    }
    let is_of_all = matches!(parts, ["namespaces", "", ..]);
    if let (None, [plural], false) = (namespace, rest, is_of_all)
        && let Some(review) = Review::find(group, version, plural)
    {
        return Target::Review(review);
    }
    let Some(kind) = kinds::find(group, version, plural) else { return Target::Unknown };
    let is_namespaced = kind.names().is_namespaced;
    // One object of a namespaced kind is named with its namespace, and none of another is.
    let is_within = namespace.is_some() || is_of_all;
    if is_within != is_namespaced && (name.is_some() || is_within) {
        return Target::Unknown;
    }
    Target::Resource(Resource { kind, namespace, name, subresource })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> String {
        match Target::of(path) {
            Target::Resource(found) => format!(
                "{} {} {} {}",
                found.kind.names().qualified_plural(),
                found.namespace.unwrap_or("-"),
                found.name.unwrap_or("-"),
                found.subresource.unwrap_or("-")
            ),
            Target::Bindings(namespace) => format!("bindings {namespace}"),
            Target::Review(review) => format!("review {review:?}"),
            Target::Discovery(path) => format!("discovery {path}"),
            Target::Path(path) => format!("path {path}"),
            Target::Unknown => "unknown".to_owned(),
        }
    }

    #[test]
    fn paths_lead_to_resources() {
        let rows = [
            ("/api", "discovery api"),
            ("/api/v1/", "discovery api/v1"),
            ("/apis/batch/v1", "discovery apis/batch/v1"),
            ("/api/v1/pods", "pods - - -"),
            ("/api/v1/namespaces/a/pods", "pods a - -"),
            ("/api/v1/namespaces/a/pods/b", "pods a b -"),
            ("/api/v1/namespaces/a/pods/b/log", "pods a b log"),
            ("/api/v1/namespaces", "namespaces - - -"),
            ("/api/v1/namespaces/a", "namespaces - a -"),
            ("/api/v1/namespaces/a/finalize", "namespaces - a finalize"),
            ("/api/v1/nodes/n/status", "nodes - n status"),
            ("/apis/batch/v1/namespaces/a/jobs/b/status", "jobs.batch a b status"),
            ("/apis/batch/v1/jobs", "jobs.batch - - -"),
            ("/apis/batch/v1/jobs/b", "unknown"),
            ("/api/v1/namespaces/a/nodes", "unknown"),
            ("/apis/batch/v2/jobs", "unknown"),
            ("/apis/apps/v1/deployments", "unknown"),
            ("/api/v1/namespaces/a/pods/b/c/d/e", "unknown"),
            ("/api/v1/namespaces/a/bindings", "bindings a"),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "review Access"),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a", "unknown"),
            ("/apis/authorization.k8s.io/v1/selfsubjectreviews", "unknown"),
            ("/api/v1/namespaces/", "namespaces - - -"),
            ("/api/v1/namespaces//pods", "pods - - -"),
            ("/apis/batch/v1/namespaces//jobs", "jobs.batch - - -"),
            ("/apis/batch/v1/namespaces//jobs/b", "unknown"),
            ("/api/v1/namespaces//nodes", "unknown"),
            ("/apis/authorization.k8s.io/v1/namespaces//selfsubjectaccessreviews", "unknown"),
            ("/api/v1/namespaces//status", "unknown"),
            ("/api/v1/namespaces//", "unknown"),
            ("/api/v1/namespaces/a//pods", "unknown"),
            ("/api/v1/namespaces/a/pods//", "unknown"),
            ("/api//v1/pods", "unknown"),
            ("//api/v1/pods", "unknown"),
            ("/version/", "path /version"),
            ("/livez", "path /livez"),
            ("/", "path /"),
        ];
        for (path, expected) in rows {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn an_escaped_slash_is_part_of_no_name() {
        assert_eq!(decode_path("/a%20b"), Some("/a b".to_owned()));
        assert_eq!(decode_path("/a%2Fb"), None);
        assert_eq!(decode_path("/a%ff"), None);
    }
}
