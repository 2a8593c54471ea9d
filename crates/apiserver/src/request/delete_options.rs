//! The options of a delete, from its body or its query.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions as Written;
use stint_api::field_error::{FieldError, quote};
use stint_api::field_path::Path;

use super::query::Query;
use super::write_options::read_dry_run;
use crate::decode::{self, Format};
use crate::status::Status;

/// What becomes of the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, without their owner.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

/// How something is to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How many seconds it is given to end.
    pub grace_period_seconds: Option<i64>,
    /// What becomes of what it owns; `None`: as its kind likes it.
    pub propagation: Option<Propagation>,
    /// Whether orphanDependents, which is what old clients say, was false.
    pub is_accepted_only: bool,
    /// The uid it must have.
    pub uid: Option<String>,
    /// The version it must be at.
    pub resource_version: Option<String>,
    /// Whether nothing is to be stored.
    pub is_dry_run: bool,
}

impl DeleteOptions {
    /// Reads them from a body, or from the query if there is none.
    pub fn read(body: &[u8], format: Format, query: &Query) -> Result<Self, Status> {
        let written = if body.is_empty() {
            Written {
                grace_period_seconds: query.number("gracePeriodSeconds")?,
                propagation_policy: query.get("propagationPolicy").map(str::to_owned),
                orphan_dependents: query.flag("orphanDependents")?,
                dry_run: Some(query.all("dryRun").map(str::to_owned).collect()),
                ..Written::default()
            }
        } else if format == Format::Json && body.trim_ascii() == b"null" {
            // As good as an object without anything in it.
            Written::default()
        } else {
            decode::plain(body, format, "meta.k8s.io/v1", "DeleteOptions")?
        };
        Self::of(written)
    }

    /// Checks them as they are written in a body, of their own or of an eviction.
    pub(crate) fn of(written: Written) -> Result<Self, Status> {
        if let Some(kind) = written.kind.filter(|kind| !matches!(&**kind, "" | "DeleteOptions")) {
            let kind = quote(&kind);
            return Err(Status::bad_request(format!("kind {kind} is not DeleteOptions")));
        }
        let mut errors = Vec::new();
        let path = Path::field("propagationPolicy");
        if written.propagation_policy.is_some() && written.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&path, &written.propagation_policy, detail));
        }
        let propagation = match (written.propagation_policy.as_deref(), written.orphan_dependents) {
            (None, None) => None,
            (None, Some(true)) | (Some("Orphan"), _) => Some(Propagation::Orphan),
            (None, Some(false)) | (Some("Background"), _) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(other), _) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&path, other, &known));
                None
            }
        };
        let dry_run = written.dry_run.unwrap_or_default();
        let is_dry_run = read_dry_run(dry_run.iter().map(String::as_str), &mut errors);
        if !errors.is_empty() {
            return Err(Status::invalid_of("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        let preconditions = written.preconditions.unwrap_or_default();
        Ok(DeleteOptions {
            grace_period_seconds: written.grace_period_seconds,
            propagation,
            is_accepted_only: written.orphan_dependents == Some(false),
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
            is_dry_run,
        })
    }
}
