//! Fairness between two flows.

use super::{Backlogged, Measure, Weights, backlogged, of_flow};
use crate::guarantees::schedule::{Schedule, Sent};

/// Computes the relative fairness of two flows, in bytes at share 1. This is the largest difference of their
/// services, each divided by the flow's share, over all intervals in which both were continuously backlogged.
/// It is 0 if they never were.
///
/// With `E(t) = W_h(t) / phi_h - W_k(t) / phi_k` this is the range of `E` within an interval in which both
/// are backlogged. `E` changes its slope only at the starts and ends of their transmissions.
///
/// # Panics
/// If there is no such flow, or the weights are for another number of flows.
pub fn relative_fairness(schedule: &Schedule, weights: &Weights, one: u32, other: u32) -> Measure {
    let (weight_one, weight_other) = (i128::from(weights.of(one)), i128::from(weights.of(other)));
    let (sent_one, sent_other) = (of_flow(schedule, one), of_flow(schedule, other));
    let mut worst = 0;
    for both in common(&backlogged(&sent_one), &backlogged(&sent_other)) {
        let (mut first, mut second) = (Service::new(&sent_one), Service::new(&sent_other));
        first.skip_to(both.from);
        second.skip_to(both.from);
        let (mut least, mut most) = (i128::MAX, i128::MIN);
        let mut now = both.from;
        loop {
            let difference = weight_other * first.until(now) - weight_one * second.until(now);
            least = least.min(difference);
            most = most.max(difference);
            if now >= both.until {
                break;
            }
            now = first.next_bend(now).min(second.next_bend(now)).min(both.until);
        }
        worst = worst.max(most - least);
    }
    let scale = weight_one * weight_other * i128::from(schedule.tick_scale().ticks_per_byte());
    Measure::new(worst, scale) * Measure::from_integer(weights.sum().into())
}

/// An interval in which both are backlogged.
struct Both {
    from: u64,
    until: u64,
}

fn common<'a>(one: &'a [Backlogged], other: &'a [Backlogged]) -> impl Iterator<Item = Both> + 'a {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let (a, b) = (one.get(i)?, other.get(j)?);
            if a.until <= b.until {
                i += 1;
            } else {
                j += 1;
            }
            let (from, until) = (a.from.max(b.from), a.until.min(b.until));
            if from < until {
                return Some(Both { from, until });
            }
        }
    })
}

/// The service of a flow, queried at increasing times.
struct Service<'a> {
    sent: &'a [Sent],
    /// The first packet that was not finished at the last query, and the work before it.
    index: usize,
    done: u64,
}

impl<'a> Service<'a> {
    fn new(sent: &'a [Sent]) -> Service<'a> {
        Service {
            sent,
            index: 0,
            done: 0,
        }
    }

    /// Starts at `ticks`. Earlier service is not summed up, because only differences of services count.
    fn skip_to(&mut self, ticks: u64) {
        self.index = self.sent.partition_point(|sent| sent.finish <= ticks);
    }

    fn until(&mut self, ticks: u64) -> i128 {
        while let Some(sent) = self.sent.get(self.index)
            && sent.finish <= ticks
        {
            self.done += sent.work();
            self.index += 1;
        }
        let partly = self
            .sent
            .get(self.index)
            .map_or(0, |sent| ticks.saturating_sub(sent.start));
        i128::from(self.done + partly)
    }

    /// Returns the next start or end of a transmission after `ticks`.
    fn next_bend(&self, ticks: u64) -> u64 {
        match self.sent.get(self.index) {
            None => u64::MAX,
            Some(sent) if sent.start > ticks => sent.start,
            Some(sent) => sent.finish,
        }
    }
}
