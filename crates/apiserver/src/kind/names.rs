//! What a kind is called. It knows nothing else of it.

/// The names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The group; empty for the core.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind: `Job`.
    pub kind: &'static str,
    /// The resource in paths: `jobs`.
    pub plural: &'static str,
    /// One of them: `job`.
    pub singular: &'static str,
    /// What kubectl takes for it too.
    pub short_names: &'static [&'static str],
    /// The groups of kinds it belongs to: `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
}

impl Names {
    /// `batch/v1`, or `v1` for the core.
    pub fn api_version(&self) -> String {
        group_version(self.group, self.version)
    }

    /// As Go writes it: `batch/v1, Kind=Job`.
    pub fn group_version_kind(&self) -> String {
        format!("{}/{}, Kind={}", self.group, self.version, self.kind)
    }

    /// The resource as messages name it: `jobs.batch`.
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The kind of a list of them.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }
}

/// A group and version as apiVersion writes them.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
