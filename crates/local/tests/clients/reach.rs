//! A cluster, and two ways to reach it.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use stint_apiserver::access::Identity;
use stint_local::{Cluster, Front, FrontOptions, Options, Storage};
use tokio::sync::oneshot;

/// Runs a test with a client in this process, and again with one at the other end of a socket.
pub(crate) fn each_way<T: Future<Output = ()>>(
    store: stint_store::Options,
    test: impl Fn(Client) -> T,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        // The clients of a test are the only ones who write.
        let options = Options { store: store.clone(), jobs: None, ..Options::default() };
        let cluster = Cluster::start(options);
        let cluster = cluster.await.expect("it starts");
        // A backstop: nothing here takes longer than seconds.
        let limit = Duration::from_secs(120);
        let client = cluster.client(Identity::admin());
        tokio::time::timeout(limit, test(client)).await.expect("in process, in time");
        cluster.shutdown().await.expect("it ends");
        over_the_wire(Storage::Memory, store, |client| async {
            tokio::time::timeout(limit, test(client)).await.expect("over the wire, in time");
        })
        .await;
    });
}

/// Runs a test with a client at the other end of a socket.
pub(crate) async fn over_the_wire<T: Future<Output = ()>>(
    storage: Storage,
    store: stint_store::Options,
    test: impl FnOnce(Client) -> T,
) {
    let options = FrontOptions {
        listen: "127.0.0.1:0".parse().expect("an address"),
        allow_remote: false,
        names: Vec::new(),
        node: "here".to_owned(),
    };
    let front = Front::open(None, options).await.expect("it listens");
    let (authenticator, ca_certificate) = (front.authenticator(), front.authority_pem().to_owned());
    let (jobs, usual) = (None, Options::default());
    let options = Options { storage, store, authenticator, ca_certificate, jobs, ..usual };
    let cluster = Cluster::start(options).await.expect("it starts");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    front.write_kubeconfig(&path).expect("it is written");
    let kubeconfig = Kubeconfig::read_from(&path).expect("it can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("it is a kubeconfig");
    let client = Client::try_from(config).expect("a client");
    let (stop, stopped) = oneshot::channel::<()>();
    let server = cluster.server();
    let serving = tokio::spawn(async move {
        let shutdown = async {
            let _ = stopped.await;
        };
        front.serve(server, shutdown, Duration::from_secs(10)).await
    });
    test(client).await;
    drop(stop);
    serving.await.expect("it ends");
    cluster.shutdown().await.expect("it ends");
}

/// ConfigMaps, which nobody else writes in this namespace but one at the start.
pub(crate) fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "kube-public")
}

/// A ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": name, "labels": {"test": "yes"}},
        "data": {"value": value},
    }))
    .expect("a ConfigMap")
}
