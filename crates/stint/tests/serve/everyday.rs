//! A day with kubectl at -v=8: every command as it is told to be used, and no request of any of them
//! fails, is repeated, or asks for something that the server does not have.

use crate::kit::{Kubectl, Server, text};

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: work
spec:
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, echo I am $JOB_COMPLETION_INDEX]
";

/// kubectl at -v=8, which tells of each request and its answer.
struct Talkative(Kubectl);

impl Talkative {
    /// Runs it, and expects this exit code and these answers beside those that are fine: what it prints.
    fn run(&self, input: &str, arguments: &str, code: i32, unusual: &[u16]) -> String {
        let mut command = self.0.command(&format!("-v=8 {arguments}"));
        command.env("KUBE_EDITOR", "sed -i s/true/false/");
        let output = self.0.finish(command, input);
        let (out, told) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "kubectl {arguments}\n{out}\n{told}");
        let (requests, answers) = (requests(&told), answers(&told));
        // One that got no answer was broken off.
        assert_eq!(requests, answers.len(), "kubectl {arguments}\n{told}");
        let failed: Vec<u16> = answers.into_iter().filter(|answer| *answer >= 300).collect();
        assert_eq!(failed, unusual, "kubectl {arguments}\n{told}");
        // With -o name it does not ask for a table, and says that it got none.
        let told = told.to_lowercase().replace("falling back to hardcoded types", "");
        for word in ["retry", "retries", "fallback", "falling back"] {
            assert!(!told.contains(word), "kubectl {arguments}: {word}\n{told}");
        }
        out
    }

    /// Runs it where all goes well.
    fn well(&self, arguments: &str) -> String {
        self.run("", arguments, 0, &[])
    }
}

/// How many requests it tells of, as `"Request" verb="GET"` or, formerly, as `GET https://`.
fn requests(told: &str) -> usize {
    let is_request = |line: &&str| {
        line.contains("\"Request\" verb=")
            || line.contains("] GET https://")
            || line.contains("] POST https://")
            || line.contains("] PUT https://")
            || line.contains("] PATCH https://")
            || line.contains("] DELETE https://")
    };
    told.lines().filter(is_request).count()
}

/// The codes of the answers, told as `status="200 OK"` or, formerly, as `Response Status: 200 OK`.
fn answers(told: &str) -> Vec<u16> {
    let code = |line: &str| {
        let (_, rest) = line
            .split_once("\"Response\" status=\"")
            .or_else(|| line.split_once("] Response Status: "))?;
        rest.get(..3)?.parse().ok()
    };
    told.lines().filter_map(code).collect()
}

#[test]
fn no_command_is_refused_or_asks_again() {
    let server = Server::with_node();
    let kubectl = Talkative(Kubectl::new(&server));
    let created = kubectl.run(JOB, "create -f -", 0, &[]);
    assert_eq!(created, "job.batch/work created\n");
    kubectl.well("wait --for=condition=complete job/work --timeout=60s");
    assert!(kubectl.well("describe job work").contains("Completed"));
    assert!(kubectl.well("describe pods -l job-name=work").contains("Succeeded"));
    for form in ["wide", "json", "yaml", "name", "jsonpath={.items[*].metadata.name}"] {
        assert!(kubectl.well(&format!("get jobs -o {form}")).contains("work"), "{form}");
    }
    kubectl.well("get jobs -o custom-columns=NAME:.metadata.name");
    let owners = kubectl.well("get job work -o yaml --show-managed-fields");
    assert!(owners.contains("manager: kubectl") && owners.contains("f:completionMode"), "{owners}");
    assert!(!kubectl.well("get job work -o yaml").contains("managedFields"));
    let logs = kubectl.well("logs -l job-name=work --prefix --tail=-1");
    let mut lines: Vec<&str> =
        logs.lines().filter_map(|line| Some(line.split_once("] ")?.1)).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["I am 0", "I am 1"], "{logs}");
    assert!(kubectl.well("explain job.spec.podFailurePolicy --recursive").contains("onExitCodes"));
    assert_eq!(kubectl.well("auth can-i create jobs"), "yes\n");
    assert!(kubectl.well("api-resources").contains("batch/v1"));

    // Whether it is gone is told by a look that finds nothing.
    kubectl.run("", "delete job work --timeout=60s", 0, &[404]);
    kubectl.well("create job hello --image=busybox -- echo hello");
    kubectl.well("wait --for=condition=complete job/hello --timeout=60s");
    assert_eq!(kubectl.well("logs job/hello"), "hello\n");
    kubectl.well("create quota small --hard=pods=9,requests.cpu=2,count/jobs.batch=3");
    assert!(kubectl.well("describe quota small").contains("count/jobs.batch"));
    kubectl.well("create configmap settings --from-literal=size=small");
    assert_eq!(kubectl.well("get configmap settings -o jsonpath={.data.size}"), "small");
}

#[test]
fn both_ways_to_apply_and_what_they_would_change() {
    let server = Server::in_memory();
    let kubectl = Talkative(Kubectl::new(&server));
    let suspended = JOB.replace("  completions: 2\n", "  completions: 2\n  suspend: true\n");
    let wider = suspended.replace("suspend: true\n", "suspend: true\n  parallelism: 2\n");
    assert_ne!(suspended, wider);
    // The client looks first whether there is one.
    let said = kubectl.run(&suspended, "apply -f -", 0, &[404]);
    assert_eq!(said, "job.batch/work created\n");
    assert_eq!(kubectl.run(&suspended, "apply -f -", 0, &[]), "job.batch/work unchanged\n");
    assert_eq!(kubectl.run(&suspended, "diff -f -", 0, &[]), "");
    // A difference is told by the exit code, too.
    let changes = kubectl.run(&wider, "diff -f -", 1, &[]);
    assert!(changes.contains("+  parallelism: 2"), "{changes}");
    assert_eq!(kubectl.run(&wider, "apply -f -", 0, &[]), "job.batch/work configured\n");

    let by_server = "apply --server-side -f -";
    let narrower = wider.replace("parallelism: 2", "parallelism: 1");
    let refused = kubectl.0.fail(&narrower, &format!("{by_server} --field-manager=other"));
    assert!(refused.contains("conflict") && refused.contains(".spec.parallelism"), "{refused}");
    let forced = format!("{by_server} --field-manager=other --force-conflicts");
    let said = kubectl.run(&narrower, &forced, 0, &[]);
    assert_eq!(said, "job.batch/work serverside-applied\n");
    assert_eq!(kubectl.well("get job work -o jsonpath={.spec.parallelism}"), "1");
    let compare = "diff --server-side -f - --field-manager=other";
    assert_eq!(kubectl.run(&narrower, compare, 0, &[]), "");
    let changes = kubectl.run(&wider, compare, 1, &[]);
    assert!(changes.contains("+  parallelism: 2"), "{changes}");

    kubectl.well("edit job work");
    assert_eq!(kubectl.well("get job work -o jsonpath={.spec.suspend}"), "false");
}

#[test]
fn each_cascade_without_a_repeated_request() {
    let server = Server::in_memory();
    let kubectl = Talkative(Kubectl::new(&server));
    for cascade in ["background", "foreground", "orphan"] {
        kubectl.run(JOB, "create -f -", 0, &[]);
        kubectl.well("wait --for=jsonpath={.status.active}=1 job/work --timeout=60s");
        let arguments = format!("delete job work --cascade={cascade} --wait=false");
        kubectl.well(&arguments);
        // It may be gone before it is asked for, or go meanwhile.
        kubectl.0.run("wait --for=delete job/work --timeout=60s");
    }
}
