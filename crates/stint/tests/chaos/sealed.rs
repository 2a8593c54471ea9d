//! Folders that nobody may write to, as Go's module cache has them, in what goes with a Pod.

use std::fs;

use serde_json::Value;

use crate::home::{Home, as_everybody, job};

const SCRIPT: &str = "\
mkdir -p cache/module/deeper; echo text > cache/module/deeper/file
chmod 0555 cache/module/deeper cache/module; chmod 0000 cache
";

fn manifest(home: &Home) -> String {
    let text = job(home, "sealed", 2, "", SCRIPT);
    format!(
        "{text}        workingDir: /work\n        \
         volumeMounts: [{{name: work, mountPath: /work}}]\n      \
         volumes: [{{name: work, emptyDir: {{}}}}]\n"
    )
}

#[test]
fn a_run_leaves_no_folder_that_a_pod_has_sealed() {
    as_everybody(|home| {
        let ended = home.run(&manifest(home), &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(home.strays().is_empty(), "{:?} {ended:?}", home.strays());
    });
}

#[test]
fn a_server_removes_what_ended_pods_have_sealed() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        kubectl.give(&manifest(home), "create -f -");
        kubectl.run("wait --for=condition=complete job/sealed --timeout=60s");
        // With its Pods, and not before them.
        kubectl.run("delete job sealed --cascade=foreground --timeout=60s");
        let pods: Value = kubectl.json("get pods");
        assert_eq!(pods["items"].as_array().map(Vec::len), Some(0), "{pods}");
        assert!(server.stop().success());
        for name in ["pods", "spare"] {
            let entries = fs::read_dir(home.path("data/node").join(name)).into_iter().flatten();
            let left: Vec<_> = entries.map(|entry| entry.expect("it is there").path()).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    });
}
