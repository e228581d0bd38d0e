//! Measures how far a recorded schedule is from perfect sharing (Checconi, Rizzo & Valente 2013, section VI).
//!
//! Flow `k` of weight `w_k` is entitled to the share `phi_k = w_k / sum of all weights`. Over any interval in
//! which it is continuously backlogged it should get `phi_k` of the link's work. The measures are:
//!
//! * **B-WFI** ([`b_wfi`]): the most work by which it falls short of its share. It is measured over all such
//!   intervals (eq. 22), or over all that end with one of the flow's packets.
//! * **T-WFI** ([`t_wfi`]): the longest time from `arrival + backlog / (phi_k R)` until a packet is finished
//!   (eq. 29).
//! * **Relative fairness** ([`relative_fairness`]): the largest difference of the normalised services `W /
//!   phi` of two flows over any interval in which both are backlogged (eq. 27).
//! * **Delay behind GPS** and **service lead** ([`Lag`]): how much later than in the fluid system a packet is
//!   finished, and how much more service than there a flow has received at any time.
//!
//! A flow is *backlogged* from an arrival until its last packet is dequeued. The paper counts a flow as
//! backlogged until that packet's transmission ends. But a discipline is asked for a packet when its
//! transmission starts, and has no information about the packet after that. To the paper's own `dequeue()`
//! the flow is idle from then on, too. By the paper's interval a flow would always be backlogged if its next
//! packet always arrives during the transmission of its last one. It would then be entitled to a share that
//! its queue never asked for. No scheduler behind a dequeue function can provide that.
//!
//! Work is counted bit by bit as it is sent. A packet in transmission at either end of an interval therefore
//! counts in part. All results are exact. They take time linear in the number of packets, by running
//! extremes: all functions are linear between two events.
//! are linear.

mod flow;
mod lag;
mod relative;

pub use flow::{BWfi, b_wfi, t_wfi};
pub use lag::Lag;
pub use relative::relative_fairness;

use num_rational::Ratio;

use crate::guarantees::schedule::{Schedule, Sent};

/// A measure: bytes or nanoseconds.
pub type Measure = Ratio<i128>;

/// The weights of all flows of a schedule.
#[derive(Clone, Debug)]
pub struct Weights {
    each: Vec<u32>,
    sum: u64,
}

impl Weights {
    /// Creates weights. Each must be above 0.
    ///
    /// # Panics
    /// If one is 0.
    pub fn new(each: Vec<u32>) -> Weights {
        assert!(each.iter().all(|&weight| weight > 0), "a weight is above 0");
        let sum = each.iter().map(|&weight| u64::from(weight)).sum();
        Weights { each, sum }
    }

    /// Creates the same weight for each of `flows` flows.
    pub fn equal(flows: u32) -> Weights {
        Weights::new(vec![1; flows as usize])
    }

    /// Returns the weight of each flow.
    pub fn each(&self) -> &[u32] {
        &self.each
    }

    /// Returns the weight of one flow.
    pub fn of(&self, flow: u32) -> u32 {
        self.each[flow as usize]
    }

    /// Returns the sum of all weights.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the share of the link that a flow is entitled to.
    pub fn share(&self, flow: u32) -> Measure {
        Measure::new(self.of(flow).into(), self.sum.into())
    }
}

/// Returns the intervals in which a flow is backlogged, in order, each with the range of the flow's packets
/// that are sent in it.
///
/// Sorted arrivals and starts are enough, whatever the order within the flow: the flow's queue is empty
/// whenever as many packets have been dequeued as have arrived. A packet that arrives at the time when the
/// last one is dequeued is counted as queued before that.
fn backlogged(sent: &[Sent]) -> Vec<Backlogged> {
    let mut arrivals: Vec<u64> = sent.iter().map(|sent| sent.arrival).collect();
    arrivals.sort_unstable();
    let mut periods = Vec::new();
    let mut first = 0;
    for (index, packet) in sent.iter().enumerate() {
        if arrivals.get(index + 1).is_none_or(|&next| next > packet.start) {
            periods.push(Backlogged {
                from: arrivals[first],
                until: packet.start,
                packets: first..index + 1,
            });
            first = index + 1;
        }
    }
    periods
}

/// An interval in which a flow is continuously backlogged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Backlogged {
    from: u64,
    until: u64,
    packets: std::ops::Range<usize>,
}

fn of_flow(schedule: &Schedule, flow: u32) -> Vec<Sent> {
    schedule.of_flow(flow).copied().collect()
}

#[cfg(test)]
mod tests;
