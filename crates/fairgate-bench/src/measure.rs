//! Time for a pair of enqueue and dequeue, net of NONE.
//!
//! Machines are noisy: other guests, other programs, a clock rate that changes. So time is the processor time
//! of the thread, not that of the wall; a scheduler's runs and NONE's alternate, and each difference is taken between
//! neighbours; the figure is the median of the differences, with the quartiles beside it.

use nix::time::ClockId;
use serde::Serialize;

use crate::controller::{Drive, Fault};

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Runs of the scheduler and of NONE each, at least 1.
    pub runs: u32,
    /// Pairs of a run, at least; whole cycles are run.
    pub pairs: u64,
}

/// How values are spread, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// A quarter is below this.
    pub lower_quartile: f64,
    /// Half is below this.
    pub median: f64,
    /// Three quarters are below this.
    pub upper_quartile: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
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

/// What a scheduler's pair takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Pairs of a run.
    pub pairs: u64,
    /// NONE's time for a pair, ns.
    pub none: Spread,
    /// What the scheduler takes on top, ns: each run's difference to the NONE before it.
    pub net: Spread,
    /// The quickest run less the quickest of NONE: what disturbs only ever adds.
    pub net_least: f64,
}

/// Measures `subject` and `none` in turns. `done` is called after each of the `runs + 1` rounds; the first warms
/// up and is not counted.
///
/// # Errors
/// If a packet is dropped, withheld or lost.
pub fn time(
    mut subject: Box<dyn Drive>,
    mut none: Box<dyn Drive>,
    plan: Plan,
    mut done: impl FnMut(),
) -> Result<Timing, Fault> {
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

/// Nanoseconds for a pair, and how many pairs there were.
fn timed(drive: &mut dyn Drive, pairs: u64) -> Result<(f64, u64), Fault> {
    let start = processor_time();
    let done = drive.run(pairs)?;
    Ok(((processor_time() - start) as f64 / done as f64, done))
}

/// What this thread has had of the processor, ns.
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
    fn quartiles_lie_between_values() {
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

    /// Counts its calls; each run is as many pairs as were asked for.
    struct Counter(std::rc::Rc<std::cell::RefCell<Vec<u64>>>);

    impl Drive for Counter {
        fn run(&mut self, pairs: u64) -> Result<u64, Fault> {
            self.0.borrow_mut().push(pairs);
            Ok(pairs)
        }

        fn finish(self: Box<Self>) -> Result<(), Fault> {
            self.0.borrow_mut().push(0);
            Ok(())
        }
    }

    #[test]
    fn runs_alternate_after_one_to_warm_up() {
        let calls = std::rc::Rc::default();
        let drive = || Box::new(Counter(std::rc::Rc::clone(&calls)));
        let mut rounds = 0;
        let plan = Plan { runs: 3, pairs: 100 };
        let timing = time(drive(), drive(), plan, || rounds += 1).unwrap();
        assert_eq!((timing.pairs, rounds), (100, 4));
        assert_eq!(*calls.borrow(), [1, 1, 100, 100, 100, 100, 100, 100, 0, 0]);
    }
}
