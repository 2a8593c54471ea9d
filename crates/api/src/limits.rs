//! What LimitRanges do to a Pod: what its containers are given that ask for nothing, and why it is
//! refused. In the words of the admission plugin LimitRanger, and in its order, but for what it
//! takes from maps: that is in the order of the names here.

use k8s_openapi::api::core::v1::{Container, LimitRange, LimitRangeItem, Pod, PodSpec};

use crate::kinds::limit_range::{CONTAINER, POD, go_float};
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, ResourceList, read, sum_up};

/// The annotation that says what a Pod was given.
pub const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The largest number of which the thousandths can be counted.
pub(crate) const MAX_MILLI: i64 = i64::MAX / 1000;

/// How many reasons are told: more than anybody reads, where every container may break every limit.
const MAX_REASONS: usize = 100;

/// Gives the containers of a new Pod what they do not ask for themselves.
pub fn apply_defaults(pod: &mut Pod, range: &LimitRange) {
    let (mut limits, mut requests) = (ResourceList::new(), ResourceList::new());
    for item in items(range).filter(|item| item.type_ == CONTAINER) {
        limits.extend(item.default.clone().unwrap_or_default());
        requests.extend(item.default_request.clone().unwrap_or_default());
    }
    let mut given = Vec::new();
    let spec = pod.spec.get_or_insert_default();
    for container in &mut spec.containers {
        give(container, "container", &limits, &requests, &mut given);
    }
    for container in spec.init_containers.iter_mut().flatten() {
        give(container, "init container", &limits, &requests, &mut given);
    }
    if !given.is_empty() {
        let told = format!("LimitRanger plugin set: {}", given.join("; "));
        pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), told);
    }
}

/// Gives a container what it does not ask for, and says so.
fn give(
    container: &mut Container,
    what: &str,
    limits: &ResourceList,
    requests: &ResourceList,
    given: &mut Vec<String>,
) {
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let resources = container.resources.get_or_insert_default();
    let set = |list: &mut Option<ResourceList>, from: &ResourceList| {
        let mut names = Vec::new();
        for (name, amount) in from {
            let list = list.get_or_insert_default();
            if !list.contains_key(name) {
                list.insert(name.clone(), amount.clone());
                names.push(name.as_str());
            }
        }
        names.join(", ")
    };
    let limited = set(&mut resources.limits, limits);
    let requested = set(&mut resources.requests, requests);
    for (names, list) in [(requested, "request"), (limited, "limit")] {
        if !names.is_empty() {
            given.push(format!("{names} {list} for {what} {}", container.name));
        }
    }
}

/// Why a LimitRange refuses a Pod.
///
/// # Errors
///
/// Everything that is wrong, as the API server says it.
pub fn check(pod: &Pod, range: &LimitRange) -> Result<(), String> {
    let no_spec = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    let mut errors: Vec<String> = Vec::new();
    for item in items(range) {
        match item.type_.as_str() {
            CONTAINER => {
                for container in spec.containers.iter().chain(spec.init_containers.iter().flatten())
                {
                    let resources = container.resources.clone().unwrap_or_default();
                    let asked = Asked {
                        requests: read(&resources.requests),
                        limits: read(&resources.limits),
                    };
                    asked.check(item, &mut errors);
                }
            }
            POD => Asked::by(spec).check(item, &mut errors),
            _ => {}
        }
    }
    let mut said = std::collections::HashSet::new();
    errors.retain(|error| said.len() < MAX_REASONS && said.insert(error.clone()));
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn items(range: &LimitRange) -> impl Iterator<Item = &LimitRangeItem> {
    range.spec.iter().flat_map(|spec| &spec.limits)
}

/// What a container or a Pod asks for.
struct Asked {
    requests: Amounts,
    limits: Amounts,
}

impl Asked {
    /// What all of a Pod asks for.
    fn by(spec: &PodSpec) -> Self {
        let mut asked = Asked {
            requests: sum_up(spec, |resources| resources.requests.as_ref()),
            limits: sum_up(spec, |resources| resources.limits.as_ref()),
        };
        if let Some(resources) = &spec.resources {
            let own = |list| {
                read(list).into_iter().filter(|(name, _)| matches!(&**name, "cpu" | "memory"))
            };
            asked.requests.extend(own(&resources.requests));
            asked.limits.extend(own(&resources.limits));
        }
        asked
    }

    fn check(&self, item: &LimitRangeItem, errors: &mut Vec<String>) {
        let of = item.type_.as_str();
        errors.extend(read(&item.min).iter().filter_map(|(name, min)| self.below(of, name, min)));
        errors.extend(read(&item.max).iter().filter_map(|(name, max)| self.above(of, name, max)));
        let ratios = read(&item.max_limit_request_ratio);
        errors.extend(ratios.iter().filter_map(|(name, most)| self.beyond(of, name, most)));
    }

    fn below(&self, of: &str, name: &str, min: &Quantity) -> Option<String> {
        let head = format!("minimum {name} usage per {of} is {min}");
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let Some(request) = request else {
            return Some(format!("{head}.  No request is specified"));
        };
        let [asked, limited, least] = same_precision([Some(request), limit, Some(min)]);
        if asked < least {
            return Some(format!("{head}, but request is {request}"));
        }
        let limit = limit.filter(|_| limited < least)?;
        Some(format!("{head}, but limit is {limit}"))
    }

    fn above(&self, of: &str, name: &str, max: &Quantity) -> Option<String> {
        let head = format!("maximum {name} usage per {of} is {max}");
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let Some(limit) = limit else {
            return Some(format!("{head}.  No limit is specified"));
        };
        let [asked, limited, most] = same_precision([request, Some(limit), Some(max)]);
        if limited > most {
            return Some(format!("{head}, but limit is {limit}"));
        }
        let request = request.filter(|_| asked > most)?;
        Some(format!("{head}, but request is {request}"))
    }

    #[expect(clippy::cast_precision_loss, reason = "upstream's precision is what is asked for")]
    fn beyond(&self, of: &str, name: &str, most: &Quantity) -> Option<String> {
        let head = format!("{name} max limit to request ratio per {of} is {most}");
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [asked, limited, _] = same_precision([request, limit, Some(most)]);
        if asked == 0 {
            return Some(format!("{head}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{head}, but no limit is specified or limit is 0"));
        }
        let ratio = limited as f64 / asked as f64;
        let is_beyond = if most.value() <= MAX_MILLI {
            ratio * 1000.0 > most.milli_value() as f64
        } else {
            ratio > most.value() as f64
        };
        is_beyond.then(|| format!("{head}, but provided ratio is {}", go_float(ratio)))
    }
}

/// Amounts as numbers that can be compared, in thousandths if none is too large for that. What is
/// not given is nothing.
fn same_precision(amounts: [Option<&Quantity>; 3]) -> [i64; 3] {
    let value = |amount: Option<&Quantity>| amount.map_or(0, Quantity::value);
    if amounts.into_iter().all(|amount| value(amount) <= MAX_MILLI) {
        return amounts.map(|amount| amount.map_or(0, Quantity::milli_value));
    }
    amounts.map(value)
}
