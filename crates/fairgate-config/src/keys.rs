//! Tables whose keys are described as the parameters of disciplines are.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use fairgate::registry::{Parameter, ParameterInfo};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use crate::document::Document;
use crate::error::{FileError, Problems};
use crate::spec::{Given, read_value};
use crate::suggest;

/// The keys of a table with their values as the file has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Keys(BTreeMap<String, Spanned<Given>>);

impl Keys {
    /// Returns where the value of a key is written, if it is.
    pub fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.0.get(key).map(Spanned::span)
    }

    /// Takes a key out, which is a section of its own. Returns where its value is written, if it is.
    pub fn take(&mut self, key: &str) -> Option<Range<usize>> {
        self.0.remove(key).map(|value| value.span())
    }

    /// Returns where the first value is, or nowhere.
    pub fn first_span(&self) -> Range<usize> {
        self.0
            .values()
            .map(Spanned::span)
            .min_by_key(|span| span.start)
            .unwrap_or(0..0)
    }

    /// Writes the values into `settings`, each in the unit and the range of its parameter. `what` says in
    /// messages what they are: `setting of autorate`.
    ///
    /// # Errors
    /// Reports all values that are not allowed, each with its location, the rule and a remedy.
    pub fn fill<S>(
        &self,
        document: &Document,
        what: &str,
        parameters: &[Parameter<S>],
        settings: &mut S,
    ) -> Result<(), FileError> {
        let mut problems = Problems::new(document.source());
        for (key, given) in &self.0 {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name() == key) else {
                let names = parameters.iter().map(Parameter::name);
                let (message, label) = (format!("`{key}` is no {what}"), "not known here");
                problems.add(
                    given.span(),
                    message,
                    label,
                    suggest::remedy(key, "known here", names),
                );
                continue;
            };
            let info: ParameterInfo = parameter.info(settings);
            match read_value(&info, given) {
                Ok(value) => parameter.field(settings, 0).write(&value),
                Err(mistake) => mistake.report(&mut problems),
            }
        }
        problems.unless_any(())
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Given, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<Given, E> {
        Ok(Given::Integer(integer.into()))
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<Given, E> {
        Ok(Given::Integer(integer.into()))
    }

    fn visit_f64<E: Error>(self, float: f64) -> Result<Given, E> {
        Ok(Given::Decimal(float.to_string()))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Given, E> {
        Ok(Given::Flag(flag))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Given, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Given::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Given, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Given::Table(table))
    }
}
