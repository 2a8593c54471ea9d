//! A LimitRange: between what the Pods and containers of a namespace may ask for things, and
//! what they get if they ask for nothing. What it does to a Pod is in [`crate::limits`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};

use super::{
    keep_identity, meta_field, once, validate_meta_of_any_kind, validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::limits::MAX_MILLI;
use crate::prepare::reset_server_fields;
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, ResourceList, round_up};
use crate::validation::object_meta::{MetaRules, validate_object_meta};
use crate::validation::pod_spec::{can_overcommit, container_resource_name, known_resource_name};
use crate::validation::push_invalid;

/// Whether a PUT may create a LimitRange.
pub const CREATES_ON_UPDATE: bool = true;
/// Whether a LimitRange may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// What limits are about if they are about all of a Pod.
pub const POD: &str = "Pod";
/// What limits are about if they are about each container.
pub const CONTAINER: &str = "Container";
/// What limits are about if they are about claims of volumes.
const CLAIM: &str = "PersistentVolumeClaim";

/// Prepares a new LimitRange.
pub fn prepare_for_create(range: &mut LimitRange) {
    set_defaults(range);
    reset_server_fields(&mut range.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut LimitRange, old: &LimitRange) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new LimitRange.
pub fn validate_create(range: &LimitRange) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(range, &mut errors);
    if errors.is_empty() {
        validate_meta_of_any_kind(&MetaRules::NAMESPACED, &range.metadata, &mut errors);
    }
    errors
}

/// Validates a prepared update against the stored LimitRange.
pub fn validate_update(new: &LimitRange, old: &LimitRange) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate(new, &mut errors);
    once(errors)
}

/// What a field selector sees of a LimitRange.
pub fn field<'a>(range: &'a LimitRange, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&range.metadata, name)
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(range: &mut LimitRange) {
    for item in range.spec.iter_mut().flat_map(|spec| &mut spec.limits) {
        default_item(item);
        let lists = [
            &mut item.max,
            &mut item.min,
            &mut item.default,
            &mut item.default_request,
            &mut item.max_limit_request_ratio,
        ];
        lists.into_iter().for_each(round_up);
    }
}

/// What a container gets if it asks for nothing: the most there is as its limit, that as its
/// request, and else the least there is.
fn default_item(item: &mut LimitRangeItem) {
    if item.type_ != CONTAINER {
        return;
    }
    fill(&mut item.default, &item.max);
    fill(&mut item.default_request, &item.default);
    fill(&mut item.default_request, &item.min);
}

fn fill(list: &mut Option<ResourceList>, from: &Option<ResourceList>) {
    for (name, amount) in from.iter().flatten() {
        let list = list.get_or_insert_default();
        list.entry(name.clone()).or_insert_with(|| amount.clone());
    }
}

fn validate(range: &LimitRange, errors: &mut Vec<FieldError>) {
    validate_object_meta(&range.metadata, &Path::field("metadata"), errors);
    let spec = Path::field("spec");
    let path = spec.child("limits");
    let mut seen = BTreeSet::new();
    for (i, item) in range.spec.iter().flat_map(|spec| &spec.limits).enumerate() {
        let here = path.index(i);
        validate_type(&item.type_, &here.child("type"), errors);
        if !seen.insert(item.type_.as_str()) {
            errors.push(FieldError::duplicate(&here.child("type"), &item.type_));
        }
        Bounds::read(item, &here, errors).validate(&here, errors);
    }
}

fn validate_type(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = identifier::qualified_name(name);
    if wrong.is_empty() && !name.contains('/') && ![POD, CONTAINER, CLAIM].contains(&name) {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    push_invalid(path, name, wrong, errors);
}

/// What the limits of one type say, resource by resource.
struct Bounds {
    max: Amounts,
    min: Amounts,
    default: Amounts,
    default_request: Amounts,
    ratio: Amounts,
}

impl Bounds {
    /// Reads limits, and validates the names in them.
    fn read(item: &LimitRangeItem, path: &Path<'_>, errors: &mut Vec<FieldError>) -> Self {
        let is_of_pods = matches!(item.type_.as_str(), POD | CONTAINER);
        let list = |list: &Option<ResourceList>, field, errors: &mut Vec<FieldError>| {
            let here = path.child(field);
            let mut amounts = BTreeMap::new();
            for (name, amount) in list.iter().flatten() {
                let rule = if is_of_pods { container_resource_name } else { known_resource_name };
                rule(name, &here.key(name), errors);
                match amount.0.trim().parse::<Quantity>() {
                    Ok(amount) => drop(amounts.insert(name.clone(), amount)),
                    Err(error) => {
                        let here = here.key(name);
                        errors.push(FieldError::invalid(&here, &amount.0, error.to_string()));
                    }
                }
            }
            amounts
        };
        let max = list(&item.max, "max", errors);
        let min = list(&item.min, "min", errors);
        let (mut default, mut default_request) = (Amounts::new(), Amounts::new());
        if item.type_ == POD {
            let given = [("default", &item.default), ("defaultRequest", &item.default_request)];
            for (field, list) in given {
                if list.as_ref().is_some_and(|list| !list.is_empty()) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
        } else {
            default = list(&item.default, "default", errors);
            default_request = list(&item.default_request, "defaultRequest", errors);
        }
        if item.type_ == CLAIM && !max.contains_key("storage") && !min.contains_key("storage") {
            let detail =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), detail));
        }
        let ratio = list(&item.max_limit_request_ratio, "maxLimitRequestRatio", errors);
        Bounds { max, min, default, default_request, ratio }
    }

    fn validate(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let lists = [&self.max, &self.min, &self.default, &self.default_request, &self.ratio];
        let names: BTreeSet<&String> = lists.into_iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            self.validate_order(name, path, errors);
            self.validate_ratio(name, path, errors);
            if let (Some(limit), Some(request)) =
                (self.default.get(name), self.default_request.get(name))
                && !can_overcommit(name)
                && limit != request
            {
                let detail = format!(
                    "default value {limit} must equal to defaultRequest value {request} in {name}"
                );
                let here = path.child("defaultRequest");
                errors.push(FieldError::invalid(&here.key(name), request.to_string(), detail));
            }
        }
    }

    /// The least is not above the most, and what is given stands between them.
    fn validate_order(&self, name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let (min, max) = (self.min.get(name), self.max.get(name));
        let (limit, request) = (self.default.get(name), self.default_request.get(name));
        // The smaller, the larger, where it is said, which of them is printed, and how both are
        // called. Upstream prints the bound of a default, not the default.
        let rows = [
            (min, max, "min", min, ["min", "max"]),
            (min, request, "defaultRequest", request, ["min", "default request"]),
            (request, max, "defaultRequest", request, ["default request", "max"]),
            (request, limit, "defaultRequest", request, ["default request", "default limit"]),
            (min, limit, "default", min, ["min", "default"]),
            (limit, max, "default", max, ["default", "max"]),
        ];
        for (low, high, field, shown, [low_name, high_name]) in rows {
            if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
                && low > high
            {
                let detail =
                    format!("{low_name} value {low} is greater than {high_name} value {high}");
                let here = path.child(field);
                errors.push(FieldError::invalid(&here.key(name), shown.to_string(), detail));
            }
        }
    }

    fn validate_ratio(&self, name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Some(ratio) = self.ratio.get(name) else { return };
        let here = path.child("maxLimitRequestRatio");
        let mut refuse = |detail: String| {
            errors.push(FieldError::invalid(&here.key(name), ratio.to_string(), detail));
        };
        if *ratio < Quantity::whole(1) {
            refuse(format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (self.min.get(name), self.max.get(name)) {
            let (most, given) = ratios(ratio, min, max);
            if given > most {
                refuse(format!("ratio {ratio} is greater than max/min = {}", go_float(most)));
            }
        }
    }
}

/// The largest ratio that there can be between two amounts, and a ratio, as exact as upstream
/// has them.
#[expect(clippy::cast_precision_loss, reason = "upstream's precision is what is asked for")]
fn ratios(ratio: &Quantity, min: &Quantity, max: &Quantity) -> (f64, f64) {
    let is_small = [ratio, min, max].into_iter().all(|amount| amount.value() < MAX_MILLI);
    if is_small {
        let most = max.milli_value() as f64 / min.milli_value() as f64;
        return (most, ratio.milli_value() as f64 / 1000.0);
    }
    (max.value() as f64 / min.value() as f64, ratio.value() as f64)
}

/// A number as Go's `%f` writes it.
pub(crate) fn go_float(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        format!("{number:.6}")
    }
}
