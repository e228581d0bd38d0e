//! The compact form in which values travel from the program to the kernel: little-endian numbers, lengths
//! of 16 bits before lists and texts, a byte before what may be missing and before each choice.
//!
//! The reader trusts nothing. It never reads past the end, and no list is longer than the bytes that are
//! left.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use fairgate::ConfigError;

/// Why bytes are not a tree, and which part of it is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// A sentence without a full stop.
    pub text: String,
    /// The number of the discipline that it is about: the root is 0, and each one comes before those inside
    /// it.
    pub node: Option<u32>,
}

impl Refused {
    pub(crate) fn new(text: impl Into<String>) -> Refused {
        Refused {
            text: text.into(),
            node: None,
        }
    }

    /// Puts what it is about in front of the sentence.
    pub(crate) fn about(self, what: &str) -> Refused {
        Refused {
            text: format!("{what} {}", self.text),
            ..self
        }
    }

    /// Counts from a root with this many disciplines before the one from which it was counted.
    pub(crate) fn behind(self, before: u32) -> Refused {
        Refused {
            node: Some(before + self.node.unwrap_or_default()),
            ..self
        }
    }
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::error::Error for Refused {}

impl From<ConfigError> for Refused {
    fn from(error: ConfigError) -> Refused {
        Refused::new(error.to_string())
    }
}

/// Returns an error with this text.
pub(crate) fn refused<T>(text: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::new(text))
}

/// The bytes that are left to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes from the start.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Refused> {
        match self.0.split_at_checked(length) {
            Some((taken, left)) => {
                self.0 = left;
                Ok(taken)
            }
            None => refused("the bytes of the tree end too early"),
        }
    }

    /// Takes a text.
    pub(crate) fn text(&mut self) -> Result<&'a str, Refused> {
        let length = u16::read(self)?;
        let bytes = self.take(length.into())?;
        core::str::from_utf8(bytes).map_err(|_| Refused::new("a text of the tree is not UTF-8"))
    }
}

/// A value with a compact form.
pub trait Form: Sized {
    /// Appends it.
    fn write(&self, into: &mut Vec<u8>);

    /// Reads it back.
    ///
    /// # Errors
    /// If the bytes are not the form of a valid value.
    fn read(from: &mut Reader<'_>) -> Result<Self, Refused>;
}

/// Appends a text. One of more than 65,535 bytes is cut off: none of a tree is that long.
pub(crate) fn write_text(text: &str, into: &mut Vec<u8>) {
    let end = text.floor_char_boundary(u16::MAX.into());
    (end as u16).write(into);
    into.extend_from_slice(&text.as_bytes()[..end]);
}

/// Appends a number in as many bytes as it needs: seven bits in each, the lowest first, and a bit that says
/// whether more follow.
pub(crate) fn write_short(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Reads what [`write_short`] has written.
pub(crate) fn read_short(from: &mut Reader<'_>) -> Result<u64, Refused> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = u8::read(from)?;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    refused("a number of the tree has more than 64 bits")
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Form for $number {
            fn write(&self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut Reader<'_>) -> Result<$number, Refused> {
                let bytes = from.take(size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().expect("the length is that of the number")))
            }
        }
    )*};
}

numbers!(u8, u16, i16, u32, u64, u128);

impl Form for bool {
    fn write(&self, into: &mut Vec<u8>) {
        u8::from(*self).write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<bool, Refused> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => refused(format!("{other} is neither true nor false")),
        }
    }
}

impl Form for String {
    fn write(&self, into: &mut Vec<u8>) {
        write_text(self, into);
    }

    fn read(from: &mut Reader<'_>) -> Result<String, Refused> {
        from.text().map(ToString::to_string)
    }
}

impl<T: Form> Form for Option<T> {
    fn write(&self, into: &mut Vec<u8>) {
        self.is_some().write(into);
        if let Some(value) = self {
            value.write(into);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Option<T>, Refused> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

/// At most 65,535 values. All forms have at least a byte, so a list can't be longer than what is left.
impl<T: Form> Form for Vec<T> {
    fn write(&self, into: &mut Vec<u8>) {
        let length = u16::try_from(self.len()).unwrap_or(u16::MAX);
        length.write(into);
        self.iter()
            .take(length.into())
            .for_each(|value| value.write(into));
    }

    fn read(from: &mut Reader<'_>) -> Result<Vec<T>, Refused> {
        let length = usize::from(u16::read(from)?);
        if length > from.0.len() {
            return refused("a list of the tree is longer than its bytes");
        }
        (0..length).map(|_| T::read(from)).collect()
    }
}

impl<T: Form> Form for RangeInclusive<T> {
    fn write(&self, into: &mut Vec<u8>) {
        self.start().write(into);
        self.end().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<RangeInclusive<T>, Refused> {
        Ok(T::read(from)?..=T::read(from)?)
    }
}

/// Implements [`Form`] for structs, field by field.
macro_rules! fields {
    ($($name:ty { $($field:ident),* $(,)? })*) => {$(
        impl $crate::form::Form for $name {
            fn write(&self, into: &mut alloc::vec::Vec<u8>) {
                $(self.$field.write(into);)*
            }

            fn read(from: &mut $crate::form::Reader<'_>) -> Result<$name, $crate::form::Refused> {
                Ok(Self { $($field: $crate::form::Form::read(from)?),* })
            }
        }
    )*};
}
pub(crate) use fields;
