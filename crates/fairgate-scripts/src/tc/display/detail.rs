//! A part of a line of tc: a word and its value, which may be made of such parts.

use fairgate::sharing::hfsc::ServiceCurve;
use fairgate::{Cells, Rate};

use super::State;
use crate::tc::amount;

/// An option, or a statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The word in text. Empty if it is only shown in JSON.
    pub word: &'static str,
    /// The key in JSON. Empty if it is only shown in text.
    pub key: &'static str,
    /// The value.
    pub amount: Amount,
    /// The flags of tc with which it is shown.
    pub when: When,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// A number and its unit: `1000p`, `1514b`, `10sec`.
    Count(u64, &'static str),
    /// A signed number.
    Signed(i64),
    /// Bytes in the largest unit that fits: `32Mb`.
    Size(u64),
    /// Nanoseconds. JSON has microseconds.
    Time(u64),
    /// A rate. JSON has bytes per second.
    Rate(Rate),
    /// A number with six decimals.
    Decimal(f64),
    /// A number with at most six digits.
    Digits(f64),
    /// Bytes, and the cell size to which packets are rounded up, which is always 1: `1600b/1`. Also in JSON.
    InCells(u64),
    /// The name of a variable of the running discipline.
    Variable(&'static str),
    /// The name of a variable of the running discipline that is a rate, in bytes per second; 0 is unlimited.
    VariableRate(&'static str),
    /// Objects with their values. They are only in JSON.
    Objects(Vec<Vec<Detail>>),
    /// A service curve.
    Curve(ServiceCurve),
    /// The option has no value. It is shown or not.
    Flag(bool),
    /// The option has no value in text. JSON has this value, or null.
    Bare(Option<&'static str>),
    /// The option has no value in text. JSON says whether it is on.
    Switch(bool),
    /// Numbers, separated by spaces.
    Numbers(Vec<u64>),
    /// Any text.
    Text(String),
    /// Numbers with keys, only in JSON.
    Object(Vec<(&'static str, f64)>),
}

impl Amount {
    /// Returns the value as tc prints it after the option. `None` for a flag that is not set, and for a
    /// variable.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Amount::Count(number, of) => format!("{number}{of}"),
            Amount::Signed(number) => number.to_string(),
            Amount::Size(bytes) => amount::size(*bytes),
            Amount::Time(nanos) => amount::time(*nanos),
            Amount::Rate(bits) => amount::rate(bits.bits_per_second()),
            Amount::Decimal(number) => format!("{number:.6}"),
            Amount::Digits(number) => amount::digits(*number),
            Amount::InCells(bytes) => format!("{}/1", amount::size(*bytes)),
            Amount::Variable(_) | Amount::VariableRate(_) | Amount::Object(_) | Amount::Objects(_) => {
                return None;
            }
            Amount::Curve(curve) => format!(
                "m1 {} d {} m2 {}",
                amount::rate(curve.m1),
                amount::time(curve.d.as_nanos() as u64),
                amount::rate(curve.m2)
            ),
            Amount::Flag(true) | Amount::Bare(_) | Amount::Switch(_) => String::new(),
            Amount::Flag(false) => return None,
            Amount::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                numbers.join(" ")
            }
            Amount::Text(text) => text.clone(),
        })
    }
}

/// The flags of tc with which an option is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// With and without `-d`.
    #[default]
    Always,
    /// Only without `-d`. Another form is shown with it.
    Brief,
    /// Only with `-d`.
    Detailed,
}

impl When {
    /// Whether it is shown, depending on `-d`.
    pub(super) fn is_now(self, in_detail: bool) -> bool {
        match self {
            When::Always => true,
            When::Brief => !in_detail,
            When::Detailed => in_detail,
        }
    }
}

impl Detail {
    pub(crate) fn new(word: &'static str, amount: Amount) -> Detail {
        Detail::keyed(word, word, amount)
    }

    pub(crate) fn keyed(word: &'static str, key: &'static str, amount: Amount) -> Detail {
        Detail {
            word,
            key,
            amount,
            when: When::Always,
        }
    }

    /// Returns a word without a value.
    pub(crate) fn bare(word: &'static str, key: &'static str, json: Option<&'static str>) -> Detail {
        Detail::keyed(word, key, Amount::Bare(json))
    }

    /// Returns a detail that is only shown in JSON.
    pub(crate) fn in_json(key: &'static str, amount: Amount) -> Detail {
        Detail::keyed("", key, amount)
    }

    pub(crate) fn when(self, when: When) -> Detail {
        Detail { when, ..self }
    }

    /// Returns the text that tc prints. `None` for a flag that is not set, and for details that are only in
    /// JSON.
    pub fn text(&self) -> Option<String> {
        let amount = self.amount.text().filter(|_| !self.word.is_empty())?;
        Some(format!("{} {amount}", self.word).trim().to_owned())
    }

    /// Returns the detail with the value of its variable. `None` if the discipline does not have the
    /// variable.
    pub(super) fn resolved(&self, state: &State) -> Option<Detail> {
        let amount = match self.amount {
            Amount::Variable(name) => plain(state.number(name)?),
            Amount::VariableRate(name) => match state.number(name)? {
                0 => Amount::Text("unlimited".to_owned()),
                bytes => rate(bytes.saturating_mul(8)),
            },
            _ => self.amount.clone(),
        };
        Some(Detail {
            amount,
            ..self.clone()
        })
    }
}

/// Returns a size with tc's cell size, which is always 1, and the least bytes that a packet counts.
pub(crate) fn in_cells(word: &'static str, bytes: u64, mpu: u64) -> [Detail; 2] {
    [
        Detail::new(word, Amount::InCells(bytes)).when(When::Detailed),
        Detail::new("mpu", size(mpu)).when(When::Detailed),
    ]
}

/// Returns a bucket's depth as tc computes it from the kernel's time: in whole ticks of 64 ns, then in whole
/// microseconds.
pub(crate) fn bucket(rate: Rate, nanos: u64) -> u64 {
    let micros = (nanos >> 6 << 6) / 1000;
    let bytes = u128::from(rate.bits_per_second() / 8) * u128::from(micros) / 1_000_000;
    bytes as u64
}

/// Returns the link layer by which a packet is counted. tc shows that of Ethernet only with `-d`.
pub(crate) fn link_layer(cells: Cells) -> Detail {
    let (name, when) = match cells {
        Cells::None => ("ethernet", When::Detailed),
        Cells::Atm => ("atm", When::Always),
        Cells::Ptm => ("ptm", When::Always),
    };
    Detail::new("linklayer", Amount::Text(name.to_owned())).when(when)
}

pub(crate) fn packets(number: u64) -> Amount {
    Amount::Count(number, "p")
}

pub(crate) fn bytes(number: u64) -> Amount {
    Amount::Count(number, "b")
}

pub(crate) fn plain(number: u64) -> Amount {
    Amount::Count(number, "")
}

pub(crate) fn size(bytes: u64) -> Amount {
    Amount::Size(bytes)
}

pub(crate) fn rate(bits: u64) -> Amount {
    Rate::from_bits_per_second(bits).map_or_else(|_| plain(bits), Amount::Rate)
}

/// Returns a time that Linux counts in ticks of 1024 ns, and reports in whole microseconds
/// (`codel_time_to_us`).
pub(crate) fn ticks(nanos: u64) -> Amount {
    Amount::Time((nanos >> 10 << 10) / 1000 * 1000)
}
