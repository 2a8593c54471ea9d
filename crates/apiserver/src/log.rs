//! The logs of Pods: what can be asked for, and who answers. Where they are kept is the
//! business of whoever runs the Pods.

use std::fmt::Debug;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use stint_api::field_error::FieldError;
use stint_api::field_path::Path;

use crate::console::choose_container;
use crate::request::query::Query;
use crate::status::Status;

/// Which part of which log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Of which container; it is one of the Pod's.
    pub container: String,
    /// Whether to go on as the log grows.
    pub follow: bool,
    /// Whether of the container's run before this one.
    pub previous: bool,
    /// Of this run of the container, the first of which is 0; the newest otherwise. Kubernetes has no
    /// such choice.
    pub run: Option<u64>,
    /// Only what was written since then.
    pub since: Option<Timestamp>,
    /// Whether each line starts with its time.
    pub timestamps: bool,
    /// The last so many lines.
    pub tail_lines: Option<u64>,
    /// The first so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only of one of the two streams.
    pub stream: LogStream,
}

/// Which output of a container is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    /// Both.
    #[default]
    All,
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// The text of a log, piece by piece.
pub type LogText = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Whoever keeps the logs of Pods.
pub trait LogSource: Debug + Send + Sync {
    /// The log of a container of a Pod that was bound to a node.
    ///
    /// # Errors
    ///
    /// A sentence for the client: the container has not been started yet, or its log is gone.
    fn open(&self, pod: &Pod, options: &LogOptions) -> Result<LogText, String>;
}

/// No logs: nothing runs Pods here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogs;

impl LogSource for NoLogs {
    fn open(&self, _pod: &Pod, options: &LogOptions) -> Result<LogText, String> {
        let container = &options.container;
        Err(format!("container \"{container}\" has no log: no node runs Pods here"))
    }
}

impl LogOptions {
    /// Reads them from a query, for a Pod.
    pub(crate) fn read(query: &Query, pod: &Pod, now: Timestamp) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let count = |name: &'static str, least: i64, errors: &mut Vec<FieldError>| {
            let number = query.number(name)?;
            if let Some(number) = number.filter(|number| *number < least) {
                let detail = match least {
                    0 => "must be greater than or equal to 0",
                    _ => "must be greater than 0",
                };
                errors.push(FieldError::invalid(&Path::field(name), number, detail));
            }
            Ok::<_, Status>(number.and_then(|number| u64::try_from(number).ok()))
        };
        let run = count("run", 0, &mut errors)?;
        let tail_lines = count("tailLines", 0, &mut errors)?;
        let limit_bytes = count("limitBytes", 1, &mut errors)?;
        let since_seconds = count("sinceSeconds", 1, &mut errors)?;
        let since_time = query.get("sinceTime").map(|text| {
            text.parse::<Timestamp>().map_err(|error| {
                Status::bad_request(format!("sinceTime {text:?} is no RFC 3339 time: {error}"))
            })
        });
        let since_time = since_time.transpose()?;
        if since_seconds.is_some() && since_time.is_some() {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden(&Path::field("[]"), detail));
        }
        let stream = match query.get("stream") {
            None | Some("All") => LogStream::All,
            Some("Stdout") => LogStream::Stdout,
            Some("Stderr") => LogStream::Stderr,
            Some(other) => {
                let known = ["All", "Stdout", "Stderr"];
                errors.push(FieldError::not_supported(&Path::field("stream"), other, &known));
                LogStream::All
            }
        };
        if stream != LogStream::All && tail_lines.is_some() {
            let detail = "`tailLines` and specific `stream` are mutually exclusive for now";
            errors.push(FieldError::forbidden(&Path::field("[]"), detail));
        }
        if !errors.is_empty() {
            let name = pod.metadata.name.as_deref().unwrap_or("");
            return Err(Status::invalid_of("", "PodLogOptions", name, &errors));
        }
        let since_seconds = since_seconds.and_then(|seconds| {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            now.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok()
        });
        Ok(LogOptions {
            container: choose_container(query.get("container"), pod)?,
            follow: query.flag("follow")?.unwrap_or(false),
            previous: query.flag("previous")?.unwrap_or(false),
            run,
            since: since_seconds.or(since_time),
            timestamps: query.flag("timestamps")?.unwrap_or(false),
            tail_lines,
            limit_bytes,
            stream,
        })
    }
}
