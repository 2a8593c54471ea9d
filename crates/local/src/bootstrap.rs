//! The namespaces that every cluster has from its beginning.

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::pace;
use crate::refusal::Refusal;

/// The namespaces that kube-apiserver makes when it starts.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// How often a namespace is tried to be made: with doubling waits, some five seconds.
const ATTEMPTS: u32 = 10;

/// The cluster could not be furnished.
#[derive(Debug, thiserror::Error)]
#[error("cannot create namespace {name}: {source}")]
pub struct BootstrapError {
    /// The namespace.
    name: &'static str,
    /// What the API says.
    source: Box<kube::Error>,
}

/// Makes the namespaces that are not there.
pub(crate) async fn bootstrap(client: &Client) -> Result<(), BootstrapError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in NAMESPACES {
        create(&namespaces, name).await?;
    }
    Ok(())
}

async fn create(namespaces: &Api<Namespace>, name: &'static str) -> Result<(), BootstrapError> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let mut failures = 0;
    loop {
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => return Ok(()),
            Err(error) if Refusal::of(&error) == Refusal::AlreadyExists => return Ok(()),
            Err(error) => {
                failures += 1;
                if failures == ATTEMPTS {
                    return Err(BootstrapError { name, source: Box::new(error) });
                }
                tokio::time::sleep(pace::delay(failures)).await;
            }
        }
    }
}
