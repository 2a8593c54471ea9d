//! Does to a server and to the model what the operations say, and compares.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use stint_store::{Options, Revision, Store};
use tempfile::TempDir;

use crate::kit::{Answer, Server};
use crate::model::{Model, Object};
use crate::operation::{Basis, Key, Label, Operation, View};

/// Runs a sequence of operations.
pub(crate) async fn run(operations: &[Operation]) {
    // Files are written only by those who come back to them.
    let restarts = operations.iter().any(|operation| matches!(operation, Operation::Restart));
    let mut world = World::new(restarts).await;
    for operation in operations {
        world.apply(operation).await;
    }
    let everything = View { namespace: None, label: None };
    world.list(everything, None, None).await;
}

struct World {
    folder: Option<TempDir>,
    store: Store,
    server: Server,
    model: Model,
}

impl World {
    async fn new(is_durable: bool) -> Self {
        let folder = is_durable.then(|| TempDir::new().expect("a folder"));
        let store = open(folder.as_ref());
        let server = Server::on(store.clone());
        for namespace in 0..2 {
            server.make_namespace(&format!("ns{namespace}")).await;
        }
        World { folder, store, server, model: Model::default() }
    }

    async fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::List(view, limit, meanwhile) => {
                self.list(*view, *limit, meanwhile.as_ref().as_ref()).await;
            }
            Operation::ListAt(view, back) => self.list_at(*view, *back).await,
            Operation::Watch(view, back) => self.watch(*view, *back).await,
            Operation::Restart => self.restart().await,
            change => self.change(change).await,
        }
    }

    async fn change(&mut self, change: &Operation) {
        match *change {
            Operation::Create(key, label) => {
                let path = format!("/api/v1/namespaces/ns{}/configmaps", key.0);
                let answer = self.write("POST", &path, object(key, label, None)).await;
                let expected = if self.model.get(key).is_some() { 409 } else { 201 };
                self.written(key, label, expected, &answer);
            }
            Operation::Update(key, label, basis) => {
                let now = self.model.get(key).map(|(version, _)| version);
                let (version, is_stale) = match basis {
                    Basis::Newest => (now, false),
                    Basis::None => (None, false),
                    Basis::Stale => (Some(now.unwrap_or(7) - 1), true),
                };
                let answer = self.write("PUT", &path(key), object(key, label, version)).await;
                let expected = match now {
                    None => 404,
                    Some(_) if is_stale => 409,
                    Some(_) => 200,
                };
                self.written(key, label, expected, &answer);
            }
            Operation::Patch(key, label) => {
                let labels = json!({"x": (label > 0).then(|| label.to_string())});
                let patch = json!({"metadata": {"labels": labels}});
                let answer = self.write("PATCH", &path(key), patch).await;
                let expected = if self.model.get(key).is_some() { 200 } else { 404 };
                self.written(key, label, expected, &answer);
            }
            Operation::Delete(key) => {
                let answer = self.write("DELETE", &path(key), Value::Null).await;
                let expected = if self.model.get(key).is_some() { 200 } else { 404 };
                assert_eq!(answer.code, expected, "{change:?}");
                if expected == 200 {
                    self.model.set(key, self.store.revision().get(), None);
                }
            }
            Operation::Compact(back) => {
                let revision = self.store.revision().get().saturating_sub(back);
                self.store.compact(Revision::new(revision)).await.expect("it can be forgotten");
            }
            Operation::Restart
            | Operation::List(..)
            | Operation::ListAt(..)
            | Operation::Watch(..) => unreachable!("no change: {change:?}"),
        }
    }

    /// Notes what a write came to. One that changes nothing has no version of its own.
    fn written(&mut self, key: Key, label: Label, expected: u16, answer: &Answer) {
        assert_eq!(answer.code, expected, "{key:?}: {:?}", answer.body);
        if expected >= 300 {
            return;
        }
        let version = version(&value(answer));
        match self.model.get(key) {
            Some((now, before)) if before == label => assert_eq!(version, now, "{key:?}"),
            _ => self.model.set(key, version, Some(label)),
        }
    }

    /// A list, page by page, all of them as of the first.
    async fn list(&mut self, view: View, limit: Option<usize>, meanwhile: Option<&Operation>) {
        let expected = self.model.list(view);
        let mut query = limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
        let mut meanwhile = meanwhile;
        let (mut seen, mut first) = (Vec::new(), None);
        loop {
            let answer = self.get(view, &query).await;
            if answer.code == 410 {
                let first = first.expect("the newest can be listed");
                assert!(first < self.store.oldest().get(), "{first} is kept");
                return;
            }
            assert_eq!(answer.code, 200, "{:?}", answer.body);
            let list = value(&answer);
            assert_eq!(*first.get_or_insert(version(&list)), version(&list));
            let page = items(&list);
            assert!(limit.is_none_or(|limit| page.len() <= limit), "{list}");
            seen.extend(page);
            let metadata = &list["metadata"];
            let left = expected.len() - seen.len();
            if let (Some(remaining), None) = (metadata["remainingItemCount"].as_u64(), view.label) {
                assert_eq!(remaining, left as u64, "{list}");
            }
            let Some(token) = metadata["continue"].as_str() else { break };
            query = format!("&limit={}&continue={token}", limit.expect("pages have limits"));
            if let Some(operation) = meanwhile.take() {
                self.change(operation).await;
            }
        }
        assert_eq!(seen, expected, "{view:?}");
    }

    async fn list_at(&self, view: View, back: u64) {
        let Some(revision) = self.ago(back) else { return };
        let query = format!("&resourceVersion={revision}&resourceVersionMatch=Exact");
        let answer = self.get(view, &query).await;
        if revision < self.store.oldest().get() {
            assert_eq!(answer.code, 410, "{revision}");
            return;
        }
        assert_eq!(answer.code, 200, "{:?}", answer.body);
        assert_eq!(items(&value(&answer)), self.model.list_at(view, revision), "{view:?}");
    }

    async fn watch(&self, view: View, back: u64) {
        let Some(revision) = self.ago(back) else { return };
        let query = format!("&watch=true&timeoutSeconds=1&resourceVersion={revision}");
        let request = Request::get(uri(view, &query)).body(Bytes::new()).expect("a request");
        let answer = self.server.watch(request).await;
        assert_eq!(answer.code, 200);
        let lines = answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events: Vec<Value> =
            lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect();
        if revision < self.store.oldest().get() {
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!(
                (&events[0]["type"], &events[0]["object"]["code"]),
                (&"ERROR".into(), &410.into())
            );
            return;
        }
        let events: Vec<(&str, Key, Object)> = events
            .iter()
            .map(|event| {
                let (key, object) = item(&event["object"]);
                (event["type"].as_str().expect("a type"), key, object)
            })
            .collect();
        assert_eq!(events, self.model.watch(view, revision), "{view:?} from {revision}");
    }

    async fn restart(&mut self) {
        self.store.close().await.expect("it can be closed");
        // The old server goes before the new one comes: it holds the folder.
        self.server = Server::on(Store::in_memory(Options::default()));
        self.store = Store::in_memory(Options::default());
        self.store = open(self.folder.as_ref());
        self.server = Server::on(self.store.clone());
    }

    /// A revision from which on everything is known; none if there is none yet.
    fn ago(&self, back: u64) -> Option<u64> {
        // The two namespaces were the first.
        Some(self.store.revision().get().saturating_sub(back)).filter(|revision| *revision >= 2)
    }

    async fn get(&self, view: View, query: &str) -> Answer {
        let request = Request::get(uri(view, query)).body(Bytes::new()).expect("a request");
        self.server.send(request).await
    }

    async fn write(&self, method: &str, path: &str, body: Value) -> Answer {
        let media_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", media_type).body(body).expect("a request");
        self.server.send(request).await
    }
}

fn open(folder: Option<&TempDir>) -> Store {
    match folder {
        Some(folder) => {
            Store::open(folder.path().join("store"), Options::default()).expect("a store")
        }
        None => Store::in_memory(Options::default()),
    }
}

fn path(key: Key) -> String {
    format!("/api/v1/namespaces/ns{}/configmaps/c{}", key.0, key.1)
}

fn uri(view: View, query: &str) -> String {
    let within = view.namespace.map_or_else(String::new, |ns| format!("namespaces/ns{ns}/"));
    let selector = view.label.map_or_else(String::new, |label| format!("labelSelector=x={label}"));
    format!("/api/v1/{within}configmaps?{selector}{query}")
}

fn object(key: Key, label: Label, version: Option<u64>) -> Value {
    let labels = if label > 0 { json!({"x": label.to_string()}) } else { json!({}) };
    let version = version.map(|version| version.to_string());
    json!({"metadata":
        {"name": format!("c{}", key.1), "labels": labels, "resourceVersion": version}})
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no version: {object}"))
}

fn items(list: &Value) -> Vec<(Key, Object)> {
    list["items"].as_array().expect("a list").iter().map(item).collect()
}

fn item(object: &Value) -> (Key, Object) {
    let metadata = &object["metadata"];
    let number = |field: &str, head: &str| {
        let text = metadata[field].as_str().and_then(|text| text.strip_prefix(head));
        text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field}: {object}"))
    };
    let label = metadata["labels"]["x"].as_str().map_or(0, |label| label.parse().expect("a label"));
    ((number("namespace", "ns"), number("name", "c")), (version(object), label))
}
