//! A cell of the table: a scheduler with a number of flows under a load, and its measurements.

use super::Parameters;
use crate::bench::measure::Plan;
use crate::bench::{Algorithm, Job, JobError, Load, Mode, Order, Sizes, Weights, Workload};
use crate::reproduce::ReproduceError;

/// A scheduler with a number of flows under a load.
#[derive(Clone)]
pub(super) struct Cell {
    pub(super) job: Job,
    pub(super) title: &'static str,
    /// By seed, ns: the median of NONE, and the median of the time that the scheduler adds.
    pub(super) none: Vec<f64>,
    pub(super) net: Vec<f64>,
    /// The instructions that the scheduler adds to NONE's.
    pub(super) instructions: Option<f64>,
}

impl Cell {
    pub(super) fn new(
        algorithm: Algorithm,
        flows: u32,
        weights: Weights,
        load: Load,
        order: Order,
        sizes: Sizes,
    ) -> Cell {
        Cell {
            job: Job {
                algorithm: Some(algorithm),
                workload: Workload {
                    flows,
                    load,
                    order,
                    sizes,
                },
                weights,
                mode: Mode::Bare,
                seed: 1,
            },
            title: algorithm.title,
            none: Vec::new(),
            net: Vec::new(),
            instructions: None,
        }
    }

    /// Measures the time once, with one seed.
    pub(super) fn time(&mut self, plan: Plan, seed: u64) -> Result<(), ReproduceError> {
        let job = Job { seed, ..self.job };
        let timing = job.time(plan, || ()).map_err(|source| self.refused(source))?;
        self.none.push(timing.none.median);
        self.net.push(timing.net.median);
        Ok(())
    }

    pub(super) fn refused(&self, source: JobError) -> ReproduceError {
        ReproduceError::Job {
            scheduler: self.title,
            flows: self.job.workload.flows,
            source,
        }
    }

    /// Returns the approximate number of pairs that [`time`](Cell::time) runs.
    pub(super) fn work(&self, parameters: &Parameters) -> u64 {
        let plan = parameters.plan(&self.job);
        (u64::from(plan.runs) + 1) * plan.pairs.max(self.job.pairs_of_a_cycle())
    }

    pub(super) fn is_mix(&self) -> bool {
        self.job.weights == Weights::Mix
    }

    /// Whether claims are judged by this cell.
    pub(super) fn is_judged(&self) -> bool {
        self.job.workload.load == Load::Full && !self.is_mix()
    }

    /// Whether the other cell differs only in the scheduler.
    pub(super) fn is_beside(&self, other: &Cell) -> bool {
        self.job.workload == other.job.workload && self.job.weights == other.job.weights
    }

    pub(super) fn setting(&self) -> String {
        let (workload, mix) = (&self.job.workload, if self.is_mix() { ", mix" } else { "" });
        let flows = if workload.flows == 1 { "flow" } else { "flows" };
        let order = match workload.order {
            Order::Shortest => "",
            _ => ", random order",
        };
        let lengths = match workload.sizes {
            Sizes::Constant(_) => String::new(),
            sizes => format!(", {} to {} B", sizes.shortest(), sizes.longest()),
        };
        format!(
            "{} {flows}, {}{mix}{order}{lengths}",
            workload.flows,
            workload.load.name()
        )
    }

    /// Returns the lengths and the order of the packets.
    pub(super) fn packets(&self) -> String {
        let workload = &self.job.workload;
        let order = match workload.order {
            Order::Shortest => "the flow with the shortest backlog gets one",
            _ => "in random order",
        };
        match workload.sizes {
            Sizes::Constant(length) => format!("packets of {length} B, {order}"),
            sizes => format!(
                "packets of {} to {} B, {order}",
                sizes.shortest(),
                sizes.longest()
            ),
        }
    }

    pub(super) fn case(&self) -> String {
        format!("{}, {}", self.title, self.setting())
    }
}
