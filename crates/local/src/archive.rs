//! A cluster that nobody runs: its objects and logs as they were left, to be read. Nothing works
//! on them, and its clients may write nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::{ApiServer, Clock, Config, Limits};
use stint_node::Logs;
use stint_store::{Store, StoreError};

use crate::cluster::{Storage, client, open};
use crate::pods::NodeLogs;

/// What is left of a cluster. Its folders are nobody else's as long as it is there.
#[derive(Debug)]
pub struct Archive {
    server: ApiServer,
    store: Store,
}

impl Archive {
    /// Opens the folder of a store and that of a node.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be opened.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn open(store: PathBuf, node: &Path) -> Result<Self, StoreError> {
        let store = open(Storage::Folder(store), stint_store::Options::default()).await?;
        let logs = Arc::new(NodeLogs::of(Logs::left_in(node)));
        let (gates, clock) = (Default::default(), Clock::system());
        let config = Config { gates, clock, logs, tracks_owners: true };
        let nobody = Authenticator::new::<&str>([]);
        let server = ApiServer::new(store.clone(), nobody, config, Limits::default());
        Ok(Archive { server, store })
    }

    /// A client that may read.
    pub fn client(&self) -> Client {
        client(&self.server, Identity::view())
    }

    /// Closes the store; the folders may be used by others then.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it does not close as it should.
    pub async fn close(self) -> Result<(), StoreError> {
        self.store.close().await
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use kube::Api;
    use kube::api::{ListParams, PostParams};
    use serde_json::json;

    use super::*;
    use crate::{Cluster, Options};

    #[tokio::test]
    async fn what_was_left_can_be_read_and_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        let storage = Storage::Folder(store.clone());
        let options = Options { storage, jobs: None, ..Options::default() };
        let cluster = Cluster::start(options).await.expect("it starts");
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work"},
            "spec": {"ttlSecondsAfterFinished": 0, "template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "main", "image": "x"}]}}},
        }))
        .expect("it is a Job");
        let jobs: Api<Job> = Api::default_namespaced(cluster.client(Identity::admin()));
        jobs.create(&PostParams::default(), &job).await.expect("it is valid");
        cluster.shutdown().await.expect("it closes");
        for _ in 0..2 {
            let archive = Archive::open(store.clone(), folder.path()).await.expect("it opens");
            let jobs: Api<Job> = Api::default_namespaced(archive.client());
            let listed = jobs.list(&ListParams::default()).await.expect("it may be read");
            assert_eq!(listed.items.len(), 1);
            let refused = jobs.create(&PostParams::default(), &job).await;
            let is_forbidden = matches!(&refused, Err(kube::Error::Api(it)) if it.code == 403);
            assert!(is_forbidden, "{refused:?}");
            archive.close().await.expect("it closes");
        }
    }
}
