//! A description in OpenAPI v3 as one in v2, which older clients read. It knows no Kubernetes but
//! what its v2 leaves out: the values of what is not given.

use serde_json::{Map, Value, json};

/// Where v2 has types.
const PLACE: &str = "#/definitions/";

/// A type.
pub(super) fn definition(schema: &Value) -> Value {
    let mut schema = schema.clone();
    rewrite(&mut schema);
    schema
}

fn rewrite(value: &mut Value) {
    let Some(schema) = value.as_object_mut() else { return };
    schema.remove("default");
    if let Some(Value::Array(all)) = schema.remove("allOf") {
        let reference = all.into_iter().next().and_then(|one| one.get("$ref").cloned());
        schema.insert("$ref".to_owned(), reference.expect("one reference"));
    }
    if schema.remove("oneOf").is_some() {
        schema.insert("type".to_owned(), "string".into());
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace(super::types::PLACE, PLACE);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(rewrite);
    }
    for within in ["items", "additionalProperties"] {
        if let Some(within) = schema.get_mut(within) {
            rewrite(within);
        }
    }
}

/// A path with its operations.
pub(super) fn path_item(item: &Value) -> Value {
    let members = item.as_object().expect("a path is an object");
    let written = members.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "parameters" => parameters(value),
            _ => operation(value),
        };
        (name.clone(), value)
    });
    Value::Object(written.collect())
}

fn parameters(list: &Value) -> Value {
    let list = list.as_array().expect("parameters are a list");
    list.iter().map(parameter).collect()
}

/// A parameter has its schema among its members.
fn parameter(parameter: &Value) -> Value {
    let mut parameter = parameter.clone();
    let members = parameter.as_object_mut().expect("a parameter is an object");
    if let Some(Value::Object(schema)) = members.remove("schema") {
        members.extend(schema);
    }
    parameter
}

fn operation(operation: &Value) -> Value {
    let mut operation = operation.clone();
    let members = operation.as_object_mut().expect("an operation is an object");
    let mut consumes = vec!["*/*".to_owned()];
    let mut own = members.remove("parameters").map(|own| parameters(&own)).unwrap_or(json!([]));
    if let Some(body) = members.remove("requestBody") {
        let content = body["content"].as_object().expect("a body has media types");
        consumes = content.keys().cloned().collect();
        let schema = content.values().next().map(|of| definition(&of["schema"]));
        let mut parameter = json!({"in": "body", "name": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        own.as_array_mut().expect("a list").insert(0, parameter);
    }
    if own.as_array().is_some_and(|own| !own.is_empty()) {
        members.insert("parameters".to_owned(), own);
    }
    let mut produces = Vec::new();
    let responses = members["responses"].as_object_mut().expect("there are responses");
    for response in responses.values_mut().filter_map(Value::as_object_mut) {
        let Some(Value::Object(content)) = response.remove("content") else { continue };
        produces = content.keys().cloned().collect();
        if let Some(first) = content.values().next() {
            response.insert("schema".to_owned(), definition(&first["schema"]));
        }
    }
    members.insert("consumes".to_owned(), json!(consumes));
    members.insert("produces".to_owned(), json!(produces));
    members.insert("schemes".to_owned(), json!(["https"]));
    operation
}

/// The whole document.
pub(super) fn document(paths: Map<String, Value>, definitions: Map<String, Value>) -> Value {
    json!({
        "swagger": "2.0",
        "info": super::info(),
        "paths": paths,
        "definitions": definitions,
        "security": [{"BearerToken": []}],
        "securityDefinitions": {"BearerToken": super::bearer_token()},
    })
}
