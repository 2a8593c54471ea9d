//! Whether the server is well: `/livez`, `/readyz`, `/healthz`, and one check of theirs: `/livez/ping`.

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::access::HEALTH_PATHS;
use crate::answer::{self, Body};
use crate::api::Api;
use crate::kinds;

/// The answer of a health path.
fn answer_checks(checks: &[(&str, bool)], path: &str, is_verbose: bool) -> Response<Body> {
    let is_well = checks.iter().all(|(_, is_well)| *is_well);
    let code = if is_well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    let text = if is_well && !is_verbose {
        "ok".to_owned()
    } else {
        let mut text = String::new();
        for (name, is_well) in checks {
            let (sign, word) = if *is_well { ("+", "ok") } else { ("-", "failed") };
            text.push_str(&format!("[{sign}]{name} {word}\n"));
        }
        let word = if is_well { "passed" } else { "failed" };
        text.push_str(&format!("{} check {word}\n", path.trim_start_matches('/')));
        text
    };
    answer::answer(code, "text/plain; charset=utf-8", Body::from(Bytes::from(text)))
}

/// Alive as long as it can write; ready when it has its first namespace.
pub(crate) fn answer(path: &str, query: Option<&str>, api: &Api) -> Response<Body> {
    let is_verbose =
        query.is_some_and(|query| query.split('&').any(|part| part.starts_with("verbose")));
    answer_checks(&checks(path, api), path, is_verbose)
}

/// The answer of one check, if there is such a path.
pub(crate) fn answer_one(path: &str, api: &Api) -> Option<Response<Body>> {
    let (place, wanted) = path.rsplit_once('/')?;
    if !HEALTH_PATHS.contains(&place) {
        return None;
    }
    let (name, is_well) = checks(place, api).into_iter().find(|(name, _)| *name == wanted)?;
    let (code, text) = match is_well {
        true => (StatusCode::OK, "ok".to_owned()),
        false => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {name} failed\n"))
        }
    };
    Some(answer::answer(code, "text/plain; charset=utf-8", Body::from(Bytes::from(text))))
}

/// What is looked at for a path, and whether it is well.
fn checks(path: &str, api: &Api) -> Vec<(&'static str, bool)> {
    let mut checks = vec![("ping", true), ("store", !api.store.is_closed())];
    if path == "/readyz" {
        checks.push(("namespaces", api.current(kinds::namespaces(), None, "default").is_ok()));
    }
    checks
}
