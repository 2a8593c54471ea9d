//! Whom a client certificate names. It must not know who signed it: whoever asks has had the
//! certificate verified.

use super::{Identity, Role};
use thiserror::Error;
use x509_parser::asn1_rs::FromDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::x509::AttributeTypeAndValue;

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientCertificateError {
    /// The bytes are not a certificate.
    #[error("cannot read the certificate: {detail}")]
    Read {
        /// What the parser says.
        detail: String,
    },
    /// There must be exactly one common name, which is the user's.
    #[error("the certificate has {found} common names, and must have one that is a text")]
    CommonName {
        /// How many there are.
        found: usize,
    },
    /// There must be exactly one organization that is a role.
    #[error("{user:?} has {found} roles in the certificate's organizations, and must have one")]
    Role {
        /// The common name.
        user: String,
        /// How many organizations are roles.
        found: usize,
    },
    /// A node's user must say which node it is.
    #[error("{user:?} has the role of a node, but is not called system:node:NAME")]
    Node {
        /// The common name.
        user: String,
    },
}

/// Whom a verified client certificate names: its common name is the user, its organizations
/// are the groups (as in kube-apiserver), and one of them is the group of a role.
pub fn identify(der: &[u8]) -> Result<Identity, ClientCertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|error| ClientCertificateError::Read { detail: error.to_string() })?;
    let subject = certificate.subject();

    let names: Vec<Option<&str>> = subject.iter_common_name().map(text).collect();
    let [Some(user)] = names[..] else {
        return Err(ClientCertificateError::CommonName { found: names.len() });
    };
    let organizations: Vec<&str> = subject.iter_organization().filter_map(text).collect();
    let roles: Vec<Role> = organizations.iter().copied().filter_map(Role::from_group).collect();
    let [role] = roles[..] else {
        return Err(ClientCertificateError::Role { user: user.to_owned(), found: roles.len() });
    };

    let mut identity = Identity::new(user, role);
    if role == Role::Node && identity.node_name().is_none() {
        return Err(ClientCertificateError::Node { user: user.to_owned() });
    }
    for group in organizations {
        if !identity.groups.iter().any(|known| known == group) {
            identity.groups.push(group.to_owned());
        }
    }
    Ok(identity)
}

/// The text of an attribute that has one, and not an empty one.
fn text<'a>(attribute: &'a AttributeTypeAndValue<'a>) -> Option<&'a str> {
    attribute.as_str().ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    /// A certificate, self-signed: who signs is not this room's business.
    fn certificate(names: &[&str], organizations: &[&str]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // rcgen keeps one value for each type, but a type can be written in two ways.
        let common_name = [DnType::CommonName, DnType::CustomDnType(vec![2, 5, 4, 3])];
        for (kind, name) in common_name.into_iter().zip(names) {
            params.distinguished_name.push(kind, *name);
        }
        let organization = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
        for (kind, name) in organization.into_iter().zip(organizations) {
            params.distinguished_name.push(kind, *name);
        }
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn the_common_name_is_the_user_and_the_organization_the_role() {
        let identity = identify(&certificate(&["kim"], &["stint:edit"])).expect("a known user");
        assert_eq!(identity, Identity::new("kim", Role::Edit));
    }

    #[test]
    fn a_node_is_called_system_node_name() {
        let identity = identify(&certificate(&["system:node:a"], &["stint:node"])).expect("a node");
        assert_eq!(identity.node_name(), Some("a"));
        let error = identify(&certificate(&["a"], &["stint:node"])).expect_err("no node's name");
        assert_eq!(error, ClientCertificateError::Node { user: "a".to_owned() });
    }

    #[test]
    fn a_certificate_without_a_role_names_nobody() {
        let error = identify(&certificate(&["kim"], &["system:masters"])).expect_err("no role");
        assert_eq!(error, ClientCertificateError::Role { user: "kim".to_owned(), found: 0 });
    }

    #[test]
    fn a_certificate_with_two_roles_or_two_names_names_nobody() {
        let both = ["stint:view", "stint:admin"];
        let error = identify(&certificate(&["kim"], &both)).expect_err("two roles");
        assert_eq!(error, ClientCertificateError::Role { user: "kim".to_owned(), found: 2 });
        let error = identify(&certificate(&["kim", "lee"], &both[..1])).expect_err("two names");
        assert_eq!(error, ClientCertificateError::CommonName { found: 2 });
    }

    #[test]
    fn organizations_that_are_no_roles_are_groups() {
        let der = certificate(&["kim"], &["stint:view", "team-a"]);
        let identity = identify(&der).expect("a known user");
        assert_eq!(identity.role, Role::View);
        assert_eq!(identity.groups, ["stint:view", "system:authenticated", "team-a"]);
    }

    #[test]
    fn a_certificate_without_a_name_names_nobody() {
        let error = identify(&certificate(&[], &["stint:view"])).expect_err("no name");
        assert_eq!(error, ClientCertificateError::CommonName { found: 0 });
        let error = identify(&certificate(&[""], &["stint:view"])).expect_err("an empty name");
        assert_eq!(error, ClientCertificateError::CommonName { found: 1 });
    }

    #[test]
    fn bytes_that_are_no_certificate_name_nobody() {
        for bytes in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", &[0x30; 4096]] {
            let error = identify(bytes).expect_err("no certificate");
            assert!(matches!(error, ClientCertificateError::Read { .. }), "{error}");
        }
    }
}
