//! Jobs: what all of this is for.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::{FieldError, quote};
use stint_api::validation::job::validate_job;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::validation::job_update::validate_job_update;
use stint_api::{defaults, kinds, prepare, warning};

use crate::kind::{Context, Kind, Manners, Names, Part, resets_of_status};
use crate::object;
use crate::table::{self, Column};

/// Jobs.
#[derive(Debug)]
pub(super) struct Jobs;

impl Kind for Jobs {
    type Object = Job;

    const NAMES: Names = Names {
        group: "batch",
        version: "v1",
        kind: "Job",
        plural: "jobs",
        singular: "job",
        short_names: &[],
        categories: &["all"],
        is_namespaced: true,
    };

    // Jobs of batch/v1 orphan their Pods unless told otherwise, from before there was a choice.
    const MANNERS: Manners =
        Manners { has_status: true, orphans_by_default: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "batch/jobs";

    const FIELDS: &'static [&'static str] = &["status.successful"];

    fn unknown_field(field: &str) -> String {
        format!("field label {} not supported for Job", quote(field))
    }

    fn warnings(job: &Job) -> Vec<String> {
        warning::of_job(job)
    }

    /// Again of all of the spec, whatever has changed in it, as in Kubernetes.
    fn change_warnings(new: &Job, old: &Job) -> Vec<String> {
        if new.metadata.generation == old.metadata.generation {
            return Vec::new();
        }
        warning::of_job_spec(new)
    }

    fn tracked(job: &mut Job, gates: &FeatureGates) -> Vec<u8> {
        // The labels of a new Job come from its template as that is in the end, so the Job is left
        // as it was.
        let mut job = job.clone();
        defaults::job::default_job(&mut job, gates);
        object::to_stored(&job)
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        resets_of_status(part)
    }

    fn prepare_for_create(job: &mut Job, context: &Context<'_>) {
        prepare::prepare_for_create(job, context.gates);
        job.status = Some(Default::default());
    }

    fn prepare_for_update(new: &mut Job, old: &Job, part: Part, context: &Context<'_>) {
        match part {
            Part::Status => prepare::prepare_for_status_update(new, old),
            Part::Whole | Part::Finalize => {
                prepare::prepare_for_update(new, old, context.gates);
            }
        }
    }

    fn validate_create(job: &Job, _context: &Context<'_>) -> Vec<FieldError> {
        validate_job(job)
    }

    fn validate_update(new: &Job, old: &Job, part: Part, context: &Context<'_>) -> Vec<FieldError> {
        match part {
            Part::Status => validate_job_status_update(new, old, context.gates),
            Part::Whole | Part::Finalize => validate_job_update(new, old),
        }
    }

    fn field<'o>(job: &'o Job, name: &str) -> Cow<'o, str> {
        kinds::job::field(job, name).unwrap_or_default()
    }

    fn columns() -> &'static [Column] {
        table::job::COLUMNS
    }

    fn cells(job: &Job, now: Timestamp) -> Vec<Value> {
        table::job::cells(job, now)
    }

    fn to_stored(job: &Job) -> Vec<u8> {
        // A Job without labels gets those of its template once it is known to be valid.
        let mut job = job.clone();
        defaults::job::default_labels(&mut job);
        object::to_stored(&job)
    }
}
