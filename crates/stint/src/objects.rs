//! Jobs on standard output, for other tools.

use std::io;

use serde_json::{Value, json};

use crate::manifest_yaml;
use crate::run_args::ObjectFormat;
use crate::stdout::write;

/// Prints Jobs as they are; in JSON as a List if they are one.
pub(crate) fn print_objects(jobs: &[Value], is_list: bool, format: ObjectFormat) -> io::Result<()> {
    let text = match (format, jobs) {
        (ObjectFormat::Json, [job]) if !is_list => format!("{job:#}\n"),
        (ObjectFormat::Json, jobs) => {
            format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": jobs}))
        }
        (ObjectFormat::Yaml, jobs) => {
            let all: Vec<String> = jobs.iter().map(manifest_yaml::value_to_yaml).collect();
            all.join("---\n")
        }
        (ObjectFormat::Name, jobs) => {
            let name = |job: &Value| job["metadata"]["name"].as_str().unwrap_or("").to_owned();
            jobs.iter().map(|job| format!("job.batch/{}\n", name(job))).collect()
        }
    };
    write(&text)
}
