//! The rows as JSON lines, for any script to replay against a real API server:
//! `STINT_PATCH_DUMP=<file>`. docs/patches.md has the format of the lines.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};

use serde_json::json;

use crate::rows::{Expected, Row};

/// Writes a row's line, if there is a file to write it to.
pub(crate) fn write(row: &Row) {
    static DUMP: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os("STINT_PATCH_DUMP")?;
        Some(Mutex::new(File::create(path).expect("the dump file can be made")))
    });
    let Some(dump) = &*DUMP else {
        return;
    };
    let mut line = json!({
        "name": row.name,
        "contentType": row.patch_type.media_type(),
        "original": row.original,
        "patch": row.patch,
    });
    match &row.expected {
        Expected::Result(result) => line["result"] = result.clone(),
        Expected::Error { status, .. } => line["error"] = json!(status),
    }
    if let Some(subresource) = row.subresource {
        line["subresource"] = json!(subresource);
    }
    if let Some(upstream) = &row.upstream {
        line["upstream"] = json!(upstream);
    }
    if let Some(differs) = &row.differs {
        line["differs"] = json!(differs);
    }
    let mut dump = dump.lock().expect("no test panics while it writes a line");
    dump.write_all(format!("{line}\n").as_bytes()).expect("the dump file can be written");
}
