//! What `deploy/` installs, at work: each overlay and the Helm chart with several values, with its own
//! roles, service account, arguments, environment and configuration, as a Pod would have them. The
//! program finds the API server and its namespace as it does in a Pod, by the files of a service
//! account and by the environment; for that it gets a `/var/run` of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use stint_api::names::managed_by;
use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate};
use tokio::process::Command;

use crate::attempt::attempt;
use crate::audit::{self, Call};
use crate::cluster::{Cluster, ClusterError};
use crate::manifests::kubectl;
use crate::process::Process;
use crate::program::{self, Program};
use crate::report::Report;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};
use crate::{bootstrap, deployed};

/// Where the chart is installed.
const NAMESPACE: &str = "stint-system";

const OVERLAYS: [&str; 3] = ["managed-by", "replace-builtin", "namespaced"];

/// The values that the chart is installed with.
const VALUES: [(&str, &[&str]); 3] = [
    ("plain", &[]),
    ("replace-builtin", &["replaceBuiltin=true"]),
    ("namespaces", &["namespaces={default,kube-system}"]),
];

/// Runs what comes after a folder with the files of a service account, which it finds where a Pod has
/// them.
const IN_A_POD: &str = "\
    run=$(readlink -f /var/run) && mount -t tmpfs none \"$run\" && \
    mkdir -p \"$run/secrets/kubernetes.io\" && cp -r \"$1\" \"$run/secrets/kubernetes.io/serviceaccount\" && \
    shift && exec env -i \"$@\"";

/// How many Pods its Job has.
const PODS: i32 = 3;

/// An overlay and a release of the chart in one cluster.
const BESIDE: &str = "installed/beside";

/// Whose Jobs that release runs.
const OTHER: &str = "example.com/batch";

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    let overlays = OVERLAYS.iter().map(|name| format!("installed/kustomize-{name}"));
    let charts = VALUES.iter().map(|(name, _)| format!("installed/helm-{name}"));
    overlays.chain(charts).chain([BESIDE.to_owned()]).collect()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    if let Err(why) = can_unshare().await {
        for name in names().iter().filter(|name| suite.wants(name)) {
            report.tell(name, Duration::ZERO, Err(why.clone()));
        }
        return Ok(());
    }
    let stint = program::path(&suite.build).await?;
    let stint = stint.canonicalize().unwrap_or(stint);
    let driver = Driver::new(|_| Fate::succeeds());
    let theatre = Theatre::open(suite.options.clone(), &Player::Nobody, driver).await?;
    let before = report.failed();
    for name in names().iter().filter(|name| suite.wants(name)) {
        let (took, result) = match &**name {
            BESIDE => attempt(work_beside(&theatre, &stint)).await,
            _ => attempt(work(&theatre, &stint, name)).await,
        };
        report.tell(name, took, result);
    }
    suite.close([theatre], report.failed() > before);
    Ok(())
}

/// How a process gets mounts of its own. Whoever is root needs no user namespace for that, which
/// containers often do not allow.
fn unshared() -> &'static [&'static str] {
    match fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        true => &["--mount"],
        false => &["--map-root-user", "--mount"],
    }
}

/// Whether a process may have mounts of its own here: a Pod has its token where only it sees it.
async fn can_unshare() -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(unshared()).arg("true").stdin(Stdio::null());
    let why = match command.output().await {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!(
        "a process cannot have mounts of its own here (unshare {}: {why}): run it \
         where user namespaces are allowed, by root with the capability SYS_ADMIN, or after \
         sysctl kernel.unprivileged_userns_clone=1",
        unshared().join(" ")
    ))
}

/// It is installed, leads by its own Lease, runs a Job and ends, and is refused nothing.
async fn work(theatre: &Theatre, stint: &Path, name: &str) {
    let (stage, cluster) = (&theatre.stage, &theatre.cluster);
    let short = name.trim_start_matches("installed/");
    let objects = rendered(cluster, short).await;
    bootstrap::install(&stage.admin, &objects).await.expect("it can be installed");
    let pod = Pod::of(&objects);
    let mut program = pod.start(cluster, stint, short).await;
    stage.until("leads", async |_| program.leads().await).await;
    let (lease_namespace, lease_name) = lease(&objects);
    let leases: Api<Lease> = Api::namespaced(stage.admin.clone(), &lease_namespace);
    let lease = leases.get(&lease_name).await.expect("its Lease is where its rights are");
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    assert!(!holder.is_empty(), "nobody holds {lease_namespace}/{lease_name}");
    let mut spec = json!({"completions": PODS, "parallelism": PODS});
    if !short.contains("replace-builtin") {
        spec["managedBy"] = managed_by::STINT.into();
    }
    stage.create(short, spec).await;
    let job = stage.finish(short).await;
    assert_eq!(end(&job).as_deref(), Some("Complete CompletionsReached"), "{:?}", job.status);
    assert_eq!(counts(&job), (0, PODS, 0), "{:?}", job.status);
    program.process.stop().await;
    let log = program.log();
    assert!(!log.contains("rights are missing"), "{log}");
    assert!(log.contains("the lease is given back"), "{log}");
    check_calls(cluster, &pod.user(), &agent(&log));
    uninstall(&theatre.cluster, &objects, &lease_namespace, &lease_name).await;
    let left = leases.list(&ListParams::default()).await.expect("a list").items;
    let left: Vec<_> = left.iter().filter(|lease| lease.name_any().contains("stint")).collect();
    assert!(left.is_empty(), "{left:?} stays");
}

/// As docs/kubernetes.md says: everything that was installed, and the Lease that stint itself has made.
async fn uninstall(cluster: &Cluster, objects: &[Value], namespace: &str, lease: &str) {
    let gone = ["delete", "--ignore-not-found", "--output=name"];
    kubectl(cluster, &[&gone[..], &["--filename=-"]].concat(), objects).await;
    let namespace = format!("--namespace={namespace}");
    let told =
        kubectl(cluster, &["delete", "lease", lease, &namespace, "--output=name"], &[]).await;
    assert!(told.contains(lease), "{told}");
}

/// An overlay and a release of the chart, in one namespace: each leads by a Lease of its own, runs the
/// Jobs that are its own, and leaves the others alone.
async fn work_beside(theatre: &Theatre, stint: &Path) {
    let (stage, cluster) = (&theatre.stage, &theatre.cluster);
    let version = stage.admin.apiserver_version().await.expect("a version").git_version;
    let overlay = deployed::kustomized("overlays/managed-by").await.expect("it can be rendered");
    let ours = format!("managedBy={OTHER}");
    let release = deployed::chart("stint", NAMESPACE, &version, &[&*ours]).await;
    let release = release.expect("it can be rendered");
    assert_ne!(lease(&overlay), lease(&release), "they take turns");
    let both = [overlay.clone(), release.clone()].concat();
    let named = |object: &Value| {
        let meta = &object["metadata"];
        (object["kind"].to_string(), meta["namespace"].to_string(), meta["name"].to_string())
    };
    let names: BTreeSet<_> = both.iter().map(named).collect();
    assert_eq!(names.len(), both.len(), "one takes the place of something of the other");
    // An overlay was at work in this cluster before, as the same user.
    let before = audit::writes(cluster.folder()).expect("there is an audit log").len();
    let mut running = Vec::new();
    for (name, objects) in [("overlay", &overlay), ("release", &release)] {
        bootstrap::install(&stage.admin, objects).await.expect("it can be installed");
        let pod = Pod::of(objects);
        running.push((name, pod.user(), pod.start(cluster, stint, name).await));
    }
    for (_, _, program) in &running {
        stage.until("leads", async |_| program.leads().await).await;
    }
    for ((name, ..), managed_by) in running.iter().zip([managed_by::STINT, OTHER]) {
        let spec = json!({"completions": PODS, "parallelism": PODS, "managedBy": managed_by});
        stage.create(name, spec).await;
    }
    for (name, ..) in &running {
        let job = stage.finish(name).await;
        assert_eq!(counts(&job), (0, PODS, 0), "{:?}", job.status);
    }
    for (name, user, program) in &mut running {
        program.process.stop().await;
        let calls = audit::writes(cluster.folder()).expect("there is an audit log");
        let calls = calls.iter().skip(before);
        let calls: Vec<&Call> = calls.filter(|call| call.user == *user).collect();
        for call in &calls {
            assert!(call.name.starts_with(&**name), "not its own: {call:?}");
            assert_ne!(call.code, 403, "{call:?}");
        }
        let made = calls.iter().filter(|call| call.what == "create pods").count();
        assert_eq!(made, PODS as usize, "{calls:?}");
    }
    for objects in [&overlay, &release] {
        let (namespace, name) = lease(objects);
        uninstall(cluster, objects, &namespace, &name).await;
    }
}

/// What an overlay or the chart installs. Each release of the chart has a service account of its own.
async fn rendered(cluster: &Cluster, name: &str) -> Vec<Value> {
    if let Some(overlay) = name.strip_prefix("kustomize-") {
        let path = format!("overlays/{overlay}");
        return deployed::kustomized(&path).await.expect("it can be rendered");
    }
    let name = name.trim_start_matches("helm-");
    let (_, values) = VALUES.iter().find(|(known, _)| *known == name).expect("it was named");
    let admin = cluster.admin().await.expect("a client");
    let version = admin.apiserver_version().await.expect("a version").git_version;
    let release = format!("stint-{name}");
    let objects = deployed::chart(&release, NAMESPACE, &version, values).await;
    objects.expect("it can be rendered")
}

/// The one Lease that its rights name.
fn lease(objects: &[Value]) -> (String, String) {
    let is_of_leases = |object: &&Value| object["rules"].to_string().contains("\"leases\"");
    let role = objects.iter().find(is_of_leases).expect("there is a role for the Lease");
    let rules = role["rules"].as_array().expect("it has rules");
    let name = rules.iter().find_map(|rule| rule["resourceNames"][0].as_str());
    let namespace = role["metadata"]["namespace"].as_str();
    let (namespace, name) = (namespace.expect("a namespace"), name.expect("a name"));
    (namespace.to_owned(), name.to_owned())
}

/// How the program must introduce itself, by what it says of itself in its log: before and after what
/// it says of the machine.
fn agent(log: &str) -> (String, String) {
    let line = log.lines().find(|line| line.contains("stint controller starts"));
    let line: Value = serde_json::from_str(line.expect("it has started")).expect("JSON");
    let text = |key: &str| line[key].as_str().expect("it says so").to_owned();
    (format!("stint/{} (", text("version")), format!(") {}", text("commit")))
}

/// Nothing that it has written was refused, and every call says which program it was.
fn check_calls(cluster: &Cluster, user: &str, (first, last): &(String, String)) {
    let calls = audit::calls(cluster.folder()).expect("there is an audit log");
    let calls: Vec<&Call> = calls.iter().filter(|call| call.user == user).collect();
    let what: BTreeSet<&str> = calls.iter().map(|call| &*call.what).collect();
    for expected in ["create pods", "patch pods", "patch jobs/status", "create events"] {
        assert!(what.contains(expected), "{user} did not {expected}: {what:?}");
    }
    for call in calls {
        assert_ne!(call.code, 403, "{call:?}");
        let is_told = call.agent.starts_with(first) && call.agent.ends_with(last);
        assert!(is_told, "not {first}…{last}: {call:?}");
    }
}

/// A Pod of a Deployment.
struct Pod {
    namespace: String,
    account: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// What its ConfigMap has: where it is mounted, and its files.
    mounted: Option<(String, Value)>,
}

impl Pod {
    fn of(objects: &[Value]) -> Self {
        let find = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
        let deployment = find("Deployment").expect("there is a Deployment");
        let spec = &deployment["spec"]["template"]["spec"];
        let container = &spec["containers"][0];
        let namespace = deployment["metadata"]["namespace"].as_str().expect("a namespace");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let variable = |variable: &Value| {
            let value = match &variable["valueFrom"]["fieldRef"]["fieldPath"] {
                Value::Null => text(&variable["value"]),
                path if path == "metadata.namespace" => namespace.to_owned(),
                other => panic!("a Pod has more than {other}"),
            };
            (text(&variable["name"]), value)
        };
        let environment: Vec<(String, String)> =
            container["env"].as_array().into_iter().flatten().map(variable).collect();
        let expand = |argument: &Value| {
            let fill = |text: String, (name, value): &(String, String)| {
                text.replace(&format!("$({name})"), value)
            };
            environment.iter().fold(text(argument), fill)
        };
        let arguments = container["args"].as_array().expect("arguments").iter().map(expand);
        let mounted = find("ConfigMap").map(|map| {
            assert_eq!(spec["volumes"][0]["configMap"]["name"], map["metadata"]["name"]);
            (text(&container["volumeMounts"][0]["mountPath"]), map["data"].clone())
        });
        Pod {
            namespace: namespace.to_owned(),
            account: text(&spec["serviceAccountName"]),
            arguments: arguments.collect(),
            mounted,
            environment,
        }
    }

    /// Whom the API server takes it for.
    fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.account)
    }

    async fn start(&self, cluster: &Cluster, stint: &Path, name: &str) -> Program {
        let folder = cluster.folder().join(format!("pod-{name}"));
        let secrets = folder.join("serviceaccount");
        fs::create_dir_all(&secrets).expect("a folder");
        let authority = fs::read_to_string(cluster.authority_file()).expect("an authority");
        write(&secrets, "ca.crt", &authority);
        write(&secrets, "namespace", &self.namespace);
        // As some write it who do not mount it: with a line break at the end.
        write(&secrets, "token", &format!("{}\n", self.token(cluster).await));
        let script = [unshared(), &["sh", "-c", IN_A_POD, "sh"]].concat();
        let mut all: Vec<String> = script.into_iter().map(str::to_owned).collect();
        all.push(secrets.display().to_string());
        let (host, port) = {
            let address = cluster.url().trim_start_matches("https://");
            address.rsplit_once(':').expect("a port")
        };
        let given = [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port)];
        all.extend(given.iter().map(|(name, value)| format!("{name}={value}")));
        all.extend(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        all.push(stint.display().to_string());
        let config = self.mounted.as_ref().map(|(path, files)| {
            (path, mount(&folder.join("config"), files).display().to_string())
        });
        all.extend(self.arguments.iter().map(|argument| match &config {
            Some((path, here)) => argument.replace(*path, here),
            None => argument.clone(),
        }));
        // The port of a Pod is its own.
        all.push("--listen=127.0.0.1:0".to_owned());
        let log = cluster.folder().join(format!("{name}.log"));
        let process = Process::new(Path::new("unshare"), all, log.clone());
        Program::run(process, log).expect("it can be started")
    }

    /// A token as a Pod gets it.
    async fn token(&self, cluster: &Cluster) -> String {
        let admin = cluster.admin().await.expect("a client");
        let accounts: Api<ServiceAccount> = Api::namespaced(admin, &self.namespace);
        let spec =
            TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let params = PostParams::default();
        let made = accounts.create_token_request(&self.account, &params, &request).await;
        let made = made.expect("its service account is there");
        made.status.and_then(|status| status.token).expect("it is granted")
    }
}

/// Writes the files of a ConfigMap.
fn mount(folder: &Path, files: &Value) -> PathBuf {
    fs::create_dir_all(folder).expect("a folder");
    for (name, text) in files.as_object().expect("files") {
        write(folder, name, text.as_str().expect("a text"));
    }
    folder.to_owned()
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("it can be written");
}
