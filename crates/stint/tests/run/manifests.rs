//! What can be run, and what cannot.

use std::process::Command;

use crate::kit::home::is_root;
use crate::kit::{Bench, example, indexed};

#[test]
fn a_job_finds_what_stands_beside_it_in_a_namespace_that_is_made_for_it() {
    let bench = Bench::new();
    let text = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: words, namespace: lab}
data: {greeting: good morning}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: keys, namespace: lab}
  stringData: {key: sesame}
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: tell-, namespace: lab}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: unused
        env:
        - {name: GREETING, valueFrom: {configMapKeyRef: {name: words, key: greeting}}}
        - {name: KEY, valueFrom: {secretKeyRef: {name: keys, key: key}}}
        - {name: CHANGED, value: before}
        command: [sh, -c, 'echo \"$GREETING, $KEY, $CHANGED, $ADDED\"']
";
    let arguments = ["--logs", "--set", "CHANGED=after", "--set", "ADDED=$(KEY)", "-"];
    let ended = bench.run_with_input(&arguments, text);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("[tell-"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("] good morning, sesame, after, $(KEY)\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("lab/tell-"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason_and_runs_nothing() {
    let bench = Bench::new();
    let wrong = indexed("a", 1, "  paralelism: 2", "true");
    let suspended = indexed("a", 1, "  suspend: true", "true");
    let idle = indexed("a", 1, "", "true").replace("parallelism: 8", "parallelism: 0");
    let beside = |object: &str| format!("{}---\n{object}\n", indexed("a", 1, "", "echo ran"));
    let pod = beside("{apiVersion: v1, kind: Pod, metadata: {name: p}}");
    let map = beside("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, dat: {}}");
    let rows = [
        (wrong.as_str(), "did you mean \"parallelism\"?"),
        (&suspended, "job.yaml:9:12"),
        (&idle, "with --parallelism"),
        (&pod, "document 2: stint run does not run a Pod"),
        (&map, "unknown field \"dat\""),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "there is no Job in"),
    ];
    for (text, said) in rows {
        let ended = bench.run(&["--logs", &bench.file("job.yaml", text)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    let ended = bench.run(&["--parallelism", "1", &bench.file("job.yaml", &idle)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn two_jobs_of_one_name_are_refused_wherever_they_are() {
    let bench = Bench::new();
    let one = bench.file("one.yaml", &indexed("twin", 1, "", "true"));
    let two = bench.file("two.yaml", &indexed("twin", 1, "", "true"));
    let ended = bench.run(&[&one, &two]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let said = format!("{two}:1, document 1: Job twin has the name of another, at {one}:1");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

#[test]
fn what_several_files_say_word_for_word_is_said_once() {
    let bench = Bench::new();
    let with = |data: &str, job: &str| {
        let map =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {data}}}");
        format!("{map}\n---\n{}", indexed(job, 1, "", "true"))
    };
    let one = bench.file("one.yaml", &with("{a: b}", "one"));
    let two = bench.file("two.yaml", &with("{a: b}", "two"));
    let ended = bench.run(&[&one, &two]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = bench.run(&[&one, &bench.file("two.yaml", &with("{a: c}", "two"))]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ConfigMap m has the name of another"), "{}", ended.stderr);
}

#[test]
fn a_job_that_is_removed_at_its_end_has_ended() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("brief", 3, "  ttlSecondsAfterFinished: 0", "true"));
    let ended = bench.run(&["-o", "json", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["status"]["succeeded"], 3);
}

#[test]
fn wrong_usage_and_unreadable_files_are_told() {
    let bench = Bench::new();
    let hello = example("hello.yaml");
    for arguments in [
        &["no-such-file.yaml"][..],
        &[],
        &["--retry-failed", &hello],
        &["--only-indexes", "3-", &hello],
        &["--only-indexes", "0", &hello],
        &["--set", "novalue", &hello],
        &["--timeout", "soon", &hello],
        &["-", "-"],
    ] {
        let ended = bench.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?} {ended:?}");
        assert!(ended.stderr.contains("error: "), "{arguments:?} {ended:?}");
    }
    let data = bench.path("mine");
    std::fs::create_dir(&data).expect("it is ours");
    bench.file("mine/thesis.txt", "mine");
    let ended = bench.run(&["--data-dir", &data, &hello]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
fn nobody_needs_a_standard_input() {
    let bench = Bench::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" run \"$1\" <&-", env!("CARGO_BIN_EXE_stint")]);
    let output = shell.arg(example("hello.yaml")).env("TMPDIR", bench.path("tmp")).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Only root can be somebody else.
#[test]
fn containers_have_the_groups_of_their_manifest_and_so_have_volumes() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let manifest = "\
apiVersion: v1
kind: Secret
metadata: {name: closed}
stringData: {word: hidden}
---
apiVersion: batch/v1
kind: Job
metadata: {name: groups}
spec:
  backoffLimit: 0
  completionMode: Indexed
  completions: 1
  template:
    spec:
      restartPolicy: Never
      securityContext: {runAsUser: 54321, runAsGroup: 54322, fsGroup: 54323, supplementalGroups: [54324]}
      containers:
      - name: main
        image: unused
        command:
        - sh
        - -c
        - id -u; id -g; id -G | tr ' ' '\\n' | sort | tr '\\n' ' '; echo; stat -c '%a %g' /shared;
          touch /shared/file; stat -c '%u %g' /shared/file; cat /closed/word; echo
        volumeMounts: [{name: shared, mountPath: /shared}, {name: closed, mountPath: /closed}]
      volumes:
      - {name: shared, emptyDir: {}}
      - {name: closed, secret: {secretName: closed, defaultMode: 0400}}
";
    let ended = bench.run(&["--logs", &bench.file("job.yaml", manifest)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = ["54321", "54322", "54322 54323 54324 ", "2777 54323", "54321 54323", "hidden"];
    let expected = expected.map(|line| format!("[groups/0] {line}\n")).concat();
    assert_eq!(ended.stdout, expected);
}

#[test]
fn a_job_that_would_be_removed_at_once_for_want_of_its_owner_is_refused() {
    let bench = Bench::new();
    let owned = |kind: &str| {
        let job = indexed("owned", 1, "", "true");
        let owner = format!(
            "name: owned\n  ownerReferences: [{{{kind}, name: gone, uid: 1b4e28ba-2fa1-11d2}}]\n"
        );
        bench.file("job.yaml", &job.replacen("name: owned\n", &owner, 1))
    };
    let refused = bench.run(&["--timeout", "30s", &owned("apiVersion: v1, kind: Pod")]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "metadata.ownerReferences: its owner, the Pod gone with this uid, is not there";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    assert!(refused.stderr.contains("job.yaml:5:"), "{}", refused.stderr);
    // Of kinds that are not served nothing can be known, and nothing is removed for them.
    let ended = bench.run(&["--timeout", "30s", &owned("apiVersion: batch/v1, kind: CronJob")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn what_an_earlier_run_has_set_for_good_is_refused_with_what_to_do() {
    let bench = Bench::new();
    let run = |value: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: set}}\nimmutable: true\n\
             data: {{key: {value}}}\n---\n"
        );
        let file = bench.file("job.yaml", &(map + &indexed("work", 1, "", "true")));
        bench.run(&["--data-dir", &bench.path("data"), &file])
    };
    for value in ["one", "one"] {
        let ended = run(value);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let refused = run("other");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "field is immutable when `immutable` is set; it is there from an earlier run: give it \
                another name, or begin anew in another --data-dir\n";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
}
