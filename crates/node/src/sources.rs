//! The ConfigMaps and Secrets that Pods are made of.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};

use crate::calls::{CallError, Calls};
use crate::path;

/// Which of them are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    config_maps: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

/// Those that were asked for, and whether they are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pub(crate) config_maps: BTreeMap<String, ConfigMap>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

impl Needs {
    /// What the volumes of a Pod are made of.
    pub(crate) fn of_volumes(pod: &Pod) -> Self {
        let mut needs = Needs::default();
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
        for volume in volumes.into_iter().flatten() {
            if let Some(source) = &volume.config_map {
                needs.config_maps.insert(source.name.clone());
            }
            if let Some(source) = &volume.secret {
                needs.secrets.extend(source.secret_name.clone());
            }
            let projected = volume.projected.as_ref().and_then(|it| it.sources.as_ref());
            for source in projected.into_iter().flatten() {
                needs.config_maps.extend(source.config_map.iter().map(|it| it.name.clone()));
                needs.secrets.extend(source.secret.iter().map(|it| it.name.clone()));
            }
        }
        needs
    }

    /// What the environment of a container is made of.
    pub(crate) fn of_environment(container: &Container) -> Self {
        let mut needs = Needs::default();
        for source in container.env_from.iter().flatten() {
            needs.config_maps.extend(source.config_map_ref.iter().map(|it| it.name.clone()));
            needs.secrets.extend(source.secret_ref.iter().map(|it| it.name.clone()));
        }
        for source in container.env.iter().flatten().filter_map(|it| it.value_from.as_ref()) {
            needs.config_maps.extend(source.config_map_key_ref.iter().map(|it| it.name.clone()));
            needs.secrets.extend(source.secret_key_ref.iter().map(|it| it.name.clone()));
        }
        needs
    }
}

impl Sources {
    /// Asks the API for what is needed. What does not exist is left out.
    pub(crate) async fn fetch(
        calls: &Calls,
        namespace: &str,
        needs: &Needs,
    ) -> Result<Self, CallError> {
        let mut sources = Sources::default();
        for name in &needs.config_maps {
            let found = calls.get(&path::object(namespace, "configmaps", name)).await?;
            sources.config_maps.extend(found.map(|it: ConfigMap| (name.clone(), it)));
        }
        for name in &needs.secrets {
            let found = calls.get(&path::object(namespace, "secrets", name)).await?;
            sources.secrets.extend(found.map(|it: Secret| (name.clone(), it)));
        }
        Ok(sources)
    }

    /// The texts of a ConfigMap, if it exists: as with a kubelet, `binaryData` is for volumes.
    pub(crate) fn config_map_texts(&self, name: &str) -> Option<BTreeMap<&str, &[u8]>> {
        let data = self.config_maps.get(name)?.data.iter().flatten();
        Some(data.map(|(key, it)| (key.as_str(), it.as_bytes())).collect())
    }

    /// Everything in a ConfigMap, if it exists.
    pub(crate) fn config_map(&self, name: &str) -> Option<BTreeMap<&str, &[u8]>> {
        let map = self.config_maps.get(name)?;
        let text = map.data.iter().flatten().map(|(key, it)| (key.as_str(), it.as_bytes()));
        let binary = map.binary_data.iter().flatten();
        Some(text.chain(binary.map(|(key, ByteString(it))| (key.as_str(), &it[..]))).collect())
    }

    /// Everything in a Secret, if it exists.
    pub(crate) fn secret(&self, name: &str) -> Option<BTreeMap<&str, &[u8]>> {
        let data = self.secrets.get(name)?.data.iter().flatten();
        Some(data.map(|(key, ByteString(it))| (key.as_str(), &it[..])).collect())
    }
}
