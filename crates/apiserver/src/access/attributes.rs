//! What a request wants, as the rules of access see it. It must not know who wants it.

/// What a request is about: a resource, or, when `resource` is empty, a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Kubernetes' verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`), or the method in lower case for a path.
    pub verb: &'a str,
    /// The API group, empty for the core group.
    pub group: &'a str,
    /// The resource, in the plural: `jobs`. Empty for a path.
    pub resource: &'a str,
    /// What of the resource: `status`.
    pub subresource: Option<&'a str>,
    /// The namespace, unless the request is about the whole cluster.
    pub namespace: Option<&'a str>,
    /// The object's name, where the address has one.
    pub name: Option<&'a str>,
    /// The whole path, without its query.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// A request for a path that is no resource: `/version`.
    pub fn of_path(verb: &'a str, path: &'a str) -> Self {
        Attributes { verb, path, ..Attributes::default() }
    }

    /// Whether the request is about a resource.
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty()
    }
}
