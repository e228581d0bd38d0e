//! A value in a file that is usually one word or number, and a table if there is more to say.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The value as written in the file.
pub(super) enum Shorthand<T> {
    Text(String),
    Number(f64),
    Table(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shorthand<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shorthand<T>, D::Error> {
        struct ShorthandVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ShorthandVisitor<T> {
            type Value = Shorthand<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, a number, or a table")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Shorthand::Text(text.to_owned()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Shorthand::Number(number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Shorthand::Number(number as f64))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Shorthand::Table)
            }
        }

        deserializer.deserialize_any(ShorthandVisitor(PhantomData))
    }
}
