//! The keys that the configuration's types have, read from serde: a value is deserialized from nothing, and the
//! names of every struct's fields are noted on the way. So a new field is in the list without being written there.

use std::{cell::RefCell, fmt};

use serde::de::{self, DeserializeOwned, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};

/// The keys of `T`, as `section.key`, in the order of the fields. An optional value is a key, never a section.
///
/// # Panics
/// `T` has a required field that cannot be read from an empty text or a zero.
pub fn keys<T: DeserializeOwned>() -> Vec<String> {
    let found = RefCell::new(Vec::new());
    T::deserialize(Nothing { path: String::new(), found: &found }).expect("a value can be made from nothing");
    found.into_inner()
}

/// The source of a value that has only a place.
struct Nothing<'a> {
    path: String,
    found: &'a RefCell<Vec<String>>,
}

#[derive(Debug)]
struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Problem {}
impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl Nothing<'_> {
    /// A value that has no fields: its place is a key.
    fn leaf(&self) {
        let mut found = self.found.borrow_mut();
        if !found.contains(&self.path) {
            found.push(self.path.clone());
        }
    }
}

/// Scalars of each kind are keys.
macro_rules! leaves {
    ($($method:ident $visit:ident $value:expr),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            self.leaf();
            visitor.$visit($value)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Nothing<'_> {
    type Error = Problem;

    leaves! {
        deserialize_bool visit_bool false,
        deserialize_i8 visit_i8 0, deserialize_i16 visit_i16 0, deserialize_i32 visit_i32 0,
        deserialize_i64 visit_i64 0,
        deserialize_u8 visit_u8 0, deserialize_u16 visit_u16 0, deserialize_u32 visit_u32 0,
        deserialize_u64 visit_u64 0,
        deserialize_f32 visit_f32 0.0, deserialize_f64 visit_f64 0.0,
        deserialize_char visit_char 'x', deserialize_str visit_str "", deserialize_string visit_str "",
        deserialize_any visit_str "",
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_map(Fields { nothing: self, fields, at: 0 })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.leaf();
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    /// A list is one key; the form of its items is not.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.leaf();
        visitor.visit_seq(Empty)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.leaf();
        let first: de::value::StrDeserializer<'_, Problem> =
            variants.first().copied().unwrap_or_default().into_deserializer();
        visitor.visit_enum(first)
    }

    serde::forward_to_deserialize_any! {
        bytes byte_buf unit unit_struct tuple tuple_struct map identifier ignored_any
    }
}

struct Fields<'a> {
    nothing: Nothing<'a>,
    fields: &'static [&'static str],
    at: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Problem;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        let Some(&name) = self.fields.get(self.at) else { return Ok(None) };
        let name: de::value::StrDeserializer<'_, Problem> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let name = self.fields[self.at];
        self.at += 1;
        let parent = &self.nothing.path;
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
        seed.deserialize(Nothing { path, found: self.nothing.found })
    }
}

struct Empty;

impl<'de> SeqAccess<'de> for Empty {
    type Error = Problem;

    fn next_element_seed<S: de::DeserializeSeed<'de>>(&mut self, _: S) -> Result<Option<S::Value>, Problem> {
        Ok(None)
    }
}
