//! Amounts of resources, and what a Pod needs of them: arithmetic and nothing else.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use stint_api::quantity::Quantity;

use super::pod::{ContainerSight, PodSpecSight};

/// The resource that is counted in thousandths.
pub(super) const CPU: &str = "cpu";

/// What the names of resources begin with that are memory in pages of a size of its own.
pub(super) const HUGE_PAGES: &str = "hugepages-";

/// How much of each resource: thousandths of a CPU, bytes, or pieces. What is not named is
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Amounts(BTreeMap<String, i64>);

impl Amounts {
    /// Nothing of anything.
    pub(super) const NONE: Amounts = Amounts(BTreeMap::new());

    /// Reads a list of resources. An amount that cannot be read, which the API refuses, is none.
    pub(super) fn read(list: Option<&BTreeMap<String, Text>>) -> Self {
        let amount = |(name, text): (&String, &Text)| {
            let quantity: Quantity = text.0.trim().parse().ok()?;
            let amount = if name == CPU { quantity.milli_value() } else { quantity.value() };
            Some((name.clone(), amount))
        };
        Amounts(list.into_iter().flatten().filter_map(amount).collect())
    }

    /// What a Pod needs, as Kubernetes computes it: containers and sidecars run at once, and
    /// each init container beside the sidecars before it (KEP-753). What the Pod asks for as a
    /// whole goes before what its containers ask for (KEP-2837). Overhead comes on top.
    pub(super) fn needed(spec: &PodSpecSight) -> Self {
        let requests = |container: &ContainerSight| {
            let resources = container.resources.as_ref();
            Amounts::read(resources.and_then(|resources| resources.requests.as_ref()))
        };
        let mut total = Amounts::default();
        for container in &spec.containers {
            total.add(&requests(container));
        }
        let (mut sidecars, mut peak) = (Amounts::default(), Amounts::default());
        for container in spec.init_containers.iter().flatten() {
            let mut running = requests(container);
            if container.restart_policy.as_deref() == Some("Always") {
                total.add(&running);
                sidecars.add(&running);
                continue;
            }
            running.add(&sidecars);
            peak.raise(running);
        }
        total.raise(peak);
        let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        for (name, amount) in Amounts::read(whole).0 {
            if name == CPU || name == "memory" || name.starts_with(HUGE_PAGES) {
                total.0.insert(name, amount);
            }
        }
        total.add(&Amounts::read(spec.overhead.as_ref()));
        total.0.retain(|_, amount| *amount > 0);
        total
    }

    /// How much of a resource.
    pub(super) fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, more: &Amounts) {
        for (name, amount) in &more.0 {
            match self.0.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*amount),
                None => {
                    self.0.insert(name.clone(), *amount);
                }
            }
        }
    }

    /// Takes away what was added before.
    pub(super) fn subtract(&mut self, less: &Amounts) {
        for (name, amount) in &less.0 {
            if let Some(sum) = self.0.get_mut(name) {
                *sum = sum.saturating_sub(*amount);
            }
        }
    }

    fn raise(&mut self, other: Amounts) {
        for (name, amount) in other.0 {
            let highest = self.0.entry(name).or_insert(amount);
            *highest = amount.max(*highest);
        }
    }

    /// The resources of which there is not enough left for these needs. Who needs nothing of a
    /// resource does not care whether too much of it is used.
    pub(super) fn lacking<'a>(
        &'a self,
        all: &'a Amounts,
        used: &'a Amounts,
    ) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(move |(name, need)| {
            let left = all.get(name).saturating_sub(used.get(name));
            (*need > 0 && *need > left).then_some(name.as_str())
        })
    }

    /// The largest share of CPU and memory that is used, in thousandths, with these needs on
    /// top.
    pub(super) fn share_used(&self, all: &Amounts, used: &Amounts) -> i64 {
        let share = |name| {
            let sum = used.get(name).saturating_add(self.get(name));
            sum.saturating_mul(1000) / all.get(name).max(1)
        };
        share(CPU).max(share("memory"))
    }
}

#[cfg(test)]
mod tests;
