//! A row: what is sent, and what should come back.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, Request};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};
use stint_api::decode;
use stint_apiserver::patch::{Patch, PatchType, schema};

use crate::differences::differences;
use crate::placeholder::Placeholders;

/// The files, and how many requests each has at least.
pub const FILES: [(&str, usize); 13] = [
    ("apply", 100),
    ("create", 80),
    ("delete", 140),
    ("get", 30),
    ("kind", 55),
    ("list", 110),
    ("part", 60),
    ("patch", 45),
    ("path", 35),
    ("quota", 170),
    ("status", 45),
    ("update", 60),
    ("watch", 62),
];

/// Who is asked: they need not answer the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The embedded server.
    Embedded,
    /// kube-apiserver.
    Kubernetes,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub code: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, to its end.
    pub body: Bytes,
    /// What time it was when the request was sent, by the clock of the server.
    pub asked_at: Timestamp,
}

/// A script of requests.
#[derive(Debug)]
pub struct Row {
    /// What it shows.
    pub name: String,
    /// The requests, in order.
    pub steps: Vec<Step>,
    /// Whether its namespace has to be there when it begins.
    pub needs_namespace: bool,
    shows_managed: bool,
}

/// A request and its answers.
#[derive(Debug)]
pub struct Step {
    send: String,
    body: Option<Value>,
    headers: Vec<(HeaderName, String)>,
    /// What kube-apiserver has answered.
    recorded: Value,
    /// What the embedded server answers.
    ours: Value,
    /// Names of what was taken out of the recorded answer.
    without: Vec<String>,
    /// Why the embedded server answers otherwise.
    pub differs: Option<String>,
}

/// What came of a row.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answers as rows write them.
    pub answers: Vec<Value>,
    /// What differs: the request, and a line for each difference.
    pub differences: Vec<String>,
}

/// What is written plainly in the queries of rows.
const PLAIN: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'\\').add(b'"');

impl Row {
    /// The rows of a file, which must not have lost any.
    pub fn read_all((file, at_least): (&str, usize)) -> Vec<Row> {
        let house = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = house.join("crates/apiserver/tests/requests");
        let text = fs::read(folder.join(format!("{file}.yaml"))).expect("a file of rows");
        let mut documents = decode::read(&text);
        assert_eq!(documents.len(), 1, "{file}: one document");
        let document = documents.remove(0);
        assert!(document.problems.is_empty(), "{file}: {:?}", document.problems);
        let rows = document.root.expect("rows").to_json();
        let rows: Vec<Row> =
            rows.as_array().expect("a list of rows").iter().map(Row::read).collect();
        let requests: usize = rows.iter().map(|row| row.steps.len()).sum();
        assert!(requests >= at_least, "{file} has lost requests: {requests}");
        rows
    }

    fn read(row: &Value) -> Row {
        let steps = row["steps"].as_array().expect("steps");
        Row {
            name: row["name"].as_str().expect("a name").to_owned(),
            steps: steps.iter().map(Step::read).collect(),
            needs_namespace: row["namespace"] != false,
            shows_managed: row["managed"] == true,
        }
    }

    /// Runs the row on a server in a namespace, which is there if it is needed. Each request is
    /// given to `send`.
    pub async fn run(
        &self,
        server: Server,
        namespace: &str,
        mut send: impl AsyncFnMut(Request<Bytes>) -> Answer,
    ) -> Outcome {
        let mut placeholders = Placeholders::new(namespace, self.shows_managed);
        let mut outcome = Outcome::default();
        for (number, step) in (1..).zip(&self.steps) {
            let answer = send(step.request(&placeholders)).await;
            placeholders.set_now(answer.asked_at);
            let mut got = shown(&answer, &mut placeholders);
            let mut expected = match server {
                Server::Embedded => step.ours.clone(),
                Server::Kubernetes => {
                    take_out(&mut got, &step.without);
                    take_out_bookmarks(&mut got["answer"]);
                    step.recorded.clone()
                }
            };
            if expected["answer"] == "-" {
                expected["answer"] = got["answer"].clone();
            }
            let found = differences(&expected, &got);
            if !found.is_empty() {
                let what = format!("  step {number}: {}\n{}", step.send, found.join("\n"));
                outcome.differences.push(what);
            }
            outcome.answers.push(got);
        }
        outcome
    }
}

impl Step {
    fn read(step: &Value) -> Step {
        let text = |key: &str| step[key].as_str().map(str::to_owned);
        let headers = [(CONTENT_TYPE, "type"), (ACCEPT, "accept"), (USER_AGENT, "agent")];
        let mut headers: Vec<(HeaderName, String)> =
            headers.into_iter().filter_map(|(header, key)| Some((header, text(key)?))).collect();
        let body = step.get("body").cloned();
        if body.is_some() && !headers.iter().any(|(header, _)| header == CONTENT_TYPE) {
            headers.push((CONTENT_TYPE, "application/json".to_owned()));
        }
        let mut recorded = Map::new();
        for key in ["code", "headers", "answer"] {
            recorded.insert(key.to_owned(), step.get(key).cloned().unwrap_or(json!({})));
        }
        let recorded = Value::Object(recorded);
        let mut ours = recorded.clone();
        if let Some(patch) = step.get("ours") {
            let patch = Patch::read(PatchType::Merge, patch.to_string().as_bytes());
            let patched = patch.expect("a patch").apply(ours, &schema::PLAIN);
            ours = patched.expect("ours is laid over the answer");
        }
        let without = step["without"].as_array().into_iter().flatten();
        let without = without.filter_map(Value::as_str).map(str::to_owned).collect();
        Step {
            send: text("send").expect("what is sent"),
            body,
            headers,
            recorded,
            ours,
            without,
            differs: text("differs"),
        }
    }

    fn request(&self, placeholders: &Placeholders) -> Request<Bytes> {
        let filled = placeholders.fill(&self.send);
        let (method, path) = filled.split_once(' ').expect("a method and a path");
        let uri = utf8_percent_encode(path, PLAIN).to_string();
        let mut request = Request::builder().method(method).uri(uri);
        for (header, value) in &self.headers {
            request = request.header(header, value);
        }
        let body = match &self.body {
            None => Bytes::new(),
            Some(Value::String(text)) => placeholders.fill(text).into(),
            Some(value) => placeholders.fill_all(value).to_string().into(),
        };
        request.body(body).expect("a request")
    }
}

/// An answer as rows write it.
fn shown(answer: &Answer, placeholders: &mut Placeholders) -> Value {
    let mut headers = Map::new();
    let media_type = answer.headers.get(CONTENT_TYPE);
    let media_type = media_type.map_or("", |header| header.to_str().expect("plain text"));
    if !matches!(media_type, "" | "application/json") {
        headers.insert("Content-Type".to_owned(), media_type.into());
    }
    let warnings: Vec<String> = answer
        .headers
        .get_all(WARNING)
        .iter()
        .map(|warning| placeholders.put_text(warning.to_str().expect("plain text")))
        .collect();
    if !warnings.is_empty() {
        headers.insert("Warning".to_owned(), json!(warnings));
    }
    if let Some(seconds) = answer.headers.get(RETRY_AFTER) {
        headers.insert("Retry-After".to_owned(), seconds.to_str().expect("plain text").into());
    }
    let text = std::str::from_utf8(&answer.body).expect("answers are text");
    let is_watch = text.starts_with(r#"{"type":""#);
    let shown = match media_type {
        _ if text.is_empty() => "".into(),
        "application/json" if is_watch => text
            .lines()
            .map(|line| placeholders.put_event(&serde_json::from_str(line).expect("JSON")))
            .collect(),
        "application/json" => placeholders.put(&serde_json::from_str(text).expect("JSON")),
        "application/yaml" => {
            let document = decode::read_str(text).remove(0);
            placeholders.put(&document.root.expect("YAML").to_json())
        }
        _ => placeholders.put_text(text).into(),
    };
    json!({"code": answer.code, "headers": headers, "answer": shown})
}

/// Takes out of what kube-apiserver answers what the embedded server does not have.
fn take_out(answer: &mut Value, names: &[String]) {
    match answer {
        Value::String(text) => {
            let of_answers = ["only the following media types are accepted", "Available repr"];
            if of_answers.iter().any(|part| text.contains(part)) {
                *text = text.replace(", application/vnd.kubernetes.protobuf", "");
            }
        }
        Value::Array(items) => {
            let is_named = |item: &Value| {
                let name = item["name"].as_str();
                name.is_some_and(|name| names.iter().any(|other| other == name))
            };
            items.retain(|item| !is_named(item));
            items.iter_mut().for_each(|item| take_out(item, names));
        }
        Value::Object(members) => members.values_mut().for_each(|value| take_out(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes the bookmarks out of the events of a watch that say how far it is and nothing else: whether
/// one comes depends on the moment.
fn take_out_bookmarks(answer: &mut Value) {
    let Value::Array(events) = answer else { return };
    let ends_a_list = |event: &Value| event.to_string().contains("k8s.io/initial-events-end");
    events.retain(|event| event["type"] != "BOOKMARK" || ends_a_list(event));
    if events.is_empty() {
        *answer = "".into();
    }
}
