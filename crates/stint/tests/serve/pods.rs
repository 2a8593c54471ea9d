//! Jobs whose Pods really run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::kit::home::as_everybody;
use crate::kit::{Kubectl, Server, example};

/// A Job of one container that runs a script; more of its spec as YAML lines.
fn job(name: &str, more: &str, script: &str) -> String {
    let script = serde_json::to_string(script).expect("text is JSON");
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n{more}  template:\n    \
         spec:\n      restartPolicy: Never\n      containers:\n      - name: main\n        \
         image: busybox\n        command: [sh, -c, {script}]\n"
    )
}

fn condition<'a>(job: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = job["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// The Job of the blog on backoffLimitPerIndex.
const BLOG: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: job-backoff-limit-per-index-execute-all
spec:
  completions: 8
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: example
        image: python
        command:
        - python3
        - -c
        - |
          import os, sys, time
          id = int(os.environ.get("JOB_COMPLETION_INDEX"))
          if id == 1 or id == 2:
            sys.exit(1)
          time.sleep(1)
"#;

#[test]
fn the_walk_through_of_the_blog_shows_what_the_blog_shows() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let name = "job-backoff-limit-per-index-execute-all";
        kubectl.give(BLOG, "create -f -");
        kubectl.run(&format!("wait --for=condition=failed job/{name} --timeout=120s"));

        let table = kubectl.run(&format!("get pods -l job-name={name}"));
        let rows: Vec<Vec<&str>> =
            table.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], "{table}");
        let shown: Vec<String> = rows[1..]
            .iter()
            .map(|row| {
                let (of_index, random) = row[0].rsplit_once('-').expect("a name of a Pod");
                assert_eq!(random.len(), 5, "{table}");
                format!("{of_index} {}", row[1..row.len() - 1].join(" "))
            })
            .collect();
        let expected = [0, 1, 1, 2, 2, 3, 4, 5, 6, 7].map(|index| {
            let status = if matches!(index, 1 | 2) { "Error" } else { "Completed" };
            format!("{name}-{index} 0/1 {status} 0")
        });
        assert_eq!(shown, expected, "{table}");

        let yaml = kubectl.run(&format!("get jobs {name} -o yaml"));
        let (_, status) = yaml.rsplit_once("\nstatus:\n").expect("it ends with a status");
        for line in [
            "completedIndexes: 0,3-7",
            "failedIndexes: 1,2",
            "succeeded: 6",
            "failed: 4",
            "message: Job has failed indexes",
            "reason: FailedIndexes",
            "type: Failed",
        ] {
            assert!(status.lines().any(|it| it.trim() == line), "{line}: {status}");
        }
        let kept = kubectl.json(&format!("get pods -l job-name={name}"));
        let kept = kept["items"].as_array().expect("a list");
        assert!(kept.iter().all(|pod| pod["metadata"]["finalizers"].is_null()), "{kept:?}");
    });
}

#[test]
fn logs_are_followed_to_the_end_of_a_pod() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let gate = home.path("gate");
        let script = format!(
            "echo first; while [ ! -e {} ]; do sleep 0.05; done; echo second; echo third >&2",
            gate.display()
        );
        kubectl.give(&job("talk", "", &script), "create -f -");
        kubectl.run("wait --for=jsonpath={.status.ready}=1 job/talk --timeout=60s");
        let mut following = kubectl
            .command("logs -f job/talk")
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let mut lines = BufReader::new(following.stdout.take().expect("it is piped")).lines();
        let mut next = || lines.next().map(|line| line.expect("text"));
        assert_eq!(next().as_deref(), Some("first"));
        std::fs::write(&gate, "").expect("it can be written");
        let mut rest = vec![next().expect("more"), next().expect("more")];
        rest.sort();
        assert_eq!(rest, ["second", "third"]);
        assert_eq!(next(), None);
        assert!(following.wait().expect("it ends").success());
        kubectl.run("wait --for=condition=complete job/talk --timeout=60s");
        assert_eq!(kubectl.run("logs job/talk --tail=1").lines().count(), 1);
    });
}

#[test]
fn a_job_that_is_deleted_while_it_runs_leaves_nothing() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let mark = home.path("mark");
        // It says that it was asked to end.
        let script =
            format!("trap 'echo bye > {}; exit 0' TERM; sleep 1000 & wait", mark.display());
        kubectl.give(&job("long", "", &script), "create -f -");
        kubectl.run("wait --for=jsonpath={.status.ready}=1 job/long --timeout=60s");
        kubectl.run("delete job long --cascade=foreground --timeout=60s");
        assert_eq!(kubectl.run("get pods -o name"), "");
        assert_eq!(std::fs::read_to_string(&mark).expect("it was asked to end"), "bye\n");
    });
}

#[test]
fn pods_have_their_volumes_names_and_environment() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        kubectl.run("create configmap words --from-literal=greeting=hello");
        let manifest = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: furnished
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - name: before
        image: busybox
        command: [sh, -c, 'echo made > /shared/file']
        volumeMounts: [{name: shared, mountPath: /shared}]
      containers:
      - name: main
        image: busybox
        env:
        - {name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: WORD, valueFrom: {configMapKeyRef: {name: words, key: greeting}}}
        command: [sh, -c]
        args: ['echo $(WORD) \"$(cat /shared/file)\" \"$(cat /etc/words/greeting)\" $(hostname)']
        volumeMounts:
        - {name: shared, mountPath: /shared}
        - {name: words, mountPath: /etc/words}
      volumes:
      - {name: shared, emptyDir: {}}
      - {name: words, configMap: {name: words}}
";
        kubectl.give(manifest, "create -f -");
        kubectl.run("wait --for=condition=complete job/furnished --timeout=60s");
        for index in 0..2 {
            let label = format!("batch.kubernetes.io/job-completion-index={index}");
            let said = kubectl.run(&format!("logs -l {label} -c main"));
            assert_eq!(said, format!("hello made hello furnished-{index}\n"));
        }
        assert!(!std::path::Path::new("/shared").exists(), "nothing is made on the machine");
    });
}

#[test]
fn pods_of_a_server_that_was_killed_are_disrupted_and_replaced() {
    pods_are_disrupted_and_replaced(Server::kill);
}

#[test]
fn pods_of_a_server_that_was_stopped_are_disrupted_and_replaced() {
    pods_are_disrupted_and_replaced(|server| assert!(server.stop().success()));
}

/// A Pod runs when a server ends, and the Job goes on with the next server on the same folder.
fn pods_are_disrupted_and_replaced(end: impl FnOnce(Server)) {
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::in_folder(data.path());
    let kubectl = Kubectl::new(&server);
    let gate = data.path().join("gate");
    let more = "  podFailurePolicy:\n    rules:\n    - action: Ignore\n      onPodConditions: \
                [{type: DisruptionTarget}]\n  backoffLimit: 0\n";
    let script = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    kubectl.give(&job("steady", more, &script), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=1 job/steady --timeout=60s");
    let first = kubectl.run("get pods -o name");
    end(server);
    let server = Server::in_folder(data.path());
    let kubectl = Kubectl::new(&server);
    std::fs::write(&gate, "").expect("it can be written");
    kubectl.run("wait --for=condition=complete job/steady --timeout=60s");
    let disrupted = kubectl.json(&format!("get {} -o json", first.trim()));
    assert_eq!(disrupted["status"]["phase"], "Failed", "{disrupted}");
    assert!(condition(&disrupted, "DisruptionTarget").is_some(), "{disrupted}");
    let job = kubectl.json("get job steady -o json");
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
    assert!(server.stop().success());
}

#[test]
fn a_pod_that_is_being_deleted_is_replaced_when_it_has_ended_as_the_example_says() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    kubectl.run(&format!("create -f {}", example("pod-replacement.yaml")));
    kubectl.run("wait --for=jsonpath={.status.ready}=2 job/pod-replacement --timeout=60s");
    // It is looked at from before the deletion on: nothing is missed, however slow this is.
    let columns = "{.status.active},{.status.terminating},{.status.failed},{.status.succeeded}";
    let mut watching = kubectl
        .command(&format!("get job pod-replacement --watch -o jsonpath={columns}{{\"\\n\"}}"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("it is piped")).lines();
    let mut seen = vec![lines.next().expect("it is there").expect("text")];
    kubectl.run(
        "delete pod --wait=false -l \
         job-name=pod-replacement,batch.kubernetes.io/job-completion-index=0",
    );
    while !seen.last().is_some_and(|line| line.ends_with(",2")) {
        seen.push(lines.next().expect("it goes on").expect("text"));
    }
    watching.kill().expect("it runs");
    watching.wait().expect("it has ended");
    let columns: Vec<Vec<&str>> = seen.iter().map(|line| line.split(',').collect()).collect();
    let terminating: Vec<_> = columns.iter().filter(|it| it[1] == "1").collect();
    assert!(!terminating.is_empty(), "{seen:?}");
    // As long as it takes to clean up it is neither counted nor replaced.
    assert!(terminating.iter().all(|it| it[0] != "2" && it[2].is_empty()), "{seen:?}");
    assert!(columns.last().is_some_and(|it| it[2] == "1"), "{seen:?}");
    kubectl.run("wait --for=condition=complete job/pod-replacement --timeout=60s");
}

/// Two ports that nobody listens on, at whatever address.
fn free_ports() -> [u16; 2] {
    let listen = || std::net::TcpListener::bind("0.0.0.0:0").expect("there are free ports");
    let both = [listen(), listen()];
    both.map(|it| it.local_addr().expect("it has an address").port())
}

#[test]
fn probes_and_hooks_ask_a_pod_at_its_own_address() {
    as_everybody(|home| {
        let (_server, kubectl) = home.server();
        let gate = home.path("gate");
        // Two Pods have the same ports, each at its own address. Nobody else may have them at all.
        let [web, alive] = free_ports();
        let script = format!(
            r#"
import http.server, os, socket, threading, time
address = os.environ["POD_IP"]
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked for", self.path, flush=True)
        self.send_response(200 if self.path in ("/ready", "/bye") else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
alive = socket.create_server((address, {alive}))
server = http.server.ThreadingHTTPServer((address, {web}), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not os.path.exists("{gate}"):
    time.sleep(0.05)
alive.close()
time.sleep(1000)
"#,
            gate = gate.display()
        );
        let script = serde_json::to_string(&script).expect("text is JSON");
        let manifest = format!(
            "\
apiVersion: batch/v1
kind: Job
metadata: {{name: asked}}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: python
        command: [python3, -c, {script}]
        env: [{{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}]
        ports: [{{name: web, containerPort: {web}}}]
        readinessProbe: {{httpGet: {{path: ready, port: web}}, periodSeconds: 1}}
        startupProbe: {{tcpSocket: {{port: {alive}}}, periodSeconds: 1, failureThreshold: 100}}
        livenessProbe: {{tcpSocket: {{port: {alive}}}, periodSeconds: 1, timeoutSeconds: 30}}
        lifecycle:
          postStart: {{sleep: {{seconds: 1}}}}
          preStop: {{httpGet: {{path: /bye, port: web}}}}
"
        );
        kubectl.give(&manifest, "create -f -");
        kubectl.run("wait --for=jsonpath={.status.ready}=2 job/asked --timeout=60s");
        std::fs::write(&gate, "").expect("it can be written");
        kubectl.run("wait --for=condition=failed job/asked --timeout=120s");
        let pods = kubectl.json("get pods");
        for pod in pods["items"].as_array().expect("a list") {
            let name = pod["metadata"]["name"].as_str().expect("it has one");
            let said = kubectl.run(&format!("logs {name}"));
            assert!(said.contains("asked for /ready\n"), "{said}");
            assert!(said.contains("asked for /bye\n"), "{said}");
            let address = pod["status"]["podIP"].as_str().expect("it had one");
            let events = kubectl.run(&format!("events --for=pod/{name}"));
            let why = format!("Liveness probe failed: dial tcp {address}:{alive}");
            assert!(events.contains(&why), "{why}: {events}");
        }
        assert_eq!(pods["items"].as_array().map(Vec::len), Some(2), "{pods}");
    });
}

#[test]
fn a_pod_that_is_evicted_is_no_failure_of_its_own() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    let more = "  podFailurePolicy:\n    rules:\n    - action: Ignore\n      onPodConditions: \
                [{type: DisruptionTarget}]\n  backoffLimit: 0\n";
    let gate = server.folder().join("gate");
    let script = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    kubectl.give(&job("moved", more, &script), "create -f -");
    kubectl.run("wait --for=jsonpath={.status.ready}=1 job/moved --timeout=60s");
    let pod = kubectl.run("get pods -l job-name=moved -o jsonpath={.items[0].metadata.name}");
    let eviction = format!(
        "{{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{{\"name\":\"{pod}\"}}}}"
    );
    let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
    kubectl.give(&eviction, &format!("create --raw {path} -f -"));
    kubectl.run(&format!("wait --for=delete pod/{pod} --timeout=60s"));
    std::fs::write(&gate, "").expect("it can be written");
    kubectl.run("wait --for=condition=complete job/moved --timeout=60s");
    let job = kubectl.json("get job moved -o json");
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
}
