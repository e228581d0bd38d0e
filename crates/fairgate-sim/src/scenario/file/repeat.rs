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

use std::ops::RangeInclusive;

use fairgate_config::language::Given;
use fairgate_config::{FileError, Section, Table};
use toml::Spanned;

use super::Reader;
use super::expression::calculate;

/// The maximum number of copies of one part: the number of interfaces and flows that events distinguish.
const MOST: usize = 1 << 22;

/// The variables of a repeated part: a table with any names.
pub(super) const EACH: Section = Section::open("each", "its copies: values of variables");

/// Returns the values of a variable as texts, or what is wrong.
fn values(written: &Given) -> Result<Vec<String>, String> {
    let number = |integer: &i128| {
        u32::try_from(*integer).map_err(|_| format!("{integer} is not a number from 0 to {}", u32::MAX))
    };
    let numbers = |range: RangeInclusive<u32>| range.map(|number| number.to_string()).collect();
    let values: Vec<String> = match written {
        // From 1 to this number.
        Given::Integer(count) => numbers(1..=number(count)?),
        // Both ends are included.
        Given::Text(range) => {
            let ends = range.split_once("..").and_then(|(first, last)| {
                let first = first.trim().parse::<u32>().ok()?;
                Some(first..=last.trim().parse::<u32>().ok()?)
            });
            numbers(ends.ok_or_else(|| format!("`{range}` is not a range such as \"3..8\""))?)
        }
        Given::List(values) => {
            let value = |value: &Spanned<Given>| match value.get_ref() {
                Given::Integer(integer) => Ok(number(integer)?.to_string()),
                Given::Text(text) => Ok(text.clone()),
                _ => Err("a value is neither a text nor a whole number".to_owned()),
            };
            values.iter().map(value).collect::<Result<_, _>>()?
        }
        _ => return Err("it is neither a number nor a range nor a list".to_owned()),
    };
    match values.is_empty() {
        true => Err("there are no values".to_owned()),
        false => Ok(values),
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
    pub(super) fn copies(&self, part: &Table) -> Result<Vec<Copy>, FileError> {
        let Some(each) = part.table("each") else {
            return Ok(vec![Copy::default()]);
        };
        let wrong = |what: String| {
            self.document.error(
                each.span(),
                what,
                "write for example { i = 12 }, { i = \"3..8\" } or { side = [\"left\", \"right\"] }",
            )
        };
        let mut variables: Vec<_> = each.entries().iter().collect();
        if variables.is_empty() {
            return Err(wrong("`each` has no variable".to_owned()));
        }
        variables.sort_by_key(|(name, _)| name.get_ref());
        let mut copies = vec![Copy::default()];
        for (name, written) in variables {
            let name = name.get_ref();
            let values =
                values(written.get_ref()).map_err(|what| wrong(format!("variable `{name}`: {what}")))?;
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
