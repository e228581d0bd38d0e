//! Values of parameters, and the fields of a discipline's `Config` that hold them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::probability::Probability;
use crate::rate::Rate;
use crate::service_curve::ServiceCurve;

/// The value of a parameter, in its base unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of packets, bytes, bit/s, nanoseconds, flows and so on.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// One of the words that the parameter allows.
    Word(&'static str),
    /// Any text.
    Text(String),
    /// Numbers in a fixed order.
    List(Vec<u64>),
    /// Texts in a fixed order.
    Texts(Vec<String>),
    /// No value, given explicitly: no limit, no threshold. Users write `"none"`.
    None,
}

/// A field of a discipline's `Config` that a parameter reads and writes.
pub trait Field {
    /// The field's value.
    fn read(&self) -> Value;

    /// Sets the field. The value has the parameter's unit and is within its range.
    ///
    /// # Panics
    /// Panics if the field can't hold the value. Then the description of the parameter is wrong.
    fn write(&mut self, value: &Value);

    /// Whether the field can be [`Value::None`].
    fn is_optional(&self) -> bool {
        false
    }
}

/// Reports that the description of a parameter allows a value that its field can't hold.
///
/// # Panics
/// Always panics.
#[cold]
pub fn misfit(field: &str, value: &Value) -> ! {
    panic!("the description of a parameter allows {value:?}, but its field has type {field}")
}

macro_rules! number_field {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn read(&self) -> Value {
                Value::Number(*self as u64)
            }

            fn write(&mut self, value: &Value) {
                match value {
                    Value::Number(number) if <$number>::try_from(*number).is_ok() => {
                        *self = *number as $number;
                    }
                    _ => misfit(stringify!($number), value),
                }
            }
        }
    )*};
}

number_field!(u8, u16, u32, u64, usize);

impl Field for i32 {
    fn read(&self) -> Value {
        Value::Number(i64::from(*self) as u64)
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Number(number) => match i32::try_from(*number as i64) {
                Ok(signed) => *self = signed,
                Err(_) => misfit("i32", value),
            },
            _ => misfit("i32", value),
        }
    }
}

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

impl Field for String {
    fn read(&self) -> Value {
        Value::Text(self.clone())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.clone_from(text),
            _ => misfit("String", value),
        }
    }
}

/// As bits, for [`Unit::Decimal`](super::Unit::Decimal).
impl Field for f64 {
    fn read(&self) -> Value {
        Value::Number(self.to_bits())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Number(bits) => *self = f64::from_bits(*bits),
            _ => misfit("f64", value),
        }
    }
}

impl Field for Duration {
    fn read(&self) -> Value {
        Value::Number(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
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

/// `None` is read as [`Value::None`]. A write starts with the smallest value of the field type.
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

/// The initial value when an optional field is set.
pub trait Smallest {
    /// Any value. It is overwritten at once.
    const SMALLEST: Self;
}

impl Smallest for bool {
    const SMALLEST: bool = false;
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

impl Smallest for f64 {
    const SMALLEST: f64 = 0.0;
}

impl Smallest for Duration {
    const SMALLEST: Duration = Duration::ZERO;
}

impl Smallest for Probability {
    const SMALLEST: Probability = Probability::ZERO;
}

impl Smallest for Rate {
    const SMALLEST: Rate = Rate::mbit(1);
}

impl Smallest for ServiceCurve {
    const SMALLEST: ServiceCurve = ServiceCurve::linear(0);
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

macro_rules! list_field {
    ($($number:ty),*) => {$(
        impl Field for Vec<$number> {
            fn read(&self) -> Value {
                Value::List(self.iter().map(|number| i64::from(*number) as u64).collect())
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
                    _ => misfit(concat!("Vec<", stringify!($number), ">"), value),
                }
            }
        }
    )*};
}

list_field!(u32, i32);

impl Field for Vec<u64> {
    fn read(&self) -> Value {
        Value::List(self.clone())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(numbers) => self.clone_from(numbers),
            _ => misfit("Vec<u64>", value),
        }
    }
}

impl Field for Vec<String> {
    fn read(&self) -> Value {
        Value::Texts(self.clone())
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::Texts(texts) => self.clone_from(texts),
            _ => misfit("Vec<String>", value),
        }
    }
}

impl Field for Vec<Duration> {
    fn read(&self) -> Value {
        Value::List(
            self.iter()
                .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
                .collect(),
        )
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(times) => *self = times.iter().copied().map(Duration::from_nanos).collect(),
            _ => misfit("Vec<Duration>", value),
        }
    }
}

impl Field for ServiceCurve {
    fn read(&self) -> Value {
        Value::List(vec![self.m1, self.d.as_nanos() as u64, self.m2])
    }

    fn write(&mut self, value: &Value) {
        match value {
            Value::List(numbers) if numbers.len() == 3 => {
                *self = ServiceCurve {
                    m1: numbers[0],
                    d: Duration::from_nanos(numbers[1]),
                    m2: numbers[2],
                };
            }
            _ => misfit("ServiceCurve", value),
        }
    }
}

/// Implements [`Field`] for an enum without fields, as a parameter of words. `ALL` are its values, `WORDS`
/// their words for [`Unit::Choice`]; `word` and `of_word` lead from one to the other.
///
/// ```
/// use fairgate::registry::{Field, Unit, Value};
///
/// #[derive(Clone, Copy)]
/// pub enum Order { Oldest, Newest }
///
/// fairgate::words!(Order { "oldest" => Order::Oldest, "newest" => Order::Newest });
///
/// assert_eq!(Unit::Choice(Order::WORDS), Unit::Choice(&["oldest", "newest"]));
/// assert_eq!(Order::Newest.read(), Value::Word("newest"));
/// assert_eq!(Order::Newest.word(), "newest");
/// ```
///
/// [`Unit::Choice`]: crate::registry::Unit::Choice
#[macro_export]
macro_rules! words {
    ($choice:ty { $($word:literal => $variant:path),* $(,)? }) => {
        impl $choice {
            /// The words for its values, as users write them.
            // The enum may be private.
            #[allow(unreachable_pub)]
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// All its values, in the order of their words.
            #[allow(unreachable_pub, dead_code)]
            pub const ALL: &'static [Self] = &[$($variant),*];

            /// Returns the word for this value.
            #[allow(unreachable_pub, dead_code)]
            pub const fn word(&self) -> &'static str {
                match self {
                    $($variant => $word,)*
                }
            }

            /// Returns the value of a word.
            #[allow(unreachable_pub, dead_code)]
            pub fn of_word(text: &str) -> Option<Self> {
                match text {
                    $($word => Some($variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::registry::Field for $choice {
            fn read(&self) -> $crate::registry::Value {
                $crate::registry::Value::Word(self.word())
            }

            fn write(&mut self, value: &$crate::registry::Value) {
                *self = match value {
                    $crate::registry::Value::Word(word) => Self::of_word(word),
                    _ => None,
                }
                .unwrap_or_else(|| $crate::registry::misfit(stringify!($choice), value));
            }
        }
    };
}
