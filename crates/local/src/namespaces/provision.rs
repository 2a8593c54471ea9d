//! What every namespace has, because clients wait for it: a service account that Pods use, and
//! the certificate by which they know the API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::refusal::Refusal;

/// The service account of Pods that name none.
pub(super) const SERVICE_ACCOUNT: &str = "default";

/// The config map with the certificate.
pub(super) const CA_CONFIG_MAP: &str = "kube-root-ca.crt";

const CA_KEY: &str = "ca.crt";

/// As upstream's publisher describes it.
const DESCRIPTION_ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver \
    when using internal endpoints such as the internal service IP or kubernetes.default.svc. No \
    other usage is guaranteed across distributions of Kubernetes clusters.";

/// Gives a namespace what it lacks.
pub(super) async fn provision(
    client: &Client,
    namespace: &str,
    ca_certificate: &str,
) -> kube::Result<()> {
    let made = match provision_account(client, namespace).await {
        Ok(()) => provision_certificate(client, namespace, ca_certificate).await,
        Err(error) => Err(error),
    };
    match made {
        // The namespace is on its way out: there is nothing to provide.
        Err(error) if matches!(Refusal::of(&error), Refusal::NotFound | Refusal::Terminating) => {
            Ok(())
        }
        other => other,
    }
}

async fn provision_account(client: &Client, namespace: &str) -> kube::Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    if accounts.get_metadata_opt(SERVICE_ACCOUNT).await?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta { name: Some(SERVICE_ACCOUNT.to_owned()), ..ObjectMeta::default() };
    let account = ServiceAccount { metadata, ..ServiceAccount::default() };
    match accounts.create(&PostParams::default(), &account).await {
        Err(error) if Refusal::of(&error) != Refusal::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

async fn provision_certificate(
    client: &Client,
    namespace: &str,
    ca_certificate: &str,
) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data = BTreeMap::from([(CA_KEY.to_owned(), ca_certificate.to_owned())]);
    let Some(mut found) = maps.get_opt(CA_CONFIG_MAP).await? else {
        let metadata = ObjectMeta {
            name: Some(CA_CONFIG_MAP.to_owned()),
            annotations: Some(description()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        return maps.create(&PostParams::default(), &map).await.map(drop);
    };
    // A cluster that listens nowhere has none, and another one may use the same folder.
    if ca_certificate.is_empty() {
        return Ok(());
    }
    let annotations = found.metadata.annotations.get_or_insert_default();
    let is_described = annotations.get(DESCRIPTION_ANNOTATION).is_some_and(|text| !text.is_empty());
    if is_described && found.data.as_ref() == Some(&data) {
        return Ok(());
    }
    annotations.extend(description());
    found.data = Some(data);
    maps.replace(CA_CONFIG_MAP, &PostParams::default(), &found).await.map(drop)
}

fn description() -> BTreeMap<String, String> {
    BTreeMap::from([(DESCRIPTION_ANNOTATION.to_owned(), DESCRIPTION.to_owned())])
}
