//! What the manifests of a run ask for and do not get on this machine: a line for each.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Container;

use super::manifests::Manifests;

/// What whoever runs Pods says of limits begins with this.
const LIMITS: &str = "limits ";

/// The lines; `machine` is what whoever runs Pods says of the machine.
pub(crate) fn notes(manifests: &Manifests, machine: &[String]) -> Vec<String> {
    let jobs = || manifests.jobs.iter().map(|written| &written.object);
    let asks = |what: fn(&Container) -> bool| jobs().flat_map(containers).any(what);
    let mut notes = Vec::new();
    if asks(|container| container.image.as_deref().is_some_and(|image| !image.is_empty())) {
        notes.push("images are not used: commands run as processes of this machine".to_owned());
    }
    if asks(|container| container.resources.as_ref().is_some_and(|it| it.limits.is_some())) {
        notes.extend(machine.iter().filter(|note| note.starts_with(LIMITS)).cloned());
    }
    notes
}

fn containers(job: &Job) -> impl Iterator<Item = &Container> {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let inits = pod.into_iter().flat_map(|pod| pod.init_containers.iter().flatten());
    inits.chain(pod.into_iter().flat_map(|pod| &pod.containers))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use stint_api::diagnostic::Span;

    use super::super::manifests::Written;
    use super::super::origin::Origin;
    use super::*;
    use crate::source::Source;

    #[test]
    fn only_what_is_asked_for_is_noted() {
        let machine = ["limits hold for one".to_owned(), "containers see all".to_owned()];
        let of = |container: Value| {
            let job = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
            let object = serde_json::from_value(job).expect("it is a Job");
            let source = Arc::new(Source::new("", String::new()));
            let origin = Origin::new(source, Span::default());
            let jobs = vec![Written { place: String::new(), origin, object }];
            notes(&Manifests { jobs, others: Vec::new() }, &machine).len()
        };
        assert_eq!(of(json!({"name": "a"})), 0);
        assert_eq!(of(json!({"name": "a", "image": "i"})), 1);
        let limits = json!({"limits": {"memory": "1Gi"}});
        assert_eq!(of(json!({"name": "a", "image": "i", "resources": limits})), 2);
    }
}
