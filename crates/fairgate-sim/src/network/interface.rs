//! One end of a link: its queue, the transmitter, and the packets in flight to the other end.

use std::sync::Arc;

use fairgate::{Discipline, Egress, Needs, PacketQueue, Time};
use fairgate_config::{ShardedSpec, Spec};

use crate::events::Alarm;
use crate::monitor::InterfaceMonitor;
use crate::network::line::Line;
use crate::network::{Impairments, Tap};
use crate::scenario::{LineRate, Schedule};

/// The delays that were recorded with the rate of a line.
pub(crate) struct RecordedDelays {
    schedule: Schedule,
    /// The latest arrival so far: no packet overtakes another one when the delay falls.
    latest: Time,
}

impl RecordedDelays {
    fn of(rate: &LineRate) -> Option<Box<RecordedDelays>> {
        match rate {
            LineRate::Schedule(schedule) if schedule.has_delays() => Some(Box::new(RecordedDelays {
                schedule: schedule.clone(),
                latest: Time::ZERO,
            })),
            _ => None,
        }
    }

    /// Returns when a packet arrives that leaves at `left_at` and would arrive at `arrival` otherwise.
    pub(crate) fn arrival(&mut self, left_at: Time, arrival: Time) -> Time {
        self.latest = self.latest.max(arrival + self.schedule.delay_at(left_at));
        self.latest
    }
}

/// An interface.
pub(crate) struct Interface {
    pub(crate) egress: Egress,
    /// The description of its tree. `None` if a program has built it.
    pub(crate) spec: Option<Arc<Spec>>,
    /// The trees of several workers, which together are that of the description.
    pub(crate) sharded: Option<Arc<ShardedSpec>>,
    /// What its disciplines read of packets.
    pub(crate) needs: Needs,
    /// Transmitted, not arrived yet, in the order of arrival. Packets that may overtake are in `impairments`.
    pub(crate) in_flight: PacketQueue,
    pub(crate) line: Line,
    /// Has the queue served.
    pub(crate) alarm: Alarm,
    /// The tick of the clock that asks a queue again which holds packets back, ns. 0: it is exact.
    pub(crate) timer: u64,
    /// Propagation delay, ns.
    pub(crate) delay: u64,
    /// The recorded delays, which come to that.
    pub(crate) recorded: Option<Box<RecordedDelays>>,
    /// Bytes that framing adds to a packet.
    pub(crate) overhead: u32,
    /// The number under which the node at the other end knows this link: from 1 on, in the order of the
    /// scenario. Links beyond the 65,535th have 0, which stands for an unknown interface.
    pub(crate) far_number: u16,
    /// The processor of the node at the other end, if it takes time for packets that it forwards.
    pub(crate) far_processor: Option<u32>,
    pub(crate) impairments: Option<Box<Impairments>>,
    pub(crate) monitor: InterfaceMonitor,
    /// The capture of what it sends.
    pub(crate) tap: Option<Box<Tap>>,
    pub(crate) name: String,
    pub(crate) rate: LineRate,
}

impl Interface {
    /// Creates an interface without impairments.
    pub(crate) fn new(
        name: String,
        discipline: Box<dyn Discipline>,
        rate: LineRate,
        delay: u64,
        overhead: u32,
        monitor: InterfaceMonitor,
    ) -> Interface {
        Interface {
            needs: discipline.needs(),
            egress: Egress::new(discipline),
            spec: None,
            sharded: None,
            in_flight: PacketQueue::new(),
            line: Line::new(&rate, 0),
            alarm: Alarm::UNSET,
            timer: 0,
            delay,
            recorded: RecordedDelays::of(&rate),
            overhead,
            far_number: 0,
            far_processor: None,
            impairments: None,
            monitor,
            tap: None,
            name,
            rate,
        }
    }

    /// Returns when the queue is asked again that holds its packets back until a time after `now`: at a tick,
    /// and at the second one at the earliest, because the current tick has begun. That is how BSD counts.
    #[inline]
    pub(crate) fn asked_again(&self, until: Time, now: Time) -> Time {
        if self.timer == 0 {
            return until;
        }
        let second = now.nanos() / self.timer + 2;
        let tick = until.nanos().div_ceil(self.timer).max(second);
        Time::from_nanos(tick.saturating_mul(self.timer))
    }
}
