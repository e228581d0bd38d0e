//! The tables that results have.

use fairgate::words;

use crate::results::{Results, Table};

/// A table of results, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A row for each flow.
    Flows,
    /// A row for each group of flows.
    Groups,
    /// A row for each interface.
    Interfaces,
    /// A row for each point of each time series.
    Series,
    /// A row for each value of an observed variable.
    Observations,
}

words!(Measure {
    "flows" => Measure::Flows,
    "groups" => Measure::Groups,
    "interfaces" => Measure::Interfaces,
    "series" => Measure::Series,
    "observations" => Measure::Observations,
});

impl Measure {
    /// Returns this table of the results.
    pub fn of(self, results: &Results) -> Table {
        match self {
            Measure::Flows => results.flow_table(),
            Measure::Groups => results.group_table(),
            Measure::Interfaces => results.interface_table(),
            Measure::Series => results.series_table(),
            Measure::Observations => results.observation_table(),
        }
    }
}
