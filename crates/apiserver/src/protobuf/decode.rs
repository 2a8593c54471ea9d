//! From the bytes of a message to the JSON that Kubernetes writes of the same object, by the
//! schema. It knows no wire below its reader and no kind.
//!
//! As Go reads them: fields that nobody knows are passed over, the last of several wins,
//! messages that come twice are merged. Times, quantities and the like are one value each,
//! and the last wins. A text that is not UTF-8 is refused, for JSON could not hold it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::{Map, Value};
use thiserror::Error;

use super::wire::{Reader, Tag, WireError, WireType};
use crate::decode::{MAX_OBJECTS, MAX_SCALARS};
use crate::fields::set::MAX_LEVELS;
use crate::patch::limits::measure;
use crate::schema::{Field, Holds, Message, Type};

/// Bytes that are not what the schema says.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// They are no protobuf.
    #[error("proto: {source} for field {field}")]
    Wire {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: WireError,
    },
    /// A text is not UTF-8.
    #[error("proto: field {field} contains invalid UTF-8")]
    NoText {
        /// The field.
        field: &'static str,
    },
    /// A time is before the year 0 or after the year 9999.
    #[error("proto: the time of field {field} is out of range")]
    NoTime {
        /// The field.
        field: &'static str,
    },
    /// A value is neither a number nor a text.
    #[error("proto: impossible IntOrString.Type {of} in field {field}")]
    NoIntOrString {
        /// The field.
        field: &'static str,
        /// What it says it is.
        of: i64,
    },
    /// What should be JSON is none.
    #[error("proto: field {field} is no JSON: {source}")]
    NoJson {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// What should be a set of fields is deeper than any.
    #[error("proto: field {field} is deeper than {MAX_LEVELS} levels")]
    TooDeep {
        /// The field.
        field: &'static str,
    },
    /// There are too many.
    #[error("proto: there are more than {MAX_OBJECTS} messages")]
    TooMany,
    /// There are too many texts, numbers or entries.
    #[error("proto: there are more than {MAX_SCALARS} values")]
    TooManyScalars,
}

/// Reads an object.
pub fn object(bytes: &[u8], message: Message) -> Result<Value, DecodeError> {
    let mut fields = Map::new();
    let mut decoder = Decoder { messages_left: MAX_OBJECTS, scalars_left: MAX_SCALARS };
    decoder.message(bytes, message, &mut fields)?;
    Ok(Value::Object(fields))
}

struct Decoder {
    messages_left: usize,
    scalars_left: usize,
}

impl Decoder {
    /// Reads a message into what has been read of it already.
    fn message(
        &mut self,
        bytes: &[u8],
        message: Message,
        into: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        self.messages_left = self.messages_left.checked_sub(1).ok_or(DecodeError::TooMany)?;
        let mut reader = Reader::new(bytes);
        while let Some(tag) = reader.tag().map_err(wire("unknown"))? {
            match message.binary_search_by_key(&tag.number, |field| field.number) {
                Ok(found) => self.field(&mut reader, tag, &message[found], into)?,
                Err(_) => reader.skip(tag).map_err(wire("unknown"))?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        tag: Tag,
        field: &Field,
        into: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        let name = field.name;
        match field.holds {
            Holds::One(Type::Object(message) | Type::Atomic(message))
            | Holds::Nonzero(Type::Object(message) | Type::Atomic(message)) => {
                let bytes = delimited(reader, tag, name)?;
                self.message(bytes, message, object_in(into, name))
            }
            Holds::Inline(message) => {
                let bytes = delimited(reader, tag, "inline")?;
                self.message(bytes, message, into)
            }
            Holds::One(of) => {
                set(into, name, scalar(reader, tag, of, name)?);
                Ok(())
            }
            Holds::Nonzero(of) => {
                let value = scalar(reader, tag, of, name)?;
                set(into, name, value.filter(|value| !is_zero(value)));
                Ok(())
            }
            Holds::List(of, _) => self.item(reader, tag, of, name, list_in(into, name)),
            Holds::Map(of, _) => {
                self.count_scalar()?;
                let (key, value) = entry(delimited(reader, tag, name)?, of, name)?;
                object_in(into, name).insert(key, value);
                Ok(())
            }
        }
    }

    /// One more in a list or a map; elsewhere there is one of each name.
    fn count_scalar(&mut self) -> Result<(), DecodeError> {
        self.scalars_left = self.scalars_left.checked_sub(1).ok_or(DecodeError::TooManyScalars)?;
        Ok(())
    }

    /// Reads one item of a list, or several numbers in one.
    fn item(
        &mut self,
        reader: &mut Reader<'_>,
        tag: Tag,
        of: Type,
        name: &'static str,
        into: &mut Vec<Value>,
    ) -> Result<(), DecodeError> {
        match of {
            Type::Object(message) | Type::Atomic(message) => {
                let mut item = Map::new();
                self.message(delimited(reader, tag, name)?, message, &mut item)?;
                into.push(Value::Object(item));
            }
            Type::Bool | Type::Int32 | Type::Int64 if tag.wire_type == WireType::Bytes => {
                let mut packed = Reader::new(delimited(reader, tag, name)?);
                let tag = Tag { wire_type: WireType::Varint, ..tag };
                while !packed.is_empty() {
                    self.count_scalar()?;
                    into.extend(scalar(&mut packed, tag, of, name)?);
                }
            }
            _ => {
                self.count_scalar()?;
                into.extend(scalar(reader, tag, of, name)?);
            }
        }
        Ok(())
    }
}

fn wire(field: &'static str) -> impl Fn(WireError) -> DecodeError {
    move |source| DecodeError::Wire { field, source }
}

fn delimited<'b>(
    reader: &mut Reader<'b>,
    tag: Tag,
    name: &'static str,
) -> Result<&'b [u8], DecodeError> {
    tag.expect(WireType::Bytes).and_then(|()| reader.bytes()).map_err(wire(name))
}

/// The object of a field, which is made if it is not there.
fn object_in<'v>(into: &'v mut Map<String, Value>, name: &str) -> &'v mut Map<String, Value> {
    let value = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
    value.as_object_mut().expect("a name is given once, so nothing else has made it a value")
}

/// The list of a field, which is made if it is not there.
fn list_in<'v>(into: &'v mut Map<String, Value>, name: &str) -> &'v mut Vec<Value> {
    let value = into.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    value.as_array_mut().expect("a name is given once, so nothing else has made it a value")
}

fn set(into: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => into.insert(name.to_owned(), value),
        None => into.remove(name),
    };
}

/// What Go's `omitempty` leaves out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Reads a value that is no message to JSON; none if there is nothing to show, which is how
/// Go sends a time that is not set.
fn scalar(
    reader: &mut Reader<'_>,
    tag: Tag,
    of: Type,
    name: &'static str,
) -> Result<Option<Value>, DecodeError> {
    let value = match of {
        Type::Bool => Value::from(number(reader, tag, name)? != 0),
        // Negative numbers are sent with 64 bits, of which the lower half is the number.
        Type::Int32 => Value::from(number(reader, tag, name)? as i32),
        Type::Int64 => Value::from(number(reader, tag, name)?),
        Type::Text => text(delimited(reader, tag, name)?, name)?,
        Type::Bytes => Value::from(STANDARD.encode(delimited(reader, tag, name)?)),
        Type::Quantity => quantity(delimited(reader, tag, name)?, name)?,
        Type::IntOrString => int_or_string(delimited(reader, tag, name)?, name)?,
        Type::Time => return time(delimited(reader, tag, name)?, name, false),
        Type::MicroTime => return time(delimited(reader, tag, name)?, name, true),
        Type::RawJson => return raw_json(delimited(reader, tag, name)?, name),
        Type::Object(_) | Type::Atomic(_) => {
            unreachable!("messages are read before, and maps hold none")
        }
    };
    Ok(Some(value))
}

fn number(reader: &mut Reader<'_>, tag: Tag, name: &'static str) -> Result<i64, DecodeError> {
    let number = tag.expect(WireType::Varint).and_then(|()| reader.varint());
    Ok(number.map_err(wire(name))?.cast_signed())
}

fn text(bytes: &[u8], field: &'static str) -> Result<Value, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::NoText { field })?;
    Ok(Value::from(text))
}

/// The entry of a map.
fn entry(bytes: &[u8], of: Type, name: &'static str) -> Result<(String, Value), DecodeError> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag().map_err(wire(name))? {
        match tag.number {
            1 => {
                let bytes = delimited(&mut reader, tag, name)?.to_vec();
                key = String::from_utf8(bytes).map_err(|_| DecodeError::NoText { field: name })?;
            }
            2 => value = scalar(&mut reader, tag, of, name)?,
            _ => reader.skip(tag).map_err(wire(name))?,
        }
    }
    let absent = if let Type::Quantity = of { "0" } else { "" };
    Ok((key, value.unwrap_or_else(|| Value::from(absent))))
}

/// A time as RFC 3339 has it. Go's zero time is none.
fn time(bytes: &[u8], field: &'static str, is_micro: bool) -> Result<Option<Value>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let [seconds, nanos] = numbers(bytes, field)?;
    let nanos = if is_micro { nanos as i32 / 1000 * 1000 } else { 0 };
    let out_of_range = |_| DecodeError::NoTime { field };
    let moment = Timestamp::new(seconds, nanos).map_err(out_of_range)?;
    let date = Offset::UTC.to_datetime(moment);
    if date.year() < 0 {
        return Err(DecodeError::NoTime { field });
    }
    if (seconds, nanos) == (GO_ZERO_SECONDS, 0) {
        return Ok(None);
    }
    let text = if is_micro { format!("{moment:.6}") } else { moment.to_string() };
    Ok(Some(Value::from(text)))
}

/// The first second of the year 1, which Go takes for no time.
const GO_ZERO_SECONDS: i64 = -62_135_596_800;

/// The first two numbers of a message.
fn numbers(bytes: &[u8], name: &'static str) -> Result<[i64; 2], DecodeError> {
    let mut numbers = [0; 2];
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag().map_err(wire(name))? {
        match tag.number {
            1 => numbers[0] = number(&mut reader, tag, name)?,
            2 => numbers[1] = number(&mut reader, tag, name)?,
            _ => reader.skip(tag).map_err(wire(name))?,
        }
    }
    Ok(numbers)
}

fn quantity(bytes: &[u8], name: &'static str) -> Result<Value, DecodeError> {
    let mut value = Value::from("0");
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag().map_err(wire(name))? {
        match tag.number {
            1 => value = text(delimited(&mut reader, tag, name)?, name)?,
            _ => reader.skip(tag).map_err(wire(name))?,
        }
    }
    Ok(value)
}

fn int_or_string(bytes: &[u8], name: &'static str) -> Result<Value, DecodeError> {
    let (mut of, mut int, mut string) = (0, 0, Value::from(""));
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag().map_err(wire(name))? {
        match tag.number {
            1 => of = number(&mut reader, tag, name)?,
            2 => int = number(&mut reader, tag, name)?,
            3 => string = text(delimited(&mut reader, tag, name)?, name)?,
            _ => reader.skip(tag).map_err(wire(name))?,
        }
    }
    match of {
        0 => Ok(Value::from(int as i32)),
        1 => Ok(string),
        _ => Err(DecodeError::NoIntOrString { field: name, of }),
    }
}

/// The `raw` of a message that is JSON. It is read as a text of its own, and is part of others
/// later: what is read here must not be too deep for whoever reads those.
fn raw_json(bytes: &[u8], field: &'static str) -> Result<Option<Value>, DecodeError> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag().map_err(wire(field))? {
        match tag.number {
            1 => raw = delimited(&mut reader, tag, field)?,
            _ => reader.skip(tag).map_err(wire(field))?,
        }
    }
    if raw.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_slice(raw);
    let value: Value = value.map_err(|source| DecodeError::NoJson { field, source })?;
    if measure(&value).depth > MAX_LEVELS {
        return Err(DecodeError::TooDeep { field });
    }
    Ok((!value.is_null()).then_some(value))
}

#[cfg(test)]
mod tests;
