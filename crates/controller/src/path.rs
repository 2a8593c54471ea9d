//! Where things are in the API.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands for itself in a path. The name in an owner reference may be any text.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// What is asked for and sent.
pub(crate) const JSON: &str = "application/json";

/// The Jobs of a namespace, or all.
pub(crate) fn jobs(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("/apis/batch/v1/namespaces/{}/jobs", segment(namespace)),
        None => "/apis/batch/v1/jobs".to_owned(),
    }
}

/// A Job.
pub(crate) fn job(namespace: &str, name: &str) -> String {
    format!("{}/{}", jobs(Some(namespace)), segment(name))
}

/// All Pods, or those of a namespace.
pub(crate) fn all_pods(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| "/api/v1/pods".to_owned(), pods)
}

/// The Pods of a namespace.
pub(crate) fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/pods", segment(namespace))
}

/// A Pod.
pub(crate) fn pod(namespace: &str, name: &str) -> String {
    format!("{}/{}", pods(namespace), segment(name))
}

/// The events of a namespace.
pub(crate) fn events(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/events")
}

/// An event.
pub(crate) fn event(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/events/{}", segment(name))
}

/// A page of a list, the newest there is; `token` says where the page before ended.
pub(crate) fn page(list: &str, limit: usize, token: &str) -> String {
    match token {
        "" => format!("{list}?limit={limit}"),
        token => {
            let token = utf8_percent_encode(token, NON_ALPHANUMERIC);
            format!("{list}?limit={limit}&continue={token}")
        }
    }
}

/// A version as a number; 0 where it is none.
pub(crate) fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn segment(name: &str) -> impl Display + '_ {
    utf8_percent_encode(name, NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_anyone_may_have_written_stays_a_name() {
        assert_eq!(job("ns", "a-b.c_d"), "/apis/batch/v1/namespaces/ns/jobs/a-b.c_d");
        assert_eq!(
            job("ns", "../x?y=ä z"),
            "/apis/batch/v1/namespaces/ns/jobs/..%2Fx%3Fy%3D%C3%A4%20z"
        );
        assert!(job("ns", "a\u{7}\n b").parse::<http::Uri>().is_ok());
    }
}
