//! The Jobs of a run on standard output, for other tools.

use std::io::{self, Write};

use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use crate::manifest_yaml;
use crate::run_args::ObjectFormat;

/// Prints Jobs as they ended.
pub(crate) fn print_objects(jobs: &[&Job], format: ObjectFormat) -> io::Result<()> {
    let value = |job: &Job| serde_json::to_value(job).expect("Kubernetes types serialise to JSON");
    let text = match (format, jobs) {
        (ObjectFormat::Json, [job]) => format!("{:#}\n", value(job)),
        (ObjectFormat::Json, jobs) => {
            let items: Vec<_> = jobs.iter().map(|job| value(job)).collect();
            format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": items}))
        }
        (ObjectFormat::Yaml, jobs) => {
            let all: Vec<String> =
                jobs.iter().map(|job| manifest_yaml::value_to_yaml(&value(job))).collect();
            all.join("---\n")
        }
        (ObjectFormat::Name, jobs) => {
            let name = |job: &&Job| job.metadata.name.clone().unwrap_or_default();
            jobs.iter().map(|job| format!("job.batch/{}\n", name(job))).collect()
        }
    };
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
