//! kubectl, the real one, and what the server tells of itself: explain, what there is, what one may
//! do. In the words of kubectl, which it makes of the server's documents.

use crate::kit::{Kubectl, Server};

#[test]
fn fields_are_explained_by_both_descriptions() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    for output in ["plaintext", "plaintext-openapiv2"] {
        let told =
            kubectl.run(&format!("explain job.spec.successPolicy --recursive --output {output}"));
        for word in ["rules", "succeededCount", "succeededIndexes", "<integer>", "<string>"] {
            assert!(told.contains(word), "{output}: no {word} in\n{told}");
        }
        let told = kubectl.run(&format!("explain pod.spec.containers.ports --output {output}"));
        for word in ["containerPort", "-required-", "hostPort"] {
            assert!(told.contains(word), "{output}: no {word} in\n{told}");
        }
    }
    let kinds = kubectl.run("api-resources -o name");
    for kind in kinds.lines().filter(|kind| !kind.contains("review") && *kind != "bindings") {
        // kubectl takes what follows a dot for a field if there is a core kind of that name.
        let told = match kind.split_once('.') {
            Some((name, group)) => kubectl.run(&format!("explain {name} --api-version {group}/v1")),
            None => kubectl.run(&format!("explain {kind}")),
        };
        assert!(told.contains("KIND:") && told.contains("metadata"), "{kind}: {told}");
    }
}

#[test]
fn what_there_is_and_who_one_is_and_what_one_may_do() {
    let server = Server::in_memory();
    let kubectl = Kubectl::new(&server);
    let versions = kubectl.run("api-versions");
    for version in ["authorization.k8s.io/v1", "batch/v1", "v1"] {
        assert!(versions.lines().any(|line| line == version), "{versions}");
    }
    let resources = kubectl.run("api-resources -o wide");
    assert!(resources.contains("selfsubjectaccessreviews"), "{resources}");
    assert!(resources.contains("create,delete,deletecollection,get,list"), "{resources}");
    assert_eq!(kubectl.run("auth can-i create jobs"), "yes\n");
    assert_eq!(kubectl.run("auth can-i get /version"), "yes\n");
    let rules = kubectl.run("auth can-i --list");
    assert!(rules.contains("*.*"), "{rules}");
    let who = kubectl.run("auth whoami");
    assert!(who.contains("Username") && who.contains("admin"), "{who}");
}
