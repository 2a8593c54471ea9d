//! What volumes hold, and where they must not lead. No mounts, no API.

use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::{Value, json};

use super::*;

fn around() -> Surroundings {
    Surroundings {
        pod_address: Ipv4Addr::new(127, 64, 0, 1),
        host_address: Ipv4Addr::LOCALHOST,
        cpu_millis: 1000,
        memory_bytes: 1024,
    }
}

fn made(folder: &Path, volumes: Value) -> Result<Volumes, String> {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "labels": {"a": "b"}},
        "spec": {"containers": [], "volumes": volumes},
    });
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let mut sources = Sources::default();
    let map = json!({"data": {"x": "1", "y": "2"}});
    let secret = json!({"data": {"k": "c2VjcmV0"}});
    sources.config_maps.insert("cm".into(), serde_json::from_value(map).expect("a map"));
    sources.secrets.insert("s".into(), serde_json::from_value(secret).expect("a secret"));
    make(&pod, folder, &sources, &around())
}

/// Every file of a folder: its path, mode and text.
fn listed(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").map(|entry| entry.expect("an entry")) {
            let (path, found) = (entry.path(), entry.metadata().expect("it is there"));
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("below").display().to_string();
            let text = fs::read_to_string(&path).expect("text");
            lines.push(format!("{name} {:o} {text}", found.mode() & 0o777));
        }
    }
    lines.sort();
    lines
}

#[test]
fn content_of_the_api_becomes_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let volumes = json!([
        {"name": "all", "configMap": {"name": "cm"}},
        {"name": "some", "secret": {"secretName": "s", "defaultMode": 0o400,
            "items": [{"key": "k", "path": "deep/er", "mode": 0o440}]}},
        {"name": "fields", "downwardAPI": {"items":
            [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "mixed", "projected": {"defaultMode": 0o600, "sources": [
            {"configMap": {"name": "cm", "items": [{"key": "x", "path": "x"}]}},
            {"secret": {"name": "s"}}, {"secret": {"name": "gone", "optional": true}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    let volumes = made(folder.path(), volumes).expect("all is there");
    let of = |name: &str| listed(&volumes[name].path);
    assert_eq!(of("all"), ["x 644 1", "y 644 2"]);
    assert_eq!(of("some"), ["deep/er 440 secret"]);
    assert_eq!(of("fields"), ["labels 644 a=\"b\""]);
    assert_eq!(of("mixed"), ["k 600 secret", "x 600 1"]);
    assert_eq!(of("scratch"), Vec::<String>::new());
    let mode = fs::metadata(&volumes["scratch"].path).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o777);
    assert!(volumes["all"].is_read_only && !volumes["scratch"].is_read_only);
}

#[test]
fn what_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("it can be written");
    let host = |path: &Path, kind: &str| {
        json!([
        {"name": "v", "hostPath": {"path": path, "type": kind}}])
    };
    let rows = [
        (json!([{"name": "v", "configMap": {"name": "gone"}}]), "configmap \"gone\" not found"),
        (
            json!([{"name": "v", "secret": {"secretName": "s",
                "items": [{"key": "no", "path": "x"}]}}]),
            "has no key \"no\"",
        ),
        (
            json!([{"name": "v", "configMap": {"name": "cm",
                "items": [{"key": "x", "path": "../x"}]}}]),
            "leaves the volume",
        ),
        (
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            "not supported on this node; use emptyDir",
        ),
        (
            json!([{"name": "v", "projected": {"sources":
                [{"serviceAccountToken": {"path": "token"}}]}}]),
            "serviceAccountToken is not supported",
        ),
        (host(&file, "Directory"), "is no directory"),
        (host(&file, "Socket"), "is no socket"),
        (host(&folder.path().join("none"), "File"), "does not exist"),
    ];
    for (volumes, expected) in rows {
        let why = made(&folder.path().join("pod"), volumes).expect_err("it cannot be made");
        assert!(why.contains(expected) && why.contains("volume \"v\""), "{why}");
    }
    let made_here = folder.path().join("a/b");
    made(folder.path(), host(&made_here, "DirectoryOrCreate")).expect("it is made");
    assert!(made_here.is_dir());
}

fn mounted(volumes: &Volumes, mount: Value) -> Result<Mount, String> {
    let container = json!({"name": "c", "volumeMounts": [mount]});
    let container = serde_json::from_value(container).expect("a container");
    let env = [("NAME".to_owned(), "n".to_owned())];
    mounts(&container, volumes, &env).map(|mut mounts| mounts.remove(0))
}

#[test]
fn a_sub_path_stays_in_its_volume() {
    let folder = tempfile::tempdir().expect("a folder");
    let volumes = made(folder.path(), json!([{"name": "v", "emptyDir": {}}])).expect("made");
    let root = fs::canonicalize(&volumes["v"].path).expect("it is there");
    symlink("/etc", root.join("out")).expect("a link");
    symlink("a", root.join("in")).expect("a link");
    let mount =
        |path: &str| mounted(&volumes, json!({"name": "v", "mountPath": "/m", "subPath": path}));
    assert_eq!(mount("a/b").expect("it is made").source, root.join("a/b"));
    assert_eq!(mount("in/b").expect("it is below").source, root.join("a/b"));
    for path in ["../x", "out", "out/passwd", "a/../../x", "/etc"] {
        let why = mount(path).expect_err(path);
        assert!(why.contains("volume \"v\""), "{why}");
    }
    let expr =
        |text: &str| mounted(&volumes, json!({"name": "v", "mountPath": "m", "subPathExpr": text}));
    let found = expr("x-$(NAME)").expect("it is made");
    assert_eq!((found.source, found.target), (root.join("x-n"), PathBuf::from("/m")));
    assert!(expr("$(NONE)").expect_err("it is not set").contains("not set"));
}

#[test]
fn a_mount_is_read_only_if_it_or_its_volume_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let volumes =
        json!([{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "cm"}}]);
    let volumes = made(folder.path(), volumes).expect("made");
    let is_read_only = |name: &str, asked: bool| {
        let mount = json!({"name": name, "mountPath": "/m", "readOnly": asked});
        mounted(&volumes, mount).expect("it is there").read_only
    };
    let all = [("e", false), ("e", true), ("c", false), ("c", true)];
    assert_eq!(all.map(|(name, asked)| is_read_only(name, asked)), [false, true, true, true]);
}
