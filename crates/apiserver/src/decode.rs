//! From the body of a request to an object. What the types pass over is found on the way;
//! the words for it come from the strict reader of `stint_api`, which is asked only when
//! something is wrong.

mod duplicate;
mod objects;

pub(crate) use objects::{MAX_OBJECTS, MAX_SCALARS, check_json, check_node, check_value};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use stint_api::decode::{Node, NodeValue, Problem, ProblemKind};
use stint_api::field_error::{FieldError, quote};
use stint_api::field_path::Path;

use crate::kind::Names;
use crate::object::KubernetesType;
use crate::protobuf::{self, envelope};
use crate::request::media::ANSWERED;
use crate::schema;
use crate::status::Status;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML as Kubernetes reads it.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// What becomes of fields that a type does not have, or that are given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are passed over.
    Ignore,
    /// They are passed over, and the client is warned.
    Warn,
    /// The request is refused.
    Strict,
}

/// The most warnings of one answer: enough to see what is wrong, and well below what clients
/// take as headers.
pub(crate) const MAX_WARNINGS: usize = 20;

/// What was read, and what the client should be warned of.
#[derive(Debug)]
pub struct Decoded<T> {
    /// The object.
    pub object: T,
    /// One warning each.
    pub warnings: Vec<String>,
}

impl<T> Decoded<T> {
    /// The same warnings with another object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Decoded<U> {
        Decoded { object: change(self.object), warnings: self.warnings }
    }
}

/// Reads the body of a request as an object of a kind.
pub(crate) fn body<T: KubernetesType>(
    body: &[u8],
    format: Format,
    validation: FieldValidation,
    names: &Names,
) -> Result<Decoded<T>, Status> {
    if format == Format::Protobuf {
        let object = from_protobuf(body, names)?;
        return Ok(Decoded { object, warnings: Vec::new() });
    }
    let mut object = None;
    let body = if format == Format::Json {
        check_json(body)?;
        let mut passed_over = false;
        match read_json(body, validation, &mut |_| passed_over = true) {
            Ok(read) => {
                let is_clean = validation == FieldValidation::Ignore
                    || (!passed_over && !duplicate::has_duplicates(body));
                if is_clean {
                    return Ok(Decoded { object: read, warnings: Vec::new() });
                }
                // Of a field that is given twice, this is the last.
                object = Some(read);
            }
            Err(_) => check_is_json(body, names)?,
        }
        // Nothing at all is an object without anything.
        if body.trim_ascii() == b"null" { b"{}" } else { body }
    } else {
        body
    };
    let mut documents = stint_api::decode::read(body).into_iter();
    let Some(document) = documents.next() else {
        return Err(unrecognized(names, "the body is empty"));
    };
    if documents.next().is_some() {
        return Err(unrecognized(names, "the body holds more than one object"));
    }
    let Some(mut root) = document.root else {
        return Err(Status::bad_request(join(&document.problems)));
    };
    check_type(&root, names)?;
    drop_empty_type(&mut root);
    objects::check_node(&root)?;
    let decoded = stint_api::decode::decode::<T>(&root);
    let mut problems = document.problems;
    problems.extend(decoded.problems);
    let refused = |why: String| not_handled(names, &why);
    let (strict, fatal): (Vec<Problem>, Vec<Problem>) =
        problems.into_iter().partition(is_about_strictness);
    if !fatal.is_empty() {
        return Err(refused(join(&fatal)));
    }
    let Some(object) = object.or(decoded.value) else {
        return Err(refused("it is no object".to_owned()));
    };
    let strict = strict.iter().map(words).collect();
    judge(object, strict, validation, |errors| {
        refused(format!("strict decoding error: {}", errors.join(", ")))
    })
}

/// Refuses what is no JSON: the strict reader would take it for YAML.
fn check_is_json(body: &[u8], names: &Names) -> Result<(), Status> {
    let Err(error) = serde_json::from_slice::<IgnoredAny>(body) else { return Ok(()) };
    let why = json_words(&error);
    let text = String::from_utf8_lossy(body);
    let shown = if body.is_empty() { "<empty>".into() } else { cut(text.into_owned()) };
    let why = format!("couldn't get version/kind; json parse error: {why} ({shown})");
    Err(unrecognized(names, &why))
}

/// Reads a patched object. What the patch has added and the type does not have is a problem
/// of the patch.
pub(crate) fn patched<T: KubernetesType>(
    value: Value,
    repeated: &[String],
    validation: FieldValidation,
) -> Result<Decoded<T>, Status> {
    check_value(&value, 0)?;
    let mut unknown = repeated.to_vec();
    // As text, so that one reader is compiled for what clients send.
    let text = value.to_string();
    let read = read_json(text.as_bytes(), validation, &mut |path| {
        unknown.push(format!("unknown field {}", quote(&field_path(&path))));
    });
    match read {
        Ok(object) => judge(object, unknown, validation, |errors| {
            invalid_patch(&value, &format!("strict decoding error: {}", errors.join(", ")))
        }),
        // A null where the type has none: the strict reader takes it for absent.
        Err(_) => {
            let root = stint_api::decode::read_str(&text).into_iter().find_map(|read| read.root);
            let root = root.ok_or_else(|| invalid_patch(&value, "it is no object"))?;
            let decoded = stint_api::decode::decode::<T>(&root);
            let (strict, fatal): (Vec<Problem>, Vec<Problem>) =
                decoded.problems.into_iter().partition(is_about_strictness);
            match decoded.value {
                Some(object) if fatal.is_empty() => {
                    let strict = repeated.iter().cloned().chain(strict.iter().map(words)).collect();
                    judge(object, strict, validation, |errors| {
                        let why = format!("strict decoding error: {}", errors.join(", "));
                        invalid_patch(&value, &why)
                    })
                }
                _ => Err(invalid_patch(&value, &join(&fatal))),
            }
        }
    }
}

/// The fields that a patch gives twice, in Kubernetes' words, if anybody wants to know.
pub(crate) fn repeated_fields(body: &[u8], validation: FieldValidation) -> Vec<String> {
    if validation == FieldValidation::Ignore || !duplicate::has_duplicates(body) {
        return Vec::new();
    }
    let problems = stint_api::decode::read(body).into_iter().flat_map(|read| read.problems);
    problems.filter(|problem| problem.kind == ProblemKind::Duplicate).map(|p| words(&p)).collect()
}

/// The members that operations of a JSON patch should not have, in Kubernetes' words.
pub(crate) fn strange_members(body: &[u8]) -> Vec<String> {
    let operations: Vec<Map<String, Value>> = serde_json::from_slice(body).unwrap_or_default();
    let is_strange = |name: &&String| !matches!(name.as_str(), "op" | "path" | "from" | "value");
    let strange = operations.iter().enumerate().flat_map(|(index, operation)| {
        let names = operation.keys().filter(is_strange);
        names.map(move |name| format!("json patch unknown field \"[{index}].{name}\""))
    });
    strange.take(MAX_WARNINGS).collect()
}

/// Reads what is not an object of a kind here, such as the options of a delete.
pub(crate) fn plain<T: DeserializeOwned>(
    body: &[u8],
    format: Format,
    api_version: &str,
    kind: &str,
) -> Result<T, Status> {
    match format {
        Format::Json => serde_json::from_slice(body).map_err(|error| {
            let why = json_words(&error);
            Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        }),
        Format::Yaml => {
            let document = stint_api::decode::read(body).into_iter().next();
            let root = document.and_then(|document| document.root);
            let root = root.ok_or_else(|| Status::bad_request("the body is not YAML"))?;
            serde_json::from_value(root.to_json())
                .map_err(|error| Status::bad_request(error.to_string()))
        }
        Format::Protobuf => plain_protobuf(body, api_version, kind),
    }
}

/// What is wrong with a JSON text, in Go's words where there is no more to say.
pub(crate) fn json_words(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// Reads protobuf as an object of a kind. Fields that the kind does not have are always passed
/// over: to be stricter, Kubernetes would have to know their names.
fn from_protobuf<T: KubernetesType>(body: &[u8], names: &Names) -> Result<T, Status> {
    let json_only = || Status::unsupported_media_type(&ANSWERED);
    let message = schema::of_kind(&names.api_version(), names.kind).ok_or_else(json_only)?;
    let envelope = envelope::open(body).map_err(|error| unrecognized(names, &error.to_string()))?;
    check_said(envelope.api_version, envelope.kind, names)?;
    let refused = |why: String| not_handled(names, &why);
    let value = protobuf::decode::object(envelope.raw, message)
        .map_err(|error| refused(error.to_string()))?;
    T::deserialize(&value).map_err(|error| refused(error.to_string()))
}

/// The same for what is no object. Options may name the version of the group they are sent to.
fn plain_protobuf<T: DeserializeOwned>(
    body: &[u8],
    api_version: &str,
    kind: &str,
) -> Result<T, Status> {
    let refused = |why: &dyn std::fmt::Display| Status::bad_request(why.to_string());
    let message = schema::of_kind(api_version, kind).expect("options have a message each");
    let envelope = envelope::open(body).map_err(|error| refused(&error))?;
    if !["", kind].contains(&envelope.kind) {
        return Err(refused(&format!("decoded object cannot be converted to {kind}")));
    }
    let value = protobuf::decode::object(envelope.raw, message).map_err(|error| refused(&error))?;
    T::deserialize(&value).map_err(|error| refused(&error))
}

/// Reads JSON, and tells of each field that the type does not have, if that is not to be ignored: to
/// find them takes a text for every field. The one who is told is `dyn`:
/// a closure has a type of its own for each `T`, and with it each type within `T` would be read
/// by code of its own, once per kind (half of what this crate takes to compile).
fn read_json<T: DeserializeOwned>(
    body: &[u8],
    validation: FieldValidation,
    passed_over: &mut dyn FnMut(serde_ignored::Path<'_>),
) -> Result<T, serde_json::Error> {
    if validation == FieldValidation::Ignore {
        return serde_json::from_slice(body);
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let object = serde_ignored::deserialize(&mut reader, passed_over)?;
    reader.end()?;
    Ok(object)
}

/// Takes an object with its unknown and repeated fields, or not.
fn judge<T>(
    object: T,
    strict: Vec<String>,
    validation: FieldValidation,
    refuse: impl FnOnce(&[String]) -> Status,
) -> Result<Decoded<T>, Status> {
    let warnings = match validation {
        FieldValidation::Strict if !strict.is_empty() => return Err(refuse(&strict)),
        FieldValidation::Ignore | FieldValidation::Strict => Vec::new(),
        FieldValidation::Warn => strict.into_iter().take(MAX_WARNINGS).collect(),
    };
    Ok(Decoded { object, warnings })
}

fn is_about_strictness(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Unknown | ProblemKind::Duplicate)
}

/// A problem in Kubernetes' words: `unknown field "spec.foo"`.
fn words(problem: &Problem) -> String {
    let path = quote(&problem.path.to_string());
    match problem.kind {
        ProblemKind::Unknown => format!("unknown field {path}"),
        ProblemKind::Duplicate => format!("duplicate field {path}"),
        ProblemKind::Syntax | ProblemKind::Limit | ProblemKind::Type => problem.to_string(),
    }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Refuses a body that says it is something else.
fn check_type(root: &Node, names: &Names) -> Result<(), Status> {
    let said = |field: &str| root.get(field).and_then(|entry| entry.value.as_str()).unwrap_or("");
    check_said(said("apiVersion"), said("kind"), names)
}

/// Takes out an apiVersion and a kind that say nothing: they may as well be left out.
fn drop_empty_type(root: &mut Node) {
    let NodeValue::Map(entries) = &mut root.value else { return };
    entries.retain(|entry| {
        let says_nothing = match &entry.value.value {
            NodeValue::Null => true,
            NodeValue::String(text) => text.is_empty(),
            NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::List(_) | NodeValue::Map(_) => {
                false
            }
        };
        !(says_nothing && matches!(entry.key.as_str(), "apiVersion" | "kind"))
    });
}

fn check_said(version: &str, kind: &str, names: &Names) -> Result<(), Status> {
    let expected = names.api_version();
    if !version.is_empty() && version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        )));
    }
    if !kind.is_empty() && kind != names.kind {
        return Err(Status::bad_request(format!(
            "{kind} in version {} cannot be handled as a {}: no kind {} is registered for version {} \
             here",
            quote(names.version),
            names.kind,
            quote(kind),
            quote(&expected)
        )));
    }
    Ok(())
}

fn not_handled(names: &Names, why: &str) -> Status {
    let (kind, version) = (names.kind, quote(names.version));
    Status::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {why}"))
}

fn unrecognized(names: &Names, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why}",
        names.kind
    ))
}

/// The most of a text that is shown: enough to know it by.
const SHOWN_BYTES: usize = 256;

fn cut(mut text: String) -> String {
    if text.len() > SHOWN_BYTES {
        let end = text.floor_char_boundary(SHOWN_BYTES);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn invalid_patch(value: &Value, why: &str) -> Status {
    let error = FieldError::invalid(&Path::field("patch"), cut(value.to_string()), why);
    Status::invalid_of("", "", "", &[error])
}

/// A path as Kubernetes writes it: `spec.containers[0].foo`.
fn field_path(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", field_path(parent)),
        Path::Map { parent, key } => {
            let parent = field_path(parent);
            if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") }
        }
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => field_path(parent),
    }
}

#[cfg(test)]
mod tests;
