//! From what a verb came to, to the bytes of an answer. It knows no store but its entries.

mod body;
mod gzip;
mod layout;
mod listed;
mod recent;
mod shown;
mod unread;
mod watched;

pub use body::{Body, TakenBack};
pub(crate) use body::{Lease, Lent};
pub(crate) use gzip::{compressed, gzip, mark as mark_gzip, takes_gzip};
pub(crate) use layout::Layout;
pub(crate) use listed::list_body;
pub(crate) use recent::RecentLines;
pub(crate) use shown::{Managed, Shown};
pub(crate) use unread::Unread;
pub(crate) use watched::watch_body;

use std::fmt::Write;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};

use crate::request::media::{AnswerFormat, Shape};
use crate::status::Status;

/// An answer with a body of a media type.
pub(crate) fn answer(code: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    // Objects change; nothing between the client and this server may keep one.
    let no_cache = HeaderValue::from_static("no-cache, private");
    answer.headers_mut().insert(http::header::CACHE_CONTROL, no_cache);
    answer
}

/// What an answer is known by: a hash of what it says.
pub(crate) fn entity_tag(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA512, content);
    let mut tag = String::from("\"");
    for byte in hash.as_ref() {
        write!(tag, "{byte:02X}").expect("a text takes everything");
    }
    tag.push('"');
    tag
}

/// The client has what it asks for.
pub(crate) fn not_modified() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    answer
}

/// JSON as the client wants it written.
pub(crate) fn written(code: StatusCode, json: Bytes, shape: Shape) -> Response<Body> {
    if (shape.format, shape.is_pretty) == (AnswerFormat::Json, false) {
        return answer(code, JSON, Body::from(json));
    }
    let value: serde_json::Value = match serde_json::from_slice(&json) {
        Ok(value) => value,
        Err(error) => {
            let why = format!("the answer cannot be laid out: {error}");
            return status_answer(&Status::internal(why), AnswerFormat::Json);
        }
    };
    match shape.format {
        AnswerFormat::Json => {
            let mut pretty = serde_json::to_vec_pretty(&value).expect("JSON serialises");
            pretty.push(b'\n');
            answer(code, JSON, Body::from(Bytes::from(pretty)))
        }
        AnswerFormat::Yaml => {
            let yaml = serde_saphyr::to_string(&value).expect("JSON can be written as YAML");
            answer(code, YAML, Body::from(Bytes::from(yaml)))
        }
    }
}

/// The media type of most answers.
pub(crate) const JSON: &str = "application/json";

/// The media type of the others.
const YAML: &str = "application/yaml";

/// The media type of a format.
pub(crate) fn media_type(format: AnswerFormat) -> &'static str {
    match format {
        AnswerFormat::Json => JSON,
        AnswerFormat::Yaml => YAML,
    }
}

/// A Status as an answer.
pub(crate) fn status_answer(status: &Status, format: AnswerFormat) -> Response<Body> {
    let code = StatusCode::from_u16(status.code()).expect("Status has codes of HTTP");
    let shape = Shape { format, ..Shape::PLAIN };
    let mut answer = written(code, Bytes::from(status.to_json()), shape);
    if let Some(seconds) = status.retry_after_seconds() {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if code == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(http::header::WWW_AUTHENTICATE, scheme);
    }
    answer
}

/// Adds what the client should know, as kubectl shows it.
pub(crate) fn add_warnings<W: AsRef<str>>(answer: &mut Response<Body>, warnings: &[W]) {
    for warning in warnings {
        let text = warning.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
        // A header holds no control characters; there are none in a path worth showing.
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            answer.headers_mut().append(WARNING, value);
        }
    }
}
