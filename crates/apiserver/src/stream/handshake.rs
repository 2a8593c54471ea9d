//! How a request becomes a WebSocket: what it has to say for that, and what it is answered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::channel::Protocol;
use crate::answer::Body;
use crate::status::Status;

/// What every server adds to a client's key (RFC 6455, 1.3).
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A request that may become a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) protocol: Protocol,
    /// Whether the client has named it.
    is_named: bool,
    accept: String,
}

/// Reads what a request says, and agrees on a protocol: the first of the client's that there is.
pub(crate) fn negotiate(headers: &HeaderMap) -> Result<Agreed, Status> {
    if !has_token(headers, &CONNECTION, "upgrade") || !headers.contains_key(UPGRADE) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    if !has_token(headers, &UPGRADE, "websocket") {
        return Err(Status::bad_request(format!(
            "unable to upgrade: only WebSockets are served here, with one of the protocols {}: use \
             a client that speaks them, such as kubectl 1.31 or newer",
            Protocol::names()
        )));
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Status::bad_request("unable to upgrade: Sec-WebSocket-Version must be 13"));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map_or(&b""[..], HeaderValue::as_bytes);
    if STANDARD.decode(key).map_or(0, |key| key.len()) != 16 {
        let message = "unable to upgrade: Sec-WebSocket-Key must be 16 bytes in base64";
        return Err(Status::bad_request(message));
    }
    let accept =
        STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, KEY_SUFFIX.as_bytes()].concat()));
    let asked: Vec<&str> = tokens(headers, &SEC_WEBSOCKET_PROTOCOL).collect();
    if asked.is_empty() {
        return Ok(Agreed { protocol: Protocol::UNNAMED, is_named: false, accept });
    }
    match asked.iter().find_map(|name| Protocol::find(name)) {
        Some(protocol) => Ok(Agreed { protocol, is_named: true, accept }),
        None => Err(Status::bad_request(format!(
            "unable to upgrade: requested protocol(s) are not supported: [{}]; supports {}",
            asked.join(" "),
            Protocol::names()
        ))),
    }
}

/// The answer after which the connection is a WebSocket.
pub(crate) fn accept(agreed: &Agreed) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let accept = HeaderValue::from_str(&agreed.accept).expect("base64 is a header");
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if agreed.is_named {
        let name = HeaderValue::from_static(agreed.protocol.name);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, name);
    }
    answer
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token))
}

/// The parts of a header that may come several times, or list several.
fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(changed: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let usual = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in usual.iter().chain(changed) {
            headers.remove(*name);
            if !value.is_empty() {
                headers.insert(*name, HeaderValue::from_static(value));
            }
        }
        headers
    }

    /// The key and its answer are those of RFC 6455, 1.3.
    #[test]
    fn a_key_is_answered_as_the_standard_says() {
        let asked = [("sec-websocket-protocol", "v9.channel.k8s.io, v4.channel.k8s.io")];
        let answer = accept(&negotiate(&headers(&asked)).expect("it may"));
        assert_eq!(answer.status(), 101);
        assert_eq!(answer.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(answer.headers()[SEC_WEBSOCKET_PROTOCOL], "v4.channel.k8s.io");
    }

    #[test]
    fn a_protocol_that_nobody_has_named_is_not_named() {
        let answer = accept(&negotiate(&headers(&[])).expect("it may"));
        assert_eq!(answer.headers().get(SEC_WEBSOCKET_PROTOCOL), None);
    }

    #[test]
    fn what_is_no_websocket_is_refused_with_the_reason() {
        let rows: [(&[_], _); 8] = [
            (&[("upgrade", "")], "Upgrade request required"),
            (&[("connection", "close")], "Upgrade request required"),
            (&[("upgrade", "SPDY/3.1")], "only WebSockets are served here"),
            (&[("sec-websocket-version", "8")], "Sec-WebSocket-Version must be 13"),
            (&[("sec-websocket-version", "")], "Sec-WebSocket-Version must be 13"),
            (&[("sec-websocket-key", "")], "16 bytes in base64"),
            (&[("sec-websocket-key", "c2hvcnQ=")], "16 bytes in base64"),
            (&[("sec-websocket-protocol", "chat")], "not supported: [chat]"),
        ];
        for (changed, expected) in rows {
            let refused = negotiate(&headers(changed)).expect_err("it may not");
            assert_eq!(refused.code(), 400, "{changed:?}");
            assert!(refused.message().contains(expected), "{changed:?}: {}", refused.message());
        }
    }
}
