//! One call of the gRPC health protocol (`grpc.health.v1.Health/Check`), without TLS, as by a
//! kubelet. Two messages of one field each are all that it takes, so they are written and read here.
//!
//! ```text
//!   request   00 length(4) │ 0a length service
//!   answer    00 length(4) │ 08 status            trailers: grpc-status, grpc-message
//! ```

use std::fmt::Display;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The longest answer that is read: a health answer has seven bytes.
const ANSWER_BYTES: usize = 4096;

/// `Unimplemented` among the codes of gRPC.
const UNIMPLEMENTED: &str = "12";

/// Asks whether a service, or the server as a whole, is healthy.
pub(super) async fn check(host: &str, port: u16, service: &str) -> Result<(), String> {
    let address = format!("{host}:{port}");
    let unreached =
        |why: &dyn Display| format!("error: failed to connect service at \"{address}\": {why}");
    let stream = TcpStream::connect((host, port)).await.map_err(|error| unreached(&error))?;
    let made = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| unreached(&error))?;
    // It ends when the sender is dropped, or with the time that this all may take.
    let connection = tokio::spawn(connection);
    let _at_the_end = AbortOnDrop(connection.abort_handle());
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(Full::new(message(service)))
        .map_err(|error| unreached(&error))?;
    let failed = |why: &dyn Display| format!("error: health rpc probe failed: {why}");
    let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
    if answer.status() != http::StatusCode::OK {
        return Err(failed(&format_args!("HTTP {}", answer.status())));
    }
    // An answer without a body has what are trailers otherwise in its head.
    judge(answer.headers())?;
    let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| failed(&error))?;
    judge(&body.trailers().cloned().unwrap_or_default())?;
    match status(&body.to_bytes()) {
        Some(1) => Ok(()),
        Some(code) => Err(format!("service unhealthy (responded with {:?})", name(code))),
        None => Err(failed(&"the answer is no health answer")),
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The request for a service.
fn message(service: &str) -> Bytes {
    let mut field = BytesMut::new();
    if !service.is_empty() {
        field.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            field.put_u8((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        field.put_u8(length as u8);
        field.put_slice(service.as_bytes());
    }
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(u32::try_from(field.len()).expect("a name of the API is short"));
    message.put_slice(&field);
    message.freeze()
}

/// Whether a call came to anything, by its trailers.
fn judge(trailers: &HeaderMap) -> Result<(), String> {
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        None | Some("0") => Ok(()),
        Some(code) => {
            let said = text("grpc-message").unwrap_or("");
            let said = percent_encoding::percent_decode_str(said).decode_utf8_lossy();
            Err(match code {
                UNIMPLEMENTED => format!(
                    "error: this server does not implement the grpc health protocol \
                     (grpc.health.v1.Health): {said}"
                ),
                code => format!("error: health rpc probe failed: code = {code} desc = {said}"),
            })
        }
    }
}

/// The status in an answer. One that is zero is left out by who writes it.
fn status(answer: &[u8]) -> Option<u8> {
    let length = u32::from_be_bytes(answer.get(1..5)?.try_into().ok()?);
    let message = answer.get(5..)?;
    let is_whole = answer[0] == 0 && usize::try_from(length) == Ok(message.len());
    match message {
        _ if !is_whole => None,
        [] => Some(0),
        [0x08, code] if *code < 0x80 => Some(*code),
        _ => None,
    }
}

fn name(status: u8) -> &'static str {
    match status {
        0 => "UNKNOWN",
        1 => "SERVING",
        2 => "NOT_SERVING",
        3 => "SERVICE_UNKNOWN",
        _ => "a status that is not known",
    }
}
