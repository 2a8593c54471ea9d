//! What to do about an error of validation, where that can be said.

use serde_json::Value;

use crate::decode::suggest::closest;
use crate::field_error::{ErrorKind, FieldError};
use crate::field_path::Segment;

/// A remedy for this error, in a few words.
pub fn remedy(error: &FieldError) -> Option<String> {
    match error.kind {
        ErrorKind::NotSupported => did_you_mean(error),
        ErrorKind::Required => missing(&field_name(error)?),
        ErrorKind::Invalid => invalid(error),
        ErrorKind::NotFound => {
            let is_mount = field_name(error)? == "name" && has_field(error, "volumeMounts");
            is_mount.then(|| "add a volume of this name to spec.template.spec.volumes".to_owned())
        }
        ErrorKind::Duplicate
        | ErrorKind::Forbidden
        | ErrorKind::TooLong
        | ErrorKind::TooMany
        | ErrorKind::TypeInvalid => None,
    }
}

/// The supported value that was probably meant.
fn did_you_mean(error: &FieldError) -> Option<String> {
    let Some(Value::String(value)) = &error.value else {
        return None;
    };
    // The supported values stand in the detail, each in quotes.
    let supported = error.detail.split('"').skip(1).step_by(2);
    closest(value, supported).map(|name| format!("did you mean {name:?}?"))
}

fn missing(field: &str) -> Option<String> {
    let text = match field {
        "restartPolicy" => {
            "add restartPolicy: Never (a failed Pod is replaced) or OnFailure (its containers are restarted)"
        }
        "completions" => "set completions to the number of indexes",
        "backoffLimitPerIndex" => "set backoffLimitPerIndex to the retries an index may have",
        "maxFailedIndexes" => "set maxFailedIndexes to at most 10000",
        "selector" => "set a selector, or remove manualSelector to have one generated",
        "containers" => "add at least one container",
        "image" => {
            "name an image; it is not used on this machine, but a Job without one is not valid"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn invalid(error: &FieldError) -> Option<String> {
    let text = match error.detail.as_str() {
        "requires indexed completion mode" => "set completionMode: Indexed",
        "requires the backoffLimitPerIndex to be set" => {
            "set backoffLimitPerIndex, or use the action FailJob"
        }
        "must be ordered" => "list the values from the lowest to the highest",
        "`selector` not auto-generated" => {
            "remove the selector: a unique one is generated, unless manualSelector is true"
        }
        "`selector` does not match template `labels`" => {
            "give the template the labels that the selector asks for"
        }
        detail if detail.starts_with("will not able to create pod") => {
            "Pods are called NAME-INDEX, which must be a DNS label of at most 63 characters: use a shorter name without dots"
        }
        detail if detail.contains("podFailurePolicy is specified") => "set restartPolicy: Never",
        detail if detail.contains("non-increasing order") => {
            "list each index once, from the lowest to the highest: \"1,3-5,7\""
        }
        detail if detail.contains("too large index") => {
            "indexes go from 0 to one below completions"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn field_name(error: &FieldError) -> Option<String> {
    match error.path.segments().last()? {
        Segment::Field(name) => Some(name.to_string()),
        Segment::Index(_) | Segment::Key(_) => None,
    }
}

fn has_field(error: &FieldError, name: &str) -> bool {
    let segments = error.path.segments().iter();
    segments.into_iter().any(|segment| matches!(segment, Segment::Field(field) if field == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_path::Path;

    #[test]
    fn a_near_miss_of_a_closed_set_is_named() {
        let mode = Path::field("spec");
        let mode = mode.child("completionMode");
        let near = FieldError::not_supported(&mode, "indexd", &["NonIndexed", "Indexed"]);
        assert_eq!(remedy(&near).as_deref(), Some("did you mean \"Indexed\"?"));
        let far = FieldError::not_supported(&mode, "Elastic", &["NonIndexed", "Indexed"]);
        assert_eq!(remedy(&far), None);
    }

    #[test]
    fn a_missing_restart_policy_comes_with_the_choice() {
        let pod = Path::field("spec");
        let error = FieldError::required(&pod.child("restartPolicy"), "");
        assert!(remedy(&error).is_some_and(|text| text.contains("Never")));
        assert_eq!(remedy(&FieldError::required(&pod.child("somethingElse"), "")), None);
    }
}
