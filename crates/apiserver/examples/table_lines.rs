//! Rows line by line, for scripts that compare them with another server's: each line of the
//! input is an object with `now` and `object`, each line of the output one with
//! `definitions`, `cells` and `conditions`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use stint_apiserver::table::{self, kind};

fn main() -> Result<(), Box<dyn Error>> {
    for line in stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let object = &line["object"];
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let kind = kind::of(text("apiVersion"), text("kind")).ok_or("no such kind")?;
        let now = line["now"].as_str().and_then(|now| now.parse::<Timestamp>().ok());
        let answer = match kind.print(object, now.ok_or("no time")?) {
            Ok(printed) => {
                let row = table::row(printed.cells, printed.conditions, Value::Null);
                json!({
                    "definitions": table::definitions(kind.columns),
                    "cells": row["cells"],
                    "conditions": row["conditions"],
                })
            }
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(stdout().lock(), "{answer}")?;
    }
    Ok(())
}
