//! Compares a packet system with the fluid system.

use crate::fraction::{Fraction, Largest};
use crate::gps::Fluid;
use crate::guarantees::schedule::Schedule;

/// The difference between a schedule and GPS under the same arrivals and weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The most by which a packet of the flow was finished later than in the fluid system, ns. Negative if
    /// all were earlier.
    pub delay: Fraction,
    /// The most by which the flow's service was ahead of the fluid system, bytes.
    pub lead: Fraction,
}

impl Lag {
    /// Computes the lag of one flow. Returns `None` if it sent nothing.
    ///
    /// The fluid system serves a flow at most at the link's rate, so a lead is largest when a transmission
    /// ends.
    ///
    /// # Panics
    /// If `fluid` is not of the same arrivals: a packet of the schedule is missing there.
    pub fn of_flow(schedule: &Schedule, fluid: &Fluid, flow: u32) -> Option<Lag> {
        let (mut delay, mut lead) = (Largest::default(), Largest::default());
        let mut served = 0u64;
        for sent in schedule.of_flow(flow) {
            let packet = &fluid.packets()[sent.number as usize];
            assert_eq!(
                (packet.flow, packet.work),
                (flow, sent.work()),
                "the packets differ"
            );
            delay.offer(packet.finish.minus_from(sent.finish));
            served += sent.work();
            lead.offer(fluid.service(flow, sent.finish).minus_from(served));
        }
        let tick_scale = schedule.tick_scale();
        Some(Lag {
            delay: delay.into_inner()?.over(tick_scale.ticks_per_nano()),
            lead: lead.into_inner()?.over(tick_scale.ticks_per_byte()),
        })
    }
}
