//! The arithmetic beside a slow reference: every moment of a Pod's life, one by one.

use k8s_openapi::api::core::v1::ResourceRequirements;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "example.com/gpu"];

#[derive(Clone, Debug)]
struct Container {
    requests: BTreeMap<String, i64>,
    is_sidecar: bool,
}

#[derive(Clone, Debug)]
struct Pod {
    containers: Vec<Container>,
    init: Vec<Container>,
    overhead: BTreeMap<String, i64>,
    whole: BTreeMap<String, i64>,
}

fn list() -> impl Strategy<Value = BTreeMap<String, i64>> {
    let name = prop::sample::select(&NAMES[..]).prop_map(str::to_owned);
    prop::collection::btree_map(name, 0..2_000_i64, 0..4)
}

fn pod() -> impl Strategy<Value = Pod> {
    let container = |sidecars: bool| {
        let is_sidecar = any::<bool>().prop_map(move |is_sidecar| is_sidecar && sidecars);
        (list(), is_sidecar).prop_map(|(requests, is_sidecar)| Container { requests, is_sidecar })
    };
    let containers = prop::collection::vec(container(false), 1..4);
    let init = prop::collection::vec(container(true), 0..5);
    (containers, init, list(), list()).prop_map(|(containers, init, overhead, whole)| Pod {
        containers,
        init,
        overhead,
        whole,
    })
}

/// Amounts as the API has them: thousandths of a CPU, in either spelling.
fn texts(list: &BTreeMap<String, i64>) -> BTreeMap<String, Text> {
    let text = |(name, amount): (&String, &i64)| {
        let text = match (name.as_str(), amount % 1000) {
            ("cpu", 0) => (amount / 1000).to_string(),
            ("cpu", _) => format!("{amount}m"),
            _ => amount.to_string(),
        };
        (name.clone(), Text(text))
    };
    list.iter().map(text).collect()
}

fn sight(pod: &Pod) -> PodSpecSight {
    let resources = |list: &BTreeMap<String, i64>| {
        Some(ResourceRequirements { requests: Some(texts(list)), ..Default::default() })
    };
    let container = |container: &Container| ContainerSight {
        resources: resources(&container.requests),
        restart_policy: container.is_sidecar.then(|| "Always".to_owned()),
    };
    PodSpecSight {
        containers: pod.containers.iter().map(container).collect(),
        init_containers: Some(pod.init.iter().map(container).collect()),
        overhead: Some(texts(&pod.overhead)),
        resources: resources(&pod.whole),
        ..PodSpecSight::default()
    }
}

/// What runs at each moment: an init container beside the sidecars that began before it, and
/// at last all containers beside all sidecars.
fn reference(pod: &Pod, name: &str) -> i64 {
    let need = |container: &Container| container.requests.get(name).copied().unwrap_or(0);
    let mut moments: Vec<Vec<&Container>> = Vec::new();
    for (place, container) in pod.init.iter().enumerate() {
        let mut running: Vec<_> = pod.init[..place].iter().filter(|it| it.is_sidecar).collect();
        running.push(container);
        moments.push(running);
    }
    let sidecars = pod.init.iter().filter(|container| container.is_sidecar);
    moments.push(pod.containers.iter().chain(sidecars).collect());
    let sums = moments.iter().map(|running| running.iter().copied().map(need).sum::<i64>());
    let peak = sums.max().expect("there is a last moment");
    let whole = matches!(name, "cpu" | "memory").then(|| pod.whole.get(name)).flatten();
    whole.copied().unwrap_or(peak) + pod.overhead.get(name).copied().unwrap_or(0)
}

proptest! {
    #[test]
    fn a_pod_needs_what_runs_at_its_busiest_moment(pod in pod()) {
        let needed = Amounts::needed(&sight(&pod));
        for name in NAMES {
            prop_assert_eq!(needed.get(name), reference(&pod, name), "{}", name);
        }
    }

    #[test]
    fn what_fits_is_what_is_left(
        pods in prop::collection::vec(pod(), 0..6),
        asking in pod(),
        all in list(),
    ) {
        let mut used = Amounts::default();
        for pod in &pods {
            used.add(&Amounts::needed(&sight(pod)));
        }
        let offered = Amounts::read(Some(&texts(&all)));
        let needs = Amounts::needed(&sight(&asking));
        let lacking: Vec<&str> = needs.lacking(&offered, &used).collect();
        for name in NAMES {
            let (asked, taken) = (reference(&asking, name), pods.iter().map(|pod| reference(pod, name)));
            let is_enough = asked == 0 || taken.sum::<i64>() + asked <= all.get(name).copied().unwrap_or(0);
            prop_assert_eq!(!lacking.contains(&name), is_enough, "{}", name);
        }
        for pod in &pods {
            used.subtract(&Amounts::needed(&sight(pod)));
        }
        prop_assert!(NAMES.iter().all(|name| used.get(name) == 0));
    }
}

#[test]
fn amounts_are_read_in_their_units() {
    let texts = [("cpu", "1.5"), ("memory", "64Mi"), ("hugepages-2Mi", "4Mi")];
    let list = texts.map(|(name, text)| (name.to_owned(), Text(text.to_owned())));
    let amounts = Amounts::read(Some(&BTreeMap::from(list)));
    let read = ["cpu", "memory", "hugepages-2Mi", "pods"].map(|name| amounts.get(name));
    assert_eq!(read, [1500, 64 << 20, 4 << 20, 0]);
}
