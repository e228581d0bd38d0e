//! The worst-case fair indices of one flow.

use super::{Measure, Weights, backlogged, of_flow};
use crate::guarantees::schedule::{Schedule, Sent};

/// The B-WFI of a flow in bytes, by two definitions. Both are 0 if the flow sent nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BWfi {
    /// Over intervals that end when a packet of the flow is finished (Bennett & Zhang 1996).
    pub at_finish: Measure,
    /// Over any interval (Checconi, Rizzo & Valente 2013, eq. 22). It is larger by at most `(1 - phi_k) L_k`.
    /// An interval may end just before a packet of the flow, so it counts the service of the others but not
    /// that packet.
    pub anywhere: Measure,
}

/// Computes the B-WFI of a flow: the most by which its service was less than its share of the link's work,
/// over all intervals in which it was continuously backlogged.
///
/// With `f(t) = w W(t) - sum W_k(t)` this is the largest `f(t2) - f(t1)`, `t1 <= t2`, within a backlogged
/// interval. `f` falls while the flow is served and rises while others are served. So only the starts and
/// ends of its transmissions matter, and one pass with the least `f` so far is enough.
///
/// # Panics
/// If there is no such flow, or the weights are for another number of flows.
pub fn b_wfi(schedule: &Schedule, weights: &Weights, flow: u32) -> BWfi {
    let sent = of_flow(schedule, flow);
    let (weight, sum) = (i128::from(weights.of(flow)), i128::from(weights.sum()));
    let f =
        |ticks: u64, served: u64| weight * i128::from(schedule.work_until(ticks)) - sum * i128::from(served);
    let (mut anywhere, mut at_finish) = (0, 0);
    let mut served = 0;
    let mut previous: Option<&Sent> = None;
    for period in backlogged(&sent) {
        // The previous packet may still be in transmission when the next one arrives.
        let under_way = previous.map_or(0, |packet| packet.finish.saturating_sub(period.from));
        let mut least = f(period.from, served - under_way);
        if let Some(packet) = previous.filter(|packet| packet.finish > period.from) {
            least = least.min(f(packet.finish, served));
        }
        for packet in &sent[period.packets.clone()] {
            anywhere = anywhere.max(f(packet.start, served) - least);
            served += packet.work();
            let finished = f(packet.finish, served);
            at_finish = at_finish.max(finished - least);
            least = least.min(finished);
        }
        previous = sent[period.packets].last();
    }
    let bytes = |value| Measure::new(value, sum * i128::from(schedule.tick_scale().ticks_per_byte()));
    BWfi {
        at_finish: bytes(at_finish),
        anywhere: bytes(anywhere),
    }
}

/// Computes the T-WFI of a flow in nanoseconds: the most by which a packet was finished later than its flow's
/// backlog just after its arrival takes at the flow's share of the link's rate. Returns `None` if the flow
/// sent nothing. The result is negative if every packet was early.
///
/// # Panics
/// If there is no such flow, or the weights are for another number of flows.
pub fn t_wfi(schedule: &Schedule, weights: &Weights, flow: u32) -> Option<Measure> {
    let sent = of_flow(schedule, flow);
    let mut by_arrival: Vec<usize> = (0..sent.len()).collect();
    by_arrival.sort_by_key(|&index| sent[index].number);
    let (weight, sum) = (i128::from(weights.of(flow)), i128::from(weights.sum()));
    // The flow's work that has arrived; the number of packets whose transmission is over, and their work.
    let (mut arrived, mut over, mut done) = (0u64, 0, 0u64);
    let worst = by_arrival
        .into_iter()
        .map(|index| {
            let packet = &sent[index];
            arrived += packet.work();
            while sent[over].finish <= packet.arrival {
                done += sent[over].work();
                over += 1;
            }
            let partly = packet.arrival.saturating_sub(sent[over].start);
            let backlog = arrived - done - partly;
            weight * i128::from(packet.finish - packet.arrival) - sum * i128::from(backlog)
        })
        .max()?;
    let per_nano = i128::from(schedule.tick_scale().ticks_per_nano());
    Some(Measure::new(worst, weight * per_nano))
}
