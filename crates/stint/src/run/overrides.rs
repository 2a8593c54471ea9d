//! What the command line changes in the Jobs of the manifests.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar};
use stint_api::index_set::IndexSet;

use crate::progress::completions;

/// Sets how many Pods run at once.
pub(crate) fn set_parallelism(job: &mut Job, parallelism: i32) {
    job.spec.get_or_insert_default().parallelism = Some(parallelism);
}

/// Sets variables in every container, in place of what the manifest says of them.
pub(crate) fn set_variables(job: &mut Job, variables: &[(String, String)]) {
    let template = &mut job.spec.get_or_insert_default().template;
    let Some(pod) = &mut template.spec else { return };
    let inits = pod.init_containers.iter_mut().flatten();
    for container in inits.chain(&mut pod.containers) {
        for (name, value) in variables {
            set_variable(container, name, value);
        }
    }
}

fn set_variable(container: &mut Container, name: &str, value: &str) {
    // What is given is taken as it is: no $(OTHER) is put in, and $$ stays two.
    let value = value.replace('$', "$$");
    let variable = EnvVar { name: name.to_owned(), value: Some(value), value_from: None };
    let all = container.env.get_or_insert_default();
    let place = all.iter().position(|variable| variable.name == name);
    // Of several with one name the last counts; there is to be one.
    all.retain(|variable| variable.name != name);
    all.insert(place.unwrap_or(all.len()).min(all.len()), variable);
}

/// The indexes that count as completed from the start so that only `wanted` run.
///
/// # Errors
///
/// Why that cannot be, as the end of a sentence that begins with the Job.
pub(crate) fn left_out(job: &Job, wanted: &IndexSet) -> Result<IndexSet, String> {
    let spec = job.spec.as_ref();
    let is_indexed = spec.and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed");
    if !is_indexed {
        return Err("has no indexes: --only-indexes is for spec.completionMode: Indexed".to_owned());
    }
    if spec.is_some_and(|spec| spec.success_policy.is_some()) {
        return Err("has a spec.successPolicy, for which the indexes that are left out would \
                    count as succeeded: take it out to use --only-indexes"
            .to_owned());
    }
    let completions = completions(job);
    match (completions.checked_sub(1), wanted.last()) {
        (None, Some(_)) => Err("has spec.completions: 0, so that there is no index to run: leave \
                                out --only-indexes, or raise it"
            .to_owned()),
        (Some(last), Some(asked)) if asked > last => {
            Err(format!("has the indexes 0 to {last}, and --only-indexes asks for {asked}"))
        }
        (_, _) => Ok(wanted.complement(completions)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(spec: serde_json::Value) -> Job {
        serde_json::from_value(json!({"spec": spec})).expect("it is a Job")
    }

    #[test]
    fn variables_are_replaced_where_they_stand_or_added() {
        let mut job = job(json!({"template": {"spec": {
            "initContainers": [{"name": "init"}],
            "containers": [{"name": "main", "env": [
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "value": "b"},
                {"name": "A", "value": "again"},
            ]}],
        }}}));
        let set = [("A", "$(B)"), ("C", ""), ("D", "a$$b $(B)$ $")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        set_variables(&mut job, &set);
        let pod = job.spec.expect("it has one").template.spec.expect("it has one");
        let shown = |container: &Container| {
            let all = container.env.iter().flatten();
            all.map(|it| format!("{}={}", it.name, it.value.as_deref().unwrap_or("?")))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(shown(&pod.containers[0]), "A=$$(B) B=b C= D=a$$$$b $$(B)$$ $$");
        assert_eq!(
            shown(&pod.init_containers.expect("it has one")[0]),
            "A=$$(B) C= D=a$$$$b $$(B)$$ $$"
        );
    }

    #[test]
    fn indexes_that_are_not_wanted_are_left_out() {
        let wanted = IndexSet::parse_strict("3,7-9", 100).expect("it is a list");
        let spec = |completions: i32, mode: &str| {
            job(json!({"completions": completions, "completionMode": mode, "template": {}}))
        };
        let left = left_out(&spec(10, "Indexed"), &wanted).map(|set| set.to_string());
        assert_eq!(left.as_deref(), Ok("0-2,4-6"));
        let refused = |completions| left_out(&spec(completions, "Indexed"), &wanted).unwrap_err();
        assert_eq!(refused(9), "has the indexes 0 to 8, and --only-indexes asks for 9");
        assert!(refused(0).starts_with("has spec.completions: 0, so that there is no index"));
        assert!(left_out(&spec(10, "NonIndexed"), &wanted).is_err());
    }
}
