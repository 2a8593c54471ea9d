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
    made_for(json!({}), folder, volumes)
}

/// The same for a Pod with this security context.
fn made_for(security: Value, folder: &Path, volumes: Value) -> Result<Volumes, String> {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "labels": {"a": "b"}},
        "spec": {"containers": [], "volumes": volumes, "securityContext": security},
    });
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let mut sources = Sources::default();
    let map = json!({"data": {"x": "1", "y": "2"}});
    let secret = json!({"data": {"k": "c2VjcmV0"}});
    sources.config_maps.insert("cm".into(), serde_json::from_value(map).expect("a map"));
    sources.secrets.insert("s".into(), serde_json::from_value(secret).expect("a secret"));
    make(&pod, folder, &sources, &around()).map_err(|why| match why {
        NotMade::Later(why) => why,
        NotMade::Never(why) => why.replacen(" : ", " : never ", 1),
    })
}

/// Every file of a folder: its path, mode and text.
fn listed(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with("..") {
                continue;
            }
            let found = fs::metadata(&path).expect("it is there");
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
fn a_group_that_volumes_are_for_may_use_them() {
    let folder = tempfile::tempdir().expect("a folder");
    // Whoever is not root can give files to a group of their own only.
    let own = rustix::process::getgid().as_raw();
    let group = if rustix::process::geteuid().is_root() { 54321 } else { own };
    let volumes = json!([
        {"name": "scratch", "emptyDir": {}},
        {"name": "closed", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "open", "configMap": {"name": "cm", "items":
            [{"key": "x", "path": "x", "mode": 0o604}]}},
    ]);
    let of = |volumes: &Volumes, path: &str| {
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let found = fs::metadata(volumes[name].path.join(rest)).expect("it is there");
        (format!("{:o}", found.mode() & 0o7777), found.gid())
    };
    let shared =
        made_for(json!({"fsGroup": group}), &folder.path().join("shared"), volumes.clone());
    let shared = shared.expect("all is there");
    assert_eq!(of(&shared, "scratch"), ("2777".to_owned(), group));
    assert_eq!(of(&shared, "closed/k"), ("440".to_owned(), group));
    assert_eq!(of(&shared, "open/x"), ("644".to_owned(), group));
    let alone = made(&folder.path().join("alone"), volumes).expect("all is there");
    assert_eq!(of(&alone, "scratch"), ("777".to_owned(), own));
    assert_eq!(of(&alone, "closed/k"), ("400".to_owned(), own));
    assert_eq!(of(&alone, "open/x"), ("604".to_owned(), own));
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
            "never persistentVolumeClaim is not supported on this node; use emptyDir",
        ),
        (
            json!([{"name": "v", "projected": {"sources":
                [{"serviceAccountToken": {"path": "token"}}]}}]),
            "never projected serviceAccountToken is not supported",
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

#[test]
fn a_mount_covers_none_that_is_within_it_wherever_it_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let volumes = made(folder.path(), json!([{"name": "v", "emptyDir": {}}])).expect("made");
    let mount = |path: &str| json!({"name": "v", "mountPath": path});
    let paths = ["/a/b/c", "/z", "/a/b/", "/a", "/b"];
    let container = json!({"name": "c", "volumeMounts": paths.map(mount)});
    let container = serde_json::from_value(container).expect("a container");
    let mounts = mounts(&container, &volumes, &[]).expect("they are there");
    let targets: Vec<&Path> = mounts.iter().map(|mount| &*mount.target).collect();
    assert_eq!(targets, ["/z", "/a", "/b", "/a/b/", "/a/b/c"].map(Path::new));
}

#[test]
fn a_file_of_a_volume_is_found_and_stays_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let volumes = made(folder.path(), json!([{"name": "v", "emptyDir": {}}])).expect("made");
    let volume = folder.path().join("volumes/v");
    fs::write(folder.path().join("secret"), "A='1'").expect("a file");
    fs::write(volume.join("here"), "A='1'").expect("a file");
    symlink("here", volume.join("link")).expect("a link");
    symlink("../../secret", volume.join("out")).expect("a link");
    let found = |path| file(&volumes, "v", path).map(|found| found.is_some());
    assert_eq!(found("here"), Ok(true));
    assert_eq!(found("link"), Ok(true));
    assert_eq!(found("none/at/all"), Ok(false));
    for path in ["out", "../../secret"] {
        assert!(found(path).is_err(), "{path} leaves the volume");
    }
}

/// A Pod with one volume from the ConfigMap `cm` and one from its labels, mounted so.
fn pod_of(mounts: Value, label: &str) -> Pod {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "labels": {"a": label}},
        "spec": {"containers": [{"name": "c", "volumeMounts": mounts}], "volumes": [
            {"name": "v", "configMap": {"name": "cm"}},
            {"name": "l", "downwardAPI": {"items":
                [{"path": "deep/labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]},
    });
    serde_json::from_value(pod).expect("a Pod")
}

fn sources_of(data: Value) -> Sources {
    let mut sources = Sources::default();
    let map = serde_json::from_value(json!({"data": data})).expect("a map");
    sources.config_maps.insert("cm".into(), map);
    sources
}

#[test]
fn what_has_changed_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let pod = pod_of(json!([{"name": "v", "mountPath": "/v"}]), "b");
    let before = sources_of(json!({"x": "1", "y": "2"}));
    let volumes = make(&pod, folder.path(), &before, &around()).expect("all is there");
    let of = |name: &str| listed(&volumes[name].path);
    let link = |name: &str| fs::read_link(volumes["v"].path.join(name)).expect("a link");
    assert_eq!((link("x"), link("..data")), ("..data/x".into(), "..1".into()));
    // Who has mounted one file has it for good.
    let mount = json!({"name": "v", "mountPath": "/m", "subPath": "x"});
    let source = mounted(&volumes, mount).expect("it is there").source;
    let held = fs::File::open(&source).expect("it can be read");

    let refresh = |pod: &Pod, sources: &Sources| refresh(pod, folder.path(), sources, &around());
    refresh(&pod, &before).expect("nothing has changed");
    assert_eq!(link("..data"), PathBuf::from("..1"));
    let after = sources_of(json!({"x": "3", "z": "4"}));
    let relabelled = pod_of(json!([{"name": "v", "mountPath": "/v"}]), "c");
    refresh(&relabelled, &after).expect("it can be written");
    assert_eq!(of("v"), ["x 644 3", "z 644 4"]);
    assert_eq!(of("l"), ["deep/labels 644 a=\"c\""]);
    assert_eq!(std::io::read_to_string(held).expect("text"), "1");
    let own = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("..");
    let entries = fs::read_dir(&volumes["v"].path).expect("a folder").map(|it| it.expect("one"));
    assert_eq!(entries.filter(own).count(), 2, "the link and what it leads to");

    let why = refresh(&pod, &Sources::default()).expect_err("the map is gone");
    assert!(matches!(why, NotMade::Later(why) if why.contains("configmap \"cm\" not found")));
    assert_eq!(of("v"), ["x 644 3", "z 644 4"], "what was there stays");
    assert_eq!(of("l"), ["deep/labels 644 a=\"b\""], "and does not hold up the others");
    fs::remove_dir_all(folder.path().join("volumes")).expect("the Pod has ended");
    refresh(&pod, &after).expect_err("it is not made again");
    assert!(!folder.path().join("volumes").exists());
}

#[test]
fn a_volume_with_another_within_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let pod = pod_of(
        json!([{"name": "v", "mountPath": "/v"}, {"name": "l", "mountPath": "/v/labels"}]),
        "b",
    );
    let volumes = make(&pod, folder.path(), &sources_of(json!({"x": "1"})), &around());
    let volumes = volumes.expect("all is there");
    refresh(&pod, folder.path(), &sources_of(json!({"x": "2"})), &around()).expect("it can be");
    assert_eq!(listed(&volumes["v"].path), ["x 644 1"]);
    assert!(may_change(&pod), "the labels may");
}

/// Where the test below works while it is the process with the umask.
const FOLDER: &str = "STINT_TEST_UMASK_FOLDER";

/// A umask is a process's, so that this runs in one of its own.
#[test]
fn modes_are_what_kubernetes_says_whatever_the_umask_is() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("it runs");
        let name = "volumes::tests::modes_are_what_kubernetes_says_whatever_the_umask_is";
        let run = std::process::Command::new("sh")
            .args(["-c", "umask 077; exec \"$@\"", "sh"])
            .arg(own)
            .args(["--exact", name])
            .env(FOLDER, folder.path())
            .output()
            .expect("a shell is there");
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
        return;
    };
    let folder = Path::new(&folder);
    let on_host = |name: &str, kind: &str| json!({"name": name, "hostPath": {"path": folder.join(name).join("x"), "type": kind}});
    let items = json!([{"key": "x", "path": "d/x"}, {"key": "y", "path": "y", "mode": 0o444}]);
    let volumes = json!([
        {"name": "cm", "configMap": {"name": "cm", "items": items}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "e", "emptyDir": {}},
        on_host("folders", "DirectoryOrCreate"),
    ]);
    fs::create_dir(folder.join("files")).expect("a folder");
    let made = made(folder, volumes).expect("they can be made");
    super::host_path::make(&folder.join("files/x").display().to_string(), "FileOrCreate")
        .expect("it can be made");
    super::sub_path::resolve(&made["e"].path, "a/b", true).expect("it can be made");
    let pod = json!({"metadata": {"name": "p", "uid": "u"}});
    let pod = std::sync::Arc::new(serde_json::from_value(pod).expect("a Pod"));
    let hosts = crate::hosts_files::HostsFiles::default();
    hosts.add(&pod, folder.join("hosts"), Ipv4Addr::LOCALHOST).expect("it can be written");
    for (path, expected) in [
        ("volumes/cm", 0o755),
        ("volumes/cm/d", 0o755),
        ("volumes/cm/d/x", 0o644),
        ("volumes/cm/y", 0o444),
        ("volumes/s", 0o755),
        ("volumes/s/k", 0o400),
        ("volumes/e", 0o777),
        ("volumes/e/a", 0o777),
        ("volumes/e/a/b", 0o777),
        ("folders", 0o755),
        ("folders/x", 0o755),
        ("files/x", 0o644),
        ("hosts", 0o644),
    ] {
        let found = fs::metadata(folder.join(path)).expect(path).mode() & 0o7777;
        assert_eq!(found, expected, "{path}: {found:o}");
    }
}

#[test]
fn a_host_path_without_a_type_is_made_if_it_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, kind: &str| {
        super::host_path::make(&folder.path().join(name).display().to_string(), kind)
    };
    let made = make("a/b", "").expect("it can be made");
    assert!(made.is_dir());
    assert_eq!(make("a/b", "").as_ref(), Ok(&made), "and is taken as it is");
    fs::write(folder.path().join("file"), "").expect("a file");
    assert!(make("file", "").is_ok_and(|path| path.is_file()));
    let why = make("file/below", "").expect_err("a file has nothing below");
    for part in ["file/below", "type: DirectoryOrCreate", "Not a directory"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).expect("a link");
    let why = make("link", "").expect_err("it leads nowhere");
    assert!(why.contains("does not exist"), "{why}");
    assert!(make("none", "Directory").is_err_and(|why| why.contains("does not exist")));
    assert!(!folder.path().join("none").exists());
}
