//! A step of a path to a field, as `fieldsV1` has it: `f:name`, `k:{"name":"c"}`, `v:"x"`, `i:0`.
//! It knows no types and no sets.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};
use stint_api::field_error::quote;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element<'a> {
    /// A field of an object, or an entry of a map.
    Field(Cow<'a, str>),
    /// The item of a list that has these fields, in the order of their names.
    Key(Vec<(Cow<'a, str>, Scalar<'a>)>),
    /// The value of a set.
    Value(Scalar<'a>),
    /// The item of a list at this place.
    Index(i64),
}

/// A value that tells items apart.
#[derive(Clone, Debug)]
pub enum Scalar<'a> {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// True or false.
    Bool(bool),
    /// What nobody would use: a list, an object or null.
    Other(Value),
}

/// What is no step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoElement {
    /// A kind of step that a later version may know.
    Unknown,
    /// Nothing that any version would write.
    Malformed,
}

impl<'a> Element<'a> {
    /// Reads a step.
    pub fn read(text: Cow<'a, str>) -> Result<Self, NoElement> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 || bytes[1] != b':' {
            return Err(NoElement::Malformed);
        }
        match bytes[0] {
            b'f' => Ok(Element::Field(match text {
                Cow::Borrowed(text) => Cow::Borrowed(&text[2..]),
                Cow::Owned(text) => Cow::Owned(text[2..].to_owned()),
            })),
            b'v' => {
                let value = serde_json::from_str(&text[2..]).map_err(|_| NoElement::Malformed)?;
                Ok(Element::Value(Scalar::of_value(value)))
            }
            b'k' => {
                let fields: Map<String, Value> =
                    serde_json::from_str(&text[2..]).map_err(|_| NoElement::Malformed)?;
                let field = |(name, value)| (Cow::Owned(name), Scalar::of_value(value));
                let mut fields: Vec<(Cow<'a, str>, Scalar<'a>)> =
                    fields.into_iter().map(field).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Ok(Element::Key(fields))
            }
            b'i' => text[2..].parse().map(Element::Index).map_err(|_| NoElement::Malformed),
            _ => Err(NoElement::Unknown),
        }
    }

    /// Adds the step to a JSON text, as a key with its quotes.
    pub fn write(&self, json: &mut String) {
        match self {
            // Names of fields are plain, so nothing has to be written twice.
            Element::Field(name) if is_plain(name) => {
                json.push_str("\"f:");
                json.push_str(name);
                json.push('"');
            }
            Element::Field(name) => push_text(json, &format!("f:{name}")),
            Element::Key(fields) => {
                let mut key = String::from("k:{");
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        key.push(',');
                    }
                    push_text(&mut key, name);
                    key.push(':');
                    value.write(&mut key);
                }
                key.push('}');
                push_text(json, &key);
            }
            Element::Value(value) => {
                let mut key = String::from("v:");
                value.write(&mut key);
                push_text(json, &key);
            }
            Element::Index(index) => json.push_str(&format!("\"i:{index}\"")),
        }
    }

    /// The same step, which borrows nothing.
    pub fn into_owned(self) -> Element<'static> {
        match self {
            Element::Field(name) => Element::Field(Cow::Owned(name.into_owned())),
            Element::Key(fields) => Element::Key(
                fields
                    .into_iter()
                    .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                    .collect(),
            ),
            Element::Value(value) => Element::Value(value.into_owned()),
            Element::Index(index) => Element::Index(index),
        }
    }
}

/// As a client is told where a field is: `.spec.containers[name="c"].image`.
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={value}]"),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl<'a> Scalar<'a> {
    /// Of a JSON text.
    pub fn of_text(text: &'a str) -> Self {
        if let Some(inner) = text.strip_prefix('"') {
            return Scalar::Text(super::tree::unescaped(&inner[..inner.len() - 1]));
        }
        text.parse().map_or_else(
            |_| Scalar::of_value(serde_json::from_str(text).expect("a JSON text")),
            Scalar::Int,
        )
    }

    /// Of a JSON value.
    pub fn of_value(value: Value) -> Self {
        match value {
            Value::String(text) => Scalar::Text(Cow::Owned(text)),
            Value::Bool(is) => Scalar::Bool(is),
            Value::Number(number) => match number.as_i64() {
                Some(int) => Scalar::Int(int),
                None => Scalar::Float(number.as_f64().unwrap_or(f64::MAX)),
            },
            other => Scalar::Other(other),
        }
    }

    fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Int(int) => Scalar::Int(int),
            Scalar::Float(float) => Scalar::Float(float),
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
            Scalar::Bool(is) => Scalar::Bool(is),
            Scalar::Other(value) => Scalar::Other(value),
        }
    }

    /// Adds it to a JSON text, as Go would.
    fn write(&self, json: &mut String) {
        match self {
            Scalar::Int(int) => json.push_str(&int.to_string()),
            Scalar::Float(float) => json.push_str(&float.to_string()),
            Scalar::Text(text) => push_go_text(json, text),
            Scalar::Bool(is) => json.push_str(if *is { "true" } else { "false" }),
            Scalar::Other(value) => json.push_str(&value.to_string()),
        }
    }

    /// Where it is in the order of kinds: numbers, texts, booleans, and the rest.
    fn rank(&self) -> u8 {
        match self {
            Scalar::Int(_) | Scalar::Float(_) => 0,
            Scalar::Text(_) => 1,
            Scalar::Bool(_) => 2,
            Scalar::Other(Value::Array(_)) => 3,
            Scalar::Other(Value::Object(_)) => 4,
            Scalar::Other(_) => 5,
        }
    }
}

impl Ord for Scalar<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
            (Scalar::Int(a), Scalar::Float(b)) => compare(*a, *b),
            (Scalar::Float(a), Scalar::Int(b)) => compare(*b, *a).reverse(),
            (Scalar::Float(a), Scalar::Float(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.total_cmp(b))
            }
            (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
            (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
            (Scalar::Other(a), Scalar::Other(b)) if self.rank() == other.rank() => {
                a.to_string().cmp(&b.to_string())
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Exactly: large numbers that differ may be the same as floats, and an order in which each of them
/// is equal to a third is none.
fn compare(int: i64, float: f64) -> Ordering {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float >= BEYOND {
        Ordering::Less
    } else if float < -BEYOND {
        Ordering::Greater
    } else {
        // What is in between fits; JSON has no number that is none.
        let rest = 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Less);
        int.cmp(&(float.trunc() as i64)).then(rest)
    }
}

impl PartialOrd for Scalar<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar<'_> {}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(int) => write!(f, "{int}"),
            Scalar::Float(float) => write!(f, "{float}"),
            Scalar::Text(text) => f.write_str(&quote(text)),
            Scalar::Bool(is) => write!(f, "{is}"),
            Scalar::Other(value) => write!(f, "{value}"),
        }
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

fn push_text(json: &mut String, text: &str) {
    if is_plain(text) {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&serde_json::to_string(text).expect("a text is JSON"));
    }
}

/// The same with what HTML would misunderstand escaped, too: so Go writes the values of keys.
fn push_go_text(json: &mut String, text: &str) {
    let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    if !text.contains(special) {
        return push_text(json, text);
    }
    let written = serde_json::to_string(text).expect("a text is JSON");
    for c in written.chars() {
        if special(c) {
            json.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            json.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str) {
        let element = Element::read(Cow::Borrowed(text)).expect("a step");
        assert_eq!(element.to_string(), path);
        let mut json = String::new();
        element.write(&mut json);
        let written: String = serde_json::from_str(&json).expect("a JSON text");
        assert_eq!(written, text);
    }

    #[test]
    fn steps_are_written_as_they_are_read() {
        check("f:spec", ".spec");
        check("f:", ".");
        check("f:a.b/c", ".a.b/c");
        check("f:\"\\\n", ".\"\\\n");
        check(r#"k:{"name":"c"}"#, r#"[name="c"]"#);
        check(r#"k:{"containerPort":80,"protocol":"TCP"}"#, r#"[containerPort=80,protocol="TCP"]"#);
        check(r#"k:{"a":"\"é"}"#, r#"[a="\"é"]"#);
        check(r#"k:{}"#, "[]");
        check(r#"v:"x""#, r#"[="x"]"#);
        check("v:-7", "[=-7]");
        check("v:1.5", "[=1.5]");
        check("v:true", "[=true]");
        check("v:null", "[=null]");
        check("i:3", "[3]");
        check("k:{\"a\":\"\\u003cb\\u003e\"}", "[a=\"<b>\"]");
    }

    #[test]
    fn what_is_no_step_is_told_from_what_may_be_one_some_day() {
        let read = |text| Element::read(Cow::Borrowed(text));
        for text in ["", "f", "fa", "k:", "k:5", "k:[]", "v:", "v:{", "i:", "i:x", "é:"] {
            assert_eq!(read(text), Err(NoElement::Malformed), "{text}");
        }
        assert_eq!(read("x:1"), Err(NoElement::Unknown));
    }

    #[test]
    fn steps_have_the_order_of_fields_v1() {
        let sorted = [
            "f:a",
            "f:b",
            r#"k:{"a":1}"#,
            r#"k:{"a":1,"b":0}"#,
            r#"k:{"a":"0"}"#,
            "v:1",
            "v:1.5",
            "v:2",
            r#"v:"a""#,
            "v:false",
            "v:true",
            "v:[]",
            "v:{}",
            "v:null",
            "i:0",
            "i:1",
        ];
        let read = |text: &&'static str| Element::read(Cow::Borrowed(*text)).expect("a step");
        let elements: Vec<Element<'_>> = sorted.iter().map(read).collect();
        assert!(elements.is_sorted(), "{elements:?}");
        assert_eq!(read(&"v:1"), read(&"v:1.0"));
    }
}
