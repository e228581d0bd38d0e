//! What stands in a line of tc: a word and its value.

use fairgate::Rate;

use super::State;
use crate::tc::amount::Amount;

/// An option, or a number of statistics, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// In text; empty for what is only in JSON.
    pub word: &'static str,
    /// In JSON; empty for what is only in text.
    pub key: &'static str,
    /// Its value.
    pub amount: Amount,
    /// With which of tc's flags it is there.
    pub when: When,
}

/// With which of tc's flags an option is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// With or without `-d`.
    #[default]
    Always,
    /// Without `-d` only: with it another form takes its place.
    Brief,
    /// With `-d` only.
    Detailed,
}

impl When {
    /// Whether it is shown with `-d`, or without.
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

    /// A word that says all.
    pub(crate) fn bare(word: &'static str, key: &'static str, json: Option<&'static str>) -> Detail {
        Detail::keyed(word, key, Amount::Bare(json))
    }

    /// What has no word in text.
    pub(crate) fn in_json(key: &'static str, amount: Amount) -> Detail {
        Detail::keyed("", key, amount)
    }

    pub(crate) fn when(self, when: When) -> Detail {
        Detail { when, ..self }
    }

    /// As tc prints it; `None` for a flag that is not set, and for what is only in JSON.
    pub fn text(&self) -> Option<String> {
        let amount = self.amount.text().filter(|_| !self.word.is_empty())?;
        Some(format!("{} {amount}", self.word).trim().to_owned())
    }

    /// With the number that a running discipline knows by its name; `None` if it knows none.
    pub(super) fn resolved(&self, state: &State) -> Option<Detail> {
        let amount = match self.amount {
            Amount::Variable(name) => plain(state.number(name)?),
            _ => self.amount.clone(),
        };
        Some(Detail {
            amount,
            ..self.clone()
        })
    }
}

/// A size with those of the cells that packets are rounded up to and of the shortest packet that is counted: bytes are counted as
/// they are.
pub(crate) fn in_cells(word: &'static str, bytes: u64) -> [Detail; 2] {
    [
        Detail::new(word, Amount::InCells(bytes)).when(When::Detailed),
        Detail::new("mpu", self::bytes(0)).when(When::Detailed),
    ]
}

/// What bytes are counted of, headers of the link layer included.
pub(crate) fn link_layer() -> Detail {
    Detail::new("linklayer", Amount::Text("ethernet".to_owned())).when(When::Detailed)
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

/// A time that the discipline counts in ticks of 1024 ns, as Linux does.
pub(crate) fn ticks(nanos: u64) -> Amount {
    Amount::Time(nanos >> 10 << 10)
}
