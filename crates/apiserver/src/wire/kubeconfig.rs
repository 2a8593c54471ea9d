//! The file by which kubectl and the client libraries find the server and prove who they are.
//! It must not know other people's kubeconfigs: it neither merges into them nor replaces them.

use super::private_file::{self, PrivateFileError};
use super::{Certificates, KeyedCertificate, Tokens};
use crate::access::Role;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use stint_api::decode::{Node, NodeValue, documents};
use thiserror::Error;

/// What the cluster is called, and everything else begins with.
const NAME: &str = "stint";

/// Why no kubeconfig was written.
#[derive(Debug, Error)]
pub enum KubeconfigError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The file holds something that is not ours and would be lost.
    #[error(
        "{} is not replaced, because it holds more than stint's own entries; choose another file \
         and merge it with KUBECONFIG={}:OTHER kubectl config view --flatten",
        path.display(), path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
}

/// How a user proves who they are.
#[derive(Clone)]
pub enum Credential {
    /// By a client certificate and its key.
    Certificate(KeyedCertificate),
    /// By a bearer token.
    Token(String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Certificate(_) => "Certificate(..)",
            Credential::Token(_) => "Token(..)",
        })
    }
}

/// A kubeconfig for one server: a user and a context for each role, of which the first is the
/// current one.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    server: String,
    authority_pem: String,
    users: Vec<(Role, Vec<Credential>)>,
}

impl Kubeconfig {
    /// A kubeconfig without users, for the server at `address` with this authority.
    pub fn new(address: SocketAddr, authority_pem: impl Into<String>) -> Self {
        let server = format!("https://{}", reachable(address));
        Kubeconfig { server, authority_pem: authority_pem.into(), users: Vec::new() }
    }

    /// A kubeconfig with a user for each client certificate: contexts `stint` (admin),
    /// `stint-edit` and `stint-view`.
    pub fn with_certificates(address: SocketAddr, certificates: &Certificates) -> Self {
        let config = Kubeconfig::new(address, certificates.authority_pem());
        Role::ALL.into_iter().fold(config, |config, role| match certificates.client(role) {
            Some(keyed) => config.user(role, Credential::Certificate(keyed.clone())),
            None => config,
        })
    }

    /// The same with a credential for the user of a role. A user may have several: clients use
    /// what they know.
    pub fn user(mut self, role: Role, credential: Credential) -> Self {
        match self.users.iter_mut().find(|(known, _)| *known == role) {
            Some((_, credentials)) => credentials.push(credential),
            None => self.users.push((role, vec![credential])),
        }
        self
    }

    /// The same with the bearer tokens of the users that are there.
    pub fn with_tokens(self, tokens: &Tokens) -> Self {
        let roles: Vec<Role> = self.users.iter().map(|(role, _)| *role).collect();
        roles.into_iter().fold(self, |config, role| {
            config.user(role, Credential::Token(tokens.get(role).to_owned()))
        })
    }

    /// The server's address as clients use it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The file's text. It holds secrets.
    pub fn to_yaml(&self) -> String {
        let mut yaml = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {NAME}\n  \
               cluster:\n    \
                 server: {}\n    \
                 certificate-authority-data: {}\n",
            self.server,
            STANDARD.encode(&self.authority_pem),
        );
        yaml.push_str("users:\n");
        for (role, credentials) in &self.users {
            push(&mut yaml, format_args!("- name: {}\n  user:\n", user_name(*role)));
            for credential in credentials {
                push_credential(&mut yaml, credential);
            }
        }
        yaml.push_str("contexts:\n");
        for (role, _) in &self.users {
            push(
                &mut yaml,
                format_args!(
                    "- name: {}\n  context:\n    cluster: {NAME}\n    user: {}\n    \
                     namespace: default\n",
                    context_name(*role),
                    user_name(*role),
                ),
            );
        }
        if let Some((role, _)) = self.users.first() {
            push(&mut yaml, format_args!("current-context: {}\n", context_name(*role)));
        }
        yaml
    }

    /// Writes the file, which only its owner may read. A file is replaced if nothing is in it
    /// but what we write there.
    pub fn write(&self, path: &Path) -> Result<(), KubeconfigError> {
        refuse_others(path)?;
        Ok(private_file::write(path, &self.to_yaml())?)
    }

    /// Whether a kubeconfig could be written there. It leaves everything as it is.
    pub fn check(path: &Path) -> Result<(), KubeconfigError> {
        refuse_others(path)?;
        Ok(private_file::check_writable(path)?)
    }
}

/// Refuses to replace what is not ours.
fn refuse_others(path: &Path) -> Result<(), KubeconfigError> {
    let found = private_file::peek(path)?;
    if found.is_some_and(|text| !is_ours(&text)) {
        return Err(KubeconfigError::NotOurs { path: path.to_owned() });
    }
    Ok(())
}

/// The context of a role. Whoever starts the server is its admin, so that context has the
/// plain name.
fn context_name(role: Role) -> &'static str {
    match role {
        Role::Admin => NAME,
        Role::Edit => "stint-edit",
        Role::View => "stint-view",
        Role::Controller => "stint-controller",
        Role::Node => "stint-node",
        Role::Nobody => "stint-nobody",
    }
}

fn user_name(role: Role) -> String {
    format!("{NAME}-{role}")
}

/// Where a client on this machine reaches a server that listens on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Whether a file holds nothing but entries with our names. kubectl rewrites kubeconfigs, so
/// that no comment would tell whose it is.
fn is_ours(text: &str) -> bool {
    let ours: Vec<String> = Role::ALL
        .into_iter()
        .flat_map(|role| [context_name(role).to_owned(), user_name(role)])
        .collect();
    documents(text).all(|document| {
        let Some(root) = document.root else { return false };
        matches!(root.value, NodeValue::Map(_))
            && ["clusters", "users", "contexts"].iter().all(|list| {
                root.get(list).is_none_or(|entry| {
                    items(&entry.value).is_some_and(|items| {
                        items.iter().all(|item| {
                            let name = item.get("name").and_then(|name| name.value.as_str());
                            name.is_some_and(|name| ours.iter().any(|known| known == name))
                        })
                    })
                })
            })
    })
}

/// The items of a list; `null` is an empty one.
fn items(node: &Node) -> Option<&[Node]> {
    match &node.value {
        NodeValue::List(items) => Some(items),
        NodeValue::Null => Some(&[]),
        _ => None,
    }
}

fn push_credential(yaml: &mut String, credential: &Credential) {
    match credential {
        Credential::Certificate(keyed) => push(
            yaml,
            format_args!(
                "    client-certificate-data: {}\n    client-key-data: {}\n",
                STANDARD.encode(keyed.certificate_pem()),
                STANDARD.encode(keyed.key_pem()),
            ),
        ),
        // A JSON string is a YAML string, whatever is in it.
        Credential::Token(token) => {
            push(yaml, format_args!("    token: {}\n", serde_json::Value::from(token.as_str())));
        }
    }
}

fn push(text: &mut String, more: fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ServerNames;
    use std::fs;
    use std::time::SystemTime;

    fn address() -> SocketAddr {
        "127.0.0.1:6443".parse().expect("an address")
    }

    fn certificates() -> Certificates {
        let names = ServerNames::new([], [""; 0]);
        Certificates::in_memory(&names, SystemTime::now()).expect("certificates")
    }

    fn parsed(config: &Kubeconfig) -> serde_json::Value {
        let yaml = config.to_yaml();
        let mut all = documents(&yaml);
        let document = all.next().expect("one document");
        assert!(document.problems.is_empty(), "{:?}", document.problems);
        assert!(all.next().is_none());
        document.root.expect("readable").to_json()
    }

    #[test]
    fn kubectl_finds_the_server_the_authority_and_three_contexts() {
        let certificates = certificates();
        let config = parsed(&Kubeconfig::with_certificates(address(), &certificates));
        assert_eq!(config["current-context"], "stint");
        let cluster = &config["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://127.0.0.1:6443");
        let decode = |value: &serde_json::Value| {
            String::from_utf8(STANDARD.decode(value.as_str().expect("a string")).expect("base64"))
                .expect("text")
        };
        let authority = decode(&cluster["certificate-authority-data"]);
        assert_eq!(authority, certificates.authority_pem());
        let roles =
            [("stint", Role::Admin), ("stint-edit", Role::Edit), ("stint-view", Role::View)];
        assert_eq!(config["contexts"].as_array().expect("a list").len(), roles.len());
        for (at, (context, role)) in roles.into_iter().enumerate() {
            assert_eq!(config["contexts"][at]["name"], context);
            let user = &config["users"][at];
            assert_eq!(config["contexts"][at]["context"]["user"], user["name"]);
            assert_eq!(config["contexts"][at]["context"]["cluster"], config["clusters"][0]["name"]);
            let keyed = certificates.client(role).expect("there is one");
            let user = &user["user"];
            assert_eq!(decode(&user["client-certificate-data"]), keyed.certificate_pem());
            assert_eq!(decode(&user["client-key-data"]), keyed.key_pem());
        }
    }

    #[test]
    fn a_user_may_have_a_token_whatever_is_in_it() {
        let token = "a: \"b\" # c";
        let config =
            Kubeconfig::new(address(), "pem").user(Role::View, Credential::Token(token.to_owned()));
        let config = parsed(&config);
        assert_eq!(config["users"][0]["user"]["token"], token);
        assert_eq!(config["current-context"], "stint-view");
    }

    #[test]
    fn clients_here_reach_a_server_that_listens_everywhere() {
        let server =
            |text: &str| Kubeconfig::new(text.parse().expect("an address"), "").server().to_owned();
        assert_eq!(server("0.0.0.0:1"), "https://127.0.0.1:1");
        assert_eq!(server("[::]:1"), "https://[::1]:1");
        assert_eq!(server("192.0.2.1:1"), "https://192.0.2.1:1");
    }

    #[test]
    fn our_own_file_is_replaced_also_after_kubectl_has_rewritten_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        let config = Kubeconfig::with_certificates(address(), &certificates());
        config.write(&path).expect("written");
        config.write(&path).expect("written again");
        let rewritten = "apiVersion: v1\nclusters:\n- cluster:\n    server: https://x\n  name: stint\n\
                         contexts: null\nusers: []\npreferences: {}\n";
        for text in [rewritten, "", "\n"] {
            fs::write(&path, text).expect("rewritten");
            config.write(&path).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("readable"), config.to_yaml());
        }
    }

    #[test]
    fn the_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let config = Kubeconfig::with_certificates(address(), &certificates());
        let merged = config.to_yaml().replace("users:\n", "users:\n- name: other\n  user: {}\n");
        for text in [
            "clusters:\n- name: stint\n- name: prod\n  cluster: {}\n",
            "users:\n- name: alice\n",
            "contexts: {}\n",
            "clusters: [\n",
            "just some notes\n",
            &merged,
        ] {
            fs::write(&path, text).expect("written");
            let error = config.write(&path).expect_err("not ours");
            assert!(matches!(error, KubeconfigError::NotOurs { .. }), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("readable"), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        Kubeconfig::with_certificates(address(), &certificates()).write(&path).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_that_is_printed_shows_a_secret() {
        let config =
            Kubeconfig::new(address(), "").user(Role::Admin, Credential::Token("hush".to_owned()));
        assert!(!format!("{config:?}").contains("hush"));
    }
}
