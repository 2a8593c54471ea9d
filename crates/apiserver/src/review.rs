//! Questions that callers ask about themselves: who am I, may I do this, what may I do. They
//! are created, answered and kept nowhere. The answers come from `access`, which decides about
//! real requests, too; this file only asks it.

mod rules;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, SelfSubjectReviewStatus, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview, SubjectAccessReviewStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Serialize;
use serde_json::Value;
use stint_api::field_error::FieldError;
use stint_api::field_path::Path;

use crate::access::{Attributes, Identity, authorize};
use crate::decode::{self, Decoded, FieldValidation, Format};
use crate::discovery::{ServedResource, all_resources};
use crate::kind::Names;
use crate::object::KubernetesType;
use crate::status::Status;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// Who am I?
    Subject,
    /// May I do this?
    Access,
    /// What may I do?
    Rules,
}

/// All of them.
pub(crate) const ALL: [Review; 3] = [Review::Subject, Review::Access, Review::Rules];

const SUBJECT: Names = Names {
    group: "authentication.k8s.io",
    version: "v1",
    kind: "SelfSubjectReview",
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    short_names: &[],
    categories: &[],
    is_namespaced: false,
};

const ACCESS: Names = Names {
    group: "authorization.k8s.io",
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    ..SUBJECT
};

const RULES: Names = Names {
    kind: "SelfSubjectRulesReview",
    plural: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    ..ACCESS
};

impl Review {
    /// The review of a resource.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<Self> {
        ALL.into_iter().find(|review| {
            let names = review.names();
            names.plural == plural && names.group == group && names.version == version
        })
    }

    /// What it is called.
    pub(crate) fn names(self) -> &'static Names {
        match self {
            Review::Subject => &SUBJECT,
            Review::Access => &ACCESS,
            Review::Rules => &RULES,
        }
    }

    /// Answers the question of a body.
    pub(crate) fn answer(
        self,
        identity: &Identity,
        now: Timestamp,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded<Value>, Status> {
        match self {
            Review::Subject => self
                .read(body, format, validation, |_: SelfSubjectReview| Ok(subject(identity, now))),
            Review::Access => self.read(body, format, validation, |asked| access(identity, asked)),
            Review::Rules => self.read(body, format, validation, |asked| rules(identity, &asked)),
        }
    }

    fn read<T: KubernetesType + Serialize>(
        self,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
        answer: impl FnOnce(T) -> Result<T, Status>,
    ) -> Result<Decoded<Value>, Status> {
        let Decoded { object, warnings } = decode::body(body, format, validation, self.names())?;
        let object = serde_json::to_value(answer(object)?).expect("plain data serialises");
        Ok(Decoded { object, warnings })
    }
}

fn subject(identity: &Identity, now: Timestamp) -> SelfSubjectReview {
    let user = UserInfo {
        username: Some(identity.user.clone()),
        groups: Some(identity.groups.clone()),
        ..UserInfo::default()
    };
    SelfSubjectReview {
        metadata: ObjectMeta { creation_timestamp: Some(Time(now)), ..ObjectMeta::default() },
        status: Some(SelfSubjectReviewStatus { user_info: Some(user) }),
    }
}

fn access(
    identity: &Identity,
    mut review: SelfSubjectAccessReview,
) -> Result<SelfSubjectAccessReview, Status> {
    let errors = validate_access(&review);
    if !errors.is_empty() {
        return Err(Status::invalid_of(ACCESS.group, ACCESS.kind, "", &errors));
    }
    let is_allowed = match (&review.spec.resource_attributes, &review.spec.non_resource_attributes)
    {
        (Some(resource), _) => may_everywhere(identity, resource),
        (None, asked) => {
            let asked = asked.clone().unwrap_or_default();
            let (verb, path) = (asked.verb.unwrap_or_default(), asked.path.unwrap_or_default());
            authorize(identity, &Attributes::of_path(&verb, &path)).is_ok()
        }
    };
    review.status = Some(SubjectAccessReviewStatus {
        allowed: is_allowed,
        reason: is_allowed.then(|| format!("allowed by the role {}", identity.role)),
        ..SubjectAccessReviewStatus::default()
    });
    Ok(review)
}

fn validate_access(review: &SelfSubjectAccessReview) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = Path::field("spec");
    let SelfSubjectAccessReviewSpec { resource_attributes, non_resource_attributes } = &review.spec;
    match (resource_attributes, non_resource_attributes) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            &spec.child("nonResourceAttributes"),
            serde_json::to_value(path).expect("plain data serialises"),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            &spec.child("resourceAttributes"),
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (Some(_), None) | (None, Some(_)) => {}
    }
    if let Some(resource) = resource_attributes {
        let path = spec.child("resourceAttributes");
        if let Some(selector) = &resource.field_selector {
            let has_raw = selector.raw_selector.as_ref().is_some_and(|raw| !raw.is_empty());
            let has_requirements = selector.requirements.as_ref().is_some_and(|r| !r.is_empty());
            let raw = selector.raw_selector.as_deref().unwrap_or("");
            let path = path.child("fieldSelector");
            check_selector(&path, raw, has_raw, has_requirements, &mut errors);
        }
        if let Some(selector) = &resource.label_selector {
            let has_raw = selector.raw_selector.as_ref().is_some_and(|raw| !raw.is_empty());
            let has_requirements = selector.requirements.as_ref().is_some_and(|r| !r.is_empty());
            let raw = selector.raw_selector.as_deref().unwrap_or("");
            let path = path.child("labelSelector");
            check_selector(&path, raw, has_raw, has_requirements, &mut errors);
        }
    }
    let named = ObjectMeta { managed_fields: None, ..review.metadata.clone() };
    if named != ObjectMeta::default() {
        let metadata = serde_json::to_value(&named).expect("plain data serialises");
        errors.push(FieldError::invalid(&Path::field("metadata"), metadata, "must be empty"));
    }
    errors
}

/// A selector is given in one of two ways. What it selects makes no difference here: no role
/// is about some objects of a kind.
fn check_selector(
    path: &Path,
    raw: &str,
    has_raw: bool,
    has_requirements: bool,
    errors: &mut Vec<FieldError>,
) {
    match (has_raw, has_requirements) {
        (true, true) => errors.push(FieldError::invalid(
            &path.child("rawSelector"),
            raw,
            "may not specified at the same time as requirements",
        )),
        (false, false) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(&path.child("requirements"), why));
        }
        (true, false) | (false, true) => {}
    }
}

/// Whether a caller may do what is asked for, with `*` for every verb, group or resource.
/// No rule stands for everything but that of an administrator: whoever may do all that there is
/// to do, may do everything.
fn may_everywhere(identity: &Identity, asked: &ResourceAttributes) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (verb, group) = (text(&asked.verb), text(&asked.group));
    let (resource, part) = (text(&asked.resource), some(&asked.subresource));
    let (namespace, name) = (some(&asked.namespace), some(&asked.name));
    let may = |verb: &str, group: &str, resource: &str, part: Option<&str>| {
        let attributes = Attributes {
            verb,
            group,
            resource,
            subresource: part,
            namespace: namespace.as_deref(),
            name: name.as_deref(),
            path: "",
        };
        authorize(identity, &attributes).is_ok()
    };
    if ![&verb, &group, &resource].contains(&&"*".to_owned()) {
        return may(&verb, &group, &resource, part.as_deref());
    }
    // Whoever may do everything may do it to what there is not, too.
    if may("*", "*", "*", part.as_deref()) {
        return true;
    }
    let served = all_resources();
    let meant: Vec<&ServedResource> = served
        .iter()
        .filter(|served| group == "*" || served.group == group)
        .filter(|served| match resource.as_str() {
            // Every resource is also every part of one.
            "*" => part.is_none() || served.part == part.as_deref(),
            resource => served.plural == resource && served.part == part.as_deref(),
        })
        .collect();
    !meant.is_empty()
        && meant.into_iter().all(|served| {
            let verbs = if verb == "*" { &served.verbs[..] } else { &[verb.as_str()][..] };
            verbs.iter().all(|verb| may(verb, served.group, served.plural, served.part))
        })
}

fn rules(
    identity: &Identity,
    review: &SelfSubjectRulesReview,
) -> Result<SelfSubjectRulesReview, Status> {
    let namespace = review.spec.namespace.as_deref().unwrap_or("");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    Ok(SelfSubjectRulesReview {
        status: Some(rules::of(identity, namespace)),
        ..SelfSubjectRulesReview::default()
    })
}

#[cfg(test)]
mod tests;
