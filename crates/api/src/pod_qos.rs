//! The quality of service that a Pod is promised: `status.qosClass`.

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

use crate::closed_set::PodQosClass;
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, ResourceList, add, parse_amount};

/// The resources that count.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The class of a Pod. It is Guaranteed when everything in it has limits on cpu and
/// memory and asks for just as much, BestEffort when nothing in it asks for anything,
/// else Burstable. What the Pod asks for as a whole counts instead of what its
/// containers ask for, where it is given (KEP-2837). Init containers count as any other.
pub fn qos_class(spec: &PodSpec) -> PodQosClass {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut is_limited = true;
    if let Some(resources) = &spec.resources {
        requests = counted(&resources.requests);
        limits = counted(&resources.limits);
        is_limited = is_empty(&resources.limits) || limits.len() == COUNTED.len();
    } else {
        let none = ResourceRequirements::default();
        for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
            let resources = container.resources.as_ref().unwrap_or(&none);
            add(&mut requests, &counted(&resources.requests));
            let own_limits = counted(&resources.limits);
            is_limited &= own_limits.len() == COUNTED.len();
            add(&mut limits, &own_limits);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        PodQosClass::BestEffort
    } else if is_limited && requests == limits {
        PodQosClass::Guaranteed
    } else {
        PodQosClass::Burstable
    }
}

/// The amounts that count: of cpu and memory, and above zero.
fn counted(list: &Option<ResourceList>) -> Amounts {
    let given = list.iter().flatten().filter(|(name, _)| COUNTED.contains(&name.as_str()));
    given
        .filter_map(|(name, amount)| Some((name.clone(), parse_amount(amount)?)))
        .filter(|(_, amount)| *amount > Quantity::zero())
        .collect()
}

fn is_empty(list: &Option<ResourceList>) -> bool {
    list.as_ref().is_none_or(ResourceList::is_empty)
}
