//! Objects whose lists are as long as a request may be: to judge them takes time and answers in
//! proportion to what was sent, whatever is compared with what.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stint_api::field_error::FieldError;
use stint_api::prepare::pod::{prepare_pod_for_create, prepare_pod_for_status_update};
use stint_api::validation::pod::{validate_pod_create, validate_pod_status_update};

/// Items of a list: some megabytes of them are a request. All pairs of so many would take
/// minutes.
const MANY: usize = 40_000;

/// How long an unoptimised build on a busy machine may take for one of these objects. It
/// takes some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much larger than a request an answer may be: an error repeats the path, and says what
/// is wrong.
const MAX_GROWTH: usize = 40;

fn list(item: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..MANY).map(item).collect()
}

fn names(prefix: &str) -> Vec<Value> {
    list(|n| json!(format!("{prefix}{n}")))
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    merge(&mut pod["spec"], spec);
    pod
}

/// A Pod whose one container has these fields too.
fn container(fields: Value, spec: Value) -> Value {
    let mut pod = pod(spec);
    merge(&mut pod["spec"]["containers"][0], fields);
    pod
}

fn merge(into: &mut Value, from: Value) {
    let into = into.as_object_mut().expect("an object");
    let Value::Object(from) = from else { panic!("an object") };
    into.extend(from);
}

fn read(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).expect("a Pod")
}

/// Judges something, and checks what that costs.
fn judge(what: &str, sent: &Value, judge: impl FnOnce() -> Vec<FieldError>) -> Vec<FieldError> {
    let sent = sent.to_string().len();
    let began = Instant::now();
    let errors = judge();
    let took = began.elapsed();
    assert!(took < PATIENCE, "{what}: {took:?} for {sent} bytes");
    let said: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(said < sent * MAX_GROWTH, "{what}: {said} bytes in answer to {sent}");
    errors
}

fn create(what: &str, sent: &Value) -> Vec<FieldError> {
    let mut pod = read(sent);
    judge(what, sent, || {
        let now = serde_json::from_value(json!("2026-05-01T12:00:00Z")).expect("a time");
        prepare_pod_for_create(&mut pod, &now);
        validate_pod_create(&pod)
    })
}

#[test]
fn nothing_in_a_new_pod_is_compared_with_everything_else() {
    let mounts = || list(|n| json!({"name": format!("m{n}"), "mountPath": format!("/m/{n}")}));
    let devices = || list(|n| json!({"name": format!("d{n}"), "devicePath": format!("/d/{n}")}));
    let devices_on_mounts =
        list(|n| json!({"name": format!("d{}", n % 2), "devicePath": format!("/m/{n}")}));
    let files = list(|n| {
        let key = json!({"key": "K", "volumeName": format!("w{n}"), "path": "p"});
        json!({"name": format!("E{n}"), "valueFrom": {"fileKeyRef": key}})
    });
    let volumes = list(|n| json!({"name": format!("v{n}"), "emptyDir": {}}));
    let expressions = list(|n| json!({"key": format!("e{n}"), "operator": "Exists"}));
    let affinity = |fields: Value| {
        let mut term = json!({"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}});
        merge(&mut term, fields);
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        pod(json!({"affinity": {"podAffinity": terms}}))
    };
    let claims = list(|n| json!({"name": format!("r{n}"), "resourceClaimName": "r"}));
    let unknown_claims = list(|n| json!({"name": format!("u{n}")}));
    let attacks = [
        (
            "mounts and devices",
            container(json!({"volumeMounts": mounts(), "volumeDevices": devices()}), json!({})),
        ),
        (
            "devices where mounts are",
            container(
                json!({"volumeMounts": mounts(), "volumeDevices": devices_on_mounts}),
                json!({}),
            ),
        ),
        ("files of volumes", container(json!({"env": files}), json!({"volumes": volumes}))),
        (
            "keys that match and do not",
            affinity(json!({"matchLabelKeys": names("a"), "mismatchLabelKeys": names("b")})),
        ),
        (
            "keys that a selector has",
            affinity(json!({
                "matchLabelKeys": names("e"),
                "labelSelector": {"matchExpressions": expressions},
            })),
        ),
        (
            "claims that are unknown",
            container(
                json!({"resources": {"claims": unknown_claims}}),
                json!({"resourceClaims": claims}),
            ),
        ),
        ("claims of everything", container(json!({"resources": {"claims": claims}}), json!({}))),
    ];
    for (what, sent) in &attacks {
        assert!(!create(what, sent).is_empty(), "{what} is wrong");
    }
}

#[test]
fn profiles_of_containers_are_looked_up() {
    let mut sent = pod(json!({"initContainers": list(|n| json!({"name": format!("c{n}")}))}));
    let profiles = (0..MANY).map(|n| {
        (format!("container.apparmor.security.beta.kubernetes.io/x{n}"), json!("unconfined"))
    });
    sent["metadata"]["annotations"] = Value::Object(profiles.collect());
    create("AppArmor annotations", &sent);
}

/// These are shown with every error that they cause.
#[test]
fn what_is_shared_is_not_said_once_for_each_who_shares_it() {
    let long = "n".repeat(200_000);
    let controller = json!({
        "apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true,
    });
    let mut owners = pod(json!({}));
    owners["metadata"]["ownerReferences"] = json!(vec![controller; 3_000]);
    let context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"add": vec!["CAP_SYS_ADMIN"; 3_000]},
    });
    let same_file = json!({"key": "k", "path": "p"});
    let source = json!({"configMap": {"name": long, "items": vec![same_file; 3_000]}});
    let volume = json!({"name": "v", "projected": {"sources": [source]}});
    let claim = json!({"name": long, "resourceClaimName": "r"});
    let unknown = json!({"claims": vec![json!({"name": "u"}); 3_000]});
    for (what, sent) in [
        ("controllers", owners),
        ("capabilities", container(json!({"securityContext": context}), json!({}))),
        ("files of one source", pod(json!({"volumes": [volume]}))),
        (
            "a claim with a long name",
            container(json!({"resources": unknown}), json!({"resourceClaims": [claim]})),
        ),
    ] {
        assert!(!create(what, &sent).is_empty(), "{what} is wrong");
    }
}

/// A profile is kept for one container of a name, whoever else has that name.
#[test]
fn a_long_profile_is_not_multiplied() {
    let mut sent = pod(json!({"containers": vec![json!({"name": "c", "image": "i"}); 3_000]}));
    let profile = format!("localhost/{}", "p".repeat(4_000));
    sent["metadata"]["annotations"] =
        json!({"container.apparmor.security.beta.kubernetes.io/c": profile});
    let mut pod = read(&sent);
    let now = serde_json::from_value(json!("2026-05-01T12:00:00Z")).expect("a time");
    prepare_pod_for_create(&mut pod, &now);
    let kept = serde_json::to_string(&pod).expect("JSON").len();
    assert!(kept < sent.to_string().len() * 10, "{kept}");
    assert!(!validate_pod_create(&pod).is_empty(), "one name for all of them");
}

#[test]
fn nothing_in_the_status_of_a_pod_is_compared_with_everything_else() {
    let containers = list(|n| json!({"name": format!("c{n}"), "image": "i"}));
    let ended = json!({"terminated": {"exitCode": 1}});
    let statuses = |state: &Value| {
        list(|n| {
            json!({
                "name": format!("c{n}"), "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": state,
            })
        })
    };
    let conditions = || list(|n| json!({"type": format!("example.com/{n}"), "status": "True"}));
    let mappings = list(
        |n| json!({"containerName": format!("c{n}"), "resourceName": "r", "requestName": "q"}),
    );
    let mut old = pod(json!({"containers": containers, "restartPolicy": "Never"}));
    let mut new = old.clone();
    old["status"] = json!({"containerStatuses": statuses(&ended), "conditions": conditions()});
    new["status"] = json!({
        "containerStatuses": statuses(&json!({"running": {}})),
        "conditions": conditions(),
        "extendedResourceClaimStatus": {
            "resourceClaimName": "r", "requestMappings": mappings,
        },
    });
    let (old_pod, mut new_pod) = (read(&old), read(&new));
    let errors = judge("a status", &new, || {
        prepare_pod_for_status_update(&mut new_pod, &old_pod);
        validate_pod_status_update(&new_pod, &old_pod)
    });
    assert!(!errors.is_empty());
}

#[test]
fn claims_in_the_status_of_a_pod_are_looked_up() {
    let claims = list(|n| json!({"name": "r", "request": format!("q{n}")}));
    let allocated = list(|n| json!({"name": format!("claim:r/x{n}")}));
    let old = container(json!({"resources": {"claims": claims}}), json!({}));
    let mut new = old.clone();
    new["status"] = json!({"containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "allocatedResourcesStatus": allocated,
    }]});
    let (old_pod, new_pod) = (read(&old), read(&new));
    let errors = judge("claims", &new, || validate_pod_status_update(&new_pod, &old_pod));
    assert!(!errors.is_empty());
}
