//! Runs many schedulers, numbers of flows and loads one after the other, for tables and figures.

use std::path::Path;

use fairgate::ConfigError;
use fairgate_config::Memory;
use serde::Serialize;
use thiserror::Error;

use crate::bench::algorithms::{Algorithm, Mode, NONE, none};
use crate::bench::callgrind::{self, CountError};
use crate::bench::controller::{Drive, WorkError, Workload};
use crate::bench::measure::{Plan, Timing, time};
use crate::bench::workload::Weights;

/// One scheduler under one workload. `None` as the scheduler means NONE.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The scheduler.
    pub algorithm: Option<Algorithm>,
    /// The workload.
    pub workload: Workload,
    /// The weights of the flows.
    pub weights: Weights,
    /// The mode in which the scheduler is driven.
    pub mode: Mode,
    /// The seed of sizes, flows and hashes.
    pub seed: u64,
}

/// The reason why there is no measurement.
#[derive(Debug, Error)]
pub enum JobError {
    /// The scheduler can't be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The scheduler does not do the work.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The instructions can't be counted.
    #[error(transparent)]
    Count(#[from] CountError),
}

/// The instructions of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Instructions {
    /// The instructions of NONE.
    pub none: f64,
    /// The instructions that the scheduler adds.
    pub net: f64,
}

impl Job {
    /// Returns the name of the scheduler.
    pub fn name(&self) -> &'static str {
        self.algorithm.map_or(NONE, |algorithm| algorithm.name)
    }

    /// Returns the same job without a scheduler.
    pub fn without_scheduler(self) -> Job {
        Job {
            algorithm: None,
            ..self
        }
    }

    /// Creates the controller, ready to run.
    ///
    /// # Errors
    /// Returns an error if the scheduler can't be built for this number of flows or these weights.
    pub fn drive(&self) -> Result<Box<dyn Drive>, ConfigError> {
        match self.algorithm {
            Some(algorithm) => algorithm.drive(self.workload, self.weights, self.mode, self.seed),
            None => Ok(none(self.workload, self.mode, self.seed)),
        }
    }

    /// Returns the number of pairs in one cycle.
    pub fn pairs_of_a_cycle(&self) -> u64 {
        let (least, most) = self.workload.load.bounds(self.workload.flows);
        u64::from(most - least)
    }

    /// Returns the approximate memory that a measurement needs, bytes: two controllers with their packets and
    /// flows, and the scheduler's flows.
    pub fn memory(&self) -> u64 {
        let (flows, most) = (
            u64::from(self.workload.flows),
            u64::from(self.workload.load.bounds(self.workload.flows).1),
        );
        let queues = match self.mode {
            Mode::Bare => flows,
            Mode::Statistics | Mode::Classified => 4 * flows,
        };
        2 * (64 * most + 16 * flows) + 160 * queues
    }

    /// Whether less memory than that is left. `false` if nothing says how much.
    pub fn is_too_big(&self) -> bool {
        self.memory() > Memory::watch().available()
    }

    /// Measures the scheduler and NONE in turns. `done` is called `plan.runs + 1` times.
    ///
    /// # Errors
    /// Returns an error if the scheduler can't be built or does not do the work.
    pub fn time(&self, plan: Plan, done: impl FnMut()) -> Result<Timing, JobError> {
        let without = self.without_scheduler().drive()?;
        Ok(time(self.drive()?, without, plan, done)?)
    }

    /// Runs whole cycles. The counting process calls this.
    ///
    /// # Errors
    /// Returns an error if the scheduler can't be built or does not do the work.
    pub fn run_cycles(&self, cycles: u64) -> Result<(), JobError> {
        self.drive()?.run(cycles * self.pairs_of_a_cycle())?;
        Ok(())
    }

    /// Counts the instructions of a pair, including those of the controller. `program` is run twice under
    /// callgrind. `arguments` returns the arguments with which it calls [`run_cycles`](Job::run_cycles) of
    /// this job.
    ///
    /// # Errors
    /// Returns an error if valgrind can't be run or the run fails.
    pub fn instructions(
        &self,
        program: &Path,
        arguments: impl Fn(&Job, u64) -> Vec<String>,
    ) -> Result<f64, CountError> {
        let [few, many] = self.counted_cycles();
        let count = |cycles: u64| callgrind::instructions(program, arguments(self, cycles));
        let pairs = (many - few) * self.pairs_of_a_cycle();
        Ok((count(many)? as f64 - count(few)? as f64) / pairs as f64)
    }

    /// Returns the cycles of the shorter and of the longer counted run: at least 2000 pairs to warm up, and
    /// 6000 more to count.
    fn counted_cycles(&self) -> [u64; 2] {
        let few = 2000u64.div_ceil(self.pairs_of_a_cycle());
        let more = 6000u64.div_ceil(self.pairs_of_a_cycle());
        [few, few + more]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workload::{Load, Order, Sizes};

    fn job(flows: u32, load: Load) -> Job {
        Job {
            algorithm: Algorithm::by_name("drr"),
            workload: Workload {
                flows,
                load,
                order: Order::Shortest,
                sizes: Sizes::Constant(1000),
            },
            weights: Weights::Equal,
            mode: Mode::Bare,
            seed: 1,
        }
    }

    #[test]
    fn a_job_is_timed_and_its_quantiles_are_ordered() {
        let mut rounds = 0;
        let plan = Plan { runs: 5, pairs: 300 };
        let timing = job(3, Load::Full).time(plan, || rounds += 1).unwrap();
        assert_eq!((rounds, timing.pairs), (6, 348), "four cycles of 87");
        assert!(timing.none.least > 0.0 && timing.none.least <= timing.none.median);
        assert!(timing.net.lower_quartile <= timing.net.median && timing.net.median <= timing.net.greatest);
    }

    #[test]
    fn counted_runs_are_long_enough_and_differ() {
        for flows in [1, 64, 1 << 20] {
            for load in Load::ALL {
                let job = job(flows, load);
                let [few, many] = job.counted_cycles();
                assert!(few * job.pairs_of_a_cycle() >= 2000);
                assert!((many - few) * job.pairs_of_a_cycle() >= 6000);
            }
        }
    }
}
