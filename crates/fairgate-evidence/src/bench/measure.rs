//! Measures the time of a pair of enqueue and dequeue, net of NONE.
//!
//! Machines are noisy: there are other guests and programs, and the clock rate changes. So the time is the
//! processor time of the thread, not wall-clock time. Runs of the scheduler and of NONE alternate, and each
//! difference is between neighbours. The result is the median of the differences, with the quartiles.

use nix::time::ClockId;
use serde::Serialize;

use crate::bench::controller::{Drive, WorkError};

/// The length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of runs of the scheduler, and of NONE; at least 1.
    pub runs: u32,
    /// The least number of pairs of a run. Whole cycles are run.
    pub pairs: u64,
}

/// The quantiles of values, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least value.
    pub least: f64,
    /// A quarter of the values is below this.
    pub lower_quartile: f64,
    /// Half of the values is below this.
    pub median: f64,
    /// Three quarters of the values are below this.
    pub upper_quartile: f64,
    /// The greatest value.
    pub greatest: f64,
}

impl Spread {
    /// Computes the quantiles of at least one value.
    ///
    /// # Panics
    /// If there is no value.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let position = part * (sorted.len() - 1) as f64;
            let (below, above) = (
                sorted[position.floor() as usize],
                sorted[position.ceil() as usize],
            );
            below + (above - below) * position.fract()
        };
        Spread {
            least: at(0.0),
            lower_quartile: at(0.25),
            median: at(0.5),
            upper_quartile: at(0.75),
            greatest: at(1.0),
        }
    }
}

/// The time of a scheduler's pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The number of pairs of a run.
    pub pairs: u64,
    /// The time of NONE's pair, ns.
    pub none: Spread,
    /// The time that the scheduler adds, ns: the difference of each run and the run of NONE before it.
    pub net: Spread,
    /// The fastest run minus the fastest run of NONE. Disturbances only add time.
    pub net_least: f64,
}

/// Measures `subject` and `none` in turns. `done` is called after each of the `runs + 1` passes. The first
/// pass warms up and is not counted.
///
/// # Errors
/// Returns an error if a packet is dropped, withheld or lost.
pub fn time(
    mut subject: Box<dyn Drive>,
    mut none: Box<dyn Drive>,
    plan: Plan,
    mut done: impl FnMut(),
) -> Result<Timing, WorkError> {
    let (mut of_none, mut of_subject) = (Vec::new(), Vec::new());
    none.run(1)?;
    subject.run(1)?;
    done();
    let mut pairs = 0;
    for _ in 0..plan.runs {
        of_none.push(timed(none.as_mut(), plan.pairs)?.0);
        let (nanos, ran) = timed(subject.as_mut(), plan.pairs)?;
        of_subject.push(nanos);
        pairs = ran;
        done();
    }
    none.finish()?;
    subject.finish()?;
    let net: Vec<f64> = of_subject.iter().zip(&of_none).map(|(a, b)| a - b).collect();
    let none = Spread::of(&of_none);
    Ok(Timing {
        pairs,
        none,
        net: Spread::of(&net),
        net_least: Spread::of(&of_subject).least - none.least,
    })
}

/// Returns the nanoseconds of a pair, and the number of pairs.
fn timed(drive: &mut dyn Drive, pairs: u64) -> Result<(f64, u64), WorkError> {
    let start = processor_time();
    let done = drive.run(pairs)?;
    Ok(((processor_time() - start) as f64 / done as f64, done))
}

/// Returns the processor time of this thread, ns.
pub(crate) fn processor_time() -> u64 {
    let time = ClockId::CLOCK_THREAD_CPUTIME_ID
        .now()
        .expect("every kernel that runs this has the clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let spread = Spread::of(&[5.0, 1.0, 2.0, 4.0, 3.0]);
        let five = [
            spread.least,
            spread.lower_quartile,
            spread.median,
            spread.upper_quartile,
            spread.greatest,
        ];
        assert_eq!(five, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(Spread::of(&[1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of(&[7.0]).upper_quartile, 7.0);
    }

    /// Records its calls. Each run has exactly the requested number of pairs.
    struct Counter(std::rc::Rc<std::cell::RefCell<Vec<u64>>>);

    impl Drive for Counter {
        fn run(&mut self, pairs: u64) -> Result<u64, WorkError> {
            self.0.borrow_mut().push(pairs);
            Ok(pairs)
        }

        fn finish(self: Box<Self>) -> Result<(), WorkError> {
            self.0.borrow_mut().push(0);
            Ok(())
        }
    }

    #[test]
    fn runs_alternate_after_one_warm_up() {
        let calls = std::rc::Rc::default();
        let drive = || Box::new(Counter(std::rc::Rc::clone(&calls)));
        let mut rounds = 0;
        let plan = Plan { runs: 3, pairs: 100 };
        let timing = time(drive(), drive(), plan, || rounds += 1).unwrap();
        assert_eq!((timing.pairs, rounds), (100, 4));
        assert_eq!(*calls.borrow(), [1, 1, 100, 100, 100, 100, 100, 100, 0, 0]);
    }
}
