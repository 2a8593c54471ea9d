//! Which texts Kubernetes takes for a name, a label, a port, a key.
//!
//! Each function returns what is wrong with a text, in the API server's own
//! words, and nothing when it is right. The server matches with regular
//! expressions and quotes them in its messages; here each one is a few lines of
//! byte matching. Nothing here knows which field a text stands in, except where
//! upstream reports parts of one value as separate errors.

use crate::field_error::FieldError;
use crate::field_path::Path;

const LABEL_MAX_BYTES: usize = 63;
const SUBDOMAIN_MAX_BYTES: usize = 253;
const PORT_NAME_MAX_BYTES: usize = 15;

/// A DNS label as RFC 1123 has it: container, volume and host names.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_MAX_BYTES);
    if !is_dns1123_label(value) {
        if is_dns1123_subdomain(value) {
            wrong.push("must not contain dots".to_owned());
        } else {
            wrong.push(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
                 '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                    .to_owned(),
            );
        }
    }
    wrong
}

/// A DNS subdomain as RFC 1123 has it: the names of most objects.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_MAX_BYTES);
    wrong.extend(subdomain_syntax(value));
    wrong
}

/// A DNS subdomain whose labels may also contain underscores: DNS search domains.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_MAX_BYTES);
    if !value.split('.').all(is_dns1123_label_with_underscore) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// A DNS label as RFC 1035 has it: the names of Services.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_MAX_BYTES);
    if !(is_dns1123_label(value) && value.as_bytes()[0].is_ascii_lowercase()) {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// A label or annotation key, a finalizer, a resource name: `name` or `prefix/name`.
pub fn qualified_name(value: &str) -> Vec<String> {
    const SYNTAX: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
        and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
        used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut wrong = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > SUBDOMAIN_MAX_BYTES {
                    wrong.push("prefix part must be no more than 253 bytes".to_owned());
                }
                wrong.extend(subdomain_syntax(prefix).map(|text| format!("prefix part {text}")));
            }
            *name
        }
        _ => {
            wrong.push(format!(
                "a valid label key {SYNTAX} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
            return wrong;
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_BYTES {
        wrong.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        wrong.push(format!("name part {SYNTAX}"));
    }
    wrong
}

/// The value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_MAX_BYTES {
        wrong.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name_part(value) {
        wrong.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// An environment variable's name: since Kubernetes 1.34 any printable ASCII but `=`.
pub fn env_var_name(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !value.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// An HTTP header's name.
pub fn http_header_name(value: &str) -> Vec<String> {
    if all_of(value, |b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
         'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            .to_owned(),
    ]
}

/// The name of a port (an IANA service name, lower case only).
pub fn port_name(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, PORT_NAME_MAX_BYTES);
    if !all_of(value, is_lower_alphanumeric_or_dash) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// The number of a port.
pub fn port_number(value: i64) -> Vec<String> {
    in_range(value, 1, 65535)
}

/// A number between two bounds, both allowed.
pub fn in_range(value: i64, min: i64, max: i64) -> Vec<String> {
    if (min..=max).contains(&value) {
        return Vec::new();
    }
    vec![format!("must be between {min} and {max}, inclusive")]
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_MAX_BYTES);
    let in_set = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if !all_of(value, in_set) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match value {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if value.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// A text that becomes one segment of a URL path.
pub fn path_segment_name(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| value.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// A percentage: digits and a `%`.
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or("");
    if all_of(digits, |b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
         or '93%', regex used for validation is '[0-9]+%')"
            .to_owned(),
    ]
}

/// A path whose first segment is a domain, `acme.io/foo`: `spec.managedBy`.
///
/// Upstream reports the two halves as values of their own, so this one speaks
/// in field errors.
pub fn domain_prefixed_path(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let (host, rest) = match value.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, value, detail));
            return;
        }
    };
    for wrong in dns1123_subdomain(host) {
        errors.push(FieldError::invalid(path, host, wrong));
    }
    let in_set = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !all_of(rest, in_set) {
        let detail = "Invalid path (regex used for validation is \
            '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(FieldError::invalid(path, rest, detail));
    }
}

/// What a `generateName` is judged by: the name it would become, where a
/// trailing dash gets something to follow it.
///
/// Upstream replaces the last two bytes, not one; so does this.
pub fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(head) if !head.is_empty() => {
            let mut end = head.len() - 1;
            while !head.is_char_boundary(end) {
                end -= 1;
            }
            format!("{}a", &head[..end])
        }
        _ => name.to_owned(),
    }
}

fn subdomain_syntax(value: &str) -> Option<String> {
    if is_dns1123_subdomain(value) {
        return None;
    }
    Some(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
         or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
         used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned(),
    )
}

fn longer_than(value: &str, max_bytes: usize) -> Vec<String> {
    if value.len() <= max_bytes {
        return Vec::new();
    }
    // Upstream counts bytes and says characters.
    vec![format!("must be no more than {max_bytes} characters")]
}

fn is_dns1123_label(value: &str) -> bool {
    all_of(value, is_lower_alphanumeric_or_dash) && !value.starts_with('-') && !value.ends_with('-')
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

/// `_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?`
fn is_dns1123_label_with_underscore(value: &str) -> bool {
    let value = value.strip_prefix('_').unwrap_or(value);
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    all_of(value, |b| is_lower_alphanumeric_or_dash(b) || b == b'_')
        && edge(value.bytes().next())
        && edge(value.bytes().last())
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_name_part(value: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    all_of(value, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(value.bytes().next())
        && edge(value.bytes().last())
}

fn is_lower_alphanumeric_or_dash(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'
}

/// Whether there is a byte and every one is in the set.
fn all_of(value: &str, in_set: impl Fn(u8) -> bool) -> bool {
    !value.is_empty() && value.bytes().all(in_set)
}

#[cfg(test)]
mod tests;
