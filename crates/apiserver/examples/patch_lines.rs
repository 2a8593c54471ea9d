//! Patches line by line, for scripts that compare the result with another server's: each line
//! of the input is an object with `contentType`, `original` and `patch`, each line of the
//! output one with `result`, or with `error` and `message`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use serde_json::{Value, json};
use stint_apiserver::patch::{Patch, PatchType, schema};

fn main() -> Result<(), Box<dyn Error>> {
    for line in stdin().lock().lines() {
        let mut line: Value = serde_json::from_str(&line?)?;
        let content_type = line["contentType"].as_str().unwrap_or_default();
        let patch_type = PatchType::from_content_type(content_type).ok_or("no such patch type")?;
        let text = |field: &str| line["original"][field].as_str().unwrap_or_default();
        let of = schema::of_kind(text("apiVersion"), text("kind")).ok_or("no such kind")?;
        let (patch, original) = (line["patch"].take(), line["original"].take());
        let outcome = Patch::read(patch_type, patch.to_string().as_bytes())
            .and_then(|patch| patch.apply(original, of));
        let answer = match outcome {
            Ok(result) => json!({ "result": result }),
            Err(error) => json!({ "error": error.status(), "message": error.to_string() }),
        };
        let mut out = stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
