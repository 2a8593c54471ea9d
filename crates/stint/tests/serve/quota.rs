//! Quotas and limits with kubectl, the real one: made, looked at, and a Job that lives within them.

use crate::kit::{Kubectl, Server};

const LIMITS: &str = "\
apiVersion: v1
kind: LimitRange
metadata:
  name: limits
spec:
  limits:
  - type: Container
    default: {cpu: 200m}
    defaultRequest: {cpu: 100m}
    max: {cpu: '2'}
";

const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: work
spec:
  completions: 6
  parallelism: 6
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, exit 0]
";

#[test]
fn a_quota_is_made_and_described() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    let made = kubectl.run(
        "create quota small --hard=pods=2,requests.cpu=1,limits.memory=1Gi,count/jobs.batch=3 \
         --scopes=NotTerminating",
    );
    assert_eq!(made, "resourcequota/small created\n");
    assert!(kubectl.fail("", "create quota wrong --hard=jobs=2").contains("standard resource"));
    kubectl.run("create quota plain --hard=pods=2,configmaps=7");
    assert_eq!(kubectl.give(LIMITS, "create -f -"), "limitrange/limits created\n");
    for name in ["quota/small", "quota/plain"] {
        kubectl.run(&format!("wait --for=jsonpath={{.status.used.pods}}=0 {name} --timeout=60s"));
    }
    let table = kubectl.run("get quota small");
    assert!(table.starts_with("NAME    REQUEST"), "{table}");
    for part in ["count/jobs.batch: 0/3", "pods: 0/2, requests.cpu: 0/1", "limits.memory: 0/1Gi"] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    let told = kubectl.run("describe resourcequota small");
    for part in ["Scopes:", "NotTerminating", "limits.memory"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    assert!(kubectl.run("get limits").starts_with("NAME     CREATED AT\nlimits "));
    let told = kubectl.run("describe limitranges limits");
    assert!(told.contains("Container") && told.contains("200m"), "{told}");
    let told = kubectl.run("describe namespace default");
    for part in ["Resource Quotas", "plain", "configmaps", "Resource Limits", "100m"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    for kind in ["resourcequota.spec.scopeSelector", "limitrange.spec.limits"] {
        assert!(kubectl.run(&format!("explain {kind}")).contains("FIELDS:"), "{kind}");
    }
    kubectl.run("delete quota,limits --all");
}

#[test]
fn a_job_runs_within_its_quota() {
    let server = Server::with_node();
    let kubectl = Kubectl::new(&server);
    kubectl.give(LIMITS, "apply -f -");
    kubectl.run("create quota small --hard=requests.cpu=200m");
    kubectl.run("wait --for=jsonpath={.status.used.requests\\.cpu}=0 quota/small --timeout=60s");
    kubectl.give(JOB, "create -f -");
    kubectl.run("wait --for=condition=complete job/work --timeout=120s");
    let told = kubectl.run("describe job work");
    assert!(told.contains("FailedCreate") && told.contains("exceeded quota: small"), "{told}");
    let asked =
        kubectl.run("get pods -o jsonpath={.items[*].spec.containers[0].resources.limits.cpu}");
    assert_eq!(asked, "200m 200m 200m 200m 200m 200m");
    kubectl.run("wait --for=jsonpath={.status.used.requests\\.cpu}=0 quota/small --timeout=60s");
}
