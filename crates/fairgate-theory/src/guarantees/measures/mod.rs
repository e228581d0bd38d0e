//! How far a recorded schedule departs from perfect sharing (Checconi, Rizzo & Valente 2013, section VI).
//!
//! Flow `k` of weight `w_k` is entitled to the share `phi_k = w_k / sum of all weights`. Over any interval in which it
//! is continuously backlogged it should get `phi_k` of what the link does:
//!
//! * **B-WFI** ([`b_wfi`]): the most work by which it falls short of that, over all such intervals (eq. 22), or those that end
//!   with a packet of its own.
//! * **T-WFI** ([`t_wfi`]): the most time that a packet is finished after `arrival + backlog / (phi_k R)` (eq. 29).
//! * **Relative fairness** ([`relative_fairness`]): the largest difference of normalised service `W / phi` of two flows
//!   over any interval in which both are backlogged (eq. 27).
//! * **Delay behind GPS** and **service lead** ([`Lag`]): how much later than in the fluid system a packet is
//!   finished, and how much more than there a flow has been served at any moment.
//!
//! A flow is *backlogged* while packets of it are queued: from an arrival until the last of them is taken for
//! transmission. The paper counts a flow as backlogged until that transmission ends. But a discipline is asked for a packet when
//! the link begins to send it, and knows no more of it from then on: to the paper's own `dequeue()` too the flow is idle.
//! By the longer interval a flow whose next packet always arrives while its last one is being sent would be backlogged all
//! the time, and entitled to a share that its queue never asked for; no scheduler behind a dequeue can give it that.
//!
//! Work is counted bit by bit as it leaves, so that a packet in transmission at either end of an interval counts in part.
//! All is exact, and found in time linear in the number of packets by running extremes: between two events all functions
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

/// Weights of all flows of a schedule.
#[derive(Clone, Debug)]
pub struct Weights {
    each: Vec<u32>,
    sum: u64,
}

impl Weights {
    /// Weights, each above 0.
    ///
    /// # Panics
    /// If one is 0.
    pub fn new(each: Vec<u32>) -> Weights {
        assert!(each.iter().all(|&weight| weight > 0), "a weight is above 0");
        let sum = each.iter().map(|&weight| u64::from(weight)).sum();
        Weights { each, sum }
    }

    /// The same weight for all of `flows`.
    pub fn equal(flows: u32) -> Weights {
        Weights::new(vec![1; flows as usize])
    }

    /// Of each flow.
    pub fn each(&self) -> &[u32] {
        &self.each
    }

    /// Of one flow.
    pub fn of(&self, flow: u32) -> u32 {
        self.each[flow as usize]
    }

    /// Of all flows together.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The share of the link that a flow is entitled to.
    pub fn share(&self, flow: u32) -> Measure {
        Measure::new(self.of(flow).into(), self.sum.into())
    }
}

/// The times in which a flow is backlogged, in order, with the places of the packets sent in each among the flow's.
///
/// Sorted arrivals and starts suffice, whatever the order within the flow: its queue is empty whenever as many packets
/// have been taken as have come. A packet that comes at the moment when the last one is taken is there before it is.
fn backlogged(sent: &[Sent]) -> Vec<Backlogged> {
    let mut arrivals: Vec<u64> = sent.iter().map(|sent| sent.arrival).collect();
    arrivals.sort_unstable();
    let mut periods = Vec::new();
    let mut first = 0;
    for (place, packet) in sent.iter().enumerate() {
        if arrivals.get(place + 1).is_none_or(|&next| next > packet.start) {
            periods.push(Backlogged {
                from: arrivals[first],
                until: packet.start,
                packets: first..place + 1,
            });
            first = place + 1;
        }
    }
    periods
}

/// A time in which a flow is continuously backlogged.
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
