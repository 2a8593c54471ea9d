//! The hosts file of a Pod: its own names, what its spec adds, and the names of the services of
//! its namespace. And what a Pod is called. It must not know where the file is.

use std::fmt::Write;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Pod, PodSpec};

/// The domain of the cluster, as everywhere unless somebody changes it.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// The longest host name that Linux takes.
const HOSTNAME_MAX_BYTES: usize = 63;

/// What a Pod is called, and what it is called in full if it has a subdomain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodNames {
    pub(crate) short: String,
    pub(crate) full: Option<String>,
}

impl PodNames {
    /// The name of its spec, else the Pod's own, cut to what a host name may be.
    pub(crate) fn of(pod: &Pod) -> Self {
        let none = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&none);
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(name) = given(&spec.hostname_override) {
            return PodNames { short: name, full: None };
        }
        let own = pod.metadata.name.as_deref().unwrap_or("");
        let short = given(&spec.hostname).unwrap_or_else(|| {
            let end = own.len().min(HOSTNAME_MAX_BYTES);
            own[..end].trim_end_matches(['-', '.']).to_owned()
        });
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("");
        let full = given(&spec.subdomain)
            .map(|subdomain| format!("{short}.{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}"));
        PodNames { short, full }
    }

    /// What the machine is called inside the Pod.
    pub(crate) fn hostname(&self, spec: &PodSpec) -> String {
        match &self.full {
            Some(full) if spec.set_hostname_as_fqdn == Some(true) => full.clone(),
            _ => self.short.clone(),
        }
    }
}

/// The text of the file. `services` are the lines of the Pod's namespace.
pub(crate) fn hosts_text(pod: &Pod, address: Ipv4Addr, services: &str) -> String {
    let names = PodNames::of(pod);
    let mut text = String::with_capacity(256 + services.len());
    text.push_str("# Written by stint for this Pod, and again when services change.\n");
    text.push_str("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    match &names.full {
        Some(full) => writeln!(text, "{address}\t{full}\t{}", names.short),
        None => writeln!(text, "{address}\t{}", names.short),
    }
    .expect("a text can be written to");
    let aliases = pod.spec.as_ref().and_then(|spec| spec.host_aliases.as_ref());
    for alias in aliases.into_iter().flatten() {
        let names = alias.hostnames.as_deref().unwrap_or_default();
        if !names.is_empty() {
            writeln!(text, "{}\t{}", alias.ip, names.join("\t")).expect("as above");
        }
    }
    text.push_str(services);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: serde_json::Value) -> Pod {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let pod = json!({"metadata": {"name": "work-0-abcde", "namespace": "ns"}, "spec": spec});
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn a_pod_is_called_by_its_hostname_else_by_its_name() {
        let rows = [
            (json!({}), "work-0-abcde", None, "work-0-abcde"),
            (json!({"hostname": "h"}), "h", None, "h"),
            (
                json!({"hostname": "h", "subdomain": "svc"}),
                "h",
                Some("h.svc.ns.svc.cluster.local"),
                "h",
            ),
            (
                json!({"subdomain": "svc", "setHostnameAsFQDN": true}),
                "work-0-abcde",
                Some("work-0-abcde.svc.ns.svc.cluster.local"),
                "work-0-abcde.svc.ns.svc.cluster.local",
            ),
            (json!({"hostnameOverride": "o.p", "hostname": "h"}), "o.p", None, "o.p"),
        ];
        for (spec, short, full, hostname) in rows {
            let pod = pod(spec);
            let names = PodNames::of(&pod);
            assert_eq!((names.short.as_str(), names.full.as_deref()), (short, full));
            assert_eq!(names.hostname(pod.spec.as_ref().expect("it has one")), hostname);
        }
        let mut long = pod(json!({}));
        long.metadata.name = Some(format!("{}-{}", "a".repeat(62), "b".repeat(10)));
        assert_eq!(PodNames::of(&long).short, "a".repeat(62));
    }

    #[test]
    fn the_file_holds_its_own_name_its_aliases_and_the_services() {
        let pod = pod(json!({
            "hostname": "h", "subdomain": "svc",
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.2"}],
        }));
        let text = hosts_text(&pod, Ipv4Addr::new(127, 64, 0, 9), "127.64.0.3\tother.svc\n");
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "127.0.0.1\tlocalhost",
                "::1\tlocalhost ip6-localhost ip6-loopback",
                "127.64.0.9\th.svc.ns.svc.cluster.local\th",
                "10.0.0.1\ta\tb",
                "127.64.0.3\tother.svc",
            ]
        );
    }
}
