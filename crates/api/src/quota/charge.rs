//! Takes what an object needs from quotas, or says which of them does not have it. All quotas are
//! asked before any is charged, so that who is refused by one has taken nothing from another.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod, ResourceQuota, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use k8s_openapi::jiff::Timestamp;

use super::scope::{PodScopes, is_in_scope};
use super::usage::{Tracked, compute_usage, pod_usage, service_usage};
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, ResourceList, is_huge_page, read};
use crate::validation::text;

/// What every container must say if a quota limits it. Upstream holds it to be a mistake, and keeps
/// it.
const MUST_BE_SAID: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// An object, as far as quotas are concerned.
#[derive(Clone, Debug)]
pub struct Counted {
    tracked: Tracked,
    usage: Amounts,
    scopes: Option<PodScopes>,
    /// What containers do not say, of what they may have to, and which containers.
    unsaid: BTreeMap<&'static str, BTreeSet<String>>,
    /// What the object took before, and what it was, if it is not new.
    before: Option<(Amounts, Option<PodScopes>)>,
}

impl Counted {
    /// A Pod.
    pub fn pod(pod: &Pod, now: Timestamp) -> Self {
        Counted {
            tracked: Tracked::Pods,
            usage: pod_usage(pod, now),
            scopes: Some(PodScopes::of(pod)),
            unsaid: unsaid(pod),
            before: None,
        }
    }

    /// A Service.
    pub fn service(service: &Service) -> Self {
        let usage = service_usage(service);
        Counted { tracked: Tracked::Services, usage, ..Counted::object(Tracked::Services) }
    }

    /// Something of which it only counts that it is there.
    pub fn object(tracked: Tracked) -> Self {
        let usage = tracked.usage_of_one();
        Counted { tracked, usage, scopes: None, unsaid: BTreeMap::new(), before: None }
    }

    /// The same, which was something else before: only what is new is taken.
    #[must_use]
    pub fn changed_from(self, before: Counted) -> Self {
        Counted { before: Some((before.usage, before.scopes)), ..self }
    }

    /// Whether a quota is about it.
    pub fn is_limited_by(&self, quota: &ResourceQuota) -> bool {
        let hard = quota.status.as_ref().and_then(|status| status.hard.as_ref());
        hard.is_some_and(|hard| hard.keys().any(|name| self.tracked.takes(name)))
            && is_in_scope(quota.spec.as_ref(), self.scopes.as_ref())
    }

    /// What it would take of a quota that is about it.
    fn taken_from(&self, quota: &ResourceQuota, hard: &Amounts) -> Amounts {
        let before = self
            .before
            .as_ref()
            .filter(|(_, scopes)| is_in_scope(quota.spec.as_ref(), scopes.as_ref()));
        let mut taken = self.usage.clone();
        taken.retain(|name, _| hard.contains_key(name));
        for (name, amount) in &mut taken {
            if let Some(before) = before.and_then(|(usage, _)| usage.get(name)) {
                *amount = amount.minus(before);
            }
        }
        taken.retain(|_, amount| *amount > Quantity::zero());
        taken
    }
}

/// Why an object is refused, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its containers do not say what they need.
    #[error("failed quota: {quota}: must specify {unsaid}")]
    Unsaid {
        /// The quota.
        quota: String,
        /// What is not said, and by whom.
        unsaid: String,
    },
    /// It is not known yet how much there is.
    #[error("status unknown for quota: {quota}, resources: {resources}")]
    Unknown {
        /// The quota.
        quota: String,
        /// What it limits.
        resources: String,
    },
    /// There is not so much left.
    #[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
    Exceeded {
        /// The quota.
        quota: String,
        /// What is asked for.
        requested: String,
        /// What is used already.
        used: String,
        /// What there is.
        limited: String,
    },
}

/// Charges quotas for an object, and says which of them have changed: by their places.
///
/// # Errors
///
/// Why it is refused. No quota has changed then.
pub fn charge(quotas: &mut [ResourceQuota], object: &Counted) -> Result<Vec<usize>, Refusal> {
    let concerned: Vec<usize> =
        (0..quotas.len()).filter(|place| object.is_limited_by(&quotas[*place])).collect();
    for place in &concerned {
        check_said(&quotas[*place], object)?;
    }
    let mut charged = Vec::new();
    for place in concerned {
        let quota = &quotas[place];
        let status = quota.status.clone().unwrap_or_default();
        let (hard, mut used) = (read(&status.hard), read(&status.used));
        let taken = object.taken_from(quota, &hard);
        let mut exceeded = Vec::new();
        let before = used.clone();
        for (name, amount) in &taken {
            let sum = used.get(name).map_or_else(|| amount.clone(), |used| used.plus(amount));
            if sum > hard[name] {
                exceeded.push(name);
            }
            used.insert(name.clone(), sum);
        }
        if !exceeded.is_empty() {
            let only = |amounts: &Amounts| shown(amounts, &exceeded);
            return Err(Refusal::Exceeded {
                quota: text(&quota.metadata.name).to_owned(),
                requested: only(&taken),
                used: only(&before),
                limited: only(&hard),
            });
        }
        if !taken.is_empty() {
            charged.push((place, used));
        }
    }
    let places = charged.iter().map(|(place, _)| *place).collect();
    for (place, used) in charged {
        quotas[place].status.get_or_insert_default().used = Some(written(&used));
    }
    Ok(places)
}

/// Refuses what does not say what it needs, and what a quota does not know the usage of.
fn check_said(quota: &ResourceQuota, object: &Counted) -> Result<(), Refusal> {
    let name = || text(&quota.metadata.name).to_owned();
    let status = quota.status.clone().unwrap_or_default();
    let (hard, used) = (status.hard.unwrap_or_default(), status.used.unwrap_or_default());
    let limited: Vec<&str> =
        hard.keys().map(String::as_str).filter(|name| object.tracked.takes(name)).collect();
    let unsaid = object.unsaid.iter().filter(|(resource, _)| limited.contains(*resource));
    let unsaid: Vec<String> = unsaid
        .map(|(resource, containers)| {
            let containers: Vec<&str> = containers.iter().map(String::as_str).collect();
            format!("{resource} for: {}", containers.join(","))
        })
        .collect();
    if !unsaid.is_empty() {
        return Err(Refusal::Unsaid { quota: name(), unsaid: unsaid.join("; ") });
    }
    if limited.iter().any(|resource| !used.contains_key(*resource)) {
        return Err(Refusal::Unknown { quota: name(), resources: limited.join(",") });
    }
    Ok(())
}

/// What the containers of a Pod do not say, unless the Pod does as a whole.
fn unsaid(pod: &Pod) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut unsaid: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    let Some(spec) = &pod.spec else { return unsaid };
    let of_pod = spec.resources.iter().flat_map(|it| [&it.requests, &it.limits]).flatten();
    let mut names = of_pod.flat_map(ResourceList::keys);
    if names.any(|name| matches!(&**name, "cpu" | "memory") || is_huge_page(name)) {
        return unsaid;
    }
    let mut look = |container: &Container| {
        let resources = container.resources.clone().unwrap_or_default();
        let said = compute_usage(&read(&resources.requests), &read(&resources.limits));
        for resource in MUST_BE_SAID.into_iter().filter(|name| !said.contains_key(*name)) {
            unsaid.entry(resource).or_default().insert(container.name.clone());
        }
    };
    spec.containers.iter().for_each(&mut look);
    spec.init_containers.iter().flatten().for_each(&mut look);
    unsaid
}

/// Some amounts as messages have them.
fn shown(amounts: &Amounts, names: &[&String]) -> String {
    let shown = names.iter().filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)));
    shown.collect::<Vec<_>>().join(",")
}

/// Amounts as the API has them.
pub(super) fn written(amounts: &Amounts) -> ResourceList {
    let written = amounts.iter();
    written.map(|(name, amount)| (name.clone(), QuantityText(amount.to_string()))).collect()
}
