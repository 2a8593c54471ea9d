//! One row for each rule, and for what lies just beyond it.

use super::*;

/// `role verb group resource[/subresource] namespace name answer`, `-` for none.
const ROWS: &str = "
admin       patch             batch                jobs/status          default          x      yes
admin       create            -                    pods/binding         default          x      yes
admin       get               -                    secrets              default          x      yes
admin       delete            -                    nodes                -                here   yes
admin       impersonate       -                    users                -                x      yes

edit        create            batch                jobs                 default          -      yes
edit        patch             batch                jobs                 default          x      yes
edit        deletecollection  -                    pods                 default          -      yes
edit        get               -                    secrets              default          x      yes
edit        create            -                    namespaces           -                -      yes
edit        create            -                    pods/eviction        default          x      yes
edit        get               -                    pods/log             default          x      yes
edit        create            -                    pods/exec            default          x      yes
edit        get               -                    pods/attach          default          x      yes
edit        get               batch                jobs/status          default          x      yes
edit        get               -                    nodes                -                here   yes
edit        list              -                    nodes                -                -      yes
edit        create            example.com          widgets              default          -      yes
edit        update            batch                jobs/status          default          x      no
edit        patch             batch                jobs/status          default          x      no
edit        update            -                    pods/status          default          x      no
edit        patch             example.com          widgets/status       default          x      no
edit        create            -                    pods/binding         default          x      no
edit        create            -                    bindings             default          -      no
edit        create            -                    nodes                -                -      no
edit        patch             -                    nodes                -                here   no
edit        delete            -                    nodes                -                here   no
edit        deletecollection  -                    nodes                -                -      no
edit        patch             -                    nodes/status         -                here   no
edit        create            -                    nodes/proxy          -                here   no
edit        update            -                    namespaces/finalize  -                x      no
edit        patch             -                    namespaces/status    -                x      no
edit        get               -                    resourcequotas       default          x      yes
edit        create            -                    resourcequotas       default          -      no
edit        patch             -                    resourcequotas/status default         x      no
edit        deletecollection  -                    limitranges          default          -      no
edit        impersonate       -                    users                -                x      no
edit        PATCH             batch                jobs                 default          x      no

view        get               batch                jobs                 default          x      yes
view        list              -                    pods                 -                -      yes
view        watch             -                    events               default          -      yes
view        get               batch                jobs/status          default          x      yes
view        get               -                    pods/log             default          x      yes
view        get               -                    secrets              default          x      no
view        list              -                    secrets              default          -      no
view        watch             -                    secrets              -                -      no
view        create            batch                jobs                 default          -      no
view        update            batch                jobs                 default          x      no
view        patch             batch                jobs                 default          x      no
view        delete            -                    pods                 default          x      no
view        deletecollection  -                    pods                 default          -      no
view        patch             batch                jobs/status          default          x      no
view        create            -                    pods/eviction        default          x      no
view        get               -                    pods/exec            default          x      no
view        create            -                    pods/exec            default          x      no
view        create            -                    pods/attach          default          x      no
view        get               -                    pods/proxy           default          x      no
view        create            -                    serviceaccounts/token default         x      no

controller  list              batch                jobs                 -                -      yes
controller  update            batch                jobs/finalizers      default          x      yes
controller  patch             batch                jobs                 default          x      yes
controller  update            batch                jobs/status          default          x      yes
controller  create            -                    pods                 default          -      yes
controller  patch             -                    pods                 default          x      yes
controller  delete            -                    pods                 default          x      yes
controller  delete            -                    secrets              default          x      yes
controller  deletecollection  example.com          widgets              default          -      yes
controller  create            -                    pods/binding         default          x      yes
controller  patch             -                    pods/status          default          x      yes
controller  update            -                    namespaces/status    -                x      yes
controller  update            -                    namespaces/finalize  -                x      yes
controller  create            -                    serviceaccounts      default          -      yes
controller  create            -                    configmaps           default          -      yes
controller  create            -                    endpoints            default          -      yes
controller  create            discovery.k8s.io     endpointslices       default          -      yes
controller  update            -                    resourcequotas/status default         x      yes
controller  create            -                    resourcequotas       default          -      no
controller  create            -                    events               default          -      yes
controller  create            events.k8s.io        events               default          -      yes
controller  create            coordination.k8s.io  leases               kube-system      -      yes
controller  create            batch                jobs                 default          -      no
controller  create            -                    secrets              default          -      no
controller  create            -                    namespaces           -                -      no
controller  create            -                    nodes                -                -      no
controller  patch             -                    nodes/status         -                here   no
controller  get               -                    pods/log             default          x      no
controller  create            -                    pods/eviction        default          x      no
controller  create            -                    pods/exec            default          x      no
controller  create            batch                pods                 default          -      no

node        list              -                    nodes                -                -      yes
node        create            -                    nodes                -                -      yes
node        patch             -                    nodes                -                here   yes
node        patch             -                    nodes/status         -                here   yes
node        patch             -                    nodes                -                there  no
node        patch             -                    nodes/status         -                there  no
node        update            -                    nodes                -                -      no
node        delete            -                    nodes                -                here   no
node        watch             -                    pods                 -                -      yes
node        delete            -                    pods                 default          x      yes
node        patch             -                    pods/status          default          x      yes
node        create            -                    pods                 default          -      no
node        patch             -                    pods                 default          x      no
node        deletecollection  -                    pods                 default          -      no
node        create            -                    pods/binding         default          x      no
node        create            -                    pods/exec            default          x      no
node        get               -                    configmaps           default          x      yes
node        get               -                    secrets              default          x      yes
node        patch             -                    secrets              default          x      no
node        list              -                    services             -                -      yes
node        watch             -                    endpoints            -                -      yes
node        watch             discovery.k8s.io     endpointslices       -                -      yes
node        create            -                    events               default          -      yes
node        create            events.k8s.io        events               default          -      yes
node        delete            -                    events               default          x      no
node        create            coordination.k8s.io  leases               kube-node-lease  -      yes
node        update            coordination.k8s.io  leases               kube-node-lease  here   yes
node        update            coordination.k8s.io  leases               kube-node-lease  there  no
node        update            coordination.k8s.io  leases               kube-system      here   no
node        list              coordination.k8s.io  leases               kube-node-lease  -      no
node        get               batch                jobs                 default          x      no
node        patch             batch                jobs/status          default          x      no

edit        create            authentication.k8s.io selfsubjectreviews        -         -      yes
edit        create            authorization.k8s.io  selfsubjectaccessreviews  -         -      yes
edit        create            authorization.k8s.io  selfsubjectrulesreviews   -         -      yes
view        create            authentication.k8s.io selfsubjectreviews        -         -      yes
view        create            authorization.k8s.io  selfsubjectaccessreviews  -         -      yes
view        create            authorization.k8s.io  selfsubjectrulesreviews   -         -      yes
controller  create            authentication.k8s.io selfsubjectreviews        -         -      yes
controller  create            authorization.k8s.io  selfsubjectaccessreviews  -         -      yes
controller  create            authorization.k8s.io  selfsubjectrulesreviews   -         -      yes
node        create            authentication.k8s.io selfsubjectreviews        -         -      yes
node        create            authorization.k8s.io  selfsubjectaccessreviews  -         -      yes
node        create            authorization.k8s.io  selfsubjectrulesreviews   -         -      yes
node        list              authorization.k8s.io  selfsubjectrulesreviews   -         -      no
view        create            authorization.k8s.io  subjectaccessreviews      -         -      no
";

fn rows() -> impl Iterator<Item = (Identity, Attributes<'static>, bool, &'static str)> {
    ROWS.lines().filter(|row| !row.is_empty()).map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [role, verb, group, resource, namespace, name, answer] = words[..] else {
            panic!("not seven words: {row}");
        };
        let role = Role::ALL.into_iter().find(|known| known.name() == role).expect("a role");
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (resource, None),
        };
        let some = |word: &'static str| Some(word).filter(|word| *word != "-");
        let attributes = Attributes {
            verb,
            group: some(group).unwrap_or_default(),
            resource,
            subresource,
            namespace: some(namespace),
            name: some(name),
            path: "",
        };
        (Identity::of(role, "here"), attributes, answer == "yes", row)
    })
}

#[test]
fn every_row_is_answered_as_it_says() {
    let wrong: Vec<&str> = rows()
        .filter(|(who, asked, expected, _)| may(who, asked) != *expected)
        .map(|(.., row)| row)
        .collect();
    assert!(wrong.is_empty(), "answered otherwise:\n{}", wrong.join("\n"));
}

#[test]
fn every_resource_of_every_rule_has_a_row() {
    let tables = [
        (Role::Edit, EDIT),
        (Role::View, VIEW),
        (Role::Controller, CONTROLLER),
        (Role::Node, NODE),
    ];
    let everybody = tables.iter().map(|(role, _)| (*role, Table { allow: EVERYBODY, deny: &[] }));
    let everybody: Vec<_> = everybody.collect();
    for (role, table) in tables.into_iter().chain(everybody) {
        let allowed = table.allow.iter().map(|rule| (rule, true));
        let denied = table.deny.iter().map(|rule| (rule, false));
        for (rule, answer) in allowed.chain(denied) {
            for resource in rule.resources.iter().filter(|resource| **resource != "secrets/*") {
                let told = rows().any(|(who, asked, expected, _)| {
                    who.role == role
                        && expected == answer
                        && rule.matches(&who, &asked)
                        && names(resource, &asked)
                });
                assert!(told, "{role}: no row for {:?} {:?} {resource}", rule.verbs, rule.group);
            }
        }
    }
}

#[test]
fn a_nameless_node_owns_nothing() {
    let nobody = Identity::node("");
    let asked = Attributes { verb: "create", resource: "nodes", ..Attributes::default() };
    assert!(!may(&nobody, &asked));
    assert!(!may(&nobody, &Attributes { verb: "patch", name: Some(""), ..asked }));
}

#[test]
fn everyone_reads_what_there_is_and_only_admin_does_more_with_paths() {
    let readable = [
        "/",
        "/api",
        "/api/v1",
        "/apis/batch/v1",
        "/openapi/v3/api/v1",
        "/version",
        "/metrics",
        "/livez/ping",
        "/healthz",
    ];
    for role in Role::ALL {
        let who = Identity::of(role, "here");
        let is_admin = role == Role::Admin;
        for path in readable {
            assert!(may(&who, &Attributes::of_path("get", path)), "{role} get {path}");
            assert!(may(&who, &Attributes::of_path("head", path)), "{role} head {path}");
            assert_eq!(may(&who, &Attributes::of_path("post", path)), is_admin, "{role} {path}");
        }
        for path in ["/debug/pprof", "/metrics/", "/metricsx", "/apix", "/logs"] {
            assert_eq!(may(&who, &Attributes::of_path("get", path)), is_admin, "{role} {path}");
        }
    }
}
