//! Objects that cannot be read as what they should be. One of them must not keep the others
//! from being heard of.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::path;

/// An object of a list or watch: as it should be, or odd where that is put up with.
pub(crate) trait Wire<K>: Clone + DeserializeOwned + Send + 'static {
    /// What it is.
    fn open(self) -> Result<K, Box<Odd>>;
}

/// An object that has to be as it should.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plain<K>(K);

impl<K: Clone + DeserializeOwned + Send + 'static> Wire<K> for Plain<K> {
    fn open(self) -> Result<K, Box<Odd>> {
        Ok(self.0)
    }
}

/// An object that may be odd. Reading it takes several times as long.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Lenient<K> {
    Fine(K),
    Odd(Box<Odd>),
}

impl<K: Clone + DeserializeOwned + Send + 'static> Wire<K> for Lenient<K> {
    fn open(self) -> Result<K, Box<Odd>> {
        match self {
            Lenient::Fine(object) => Ok(object),
            Lenient::Odd(odd) => Err(odd),
        }
    }
}

/// What every object has, whatever else is in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Odd {
    pub(crate) metadata: OddMeta,
    spec: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OddMeta {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    resource_version: String,
}

impl Odd {
    /// Its version.
    pub(crate) fn version(&self) -> u64 {
        path::version(Some(&self.metadata.resource_version))
    }

    /// A Job's controller, if it names one.
    pub(crate) fn managed_by(&self) -> Option<&str> {
        self.spec.get("managedBy").and_then(Value::as_str)
    }
}
