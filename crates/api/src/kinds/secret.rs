//! A Secret: keys and their bytes, with a limit on the whole, and what its type asks for.

use std::borrow::Cow;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use super::{
    DATA_MAX_BYTES, IMMUTABLE_WHEN_SET, keep_identity, meta_field, once, shown,
    validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update, validate_same,
};
use crate::validation::{push_invalid, text};

/// Whether a PUT may create a Secret.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a Secret may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

const OPAQUE: &str = "Opaque";
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Prepares a new Secret: `stringData` goes into `data`, the type is Opaque if none is
/// given.
pub fn prepare_for_create(secret: &mut Secret) {
    set_defaults(secret);
    reset_server_fields(&mut secret.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut Secret, old: &Secret) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new Secret.
pub fn validate_create(secret: &Secret) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(secret, &mut errors);
    errors
}

/// Validates a prepared update against the stored Secret.
pub fn validate_update(new: &Secret, old: &Secret) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = Path::field("metadata");
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    validate_same(text(&new.type_), text(&old.type_), &Path::field("type"), &mut errors);
    if old.immutable == Some(true) {
        if new.immutable != Some(true) {
            let at = Path::field("immutable");
            errors.push(FieldError::forbidden(&at, IMMUTABLE_WHEN_SET));
        }
        if !new.data.iter().flatten().eq(old.data.iter().flatten()) {
            errors.push(FieldError::forbidden(&Path::field("data"), IMMUTABLE_WHEN_SET));
        }
    }
    validate(new, &mut errors);
    once(errors)
}

/// What a field selector sees of a Secret.
pub fn field<'a>(secret: &'a Secret, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "type" => shown(&secret.type_),
        _ => meta_field(&secret.metadata, name),
    }
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(secret: &mut Secret) {
    let texts = secret.string_data.take().unwrap_or_default();
    if !texts.is_empty() {
        let bytes = texts.into_iter().map(|(key, text)| (key, ByteString(text.into_bytes())));
        secret.data.get_or_insert_default().extend(bytes);
    }
    if text(&secret.type_).is_empty() {
        secret.type_ = Some(OPAQUE.to_owned());
    }
}

fn validate(secret: &Secret, errors: &mut Vec<FieldError>) {
    validate_object_meta(&secret.metadata, &Path::field("metadata"), errors);
    let data = Path::field("data");
    let mut total_bytes = 0;
    for (key, value) in secret.data.iter().flatten() {
        push_invalid(&data.key(key), key, identifier::config_map_key(key), errors);
        total_bytes += value.0.len();
    }
    if total_bytes > DATA_MAX_BYTES {
        errors.push(FieldError::too_long(&data, DATA_MAX_BYTES));
    }
    validate_type(secret, &data, errors);
}

/// What the type asks for. Types that nobody knows ask for nothing.
fn validate_type(secret: &Secret, data: &Path<'_>, errors: &mut Vec<FieldError>) {
    let value = |key: &str| secret.data.as_ref().and_then(|data| data.get(key));
    let missing: &[&str] = match text(&secret.type_) {
        SERVICE_ACCOUNT_TOKEN => return validate_account_name(secret, errors),
        "kubernetes.io/dockercfg" => return validate_json(".dockercfg", secret, data, errors),
        "kubernetes.io/dockerconfigjson" => {
            return validate_json(".dockerconfigjson", secret, data, errors);
        }
        "kubernetes.io/basic-auth" => match (value("username"), value("password")) {
            (None, None) => &["username", "password"],
            _ => &[],
        },
        "kubernetes.io/ssh-auth" => match value("ssh-privatekey") {
            Some(key) if !key.0.is_empty() => &[],
            _ => &["ssh-privatekey"],
        },
        "kubernetes.io/tls" => match (value("tls.crt"), value("tls.key")) {
            (None, None) => &["tls.crt", "tls.key"],
            (None, Some(_)) => &["tls.crt"],
            (Some(_), None) => &["tls.key"],
            (Some(_), Some(_)) => &[],
        },
        _ => &[],
    };
    errors.extend(missing.iter().map(|key| FieldError::required(&data.key(key), "")));
}

fn validate_account_name(secret: &Secret, errors: &mut Vec<FieldError>) {
    let annotations = secret.metadata.annotations.as_ref();
    let name = annotations.and_then(|annotations| annotations.get(SERVICE_ACCOUNT_NAME));
    if name.is_none_or(String::is_empty) {
        let metadata = Path::field("metadata");
        let annotations = metadata.child("annotations");
        errors.push(FieldError::required(&annotations.key(SERVICE_ACCOUNT_NAME), ""));
    }
}

fn validate_json(key: &str, secret: &Secret, data: &Path<'_>, errors: &mut Vec<FieldError>) {
    let here = data.key(key);
    let Some(value) = secret.data.as_ref().and_then(|data| data.get(key)) else {
        errors.push(FieldError::required(&here, ""));
        return;
    };
    if let Some(detail) = wrong_with_json(&value.0) {
        errors.push(FieldError::invalid(&here, "<secret contents redacted>", detail));
    }
}

/// Why the bytes are no JSON object, in Go's words.
fn wrong_with_json(bytes: &[u8]) -> Option<String> {
    let kind = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(Value::Array(_)) => "array",
        Ok(Value::String(_)) => "string",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Err(error) => return Some(in_go_words(&error, bytes)),
    };
    Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
}

/// What Go says where serde_json says something else. What is left, such as a bad escape,
/// stays in serde_json's words.
fn in_go_words(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = bytes.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1));
    let byte = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    let message = error.to_string();
    let (said, _) = message.rsplit_once(" at line").unwrap_or((&message, ""));
    let place = match said {
        "expected value" => "looking for beginning of value",
        "trailing comma" if byte == Some(&b']') => "looking for beginning of value",
        "key must be a string" | "trailing comma" => "looking for beginning of object key string",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "trailing characters" => "after top-level value",
        _ => return message,
    };
    match byte {
        Some(&byte) => format!("invalid character {:?} {place}", char::from(byte)),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_told_of_in_go_words() {
        let rows = [
            ("{}", None),
            ("null", None),
            ("", Some("unexpected end of JSON input")),
            ("{\"a\"", Some("unexpected end of JSON input")),
            ("x", Some("invalid character 'x' looking for beginning of value")),
            ("{\n\"a\": x}", Some("invalid character 'x' looking for beginning of value")),
            ("{a}", Some("invalid character 'a' looking for beginning of object key string")),
            (
                "{\"a\":1,}",
                Some("invalid character '}' looking for beginning of object key string"),
            ),
            ("[1,]", Some("invalid character ']' looking for beginning of value")),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
            ("{\"a\": 1 2}", Some("invalid character '2' after object key:value pair")),
            ("[1 2]", Some("invalid character '2' after array element")),
            ("{} x", Some("invalid character 'x' after top-level value")),
            (
                "7",
                Some("json: cannot unmarshal number into Go value of type map[string]interface {}"),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(wrong_with_json(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }
}
