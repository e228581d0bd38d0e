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
    /// By seed, ns: the least time of NONE under this workload, and what the scheduler adds to it at least.
    pub(super) none: Vec<f64>,
    pub(super) net: Vec<f64>,
    /// The instructions that the scheduler adds to NONE's.
    pub(super) instructions: Option<f64>,
}

/// The times of NONE and of a scheduler with the controller, ns.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub(super) none: f64,
    pub(super) scheduler: f64,
}

impl Pass {
    /// Nothing was measured.
    pub(super) const WITHOUT: Pass = Pass {
        none: f64::INFINITY,
        scheduler: f64::INFINITY,
    };

    pub(super) fn least(self, other: Pass) -> Pass {
        Pass {
            none: self.none.min(other.none),
            scheduler: self.scheduler.min(other.scheduler),
        }
    }
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

    /// Measures NONE and the scheduler once, ns.
    pub(super) fn time(&self, parameters: &Parameters, seed: u64) -> Result<Pass, ReproduceError> {
        let job = Job { seed, ..self.job };
        let plan = Plan {
            runs: 1,
            pairs: parameters.pairs,
        };
        let timing = job.time(plan, || ()).map_err(|source| self.refused(source))?;
        Ok(Pass {
            none: timing.none.least,
            scheduler: timing.none.least + timing.net.least,
        })
    }

    pub(super) fn refused(&self, source: JobError) -> ReproduceError {
        ReproduceError::Job {
            scheduler: self.title,
            flows: self.job.workload.flows,
            source,
        }
    }

    /// Returns the number of passes for each seed.
    pub(super) fn passes(&self, parameters: &Parameters) -> u32 {
        match self.job.workload.flows >= parameters.long_from {
            true => 1,
            false => parameters.passes,
        }
    }

    /// Returns the approximate number of pairs that [`time`](Cell::time) runs.
    pub(super) fn work(&self, parameters: &Parameters) -> u64 {
        2 * parameters.pairs.max(self.job.pairs_of_a_cycle())
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
