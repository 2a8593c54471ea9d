//! The command lines of the programs.

use std::path::Path;

use serde_json::{Value, json};

use crate::authority::{BUILT_IN, CONTROLLERS, Keyed};
use crate::cluster::Manager;

/// What Jobs need around them. Not podgc and nodelifecycle: the nodes of Pods do not exist here.
const AROUND_JOBS: &str = "garbage-collector-controller,ttl-after-finished-controller,\
    namespace-controller,serviceaccount-controller,resourcequota-controller,\
    clusterrole-aggregation-controller";

pub(crate) fn etcd(port: u16, peer_port: u16, data: &Path) -> Vec<String> {
    let (url, peer_url) =
        (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=default={peer_url}"),
        // It outlives crashes of processes all the same, and no test turns the machine off.
        "--unsafe-no-fsync".to_owned(),
    ]
}

pub(crate) fn apiserver(port: u16, etcd_port: u16, folder: &Path) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        // The endpoints of the API itself are nobody's business here.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--audit-policy-file={}", file("audit-policy.json")),
        format!("--audit-log-path={}", file("audit.log")),
    ]
}

pub(crate) fn manager(which: Manager, port: u16, kubeconfig: &Path) -> Vec<String> {
    let controllers = match which {
        Manager::WithJobs => format!("{AROUND_JOBS},job-controller"),
        Manager::WithoutJobs => AROUND_JOBS.to_owned(),
        Manager::OnlyJobs => "job-controller".to_owned(),
    };
    let kubeconfig = kubeconfig.display();
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--controllers={controllers}"),
        // Each controller as a user of its own, with the rights that it has in any cluster.
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        // So that it is as fast as it can be: by default it limits itself to 20 calls a second.
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=4000".to_owned(),
    ]
}

/// What a server shows its clients.
pub(crate) fn certificates(server: &Keyed) -> Vec<String> {
    vec![
        format!("--tls-cert-file={}", server.certificate.display()),
        format!("--tls-private-key-file={}", server.key.display()),
    ]
}

/// What kube-apiserver knows clients by.
pub(crate) fn apiserver_keys(tokens: &Keyed, authority: &Path) -> Vec<String> {
    vec![
        format!("--client-ca-file={}", authority.display()),
        format!("--service-account-key-file={}", tokens.certificate.display()),
        format!("--service-account-signing-key-file={}", tokens.key.display()),
    ]
}

/// What kube-controller-manager gives service accounts.
pub(crate) fn manager_keys(tokens: &Keyed, authority: &Path) -> Vec<String> {
    vec![
        format!("--root-ca-file={}", authority.display()),
        format!("--service-account-private-key-file={}", tokens.key.display()),
    ]
}

/// Who has written what to Jobs and Pods, and everything that stint's controllers have asked for.
/// Of what is created the whole is noted: it may have no name yet.
pub(crate) fn audit_policy() -> Value {
    let resources = json!([
        {"group": "", "resources": ["pods", "pods/*", "events"]},
        {"group": "batch", "resources": ["jobs", "jobs/*"]},
    ]);
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [
            // What came of it, too: a status says whose Job it is, and the built-in controller leaves
            // the names of its Pods to the server.
            {
                "level": "RequestResponse", "verbs": ["update", "patch"],
                "resources": [{"group": "batch", "resources": ["jobs/status"]}],
            },
            {
                "level": "RequestResponse", "verbs": ["create"], "users": [BUILT_IN],
                "resources": [{"group": "", "resources": ["pods"]}],
            },
            {"level": "Request", "verbs": ["create"], "resources": resources},
            {
                "level": "Metadata",
                "verbs": ["update", "patch", "delete", "deletecollection"],
                "resources": resources,
            },
            {
                "level": "Metadata", "userGroups": [CONTROLLERS],
                "resources": [
                    {"group": "", "resources": ["*"]},
                    {"group": "batch", "resources": ["*"]},
                    {"group": "coordination.k8s.io", "resources": ["*"]},
                ],
            },
            {"level": "None"},
        ],
    })
}
