//! Jobs on standard output, for other tools.

use std::io;

use serde_json::{Value, json};

use crate::manifest_yaml;
use crate::run_args::ObjectFormat;
use crate::stdout::write;

/// Prints Jobs, in JSON as a List if they are one: as they are, but as with kubectl for who owns
/// which fields, which is more than all the rest.
pub(crate) fn print_objects(
    mut jobs: Vec<Value>,
    is_list: bool,
    format: ObjectFormat,
) -> io::Result<()> {
    for metadata in jobs.iter_mut().filter_map(|job| job["metadata"].as_object_mut()) {
        metadata.remove("managedFields");
    }
    let text = match (format, &*jobs) {
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
