//! A source that has everything: each type that reads from it gets every field it asks for,
//! one item in every list, one entry in every map. So an object that was read from it shows
//! which fields its type has.

use std::collections::VecDeque;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Error;

/// The source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Everything {
    text: &'static str,
    /// The object itself does not say its type: the envelope does. Nor do options anywhere.
    is_root: bool,
}

impl Everything {
    /// Where an object is read from.
    pub(crate) const ROOT: Everything = Everything { text: "x", is_root: true };

    fn within(self) -> Self {
        Everything { is_root: false, ..self }
    }
}

impl<'de> Deserializer<'de> for Everything {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i32(1)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(1)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // Bytes read themselves as an option of a text.
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = match name {
            "Time" | "MicroTime" => "2026-01-01T00:00:00Z",
            _ => self.text,
        };
        visitor.visit_newtype_struct(Everything { text, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Once(Some(self.within())))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Fields { left: ["key"].into(), source: self.within() })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let says_type = !self.is_root && name != "DeleteOptions";
        let is_asked = |field: &&&str| says_type || !["apiVersion", "kind"].contains(*field);
        let left = fields.iter().filter(is_asked).copied().collect();
        visitor.visit_map(Fields { left, source: self.within() })
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct enum identifier ignored_any
    }
}

struct Once(Option<Everything>);

impl<'de> SeqAccess<'de> for Once {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|source| seed.deserialize(source)).transpose()
    }
}

struct Fields {
    left: VecDeque<&'static str>,
    source: Everything,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.left.front() else { return Ok(None) };
        seed.deserialize(StrDeserializer::<Error>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let name = self.left.pop_front().ok_or_else(|| Error::custom("no field"))?;
        // Maps of bytes need base64.
        let source = Everything { text: "AA==", ..self.source };
        seed.deserialize(source).map_err(|error| Error::custom(format!("{name}: {error}")))
    }
}
