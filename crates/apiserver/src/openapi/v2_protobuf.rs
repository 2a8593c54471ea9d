//! A document of OpenAPI v2 as protobuf, which kubectl and client-go ask for alone: the messages
//! of gnostic's `OpenAPIv2.proto`. Only what the documents here have is written; anything else is
//! a mistake of the document, and said so.

use serde_json::{Map, Value};

/// A document as the message `Document`.
pub(super) fn write(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    for (name, value) in object(document) {
        match name.as_str() {
            "swagger" => out.text(1, text(value)),
            "info" => out.message(2, &info(value)),
            "paths" => {
                let mut paths = Message::default();
                for (path, item) in object(value) {
                    paths.message(2, &named(path, &path_item(item)));
                }
                out.message(8, &paths);
            }
            "definitions" => out.message(9, &schemas(value)),
            "security" => {
                for requirement in list(value) {
                    let mut message = Message::default();
                    for (scheme, scopes) in object(requirement) {
                        message.message(1, &named(scheme, &texts(scopes)));
                    }
                    out.message(12, &message);
                }
            }
            "securityDefinitions" => {
                let mut message = Message::default();
                for (scheme, how) in object(value) {
                    // Of the kinds of security, one is a key: SecurityDefinitionsItem.
                    let mut item = Message::default();
                    item.message(2, &api_key(how));
                    message.message(1, &named(scheme, &item));
                }
                out.message(13, &message);
            }
            other => unknown("Document", other),
        }
    }
    out.bytes
}

fn unknown(message: &str, field: &str) -> ! {
    panic!("no document has {field} in {message}")
}

fn info(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "title" => out.text(1, text(value)),
            "version" => out.text(2, text(value)),
            other => unknown("Info", other),
        }
    }
    out
}

fn api_key(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "type" => out.text(1, text(value)),
            "name" => out.text(2, text(value)),
            "in" => out.text(3, text(value)),
            "description" => out.text(4, text(value)),
            other => unknown("ApiKeySecurity", other),
        }
    }
    out
}

fn path_item(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "get" => out.message(2, &operation(value)),
            "put" => out.message(3, &operation(value)),
            "post" => out.message(4, &operation(value)),
            "delete" => out.message(5, &operation(value)),
            "patch" => out.message(8, &operation(value)),
            "parameters" => list(value).iter().for_each(|of| out.message(9, &parameter(of))),
            other => unknown("PathItem", other),
        }
    }
    out
}

fn operation(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "tags" => list(value).iter().for_each(|tag| out.text(1, text(tag))),
            "description" => out.text(3, text(value)),
            "operationId" => out.text(5, text(value)),
            "produces" => list(value).iter().for_each(|of| out.text(6, text(of))),
            "consumes" => list(value).iter().for_each(|of| out.text(7, text(of))),
            "parameters" => list(value).iter().for_each(|of| out.message(8, &parameter(of))),
            "responses" => {
                let mut responses = Message::default();
                for (code, response) in object(value) {
                    responses.message(1, &named(code, &self::response(response)));
                }
                out.message(9, &responses);
            }
            "schemes" => list(value).iter().for_each(|scheme| out.text(10, text(scheme))),
            other => out.extension(13, other, value, "Operation"),
        }
    }
    out
}

/// A ParametersItem, with a Parameter in it, which holds a BodyParameter or a NonBodyParameter.
fn parameter(value: &Value) -> Message {
    let place = text(&value["in"]);
    let mut sub = Message::default();
    for (name, value) in object(value) {
        let number = match (place, name.as_str()) {
            ("body", "schema") => {
                sub.message(5, &schema(value));
                continue;
            }
            ("body", "name") => 2,
            ("body", "in") => 3,
            ("body", "required") => 4,
            ("path" | "query", "required") => 1,
            ("path" | "query", "in") => 2,
            ("path" | "query", "description") => 3,
            ("path" | "query", "name") => 4,
            ("path", "type") => 5,
            ("path", "uniqueItems") => 19,
            ("query", "type") => 6,
            ("query", "uniqueItems") => 20,
            (_, other) => unknown("Parameter", other),
        };
        match value {
            Value::Bool(is_so) => sub.flag(number, *is_so),
            value => sub.text(number, text(value)),
        }
    }
    let mut parameter = Message::default();
    if place == "body" {
        parameter.message(1, &sub);
    } else {
        let mut other = Message::default();
        other.message(if place == "query" { 3 } else { 4 }, &sub);
        parameter.message(2, &other);
    }
    let mut item = Message::default();
    item.message(1, &parameter);
    item
}

/// A ResponseValue, with a Response in it.
fn response(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "description" => out.text(1, text(value)),
            "schema" => {
                let mut item = Message::default();
                item.message(1, &schema(value));
                out.message(2, &item);
            }
            other => unknown("Response", other),
        }
    }
    let mut item = Message::default();
    item.message(1, &out);
    item
}

/// Definitions, or Properties: they are the same.
fn schemas(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        out.message(1, &named(name, &schema(value)));
    }
    out
}

fn schema(value: &Value) -> Message {
    let mut out = Message::default();
    for (name, value) in object(value) {
        match name.as_str() {
            "$ref" => out.text(1, text(value)),
            "format" => out.text(2, text(value)),
            "description" => out.text(4, text(value)),
            "required" => list(value).iter().for_each(|name| out.text(19, text(name))),
            "enum" => list(value).iter().for_each(|one| out.message(20, &any(one))),
            "additionalProperties" => {
                let mut item = Message::default();
                item.message(1, &schema(value));
                out.message(21, &item);
            }
            "type" => {
                let mut item = Message::default();
                item.text(1, text(value));
                out.message(22, &item);
            }
            "items" => {
                let mut item = Message::default();
                item.message(1, &schema(value));
                out.message(23, &item);
            }
            "properties" => out.message(25, &schemas(value)),
            other => out.extension(31, other, value, "Schema"),
        }
    }
    out
}

/// A name and what has it: the messages `Named…`.
fn named(name: &str, value: &Message) -> Message {
    let mut out = Message::default();
    out.text(1, name);
    out.message(2, value);
    out
}

/// A StringArray.
fn texts(value: &Value) -> Message {
    let mut out = Message::default();
    list(value).iter().for_each(|one| out.text(1, text(one)));
    out
}

/// Anything, as YAML; JSON is YAML.
fn any(value: &Value) -> Message {
    let mut out = Message::default();
    out.text(2, &format!("{value}\n"));
    out
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object where the document has one")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list where the document has one")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text where the document has one")
}

/// A message on the wire.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.varint(field << 3 | 2);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.varint(field << 3 | 2);
        self.varint(message.bytes.len() as u64);
        self.bytes.extend_from_slice(&message.bytes);
    }

    /// What is not so is not written.
    fn flag(&mut self, field: u64, is_so: bool) {
        if is_so {
            self.varint(field << 3);
            self.varint(1);
        }
    }

    /// What is not of OpenAPI itself.
    fn extension(&mut self, field: u64, name: &str, value: &Value, of: &str) {
        if !name.starts_with("x-") {
            unknown(of, name);
        }
        self.message(field, &named(name, &any(value)));
    }
}
