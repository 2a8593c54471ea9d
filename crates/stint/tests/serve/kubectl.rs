//! kubectl, the real one, against the real server: everyday use. Also with one that is four versions
//! older, whose words differ here and there: docs/testing.md.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::kit::{Kubectl, Server, text};

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: work
spec:
  completions: 3
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, echo hello]
";

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: alone
  labels: {app: test}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
";

#[test]
fn a_job_is_created_and_shown_in_every_form() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    assert_eq!(kubectl.give(JOB, "create -f -"), "job.batch/work created\n");
    let table = kubectl.run("get jobs");
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().expect("a head").split_whitespace().collect();
    assert_eq!(head, ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]);
    let row: Vec<&str> = lines.next().expect("a row").split_whitespace().collect();
    assert_eq!(row[..3], ["work", "Running", "0/3"]);
    let wide = kubectl.run("get jobs -o wide");
    assert!(wide.contains("IMAGES") && wide.contains("busybox"), "{wide}");
    assert_eq!(kubectl.run("get jobs -o name"), "job.batch/work\n");
    assert!(kubectl.run("get job work -o yaml").contains("completionMode: Indexed\n"));
    assert_eq!(kubectl.json("get job work")["spec"]["parallelism"], 2);
    assert_eq!(kubectl.run("get job work -o jsonpath={.spec.completions}"), "3");
    let columns = kubectl.run("get jobs -o custom-columns=N:.metadata.name,P:.spec.parallelism");
    assert_eq!(columns, "N      P\nwork   2\n");
    assert_eq!(kubectl.run("get job work -o go-template={{.metadata.name}}"), "work");
    assert_eq!(kubectl.run("get jobs -A --no-headers").split_whitespace().next(), Some("default"));
    assert!(kubectl.run("get jobs --show-labels").contains("job-name=work"));
    assert!(kubectl.run("get all").contains("job.batch/work"));
    assert!(kubectl.run("get jobs --sort-by=.metadata.name").contains("work"));
    assert_eq!(kubectl.run("get jobs --chunk-size=1 -o name"), "job.batch/work\n");
    assert_eq!(kubectl.run("get job work -o jsonpath={.spec.backoffLimit}"), "6");
}

#[test]
fn describe_shows_a_job_with_its_events() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(JOB, "create -f -");
    let uid = kubectl.run("get job work -o jsonpath={.metadata.uid}");
    let event = serde_json::json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "reason": "SuccessfulCreate",
        "message": "Created pod: work-0", "type": "Normal", "count": 1,
        "involvedObject": {
            "apiVersion": "batch/v1", "kind": "Job", "name": "work", "namespace": "default", "uid": uid,
        },
    });
    kubectl.give(&event.to_string(), "create -f -");
    let described = kubectl.run("describe job work");
    let words: Vec<&str> = described.split_whitespace().collect();
    for expected in [["Name:", "work"], ["Parallelism:", "2"], ["Completions:", "3"]] {
        assert!(words.windows(2).any(|pair| pair == expected), "{expected:?}:\n{described}");
    }
    assert!(described.contains("SuccessfulCreate"), "{described}");
    assert!(kubectl.run("get events").contains("SuccessfulCreate"));
    assert!(kubectl.run("events --for=job/work").contains("SuccessfulCreate"));
}

#[test]
fn an_object_is_patched_by_each_type_labelled_annotated_and_replaced() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(JOB, "create -f -");
    kubectl.run(r#"patch job work --type=merge -p {"spec":{"parallelism":1}}"#);
    kubectl.run(
        r#"patch job work --type=json -p [{"op":"replace","path":"/spec/backoffLimit","value":2}]"#,
    );
    kubectl
        .run(r#"patch job work --type=strategic -p {"metadata":{"finalizers":["example.com/a"]}}"#);
    let job = kubectl.json("get job work");
    assert_eq!((&job["spec"]["parallelism"], &job["spec"]["backoffLimit"]), (&1.into(), &2.into()));
    assert_eq!(job["metadata"]["finalizers"][0], "example.com/a");
    kubectl.run("label job work tier=batch");
    kubectl.run("annotate job work note=hello");
    assert_eq!(kubectl.run("get jobs -l tier=batch -o name"), "job.batch/work\n");
    assert_eq!(kubectl.run("get jobs -l tier!=batch -o name"), "");
    kubectl.run("label job work tier-");
    let printed = kubectl.run("get job work -o yaml");
    let changed = printed.replace("parallelism: 1", "parallelism: 3");
    assert_ne!(printed, changed);
    assert_eq!(kubectl.give(&changed, "replace -f -"), "job.batch/work replaced\n");
    assert_eq!(kubectl.run("get job work -o jsonpath={.spec.parallelism}"), "3");
    // What was read before somebody else wrote is refused.
    let stale = kubectl.fail(&changed, "replace -f -");
    assert!(stale.contains("the object has been modified"), "{stale}");
}

#[test]
fn edit_opens_an_editor_and_stores_what_it_leaves() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.run("create configmap settings --from-literal=size=small");
    let mut command = kubectl.command("edit configmap settings");
    let output = command.env("KUBE_EDITOR", "sed -i s/small/large/").output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(kubectl.run("get configmap settings -o jsonpath={.data.size}"), "large");
}

#[test]
fn apply_creates_changes_and_leaves_alone() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    assert_eq!(kubectl.give(JOB, "apply -f -"), "job.batch/work created\n");
    assert_eq!(kubectl.give(JOB, "apply -f -"), "job.batch/work unchanged\n");
    let changed = JOB.replace("parallelism: 2", "parallelism: 1");
    assert_eq!(kubectl.give(&changed, "apply -f -"), "job.batch/work configured\n");
    assert_eq!(kubectl.run("get job work -o jsonpath={.spec.parallelism}"), "1");
    let refused = kubectl.fail(&JOB.replace("Indexed", "Sorted"), "apply -f -");
    assert!(refused.contains("completionMode"), "{refused}");
}

#[test]
fn what_is_wrong_is_said_in_kubernetes_words() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    let unknown = kubectl.fail(&JOB.replace("parallelism", "paralelism"), "create -f -");
    assert!(unknown.contains("unknown field \"spec.paralelism\""), "{unknown}");
    let invalid =
        kubectl.fail(&JOB.replace("restartPolicy: Never", "restartPolicy: Always"), "create -f -");
    assert!(invalid.contains("spec.template.spec.restartPolicy"), "{invalid}");
    let missing = kubectl.fail("", "get job nothing");
    assert_eq!(missing, "Error from server (NotFound): jobs.batch \"nothing\" not found\n");
    kubectl.give(JOB, "create -f -");
    let twice = kubectl.fail(JOB, "create -f -");
    assert!(twice.contains("(AlreadyExists)"), "{twice}");
    let nowhere = kubectl.fail(JOB, "create -n nowhere -f -");
    assert!(nowhere.contains("namespaces \"nowhere\" not found"), "{nowhere}");
    let unserved = kubectl.fail("", "get deployments");
    assert!(unserved.contains("the server doesn't have a resource type"), "{unserved}");
}

#[test]
fn delete_goes_with_each_cascade() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    for (cascade, stays) in [("background", false), ("foreground", false), ("orphan", true)] {
        kubectl.give(JOB, "create -f -");
        kubectl.run("wait --for=jsonpath={.status.active}=2 job/work --timeout=60s");
        let deleted = kubectl.run(&format!("delete job work --cascade={cascade} --timeout=60s"));
        // Newer ones say where from.
        assert!(deleted.starts_with("job.batch \"work\" deleted"), "{deleted}");
        if stays {
            let pods = kubectl.json("get pods -l job-name=work -o json");
            let pods = pods["items"].as_array().expect("a list");
            assert_eq!(pods.len(), 2, "{pods:?}");
            assert!(
                pods.iter().all(|pod| pod["metadata"]["ownerReferences"].is_null()),
                "{pods:?}"
            );
        } else {
            kubectl.run("wait --for=delete pod -l job-name=work --timeout=60s");
        }
    }
}

#[test]
fn a_job_runs_to_its_end_when_somebody_plays_the_node() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(&JOB.replace("completions: 3", "completions: 2"), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.active}=2 job/work --timeout=60s");
    let pods = kubectl.run("get pods -l job-name=work -o name");
    for pod in pods.lines() {
        let succeeded = r#"{"status":{"phase":"Succeeded"}}"#;
        kubectl.run(&format!("patch {pod} --subresource=status --type=merge -p {succeeded}"));
    }
    kubectl.run("wait --for=condition=complete job/work --timeout=60s");
    let job = kubectl.json("get job work -o json");
    assert_eq!(job["status"]["succeeded"], 2, "{job}");
    assert_eq!(job["status"]["completedIndexes"], "0,1", "{job}");
    let finalizers = "get pods -l job-name=work -o jsonpath={.items[*].metadata.finalizers}";
    assert_eq!(kubectl.run(finalizers), "");
    let metrics = kubectl.run("get --raw /metrics");
    let finished = "job_controller_jobs_finished_total{completion_mode=\"Indexed\"";
    assert!(metrics.lines().any(|line| line.starts_with(finished)), "{metrics}");
    assert!(metrics.contains("apiserver_request_total"), "{metrics}");
    assert_eq!(metrics.matches("# EOF").count(), 1, "{metrics}");
}

#[test]
fn wait_waits_for_what_will_be() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(JOB, "create -f -");
    let mut waiting = kubectl
        .command("wait --for=jsonpath={.spec.suspend}=true job/work --timeout=60s")
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    kubectl.run(r#"patch job work -p {"spec":{"suspend":true}}"#);
    assert!(waiting.wait().expect("it ends").success());
    let late = kubectl.fail("", "wait --for=condition=complete job/work --timeout=1s");
    assert!(late.contains("timed out"), "{late}");
}

#[test]
fn a_watch_shows_changes_as_they_happen() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.give(JOB, "create -f -");
    let mut watching = kubectl
        .command("get jobs -w --output-watch-events")
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("it is piped")).lines();
    let mut next = || {
        let line = lines.next().expect("another line").expect("text");
        let words: Vec<String> = line.split_whitespace().take(3).map(str::to_owned).collect();
        words.join(" ")
    };
    assert_eq!(next(), "EVENT NAME STATUS");
    assert_eq!(next(), "ADDED work Running");
    kubectl.run(r#"patch job work -p {"spec":{"suspend":true}}"#);
    assert_eq!(next(), "MODIFIED work Running");
    kubectl.run("delete job work --cascade=background");
    let last = loop {
        let line = next();
        if line.starts_with("DELETED") {
            break line;
        }
    };
    assert!(last.starts_with("DELETED work"), "{last}");
    watching.kill().expect("it runs");
    watching.wait().expect("it has ended");
}

#[test]
fn a_namespace_has_what_clients_wait_for_and_is_emptied_when_it_goes() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.run("create namespace team");
    kubectl.run("wait --for=create serviceaccount/default -n team --timeout=60s");
    kubectl.run("wait --for=create configmap/kube-root-ca.crt -n team --timeout=60s");
    kubectl.give(JOB, "create -n team -f -");
    kubectl.run("create secret generic keys -n team --from-literal=k=v");
    kubectl.run("delete namespace team --timeout=60s");
    assert!(kubectl.fail("", "get namespace team").contains("NotFound"));
    kubectl.run("create namespace team");
    assert_eq!(kubectl.run("get jobs -n team -o name"), "");
    let kept = kubectl.fail("", "delete namespace default");
    assert!(kept.contains("this namespace may not be deleted"), "{kept}");
}

#[test]
fn the_contexts_of_the_kubeconfig_may_do_what_their_role_says() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    kubectl.run("create secret generic keys --from-literal=k=v");
    kubectl.give(JOB, "--context=stint-edit create -f -");
    let status = kubectl.fail(
        "",
        r#"--context=stint-edit patch job work --subresource=status --type=merge -p {"status":{"active":1}}"#,
    );
    assert!(status.contains("jobs/status") && status.contains("Forbidden"), "{status}");
    assert_eq!(kubectl.run("--context=stint-view get jobs -o name"), "job.batch/work\n");
    let secrets = kubectl.fail("", "--context=stint-view get secrets");
    assert!(secrets.contains("Forbidden"), "{secrets}");
    let written = kubectl.fail("", "--context=stint-view delete job work");
    assert!(written.contains("Forbidden"), "{written}");
}

#[test]
fn an_admin_may_ask_as_somebody_else() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    let stranger = kubectl.fail("", "get pods --as=bob");
    let expected = "User \"bob\" cannot list resource \"pods\"";
    assert!(stranger.contains(expected), "{stranger}");
    kubectl.fail("", "auth can-i create jobs --as=bob");
    let rules = kubectl.run("auth can-i --list --as=bob");
    assert!(rules.contains("selfsubjectaccessreviews") && !rules.contains("*.*"), "{rules}");
    assert_eq!(kubectl.run("auth can-i get jobs --as=view"), "yes\n");
    assert_eq!(kubectl.run("auth can-i create jobs --as=bob --as-group=stint:edit"), "yes\n");
    let status = "auth can-i update jobs --subresource=status --as=bob --as-group=stint:edit";
    kubectl.fail("", status);
    assert!(kubectl.run("auth whoami --as=bob").contains("bob"));
    let refused = kubectl.fail("", "--context=stint-edit get pods --as=admin");
    assert!(refused.contains("User \"edit\" cannot impersonate resource \"users\""), "{refused}");
}

#[test]
fn what_may_surprise_is_warned_of() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    let twice =
        "        image: busybox\n        env: [{name: A, value: one}, {name: A, value: two}]\n";
    let job = JOB.replace("        image: busybox\n", twice);
    let said = text(&kubectl.output(&job, "create -f -").stderr);
    let expected =
        "Warning: spec.template.spec.containers[0].env[1]: hides previous definition of \"A\"";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn kubectl_finds_out_what_there_is() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    assert!(kubectl.run("version").contains("Server Version: v1.36.3+stint"));
    let resources = kubectl.run("api-resources --no-headers -o name");
    for expected in
        ["jobs.batch", "pods", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"]
    {
        assert!(resources.lines().any(|line| line == expected), "{expected}:\n{resources}");
    }
    assert!(kubectl.run("api-versions").contains("batch/v1"));
    assert_eq!(kubectl.run("get --raw /readyz"), "ok");
    assert!(kubectl.run("get --raw /metrics").contains("apiserver_request_total"));
    kubectl.give(POD, "create -f -");
    assert!(kubectl.run("get pods -o wide").contains("<none>"));
    assert!(kubectl.run("describe pod alone").contains("Status:"));
    kubectl.run("create service clusterip web --tcp=80:80");
    assert!(kubectl.run("get service web").contains("10.96."));
    kubectl.run("delete pod alone --timeout=60s");
}
