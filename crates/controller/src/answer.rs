//! What an HTTP answer means: done, refused, or in doubt, and what it tells of the server.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use stint_ledger::op::{Outcome, Refusal};

/// How the server bears what is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// It answers.
    Fine,
    /// It asks for less, perhaps for a while: nothing was done.
    Busy(Option<Duration>),
    /// It has failed, or has not answered.
    Trouble,
}

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server refused, and did nothing.
    Refused(Refusal, Weather),
    /// Nobody knows whether it was done.
    Lost(String),
}

impl Failure {
    /// The same for a ledger.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Failure::Refused(refusal, _) => Outcome::Refused(refusal),
            Failure::Lost(_) => Outcome::InDoubt,
        }
    }

    /// What it tells of the server.
    pub(crate) fn weather(&self) -> Weather {
        match self {
            Failure::Refused(_, weather) => *weather,
            Failure::Lost(_) => Weather::Trouble,
        }
    }
}

/// The part of a Kubernetes `Status` that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<Cause>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Option<String>,
}

/// The cause of whatever is refused because its namespace is being deleted.
const NAMESPACE_GOES: &str = "NamespaceTerminating";

/// Sends a request and waits for the whole answer, for `limit` at most.
pub(crate) async fn send(
    client: &Client,
    request: Request<Body>,
    limit: Duration,
) -> Result<Bytes, Failure> {
    match tokio::time::timeout(limit, exchange(client, request)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Lost("no answer in time".to_owned())),
    }
}

async fn exchange(client: &Client, request: Request<Body>) -> Result<Bytes, Failure> {
    let lost = |error: kube::Error| Failure::Lost(error.to_string());
    let answer = client.send(request).await.map_err(lost)?;
    let code = answer.status();
    let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = header.and_then(|seconds| seconds.parse().ok());
    let body = answer.into_body().collect_bytes().await.map_err(lost)?;
    if code.is_success() { Ok(body) } else { Err(read(code, retry_after, &body)) }
}

/// What an answer means that is not a success.
fn read(code: StatusCode, retry_after: Option<u64>, body: &[u8]) -> Failure {
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let message = status.message.unwrap_or_else(|| code.to_string());
    let Details { retry_after_seconds, causes } = status.details.unwrap_or_default();
    let asked = retry_after.or(retry_after_seconds);
    let goes = causes.iter().flatten().any(|cause| cause.reason.as_deref() == Some(NAMESPACE_GOES));
    let refused = |refusal| Failure::Refused(refusal, Weather::Fine);
    match code.as_u16() {
        // A page that some proxy shows says nothing of the object.
        404 if status.reason.as_deref() == Some("NotFound") => refused(Refusal::NotFound),
        404 => Failure::Lost(message),
        409 if status.reason.as_deref() == Some("AlreadyExists") => refused(Refusal::AlreadyExists),
        409 => refused(Refusal::Conflict),
        429 => {
            let weather = Weather::Busy(asked.map(Duration::from_secs));
            Failure::Refused(Refusal::TryLater(message), weather)
        }
        403 if goes => refused(Refusal::NamespaceGoes(message)),
        // Who may do what, and how much of it, changes: a quota, a token that has run out.
        401 | 403 => refused(Refusal::TryLater(message)),
        400..500 => refused(Refusal::Rejected(message)),
        // Admission comes before the store: nothing was written.
        500 if message.contains("failed calling webhook") => refused(Refusal::TryLater(message)),
        _ => Failure::Lost(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, reason: &str, message: &str) -> Failure {
        let body = format!(r#"{{"reason":"{reason}","message":"{message}"}}"#);
        read(StatusCode::from_u16(code).expect("a code"), None, body.as_bytes())
    }

    fn refusal(failure: Failure) -> Option<Refusal> {
        match failure {
            Failure::Refused(refusal, _) => Some(refusal),
            Failure::Lost(_) => None,
        }
    }

    #[test]
    fn only_what_was_surely_not_done_is_refused() {
        let later = |text: &str| Some(Refusal::TryLater(text.to_owned()));
        let rows = [
            (status(404, "NotFound", "gone"), Some(Refusal::NotFound)),
            (status(409, "AlreadyExists", "x"), Some(Refusal::AlreadyExists)),
            (status(409, "Conflict", "x"), Some(Refusal::Conflict)),
            (status(403, "Forbidden", "exceeded quota"), later("exceeded quota")),
            (status(422, "Invalid", "bad"), Some(Refusal::Rejected("bad".to_owned()))),
            (status(429, "TooManyRequests", "slow"), later("slow")),
            (
                status(500, "InternalError", "failed calling webhook"),
                later("failed calling webhook"),
            ),
            (status(500, "InternalError", "etcd timed out"), None),
            (status(503, "ServiceUnavailable", "x"), None),
            (status(504, "Timeout", "x"), None),
            (status(404, "", "a page of a proxy"), None),
        ];
        for (failure, expected) in rows {
            assert_eq!(refusal(failure), expected);
        }
    }

    #[test]
    fn a_namespace_that_goes_is_told_from_what_is_forbidden_for_now() {
        let body = |reason: &str| {
            format!(
                r#"{{"reason":"Forbidden","message":"no","details":{{"causes":[{{"reason":"{reason}"}}]}}}}"#
            )
        };
        let read =
            |reason: &str| refusal(read(StatusCode::FORBIDDEN, None, body(reason).as_bytes()));
        let no = || "no".to_owned();
        assert_eq!(read("NamespaceTerminating"), Some(Refusal::NamespaceGoes(no())));
        assert_eq!(read("Other"), Some(Refusal::TryLater(no())));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it() {
        let busy = |header, body: &str| {
            read(StatusCode::TOO_MANY_REQUESTS, header, body.as_bytes()).weather()
        };
        assert_eq!(busy(Some(3), "{}"), Weather::Busy(Some(Duration::from_secs(3))));
        let details = r#"{"details":{"retryAfterSeconds":2}}"#;
        assert_eq!(busy(None, details), Weather::Busy(Some(Duration::from_secs(2))));
        assert_eq!(busy(None, "not JSON"), Weather::Busy(None));
    }
}
