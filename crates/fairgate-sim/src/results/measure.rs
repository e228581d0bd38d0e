//! The tables that results have.

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

impl Measure {
    /// All tables.
    pub const ALL: [Measure; 5] = [
        Measure::Flows,
        Measure::Groups,
        Measure::Interfaces,
        Measure::Series,
        Measure::Observations,
    ];

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Flows => "flows",
            Measure::Groups => "groups",
            Measure::Interfaces => "interfaces",
            Measure::Series => "series",
            Measure::Observations => "observations",
        }
    }

    /// Returns the table with this name.
    pub fn named(name: &str) -> Option<Measure> {
        Measure::ALL.into_iter().find(|measure| measure.name() == name)
    }

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
