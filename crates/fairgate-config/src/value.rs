//! Values of parameters: as a discipline's `Config` holds them, and as users write them.

use std::ops::RangeInclusive;
use std::time::Duration;

use fairgate::{Probability, Rate};

use crate::units;

/// The value of a parameter, in its base unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of packets, bytes, bit/s, nanoseconds, flows ...
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// One of the words that the parameter allows.
    Word(&'static str),
    /// Numbers in a fixed order.
    List(Vec<u64>),
    /// Explicitly nothing: no limit, no threshold. Written `"none"`.
    None,
}

/// What a parameter counts, and so how users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number; the word says of what.
    Count(&'static str),
    /// Bytes, in tc's language: `64kb`.
    Bytes,
    /// Nanoseconds, in tc's language: `5ms`.
    Time,
    /// Bits per second, in tc's language: `20mbit`.
    Rate,
    /// Parts of 2^32, written as a decimal: `0.02`.
    Probability,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of so many numbers.
    List(usize),
    /// A list of at most so many numbers.
    Numbers(usize),
    /// A service curve of two pieces: `4mbit:10ms:1mbit`. Its value is a list: bit/s, nanoseconds, bit/s.
    Curve,
}

impl Unit {
    /// The unit's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count(of) => of,
            Unit::Bytes => "bytes",
            Unit::Time => "time",
            Unit::Rate => "rate",
            Unit::Probability => "probability",
            Unit::Flag => "true/false",
            Unit::Choice(_) => "word",
            Unit::List(_) | Unit::Numbers(_) => "list",
            Unit::Curve => "curve",
        }
    }

    /// What a value of this unit is, in a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Unit::Count(_) => "plain number",
            Unit::Bytes => "size",
            Unit::Time => "duration",
            Unit::Rate => "rate",
            Unit::Probability => "probability",
            Unit::Flag => "flag",
            Unit::Choice(_) => "word",
            Unit::List(_) | Unit::Numbers(_) => "list of numbers",
            Unit::Curve => "service curve",
        }
    }

    /// A number of this unit as users write it.
    fn show_number(self, number: u64) -> String {
        match self {
            Unit::Bytes => units::format_size(number),
            Unit::Time => units::format_duration(Duration::from_nanos(number)),
            Unit::Rate => match Rate::from_bits_per_second(number) {
                Ok(rate) => units::format_rate(rate),
                Err(_) => "0bit".to_owned(),
            },
            Unit::Probability => Probability::from_parts(number).to_string(),
            _ => number.to_string(),
        }
    }

    /// A value of this unit as users write it, without quotation marks.
    pub fn show(self, value: &Value) -> String {
        match value {
            Value::Number(number) => self.show_number(*number),
            Value::Flag(flag) => flag.to_string(),
            Value::Word(word) => (*word).to_owned(),
            Value::List(curve) if self == Unit::Curve => units::format_curve(curve),
            Value::List(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
                format!("[{}]", numbers.join(", "))
            }
            Value::None => "none".to_owned(),
        }
    }

    /// A range of this unit for people: `1 to 65536`, `at least 1ns`.
    pub fn show_range(self, range: &RangeInclusive<u64>) -> String {
        let least = self.show_number(*range.start());
        match self {
            Unit::Flag => "true or false".to_owned(),
            Unit::Curve => "a service curve".to_owned(),
            Unit::Choice(words) => words.join(" or "),
            Unit::List(length) => format!("{length} numbers, {least} to {}", range.end()),
            Unit::Numbers(most) => format!("at most {most} numbers, {least} to {}", range.end()),
            _ if self.hides(*range.end()) => format!("at least {least}"),
            _ => format!("{least} to {}", self.show_number(*range.end())),
        }
    }

    /// The largest number of a machine word is no bound that anyone should read who keeps it.
    pub(crate) fn hides(self, most: u64) -> bool {
        [u64::MAX, u64::from(u32::MAX), i64::MAX as u64].contains(&most)
    }

    /// What to write for this unit, as a remedy.
    pub(crate) fn example(self) -> String {
        match self {
            // Not counted in themselves.
            Unit::Count("weight" | "times" | "class" | "priority") => {
                "write a plain number, like 3".to_owned()
            }
            Unit::Count(of) => format!("write a plain number of {of}, like 1000"),
            Unit::Bytes => "write a size like \"64kb\", \"1514b\" or the plain number of bytes".to_owned(),
            Unit::Time => "write a duration with its unit, like \"5ms\", \"100us\" or \"1s\"".to_owned(),
            Unit::Rate => "write a rate like \"20mbit\" or the plain number of bit/s".to_owned(),
            Unit::Probability => "write a probability like 0.02".to_owned(),
            Unit::Flag => "write true or false".to_owned(),
            Unit::Choice(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("write {}", quoted.join(" or "))
            }
            Unit::List(length) => format!("write a list of {length} numbers, like [0, 1, 2]"),
            Unit::Curve => "write a rate, \"2mbit\"; a rate, for how long, and the rate from then on, \"4mbit:10ms:1mbit\"; \
                            or a packet, by when, and a rate, \"1500b:10ms:1mbit\""
                .to_owned(),
            Unit::Numbers(_) => "write a list of numbers, like [4, 2, 1], or [] for none".to_owned(),
        }
    }
}

/// A field of a discipline's `Config` that a parameter reads and writes.
pub(crate) trait Field {
    /// The field's value.
    fn read(&self) -> Value;

    /// Sets the field. The value is of the parameter's unit and within its range, which the registry's tests show to
    /// fit the field.
    ///
    /// # Panics
    /// If it does not fit: the registry's entry would be wrong.
    fn write(&mut self, value: &Value);

    /// Whether the field can be nothing ([`Value::None`]).
    fn is_optional(&self) -> bool {
        false
    }
}

#[cold]
pub(crate) fn misfit(field: &str, value: &Value) -> ! {
    panic!("the registry lets {value:?} through to a field of type {field}")
}

macro_rules! number_field {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn read(&self) -> Value {
                Value::Number(*self as u64)
            }

            fn write(&mut self, value: &Value) {
                match value {
                    Value::Number(number) if <$number>::try_from(*number).is_ok() => *self = *number as $number,
                    _ => misfit(stringify!($number), value),
                }
            }
        }
    )*};
}

number_field!(u8, u16, u32, u64, usize);

impl Field for bool {
    fn read(&self) -> Value {
        Value::Flag(*self)
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Flag(flag) => *self = *flag,
            _ => misfit("bool", value),
        }
    }
}

impl Field for Duration {
    fn read(&self) -> Value {
        Value::Number(self.as_nanos() as u64)
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Number(nanos) => *self = Duration::from_nanos(*nanos),
            _ => misfit("Duration", value),
        }
    }
}

impl Field for Rate {
    fn read(&self) -> Value {
        Value::Number(self.bits_per_second())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Number(bits) => match Rate::from_bits_per_second(*bits) {
                Ok(rate) => *self = rate,
                Err(_) => misfit("Rate", value),
            },
            _ => misfit("Rate", value),
        }
    }
}

impl Field for Probability {
    fn read(&self) -> Value {
        Value::Number(self.parts())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Number(parts) if *parts <= Probability::ONE.parts() => {
                *self = Probability::from_parts(*parts);
            }
            _ => misfit("Probability", value),
        }
    }
}

/// `None` is [`Value::None`]. `Some` starts from the field type's smallest value.
impl<F: Field + Smallest> Field for Option<F> {
    fn read(&self) -> Value {
        self.as_ref().map_or(Value::None, Field::read)
    }

    fn write(&mut self, value: &Value) {
        *self = match value {
            Value::None => None,
            _ => {
                let mut field = F::SMALLEST;
                field.write(value);
                Some(field)
            }
        };
    }

    fn is_optional(&self) -> bool {
        true
    }
}

/// A value to start from when an optional field is set.
pub(crate) trait Smallest {
    /// Any value; it is overwritten at once.
    const SMALLEST: Self;
}

impl Smallest for u8 {
    const SMALLEST: u8 = 0;
}

impl Smallest for u16 {
    const SMALLEST: u16 = 0;
}

impl Smallest for u32 {
    const SMALLEST: u32 = 0;
}

impl Smallest for u64 {
    const SMALLEST: u64 = 0;
}

impl Smallest for Duration {
    const SMALLEST: Duration = Duration::ZERO;
}

impl Smallest for Rate {
    const SMALLEST: Rate = Rate::mbit(1);
}

impl<const N: usize> Smallest for [u8; N] {
    const SMALLEST: [u8; N] = [0; N];
}

impl<const N: usize> Field for [u8; N] {
    fn read(&self) -> Value {
        Value::List(self.iter().map(|number| u64::from(*number)).collect())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(numbers) if numbers.len() == N => {
                for (place, number) in self.iter_mut().zip(numbers) {
                    place.write(&Value::Number(*number));
                }
            }
            _ => misfit("[u8; N]", value),
        }
    }
}

impl Field for Vec<u32> {
    fn read(&self) -> Value {
        Value::List(self.iter().map(|number| u64::from(*number)).collect())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(numbers) => {
                self.clear();
                self.resize(numbers.len(), 0);
                for (place, number) in self.iter_mut().zip(numbers) {
                    place.write(&Value::Number(*number));
                }
            }
            _ => misfit("Vec<u32>", value),
        }
    }
}

/// Lets an enum without fields be a parameter of words.
macro_rules! choice_field {
    ($choice:ty { $($word:literal => $variant:path),* $(,)? }) => {
        impl crate::value::Field for $choice {
            fn read(&self) -> crate::value::Value {
                match self {
                    $($variant => crate::value::Value::Word($word),)*
                }
            }

            fn write(&mut self, value: &crate::value::Value) {
                *self = match value {
                    $(crate::value::Value::Word($word) => $variant,)*
                    _ => crate::value::misfit(stringify!($choice), value),
                }
            }
        }
    };
}

pub(crate) use choice_field;
