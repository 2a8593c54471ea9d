//! What can be asked for: every path with its methods, as OpenAPI v3 writes them. It knows what is
//! served by its names, and types by theirs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::definitions::{META, type_name};
use super::parameters::{self, Parameter};
use super::types::PLACE;
use crate::discovery::{GROUP_VERSION, ServedResource, resources};
use crate::kinds;

/// The paths of a document.
pub(super) type Paths = BTreeMap<String, Value>;

/// The media types of objects in answers.
const ANSWERED: &[&str] = &["application/json", "application/yaml"];

/// The same of lists, which may be watches.
const LISTED: &[&str] = &["application/json", "application/json;stream=watch", "application/yaml"];

/// The media types of logs.
const LOGGED: &[&str] = &["text/plain"];

/// The media types of what takes a connection over.
const CONNECTED: &[&str] = &["*/*"];

/// The media types of patches.
pub(super) const PATCHED: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The paths of a group and version.
pub(super) fn group_version_paths(group: &str) -> Paths {
    let base = match group {
        "" => format!("/api/{GROUP_VERSION}"),
        group => format!("/apis/{group}/{GROUP_VERSION}"),
    };
    let naming = Naming::of(group);
    let mut paths = Paths::new();
    let id = format!("get{}APIResources", naming.title);
    let what = told("get available resources", &id, &naming.tag, "APIResourceList");
    paths.insert(format!("{base}/"), json!({"get": what}));
    for resource in resources(group) {
        add_resource(&mut paths, &base, &naming, &resource);
    }
    paths
}

/// The paths of a group: which versions it has.
pub(super) fn group_paths(group: &str) -> Paths {
    let word = short(group);
    let id = format!("get{}APIGroup", title(word));
    let what = told("get information of a group", &id, word, "APIGroup");
    Paths::from([(format!("/apis/{group}/"), json!({"get": what}))])
}

/// Which versions the core has, which groups there are, and which version this is.
pub(super) fn other_paths(name: &str) -> Option<Paths> {
    let (path, what) = match name {
        "api" => {
            let what = "get available API versions";
            ("/api/", told(what, "getCoreAPIVersions", "core", "APIVersions"))
        }
        "apis" => {
            let what = "get available API versions";
            ("/apis/", told(what, "getAPIVersions", "apis", "APIGroupList"))
        }
        "version" => {
            let info = "io.k8s.apimachinery.pkg.version.Info";
            let responses = responses(&[200], &refers(info), &ANSWERED[..1]);
            let what = json!({
                "description": "get the version information for this server",
                "operationId": "getCodeVersion",
                "responses": responses,
                "tags": ["version"],
            });
            ("/version/", what)
        }
        _ => return None,
    };
    Some(Paths::from([(path.to_owned(), json!({"get": what}))]))
}

fn told(what: &str, id: &str, tag: &str, kind: &str) -> Value {
    json!({
        "description": what,
        "operationId": id,
        "responses": responses(&[200], &refers(&format!("{META}{kind}")), ANSWERED),
        "tags": [tag],
    })
}

/// How a group and version are called in the names of operations.
struct Naming {
    /// `BatchV1`.
    title: String,
    /// `batch_v1`.
    tag: String,
}

impl Naming {
    fn of(group: &str) -> Self {
        let word = short(group);
        Naming {
            title: format!("{}{}", title(word), title(GROUP_VERSION)),
            tag: format!("{word}_{GROUP_VERSION}"),
        }
    }
}

/// The first word of a group.
fn short(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(word) => word,
    }
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn add_resource(paths: &mut Paths, base: &str, naming: &Naming, resource: &ServedResource) {
    let within = if resource.is_namespaced { "/namespaces/{namespace}" } else { "" };
    let all = format!("{base}{within}/{}", resource.plural);
    let Some(part) = resource.part else {
        let mut on_all = Vec::new();
        let mut on_one = Vec::new();
        for verb in &resource.verbs {
            let operation = Operation { naming, resource, verb };
            match *verb {
                // To watch is to list with a parameter.
                "watch" => {}
                "list" | "create" | "deletecollection" => on_all.push(operation),
                _ => on_one.push(operation),
            }
        }
        paths.insert(all.clone(), path_item(&on_all, false));
        if !on_one.is_empty() {
            paths.insert(format!("{all}/{{name}}"), path_item(&on_one, true));
        }
        if resource.is_namespaced && resource.verbs.contains(&"list") {
            let everywhere = Operation { naming, resource, verb: "list" };
            let item = everywhere.everywhere();
            paths.insert(format!("{base}/{}", resource.plural), item);
        }
        return;
    };
    let operations: Vec<Operation<'_>> =
        resource.verbs.iter().map(|verb| Operation { naming, resource, verb }).collect();
    paths.insert(format!("{all}/{{name}}/{part}"), path_item(&operations, true));
}

/// Operations of one path. The parameters that all of them have stand once.
fn path_item(operations: &[Operation<'_>], is_named: bool) -> Value {
    let lists: Vec<Vec<Parameter>> =
        operations.iter().map(|operation| operation.parameters(is_named)).collect();
    let is_shared = |parameter: &Parameter| lists.iter().all(|list| list.contains(parameter));
    let mut item = Map::new();
    for (operation, list) in operations.iter().zip(&lists) {
        let own: Vec<&Parameter> = list.iter().filter(|own| !is_shared(own)).collect();
        item.insert(operation.method().to_owned(), operation.write(&own));
    }
    let shared: Vec<&Parameter> =
        lists.first().into_iter().flatten().filter(|shared| is_shared(shared)).collect();
    item.insert("parameters".to_owned(), parameters::write(&shared));
    Value::Object(item)
}

/// A verb on a resource.
struct Operation<'r> {
    naming: &'r Naming,
    resource: &'r ServedResource,
    verb: &'r str,
}

impl Operation<'_> {
    fn method(&self) -> &'static str {
        match self.verb {
            "create" => "post",
            "update" => "put",
            "patch" => "patch",
            "delete" | "deletecollection" => "delete",
            _ => "get",
        }
    }

    /// As `x-kubernetes-action` calls it.
    fn action(&self) -> &str {
        match self.verb {
            _ if self.is_visit() => "connect",
            "create" => "post",
            "update" => "put",
            other => other,
        }
    }

    /// Whether the connection goes on with something else than HTTP.
    fn is_visit(&self) -> bool {
        matches!(self.resource.part, Some("exec" | "attach"))
    }

    fn parameters(&self, is_named: bool) -> Vec<Parameter> {
        let mut found = match (self.resource.part, self.verb) {
            (Some("log"), _) => parameters::LOG.to_vec(),
            (Some("exec"), _) => [parameters::COMMAND, parameters::VISIT].concat(),
            (Some("attach"), _) => parameters::VISIT.to_vec(),
            (_, "list") => parameters::LIST.to_vec(),
            (_, "create" | "update") => parameters::WRITE.to_vec(),
            (_, "patch") => [parameters::WRITE, parameters::PATCH].concat(),
            (_, "delete") => parameters::DELETE.to_vec(),
            (_, "deletecollection") => {
                let listed = parameters::LIST.iter().filter(|known| !known.is_of_watches());
                listed.chain(parameters::DELETE).cloned().collect()
            }
            _ => Vec::new(),
        };
        if is_named {
            // As Kubernetes says it: of the kind of the body.
            found.push(Parameter::name_of(self.resource.kind));
        }
        if self.resource.is_namespaced {
            found.push(parameters::NAMESPACE);
        }
        if !self.is_visit() {
            found.push(parameters::PRETTY);
        }
        found.sort();
        found
    }

    fn description(&self) -> String {
        let kind = self.resource.kind;
        let Some(part) = self.resource.part else {
            return match self.verb {
                "list" => format!("list or watch objects of kind {kind}"),
                "create" => format!("create {}{kind}", article(kind)),
                "deletecollection" => format!("delete collection of {kind}"),
                "delete" => format!("delete {}{kind}", article(kind)),
                "update" => format!("replace the specified {kind}"),
                "patch" => format!("partially update the specified {kind}"),
                _ => format!("read the specified {kind}"),
            };
        };
        let whole = self.whole_kind();
        if self.is_visit() {
            let method = self.method().to_uppercase();
            return format!("connect {method} requests to {part} of {whole}");
        }
        match self.verb {
            "create" => format!("create {part} of {}{whole}", article(whole)),
            "update" => format!("replace {part} of the specified {whole}"),
            "patch" => format!("partially update {part} of the specified {whole}"),
            _ => format!("read {part} of the specified {whole}"),
        }
    }

    /// The kind of the object that a part is of.
    fn whole_kind(&self) -> &'static str {
        let (group, plural) = (self.resource.group, self.resource.plural);
        kinds::find(group, GROUP_VERSION, plural)
            .map_or(self.resource.kind, |kind| kind.names().kind)
    }

    fn id(&self) -> String {
        let title = &self.naming.title;
        let scope = if self.resource.is_namespaced { "Namespaced" } else { "" };
        let part = self.resource.part.map(self::title).unwrap_or_default();
        let kind = self.whole_kind();
        if self.is_visit() {
            return format!("connect{title}{}{scope}{kind}{part}", self::title(self.method()));
        }
        match self.verb {
            "list" => format!("list{title}{scope}{kind}"),
            "create" => format!("create{title}{scope}{kind}{part}"),
            "deletecollection" => format!("delete{title}Collection{scope}{kind}"),
            "delete" => format!("delete{title}{scope}{kind}"),
            "update" => format!("replace{title}{scope}{kind}{part}"),
            "patch" => format!("patch{title}{scope}{kind}{part}"),
            _ => format!("read{title}{scope}{kind}{part}"),
        }
    }

    /// The group and version of what is sent and answered.
    fn kind_from(&self) -> (&'static str, &'static str) {
        self.resource.kind_from.unwrap_or((self.resource.group, GROUP_VERSION))
    }

    fn body_type(&self) -> String {
        let (group, version) = self.kind_from();
        type_name(group, version, self.resource.kind)
    }

    fn write(&self, own: &[&Parameter]) -> Value {
        let (group, version) = self.kind_from();
        let mut operation = json!({
            "description": self.description(),
            "operationId": self.id(),
            "responses": self.responses(),
            "tags": [self.naming.tag],
            "x-kubernetes-action": self.action(),
            "x-kubernetes-group-version-kind":
                {"group": group, "version": version, "kind": self.resource.kind},
        });
        if !own.is_empty() {
            operation["parameters"] = parameters::write(own);
        }
        if let Some(body) = self.body() {
            operation["requestBody"] = body;
        }
        operation
    }

    fn body(&self) -> Option<Value> {
        let any = |of: &str| json!({"*/*": {"schema": refers(of)}});
        match self.verb {
            _ if self.is_visit() => None,
            "create" | "update" => {
                Some(json!({"content": any(&self.body_type()), "required": true}))
            }
            "delete" | "deletecollection" => {
                Some(json!({"content": any(&format!("{META}DeleteOptions"))}))
            }
            "patch" => {
                let patch = json!({"schema": refers(&format!("{META}Patch"))});
                let content: Map<String, Value> =
                    PATCHED.iter().map(|of| ((*of).to_owned(), patch.clone())).collect();
                Some(json!({"content": content, "required": true}))
            }
            _ => None,
        }
    }

    fn responses(&self) -> Value {
        let own = refers(&self.body_type());
        let status = refers(&format!("{META}Status"));
        match (self.resource.part, self.verb) {
            (Some("log"), _) => responses(&[200], &json!({"type": "string"}), LOGGED),
            _ if self.is_visit() => responses(&[200], &json!({"type": "string"}), CONNECTED),
            (_, "list") => responses(&[200], &refers(&self.list_type()), LISTED),
            (_, "create") => responses(&[200, 201, 202], &own, ANSWERED),
            (_, "update" | "patch") => responses(&[200, 201], &own, ANSWERED),
            (_, "delete") if self.returns_deleted() => responses(&[200, 202], &own, ANSWERED),
            (_, "delete") => responses(&[200, 202], &status, ANSWERED),
            (_, "deletecollection") => responses(&[200], &status, ANSWERED),
            _ => responses(&[200], &own, ANSWERED),
        }
    }

    /// Kubernetes does not tell it of namespaces, though their deletions are answered so.
    fn returns_deleted(&self) -> bool {
        let (group, plural) = (self.resource.group, self.resource.plural);
        kinds::find(group, GROUP_VERSION, plural).is_some_and(|kind| {
            let manners = kind.manners();
            manners.returns_deleted && !manners.is_marked_first
        })
    }

    fn list_type(&self) -> String {
        type_name(self.resource.group, GROUP_VERSION, &format!("{}List", self.resource.kind))
    }

    /// The list of all namespaces, alone on its path.
    fn everywhere(&self) -> Value {
        let mut list = self.write(&[]);
        let (title, kind) = (&self.naming.title, self.resource.kind);
        list["operationId"] = format!("list{title}{kind}ForAllNamespaces").into();
        let mut found = [parameters::LIST, &[parameters::PRETTY]].concat();
        found.sort();
        json!({"get": list, "parameters": parameters::write(&found.iter().collect::<Vec<_>>())})
    }
}

/// Before the name of a kind, as Kubernetes says it.
fn article(word: &str) -> &'static str {
    match word.chars().next() {
        _ if word.ends_with('s') && !word.ends_with("ss") => "",
        Some('A' | 'E' | 'I' | 'O' | 'U') => "an ",
        _ => "a ",
    }
}

fn refers(of: &str) -> Value {
    json!({"$ref": format!("{PLACE}{of}")})
}

fn responses(codes: &[u16], schema: &Value, media_types: &[&str]) -> Value {
    let content: Map<String, Value> =
        media_types.iter().map(|of| ((*of).to_owned(), json!({"schema": schema}))).collect();
    let mut found = Map::new();
    for code in codes {
        let word = match code {
            201 => "Created",
            202 => "Accepted",
            _ => "OK",
        };
        found.insert(code.to_string(), json!({"description": word, "content": content}));
    }
    found.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::PatchType;
    use crate::verb::apply::ApplyPatch;

    #[test]
    fn every_patch_that_is_told_of_is_one() {
        let mut known: Vec<&str> = PatchType::ALL.map(PatchType::media_type).to_vec();
        known.push(ApplyPatch::MEDIA_TYPE);
        known.sort_unstable();
        assert_eq!(PATCHED, known);
    }
}
