//! Who a caller is. It must not know how that was found out.

use std::fmt;

/// The group that everyone is in who is not anonymous, as in kube-apiserver.
pub(super) const AUTHENTICATED: &str = "system:authenticated";

/// What the name of a node's user begins with, as in kube-apiserver.
const NODE_PREFIX: &str = "system:node:";

/// What a caller may do, as one word. The rules stand in `roles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Everything.
    Admin,
    /// Everything that people do with their objects; what controllers and nodes report is
    /// theirs.
    Edit,
    /// Reading, secrets excepted.
    View,
    /// The controllers of the cluster: Jobs, collection, namespaces, endpoints, scheduling.
    Controller,
    /// A node that runs Pods.
    Node,
    /// Nothing but asking what there is, and about oneself. Nobody has it of his own: an admin may ask as
    /// somebody who is not known.
    Nobody,
}

impl Role {
    /// Every role that somebody has.
    pub const ALL: [Role; 5] = [Role::Admin, Role::Edit, Role::View, Role::Controller, Role::Node];

    /// The role's one word: `admin`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Edit => "edit",
            Role::View => "view",
            Role::Controller => "controller",
            Role::Node => "node",
            Role::Nobody => "nobody",
        }
    }

    /// The group that stands for the role: `stint:admin`. It is the organization of a client
    /// certificate.
    pub fn group(self) -> &'static str {
        match self {
            Role::Admin => "stint:admin",
            Role::Edit => "stint:edit",
            Role::View => "stint:view",
            Role::Controller => "stint:controller",
            Role::Node => "stint:node",
            Role::Nobody => "stint:nobody",
        }
    }

    /// The role that a group stands for.
    pub fn from_group(group: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.group() == group)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A caller who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name, as it appears in messages: `admin`, `system:node:here`.
    pub user: String,
    /// The groups the user is in, that of the role among them.
    pub groups: Vec<String>,
    /// What the user may do.
    pub role: Role,
}

impl Identity {
    /// The user called `user` with a role, in the role's groups.
    pub fn new(user: impl Into<String>, role: Role) -> Self {
        let mut groups = vec![role.group().to_owned()];
        if role == Role::Node {
            groups.push("system:nodes".to_owned());
        }
        groups.push(AUTHENTICATED.to_owned());
        Identity { user: user.into(), groups, role }
    }

    /// The user `admin`.
    pub fn admin() -> Self {
        Identity::new("admin", Role::Admin)
    }

    /// The user `edit`.
    pub fn edit() -> Self {
        Identity::new("edit", Role::Edit)
    }

    /// The user `view`.
    pub fn view() -> Self {
        Identity::new("view", Role::View)
    }

    /// The controllers of the cluster, `system:stint-controller`.
    pub fn controller() -> Self {
        Identity::new("system:stint-controller", Role::Controller)
    }

    /// The node called `name`, `system:node:NAME`.
    pub fn node(name: &str) -> Self {
        Identity::new(format!("{NODE_PREFIX}{name}"), Role::Node)
    }

    /// The usual bearer of a role. `node` is the name of the node, for that role.
    pub fn of(role: Role, node: &str) -> Self {
        match role {
            Role::Admin => Identity::admin(),
            Role::Edit => Identity::edit(),
            Role::View => Identity::view(),
            Role::Controller => Identity::controller(),
            Role::Node => Identity::node(node),
            Role::Nobody => Identity::new("nobody", Role::Nobody),
        }
    }

    /// The name of the node that this is, if it is one.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.user.strip_prefix(NODE_PREFIX)?;
        (self.role == Role::Node && !name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_names_its_role_and_no_other() {
        for role in Role::ALL {
            assert_eq!(Role::from_group(role.group()), Some(role));
            assert_eq!(role.group(), format!("stint:{role}"));
        }
        assert_eq!(Role::from_group("stint:Admin"), None);
        assert_eq!(Role::from_group("system:masters"), None);
    }

    #[test]
    fn only_a_node_has_a_node_name() {
        assert_eq!(Identity::node("here").node_name(), Some("here"));
        assert_eq!(Identity::node("").node_name(), None);
        assert_eq!(Identity::new("system:node:here", Role::View).node_name(), None);
        assert_eq!(Identity::new("here", Role::Node).node_name(), None);
    }

    #[test]
    fn the_usual_bearer_of_a_role_has_it_and_is_in_its_group() {
        for role in Role::ALL {
            let identity = Identity::of(role, "here");
            assert_eq!(identity.role, role);
            assert!(identity.groups.iter().any(|group| group == role.group()));
            assert!(identity.groups.iter().any(|group| group == AUTHENTICATED));
        }
        assert_eq!(Identity::of(Role::Node, "here").user, "system:node:here");
    }
}
