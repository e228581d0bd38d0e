//! Independent runs on several threads.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::results::Results;
use crate::scenario::Scenario;
use crate::simulation::{Error, Simulation};

/// Does independent work on several threads. The results are in the order of the work, and do not depend on
/// the number of threads.
///
/// ```
/// use std::time::Duration;
/// use fairgate::Rate;
/// use fairgate_sim::{Batch, Flow, Link, Scenario, Udp};
///
/// let mut scenario = Scenario::new(Duration::from_secs(1));
/// let (a, b) = (scenario.node("a"), scenario.node("b"));
/// scenario.links.push(Link::new(a, b, Rate::mbit(2), Duration::from_millis(5)));
/// scenario.flows.push(Flow::new("poisson", a, b, Udp::poisson(Rate::mbit(1), 500)));
/// let seeds: Vec<Scenario> = (1..=4).map(|seed| Scenario { seed, ..scenario.clone() }).collect();
/// let results = Batch::default().run(&seeds, |_| ());
/// assert_eq!(results.len(), 4);
/// assert_eq!(results[2].as_ref().unwrap().seed, 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    jobs: NonZeroUsize,
}

/// One thread for each processor.
impl Default for Batch {
    fn default() -> Batch {
        Batch::with_jobs(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

impl Batch {
    /// Creates a batch that does at most `jobs` pieces of work at a time.
    pub fn with_jobs(jobs: NonZeroUsize) -> Batch {
        Batch { jobs }
    }

    /// Calls `work` for each item. If the system refuses threads, all work is done on this one.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        match ThreadPoolBuilder::new().num_threads(self.jobs.get()).build() {
            Ok(pool) => pool.install(|| items.par_iter().with_max_len(1).map(&work).collect()),
            Err(_) => items.iter().map(work).collect(),
        }
    }

    /// Simulates each scenario. `progress` gets the simulated time since its last call, in whole
    /// milliseconds. Together these are the durations of all scenarios.
    pub fn run(
        &self,
        scenarios: &[Scenario],
        progress: impl Fn(Duration) + Sync,
    ) -> Vec<Result<Results, Error>> {
        self.run_prepared(scenarios, |_, _| Ok(()), progress)
    }

    /// Simulates each scenario. Before each run `prepare` gets the position of its scenario and the
    /// simulation, for example to set where [captures](Simulation::capture) are written to.
    pub fn run_prepared(
        &self,
        scenarios: &[Scenario],
        prepare: impl Fn(usize, &mut Simulation) -> Result<(), Error> + Sync,
        progress: impl Fn(Duration) + Sync,
    ) -> Vec<Result<Results, Error>> {
        let numbered: Vec<(usize, &Scenario)> = scenarios.iter().enumerate().collect();
        self.map(&numbered, |&(number, scenario)| {
            let mut reported = 0;
            let mut simulation = Simulation::new(scenario)?;
            prepare(number, &mut simulation)?;
            simulation.run_with(|now| {
                let millis = now.nanos() / 1_000_000;
                progress(Duration::from_millis(millis - reported));
                reported = millis;
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Flow, Link, Udp};
    use fairgate::Rate;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_do_not_depend_on_the_number_of_jobs() {
        let mut scenario = Scenario::new(Duration::from_secs(2));
        let (a, b) = (scenario.node("a"), scenario.node("b"));
        let link = Link::new(a, b, Rate::mbit(1), Duration::from_millis(5));
        scenario.links.push(link);
        let traffic = Udp::poisson(Rate::mbit(1), 500);
        scenario.flows.push(Flow::new("poisson", a, b, traffic));
        let seeds: Vec<Scenario> = (1..=6)
            .map(|seed| Scenario {
                seed,
                ..scenario.clone()
            })
            .collect();
        let run = |jobs| {
            let simulated = AtomicU64::new(0);
            let results = Batch::with_jobs(NonZeroUsize::new(jobs).unwrap()).run(&seeds, |time| {
                simulated.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
            });
            assert_eq!(simulated.into_inner(), 6 * 2_000);
            results.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        let alone = run(1);
        assert_eq!(alone, run(4));
        assert_eq!(
            alone.iter().map(|results| results.seed).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
        assert_ne!(alone[0].flows, alone[1].flows);
    }
}
