//! What authors get wrong, and what they are told.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use serde::Deserializer;

use super::*;
use crate::decode::read_str;

fn read<T: DeserializeOwned>(text: &str) -> Decoded<T> {
    let documents = read_str(text);
    assert_eq!(documents.len(), 1, "{text}");
    assert_eq!(documents[0].problems, [], "{text}");
    decode(documents[0].root.as_ref().expect("there is a tree"))
}

/// The problems of a Job, one a line: path, the text they point to, message, help.
fn problems(text: &str) -> Vec<String> {
    let decoded = read::<Job>(text);
    let line = |problem: &Problem| {
        let help = problem.help.as_deref().unwrap_or("-");
        let shown = &text[problem.span.start..problem.span.end];
        format!("{} <{shown}> {} ({help})", problem.path, problem.message)
    };
    decoded.problems.iter().map(line).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

const GOOD: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: pi
  labels: {app: pi}
  creationTimestamp: null
spec:
  parallelism: 2
  completions: 3.0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: pi
        image: perl
        command: [perl, -e, 'print 1']
        resources:
          limits: {cpu: 0.1, memory: 1Gi, other: 2000000000000000000000}
        livenessProbe:
          httpGet: {port: 80}
        readinessProbe:
          httpGet: {port: web}
";

#[test]
fn a_right_job_is_read_without_a_word() {
    let decoded = read::<Job>(GOOD);
    assert_eq!(decoded.problems, []);
    let job = decoded.value.expect("the Job is right");
    assert_eq!(job.metadata.name.as_deref(), Some("pi"));
    assert_eq!(job.metadata.creation_timestamp, None);
    let spec = job.spec.expect("there is a spec");
    assert_eq!((spec.parallelism, spec.completions), (Some(2), Some(3)));
    let container = &spec.template.spec.expect("there is a pod").containers[0];
    let limits = container.resources.as_ref().and_then(|r| r.limits.as_ref());
    let limit = |name| limits.expect("limits")[name].0.as_str();
    assert_eq!(limit("cpu"), "0.1");
    assert_eq!(limit("memory"), "1Gi");
    assert_eq!(limit("other"), "2e+21");
    let port = |probe: &Option<k8s_openapi::api::core::v1::Probe>| {
        let get = probe.as_ref().and_then(|probe| probe.http_get.as_ref());
        get.expect("a probe").port.clone()
    };
    assert_eq!(port(&container.liveness_probe), IntOrString::Int(80));
    assert_eq!(port(&container.readiness_probe), IntOrString::String("web".into()));
}

#[test]
fn an_unknown_field_is_named_with_what_was_meant() {
    check(
        "spec:\n  paralelism: 2\n",
        &[
            r#"spec.paralelism <paralelism> unknown field "paralelism" (did you mean "parallelism"?)"#,
        ],
    );
    check(
        "spec: {backoff_limit: 2}\nmeta: {}\n",
        &[
            r#"spec.backoff_limit <backoff_limit> unknown field "backoff_limit" (did you mean "backoffLimit"?)"#,
            r#"meta <meta> unknown field "meta" (the fields here are: apiVersion, kind, metadata, spec, status)"#,
        ],
    );
}

#[test]
fn a_wrong_type_is_said_in_plain_words_with_what_to_write() {
    let rows = [
        (
            "spec: {completions: '5'}",
            "spec.completions <'5'> expected a whole number from -2147483648 to 2147483647, found the string \"5\" (remove the quotes: 5)",
        ),
        (
            "spec: {completions: 1.5}",
            "spec.completions <1.5> expected a whole number from -2147483648 to 2147483647, found the number 1.5 (fractions are not allowed here)",
        ),
        (
            "spec: {completions: 3000000000}",
            "spec.completions <3000000000> expected a whole number from -2147483648 to 2147483647, found the number 3000000000 (-)",
        ),
        (
            "{\"spec\": {\"completions\": 5.0}}",
            "spec.completions <5.0> expected a whole number from -2147483648 to 2147483647, found the number 5.0 (write it without fraction and exponent: 5)",
        ),
        (
            "spec: {suspend: 'true'}",
            "spec.suspend <'true'> expected true or false, found the string \"true\" (remove the quotes: true)",
        ),
        ("spec: {suspend: 1}", "spec.suspend <1> expected true or false, found the number 1 (-)"),
        (
            "metadata: {name: 5}",
            "metadata.name <5> expected a string, found the number 5 (quote it: \"5\")",
        ),
        (
            "metadata: {name: 0644}",
            "metadata.name <0644> expected a string, found the number 0644 (which is 420) (quote it: \"0644\")",
        ),
        (
            "metadata: {name: yes}",
            "metadata.name <yes> expected a string, found the boolean true (YAML reads yes as a boolean; quote it: \"yes\")",
        ),
        (
            "metadata: {name: true}",
            "metadata.name <true> expected a string, found the boolean true (quote it: \"true\")",
        ),
        (
            "metadata: {labels: {a: 1}}",
            "metadata.labels[a] <1> expected a string, found the number 1 (quote it: \"1\")",
        ),
        (
            "metadata: {labels: [a]}",
            "metadata.labels <[a]> expected a mapping, found a list (write `key: value` lines without a leading `- `)",
        ),
        (
            "metadata: {finalizers: x}",
            "metadata.finalizers <x> expected a list, found the string \"x\" (make it a list of one: [\"x\"])",
        ),
        (
            "metadata: {finalizers: {a: b}}",
            "metadata.finalizers <{a: b}> expected a list, found a mapping (start each item with `- `)",
        ),
        (
            "metadata: {creationTimestamp: 2024-01-31}",
            "metadata.creationTimestamp <2024-01-31> expected a time, found the string \"2024-01-31\" (write it as RFC 3339 does, such as \"2024-01-31T12:00:00Z\")",
        ),
        (
            "spec: []",
            "spec <[]> expected a mapping, found a list (write `key: value` lines without a leading `- `)",
        ),
    ];
    for (text, expected) in rows {
        check(text, &[expected]);
    }
}

#[test]
fn quantities_and_ports_take_what_kubernetes_takes() {
    let pod = |container: &str| {
        format!("spec: {{template: {{spec: {{containers: [{{name: a, {container}}}]}}}}}}")
    };
    let first = "spec.template.spec.containers[0]";
    check(&pod("resources: {limits: {cpu: ' 1 ', memory: null}}"), &[]);
    check(
        &pod("resources: {limits: {cpu: 1 Gi}}"),
        &[&format!(
            "{first}.resources.limits[cpu] <1 Gi> expected a quantity, found the string \"1 Gi\" (did you mean 1Gi?)"
        )],
    );
    check(
        &pod("livenessProbe: {httpGet: {port: 4294967296}}"),
        &[&format!(
            "{first}.livenessProbe.httpGet.port <4294967296> expected a string or a whole number of 32 bits, found the number 4294967296 (write a number, or a name in quotes)"
        )],
    );
    check(
        &pod("livenessProbe: {httpGet: {port: true}}"),
        &[&format!(
            "{first}.livenessProbe.httpGet.port <true> expected a string or a whole number of 32 bits, found the boolean true (write a number, or a name in quotes)"
        )],
    );
}

#[test]
fn all_problems_are_found_at_once_and_the_rest_is_kept() {
    let text = "\
metadata:
  name: 5
  labels: {a: 1, b: two}
  creationTimestamp: never
  finalizers: [1, x]
spec:
  completions: x
  unknown: {completions: y}
  parallelism: 4
";
    let decoded = read::<Job>(text);
    let paths: Vec<String> = decoded.problems.iter().map(|p| p.path.to_string()).collect();
    assert_eq!(
        paths,
        [
            "metadata.name",
            "metadata.labels[a]",
            "metadata.creationTimestamp",
            "metadata.finalizers[0]",
            "spec.completions",
            "spec.unknown",
        ]
    );
    let job = decoded.value.expect("what is right is kept");
    assert_eq!(job.metadata.name, None);
    assert_eq!(job.metadata.finalizers, Some(vec!["".to_owned(), "x".to_owned()]));
    let labels = job.metadata.labels.expect("there are labels");
    assert_eq!(labels.into_iter().collect::<Vec<_>>(), [("b".into(), "two".into())]);
    let spec = job.spec.expect("there is a spec");
    assert_eq!((spec.completions, spec.parallelism), (None, Some(4)));
}

#[test]
fn null_is_absent_in_fields_and_zero_in_lists_and_maps() {
    let text = "metadata: {name: null, labels: {a: null}, finalizers: [null]}\nspec: null";
    let decoded = read::<Job>(text);
    assert_eq!(decoded.problems, []);
    let job = decoded.value.expect("nulls are fine");
    assert_eq!(job.metadata.name, None);
    assert_eq!(job.metadata.labels.expect("labels")["a"], "");
    assert_eq!(job.metadata.finalizers, Some(vec![String::new()]));
    assert_eq!(job.spec, None);
}

#[test]
fn a_root_of_the_wrong_shape_or_kind_is_a_problem() {
    for text in ["[1]", "text", "5", "kind: Pod", "apiVersion: v1"] {
        let decoded = read::<Job>(text);
        assert_eq!(decoded.value, None, "{text}");
        assert_eq!(decoded.problems.len(), 1, "{text}");
    }
}

#[test]
fn byte_strings_are_base64_with_line_breaks() {
    let decoded = read::<Secret>("data: {a: aGVsbG8=, b: \"aGVs\\nbG8=\", c: '%'}");
    let data = decoded.value.and_then(|secret| secret.data).expect("data");
    assert_eq!(data["a"].0, b"hello");
    assert_eq!(data["b"].0, b"hello");
    assert_eq!(data.get("c"), None);
    assert_eq!(decoded.problems.len(), 1);
    assert_eq!(decoded.problems[0].path.to_string(), "data[c]");
}

#[test]
fn items_that_cannot_be_null_are_left_out() {
    #[derive(Debug, PartialEq)]
    struct Stubborn(String);
    impl<'de> de::Deserialize<'de> for Stubborn {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            match text.as_str() {
                "" | "bad" => Err(de::Error::custom("no such thing")),
                _ => Ok(Self(text)),
            }
        }
    }
    let decoded = read::<Vec<Stubborn>>("[a, bad, b]");
    let kept = decoded.value.expect("a list");
    assert_eq!(kept, [Stubborn("a".into()), Stubborn("b".into())]);
    assert_eq!(decoded.problems.len(), 1);
    assert_eq!(decoded.problems[0].to_string(), "[1]: no such thing");
}

#[test]
fn problems_beyond_the_limit_are_counted() {
    let count = MAX_PROBLEMS_PER_DOCUMENT + 50;
    let labels: Vec<String> = (0..count).map(|i| format!("k{i}: {i}")).collect();
    let decoded = read::<ObjectMeta>(&format!("labels: {{{}}}", labels.join(", ")));
    assert_eq!(decoded.problems.len(), MAX_PROBLEMS_PER_DOCUMENT + 1);
    let last = &decoded.problems[MAX_PROBLEMS_PER_DOCUMENT];
    assert_eq!(last.to_string(), "50 more problems are not shown");
    assert_eq!(decoded.value.expect("the rest").labels, Some(Default::default()));
}
