//! Lists of resources, `cpu: 500m` and the like, and what the containers of a Pod need
//! together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use crate::quantity::Quantity;

/// A map of resource names to amounts, as the API has it.
pub(crate) type ResourceList = BTreeMap<String, QuantityText>;
/// The same with the amounts read.
pub type Amounts = BTreeMap<String, Quantity>;

/// What the names of resources begin with that are memory in pages of a size of its own.
pub(crate) const HUGE_PAGES: &str = "hugepages-";

/// Whether a resource is memory in pages of a size of its own.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether an init container keeps running beside the containers.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// Reads an amount that is known to be well formed or was reported already.
pub(crate) fn parse_amount(amount: &QuantityText) -> Option<Quantity> {
    amount.0.trim().parse().ok()
}

/// Rounds amounts up to thousandths and writes them as the server would. What
/// is no quantity stays as it is, for validation to report.
pub(crate) fn round_up(list: &mut Option<ResourceList>) {
    for amount in list.iter_mut().flat_map(BTreeMap::values_mut) {
        if let Some(quantity) = parse_amount(amount) {
            amount.0 = quantity.round_up_to_milli().to_string();
        }
    }
}

/// The amounts of a list, as far as they can be read.
pub(crate) fn read(list: &Option<ResourceList>) -> Amounts {
    let given = list.iter().flatten();
    given.filter_map(|(name, amount)| Some((name.clone(), parse_amount(amount)?))).collect()
}

/// The amount of one resource in a list that may not be there.
pub(crate) fn amount_of(list: &Option<ResourceList>, name: &str) -> Option<Quantity> {
    parse_amount(list.as_ref()?.get(name)?)
}

/// What all containers need together: containers and sidecars run at once, and
/// each init container beside the sidecars before it (KEP-753).
pub(crate) fn sum_up<'a>(
    spec: &'a PodSpec,
    list: impl Fn(&'a ResourceRequirements) -> Option<&'a ResourceList>,
) -> Amounts {
    let amounts = |requirements: &'a Option<ResourceRequirements>| -> Amounts {
        let given = requirements.as_ref().and_then(&list).into_iter().flatten();
        given.filter_map(|(name, amount)| Some((name.clone(), parse_amount(amount)?))).collect()
    };
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &amounts(&container.resources));
    }
    let (mut sidecars, mut init_peak) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let mut running = amounts(&container.resources);
        if is_sidecar(container) {
            add(&mut total, &running);
            add(&mut sidecars, &running);
            running = sidecars.clone();
        } else {
            add(&mut running, &sidecars);
        }
        raise(&mut init_peak, running);
    }
    raise(&mut total, init_peak);
    total
}

/// Adds amounts to others, name by name.
pub(crate) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = match total.get(name) {
            Some(sum) => sum.plus(amount),
            None => amount.clone(),
        };
        total.insert(name.clone(), sum);
    }
}

fn raise(peak: &mut Amounts, running: Amounts) {
    for (name, amount) in running {
        if peak.get(&name).is_none_or(|highest| amount > *highest) {
            peak.insert(name, amount);
        }
    }
}
