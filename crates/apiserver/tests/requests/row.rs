//! A row: what is sent, and what should come back.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT, WARNING};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};
use stint_api::decode;
use stint_apiserver::patch::{Patch, PatchType, schema};

use crate::differences::differences;
use crate::kit::{Answer, Server};
use crate::placeholder::Placeholders;

/// A script of requests.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    needs_namespace: bool,
    shows_managed: bool,
}

/// A request and its answer.
pub(crate) struct Step {
    send: String,
    body: Option<Value>,
    headers: Vec<(HeaderName, String)>,
    expected: Value,
    /// Why this server answers otherwise.
    pub(crate) differs: Option<String>,
}

/// What is written plainly in the queries of rows.
const PLAIN: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'\\').add(b'"');

impl Row {
    /// The rows of a file.
    pub(crate) fn read_all(file: &str) -> Vec<Row> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
        let text = fs::read(folder.join(format!("{file}.yaml"))).expect("a file of rows");
        let mut documents = decode::read(&text);
        assert_eq!(documents.len(), 1, "{file}: one document");
        let document = documents.remove(0);
        assert!(document.problems.is_empty(), "{file}: {:?}", document.problems);
        let rows = document.root.expect("rows").to_json();
        rows.as_array().expect("a list of rows").iter().map(Row::read).collect()
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

    /// Runs the row: what came back, and what of it differs.
    pub(crate) async fn run(&self, server: &Server, namespace: &str) -> (Vec<Value>, Vec<String>) {
        for name in ["default", "kube-system"] {
            server.make_namespace(name).await;
        }
        if self.needs_namespace {
            server.make_namespace(namespace).await;
        }
        let mut placeholders = Placeholders::new(namespace, self.shows_managed);
        let (mut came, mut wrong) = (Vec::new(), Vec::new());
        for step in &self.steps {
            let answer = server.watch(step.request(&placeholders)).await;
            let got = shown(&answer, &mut placeholders);
            let mut expected = step.expected.clone();
            if expected["answer"] == "-" {
                expected["answer"] = got["answer"].clone();
            }
            let found = differences(&expected, &got);
            if !found.is_empty() {
                wrong.push(format!("  {}\n{}", step.send, found.join("\n")));
            }
            came.push(got);
        }
        (came, wrong)
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
        let mut expected = Map::new();
        for key in ["code", "headers", "answer"] {
            expected.insert(key.to_owned(), step.get(key).cloned().unwrap_or(json!({})));
        }
        let mut expected = Value::Object(expected);
        if let Some(ours) = step.get("ours") {
            let patch = Patch::read(PatchType::Merge, ours.to_string().as_bytes());
            let patched = patch.expect("a patch").apply(expected, &schema::PLAIN);
            expected = patched.expect("ours is laid over the answer");
        }
        Step {
            send: text("send").expect("what is sent"),
            body,
            headers,
            expected,
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
