//! What a running discipline tells of itself, and the lines of statistics that tc makes of it.

use fairgate::{Count, Discipline, DropReason, Statistics, Variable};

use super::detail::plain;
use super::{Amount, Detail, Shown};

/// What a running discipline has counted and knows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its books.
    pub statistics: Statistics,
    /// Its variables, by name.
    pub variables: Vec<(String, Variable)>,
}

/// A line of statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What stands before the first word.
    pub indent: &'static str,
    /// Its words.
    pub details: Vec<Detail>,
}

impl State {
    /// Of a discipline that runs here.
    pub fn of(discipline: &dyn Discipline) -> State {
        let mut variables = Vec::new();
        discipline.visit_variables(&mut |name, value| variables.push((name.to_owned(), value)));
        State {
            statistics: discipline.statistics(),
            variables,
        }
    }

    /// Of a class, if this is of the discipline that it holds: with all that the class has sent, which may be more if the discipline
    /// took another one's place.
    pub fn of_class(self, sent: Count, overlimits: u64, variables: Vec<(String, Variable)>) -> State {
        let mut statistics = self.statistics;
        let queued = statistics.backlog();
        statistics.dequeued = sent;
        let left = [sent, statistics.dropped, statistics.flushed, queued];
        statistics.enqueued = Count {
            packets: left.iter().map(|count| count.packets).sum(),
            bytes: left.iter().map(|count| count.bytes).sum(),
        };
        statistics.overlimits = overlimits;
        State {
            statistics,
            variables,
        }
    }

    /// The variable `name`, if it is a number; times in ns.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.variable(name)? {
            Variable::Integer(integer) => u64::try_from(integer).ok(),
            Variable::Nanos(nanos) => Some(nanos),
            Variable::Flag(_) | Variable::Unset => None,
        }
    }

    fn variable(&self, name: &str) -> Option<Variable> {
        let found = self.variables.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value)
    }
}

/// A discipline that is shown, and what it knows.
pub(crate) struct Running<'s> {
    pub(super) shown: &'s Shown,
    pub(super) state: &'s State,
}

impl Running<'_> {
    /// Whether the option `word` is set.
    pub(crate) fn has_option(&self, word: &str) -> bool {
        let mut options = self.shown.options.iter();
        options.any(|option| option.word == word && option.text().is_some())
    }

    /// Packets dropped for one of these reasons.
    pub(crate) fn dropped_for(&self, reasons: &[DropReason]) -> u64 {
        let dropped = |reason: &DropReason| self.state.statistics.dropped_for(*reason);
        reasons.iter().map(dropped).sum()
    }

    /// All packets dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.statistics.dropped.packets
    }

    /// Packets taken into the queue, whatever became of them there; for disciplines that drop none that they have taken.
    pub(crate) fn taken_in(&self) -> u64 {
        self.state.statistics.enqueued.packets - self.dropped()
    }

    /// Packets marked with congestion experienced.
    pub(crate) fn marked(&self) -> u64 {
        self.state.statistics.marked
    }

    /// The variable `name`, if the discipline has it.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.state.number(name)
    }

    /// The variable `name`, if it is below 0 or above.
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

    /// The variable `name` under tc's word.
    pub(crate) fn variable(&self, word: &'static str, name: &str) -> Option<Detail> {
        Some(Detail::new(word, plain(self.number(name)?)))
    }

    /// A number of packets.
    pub(crate) fn count(word: &'static str, packets: u64) -> Option<Detail> {
        Some(Detail::new(word, plain(packets)))
    }

    /// A variable that is a time.
    pub(crate) fn time(&self, word: &'static str, name: &str) -> Option<Detail> {
        Some(Detail::new(word, Amount::Time(self.number(name)?)))
    }
}

/// A line of those words that there is a number for.
pub(crate) fn row(indent: &'static str, details: impl IntoIterator<Item = Option<Detail>>) -> Row {
    Row {
        indent,
        details: details.into_iter().flatten().collect(),
    }
}
