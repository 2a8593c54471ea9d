//! What the Pods of a Job ask of a node that this machine does not have. Nobody can bring it while
//! a run waits, so that they would wait forever. What fits is the binder's decision.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec, Taint};
use stint_local::{Unmet, unmet};
use stint_node::{Runtime, Unrunnable, unrunnable};

use super::needs::{POD, lists};

/// Something that is asked for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// The fields that may ask for it, the likeliest first.
    pub(crate) fields: Vec<String>,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// All that a Job's Pods ask for in vain.
pub(crate) fn lacking(job: &Job, node: &Node) -> Vec<Lacking> {
    let Some(template) = job.spec.as_ref().map(|spec| &spec.template) else { return Vec::new() };
    let Some(pod) = &template.spec else { return Vec::new() };
    unmet(template, node).into_iter().map(|it| explained(it, pod, node)).collect()
}

/// All that whoever runs Pods here can do for nobody.
pub(crate) fn never(job: &Job, runtime: &dyn Runtime) -> Vec<Lacking> {
    let template = job.spec.as_ref().map(|spec| &spec.template);
    let spec = template.and_then(|template| template.spec.clone());
    let found = unrunnable(&Pod { spec, ..Pod::default() }, runtime);
    let of_job = |it: Unrunnable| Lacking {
        fields: it.fields.iter().map(|field| format!("spec.template.{field}")).collect(),
        message: it.message,
        help: it.help,
    };
    found.into_iter().map(of_job).collect()
}

fn explained(unmet: Unmet, pod: &PodSpec, node: &Node) -> Lacking {
    let here = node.metadata.name.as_deref().unwrap_or_default();
    let elsewhere = "or run it on a cluster that has it";
    let lacking = |field: &str, message: String, help: String| Lacking {
        fields: vec![format!("{POD}.{field}")],
        message: format!("{message}, so that its Pods would wait forever"),
        help,
    };
    match unmet {
        Unmet::Resource { name, asked, has } => {
            let (mut asked, mut has) = ((asked, amount(&name, asked)), (has, amount(&name, has)));
            if asked.1 == has.1 {
                (asked.1, has.1) = (asked.0.to_string(), has.0.to_string());
            }
            let (asked, has) = (asked.1, has.1);
            let message = format!(
                "a Pod asks for {asked} of {name}, and this machine has {has}, so that it would wait \
                 forever"
            );
            let help = match has.as_str() {
                "0" => format!("take it out, as nothing here provides {name}, {elsewhere}"),
                _ => format!("ask for no more than {has}, {elsewhere}"),
            };
            Lacking { fields: resource_fields(pod, &name), message, help }
        }
        Unmet::OtherNode(asked) => lacking(
            "nodeName",
            format!("it asks for the node {asked}, and the only one here is {here}"),
            format!("take it out, {elsewhere}"),
        ),
        Unmet::OtherScheduler(asked) => lacking(
            "schedulerName",
            format!("it asks for the scheduler {asked}, and there is none such here"),
            "take it out, or use stint serve, where somebody can run it".to_owned(),
        ),
        Unmet::Gated => lacking(
            "schedulingGates",
            "it is held back until somebody takes these away, and there is nobody here".to_owned(),
            "take them out, or use stint serve, where somebody can do that".to_owned(),
        ),
        Unmet::Cordoned => lacking(
            "tolerations",
            format!("the node {here} takes no new Pods"),
            format!("uncordon it by kubectl uncordon {here}, with stint serve on this folder"),
        ),
        Unmet::Tainted(Taint { key, effect, .. }) => lacking(
            "tolerations",
            format!("the node {here} has the taint {key}:{effect}, which is not tolerated"),
            "add a toleration for it".to_owned(),
        ),
        Unmet::Unlabelled { key, value } => lacking(
            &format!("nodeSelector[{key}]"),
            format!("it asks for a node with {key}={value}, and this machine is none such"),
            format!("take it out, {elsewhere}; this machine has {}", labels(node)),
        ),
        Unmet::Outside => lacking(
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "it asks for a node of certain labels, and this machine is none such".to_owned(),
            format!("take it out, {elsewhere}; this machine has {}", labels(node)),
        ),
        Unmet::NoPods => lacking(
            "containers",
            "this machine is to run no Pods at all".to_owned(),
            "let it run some by --max-pods".to_owned(),
        ),
    }
}

fn labels(node: &Node) -> String {
    let labels = node.metadata.labels.iter().flatten();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(", ")
}

/// Where a resource may be asked for. What has a limit and no request asks for that.
fn resource_fields(pod: &PodSpec, name: &str) -> Vec<String> {
    let asks = |container: &Container| {
        let resources = container.resources.as_ref();
        let of = resources.map(|it| [&it.requests, &it.limits]).into_iter().flatten().flatten();
        of.into_iter().any(|amounts| amounts.contains_key(name))
    };
    let mut fields: Vec<String> = Vec::new();
    for (list, containers) in lists(pod).into_iter().rev() {
        for (number, _) in containers.iter().enumerate().filter(|(_, it)| asks(it)) {
            for kind in ["requests", "limits"] {
                fields.push(format!("{list}[{number}].resources.{kind}[{name}]"));
            }
        }
    }
    for kind in ["requests", "limits"] {
        fields.push(format!("{POD}.resources.{kind}[{name}]"));
    }
    fields
}

/// An amount as manifests have it.
fn amount(name: &str, amount: i64) -> String {
    if name == "cpu" {
        return match amount % 1000 {
            0 => (amount / 1000).to_string(),
            _ => format!("{amount}m"),
        };
    }
    let units = [("Ti", 1_i64 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let is_bytes =
        ["memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    let unit = units.into_iter().find(|(_, size)| is_bytes && amount >= *size);
    match unit {
        Some((unit, size)) if amount % size == 0 => format!("{}{unit}", amount / size),
        // Never more than it is: who asks for that much gets it.
        Some((unit, size)) => {
            let tenths = i128::from(amount) * 10 / i128::from(size);
            format!("{}.{}{unit}", tenths / 10, tenths % 10)
        }
        None => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_as_manifests_have_them() {
        let rows = [
            ("cpu", 64_000, "64"),
            ("cpu", 1_500, "1500m"),
            ("memory", 64 << 30, "64Gi"),
            ("memory", (3 << 30) / 2, "1.5Gi"),
            ("memory", (16 << 30) - 1, "15.9Gi"),
            ("memory", 100, "100"),
            ("nvidia.com/gpu", 8192, "8192"),
        ];
        for (name, of, expected) in rows {
            assert_eq!(amount(name, of), expected);
        }
    }
}
