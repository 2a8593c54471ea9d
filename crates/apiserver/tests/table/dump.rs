//! The rows as JSON lines, for any script to replay against a real API server:
//! `STINT_TABLE_DUMP=<file>`. docs/tables.md has the format of the lines.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};

use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::rows::Row;

/// Writes a row's line, if there is a file to write it to.
pub(crate) fn write(file: &str, row: &Row, now: Timestamp) {
    static DUMP: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os("STINT_TABLE_DUMP")?;
        Some(Mutex::new(File::create(path).expect("the dump file can be made")))
    });
    let Some(dump) = &*DUMP else {
        return;
    };
    let line = json!({
        "file": file,
        "name": row.name,
        "now": now.to_string(),
        "object": row.object,
        "cells": row.cells,
        "conditions": row.conditions,
    });
    let mut dump = dump.lock().expect("no test panics while it writes a line");
    dump.write_all(format!("{line}\n").as_bytes()).expect("the dump file can be written");
}
