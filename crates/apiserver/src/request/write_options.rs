//! The options of requests that write: dryRun and fieldValidation.

use stint_api::field_error::FieldError;
use stint_api::field_path::Path;
use stint_api::validation::object_meta::{MANAGER_MAX_BYTES, is_printable, validate_manager};

use super::query::Query;
use crate::decode::FieldValidation;
use crate::status::Status;

/// How a write is to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether nothing is to be stored.
    pub is_dry_run: bool,
    /// What becomes of unknown and repeated fields.
    pub validation: FieldValidation,
    /// Who writes, to own what is written; empty if nobody knows.
    pub manager: String,
}

impl WriteOptions {
    /// Reads them from a query. `kind` is what Kubernetes calls them: CreateOptions. Who does not
    /// say who it is, is known by the name of its program.
    pub fn read(query: &Query, kind: &'static str, user_agent: &str) -> Result<Self, Status> {
        Self::checked(query, kind, user_agent, FieldValidation::Warn, Vec::new())
    }

    /// The same, where something is known to be wrong already, with what becomes of unknown fields if
    /// the query does not say.
    pub fn checked(
        query: &Query,
        kind: &'static str,
        user_agent: &str,
        unsaid: FieldValidation,
        mut errors: Vec<FieldError>,
    ) -> Result<Self, Status> {
        let manager = query.get("fieldManager").unwrap_or("");
        validate_manager(manager, &Path::field("fieldManager"), &mut errors);
        let is_dry_run = read_dry_run(query.all("dryRun"), &mut errors);
        let validation = match query.get("fieldValidation") {
            None => unsaid,
            Some("Warn") => FieldValidation::Warn,
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
            let manager = if manager.is_empty() { program(user_agent) } else { manager.to_owned() };
            Ok(WriteOptions { is_dry_run, validation, manager })
        } else {
            Err(Status::invalid_of("meta.k8s.io", kind, "", &errors))
        }
    }
}

/// What a program calls itself, as far as it can be shown.
fn program(user_agent: &str) -> String {
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or("").chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > MANAGER_MAX_BYTES {
            break;
        }
        name.push(c);
    }
    name
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
