//! Parts that repeat: `each` gives variables, and `{name}` in a text is replaced by their values.
//!
//! ```toml
//! each = { i = 12 }                                    # i is 1, 2, ... 12
//! each = { i = "3..8" }                                # i is 3, 4, ... 8
//! each = { i = 3, side = ["left", "right"] }           # six combinations
//! a = "access-{i}"
//! b = "host-{i}-{side}"                                # {i+1}, {(i-1)%12}, {2*i}: calculated numbers
//! ```
//!
//! With several variables, the one that is last in the alphabet changes first.

use std::collections::BTreeMap;

use fairgate_config::FileError;
use serde::Deserialize;
use toml::Spanned;

use super::Reader;
use super::expression::calculate;

/// The maximum number of copies of one part: the number of interfaces and flows that events distinguish.
const MOST: usize = 1 << 22;

/// The variables of a repeated part.
pub(super) type Each = BTreeMap<String, Values>;

/// The values of a variable.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Values {
    /// From 1 to this number.
    UpTo(u32),
    /// `"3..8"`: from the first to the second number, both included.
    Range(String),
    /// Texts or numbers.
    List(Vec<Value>),
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    Number(u32),
    Text(String),
}

impl Values {
    /// Returns the values as texts, or what is wrong.
    fn list(&self) -> Result<Vec<String>, String> {
        let values: Vec<String> = match self {
            Values::UpTo(count) => (1..=*count).map(|value| value.to_string()).collect(),
            Values::Range(range) => {
                let ends = range.split_once("..").and_then(|(first, last)| {
                    Some((
                        first.trim().parse::<u32>().ok()?,
                        last.trim().parse::<u32>().ok()?,
                    ))
                });
                let (first, last) =
                    ends.ok_or_else(|| format!("`{range}` is not a range such as \"3..8\""))?;
                (first..=last).map(|value| value.to_string()).collect()
            }
            Values::List(values) => values
                .iter()
                .map(|value| match value {
                    Value::Number(number) => number.to_string(),
                    Value::Text(text) => text.clone(),
                })
                .collect(),
        };
        match values.is_empty() {
            true => Err("there are no values".to_owned()),
            false => Ok(values),
        }
    }
}

/// The values of all variables for one copy.
#[derive(Clone, Default)]
pub(super) struct Copy(Vec<(String, String)>);

impl Copy {
    /// Returns the text with all variables replaced, or what is wrong.
    fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after
                .split_once('}')
                .ok_or_else(|| format!("a brace of `{text}` is not closed"))?;
            filled.push_str(before);
            filled.push_str(&self.value(expression.trim())?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Returns the value of a variable, or of an expression of variables that are numbers.
    fn value(&self, expression: &str) -> Result<String, String> {
        if let Some(value) = self.find(expression) {
            return Ok(value.to_owned());
        }
        let number = calculate(expression, &|name| {
            let value = self.find(name).ok_or_else(|| self.unknown(name))?;
            value
                .parse()
                .map_err(|_| format!("`{{{expression}}}` calculates with `{value}`, which is not a number"))
        })?;
        Ok(number.to_string())
    }

    fn find(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [] => format!("`{{{name}}}` stands for nothing without `each`"),
            names => format!("`{{{name}}}` is none of the variables {}", names.join(", ")),
        }
    }
}

impl Reader<'_> {
    /// Returns the copies of a part: one without variables if it does not repeat.
    pub(super) fn copies(&self, each: Option<&Spanned<Each>>) -> Result<Vec<Copy>, FileError> {
        let Some(each) = each else {
            return Ok(vec![Copy::default()]);
        };
        let wrong = |what: String| {
            self.document.error(
                each.span(),
                what,
                "write for example { i = 12 }, { i = \"3..8\" } or { side = [\"left\", \"right\"] }",
            )
        };
        if each.get_ref().is_empty() {
            return Err(wrong("`each` has no variable".to_owned()));
        }
        let mut copies = vec![Copy::default()];
        for (name, values) in each.get_ref() {
            let values = values
                .list()
                .map_err(|what| wrong(format!("variable `{name}`: {what}")))?;
            if copies.len().saturating_mul(values.len()) > MOST {
                return Err(wrong(format!(
                    "`each` makes more than {MOST} copies, which is the limit"
                )));
            }
            copies = copies
                .iter()
                .flat_map(|copy| {
                    values.iter().map(|value| {
                        let mut more = copy.clone();
                        more.0.push((name.clone(), value.clone()));
                        more
                    })
                })
                .collect();
        }
        Ok(copies)
    }

    /// Returns a text of a copy.
    pub(super) fn fill(&self, text: &Spanned<String>, copy: &Copy) -> Result<String, FileError> {
        copy.fill(text.get_ref()).map_err(|what| {
            self.document.error(
                text.span(),
                what,
                "name a variable of `each`, or calculate with its number: {i}, {i+1}, {(i-1)%12}",
            )
        })
    }
}
