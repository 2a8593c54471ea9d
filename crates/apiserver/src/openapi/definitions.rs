//! The types of the API as OpenAPI v3 writes them: JSON schemas, with the facts of the tables put
//! in. It knows no paths and no documents.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::facts::{
    self, BARE_LISTS, DEFAULTS, ENUMS, NEEDS_METADATA, NEEDS_MORE, OBJECTS, OPTIONAL, PATCHES,
    UNIONS,
};
use super::types::{self, PLACE};
use crate::discovery::{GROUP_VERSION, GROUPS};
use crate::kind::Names;
use crate::kinds;
use crate::patch::schema as patches;
use crate::review;
use crate::schema::{self, Field, Holds, ListType, MapType, Message, Type};
use crate::subresource::{BINDING, EVICTION};

/// Every type by its name.
pub(super) type Definitions = BTreeMap<String, Value>;

/// The package of metadata and of what is no object of a kind.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The name of a kind's type: `io.k8s.api.batch.v1.Job`.
pub(super) fn type_name(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    format!("io.k8s.api.{package}.{version}.{kind}")
}

/// Every type that the API is made of.
pub(super) fn definitions() -> Definitions {
    let mut made = Made { types: types::schemas().into_iter().collect(), seen: BTreeSet::new() };
    let stored = kinds::ALL.iter().map(|kind| kind.names());
    for names in stored.clone().chain([&BINDING, &EVICTION]) {
        let name = type_name(names.group, names.version, names.kind);
        if let Some(message) = schema::of_kind(&names.api_version(), names.kind) {
            made.describe(&name, message);
        }
        if let Some(patched) = patches::of_kind(&names.api_version(), names.kind) {
            made.describe_patches(&name, patched);
        }
        made.is_kind(&name, &[(names.group, names.kind)]);
    }
    // Of these the table has the questions only.
    for names in review::ALL.map(|review| review.names()) {
        let name = type_name(names.group, names.version, names.kind);
        made.is_kind(&name, &[(names.group, names.kind)]);
    }
    for names in stored {
        made.add_list(names);
    }
    let delete_options = schema::of_kind("meta.k8s.io/v1", "DeleteOptions");
    made.describe(&format!("{META}DeleteOptions"), delete_options.expect("it is in the table"));
    for kind in ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"] {
        made.is_kind(&format!("{META}{kind}"), &[("", kind)]);
    }
    for kind in ["DeleteOptions", "WatchEvent"] {
        let everywhere: Vec<(&str, &str)> =
            std::iter::once("").chain(GROUPS).map(|group| (group, kind)).collect();
        made.is_kind(&format!("{META}{kind}"), &everywhere);
    }
    made.finish()
}

struct Made {
    types: Definitions,
    /// Those whose facts are from a table.
    seen: BTreeSet<String>,
}

impl Made {
    fn property(&mut self, of: &str, name: &str) -> Option<&mut Map<String, Value>> {
        self.types.get_mut(of)?.get_mut("properties")?.get_mut(name)?.as_object_mut()
    }

    /// Puts in what a table says of a message and of all below it.
    fn describe(&mut self, of: &str, message: Message) {
        if !self.seen.insert(of.to_owned()) {
            return;
        }
        for field in message {
            if let Holds::Inline(within) = field.holds {
                self.seen.remove(of);
                self.describe(of, within);
                continue;
            }
            self.describe_field(of, field);
        }
    }

    fn describe_field(&mut self, of: &str, field: &Field) {
        let Some(property) = self.property(of, field.name) else { return };
        let (holds, within) = match field.holds {
            Holds::One(holds) | Holds::Nonzero(holds) => {
                if field.is_always
                    && let Some(default) = zero(holds)
                {
                    property.insert("default".to_owned(), default);
                }
                (holds, referred(property))
            }
            Holds::List(holds, list_type) => {
                let word = match list_type {
                    ListType::Atomic => "atomic",
                    ListType::Set => "set",
                    ListType::Map(keys) => {
                        let keys: Vec<&str> = keys.iter().map(|key| key.name).collect();
                        property.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
                        "map"
                    }
                };
                property.insert("x-kubernetes-list-type".to_owned(), word.into());
                let items = property.get("items").and_then(Value::as_object);
                (holds, items.and_then(referred))
            }
            Holds::Map(holds, map_type) => {
                if map_type == MapType::Atomic {
                    property.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
                }
                (holds, None)
            }
            Holds::Inline(_) => unreachable!("it has no property"),
        };
        let (Some(message), Some(within)) = (holds.message(), within) else { return };
        if let (Type::Atomic(_), Some(Value::Object(target))) = (holds, self.types.get_mut(&within))
        {
            target.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        self.describe(&within, message);
    }

    /// Puts in which lists a strategic merge patch merges.
    fn describe_patches(&mut self, of: &str, patched: &patches::Type) {
        for (name, field) in patched.fields {
            let Some(property) = self.property(of, name) else { continue };
            let (key, within) = match field {
                patches::Field::Object(within) => (None, Some((referred(property), *within))),
                patches::Field::Keyed(key, within) => {
                    let items = property.get("items").and_then(Value::as_object);
                    let within = (items.and_then(referred), *within);
                    (Some(*key), Some(within))
                }
                patches::Field::Set => (None, None),
            };
            if !matches!(field, patches::Field::Object(_)) {
                put_patch(property, key, "merge");
            }
            if let Some((Some(target), within)) = within {
                self.describe_patches(&target, within);
            }
        }
    }

    fn is_kind(&mut self, of: &str, kinds: &[(&str, &str)]) {
        let kinds: Vec<Value> = kinds
            .iter()
            .map(|(group, kind)| json!({"group": group, "version": GROUP_VERSION, "kind": kind}))
            .collect();
        let found = self.types.get_mut(of).expect("every kind has a type");
        found["x-kubernetes-group-version-kind"] = kinds.into();
    }

    /// The type of a list of a kind, which k8s-openapi has one for all of.
    fn add_list(&mut self, names: &Names) {
        let item = type_name(names.group, names.version, names.kind);
        let own = |name: &str| self.types[&item]["properties"][name].clone();
        let (kind, list_kind) = (names.kind, names.list_kind());
        let list = json!({
            "description": format!("{list_kind} is a list of objects of the kind {kind}."),
            "type": "object",
            "properties": {
                "apiVersion": own("apiVersion"),
                "items": {
                    "description": "The objects of the list.",
                    "type": "array",
                    "items": {"$ref": format!("{PLACE}{item}")},
                },
                "kind": own("kind"),
                "metadata": {
                    "description": "Which version the list is of, and where it goes on.",
                    "$ref": format!("{PLACE}{META}ListMeta"),
                    "default": {},
                },
            },
            "required": ["items"],
        });
        let name = type_name(names.group, names.version, &list_kind);
        self.types.insert(name.clone(), list);
        self.seen.insert(name.clone());
        self.is_kind(&name, &[(names.group, &list_kind)]);
    }

    fn finish(mut self) -> Definitions {
        for (name, definition) in &mut self.types {
            let short = name.rsplit('.').next().expect("a name");
            if !self.seen.contains(name) {
                guess(short, definition);
            }
            put_facts(short, definition);
            put_required(name, short, definition);
        }
        for definition in self.types.values_mut() {
            write(definition);
        }
        self.types
    }
}

/// The type that a schema refers to.
fn referred(schema: &Map<String, Value>) -> Option<String> {
    schema.get("$ref")?.as_str()?.strip_prefix(PLACE).map(str::to_owned)
}

fn put_patch(property: &mut Map<String, Value>, key: Option<&str>, strategy: &str) {
    property.insert("x-kubernetes-patch-strategy".to_owned(), strategy.into());
    if let Some(key) = key {
        property.insert("x-kubernetes-patch-merge-key".to_owned(), key.into());
    }
}

/// What Go has where nothing is given. Types that are written otherwise than as Go has them have
/// no such value.
fn zero(of: Type) -> Option<Value> {
    match of {
        Type::Text => Some("".into()),
        Type::Bool => Some(false.into()),
        Type::Int32 | Type::Int64 => Some(0.into()),
        Type::Object(_) | Type::Atomic(_) => Some(json!({})),
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::Quantity
        | Type::IntOrString
        | Type::RawJson => None,
    }
}

/// The same by a schema.
fn zero_of(schema: &Map<String, Value>) -> Option<Value> {
    match (schema.get("type").and_then(Value::as_str), referred(schema)) {
        (Some("string"), _) if schema.contains_key("format") => None,
        (Some("string"), _) => Some("".into()),
        (Some("integer"), _) => Some(0.into()),
        (Some("boolean"), _) => Some(false.into()),
        (None, Some(target)) if !is_special(&target) => Some(json!({})),
        _ => None,
    }
}

/// Whether a type is written otherwise than as Go has it.
fn is_special(name: &str) -> bool {
    let short = name.rsplit('.').next().expect("a name");
    ["FieldsV1", "IntOrString", "MicroTime", "Quantity", "RawExtension", "Time"].contains(&short)
}

/// The facts of a type that is in no table: what has to be there is no pointer, metadata, spec
/// and status never are, and lists are owned as a whole.
fn guess(name: &str, definition: &mut Value) {
    let required: Vec<String> = definition["required"]
        .as_array()
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (field, property) in properties {
        let Some(property) = property.as_object_mut() else { continue };
        let is_struct = ["metadata", "spec", "status"].contains(&field.as_str())
            && property.contains_key("$ref");
        if (required.contains(field) || is_struct || OBJECTS.contains(&(name, field)))
            && let Some(default) = zero_of(property)
        {
            property.insert("default".to_owned(), default);
        }
        if property.get("type").is_some_and(|of| of == "array")
            && !BARE_LISTS.contains(&(name, field))
        {
            property.insert("x-kubernetes-list-type".to_owned(), "atomic".into());
        }
    }
}

fn put_facts(name: &str, definition: &mut Value) {
    for (_, field, value) in DEFAULTS.iter().filter(|(of, ..)| *of == name) {
        definition["properties"][field]["default"] = match value {
            facts::Value::Text(text) => (*text).into(),
            facts::Value::False => false.into(),
        };
    }
    for (_, field, values) in ENUMS.iter().filter(|(of, ..)| *of == name) {
        let property = &mut definition["properties"][field];
        let values: Vec<&str> = values.split(' ').collect();
        if property["type"] == "array" {
            property["items"]["enum"] = json!(values);
        } else {
            property["enum"] = json!(values);
        }
    }
    for (_, field, key, strategy) in PATCHES.iter().filter(|(of, ..)| *of == name) {
        let property = definition["properties"][field].as_object_mut().expect("a property");
        put_patch(property, Some(key), strategy);
    }
    for (_, discriminator, fields) in UNIONS.iter().filter(|(of, ..)| *of == name) {
        let fields: Map<String, Value> =
            fields.iter().map(|(field, word)| ((*field).to_owned(), (*word).into())).collect();
        let mut union = json!({"fields-to-discriminateBy": fields});
        if !discriminator.is_empty() {
            union["discriminator"] = (*discriminator).into();
        }
        definition["x-kubernetes-unions"] = json!([union]);
    }
}

/// Says which fields have to be there, which k8s-openapi tells otherwise in places.
fn put_required(name: &str, short: &str, definition: &mut Value) {
    let Some(schema) = definition.as_object_mut() else { return };
    let required = schema.remove("required");
    let mut required: Vec<Value> = match required {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    required.retain(|field| {
        let field = field.as_str().unwrap_or("");
        let is_loose = field == "metadata" && name != NEEDS_METADATA;
        !is_loose && !OPTIONAL.contains(&(short, field))
    });
    if NEEDS_MORE.0 == name {
        required.push(NEEDS_MORE.1.into());
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

/// Writes a JSON schema as OpenAPI v3 has it.
fn write(definition: &mut Value) {
    let Some(schema) = definition.as_object_mut() else { return };
    if schema.remove("x-kubernetes-int-or-string").is_some() {
        let is_port = schema["description"].as_str().is_some_and(|d| d.starts_with("IntOrString"));
        if is_port {
            schema.insert("format".to_owned(), "int-or-string".into());
            schema.insert("oneOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        } else {
            schema.insert("oneOf".to_owned(), json!([{"type": "string"}, {"type": "number"}]));
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(write);
    }
    for (within, always_has) in [("items", true), ("additionalProperties", true)] {
        let Some(Value::Object(items)) = schema.get_mut(within) else { continue };
        if always_has && let Some(default) = zero_of(items) {
            items.insert("default".to_owned(), default);
        }
        write(schema.get_mut(within).expect("it is there"));
    }
    // A reference stands alone; what is said besides it goes around it.
    if schema.len() > 1
        && let Some(reference) = schema.remove("$ref")
    {
        schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
}
