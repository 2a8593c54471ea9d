//! The rights that `deploy/` grants are enough, and none of them is too many: a controller of its own
//! for each of them that lacks just this one says so, and is refused something that it needs.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate, Stage};
use tokio::time::Instant;

use crate::attempt::attempt;
use crate::audit::{self, Call};
use crate::authority::User;
use crate::cluster::{ClusterError, Options};
use crate::program::{self, Program, Setup};
use crate::proxy::{Faults, Proxy};
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};
use crate::{bootstrap, deployed};

const ENOUGH: &str = "rights/enough";
const DROPPED: &str = "rights/dropped";
const REVOKED: &str = "rights/revoked";

/// How long a controller may take to do everything that it may do, on a machine that has much to
/// do. The count of an Event alone waits for 10 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// How soon the audit log is read again.
const AGAIN: Duration = Duration::from_millis(500);

/// How many Pods a Job has, one of which it adopts.
const PODS: i32 = 3;

/// A verb on a resource.
#[derive(Clone, Debug)]
struct Right {
    group: String,
    resource: String,
    verb: String,
    is_named: bool,
}

impl Right {
    /// As RBAC has it. A Lease is one of this name.
    fn rule(&self, lease: &str) -> Value {
        let names = if self.is_named { vec![lease] } else { Vec::new() };
        json!({
            "apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb],
            "resourceNames": names,
        })
    }

    /// What stint says of it when it lacks.
    fn words(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("may not {} {}{dot}{} in ", self.verb, self.resource, self.group)
    }

    /// The call that needs it.
    fn call(&self) -> String {
        match &*self.resource {
            // Asked for by admission (OwnerReferencesPermissionEnforcement) when a Pod gets an owner.
            "jobs/finalizers" => "create pods".to_owned(),
            resource => format!("{} {resource}", self.verb),
        }
    }

    /// Whether nothing can be adopted without it: admission asks for these two rights then, too, and
    /// a Job that cannot adopt a Pod makes no other.
    fn is_for_adoption(&self) -> bool {
        self.resource == "jobs/finalizers" || (self.resource == "pods" && self.verb == "delete")
    }
}

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [ENOUGH, DROPPED, REVOKED].map(str::to_owned).to_vec()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let stint = program::path(&suite.build).await?;
    let rights = granted().await?;
    let mut options: Options = suite.options.clone();
    // Where owners may be set only by those who may keep them, and where lists are not streamed.
    let flags = [
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        "--feature-gates=WatchList=false",
    ];
    options.apiserver_flags.extend(flags.map(str::to_owned));
    let driver = Driver::new(|_| Fate::succeeds());
    let theatre = Theatre::open(options, &Player::Nobody, driver).await?;
    let before = report.failed();
    if suite.wants(ENOUGH) {
        let (took, result) = attempt(enough(&theatre, &stint, &rights)).await;
        report.tell(ENOUGH, took, result);
    }
    if suite.wants(DROPPED) {
        let (took, result) = attempt(dropped(&theatre, &stint, &rights)).await;
        report.tell(DROPPED, took, result);
    }
    if suite.wants(REVOKED) {
        let (took, result) = attempt(revoked(&theatre, &stint, &rights)).await;
        report.tell(REVOKED, took, result);
    }
    suite.close([theatre], report.failed() > before);
    Ok(())
}

/// Every right of the overlay for Jobs that name stint.
async fn granted() -> Result<Vec<Right>, ClusterError> {
    let objects = deployed::kustomized("overlays/managed-by").await?;
    let is_role = |object: &&Value| matches!(object["kind"].as_str(), Some("ClusterRole" | "Role"));
    let rules = objects.iter().filter(is_role).flat_map(|role| strings_of(role, "rules"));
    let mut rights = Vec::new();
    for rule in rules {
        let is_named = !rule["resourceNames"].is_null();
        let texts = |field: &str| -> Vec<String> {
            let values = strings_of(&rule, field);
            values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                for verb in texts("verbs") {
                    let (group, resource) = (group.clone(), resource.clone());
                    rights.push(Right { group, resource, verb, is_named });
                }
            }
        }
    }
    Ok(rights)
}

fn strings_of(value: &Value, field: &str) -> Vec<Value> {
    value[field].as_array().cloned().unwrap_or_default()
}

/// A controller, with a Job that makes it use every right.
struct Actor {
    name: String,
    user: User,
    program: Program,
    _proxy: Proxy,
}

impl Actor {
    async fn start(theatre: &Theatre, stint: &Path, name: &str, user: User, ours: &str) -> Self {
        let stage = &theatre.stage;
        stage.driver.hold(name, true);
        let faults = Faults::FirstPods;
        let proxy = Proxy::start(&theatre.cluster, &user, faults).await.expect("a proxy");
        let setup = Setup {
            user: user.clone(),
            url: Some(proxy.url.clone()),
            ..Setup::new(Mode::Beside, name)
        };
        let managed_by = format!("--managed-by={ours}");
        let lease = format!("--lease-name={}", lease(name));
        let setup = setup.with(&[&managed_by, &lease, "--pod-failure-backoff-base=1s"]);
        stage.create(name, spec(name, ours)).await;
        let program = Program::start(&theatre.cluster, stint, &setup).expect("it can be started");
        Actor { name: name.to_owned(), user, program, _proxy: proxy }
    }

    /// Has its Pods deleted once they are there.
    async fn go_on(&self, stage: &Stage) {
        let job = stage.job(&self.name).await;
        let is_held = job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or(false);
        if !is_held && counts(&job).0 == PODS {
            stage.patch(&self.name, json!({"spec": {"suspend": true}})).await;
        }
    }

    /// What it was told of calls: the call, and whether it was refused.
    fn calls<'a>(&'a self, calls: &'a [Call], is_refused: bool) -> BTreeSet<&'a str> {
        let is_meant =
            |call: &&Call| call.user == self.user.name && (call.code == 403) == is_refused;
        calls.iter().filter(is_meant).map(|call| &*call.what).collect()
    }
}

/// The Lease of a controller.
fn lease(name: &str) -> String {
    match name {
        "rights" => "stint-job-controller".to_owned(),
        other => other.to_owned(),
    }
}

/// A Job that adopts a Pod if one was there before, and makes the others.
fn spec(name: &str, ours: &str) -> Value {
    json!({
        "parallelism": PODS, "completions": PODS, "managedBy": ours, "manualSelector": true,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": labels(name)}, "spec": pod_spec()},
    })
}

/// Creates a Pod that nobody owns, and a Job to come selects.
async fn abandon(stage: &Stage, name: &str) {
    stage.driver.hold(name, true);
    let orphan = json!({
        "metadata": {"name": format!("{name}-orphan"), "labels": labels(name)},
        "spec": pod_spec(),
    });
    let orphan: Pod = serde_json::from_value(orphan).expect("a Pod");
    stage.pods().create(&Default::default(), &orphan).await.expect("it can be made");
}

fn labels(name: &str) -> Value {
    json!({"app": name, "job-name": name})
}

fn pod_spec() -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]})
}

/// With the rights of `deploy/` everything can be done, and every one of them is used.
async fn enough(theatre: &Theatre, stint: &Path, rights: &[Right]) {
    let (name, stage) = ("rights", &theatre.stage);
    let user = User::controller(Mode::Beside);
    let ours = "test.stint.dev/rights";
    abandon(stage, name).await;
    let mut actor = Actor::start(theatre, stint, name, user, ours).await;
    let needed: BTreeSet<String> = rights.iter().map(Right::call).collect();
    // Watches are told when they have ended.
    let is_told = |call: &String| !call.starts_with("watch ");
    let began = Instant::now();
    loop {
        actor.go_on(stage).await;
        let calls = audit::calls(theatre.cluster.folder()).expect("there is an audit log");
        let used = actor.calls(&calls, false);
        let unused: Vec<_> =
            needed.iter().filter(|it| is_told(it) && !used.contains(&***it)).collect();
        if unused.is_empty() {
            break;
        }
        let log = actor.program.process.last_words();
        assert!(began.elapsed() < PATIENCE, "nothing has used {unused:?}; used: {used:?}\n{log}");
        tokio::time::sleep(AGAIN).await;
    }
    stage.driver.hold(name, false);
    stage.patch(name, json!({"spec": {"suspend": false}})).await;
    let job = stage.finish(name).await;
    assert_eq!(end(&job).as_deref(), Some("Complete CompletionsReached"), "{:?}", job.status);
    actor.program.process.stop().await;
    let log = actor.program.log();
    assert!(!log.contains("rights are missing"), "{log}");
    stage
        .until("has its watches noted", async |_| {
            let calls = audit::calls(theatre.cluster.folder()).expect("there is an audit log");
            let used = actor.calls(&calls, false);
            needed.iter().all(|it| used.contains(&**it))
        })
        .await;
    let calls = audit::calls(theatre.cluster.folder()).expect("there is an audit log");
    let refused = actor.calls(&calls, true);
    assert!(refused.is_empty(), "refused: {refused:?}");
    let used = actor.calls(&calls, false);
    let more: Vec<_> = used.iter().filter(|it| !needed.contains(**it)).collect();
    assert!(more.is_empty(), "used by no right of its own: {more:?}");
}

/// Without any one of them, stint says which is missing, and something is refused.
async fn dropped(theatre: &Theatre, stint: &Path, rights: &[Right]) {
    let stage = &theatre.stage;
    let mut actors = Vec::new();
    for (number, right) in rights.iter().enumerate() {
        let name = format!("without-{number}");
        let user = User::controller_named(&name);
        let others = rights.iter().enumerate().filter(|(other, _)| *other != number);
        let rules: Vec<Value> = others.map(|(_, other)| other.rule(&lease(&name))).collect();
        let granted = bootstrap::grant(&stage.admin, &user, rules.into()).await;
        granted.expect("rights can be granted");
        let ours = format!("test.stint.dev/{name}");
        if !right.is_for_adoption() {
            abandon(stage, &name).await;
        }
        actors.push((Actor::start(theatre, stint, &name, user, &ours).await, right));
    }
    let began = Instant::now();
    loop {
        let calls = audit::calls(theatre.cluster.folder()).expect("there is an audit log");
        let mut left = Vec::new();
        for (actor, right) in &actors {
            actor.go_on(stage).await;
            let log = actor.program.log();
            let is_said = log.contains(&right.words());
            let is_refused = actor.calls(&calls, true).contains(&*right.call());
            if !(is_said && is_refused) {
                left.push(format!("{right:?}: said {is_said}, refused {is_refused}"));
            }
        }
        if left.is_empty() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "nothing breaks without\n{}", left.join("\n"));
        tokio::time::sleep(AGAIN).await;
    }
    // Each lacks that one only.
    let calls = audit::calls(theatre.cluster.folder()).expect("there is an audit log");
    for (actor, right) in &mut actors {
        let refused: Vec<_> = actor.calls(&calls, true).into_iter().collect();
        assert_eq!(refused, [right.call()], "without {right:?}");
        actor.program.process.stop().await;
    }
}

/// A right that is taken away while it works is told, in the log and by `/readyz`, although nothing asks
/// for it; and that it is there again is told, too.
async fn revoked(theatre: &Theatre, stint: &Path, rights: &[Right]) {
    let (stage, name) = (&theatre.stage, "revoked");
    let user = User::controller_named(name);
    let rules = |is_left: &dyn Fn(&Right) -> bool| -> Value {
        let left = rights.iter().filter(|right| is_left(right));
        left.map(|right| right.rule(name)).collect::<Vec<_>>().into()
    };
    let granted = bootstrap::grant(&stage.admin, &user, rules(&|_| true)).await;
    granted.expect("rights can be granted");
    let lease = format!("--lease-name={name}");
    let setup = Setup { user: user.clone(), ..Setup::new(Mode::Beside, name) };
    let setup = setup.with(&["--managed-by=test.stint.dev/revoked", &lease]);
    let mut program = Program::start(&theatre.cluster, stint, &setup).expect("it can be started");
    stage.until("leads", async |_| program.leads().await).await;
    let roles: Api<ClusterRole> = Api::all(stage.admin.clone());
    let set = async |rules: Value| {
        let patch = Patch::Merge(json!({"rules": rules}));
        roles.patch(&user.name, &PatchParams::default(), &patch).await.expect("it can be changed");
    };
    let is_taken = |right: &Right| right.resource == "pods" && right.verb == "create";
    let taken = rights.iter().find(|right| is_taken(right)).expect("it is one of them");
    assert!(!program.log().contains("rights are missing"), "{}", program.log());
    set(rules(&|right| !is_taken(right))).await;
    let is_told = async |words: &str| {
        let ready = program.ready().await.unwrap_or_default();
        program.log().contains(words) && ready.contains(words)
    };
    stage.until("is told to lack it", async |_| is_told(&taken.words()).await).await;
    set(rules(&|_| true)).await;
    let is_well = async || {
        let ready = program.ready().await.unwrap_or_default();
        program.log().contains("all rights are there now") && !ready.contains("may not")
    };
    stage.until("is told to have it again", async |_| is_well().await).await;
    program.process.stop().await;
}
