//! Who asked for what, when, and what came of it: the audit log of Kubernetes at its level
//! `Metadata`, one JSON object a line, as tools that read kube-apiserver's know it. Nothing of what
//! was sent or answered is in it, so no secret is: why a body was refused is left out, as that
//! repeats parts of it.
//!
//! It must not know where the log goes.

mod file;

pub(crate) use file::Whose;
pub use file::{AuditFile, AuditFileError};

use std::borrow::Cow;
use std::net::SocketAddr;

use http::request::Parts;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::access::{Attributes, Identity, Peer};
use crate::chance;
use crate::status::Status;

/// The longest URI and the longest message that are written down: a selector that names a hundred
/// Jobs has 4 KB. Each is as long as a client likes, up to 64 KiB.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// The longest name of a program: as in kube-apiserver.
const MAX_AGENT_BYTES: usize = 1024;

/// What is put after a text that was cut: as in kube-apiserver.
const CUT: &str = "...TRUNCATED";

/// The code of an answer that nobody waited for, as proxies write it down.
const CLIENT_LEFT: u16 = 499;

/// One request, as far as it has come.
#[derive(Debug)]
pub(crate) struct Record {
    event: Map<String, Value>,
    whose: Whose,
}

impl Record {
    /// A request that has just come.
    pub(crate) fn new(parts: &Parts, now: Timestamp) -> Self {
        let uri = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        let mut event = Map::new();
        event.insert("kind".to_owned(), "Event".into());
        event.insert("apiVersion".to_owned(), "audit.k8s.io/v1".into());
        event.insert("level".to_owned(), "Metadata".into());
        event.insert("auditID".to_owned(), chance::uid().into());
        event.insert("stage".to_owned(), Value::Null);
        event.insert("requestURI".to_owned(), cut(uri, MAX_TEXT_BYTES).into());
        event.insert("verb".to_owned(), parts.method.as_str().to_ascii_lowercase().into());
        event.insert("user".to_owned(), json!({}));
        if let Some(address) = address(parts.extensions.get()) {
            event.insert("sourceIPs".to_owned(), json!([address.ip()]));
        }
        if let Some(agent) = user_agent(&parts.headers) {
            event.insert("userAgent".to_owned(), cut(agent, MAX_AGENT_BYTES).into());
        }
        event.insert("requestReceivedTimestamp".to_owned(), micros(now).into());
        Record { event, whose: Whose::Stranger }
    }

    /// Who it was.
    pub(crate) fn by(&mut self, identity: &Identity) {
        let user = json!({"username": identity.user, "groups": identity.groups});
        self.event.insert("user".to_owned(), user);
        let is_remote = self.event.contains_key("sourceIPs");
        self.whose = if is_remote { Whose::Client } else { Whose::Cluster };
    }

    /// As whom it was asked, if that was somebody else.
    pub(crate) fn on_behalf_of(&mut self, identity: &Identity) {
        let user = json!({"username": identity.user, "groups": identity.groups});
        self.event.insert("impersonatedUser".to_owned(), user);
    }

    /// Whose request it is.
    pub(crate) fn whose(&self) -> Whose {
        self.whose
    }

    /// What it was about, and whether that was allowed.
    pub(crate) fn about(&mut self, attributes: &Attributes<'_>, version: &str, is_allowed: bool) {
        self.event.insert("verb".to_owned(), attributes.verb.into());
        if !attributes.resource.is_empty() {
            let named = [
                ("resource", Some(attributes.resource)),
                ("namespace", attributes.namespace),
                ("name", attributes.name),
                ("apiGroup", Some(attributes.group)),
                ("apiVersion", Some(version)),
                ("subresource", attributes.subresource),
            ];
            let named = named.into_iter().filter_map(|(key, value)| Some((key, value?)));
            let object: Map<String, Value> = named
                .filter(|(_, value)| !value.is_empty())
                .map(|(key, value)| (key.to_owned(), value.into()))
                .collect();
            self.event.insert("objectRef".to_owned(), object.into());
        }
        let decision = if is_allowed { "allow" } else { "forbid" };
        let annotations = json!({"authorization.k8s.io/decision": decision});
        self.event.insert("annotations".to_owned(), annotations);
    }

    /// What it is known by.
    pub(crate) fn id(&self) -> &str {
        self.event["auditID"].as_str().expect("it is a text")
    }

    /// What came of it: the line for a log.
    pub(crate) fn line(
        &self,
        stage: Stage,
        code: StatusCode,
        refusal: Option<&Status>,
        now: Timestamp,
    ) -> Vec<u8> {
        let mut status = json!({"metadata": {}, "code": code.as_u16()});
        if let Some(refusal) = refusal {
            status["status"] = "Failure".into();
            if !matches!(refusal.code(), 400 | 422) {
                status["message"] = cut(refusal.message(), MAX_TEXT_BYTES).into();
            }
            status["reason"] = serde_json::to_value(refusal.reason()).expect("JSON serialises");
        }
        self.line_with(stage, status, now)
    }

    /// The same of a request that was not answered: its client has left, or something is wrong with
    /// the server.
    pub(crate) fn line_unanswered(&self, has_panicked: bool, now: Timestamp) -> Vec<u8> {
        let (stage, code, message) = if has_panicked {
            (Stage::Panic, 500, "the request panicked; it may have been carried out")
        } else {
            let message = "the client left before the answer; it may have been carried out";
            (Stage::ResponseComplete, CLIENT_LEFT, message)
        };
        let status = json!({"metadata": {}, "status": "Failure", "message": message, "code": code});
        self.line_with(stage, status, now)
    }

    fn line_with(&self, stage: Stage, status: Value, now: Timestamp) -> Vec<u8> {
        let mut event = self.event.clone();
        event.insert("stage".to_owned(), stage.name().into());
        event.insert("responseStatus".to_owned(), status);
        event.insert("stageTimestamp".to_owned(), micros(now).into());
        let mut line = serde_json::to_vec(&event).expect("JSON serialises");
        line.push(b'\n');
        line
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A watch or a log has begun, and may go on for any time.
    ResponseStarted,
    /// It is over.
    ResponseComplete,
    /// There is no answer, for want of a server that is well.
    Panic,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

fn address(peer: Option<&Peer>) -> Option<SocketAddr> {
    match peer? {
        Peer::Remote { address, .. } => Some(*address),
        Peer::InProcess(_) => None,
    }
}

fn user_agent(headers: &HeaderMap) -> Option<&str> {
    headers.get(http::header::USER_AGENT)?.to_str().ok()
}

/// A text that is not longer than so much, and says so if it was.
fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}{CUT}", &text[..text.floor_char_boundary(max_bytes)]))
}

/// A line that says how many are missing before it.
fn line_of_lost(count: u64) -> Vec<u8> {
    let now = micros(Timestamp::now());
    let event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": chance::uid(),
        "stage": Stage::ResponseComplete.name(),
        "requestURI": "",
        "verb": "",
        "user": {},
        "requestReceivedTimestamp": now,
        "stageTimestamp": now,
        "annotations": {"stint.dev/lost-lines": count.to_string()},
    });
    let mut line = serde_json::to_vec(&event).expect("JSON serialises");
    line.push(b'\n');
    line
}

/// As Kubernetes writes times that are more exact than seconds.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_line_says_who_asked_for_what_and_what_came_of_it() {
        let request = Request::builder()
            .method("PATCH")
            .uri("/apis/batch/v1/namespaces/default/jobs/a/status?force=true")
            .header("user-agent", "kubectl/v1.36.3");
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let address = ([127, 0, 0, 1], 4711).into();
        parts.extensions.insert(Peer::Remote { address, certificate: None });
        let mut record = Record::new(&parts, at("2026-05-01T12:00:00Z"));
        record.by(&Identity::view());
        record.on_behalf_of(&Identity::edit());
        let attributes = Attributes {
            verb: "patch",
            group: "batch",
            resource: "jobs",
            subresource: Some("status"),
            namespace: Some("default"),
            name: Some("a"),
            path: "/apis/batch/v1/namespaces/default/jobs/a/status",
        };
        record.about(&attributes, "v1", false);
        let refusal = Status::unauthorized();
        let now = at("2026-05-01T12:00:00.5Z");
        let line =
            record.line(Stage::ResponseComplete, StatusCode::UNAUTHORIZED, Some(&refusal), now);
        assert_eq!(line.last(), Some(&b'\n'));
        let mut event: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(event["auditID"].take(), record.id());
        let expected = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": null,
            "stage": "ResponseComplete",
            "requestURI": "/apis/batch/v1/namespaces/default/jobs/a/status?force=true",
            "verb": "patch",
            "user": {"username": "view", "groups": Identity::view().groups},
            "impersonatedUser": {"username": "edit", "groups": Identity::edit().groups},
            "sourceIPs": ["127.0.0.1"],
            "userAgent": "kubectl/v1.36.3",
            "objectRef": {
                "resource": "jobs",
                "namespace": "default",
                "name": "a",
                "apiGroup": "batch",
                "apiVersion": "v1",
                "subresource": "status",
            },
            "responseStatus": {
                "metadata": {},
                "status": "Failure",
                "message": "Unauthorized",
                "reason": "Unauthorized",
                "code": 401,
            },
            "requestReceivedTimestamp": "2026-05-01T12:00:00.000000Z",
            "stageTimestamp": "2026-05-01T12:00:00.500000Z",
            "annotations": {"authorization.k8s.io/decision": "forbid"},
        });
        assert_eq!(event, expected);

        let refusal = Status::bad_request("stringData.password: expected string, got 12345");
        let line =
            record.line(Stage::ResponseComplete, StatusCode::BAD_REQUEST, Some(&refusal), now);
        let event: Value = serde_json::from_slice(&line).expect("JSON");
        let expected =
            json!({"metadata": {}, "status": "Failure", "reason": "BadRequest", "code": 400});
        assert_eq!(event["responseStatus"], expected);
    }

    #[test]
    fn a_text_without_end_is_cut_and_says_so() {
        let request = Request::get(format!("/{}", "x".repeat(60_000)))
            .header("user-agent", "y".repeat(60_000));
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let record = Record::new(&parts, at("2026-05-01T12:00:00Z"));
        let line =
            record.line(Stage::ResponseComplete, StatusCode::OK, None, Timestamp::UNIX_EPOCH);
        let event: Value = serde_json::from_slice(&line).expect("JSON");
        let length = |name: &str| {
            let text = event[name].as_str().expect("a text");
            text.strip_suffix(CUT).expect("it says so").len()
        };
        assert_eq!((length("requestURI"), length("userAgent")), (MAX_TEXT_BYTES, MAX_AGENT_BYTES));
    }
}
