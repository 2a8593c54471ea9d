//! What is said of failures: why, what was written last, and what to run next.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::kit::home::is_root;
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
fn the_last_lines_are_those_of_the_run_that_the_reason_is_of() {
    let bench = Bench::new();
    let spec = "  backoffLimit: 2";
    let pod = "      restartPolicy: OnFailure\n      volumes: [{name: v, emptyDir: {}}]";
    let container = "        volumeMounts: [{name: v, mountPath: /run/kept}]";
    let script = "echo x >> /run/kept/runs; n=$(wc -l < /run/kept/runs); echo run $n; exit $n";
    let text = job(spec, pod, container, script);
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // The third run is what the limit is reached by, and so it may be ended before it ends itself, or
    // has written anything.
    let told = ["3 times: exit code 3\n    | run 3\n", "3 times: exit code 143 (signal 15)\n"];
    let is_told = told.iter().any(|told| ended.stderr.contains(told));
    assert!(is_told && !ended.stderr.contains("| run 2"), "{}", ended.stderr);
}

#[test]
fn a_probe_that_failed_once_and_recovered_is_not_blamed() {
    let bench = Bench::new();
    let container = "        livenessProbe: {exec: {command: [sh, -c, \"test -e went || { touch went; \
                     exit 1; }; touch again\"]}, periodSeconds: 1, failureThreshold: 5}\n        \
                     workingDir: /run/kept\n        volumeMounts: [{name: v, mountPath: /run/kept}]";
    let pod = format!("{NEVER}\n      volumes: [{{name: v, emptyDir: {{}}}}]");
    // $$ is one $ in a manifest.
    let script = "until test -e again; do sleep 0.1; done; kill -9 $$$$";
    let text = job("  backoffLimit: 0", &pod, container, script);
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("exit code 137 (signal 9)\n"), "{}", ended.stderr);
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
fn a_command_that_can_never_run_is_told_once_for_all_tries() {
    let rows = [
        ("[no-such-program]", "Never", "3 times: StartError (exit code 128): exec: \"no-such-"),
        ("[sh, -c, no-such-program]", "Never", "3 times: exit code 127\n"),
    ];
    for (command, policy, why) in rows {
        let bench = Bench::new();
        let text =
            job("  backoffLimit: 2", &format!("      restartPolicy: {policy}"), "", "SCRIPT")
                .replace("[sh, -c, 'SCRIPT']", command);
        let ended = bench.run(&[&bench.file("job.yaml", &text)]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let said = format!("  every try  failed the same way, {why}");
        assert_eq!(ended.stderr.matches(&said).count(), 1, "{said}: {}", ended.stderr);
    }
    // Another try may do better.
    let bench = Bench::new();
    let text = job("  backoffLimit: 1", NEVER, "", "exit 1");
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert!(!ended.stderr.contains("every try"), "{}", ended.stderr);
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
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here}\ndata: {a: b}\n\
               binaryData: {bytes: AA==}\n---\n";
    let rows = [
        (
            "        envFrom: [{configMapRef: {name: nope}}]",
            Some("reads the ConfigMap nope, which is not there"),
        ),
        (
            "        env: [{name: A, valueFrom: {secretKeyRef: {name: nope, key: k}}}]",
            Some(
                "containers[0].env[0].valueFrom.secretKeyRef: it reads the key k of the Secret nope",
            ),
        ),
        (
            "        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: k}}}]",
            Some("reads the key k of the ConfigMap here, and that has only a, bytes, so that"),
        ),
        (
            "        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: bytes}}}]",
            Some("reads the key bytes of the ConfigMap here, which is in its binaryData"),
        ),
        ("        env: [{name: A, valueFrom: {configMapKeyRef: {name: here, key: a}}}]", None),
        ("        envFrom: [{configMapRef: {name: nope, optional: true}}]", None),
    ];
    for (container, refusal) in rows {
        let text = map.to_owned() + &job("", NEVER, container, "true");
        let ended = bench.run(&["--timeout", "30s", &bench.file("job.yaml", &text)]);
        assert_eq!(ended.code, Some(if refusal.is_some() { 2 } else { 0 }), "{ended:?}");
        let refusal = refusal.unwrap_or("Complete");
        assert!(ended.stderr.contains(refusal), "{refusal}: {}", ended.stderr);
    }
}

#[test]
fn what_is_not_there_is_shown_where_it_is_asked_for_all_of_it_at_once() {
    let bench = Bench::new();
    let container = "        envFrom:\n        - configMapRef: {name: words}\n        - secretRef:\n            \
                     name: keys\n            optional: false";
    let file = bench.file("job.yaml", &job("", NEVER, container, "true"));
    let ended = bench.run(&["--timeout", "30s", &file]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for said in [
        format!("{file}:14:32\n"),
        " 14 |         - configMapRef: {name: words}\n".to_owned(),
        "    |                                ^^^^^\n".to_owned(),
        format!("{file}:16:19\n"),
        "envFrom[1].secretRef: it reads the Secret keys, which is not there".to_owned(),
        "= help: add the file that has it to the command line, or say optional: true".to_owned(),
    ] {
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
    }
}

#[test]
fn what_this_machine_will_never_have_is_refused_where_it_is_asked_for() {
    let bench = Bench::new();
    let asks = |resources: &str| job("", NEVER, &format!("        resources: {resources}"), "true");
    let pod = |more: &str| job("", &format!("{NEVER}\n{more}"), "", "true");
    let affinity = "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                    {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: \
                    [ssd]}]}]}}}";
    let container = "spec.template.spec.containers[0].resources";
    let rows = [
        (
            asks("{requests: {cpu: 9000}}"),
            format!("{container}.requests[cpu]: a Pod asks for 9000 of cpu, and this machine has "),
        ),
        (
            asks("{limits: {memory: 900Ti}}"),
            format!("{container}.limits[memory]: a Pod asks for 900Ti"),
        ),
        (
            asks("{limits: {nvidia.com/gpu: 1}}"),
            format!(
                "{container}.limits[nvidia.com/gpu]: a Pod asks for 1 of nvidia.com/gpu, and this \
                     machine has 0, so that it would wait forever\n"
            ),
        ),
        (
            pod("      nodeSelector: {kubernetes.io/os: linux, disk: ssd}"),
            "spec.template.spec.nodeSelector[disk]: it asks for a node with disk=ssd, and"
                .to_owned(),
        ),
        (pod(affinity), "spec.template.spec.affinity.nodeAffinity.required".to_owned()),
        (
            pod("      nodeName: node-7"),
            "spec.template.spec.nodeName: it asks for the node node-7, and the only".to_owned(),
        ),
        (pod("      schedulerName: mine"), "spec.template.spec.schedulerName: it asks".to_owned()),
    ];
    for (text, said) in rows {
        let file = bench.file("job.yaml", &text);
        let ended = bench.run(&["--timeout", "30s", &file]);
        assert_eq!(ended.code, Some(2), "{said}: {ended:?}");
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
        assert!(ended.stderr.contains(&format!("--> {file}:")), "{}", ended.stderr);
        assert!(ended.stderr.contains("= help: "), "{}", ended.stderr);
        assert!(bench.left().is_empty(), "{:?}", bench.left());
    }
    let fits = [
        asks("{requests: {cpu: 1m, memory: 1Mi}}"),
        pod("      nodeSelector: {kubernetes.io/os: linux}"),
        pod("      nodeName: stint"),
    ];
    for text in fits {
        let ended = bench.run(&["--timeout", "30s", &bench.file("job.yaml", &text)]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn two_objects_of_one_kind_and_name_are_refused() {
    let bench = Bench::new();
    let map = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: twin}}\ndata: {{a: {value}}}\n---\n"
        )
    };
    let text = map("b") + &map("c") + &job("", NEVER, "", "true");
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ConfigMap twin has the name of another"), "{}", ended.stderr);
}

#[test]
fn what_can_never_run_here_is_refused_where_it_is_asked_for() {
    let bench = Bench::new();
    let pod = |more: &str| job("", &format!("{NEVER}\n{more}"), "", "true");
    let bare = job("", NEVER, "", "SCRIPT").replace("        command: [sh, -c, 'SCRIPT']\n", "");
    let of_pod = "      securityContext: {runAsNonRoot: true}";
    let mut rows = vec![
        (
            pod("      securityContext: {runAsNonRoot: true, runAsUser: 0}"),
            "spec.template.spec.securityContext.runAsNonRoot: container main must not run as root, and \
             has runAsUser 0\n",
            ":10:39\n",
        ),
        (
            pod("      volumes: [{name: v, nfs: {server: s, path: /}}]"),
            "spec.template.spec.volumes[0]: volume v: nfs is not supported here\n",
            ":10:24\n",
        ),
        (bare, "container main has no command, and images are not used here\n", ":11:15\n"),
    ];
    if is_root() {
        let said = "container main must not run as root, and would: stint runs as root, and";
        rows.push((pod(of_pod), said, ":10:39\n"));
    } else {
        let ended = bench.run(&["--timeout", "60s", &bench.file("job.yaml", &pod(of_pod))]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let said = "container main is to run as user 7, and user ";
        rows.push((pod("      securityContext: {runAsUser: 7}"), said, ":10:36\n"));
    }
    for (text, said, place) in rows {
        let file = bench.file("job.yaml", &text);
        let ended = bench.run(&["--timeout", "60s", &file]);
        assert_eq!(ended.code, Some(2), "{said}: {ended:?}");
        for said in [said, "= help: ", &format!("--> {file}{place}")] {
            assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        }
    }
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// Whoever it is has no rights, and can make no user namespace.
const POWERLESS: &str = "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; \
                         exec setpriv --bounding-set -all --inh-caps -all -- \"$@\"";

#[test]
fn where_nothing_can_be_mounted_only_what_needs_it_is_refused() {
    let bench = Bench::new();
    let run = |text: &str| {
        let stint = bench.command(&["--timeout", "60s", &bench.file("job.yaml", text)]);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", POWERLESS, "sh"]);
        command.arg(stint.get_program()).args(stint.get_args());
        for (name, value) in stint.get_envs() {
            command.env(name, value.expect("it is set"));
        }
        let output = command.output().expect("there is unshare");
        assert_ne!(output.status.code(), Some(99), "{output:?}");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let pod = format!("{NEVER}\n      volumes: [{{name: v, emptyDir: {{}}}}]");
    let container = "        volumeMounts: [{name: v, mountPath: /mnt/v}]";
    let (code, said) = run(&job("", &pod, container, "true"));
    assert_eq!(code, Some(2), "{said}");
    let expected =
        "spec.template.spec.containers[0].volumeMounts: mounts and host names are not possible";
    assert_eq!(said.matches(expected).count(), 1, "{said}");
    assert!(said.contains("job.yaml:14:23\n"), "{said}");
    assert!(said.contains("= help: run stint as root, or allow"), "{said}");
    let (code, said) = run(&job("", NEVER, "", "true"));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn every_container_of_a_pod_that_failed_is_told_with_its_last_lines() {
    let bench = Bench::new();
    let text = job("  backoffLimit: 0", NEVER, "", "echo one broke; exit 3")
        + "      - {name: second, image: i, command: [sh, -c, 'echo two broke; exit 4']}\n"
        + "      - {name: third, image: i, command: ['true']}\n";
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        " failed: exit code 3; container second: exit code 4\n",
        " failed in container main: exit code 3; container second: exit code 4\n    \
         | [main] one broke\n    | [second] two broke\n",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

#[test]
fn a_sidecar_that_is_ended_with_its_pod_is_not_blamed_for_its_end() {
    let bench = Bench::new();
    let side = "      initContainers:\n      - {name: side, image: i, restartPolicy: Always, \
                command: [sleep, '1000']}";
    let text = job("  backoffLimit: 0", &format!("{NEVER}\n{side}"), "", "echo broke; exit 3");
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = " failed in container main: exit code 3\n    | broke\n";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn folders_of_the_path_that_cannot_be_looked_into_are_named() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    std::fs::create_dir(bench.path("closed")).expect("it is ours");
    let closed = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(bench.path("closed"), closed).expect("it is ours");
    let path = bench.path("closed");
    let container = format!(
        "        securityContext: {{runAsUser: 54321}}\n        env: [{{name: PATH, value: \
         '{path}:/usr/bin:/bin'}}]"
    );
    let text = job("  backoffLimit: 0", NEVER, &container, "SCRIPT");
    let text = text.replace("[sh, -c, 'SCRIPT']", "[no-such-program]");
    let ended = bench.run(&[&bench.file("job.yaml", &text)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = format!(
        "not found in $PATH; not all of it can be searched by user 54321 ({path}: \
                        permission denied): give"
    );
    assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
}
