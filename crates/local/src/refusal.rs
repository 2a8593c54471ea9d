//! What the API's refusals mean to those who ask on behalf of the cluster.

use kube::Error;

/// Why a request was not carried out, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such object, or no such namespace.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// The object is not as the request has it: look again.
    Conflict,
    /// The namespace takes nothing new, because it is being deleted.
    Terminating,
    /// What was asked for is too old to be kept: list anew.
    Expired,
    /// Anything else, among it what a busy or failing server says: ask again later.
    Other,
}

impl Refusal {
    /// What an error of the client means.
    pub(crate) fn of(error: &Error) -> Self {
        let Error::Api(status) = error else { return Refusal::Other };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        match (status.code, status.reason.as_str()) {
            (404, _) => Refusal::NotFound,
            (409, "AlreadyExists") => Refusal::AlreadyExists,
            (409, _) => Refusal::Conflict,
            (410, _) => Refusal::Expired,
            (403, _) if causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating") => {
                Refusal::Terminating
            }
            _ => Refusal::Other,
        }
    }
}

/// What went wrong, for the log: what the API said, without all that belongs to it.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
