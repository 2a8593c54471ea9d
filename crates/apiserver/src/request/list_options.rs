//! The options of lists and watches, with the rules of which go together.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};
use stint_api::field_error::FieldError;
use stint_api::field_path::Path;
use stint_store::Revision;

use super::query::Query;
use crate::kind::AnyKind;
use crate::selector::field::FieldSelector;
use crate::selector::label::LabelSelector;
use crate::status::Status;

/// Which objects of a kind are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

/// As of when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest.
    Newest,
    /// Any: `0`.
    Any,
    /// This one or a newer one.
    NotOlderThan(Revision),
    /// This one.
    Exact(Revision),
}

/// What a list or watch asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// Which objects.
    pub selection: Selection,
    /// As of when.
    pub version: Version,
    /// The most objects of a page.
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub after: Option<Continue>,
    /// Whether a watch wants to know how far it is.
    pub wants_bookmarks: bool,
    /// Whether a watch begins with what there is, if it says so.
    pub sends_initial_events: Option<bool>,
    /// How long it may take.
    pub timeout_seconds: Option<u64>,
}

impl ListOptions {
    /// The most objects of a page. Who takes any version gets all of it at once, as from the
    /// cache of a kube-apiserver.
    pub(crate) fn page_limit(&self) -> Option<usize> {
        self.limit.filter(|_| self.version != Version::Any || self.after.is_some())
    }
}

/// Where the next page of a list begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continue {
    /// The revision of the first page; `None`: go on with the newest.
    pub revision: Option<Revision>,
    /// The last key that was listed, without what all keys of the list have in common.
    pub after: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

impl Continue {
    /// The token that a client sends back.
    pub fn to_token(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| {
            i64::try_from(revision.get()).expect("revisions grow by one and stay far below")
        });
        // Kubernetes names the first key of the next page: the last one and a zero byte.
        let start = format!("{}\0", self.after);
        let token = Token { v: TOKEN_VERSION.to_owned(), rv, start };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("plain data serialises"))
    }

    /// Reads a token that came back.
    pub fn parse(token: &str) -> Result<Self, Status> {
        let invalid = |why: String| {
            let head = "invalid continue token: continue key is not valid";
            Status::bad_request(format!("{head}: {why}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLength(at) => at,
                DecodeError::InvalidLastSymbol { offset, .. } => offset,
                DecodeError::InvalidPadding => token.len(),
            };
            invalid(format!("illegal base64 data at input byte {at}"))
        })?;
        let token: Token =
            serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if token.v != TOKEN_VERSION {
            let version = token.v;
            return Err(invalid(format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        let revision =
            match token.rv {
                -1 => None,
                rv => Some(Revision::new(u64::try_from(rv).ok().filter(|rv| *rv > 0).ok_or_else(
                    || invalid("incorrect encoded start resourceVersion".to_owned()),
                )?)),
            };
        let after = token.start.strip_suffix('\0').unwrap_or(&token.start).to_owned();
        Ok(Continue { revision, after })
    }
}

impl ListOptions {
    /// Reads them from a query, for a list or a watch of a kind.
    pub fn read(query: &Query, kind: &dyn AnyKind, is_watch: bool) -> Result<Self, Status> {
        let selection = Selection::read(query, kind)?;
        let given = query.get("resourceVersion");
        let matching = query.get("resourceVersionMatch");
        let token = query.get("continue");
        let initial = query.flag("sendInitialEvents")?;
        let errors = if is_watch {
            watch_errors(matching, initial, token)
        } else {
            list_errors(given, matching, initial, token)
        };
        if !errors.is_empty() {
            return Err(Status::invalid_of("meta.k8s.io", "ListOptions", "", &errors));
        }
        let limit = query.number("limit")?.unwrap_or(0);
        let after = token.map(Continue::parse).transpose()?;
        let revision = given.map(read_version).transpose()?;
        if after.is_some() && revision.is_some_and(|revision| revision.get() > 0) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let version = match (revision, matching) {
            (None, _) => Version::Newest,
            (Some(revision), _) if revision.get() == 0 => Version::Any,
            (Some(revision), Some("Exact")) => Version::Exact(revision),
            // An old rule: a page of a list that names a version is of that version.
            (Some(revision), None) if limit > 0 && !is_watch => Version::Exact(revision),
            (Some(revision), _) => Version::NotOlderThan(revision),
        };
        Ok(ListOptions {
            selection,
            version,
            limit: usize::try_from(limit).ok().filter(|limit| *limit > 0),
            after,
            wants_bookmarks: query.flag("allowWatchBookmarks")?.unwrap_or(false),
            sends_initial_events: initial,
            timeout_seconds: query
                .number("timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
        })
    }
}

impl Selection {
    /// Reads the two selectors of a query.
    pub fn read(query: &Query, kind: &dyn AnyKind) -> Result<Self, Status> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or(""))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or(""))
            .map_err(|error| Status::bad_request(error.to_string()))?;
        for term in &fields.terms {
            let is_of_all = match term.field.as_str() {
                "metadata.namespace" => kind.names().is_namespaced,
                field => is_metadata(field),
            };
            if !is_of_all && !kind.fields().contains(&term.field.as_str()) {
                return Err(Status::bad_request(kind.unknown_field(&term.field)));
            }
        }
        Ok(Selection { labels, fields })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.terms.is_empty()
    }
}

/// Whether a field is one that every kind has.
pub(crate) fn is_metadata(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

/// A version as clients write it.
pub(crate) fn read_version(text: &str) -> Result<Revision, Status> {
    text.parse().map(Revision::new).map_err(|_| {
        let path = Path::field("resourceVersion");
        let detail = format!("strconv.ParseUint: parsing \"{text}\": invalid syntax");
        let error = FieldError::invalid(&path, text, detail);
        Status::bad_request(format!("invalid resource version: {error}"))
    })
}

fn list_errors(
    given: Option<&str>,
    matching: Option<&str>,
    initial: Option<bool>,
    token: Option<&str>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::field("resourceVersionMatch");
    if let Some(matching) = matching {
        if given.is_none() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if token.is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let known = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(&path, matching, &known));
        }
        if matching == "Exact" && given == Some("0") {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if initial.is_some() {
        let detail = "sendInitialEvents is forbidden for list";
        errors.push(FieldError::forbidden(&Path::field("sendInitialEvents"), detail));
    }
    errors
}

fn watch_errors(
    matching: Option<&str>,
    initial: Option<bool>,
    token: Option<&str>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::field("resourceVersionMatch");
    if initial.is_some() && matching != Some("NotOlderThan") {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&path, detail));
    }
    if let Some(matching) = matching {
        if initial.is_none() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, matching, &["NotOlderThan"]));
        }
    }
    if token.is_some() {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn read(query: &str, is_watch: bool) -> Result<ListOptions, Status> {
        let kind = kinds::find("batch", "v1", "jobs").expect("there are Jobs");
        ListOptions::read(&Query::parse(query), kind, is_watch)
    }

    #[test]
    fn versions_are_read_by_the_rules_of_lists() {
        let rows = [
            ("", Version::Newest),
            ("resourceVersion=0", Version::Any),
            ("resourceVersion=7", Version::NotOlderThan(Revision::new(7))),
            ("resourceVersion=7&limit=5", Version::Exact(Revision::new(7))),
            (
                "resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan",
                Version::NotOlderThan(Revision::new(7)),
            ),
            ("resourceVersion=7&resourceVersionMatch=Exact", Version::Exact(Revision::new(7))),
        ];
        for (query, expected) in rows {
            assert_eq!(read(query, false).expect(query).version, expected, "{query}");
        }
        let refused = [
            ("resourceVersionMatch=Exact", 422),
            ("resourceVersion=0&resourceVersionMatch=Exact", 422),
            ("resourceVersion=7&resourceVersionMatch=Newer", 422),
            ("sendInitialEvents=true", 422),
            ("resourceVersion=x", 400),
            ("continue=%%%", 400),
            ("fieldSelector=spec.foo%3D1", 400),
            ("labelSelector=a%20b", 400),
            ("limit=x", 400),
        ];
        for (query, code) in refused {
            assert_eq!(read(query, false).expect_err(query).code(), code, "{query}");
        }
        assert!(read("sendInitialEvents=true", true).is_err());
        assert!(read("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true).is_ok());
    }

    #[test]
    fn a_token_comes_back_as_it_was() {
        for revision in [None, Some(Revision::new(12))] {
            let token = Continue { revision, after: "default/a".to_owned() };
            assert_eq!(Continue::parse(&token.to_token()), Ok(token));
        }
        for broken in ["", "e30", "bm90aGluZw", "eyJ2IjoieCIsInJ2IjoxLCJzdGFydCI6IiJ9"] {
            assert_eq!(Continue::parse(broken).expect_err(broken).code(), 400);
        }
    }
}
