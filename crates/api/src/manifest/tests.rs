//! What a checker says about a text, and where.

use super::*;
use crate::feature_gates::Gate;

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: x
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox:1.36
        command: [\"true\"]
";

/// All documents of a text, checked.
fn check(checker: &mut Checker, text: &str) -> Vec<CheckedDocument> {
    let mut documents = Vec::new();
    checker.check(text, |document| documents.push(document));
    documents
}

/// Every diagnostic as `severity path @ what is pointed at: message`.
fn found(text: &str) -> Vec<String> {
    let mut checker = Checker::default().allow([advice::IMAGE_IGNORED.to_owned()]);
    check(&mut checker, text)
        .iter()
        .flat_map(|document| &document.diagnostics)
        .map(|found| show(text, found))
        .collect()
}

fn show(text: &str, found: &Diagnostic) -> String {
    let severity = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let pointed = &text[found.span.start..found.span.end];
    format!("{severity} {} @ {pointed:?}: {}", found.path, found.message)
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_good_job_has_nothing_to_say_and_its_defaults() {
    let mut checker = Checker::default().allow([advice::IMAGE_IGNORED.to_owned()]).keep_jobs();
    let checked = check(&mut checker, JOB);
    let [document] = &checked[..] else { panic!("{checked:?}") };
    assert!(document.diagnostics.is_empty(), "{:?}", document.diagnostics);
    assert_eq!(document.name.as_deref(), Some("x"));
    let DocumentKind::Job(Some(job)) = &document.kind else { panic!("{:?}", document.kind) };
    let spec = job.spec.as_ref().unwrap();
    assert_eq!(spec.backoff_limit, Some(6));
    assert_eq!((spec.selector.as_ref(), job.metadata.uid.as_ref()), (None, None));
}

#[test]
fn an_error_points_at_its_value_or_at_the_key_that_lacks_it() {
    assert_eq!(
        found(&JOB.replace("completions: 2", "completions: -2")),
        ["error spec.completions @ \"-2\": Invalid value: -2: must be greater than or equal to 0"]
    );
    assert_eq!(
        found(&JOB.replace("      restartPolicy: Never\n", "")),
        [
            "error spec.template.spec.restartPolicy @ \"spec\": Required value: valid values: \"OnFailure\", \"Never\""
        ]
    );
    assert_eq!(
        found(&JOB.replace("        image: busybox:1.36\n", "")),
        ["error spec.template.spec.containers[0].image @ \"name\": Required value"]
    );
}

#[test]
fn a_bad_label_is_pointed_at_itself() {
    let text = JOB.replace(
        "  template:\n",
        "  template:\n    metadata:\n      labels:\n        good: x\n        bad key: x\n",
    );
    let found = found(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("error metadata.labels @ \"bad key\""), "{found:#?}");
    assert!(found[1].starts_with("error spec.template.labels @ \"bad key\""), "{found:#?}");
}

#[test]
fn a_label_made_from_a_bad_name_is_pointed_at_the_name() {
    let found = found(&JOB.replace("name: x", "name: a b"));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("error metadata.name @ \"a b\""), "{found:#?}");
    assert!(found[1].starts_with("error spec.template.labels @ \"a b\""), "{found:#?}");
}

#[test]
fn a_bad_generated_name_is_told_once_and_pointed_at() {
    let text = JOB.replace("name: x", "generateName: My_Job-");
    assert_eq!(found(&text).len(), 1, "{:#?}", found(&text));
    assert!(found(&text)[0].starts_with("error metadata.generateName @ \"My_Job-\""));
    let long = format!("generateName: {}-", "a".repeat(70));
    let indexed = JOB
        .replace("name: x", &long)
        .replace("completions: 2", "completions: 2\n  completionMode: Indexed");
    assert!(
        found(&indexed)[0].starts_with("error metadata.name @ \"aaa"),
        "{:#?}",
        found(&indexed)
    );
}

#[test]
fn an_empty_item_is_pointed_at_itself() {
    let policy = "podFailurePolicy: {rules: [{}]}";
    for found in found(&JOB.replace("completions: 2", policy)) {
        assert!(found.contains("@ \"{}\":"), "{found}");
    }
}

#[test]
fn what_is_wrong_does_not_surprise_as_well() {
    assert_eq!(found(&JOB.replace("completions: 2", "managedBy: nobody")).len(), 1);
}

#[test]
fn a_bad_quantity_is_pointed_at_among_its_neighbours() {
    let resources = "        resources: {requests: {memory: 1Gi, cpu: 2}, limits: {cpu: 1}}\n";
    assert_eq!(
        found(&format!("{JOB}{resources}")),
        [
            "error spec.template.spec.containers[0].resources.requests @ \"2\": Invalid value: \"2\": must be less than or equal to cpu limit of 1"
        ]
    );
}

#[test]
fn a_field_that_cannot_be_read_is_told_once() {
    assert_eq!(found(&JOB.replace("completions: 2", "completions: two")).len(), 1);
    assert_eq!(found(&JOB.replace("restartPolicy: Never", "restartPolicy: 1")).len(), 1);
    assert_eq!(found(&JOB.replace("image: busybox:1.36", "image: 1.36")).len(), 1);
    assert_eq!(found(&JOB.replace("name: main", "nam: main")).len(), 2);
}

#[test]
fn a_job_in_the_wrong_place_is_still_checked() {
    let text = JOB.replace("batch/v1", "v1").replace("completions: 2", "completions: -2");
    assert_eq!(
        found(&text),
        [
            "error apiVersion @ \"v1\": Unsupported value: \"v1\": supported values: \"batch/v1\"",
            "error spec.completions @ \"-2\": Invalid value: -2: must be greater than or equal to 0"
        ]
    );
    assert_eq!(
        found(&JOB.replace("kind: Job", "kind: job")),
        ["error kind @ \"job\": Unsupported value: \"job\": supported values: \"Job\""]
    );
    let both = JOB.replace("kind: Job", "kind: job").replace("batch/v1", "batch/v1beta1");
    assert_eq!(found(&both).len(), 2, "{:#?}", found(&both));
    assert_eq!(
        found(&JOB.replace("apiVersion: batch/v1\n", "")),
        ["error apiVersion @ \"kind\": Required value"]
    );
}

#[test]
fn other_kinds_are_named_and_passed_over() {
    let text = format!(
        "{JOB}---\napiVersion: v1\nkind: Service\nmetadata: {{generateName: s-}}\nspec: {{whatever: 1}}\n\
         ---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n---\napiVersion: batch/v1\nkind: CronJob\n"
    );
    assert_eq!(found(&text), none());
    let checked = check(&mut Checker::default(), &text);
    let kinds: Vec<String> = checked[1..]
        .iter()
        .map(|document| {
            assert_eq!(document.kind, DocumentKind::Other);
            [&document.api_version, &document.kind_name]
                .map(|text| text.as_deref().unwrap_or("?"))
                .join(" ")
        })
        .collect();
    assert_eq!(kinds, ["v1 Service", "batch.volcano.sh/v1alpha1 Job", "batch/v1 CronJob"]);
    assert_eq!(checked[1].name.as_deref(), Some("s-*"));
    let twice = "apiVersion: v1\nkind: ConfigMap\ndata: {a: x, a: y}\n";
    assert_eq!(found(twice), none(), "what is passed over is not judged");
    assert_ne!(found(&format!("{twice}  b: [\n")), none(), "but must be readable");
}

#[test]
fn what_is_no_object_is_said_to_be_none() {
    assert_eq!(
        found("- a\n- b\n"),
        ["error  @ \"\": a manifest is a mapping with apiVersion, kind and metadata"]
    );
    assert_eq!(
        found(&JOB.replace("kind: Job", "Kind: Job"))[..1],
        ["error kind @ \"Kind\": Required value"]
    );
    assert_eq!(
        found("a: 1\n"),
        ["error apiVersion @ \"a\": Required value", "error kind @ \"a\": Required value"]
    );
    assert_eq!(
        found("apiVersion: v1\nkind: 5\n"),
        ["error kind @ \"5\": expected a string, found the number 5"]
    );
    assert_eq!(
        found("apiVersion: a/b/c\nkind: Job\n"),
        ["error apiVersion @ \"a/b/c\": Invalid value: \"a/b/c\": unexpected GroupVersion string"]
    );
    assert_eq!(found("# only a comment\n---\n"), none());
}

#[test]
fn the_items_of_a_list_are_checked_as_documents() {
    let item = JOB.replace("completions: 2", "completions: -2").replace('\n', "\n  ");
    let text =
        format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n- apiVersion: v1\n  kind: Pod\n");
    assert_eq!(
        found(&text),
        ["error spec.completions @ \"-2\": Invalid value: -2: must be greater than or equal to 0"]
    );
    assert_eq!(check(&mut Checker::default(), &text).len(), 2);
    assert_eq!(check(&mut Checker::default(), "apiVersion: v1\nkind: List\nitems: []\n").len(), 0);
}

#[test]
fn a_list_is_checked_itself() {
    let list = |rest: &str| found(&format!("apiVersion: v1\nkind: List\n{rest}"));
    assert_eq!(list("items: []\nmetadata: {resourceVersion: ''}\n"), none());
    assert_eq!(list("itmes: []\n"), ["error  @ \"itmes\": unknown field \"itmes\" of a list"]);
    assert_eq!(
        list("items: {a: 1}\n"),
        ["error items @ \"{a: 1}\": expected a list, found a mapping"]
    );
    assert_eq!(list("items: []\nitems: []\n").len(), 1);
    let inner = "{apiVersion: v1, kind: List, items: []}";
    assert_eq!(
        list(&format!("items: [{inner}]\n")),
        ["error kind @ \"List\": Invalid value: \"List\": a list cannot stand in a list"]
    );
    let wrong = "apiVersion: v1\nkind: JobList\nitems: []\n";
    assert_eq!(
        found(wrong),
        ["error apiVersion @ \"v1\": Unsupported value: \"v1\": supported values: \"batch/v1\""]
    );
    assert_eq!(
        list("items: [1]\n"),
        ["error  @ \"\": a manifest is a mapping with apiVersion, kind and metadata"]
    );
}

#[test]
fn the_items_of_a_job_list_need_not_say_what_they_are() {
    let item = JOB.replace("apiVersion: batch/v1\nkind: Job\n", "").replace('\n', "\n  ");
    let text = format!("apiVersion: batch/v1\nkind: JobList\nitems:\n- {item}\n");
    assert_eq!(found(&text), none());
    assert_eq!(check(&mut Checker::default(), &text).len(), 1);
    assert_ne!(found(&text.replace("JobList", "List").replace("batch/v1", "v1")), none());
}

#[test]
fn what_was_read_is_judged_in_spite_of_its_neighbours() {
    let twice = JOB.replace("  completions: 2\n", "  parallelism: -1\n  parallelism: 2\n");
    assert_eq!(found(&twice).len(), 2, "{:#?}", found(&twice));
    let rule = "{action: Ignore, onExitCode: {}, onExitCodes: {operator: In, values: [1]}, \
                onPodConditions: [{type: X}]}";
    let both = JOB.replace("completions: 2", &format!("podFailurePolicy: {{rules: [{rule}]}}"));
    assert_eq!(found(&both).len(), 2, "{:#?}", found(&both));
}

#[test]
fn an_empty_namespace_is_the_requests() {
    assert_eq!(found(&JOB.replace("name: x", "name: x\n  namespace: ''")), none());
}

#[test]
fn of_many_findings_some_are_kept_and_the_rest_is_counted() {
    let env = "        env: [".to_owned() + &"{name: ''}, ".repeat(5_000) + "]\n";
    let found = found(&format!("{JOB}{env}"));
    assert_eq!(found.len(), 1_001);
    assert!(
        found[1_000]
            .ends_with("4000 more findings of this document not shown, 4000 of them errors"),
        "{}",
        found[1_000]
    );
}

#[test]
fn one_bad_document_does_not_hide_the_others() {
    let text = format!("a: [1\n---\n{}", JOB.replace("completions: 2", "completions: -2"));
    let found = found(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn the_image_is_mentioned_once_for_all_files() {
    let mut checker = Checker::default();
    let count = |documents: Vec<CheckedDocument>| -> usize {
        documents.iter().map(|document| document.diagnostics.len()).sum()
    };
    let other = JOB.replace("name: x", "name: z");
    assert_eq!(count(check(&mut checker, &format!("{JOB}---\n{other}"))), 1);
    assert_eq!(count(check(&mut checker, JOB)), 0);
}

#[test]
fn two_jobs_of_one_name_in_a_file_are_one_too_many() {
    let twice = format!("{JOB}---\n{JOB}");
    let found_twice = found(&twice);
    assert_eq!(found_twice.len(), 1, "{found_twice:#?}");
    assert!(found_twice[0].starts_with("warning metadata.name @ \"x\": another Job"));
    assert_eq!(found(&twice.replacen("name: x", "name: x\n  namespace: ns", 1)), none());
    assert_eq!(found(&twice.replace("name: x", "generateName: x")), none());
}

#[test]
fn a_gate_that_is_off_drops_the_field_and_says_so() {
    let text = JOB.replace("completions: 2", "managedBy: example.com/x");
    let gates = FeatureGates::default().with(Gate::JobManagedBy, false);
    let checked = check(&mut Checker::new(gates).keep_jobs(), &text);
    let names: Vec<_> = checked[0].diagnostics.iter().map(|found| found.name).collect();
    assert_eq!(names, [Some("feature-off"), Some("managed-elsewhere"), Some("image-ignored")]);
    let DocumentKind::Job(Some(job)) = &checked[0].kind else { panic!() };
    assert_eq!(job.spec.as_ref().unwrap().managed_by, None);
}

#[test]
fn a_generated_name_is_judged_as_it_will_be() {
    let long = "a".repeat(70);
    let text = JOB.replace("name: x", &format!("generateName: {long}-"));
    assert_eq!(found(&text), none());
    let text = text.replace("completions: 2", "completions: 2\n  completionMode: Indexed");
    assert_eq!(found(&text).len(), 1, "{:#?}", found(&text));
}
