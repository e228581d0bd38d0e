//! Values as written, before their parameter is known.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use fairgate::LAST_CLASS;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problems;
use crate::registry::{Unit, Value};
use crate::units;
use crate::{registry::ParameterInfo, suggest};

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Given {
    /// Quoted text.
    Text(String),
    /// A word of the command line. It has no type.
    Word(String),
    /// A word in Fairgate's language, translated from another language. Its parts have no location of their
    /// own.
    Meant(String),
    /// A whole number.
    Integer(i128),
    /// A number with decimals, as it is written.
    Decimal(String),
    /// True or false.
    Flag(bool),
    /// Values in brackets.
    List(Vec<Spanned<Given>>),
    /// Names and values in braces.
    Table(Vec<(Spanned<String>, Spanned<Given>)>),
    /// A type that no parameter has, in words.
    Other(&'static str),
}

impl Given {
    pub(crate) fn from_toml(value: &DeValue<'_>) -> Given {
        match value {
            DeValue::String(text) => Given::Text(text.to_string()),
            DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
                .map_or(Given::Other("an integer of more than 128 bits"), Given::Integer),
            DeValue::Boolean(flag) => Given::Flag(*flag),
            DeValue::Array(values) => Given::List(values.iter().map(spanned_from_toml).collect()),
            DeValue::Float(float) => Given::Decimal(float.as_str().to_owned()),
            DeValue::Datetime(_) => Given::Other("a date"),
            DeValue::Table(table) => {
                let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                    let name = Spanned::new(key.span(), key.get_ref().to_string());
                    (name, spanned_from_toml(value))
                };
                Given::Table(in_order(table).into_iter().map(entry).collect())
            }
        }
    }

    /// Returns the value as one of TOML, or `None` for a word of the command line, a date, and a number that
    /// no value of TOML can hold.
    pub fn to_toml(&self) -> Option<toml::Value> {
        Some(match self {
            Given::Text(text) => toml::Value::String(text.clone()),
            Given::Integer(integer) => toml::Value::Integer(i64::try_from(*integer).ok()?),
            Given::Decimal(text) => toml::Value::Float(text.parse().ok()?),
            Given::Flag(flag) => toml::Value::Boolean(*flag),
            Given::List(values) => {
                let values = values.iter().map(|value| value.get_ref().to_toml());
                toml::Value::Array(values.collect::<Option<_>>()?)
            }
            Given::Table(entries) => {
                let entry = |(key, value): &(Spanned<String>, Spanned<Given>)| {
                    Some((key.get_ref().clone(), value.get_ref().to_toml()?))
                };
                toml::Value::Table(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Given::Word(_) | Given::Meant(_) | Given::Other(_) => return None,
        })
    }

    /// Returns the type in words, with an article.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Given::Text(_) => "text",
            Given::Word(_) | Given::Meant(_) => "a word",
            Given::Integer(_) => "a number",
            Given::Decimal(_) => "a number with decimals or an exponent",
            Given::Flag(_) => "true or false",
            Given::List(_) => "a list",
            Given::Table(_) => "a table",
            Given::Other(name) => name,
        }
    }

    /// Returns the value as text for messages.
    pub(crate) fn show(&self) -> Cow<'_, str> {
        match self {
            Given::Text(text) => Cow::Owned(format!("\"{text}\"")),
            Given::Word(text) | Given::Meant(text) | Given::Decimal(text) => Cow::Borrowed(text),
            Given::Integer(integer) => Cow::Owned(integer.to_string()),
            Given::Flag(flag) => Cow::Owned(flag.to_string()),
            Given::List(_) | Given::Table(_) | Given::Other(_) => Cow::Borrowed(self.type_name()),
        }
    }
}

pub(crate) fn spanned_from_toml(value: &Spanned<DeValue<'_>>) -> Spanned<Given> {
    Spanned::new(value.span(), Given::from_toml(value.get_ref()))
}

/// Returns a table's entries in the order of the file.
pub(crate) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The reason why a value is not allowed.
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: String,
}

impl Mistake {
    pub(crate) fn report(self, problems: &mut Problems) {
        problems.add(self.span, self.message, self.label, self.help);
    }
}

/// Reads a number that is not a parameter of a discipline, such as a class number.
pub(crate) fn number(
    name: &'static str,
    of: &'static str,
    range: RangeInclusive<u64>,
    given: &Spanned<Given>,
) -> Result<u64, Mistake> {
    let info = ParameterInfo::number(name, of, range);
    let reading = Reading {
        info: &info,
        given,
        is_written: true,
    };
    reading.integer(given).and_then(|number| reading.in_range(number))
}

/// Reads the number of a class.
pub(crate) fn class_number(key: &'static str, given: &Spanned<Given>) -> Result<u32, Mistake> {
    let number = number(key, "class number", 1..=LAST_CLASS.into(), given)?;
    Ok(u32::try_from(number).expect("it is within the range"))
}

/// Reads the value of a parameter.
pub(crate) fn read(info: &ParameterInfo, given: &Spanned<Given>) -> Result<Value, Mistake> {
    let Given::Meant(text) = given.get_ref() else {
        return read_as(info, given, true);
    };
    read_as(
        info,
        &Spanned::new(given.span(), Given::Word(text.clone())),
        false,
    )
}

/// Reads a value. `is_written` says whether the value is literally in the text.
fn read_as(info: &ParameterInfo, given: &Spanned<Given>, is_written: bool) -> Result<Value, Mistake> {
    let reading = Reading {
        info,
        given,
        is_written,
    };
    if info.optional && matches!(given.get_ref(), Given::Text(text) | Given::Word(text) if text == "none") {
        return Ok(Value::None);
    }
    match info.unit {
        Unit::Count(_) | Unit::Signed(..) => reading
            .integer(given)
            .and_then(|number| reading.in_range(number))
            .map(Value::Number),
        Unit::CountOrNumbers(_) => match given.get_ref() {
            Given::List(_) => reading.list(0..=usize::MAX),
            _ => reading
                .integer(given)
                .and_then(|number| reading.in_range(number))
                .map(Value::Number),
        },
        Unit::CountOrTexts(of) => match given.get_ref() {
            Given::List(_) => reading.texts(of, usize::MAX),
            _ => reading
                .integer(given)
                .and_then(|number| reading.in_range(number))
                .map(Value::Number),
        },
        Unit::Several(of, least, most) => reading.several(*of, least, most),
        Unit::Schedule => reading.schedule(),
        Unit::Decimal(..) => reading.decimal().map(Value::Number),
        Unit::Decimals(_) => match given.get_ref() {
            Given::List(numbers) => {
                let number = |given| Reading { given, ..reading }.decimal();
                numbers
                    .iter()
                    .map(number)
                    .collect::<Result<_, _>>()
                    .map(Value::List)
            }
            _ => reading.decimal().map(Value::Number),
        },
        Unit::TimeOrFalse if matches!(given.get_ref(), Given::Flag(false)) => Ok(Value::None),
        Unit::Bytes | Unit::Rate | Unit::Amount(_) => reading.quantity(true).map(Value::Number),
        Unit::Time | Unit::TimeOrFalse | Unit::Probability => reading.quantity(false).map(Value::Number),
        Unit::Flag => reading.flag(),
        Unit::Choice(words) => reading.choice(words),
        Unit::Text(_) => reading.text(),
        Unit::Texts(of, most) => reading.texts(of, most),
        Unit::List(length) => reading.list(length..=length),
        Unit::Numbers(most) | Unit::SignedNumbers(most) => reading.list(0..=most),
        Unit::Curve => reading.curve(),
        _ => Err(reading.wrong_type(given)),
    }
}

#[derive(Clone, Copy)]
struct Reading<'a> {
    info: &'a ParameterInfo,
    given: &'a Spanned<Given>,
    is_written: bool,
}

impl Reading<'_> {
    fn wrong_type(&self, at: &Spanned<Given>) -> Mistake {
        let rule = match self.info.unit {
            Unit::Decimal(..) => self.info.allowed(),
            unit => format!("a {}", unit.noun()),
        };
        Mistake {
            span: at.span(),
            message: format!(
                "`{}` is {}, but must be {rule}",
                self.info.name,
                at.get_ref().type_name(),
            ),
            label: format!("expected {}", self.info.allowed()),
            help: self.info.unit.example(),
        }
    }

    fn in_range(&self, number: i128) -> Result<u64, Mistake> {
        let unit = self.info.unit;
        let fits = unit
            .of_number(number)
            .filter(|fits| unit.allows(*fits, &self.info.range));
        match fits {
            Some(fits) => Ok(fits),
            None => {
                let rule = self.info.rule_broken_by(number);
                Err(Mistake {
                    span: self.given.span(),
                    message: format!(
                        "`{}` is {}, but must be {rule}",
                        self.info.name,
                        self.given.get_ref().show(),
                    ),
                    label: format!("must be {rule}"),
                    help: self.remedy(),
                })
            }
        }
    }

    /// Returns what to write instead of a value that is out of range.
    fn remedy(&self) -> String {
        let shown = match self.given.get_ref() {
            Given::Text(text) | Given::Word(text) => text.clone(),
            other => other.show().into_owned(),
        };
        let is_plain = !shown.is_empty() && shown.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match self.info.unit {
            Unit::Rate if is_plain => format!(
                "a number alone is bit/s; for Mbit/s write {shown}mbit. {}",
                self.info.doc
            ),
            _ => self.info.remedy(),
        }
    }

    fn integer(&self, at: &Spanned<Given>) -> Result<i128, Mistake> {
        match at.get_ref() {
            Given::Integer(integer) => Ok(*integer),
            Given::Word(word) => word.parse().map_err(|_| self.wrong_type(at)),
            _ => Err(self.wrong_type(at)),
        }
    }

    /// Reads a number with a unit. If `plain` is true, a number without a unit is allowed and is in the base
    /// unit.
    fn quantity(&self, plain: bool) -> Result<u64, Mistake> {
        let parse = |text: &str| self.info.unit.parse(text);
        let parsed = match self.given.get_ref() {
            Given::Text(text) | Given::Word(text) => parse(text),
            Given::Decimal(text) if matches!(self.info.unit, Unit::Probability) => parse(text),
            Given::Integer(integer) if plain && *integer > 0 => {
                return self.in_range(*integer);
            }
            Given::Integer(integer) => parse(&integer.to_string()),
            _ => return Err(self.wrong_type(self.given)),
        };
        match parsed {
            Ok(number) => self.in_range(number.into()),
            Err(error) => Err(Mistake {
                span: self.within(&error.span),
                message: format!("`{}`: {}", self.info.name, error.message),
                label: format!("expected a {}", self.info.unit.noun()),
                help: error.remedy,
            }),
        }
    }

    /// Returns the location of a part of the text in the file. If the text is quoted, its first character is
    /// after the quotation mark.
    fn within(&self, part: &Range<usize>) -> Range<usize> {
        let whole = self.given.span();
        let (Given::Text(text) | Given::Word(text) | Given::Decimal(text)) = self.given.get_ref() else {
            return whole;
        };
        match whole.len().checked_sub(text.len()) {
            Some(quotes @ (0 | 2)) if self.is_written => {
                let start = whole.start + quotes / 2;
                start + part.start..start + part.end
            }
            _ => whole,
        }
    }

    fn curve(&self) -> Result<Value, Mistake> {
        let text = match self.given.get_ref() {
            Given::Text(text) | Given::Word(text) => text,
            _ => return Err(self.wrong_type(self.given)),
        };
        units::parse_curve(text)
            .map(Value::List)
            .map_err(|error| Mistake {
                span: self.within(&error.span),
                message: format!("`{}`: {}", self.info.name, error.message),
                label: "expected a service curve".to_owned(),
                help: self.info.remedy(),
            })
    }

    fn flag(&self) -> Result<Value, Mistake> {
        match self.given.get_ref() {
            Given::Flag(flag) => Ok(Value::Flag(*flag)),
            Given::Word(word) if word == "true" => Ok(Value::Flag(true)),
            Given::Word(word) if word == "false" => Ok(Value::Flag(false)),
            _ => Err(self.wrong_type(self.given)),
        }
    }

    fn text(&self) -> Result<Value, Mistake> {
        match self.given.get_ref() {
            Given::Text(text) | Given::Word(text) => Ok(Value::Text(text.clone())),
            _ => Err(self.wrong_type(self.given)),
        }
    }

    /// Reads a number that may have decimals, as its bits.
    fn decimal(&self) -> Result<u64, Mistake> {
        let number = match self.given.get_ref() {
            Given::Integer(integer) => Some(*integer as f64),
            Given::Decimal(text) | Given::Word(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.wrong_type(self.given))?;
        match self.info.unit.allows(number.to_bits(), &self.info.range) {
            true => Ok(number.to_bits()),
            false => Err(Mistake {
                span: self.given.span(),
                message: format!(
                    "`{}` is {number}, but must be {}",
                    self.info.name,
                    self.info.allowed()
                ),
                label: format!("must be {}", self.info.allowed()),
                help: self.info.remedy(),
            }),
        }
    }

    /// Reads a list of quantities.
    fn several(&self, of: Unit, least: usize, most: usize) -> Result<Value, Mistake> {
        let values = match self.given.get_ref() {
            Given::List(values) if (least..=most).contains(&values.len()) => values,
            Given::List(values) => {
                let rule = if least == most {
                    most.to_string()
                } else if values.len() < least {
                    format!("at least {least}")
                } else {
                    format!("at most {most}")
                };
                return Err(Mistake {
                    span: self.given.span(),
                    message: format!(
                        "`{}` has {} values, but must have {rule}",
                        self.info.name,
                        values.len()
                    ),
                    label: format!("must be {rule}"),
                    help: self.info.remedy(),
                });
            }
            _ => return Err(self.wrong_type(self.given)),
        };
        let value = |given| self.quantity_of(of, given);
        values
            .iter()
            .map(value)
            .collect::<Result<_, _>>()
            .map(Value::List)
    }

    /// Reads a quantity within a list.
    fn quantity_of(&self, unit: Unit, given: &Spanned<Given>) -> Result<u64, Mistake> {
        let mut info = self.info.clone();
        info.unit = unit;
        let reading = Reading {
            info: &info,
            given,
            ..*self
        };
        reading.quantity(!matches!(unit, Unit::Time))
    }

    /// Reads times and rates, which alternate in the value.
    fn schedule(&self) -> Result<Value, Mistake> {
        let Given::List(phases) = self.given.get_ref() else {
            return Err(self.wrong_type(self.given));
        };
        let mut values = Vec::with_capacity(2 * phases.len());
        for phase in phases {
            let [from, rate] = match phase.get_ref() {
                Given::List(parts) if parts.len() == 2 => [&parts[0], &parts[1]],
                Given::List(parts) => {
                    return Err(Mistake {
                        span: phase.span(),
                        message: format!(
                            "this part of `{}` has {} values, but must have two: a time and a rate",
                            self.info.name,
                            parts.len()
                        ),
                        label: "must be a time and a rate".to_owned(),
                        help: self.info.remedy(),
                    });
                }
                _ => return Err(self.wrong_type(phase)),
            };
            values.push(self.quantity_of(Unit::Time, from)?);
            values.push(self.quantity_of(Unit::Rate, rate)?);
        }
        Ok(Value::List(values))
    }

    fn texts(&self, of: &str, most: usize) -> Result<Value, Mistake> {
        let Given::List(given) = self.given.get_ref() else {
            return Err(self.wrong_type(self.given));
        };
        if given.len() > most {
            return Err(Mistake {
                span: self.given.span(),
                message: format!(
                    "`{}` has {} texts, but must have at most {most}",
                    self.info.name,
                    given.len()
                ),
                label: format!("must be at most {most} texts"),
                help: self.info.remedy(),
            });
        }
        let text = |one: &Spanned<Given>| match one.get_ref() {
            Given::Text(text) | Given::Word(text) => Ok(text.clone()),
            other => Err(Mistake {
                span: one.span(),
                message: format!(
                    "a value in `{}` is {}, but must be text",
                    self.info.name,
                    other.type_name()
                ),
                label: format!("must be the {of}"),
                help: self.info.unit.example(),
            }),
        };
        given.iter().map(text).collect::<Result<_, _>>().map(Value::Texts)
    }

    fn choice(&self, words: &'static [&'static str]) -> Result<Value, Mistake> {
        let (Given::Text(text) | Given::Word(text)) = self.given.get_ref() else {
            return Err(self.wrong_type(self.given));
        };
        words
            .iter()
            .find(|word| *word == text)
            .map(|word| Value::Word(word))
            .ok_or_else(|| Mistake {
                span: self.given.span(),
                message: format!("`{}` can't be `{text}`", self.info.name),
                label: format!("must be {}", words.join(" or ")),
                help: suggest::remedy(text, "it may be", words.iter().copied()),
            })
    }

    fn list(&self, length: RangeInclusive<usize>) -> Result<Value, Mistake> {
        let numbers: Vec<Spanned<Given>> = match self.given.get_ref() {
            Given::List(numbers) => numbers.clone(),
            Given::Word(word) if word.is_empty() => Vec::new(),
            Given::Word(word) => word
                .split(',')
                .map(|part| Spanned::new(self.given.span(), Given::Word(part.to_owned())))
                .collect(),
            _ => return Err(self.wrong_type(self.given)),
        };
        if !length.contains(&numbers.len()) {
            let most = length.end();
            let allowed = if length.start() == most {
                most.to_string()
            } else {
                format!("at most {most}")
            };
            return Err(Mistake {
                span: self.given.span(),
                message: format!(
                    "`{}` has {} numbers, but must have {allowed}",
                    self.info.name,
                    numbers.len()
                ),
                label: format!("must be {allowed} numbers"),
                help: self.info.remedy(),
            });
        }
        let least = match self.info.unit {
            Unit::SignedNumbers(_) => format!("-{}", self.info.range.end()),
            _ => self.info.range.start().to_string(),
        };
        let range = format!("{least} to {}", self.info.range.end());
        let mut list = Vec::with_capacity(numbers.len());
        for given in &numbers {
            let element = Reading {
                info: self.info,
                given,
                is_written: self.is_written,
            };
            let number = element.integer(given)?;
            list.push(element.in_range(number).map_err(|mistake| Mistake {
                message: format!(
                    "a number in `{}` is {}, but must be {range}",
                    self.info.name,
                    given.get_ref().show()
                ),
                label: format!("must be {range}"),
                ..mistake
            })?);
        }
        Ok(Value::List(list))
    }
}
