//! Samples a variable of a discipline at the end of each interval.

use fairgate::{Discipline, Variable};

use crate::classes::{self, Path};

/// Samples a variable of a class, or of the root discipline.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    /// The interface.
    pub(crate) interface: usize,
    path: Path,
    variable: String,
    unit: &'static str,
    /// What a number is multiplied by to have this unit.
    factor: f64,
    series: Vec<Option<f64>>,
}

impl Observer {
    pub(crate) fn new(interface: usize, path: Path, variable: String, intervals: usize) -> Observer {
        let (unit, factor) = unit(&variable);
        Observer {
            interface,
            path,
            unit,
            factor,
            variable,
            series: Vec::with_capacity(intervals),
        }
    }

    /// Creates an observer of a rate that is not in a tree: [`note`](Observer::note) has its values.
    pub(crate) fn of_rate(interface: usize, intervals: usize) -> Observer {
        Observer {
            unit: "bit/s",
            ..Observer::new(interface, Path::default(), String::new(), intervals)
        }
    }

    /// Notes a value.
    pub(crate) fn note(&mut self, value: f64) {
        self.series.push(Some(value));
    }

    /// Samples the variable in the interface's tree.
    pub(crate) fn interval_ends(&mut self, tree: &dyn Discipline) {
        let value = match classes::variable(tree, &self.path, &self.variable) {
            None | Some(Variable::Unset) => None,
            Some(Variable::Integer(value)) => Some(value as f64 * self.factor),
            Some(Variable::Flag(is_set)) => Some(f64::from(u8::from(is_set))),
            Some(Variable::Nanos(nanos)) => {
                self.unit = "ns";
                Some(nanos as f64)
            }
        };
        self.series.push(value);
    }

    pub(crate) fn series(&self) -> &[Option<f64>] {
        &self.series
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn unit(&self) -> &'static str {
        self.unit
    }
}

/// Returns the unit of an integer by the name under which disciplines show it, and the factor to this unit. A
/// name that is not here has no unit, or a unit of its own in each discipline (`tokens`).
fn unit(variable: &str) -> (&'static str, f64) {
    let unit = match variable {
        // Disciplines show a drop probability as the kernel does, in units of 2^-32.
        "prob" => return ("%", 100.0 / 4_294_967_296.0),
        "fair_rate" | "instantaneous_fair_rate" | "priority_rate" => "bit/s",
        "active_flows" | "flows_in_progress" | "new_flow_count" | "new_flows_len" | "old_flows_len"
        | "throttled_flows" | "sparse_flows" | "bulk_flows" | "unresponsive_flows" => "flows",
        "active_users" => "users",
        "active_classes" | "backlogged_classes" | "parked_classes" | "active_bands" => "classes",
        "backlog_packets" | "priority_packets" | "limit_packets" | "longest_flow" | "qlen_l" | "qlen_c"
        | "sent_packets" | "borrowed_packets" | "lent_packets" | "direct_packets" => "packets",
        "backlog_bytes" | "longest_bytes" | "served_bytes" | "memory_used" | "memory_usage"
        | "memory_limit" => "bytes",
        "priority_permille" => "‰",
        _ => "",
    };
    (unit, 1.0)
}
