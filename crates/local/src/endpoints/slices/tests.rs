//! Which endpoints go into which slice, from Pods and Services made up here. No API.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::endpoints::backend::PodSight;

fn service() -> ServiceSight {
    let service = json!({
        "metadata": {"namespace": "n", "name": "s", "uid": "u", "labels": {"team": "x"}},
        "spec": {
            "selector": {"app": "a"},
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "web", "port": 80, "targetPort": "http"}],
        },
    });
    serde_json::from_value(service).expect("a Service")
}

/// The Pod with a number; its port is one of two.
fn backend(number: usize, is_ready: bool) -> Backend {
    let status = if is_ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"namespace": "n", "name": format!("p{number}"), "uid": format!("u{number}")},
        "spec": {"containers": [{
            "ports": [{"name": "http", "containerPort": 8000 + number % 2}],
        }]},
        "status": {
            "podIP": format!("10.1.{}.{}", number / 250, number % 250),
            "conditions": [{"type": "Ready", "status": status}],
        },
    });
    let pod: PodSight = serde_json::from_value(pod).expect("a Pod");
    Backend::read(pod).expect("it has an address")
}

/// What the API has after changes were written.
fn apply(existing: Vec<EndpointSlice>, changes: Changes, count: &mut usize) -> Vec<EndpointSlice> {
    let Changes { create, update, delete } = changes;
    let mut slices = existing;
    slices.retain(|slice| !delete.contains(slice));
    for new in update {
        let old = slices.iter_mut().find(|old| old.metadata.name == new.metadata.name);
        *old.expect("it is there") = new;
    }
    for mut slice in create {
        *count += 1;
        slice.metadata.name = Some(format!("s-{count}"));
        slices.push(slice);
    }
    slices
}

fn told(slices: &[EndpointSlice]) -> BTreeMap<String, (i32, bool)> {
    let mut told = BTreeMap::new();
    for slice in slices {
        let endpoints = slice.endpoints.as_deref().unwrap_or_default();
        assert!(endpoints.len() <= MOST);
        for endpoint in endpoints {
            let port = slice.ports.as_ref().expect("ports")[0].port.expect("a number");
            let is_ready = endpoint.conditions.as_ref().and_then(|it| it.ready);
            let told = told.insert(id(endpoint).to_owned(), (port, is_ready.expect("told")));
            assert_eq!(told, None, "it is told twice");
        }
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn slices_tell_of_every_pod_once_whatever_there_was_before(
        steps in prop::collection::vec(
            prop::collection::btree_map(0..450_usize, any::<bool>(), 0..450), 1..5,
        ),
    ) {
        let (mut slices, mut count) = (Vec::new(), 0);
        for pods in steps {
            let backends: Vec<Backend> =
                pods.iter().map(|(number, is_ready)| backend(*number, *is_ready)).collect();
            let changes = changes(&service(), &backends, slices.clone());
            slices = apply(slices, changes, &mut count);
            let wanted: BTreeMap<String, (i32, bool)> = pods
                .iter()
                .map(|(number, is_ready)| {
                    let port = 8000 + i32::try_from(number % 2).expect("small");
                    (format!("u{number}"), (port, *is_ready))
                })
                .collect();
            prop_assert_eq!(told(&slices), wanted);
            prop_assert!(!slices.is_empty());
            prop_assert!(slices.len() <= 2 * (pods.len().div_ceil(MOST) + 2));
            let again = super::changes(&service(), &backends, slices.clone());
            prop_assert_eq!(again, Changes::default(), "nothing is left to be written");
        }
    }
}

#[test]
fn one_change_is_one_write() {
    let backends: Vec<Backend> = (0..300).map(|number| backend(2 * number, true)).collect();
    let mut count = 0;
    let created = changes(&service(), &backends, Vec::new());
    assert_eq!(created.create.len(), 3);
    let slices = apply(Vec::new(), created, &mut count);
    let mut fewer = backends.clone();
    fewer.remove(150);
    let changed = changes(&service(), &fewer, slices.clone());
    assert_eq!((changed.create.len(), changed.update.len(), changed.delete.len()), (0, 1, 0));
    let slices = apply(slices, changed, &mut count);
    fewer.push(backend(900, false));
    let changed = changes(&service(), &fewer, slices);
    assert_eq!((changed.create.len(), changed.update.len(), changed.delete.len()), (0, 1, 0));
}
