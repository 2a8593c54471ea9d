//! Jobs to be run on a cluster.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};

use crate::contest::Work;
use crate::error::BenchError;
use crate::observer::FAILS;

/// Some Jobs that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many.
    pub jobs: u32,
    /// The indexes of each.
    pub indexes: u32,
    /// How many Pods of each at once.
    pub parallelism: u32,
    /// How many of a hundred indexes fail once before they succeed.
    pub fails: u32,
}

impl Load {
    /// One Job whose Pods all succeed.
    pub fn one(indexes: u32, parallelism: u32) -> Self {
        Load { jobs: 1, indexes, parallelism, fails: 0 }
    }

    /// The Pods that succeed.
    pub(crate) fn pods(&self) -> u32 {
        self.jobs * self.indexes
    }

    pub(crate) fn work(&self) -> Work {
        let Load { jobs, indexes, parallelism, fails } = self;
        vec![
            ("Jobs", json!(jobs)),
            ("indexes", json!(indexes)),
            ("at once", json!(parallelism)),
            ("% failing", json!(fails)),
        ]
    }

    /// One of the Jobs.
    pub(crate) fn job(&self, name: &str) -> Value {
        let Load { indexes, parallelism, fails, .. } = self;
        let mut spec = json!({
            "completions": indexes, "parallelism": parallelism, "completionMode": "Indexed",
            "template": {
                "metadata": {"labels": {FAILS: fails.to_string()}},
                "spec": {
                    "restartPolicy": "Never",
                    // Where Pods are processes they need a command.
                    "containers": [{"name": "main", "image": "i", "command": ["true"]}],
                },
            },
        });
        if *fails > 0 {
            spec["backoffLimitPerIndex"] = json!(2);
        }
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
    }
}

/// Creates a Job.
pub(crate) async fn create(client: &Client, job: &Value) -> Result<(), BenchError> {
    let request = Request::post("/apis/batch/v1/namespaces/default/jobs")
        .header(CONTENT_TYPE, "application/json")
        .body(job.to_string().into_bytes());
    let answer = client.request_text(request.expect("a request")).await;
    answer.map(drop).map_err(|source| BenchError::Api { what: "a Job", source })
}
