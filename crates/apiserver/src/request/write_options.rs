//! The options of requests that write: dryRun and fieldValidation.

use stint_api::field_error::FieldError;
use stint_api::field_path::Path;

use super::query::Query;
use crate::decode::FieldValidation;
use crate::status::Status;

/// How a write is to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether nothing is to be stored.
    pub is_dry_run: bool,
    /// What becomes of unknown and repeated fields.
    pub validation: FieldValidation,
}

impl WriteOptions {
    /// Reads them from a query. `kind` is what Kubernetes calls them: CreateOptions.
    pub fn read(query: &Query, kind: &'static str) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let is_dry_run = read_dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let path = Path::field("fieldValidation");
                errors.push(FieldError::not_supported(&path, other, &known));
                FieldValidation::Warn
            }
        };
        if errors.is_empty() {
            Ok(WriteOptions { is_dry_run, validation })
        } else {
            Err(Status::invalid_of("meta.k8s.io", kind, "", &errors))
        }
    }
}

/// Whether a dry run is asked for: the only stage there is, is `All`.
pub(super) fn read_dry_run<'v>(
    values: impl Iterator<Item = &'v str>,
    errors: &mut Vec<FieldError>,
) -> bool {
    let mut is_dry_run = false;
    for value in values {
        is_dry_run = true;
        if value != "All" {
            errors.push(FieldError::not_supported(&Path::field("dryRun"), [value], &["All"]));
        }
    }
    is_dry_run
}
