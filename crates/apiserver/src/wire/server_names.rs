//! The names that clients may know the server by, which its certificate must hold. It must not
//! know how certificates are made.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kube-apiserver is called inside a cluster.
const CLUSTER_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The names and addresses in the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNames(BTreeSet<String>);

impl ServerNames {
    /// The names of a server that listens on `listen`: this machine's own, those inside a
    /// cluster, the addresses themselves, and `others` by which clients get there (a host's
    /// name, an address behind a forwarded port). An address that stands for all of a
    /// machine's, such as `0.0.0.0`, is nobody's name; give the real ones in `others`.
    pub fn new<T: AsRef<str>>(
        listen: impl IntoIterator<Item = IpAddr>,
        others: impl IntoIterator<Item = T>,
    ) -> Self {
        let own = [Ipv4Addr::LOCALHOST.to_string(), Ipv6Addr::LOCALHOST.to_string()];
        let cluster = CLUSTER_NAMES.map(str::to_owned);
        let listen = listen.into_iter().map(|ip| ip.to_canonical());
        let listen = listen.filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
        let others = others.into_iter().map(|name| normal(name.as_ref()));
        let names = own.into_iter().chain(["localhost".to_owned()]).chain(cluster);
        ServerNames(names.chain(listen).chain(others).collect())
    }

    /// Exactly these names.
    pub(super) fn exactly(names: impl IntoIterator<Item = String>) -> Self {
        ServerNames(names.into_iter().collect())
    }

    /// The names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A name in the one spelling that is compared.
fn normal(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().to_string(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_known_by_its_own_names_its_address_and_those_it_is_given() {
        let listen = ["192.0.2.7".parse().expect("an address")];
        let names = ServerNames::new(listen, ["Build.Example", "2001:DB8:0::1"]);
        let names: Vec<&str> = names.iter().collect();
        for name in ["localhost", "127.0.0.1", "::1", "192.0.2.7", "build.example", "2001:db8::1"] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
        for name in CLUSTER_NAMES {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn all_addresses_at_once_are_no_name() {
        let listen = ["0.0.0.0", "::"].map(|text| text.parse().expect("an address"));
        assert_eq!(ServerNames::new(listen, [""; 0]), ServerNames::new([], [""; 0]));
    }
}
