//! What a field selector sees of a Job. Everything else about Jobs has files of its own.

use std::borrow::Cow;

use k8s_openapi::api::batch::v1::Job;

use super::meta_field;

/// What a field selector sees of a Job.
pub fn field<'a>(job: &'a Job, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "status.successful" => {
            let succeeded = job.status.as_ref().and_then(|status| status.succeeded);
            Some(Cow::Owned(succeeded.unwrap_or(0).to_string()))
        }
        _ => meta_field(&job.metadata, name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_selected_by_its_name_and_its_successes() {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "b"}, "status": {"succeeded": 3},
        }))
        .expect("a Job");
        assert_eq!(field(&job, "metadata.name").as_deref(), Some("a"));
        assert_eq!(field(&job, "metadata.namespace").as_deref(), Some("b"));
        assert_eq!(field(&job, "status.successful").as_deref(), Some("3"));
        assert_eq!(field(&Job::default(), "status.successful").as_deref(), Some("0"));
        assert_eq!(field(&job, "status.failed"), None);
    }
}
