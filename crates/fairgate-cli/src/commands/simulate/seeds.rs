//! Several seeds: the mean of each figure, with its 95 % interval.

use fairgate_sim::Results;
use fairgate_sim::results::{GroupResults, InterfaceResults, ObservationResults};
use fairgate_theory::estimate::Estimate;
use serde::Serialize;

use super::tables::{align, place};
use crate::output;

/// The results of several seeds.
#[derive(Serialize)]
pub(super) struct Seeds {
    seeds: Vec<u64>,
    groups: Vec<Group>,
    /// The interfaces that packets passed with any seed.
    interfaces: Vec<Interface>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    observations: Vec<Observation>,
    pub(super) runs: Vec<Results>,
}

/// A group of flows: the mean over all seeds of each of its figures.
#[derive(Serialize)]
struct Group {
    name: String,
    flows: Estimate,
    goodput_bps: Estimate,
    jain: Estimate,
    loss_ratio: Estimate,
    delay_mean_ns: Estimate,
    delay_p95_ns: Estimate,
    jitter_ns: Estimate,
    transfer_mean_ns: Option<Estimate>,
}

/// An interface: the mean over all seeds of each of its figures.
#[derive(Serialize)]
struct Interface {
    name: String,
    discipline: String,
    utilisation: Option<Estimate>,
    dropped: Estimate,
    marked: Estimate,
    sojourn_mean_ns: Estimate,
    sojourn_p99_ns: Estimate,
}

/// An observed variable: the mean over all seeds of each of its figures. `None` if a run has no value.
#[derive(Serialize)]
struct Observation {
    name: String,
    interface: String,
    class: Option<String>,
    variable: String,
    unit: String,
    mean: Option<Estimate>,
    least: Option<Estimate>,
    most: Option<Estimate>,
}

impl Seeds {
    /// Computes the means. All runs are of the same scenario, so that their groups and interfaces are the
    /// same.
    pub(super) fn of(runs: Vec<Results>) -> Seeds {
        let first = &runs[0];
        let groups = (0..first.groups.len()).map(|index| group(&runs, index)).collect();
        let passed = |index: &usize| runs.iter().any(|run| run.interfaces[*index].enqueued > 0);
        let interfaces = (0..first.interfaces.len())
            .filter(passed)
            .map(|index| interface(&runs, index))
            .collect();
        Seeds {
            seeds: runs.iter().map(|run| run.seed).collect(),
            groups,
            interfaces,
            observations: (0..first.observations.len())
                .map(|index| observation(&runs, index))
                .collect(),
            runs,
        }
    }

    pub(super) fn tables(&self) -> String {
        let first = &self.runs[0];
        let [from, to] = first.measured_ns.map(|nanos| nanos as f64 / 1e9);
        format!(
            "Measured from {from} s to {to} s. Means of {} seeds from {} on, with 95 % intervals.\n\n\
             {}\n{}{}",
            self.seeds.len(),
            first.seed,
            self.group_table(),
            self.interface_table(),
            self.observation_table()
        )
    }

    fn group_table(&self) -> String {
        let header = [
            "GROUP",
            "FLOWS",
            "GOODPUT, Mbit/s",
            "JAIN",
            "LOST, %",
            "DELAY, ms",
            "P95, ms",
            "JITTER, ms",
            "TRANSFER, ms",
        ];
        let mut table = output::table(header);
        for group in &self.groups {
            table.add_row([
                group.name.clone(),
                match group.flows.half_width() {
                    0.0 => format!("{}", group.flows.mean),
                    _ => scaled(&group.flows, 1.0, 1),
                },
                scaled(&group.goodput_bps, 1e-6, 3),
                scaled(&group.jain, 1.0, 3),
                scaled(&group.loss_ratio, 100.0, 2),
                scaled(&group.delay_mean_ns, 1e-6, 3),
                scaled(&group.delay_p95_ns, 1e-6, 3),
                scaled(&group.jitter_ns, 1e-6, 3),
                group
                    .transfer_mean_ns
                    .as_ref()
                    .map_or_else(String::new, |mean| scaled(mean, 1e-6, 3)),
            ]);
        }
        align(&mut table, 1);
        output::table_text(&table)
    }

    fn interface_table(&self) -> String {
        let header = [
            "INTERFACE",
            "DISCIPLINE",
            "USED, %",
            "DROPPED",
            "MARKED",
            "SOJOURN, ms",
            "P99, ms",
        ];
        let mut table = output::table(header);
        for interface in &self.interfaces {
            let used = interface.utilisation.as_ref();
            table.add_row([
                interface.name.clone(),
                interface.discipline.clone(),
                used.map_or_else(String::new, |used| scaled(used, 100.0, 1)),
                scaled(&interface.dropped, 1.0, 1),
                scaled(&interface.marked, 1.0, 1),
                scaled(&interface.sojourn_mean_ns, 1e-6, 3),
                scaled(&interface.sojourn_p99_ns, 1e-6, 3),
            ]);
        }
        align(&mut table, 2);
        output::table_text(&table)
    }

    fn observation_table(&self) -> String {
        if self.observations.is_empty() {
            return String::new();
        }
        let mut table = output::table(["OBSERVED", "AT", "MEAN", "LEAST", "MOST", "UNIT"]);
        for observation in &self.observations {
            let figure = |estimate: &Option<Estimate>| match estimate {
                None => "-".to_owned(),
                Some(estimate) => scaled(estimate, 1.0, 3),
            };
            table.add_row([
                observation.name.clone(),
                place(&observation.interface, observation.class.as_deref()),
                figure(&observation.mean),
                figure(&observation.least),
                figure(&observation.most),
                observation.unit.clone(),
            ]);
        }
        format!("\n{}", output::table_text(&table))
    }
}

fn observation(runs: &[Results], index: usize) -> Observation {
    let all = || runs.iter().map(|run| &run.observations[index]);
    let of = |figure: fn(&ObservationResults) -> f64| {
        all()
            .all(|observation| observation.count > 0)
            .then(|| mean(all().map(figure)))
    };
    let first = &runs[0].observations[index];
    Observation {
        name: first.name.clone(),
        interface: first.interface.clone(),
        class: first.class.clone(),
        variable: first.variable.clone(),
        // A run without values does not know whether they are times.
        unit: all()
            .map(|observation| &observation.unit)
            .max()
            .cloned()
            .unwrap_or_default(),
        mean: of(|observation| observation.mean),
        least: of(|observation| observation.least),
        most: of(|observation| observation.most),
    }
}

fn group(runs: &[Results], index: usize) -> Group {
    let of = |figure: fn(&GroupResults) -> f64| mean(runs.iter().map(|run| figure(&run.groups[index])));
    Group {
        name: runs[0].groups[index].name.clone(),
        flows: of(|group| group.flows as f64),
        goodput_bps: of(|group| group.goodput_bps as f64),
        jain: of(|group| group.jain),
        loss_ratio: of(|group| group.loss_ratio),
        delay_mean_ns: of(|group| group.delay_mean_ns as f64),
        delay_p95_ns: of(|group| group.delay.p95_ns as f64),
        jitter_ns: of(|group| group.jitter_ns as f64),
        transfer_mean_ns: runs
            .iter()
            .all(|run| run.groups[index].transfers.count > 0)
            .then(|| of(|group| group.transfers.mean_ns as f64)),
    }
}

fn interface(runs: &[Results], index: usize) -> Interface {
    let all = || runs.iter().map(|run| &run.interfaces[index]);
    let of = |figure: fn(&InterfaceResults) -> f64| mean(all().map(figure));
    let utilisation: Option<Vec<f64>> = all().map(|interface| interface.utilisation).collect();
    Interface {
        name: runs[0].interfaces[index].name.clone(),
        discipline: runs[0].interfaces[index].discipline.clone(),
        utilisation: utilisation.map(|shares| mean(shares.into_iter())),
        dropped: of(|interface| interface.dropped as f64),
        marked: of(|interface| interface.marked as f64),
        sojourn_mean_ns: of(|interface| interface.sojourn.mean_ns as f64),
        sojourn_p99_ns: of(|interface| interface.sojourn.p99_ns as f64),
    }
}

fn mean(figures: impl Iterator<Item = f64>) -> Estimate {
    Estimate::of(&figures.collect::<Vec<_>>()).expect("there is at least one run")
}

/// Returns `mean ± half of the interval` in another unit.
fn scaled(estimate: &Estimate, factor: f64, digits: usize) -> String {
    format!(
        "{:.digits$} ± {:.digits$}",
        estimate.mean * factor,
        estimate.half_width() * factor
    )
}
