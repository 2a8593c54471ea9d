//! What each role may do, as tables. It must not know how a refusal is said.
//!
//! A role may do what a rule of its `allow` grants and no rule of its `deny` takes away.
//! Resources are written as in RBAC, with one difference: `*` is every resource but not its
//! subresources, which are `*/*`, and every resource's status is `*/status`.

use super::{Attributes, Identity, Role};

/// The verbs that change nothing.
const READ: &[&str] = &["get", "list", "watch"];
/// The verbs that change something.
const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
/// Every verb there is for a resource.
const ANY: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// The group of the kinds that came first, which has no name.
const CORE: &str = "";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const BATCH: &str = "batch";
const COORDINATION: &str = "coordination.k8s.io";
const DISCOVERY: &str = "discovery.k8s.io";
const EVENTS: &str = "events.k8s.io";
const EVERY_GROUP: &str = "*";

/// Where the nodes' leases are, as upstream.
const NODE_LEASES: &str = "kube-node-lease";

/// The paths that every known caller may read: what there is, how the server is and how it
/// does. `/*` is everything below.
pub(crate) const READABLE_PATHS: &[&str] = &[
    "/",
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/openapi",
    "/openapi/*",
    "/version",
    "/version/",
    "/healthz",
    "/healthz/*",
    "/livez",
    "/livez/*",
    "/readyz",
    "/readyz/*",
    "/metrics",
];

/// What every known caller may do, as upstream's role `system:basic-user` says: ask about
/// themselves.
const EVERYBODY: &[Rule] = &[
    rule(&["create"], AUTHENTICATION, &["selfsubjectreviews"]),
    rule(&["create"], AUTHORIZATION, &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
];

/// Everything but what others report: a Job's status is its controller's ledger (KEP-2307,
/// "Unprotected Job status endpoint"), a Pod's is its node's.
const EDIT: Table = Table {
    allow: &[rule(ANY, EVERY_GROUP, &["*", "*/*"])],
    deny: &[
        rule(WRITE, EVERY_GROUP, &["*/status"]),
        // Where a Pod runs is the scheduler's to say.
        rule(WRITE, CORE, &["pods/binding", "bindings"]),
        // What a node is, the node says.
        rule(WRITE, CORE, &["nodes", "nodes/*"]),
        // That a namespace is empty, its controller says.
        rule(WRITE, CORE, &["namespaces/finalize"]),
        // How much a namespace may have is not for those to say who use it.
        rule(WRITE, CORE, &["limitranges", "resourcequotas"]),
    ],
};

/// No other subresources: to `get` pods/exec or pods/proxy is to run something.
const VIEW: Table = Table {
    allow: &[rule(READ, EVERY_GROUP, &["*", "*/status"]), rule(READ, CORE, &["pods/log"])],
    deny: &[rule(READ, CORE, &["secrets", "secrets/*"])],
};

const CONTROLLER: Table = Table {
    allow: &[
        // The collector follows owner references, and the namespace controller empties
        // namespaces: both of every kind.
        rule(
            &["get", "list", "watch", "update", "patch", "delete", "deletecollection"],
            EVERY_GROUP,
            &["*"],
        ),
        // The Job controller.
        rule(&["create"], CORE, &["pods"]),
        rule(&["get", "update", "patch"], BATCH, &["jobs/status"]),
        // Whoever may change a Job's finalizers may own Pods in its name.
        rule(&["update"], BATCH, &["jobs/finalizers"]),
        // Scheduling, and Pods that were lost with their processes.
        rule(&["create"], CORE, &["pods/binding"]),
        rule(&["get", "update", "patch"], CORE, &["pods/status"]),
        // The namespace controller, and what every namespace has from the beginning.
        rule(&["get", "update", "patch"], CORE, &["namespaces/status"]),
        rule(&["update"], CORE, &["namespaces/finalize"]),
        rule(&["create"], CORE, &["serviceaccounts", "configmaps"]),
        // The endpoints controller.
        rule(&["create"], CORE, &["endpoints"]),
        rule(&["create"], DISCOVERY, &["endpointslices"]),
        // The quota controller.
        rule(&["get", "update", "patch"], CORE, &["resourcequotas/status"]),
        // What all of them say, and who of them leads.
        rule(&["create"], CORE, &["events"]),
        rule(&["create"], EVENTS, &["events"]),
        rule(&["create"], COORDINATION, &["leases"]),
    ],
    deny: &[],
};

const NODE: Table = Table {
    allow: &[
        rule(READ, CORE, &["nodes"]),
        own(&["create", "update", "patch"], CORE, &["nodes"]),
        own(&["get", "update", "patch"], CORE, &["nodes/status"]),
        // A Pod that has ended is removed by its node.
        rule(&["get", "list", "watch", "delete"], CORE, &["pods"]),
        rule(&["get", "update", "patch"], CORE, &["pods/status"]),
        // What Pods are made of.
        rule(READ, CORE, &["configmaps", "secrets"]),
        // The names by which Pods find each other.
        rule(READ, CORE, &["services", "endpoints"]),
        rule(READ, DISCOVERY, &["endpointslices"]),
        rule(&["create", "update", "patch"], CORE, &["events"]),
        rule(&["create", "update", "patch"], EVENTS, &["events"]),
        // The sign of life.
        own_in(
            NODE_LEASES,
            &["get", "create", "update", "patch", "delete"],
            COORDINATION,
            &["leases"],
        ),
    ],
    deny: &[],
};

/// No more than what everybody may do.
const NOBODY: Table = Table { allow: &[], deny: &[] };

/// Whether a caller may do this.
pub(super) fn may(identity: &Identity, attributes: &Attributes<'_>) -> bool {
    let table = match identity.role {
        Role::Admin => return true,
        Role::Edit => &EDIT,
        Role::View => &VIEW,
        Role::Controller => &CONTROLLER,
        Role::Node => &NODE,
        Role::Nobody => &NOBODY,
    };
    if !attributes.is_resource() {
        return matches!(attributes.verb, "get" | "head") && is_readable(attributes.path);
    }
    let hit = |rule: &Rule| rule.matches(identity, attributes);
    let is_allowed = EVERYBODY.iter().chain(table.allow).any(hit);
    is_allowed && !table.deny.iter().any(hit)
}

/// A role's rules.
struct Table {
    allow: &'static [Rule],
    deny: &'static [Rule],
}

/// Verbs on resources of one group, or of every group.
struct Rule {
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    only: Only,
}

/// Which objects a rule is about.
enum Only {
    /// All of them.
    All,
    /// The one that is called as the node that asks.
    Own,
    /// The one that is called as the node that asks, in this namespace.
    OwnIn(&'static str),
}

const fn rule(
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
) -> Rule {
    Rule { verbs, group, resources, only: Only::All }
}

const fn own(
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
) -> Rule {
    Rule { verbs, group, resources, only: Only::Own }
}

const fn own_in(
    namespace: &'static str,
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
) -> Rule {
    Rule { verbs, group, resources, only: Only::OwnIn(namespace) }
}

impl Rule {
    fn matches(&self, identity: &Identity, asked: &Attributes<'_>) -> bool {
        self.verbs.contains(&asked.verb)
            && (self.group == EVERY_GROUP || self.group == asked.group)
            && self.resources.iter().any(|pattern| names(pattern, asked))
            && match self.only {
                Only::All => true,
                Only::Own => is_own(identity, asked),
                Only::OwnIn(namespace) => {
                    asked.namespace == Some(namespace) && is_own(identity, asked)
                }
            }
    }
}

/// Whether a pattern of resources names the one that is asked for.
fn names(pattern: &str, asked: &Attributes<'_>) -> bool {
    let (resource, subresource) = match pattern.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (pattern, None),
    };
    let same_subresource = match (subresource, asked.subresource) {
        (None, None) => true,
        (Some(pattern), Some(asked)) => pattern == "*" || pattern == asked,
        (None, Some(_)) | (Some(_), None) => false,
    };
    (resource == "*" || resource == asked.resource) && same_subresource
}

/// Whether the object is called as the node that asks. The address of a creation has no name: it
/// is asked for once more when the name is known.
fn is_own(identity: &Identity, asked: &Attributes<'_>) -> bool {
    match (identity.node_name(), asked.name) {
        (Some(node), Some(name)) => node == name,
        (Some(_), None) => asked.verb == "create",
        (None, _) => false,
    }
}

fn is_readable(path: &str) -> bool {
    READABLE_PATHS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == *pattern,
    })
}

#[cfg(test)]
mod tests;
