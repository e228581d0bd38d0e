//! The lines of statistics that tc shows of a running discipline.

use fairgate::{DropReason, Variable};

use super::detail::plain;
use super::{Amount, Detail, Shown, State};

/// A line of statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The text before the first word.
    pub indent: &'static str,
    /// The words and their values.
    pub details: Vec<Detail>,
    /// What the text is instead of these words, if tc aligns it.
    pub text: Option<String>,
}

/// A discipline that is shown, and its state.
pub(crate) struct Running<'s> {
    pub(in crate::tc) shown: &'s Shown,
    pub(in crate::tc) state: &'s State,
}

impl Running<'_> {
    /// Whether the option `word` is set.
    pub(crate) fn has_option(&self, word: &str) -> bool {
        let mut options = self.shown.options.iter();
        options.any(|option| option.word == word && option.text().is_some())
    }

    /// Returns the number of packets dropped for one of these reasons.
    pub(crate) fn dropped_for(&self, reasons: &[DropReason]) -> u64 {
        let dropped = |reason: &DropReason| self.state.statistics.dropped_for(*reason);
        reasons.iter().map(dropped).sum()
    }

    /// Returns the number of dropped packets.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.statistics.dropped.packets
    }

    /// Returns the number of packets that entered the queue. Only valid for disciplines that drop no queued
    /// packets.
    pub(crate) fn taken_in(&self) -> u64 {
        self.state.statistics.enqueued.packets - self.dropped()
    }

    /// Returns the number of packets marked with Congestion Experienced.
    pub(crate) fn marked(&self) -> u64 {
        self.state.statistics.marked
    }

    /// Returns the variable `name`, if the discipline has it.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.state.number(name)
    }

    /// Returns the variable `name` as a signed number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        match self.state.variable(name)? {
            Variable::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    /// Whether the variable `name` is true.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.state.variable(name) == Some(Variable::Flag(true))
    }

    /// Returns the variable `name` with tc's word.
    pub(crate) fn variable(&self, word: &'static str, name: &str) -> Option<Detail> {
        Some(Detail::new(word, plain(self.number(name)?)))
    }

    /// Returns a number of packets with tc's word.
    pub(crate) fn count(word: &'static str, packets: u64) -> Option<Detail> {
        Some(Detail::new(word, plain(packets)))
    }

    /// Returns a variable that is a time, with tc's word.
    pub(crate) fn time(&self, word: &'static str, name: &str) -> Option<Detail> {
        Some(Detail::new(word, Amount::Time(self.number(name)?)))
    }
}

/// Returns a line of the details that exist.
pub(crate) fn row(indent: &'static str, details: impl IntoIterator<Item = Option<Detail>>) -> Row {
    Row {
        indent,
        details: details.into_iter().flatten().collect(),
        text: None,
    }
}

/// Returns a line with this text. The details are only in JSON.
pub(crate) fn aligned(text: String, details: impl IntoIterator<Item = Detail>) -> Row {
    Row {
        indent: "",
        details: details.into_iter().collect(),
        text: Some(text),
    }
}
