//! The tag of an image, which decides whether it is pulled again every time.
//!
//! The grammar is that of the distribution project's image references. Where
//! an image comes from is not known here.

const NAME_MAX_BYTES: usize = 255;
const TAG_MAX_BYTES: usize = 128;

/// The pull policy of an image for which none is given: `latest` may change
/// under its name, others should not. What cannot be read counts as not latest.
pub(super) fn default_pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        Some(_) | None => "IfNotPresent",
    }
}

/// The tag of an image reference: the one given, `latest` without one, empty
/// with only a digest, nothing when the text is no reference.
fn tag(image: &str) -> Option<&str> {
    if is_hex_id(image) {
        return None;
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    // A colon after the last slash starts a tag; one before it is a port.
    let last = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[last..].find(':') {
        Some(at) => (&rest[..last + at], Some(&rest[last + at + 1..])),
        None => (rest, None),
    };
    if !is_name(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    match (tag, digest) {
        (Some(tag), _) => Some(tag),
        (None, Some(_)) => Some(""),
        (None, None) => Some("latest"),
    }
}

/// An id looks like a name but never is one.
fn is_hex_id(image: &str) -> bool {
    image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// `domain/component/…`, where the first part is a domain if it looks like one.
fn is_name(name: &str) -> bool {
    let (path, implied_bytes) = match name.split_once('/') {
        Some((first, rest)) if is_domain_like(first) => {
            if !is_domain(first) {
                return false;
            }
            (rest, 0)
        }
        Some(_) => (name, 0),
        // A single name stands for one of Docker's own library.
        None => (name, "library/".len()),
    };
    implied_bytes + path.len() <= NAME_MAX_BYTES && path.split('/').all(is_component)
}

fn is_domain_like(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rfind(':') {
        Some(at) if !domain.ends_with(']') => (&domain[..at], Some(&domain[at + 1..])),
        _ => (domain, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(ip) => !ip.is_empty() && ip.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(is_domain_component),
    };
    is_host && port.is_none_or(is_port)
}

fn is_domain_component(part: &str) -> bool {
    !part.is_empty()
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !part.starts_with('-')
        && !part.ends_with('-')
}

/// Lower case letters and digits between single dots, one or two underscores,
/// or any number of dashes.
fn is_component(part: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let edges =
        part.bytes().next().is_some_and(is_plain) && part.bytes().last().is_some_and(is_plain);
    edges
        && part.split(|c: char| c.is_ascii() && is_plain(c as u8)).all(|separator| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|b| b == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= TAG_MAX_BYTES
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

/// `algorithm:hex`, of an algorithm the registry clients know, at its length.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let digits = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == digits && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_an_image_is_found_where_registries_find_it() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let with_digest = format!("busybox@{digest}");
        let with_both = format!("busybox:latest@{digest}");
        let id = "a".repeat(64);
        let (longest, too_long) = ("a".repeat(247), "a".repeat(248));
        let rows = [
            ("busybox", Some("latest")),
            ("busybox:1.36", Some("1.36")),
            ("localhost/a", Some("latest")),
            ("registry.example:5000/a/b", Some("latest")),
            ("registry.example:5000/a/b:v1", Some("v1")),
            ("a__b.c--d", Some("latest")),
            (with_digest.as_str(), Some("")),
            (with_both.as_str(), Some("latest")),
            (longest.as_str(), Some("latest")),
            (too_long.as_str(), None),
            (id.as_str(), None),
            ("", None),
            ("Busybox", None),
            ("a___b", None),
            ("a..b", None),
            ("-a", None),
            ("a:", None),
            ("a/:x", None),
            ("a@sha256:00", None),
            ("registry.example:port/a", None),
            (" busybox", None),
        ];
        for (image, expected) in rows {
            assert_eq!(tag(image), expected, "{image:?}");
        }
    }

    #[test]
    fn only_latest_is_pulled_every_time() {
        assert_eq!(default_pull_policy("busybox"), "Always");
        assert_eq!(default_pull_policy("busybox:latest"), "Always");
        assert_eq!(default_pull_policy("busybox:1"), "IfNotPresent");
        assert_eq!(default_pull_policy("not an image"), "IfNotPresent");
    }
}
