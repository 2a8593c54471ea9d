//! Kubernetes `Status` answers: the one place that words what went wrong for a client. It
//! knows no HTTP beyond the code, and no store.

use serde::Serialize;
use stint_api::field_error::{FieldError, invalid_message, quote};

use crate::kind::Names;

/// The most errors of an object that an answer names, each of them twice: more than anybody
/// reads, and a body of empty objects is not answered with a hundred times its bytes.
const MAX_ERRORS: usize = 1_000;

/// Why a request was not carried out, as the client is told.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Status {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: Box<ListMeta>,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Reason::is_none")]
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<Details>>,
    /// Absent when an object is gone: there is nothing to say but that.
    #[serde(skip_serializing_if = "is_no_code")]
    code: u16,
}

/// Where a list that has lost its place may go on.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
struct ListMeta {
    #[serde(rename = "resourceVersion", skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    token: String,
}

/// The machine-readable reasons that this server gives.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub enum Reason {
    /// No reason: a success, or something that has only a message.
    #[serde(rename = "")]
    None,
    /// 404.
    NotFound,
    /// 409: the name is taken.
    AlreadyExists,
    /// 409: the object has changed meanwhile, or a precondition does not hold.
    Conflict,
    /// 410: the version is too old.
    Expired,
    /// 422.
    Invalid,
    /// 400.
    BadRequest,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 405.
    MethodNotAllowed,
    /// 406.
    NotAcceptable,
    /// 413.
    RequestEntityTooLarge,
    /// 415.
    UnsupportedMediaType,
    /// 429.
    TooManyRequests,
    /// A program has ended with another code than 0.
    NonZeroExitCode,
    /// 500.
    InternalError,
    /// 503.
    ServiceUnavailable,
    /// 504.
    Timeout,
}

impl Reason {
    fn is_none(&self) -> bool {
        *self == Reason::None
    }
}

#[derive(Clone, Debug, Default, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "is_zero")]
    retry_after_seconds: u32,
}

#[derive(Clone, Debug, Serialize, PartialEq)]
struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

fn is_no_code(code: &u16) -> bool {
    *code == 0
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Status {
    /// Nothing is known under that name.
    pub fn not_found(names: &Names, name: &str) -> Self {
        let message = format!("{} {} not found", names.qualified_plural(), quote(name));
        Self::of(names, name, 404, Reason::NotFound, message)
    }

    /// The path leads nowhere.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::failure(404, Reason::NotFound, message).with(Details::default())
    }

    /// The name is taken.
    pub fn already_exists(names: &Names, name: &str) -> Self {
        let message = format!("{} {} already exists", names.qualified_plural(), quote(name));
        Self::of(names, name, 409, Reason::AlreadyExists, message)
    }

    /// The name is taken by something that will soon be gone.
    pub fn still_exists(names: &Names, name: &str) -> Self {
        let mut status = Self::already_exists(names, name);
        status.message = format!("object is being deleted: {}", status.message);
        status
    }

    /// Every generated name was taken.
    pub fn no_free_name(names: &Names, name: &str) -> Self {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            names.qualified_plural(),
            quote(name)
        );
        Self::of(names, name, 409, Reason::AlreadyExists, message).retry_after(1)
    }

    /// The object is not as the request wants it to be.
    pub fn conflict(names: &Names, name: &str, why: impl std::fmt::Display) -> Self {
        let plural = names.qualified_plural();
        let message = format!("Operation cannot be fulfilled on {plural} {}: {why}", quote(name));
        Self::of(names, name, 409, Reason::Conflict, message)
    }

    /// The object is not the one that was meant, or not as it was. Kubernetes names the kind
    /// here rather than the resource.
    pub fn precondition_failed(names: &Names, name: &str, why: impl std::fmt::Display) -> Self {
        let qualified = qualified_kind(names.group, names.kind);
        let message =
            format!("Operation cannot be fulfilled on {qualified} {}: {why}", quote(name));
        let mut details = Details::about(names, name);
        details.kind = names.kind;
        Self::failure(409, Reason::Conflict, message).with(details)
    }

    /// The object was written by somebody else since the request's version.
    pub fn modified(names: &Names, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest \
                   version and try again";
        Self::conflict(names, name, why)
    }

    /// What is applied is owned by others, each as a message and a field.
    pub fn apply_conflict(message: String, causes: impl Iterator<Item = (String, String)>) -> Self {
        let cause = |(message, field)| Cause { reason: "FieldManagerConflict", message, field };
        let causes = causes.take(MAX_ERRORS).map(cause).collect();
        let details = Details { causes, ..Details::default() };
        Self::failure(409, Reason::Conflict, message).with(details)
    }

    /// The object breaks rules of its kind.
    pub fn invalid(names: &Names, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_of(names.group, names.kind, name, errors)
    }

    /// Options of a request, or a patched object, break their rules.
    pub fn invalid_of(
        group: &'static str,
        kind: &'static str,
        name: &str,
        errors: &[FieldError],
    ) -> Self {
        let told = &errors[..errors.len().min(MAX_ERRORS)];
        let mut message = invalid_message(&qualified_kind(group, kind), name, told);
        if told.len() < errors.len() {
            message.push_str(&format!(" and {} more", errors.len() - told.len()));
        }
        let causes = told
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason(),
                message: error.body(),
                field: error.path.to_string(),
            })
            .collect();
        let details = Details { name: name.to_owned(), group, kind, causes, ..Details::default() };
        Self::failure(422, Reason::Invalid, message).with(details)
    }

    /// The request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, Reason::BadRequest, message)
    }

    /// Nobody knows who is asking.
    pub fn unauthorized() -> Self {
        Self::failure(401, Reason::Unauthorized, "Unauthorized")
    }

    /// Whoever asks may not do this.
    pub fn forbidden(names: &Names, name: &str, why: impl std::fmt::Display) -> Self {
        let plural = names.qualified_plural();
        let message = if name.is_empty() {
            format!("{plural} is forbidden: {why}")
        } else {
            format!("{plural} {} is forbidden: {why}", quote(name))
        };
        Self::of(names, name, 403, Reason::Forbidden, message)
    }

    /// Whoever asks may not do this, in words that say it all.
    pub fn denied(names: &Names, name: &str, message: String) -> Self {
        Self::of(names, name, 403, Reason::Forbidden, message)
    }

    /// Whoever asks may not go there; for paths that are no resources.
    pub fn forbidden_path(message: impl Into<String>) -> Self {
        Self::failure(403, Reason::Forbidden, message).with(Details::default())
    }

    /// New things cannot be put into a namespace that is being emptied.
    pub fn namespace_terminating(names: &Names, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut status = Self::forbidden(names, name, why);
        let message = format!("namespace {namespace} is being terminated");
        let field = "metadata.namespace".to_owned();
        let details = status.details.get_or_insert_default();
        details.causes.push(Cause { reason: "NamespaceTerminating", message, field });
        status
    }

    /// The resource knows no such verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::failure(405, Reason::MethodNotAllowed, message).with(Details::default())
    }

    /// None of the media types that the client takes can be made.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let available = accepted.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::failure(406, Reason::NotAcceptable, message).with(Details::default())
    }

    /// What the client takes cannot be made of this.
    pub fn not_acceptable_view(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!("only the following media types are accepted: {accepted}");
        Self::failure(406, Reason::NotAcceptable, message)
    }

    /// One object is not a list of them, and the other way round.
    pub fn not_acceptable_shape(names: &Names, is_list: bool) -> Self {
        // Kubernetes names the Go type of what it has.
        let package = match names.group {
            "" => "core",
            group => group.split('.').next().unwrap_or(group),
        };
        let kind = names.kind;
        let message = if is_list {
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list \
                 (*{package}.{kind}List)"
            )
        } else {
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 (*{package}.{kind})"
            )
        };
        Self::failure(406, Reason::NotAcceptable, message)
    }

    /// The patch is of a type that there is not.
    pub fn unsupported_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::failure(415, Reason::UnsupportedMediaType, message).with(Details::default())
    }

    /// The body is of a media type that cannot be read here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(415, Reason::UnsupportedMediaType, message)
    }

    /// The body has too many bytes.
    pub fn too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit_bytes}");
        Self::failure(413, Reason::RequestEntityTooLarge, message)
    }

    /// There are more values in the body than it should become in memory.
    pub fn too_many_scalars(limit: usize) -> Self {
        let message = format!("Request entity too large: it may hold {limit} values at most");
        Self::failure(413, Reason::RequestEntityTooLarge, message)
    }

    /// There is more in the body than it should become in memory.
    pub fn too_many_objects(limit: usize) -> Self {
        let message = format!("Request entity too large: it may hold {limit} objects at most");
        Self::failure(413, Reason::RequestEntityTooLarge, message)
    }

    /// The version is not kept any more.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, Reason::Expired, message)
    }

    /// The pages of a list have outlived its version. The token goes on with the newest one.
    pub fn expired_continue(newest: u64, token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
                       result. You can start a new list without the continue parameter, or use \
                       the continue token in this response to retrieve the remainder of the \
                       results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time \
                       the first chunk was returned and now may show up in the list.";
        let mut status = Self::failure(410, Reason::Expired, message);
        *status.metadata = ListMeta { resource_version: newest.to_string(), token };
        status
    }

    /// The version has not come yet.
    pub fn too_large_version(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::failure(504, Reason::Timeout, message).with(details)
    }

    /// The server has as much to do as it can bear.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(429, Reason::TooManyRequests, message).retry_after(retry_after_seconds)
    }

    /// The request took too long; it may have been carried out.
    pub fn timeout(message: &str) -> Self {
        Self::failure(504, Reason::Timeout, format!("Timeout: {message}"))
    }

    /// The server cannot do this now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, Reason::ServiceUnavailable, message)
    }

    /// Something is wrong with the server.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        let cause = Cause { reason: "", message: why.to_string(), field: String::new() };
        let details = Details { causes: vec![cause], ..Details::default() };
        let message = format!("Internal error occurred: {why}");
        Self::failure(500, Reason::InternalError, message).with(details)
    }

    /// A patch that cannot be applied to the object it is for.
    pub fn unprocessable_patch(why: &str) -> Self {
        let head = "the server rejected our request due to an error in our request";
        let message = format!("{head}: {why}");
        Self::failure(422, Reason::Invalid, message).with(Details::default())
    }

    /// The object is gone, and this is what it was.
    pub fn deleted(names: &Names, name: &str, uid: &str) -> Self {
        // Kubernetes names the plural here, as everywhere but for invalid objects.
        let details = Details { uid: uid.to_owned(), ..Details::about(names, name) };
        Status { code: 0, ..Self::success() }.with(details)
    }

    /// The request was carried out and there is nothing to show.
    pub fn created() -> Self {
        Status { code: 201, ..Self::success() }
    }

    /// The request was carried out.
    pub fn success() -> Self {
        Status {
            kind: "Status",
            api_version: "v1",
            metadata: Box::default(),
            status: "Success",
            message: String::new(),
            reason: Reason::None,
            details: None,
            code: 200,
        }
    }

    /// A program has done what it was run for; for who has run it.
    pub fn success_of_a_program() -> Self {
        Status { code: 0, ..Self::success() }
    }

    /// A program has ended with this code, in the words of container runtimes.
    pub fn exited(code: i32, command: &str) -> Self {
        let cause = Cause { reason: "ExitCode", message: code.to_string(), field: String::new() };
        let details = Details { causes: vec![cause], ..Details::default() };
        let message = format!(
            "command terminated with non-zero exit code: error executing command [{command}], exit \
             code {code}"
        );
        Self::failure(0, Reason::NonZeroExitCode, message).with(details)
    }

    /// Whether something went wrong.
    pub fn is_failure(&self) -> bool {
        self.status == "Failure"
    }

    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        if self.code == 0 { 200 } else { self.code }
    }

    /// The reason that programs read.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What a person is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How long the client should wait before it tries again, if the server says so.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|&s| s > 0)
    }

    /// The answer's body.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data serialises")
    }

    fn of(names: &Names, name: &str, code: u16, reason: Reason, message: String) -> Self {
        Self::failure(code, reason, message).with(Details::about(names, name))
    }

    fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Status { status: "Failure", message: message.into(), reason, code, ..Self::success() }
    }

    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }
}

fn qualified_kind(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

impl Details {
    fn about(names: &Names, name: &str) -> Self {
        Details {
            name: name.to_owned(),
            group: names.group,
            kind: names.plural,
            ..Details::default()
        }
    }
}
