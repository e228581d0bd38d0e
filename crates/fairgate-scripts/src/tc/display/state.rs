//! The state of a running discipline.

use fairgate::{Count, Discipline, Statistics, Variable};

/// The statistics and variables of a running discipline.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The statistics.
    pub statistics: Statistics,
    /// The variables and their names.
    pub variables: Vec<(String, Variable)>,
    /// The variables of its parts that have state but no discipline, in the order of their numbers: cake's
    /// tins.
    pub parts: Vec<Vec<(String, Variable)>>,
}

impl State {
    /// Returns the state of a discipline.
    pub fn of(discipline: &dyn Discipline) -> State {
        let mut variables = Vec::new();
        discipline.visit_variables(&mut |name, value| variables.push((name.to_owned(), value)));
        let mut parts = Vec::new();
        discipline.visit_class_states(&mut |state| {
            let named = state.variables.iter();
            parts.push(named.map(|&(name, value)| (name.to_owned(), value)).collect());
        });
        State {
            statistics: discipline.statistics(),
            variables,
            parts,
        }
    }

    /// Returns the state of a class from the state of its discipline. `sent` counts all packets of the class.
    /// It may be more than the discipline's counter if the discipline replaced another one.
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
            parts: Vec::new(),
        }
    }

    /// Returns the variable `name`, if it is a number. Times are in ns.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.variable(name)? {
            Variable::Integer(integer) => u64::try_from(integer).ok(),
            Variable::Nanos(nanos) => Some(nanos),
            Variable::Flag(_) | Variable::Unset => None,
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        let found = self.variables.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value)
    }
}
