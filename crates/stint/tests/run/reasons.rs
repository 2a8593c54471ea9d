//! What is said of failures: why, what was written last, and what to run next.

use crate::kit::{Bench, example};

/// A Job of one container, with more in its Pod's and in its container's spec.
fn job(spec: &str, pod: &str, container: &str, script: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: work}}\nspec:\n{spec}\n  template:\n    \
         spec:\n{pod}\n      containers:\n      - name: main\n        image: i\n{container}\n        \
         command: [sh, -c, '{script}']\n"
    )
}

const NEVER: &str = "      restartPolicy: Never\n      terminationGracePeriodSeconds: 1";

#[test]
fn a_container_that_fails_again_and_again_is_told_with_its_code_and_last_lines() {
    let bench = Bench::new();
    let spec = "  completions: 2\n  parallelism: 2\n  completionMode: Indexed\n  backoffLimit: 2";
    let script = "echo index $JOB_COMPLETION_INDEX: cannot open model; exit 4";
    let text = job(spec, "      restartPolicy: OnFailure", "", script);
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let has_failed = |index: u32| {
        let failed = format!("index {index} failed in container main");
        let wrote = format!("exit code 4\n    | index {index}: cannot open model\n");
        ended.stderr.contains(&failed) && ended.stderr.contains(&wrote)
    };
    assert!(has_failed(0) || has_failed(1), "{}", ended.stderr);
}

#[test]
fn a_probe_or_a_hook_that_failed_is_named() {
    let rows = [
        (
            "        lifecycle: {postStart: {exec: {command: [sh, -c, \"echo hook broke; exit 3\"]}}}",
            "exit code 143 (signal 15): FailedPostStartHook: PostStartHook failed",
        ),
        (
            "        livenessProbe: {exec: {command: [sh, -c, exit 1]}, periodSeconds: 1, \
             failureThreshold: 1}",
            "exit code 143 (signal 15): Unhealthy: Liveness probe failed",
        ),
    ];
    for (container, expected) in rows {
        let bench = Bench::new();
        let text = job("  backoffLimit: 0", NEVER, container, "echo up; exec sleep 60");
        let ended = bench.run(&[&bench.file("job.yaml", &text)]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn last_lines_need_not_be_utf_8() {
    let bench = Bench::new();
    let text = job("  backoffLimit: 0", NEVER, "", r#"printf "one\n\377bad\ntwo\n"; exit 7"#);
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("    | one\n    | \u{fffd}bad\n    | two\n"), "{}", ended.stderr);
}

#[test]
fn what_was_stopped_or_never_began_is_to_be_run_again_too() {
    let bench = Bench::new();
    let ended = bench.run(&[&example("max-failed-indexes.yaml")]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("completed  0 of 10\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("then stint run --only-indexes 0-9 "), "{}", ended.stderr);
}

#[test]
fn what_pods_would_wait_for_in_vain_is_refused() {
    let bench = Bench::new();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\ndata: {a: b}\n---\n";
    let rows = [
        (
            "        envFrom: [{configMapRef: {name: nope}}]",
            Some("reads the ConfigMap nope, which"),
        ),
        (
            "        env: [{name: A, valueFrom: {secretKeyRef: {name: nope, key: k}}}]",
            Some("containers[0].env[0].valueFrom.secretKeyRef reads the key k of the Secret nope"),
        ),
        (
            "        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: k}}}]",
            Some("reads the key k of the ConfigMap here"),
        ),
        ("        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: a}}}]", None),
        ("        envFrom: [{configMapRef: {name: nope, optional: true}}]", None),
    ];
    for (container, refusal) in rows {
        let text = map.to_owned() + &job("", NEVER, container, "true");
        let ended = bench.run(&[&bench.file("job.yaml", &text)]);
        assert_eq!(ended.code, Some(if refusal.is_some() { 2 } else { 0 }), "{ended:?}");
        let refusal = refusal.unwrap_or("Complete");
        assert!(ended.stderr.contains(refusal), "{refusal}: {}", ended.stderr);
    }
}

#[test]
fn two_objects_of_one_kind_and_name_are_refused() {
    let bench = Bench::new();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twin}\n---\n";
    let text = map.repeat(2) + &job("", NEVER, "", "true");
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ConfigMap twin has the name of another"), "{}", ended.stderr);
}
