//! The API described: OpenAPI v3, a document for each group and version, and v2, one for all. They
//! are made when somebody asks for the first of them, and kept: a server that nobody asks pays
//! nothing for them.
//!
//! ```text
//!   types (k8s-openapi) ─┐
//!   schema, patch::schema├─▶ definitions ─┐
//!   facts ───────────────┘                ├─▶ v3 ─▶ v2 ─▶ v2_protobuf
//!   discovery, parameters ─▶ operations ──┘
//! ```

mod definitions;
mod facts;
mod operations;
mod parameters;
mod types;
mod v2;
mod v2_protobuf;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::answer::entity_tag;
use crate::discovery::{GROUP_VERSION, GROUPS, VERSION};
use crate::request::media::MediaRange;
use definitions::Definitions;
use operations::Paths;

/// The media type of v2 in protobuf.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What clients still ask for: it is no media type, as none has an `@`, and never answered so.
const V2_PROTOBUF_BEFORE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

const JSON: &str = "application/json";

/// A document, made once.
pub(crate) struct Document {
    /// What it is written in.
    pub(crate) media_type: &'static str,
    /// What it is known by, with its quotes.
    pub(crate) tag: String,
    /// The document.
    pub(crate) bytes: Bytes,
    /// The same in fewer bytes, once somebody has asked for it.
    gzipped: OnceLock<Bytes>,
}

impl Document {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        let tag = entity_tag(&bytes);
        Document { media_type, tag, bytes: bytes.into(), gzipped: OnceLock::new() }
    }

    fn of(value: &Value) -> Self {
        Document::new(JSON, serde_json::to_vec(value).expect("JSON serialises"))
    }

    /// The tag as a part of an address.
    pub(crate) fn hash(&self) -> &str {
        self.tag.trim_matches('"')
    }

    /// The same in fewer bytes.
    pub(crate) fn gzipped(&self) -> Bytes {
        self.gzipped.get_or_init(|| crate::answer::gzip(&self.bytes)).clone()
    }
}

/// What a path leads to.
pub(crate) enum Found {
    /// A document.
    Document(&'static Document),
    /// One of the documents of v3, which may be kept for ever under its hash.
    Part(&'static Document),
    /// A document, but not as anything that the client takes.
    NotAcceptable,
}

/// The document of a path for a client that takes these media types; `None` if there is nothing
/// there.
pub(crate) fn find(path: &str, accept: Option<&str>) -> Option<Found> {
    let accept = accept.filter(|accept| !accept.trim().is_empty()).unwrap_or("*/*");
    match path.trim_end_matches('/') {
        "/openapi/v2" => Some(v2_for(accept)),
        "/openapi/v3" => Some(Found::Document(&V3.index)),
        path => {
            let part = V3.parts.get(path.strip_prefix("/openapi/v3/")?)?;
            let takes_json = accept.split(',').any(|range| {
                let of = MediaRange::read(range).media_type();
                [JSON, "application/*", "*/*"].contains(&of)
            });
            Some(if takes_json { Found::Part(part) } else { Found::NotAcceptable })
        }
    }
}

/// The first that a client takes of the two ways to write v2.
fn v2_for(accept: &str) -> Found {
    for range in accept.split(',') {
        match MediaRange::read(range).media_type() {
            JSON | "application/*" | "*/*" => return Found::Document(&V2),
            V2_PROTOBUF | V2_PROTOBUF_BEFORE => return Found::Document(&V2_AS_PROTOBUF),
            _ => {}
        }
    }
    Found::NotAcceptable
}

/// The paths that are told of.
pub(crate) fn paths() -> Vec<String> {
    ["/openapi/v2", "/openapi/v3"].map(str::to_owned).to_vec()
}

struct V3 {
    index: Document,
    parts: BTreeMap<String, Document>,
}

static V3: LazyLock<V3> = LazyLock::new(|| {
    let definitions = definitions::definitions();
    let parts: BTreeMap<String, Document> = parts()
        .into_iter()
        .map(|(name, paths)| {
            let document = v3_document(&name, paths, &definitions);
            (name, Document::of(&document))
        })
        .collect();
    let places: Map<String, Value> = parts
        .iter()
        .map(|(name, part)| {
            let place = format!("/openapi/v3/{name}?hash={}", part.hash());
            (name.clone(), json!({"serverRelativeURL": place}))
        })
        .collect();
    V3 { index: Document::of(&json!({"paths": places})), parts }
});

static V2: LazyLock<Document> = LazyLock::new(|| Document::of(&v2_document()));

static V2_AS_PROTOBUF: LazyLock<Document> =
    LazyLock::new(|| Document::new(V2_PROTOBUF, v2_protobuf::write(&v2_document())));

/// The parts of v3 by their names, with their paths.
fn parts() -> Vec<(String, Paths)> {
    let mut parts = Vec::new();
    for other in ["api", "apis", "version"] {
        parts.push((other.to_owned(), operations::other_paths(other).expect("it has paths")));
    }
    parts.push((format!("api/{GROUP_VERSION}"), operations::group_version_paths("")));
    for group in GROUPS {
        parts.push((format!("apis/{group}"), operations::group_paths(group)));
        let paths = operations::group_version_paths(group);
        parts.push((format!("apis/{group}/{GROUP_VERSION}"), paths));
    }
    parts
}

fn v3_document(name: &str, paths: Paths, definitions: &Definitions) -> Value {
    let paths = Value::Object(paths.into_iter().collect());
    let mut wanted = BTreeSet::new();
    collect(&paths, definitions, &mut wanted);
    let mut schemas: Map<String, Value> =
        wanted.into_iter().map(|name| (name.to_owned(), definitions[name].clone())).collect();
    // Options are objects of every group: here of this one.
    let group = name.strip_prefix("apis/").and_then(|rest| rest.split('/').next()).unwrap_or("");
    for schema in schemas.values_mut() {
        if let Some(Value::Array(kinds)) = schema.get_mut("x-kubernetes-group-version-kind")
            && kinds.len() > 1
        {
            kinds.retain(|kind| kind["group"] == "" || kind["group"] == group);
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": bearer_token()},
        },
    })
}

/// The types that something refers to, and those that they refer to.
fn collect<'d>(value: &Value, definitions: &'d Definitions, wanted: &mut BTreeSet<&'d str>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let name = reference.strip_prefix(types::PLACE).expect("a reference to a type");
                let (name, found) = definitions.get_key_value(name).expect("the type is there");
                if wanted.insert(name) {
                    collect(found, definitions, wanted);
                }
            }
            members.values().for_each(|member| collect(member, definitions, wanted));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, definitions, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn v2_document() -> Value {
    let definitions = definitions::definitions();
    let mut paths = Map::new();
    for (_, part) in parts() {
        paths.extend(part.iter().map(|(path, item)| (path.clone(), v2::path_item(item))));
    }
    let definitions =
        definitions.iter().map(|(name, schema)| (name.clone(), v2::definition(schema))).collect();
    v2::document(paths, definitions)
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": VERSION})
}

fn bearer_token() -> Value {
    json!({
        "description": "Bearer Token authentication",
        "in": "header",
        "name": "authorization",
        "type": "apiKey",
    })
}

#[cfg(test)]
mod tests;
