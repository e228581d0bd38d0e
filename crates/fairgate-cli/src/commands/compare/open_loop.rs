//! One discipline on one link, fed with packets that arrive at given times: an open loop.
//!
//! The link transmits one packet at a time, for `length * 8 / rate`, and starts the next one at once. If two
//! events have the same time, the end of a transmission is handled first. The delay of a packet is from its
//! arrival to the end of its transmission.

use fairgate::{Acknowledgement, Discipline, DropCounts, FlowKey, Link, Next, Packet, Rate, RateMeter, Time};
use fairgate_report::{Meter, QueueMeter};

/// Most packets queued at once: above any discipline's default limit, 17 MB for each discipline.
const SLOTS: u32 = 1 << 17;

/// The slot of a flow in the table of flows. A slot is used again by another flow, with the next generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowSlot {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A packet that arrives at the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) time: Time,
    pub(super) flow: FlowSlot,
    pub(super) packet: Packet,
    pub(super) key: FlowKey,
    /// Only if a discipline reads it.
    pub(super) acknowledgement: Option<Acknowledgement>,
}

/// The payload of a packet in the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    arrived: Time,
    flow: FlowSlot,
}

/// A discipline, its link, and what has been counted so far.
pub(super) struct OpenLoop {
    link: Link<Pending>,
    meter: RateMeter,
    /// The end of the current or last transmission.
    free_at: Time,
    /// When to ask the discipline next: after the current transmission, or at its watchdog time.
    ask_at: Option<Time>,
    busy_nanos: u64,
    flows: Vec<(u32, Meter)>,
    /// Flows that have lost their slot.
    rest: Meter,
    queue: QueueMeter,
}

/// More packets are queued than there are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueTooLong {
    pub(super) packets: u32,
}

/// What was counted in a whole run.
pub(super) struct Totals {
    /// The end of the last transmission.
    pub(super) end: Time,
    pub(super) busy_nanos: u64,
    /// By slot: the generation of flow that came last, and its meter.
    flows: Vec<(u32, Meter)>,
    rest: Meter,
    pub(super) queue: QueueMeter,
    pub(super) drops: DropCounts,
}

impl Totals {
    /// Returns the meter of a flow and removes it. It is empty if no packet of the flow arrived.
    pub(super) fn take(&mut self, flow: FlowSlot) -> Meter {
        match self.flows.get_mut(flow.index as usize) {
            Some((generation, meter)) if *generation == flow.generation => std::mem::take(meter),
            _ => Meter::default(),
        }
    }

    /// Returns the sum of all meters that were not taken, of flows with a slot and of flows that lost it.
    pub(super) fn take_rest(&mut self) -> Meter {
        let mut rest = std::mem::take(&mut self.rest);
        self.flows.drain(..).for_each(|(_, meter)| rest.merge(meter));
        rest
    }
}

impl OpenLoop {
    pub(super) fn new(discipline: Box<dyn Discipline>, rate: Rate) -> OpenLoop {
        OpenLoop {
            link: Link::new(discipline, SLOTS),
            meter: rate.meter(),
            free_at: Time::ZERO,
            ask_at: None,
            busy_nanos: 0,
            flows: Vec::new(),
            rest: Meter::default(),
            queue: QueueMeter::default(),
        }
    }

    /// Whether the discipline reads what packets acknowledge.
    pub(super) fn reads_acknowledgements(&self) -> bool {
        self.link.needs().acknowledgements
    }

    /// Takes a packet. Times never go back.
    pub(super) fn arrive(&mut self, arrival: &Arrival) -> Result<(), QueueTooLong> {
        let now = arrival.time;
        self.run_until(now);
        self.meter_of_arrival(arrival.flow).offered(arrival.packet.length);
        let pending = Pending {
            arrived: now,
            flow: arrival.flow,
        };
        // Filters match the header bytes that the fields imply: not every capture has bytes.
        let packet = fairgate::Arrival {
            acknowledgement: arrival.acknowledgement,
            ..fairgate::Arrival::from((arrival.packet, arrival.key))
        };
        self.link
            .enqueue(packet, pending, now)
            .map_err(|error| QueueTooLong {
                packets: error.full.capacity,
            })?;
        self.count_drops();
        self.queue.set(now, self.link.backlog());
        if self.free_at <= now {
            self.send(now);
        }
        Ok(())
    }

    /// Sends everything that may be sent, counts what is left, and returns the totals.
    pub(super) fn finish(mut self) -> Totals {
        self.run_until(Time::LAST);
        let drops = self.link.root().statistics().dropped_by_reason;
        let mut left = Vec::new();
        self.link
            .drain(|packet| left.push((packet.payload.flow, packet.slot.length)));
        for (flow, length) in left {
            self.with_meter(flow, |meter| meter.left(length));
        }
        Totals {
            end: self.free_at,
            busy_nanos: self.busy_nanos,
            flows: self.flows,
            rest: self.rest,
            queue: self.queue,
            drops,
        }
    }

    /// Sends what can be sent up to `now`.
    fn run_until(&mut self, now: Time) {
        while let Some(at) = self.ask_at.filter(|&at| at <= now) {
            self.send(at);
        }
    }

    /// Starts the next transmission, if the discipline has a packet.
    fn send(&mut self, now: Time) {
        let next = self.link.dequeue(now);
        self.count_drops();
        self.ask_at = match next {
            Next::Packet(departure) => {
                let (packet, pending) = (departure.slot, departure.payload);
                let lasts = self.meter.nanos(u64::from(packet.length));
                self.busy_nanos += lasts;
                self.free_at = now + lasts;
                let (through, delay) = (self.free_at, self.free_at - pending.arrived);
                self.with_meter(pending.flow, |meter| {
                    meter.delivered(through, packet.length, delay, packet.is_marked())
                });
                Some(self.free_at)
            }
            Next::Wait(until) => Some(until),
            Next::Idle => None,
        };
        self.queue.set(now, self.link.backlog());
    }

    /// Counts what the discipline dropped in the last call.
    fn count_drops(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            self.with_meter(dropped.payload.flow, |meter| meter.dropped(dropped.slot.length));
        }
    }

    /// Returns the meter of an arriving packet's flow. From now on the slot belongs to this flow.
    fn meter_of_arrival(&mut self, flow: FlowSlot) -> &mut Meter {
        let index = flow.index as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Default::default);
        }
        let (generation, meter) = &mut self.flows[index];
        if *generation != flow.generation {
            *generation = flow.generation;
            self.rest.merge(std::mem::take(meter));
        }
        &mut self.flows[index].1
    }

    /// Counts a packet that leaves. Its flow may have lost its slot since the packet arrived.
    fn with_meter(&mut self, flow: FlowSlot, count: impl FnOnce(&mut Meter)) {
        let (generation, meter) = &mut self.flows[flow.index as usize];
        if *generation == flow.generation {
            count(meter);
        } else {
            let mut alone = Meter::default();
            count(&mut alone);
            self.rest.merge(alone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::DropReason;
    use fairgate_config::Spec;
    use fairgate_conformance::{RATE, check_driver};

    fn open_loop(discipline: &str, rate: Rate) -> OpenLoop {
        let spec = Spec::inline(discipline).unwrap();
        OpenLoop::new(spec.build(1).unwrap(), rate)
    }

    fn arrival(nanos: u64, length: u32, flow: u32) -> Arrival {
        Arrival {
            time: Time::from_nanos(nanos),
            flow: FlowSlot {
                index: flow,
                generation: 0,
            },
            packet: Packet::of_length(length),
            key: FlowKey::default(),
            acknowledgement: None,
        }
    }

    /// Bursts of 256 packets that overflow the queue, and pauses that let it run empty: (ns, length, flow).
    fn bursts() -> Vec<(u64, u32, u32)> {
        let mut time = 0;
        (0..20_000u64)
            .map(|i| {
                let mixed = (i ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                time += if mixed >> 56 == 0 { 25_000_000 } else { mixed >> 46 };
                (time, 40 + (mixed >> 20) as u32 % 1475, (mixed >> 8) as u32 % 5)
            })
            .collect()
    }

    /// Compares a fifo with a reference of three lines of arithmetic: the result of every packet and every
    /// delay, to the nanosecond.
    #[test]
    fn a_fifo_line_is_exact() {
        const LIMIT: usize = 50;
        let rate = Rate::mbit(20);
        let mut link = open_loop("fifo limit=50", rate);
        let mut expected = vec![Meter::default(); 5];
        // Start of each accepted packet's transmission: those that haven't started are in the queue.
        let mut starts: Vec<u64> = Vec::new();
        let mut free_at = 0;
        for (nanos, length, flow) in bursts() {
            link.arrive(&arrival(nanos, length, flow)).unwrap();
            let meter = &mut expected[flow as usize];
            meter.offered(length);
            if starts.iter().rev().take_while(|&&start| start > nanos).count() == LIMIT {
                meter.dropped(length);
                continue;
            }
            starts.push(free_at.max(nanos));
            free_at = free_at.max(nanos) + u64::from(length) * 8 * 1_000 / 20;
            meter.delivered(Time::from_nanos(free_at), length, free_at - nanos, false);
        }
        let totals = link.finish();
        assert_eq!(totals.end.nanos(), free_at);
        let drops = totals.drops.get(DropReason::QueueLimit);
        assert!(drops > 1_000, "the test means nothing without drops: {drops}");
        for (slot, (exact, (_, found))) in expected.into_iter().zip(totals.flows).enumerate() {
            assert_eq!(
                format!("{:?}", found.finish(totals.end)),
                format!("{:?}", exact.finish(totals.end)),
                "flow {slot}"
            );
        }
    }

    /// With any discipline, each packet is delivered or dropped, and the link is busy exactly as long as the
    /// delivered bytes need.
    #[test]
    fn nothing_is_lost_in_any_discipline() {
        for discipline in super::super::DEFAULT_QUEUES {
            let mut link = open_loop(discipline, Rate::mbit(20));
            let arrivals = bursts();
            for &(nanos, length, flow) in &arrivals {
                link.arrive(&arrival(nanos, length, flow)).unwrap();
            }
            let mut totals = link.finish();
            let all = totals.take_rest();
            let (offered, delivered) = (all.total_offered(), all.total_delivered());
            let all = all.finish(totals.end);
            assert_eq!(offered.packets, arrivals.len() as u64, "{discipline}");
            assert_eq!(all.delivered + all.dropped, all.offered, "{discipline}");
            assert_eq!(all.dropped, totals.drops.total(), "{discipline}");
            let needed = delivered.bytes * 400;
            assert!(
                needed.abs_diff(totals.busy_nanos) <= delivered.packets,
                "{discipline}"
            );
        }
    }

    /// RED counts idle time from the dequeue on that finds nothing. Packets that come after a pause meet an
    /// average that has sunk, those that come at once the one that the burst left behind.
    #[test]
    fn reds_average_sinks_while_the_line_is_idle() {
        let dropped_after = |pause: u64| {
            let red = "red limit=150000 min=5000 max=15000 avpkt=1000 burst=60 bandwidth=10mbit";
            let mut link = open_loop(red, Rate::mbit(10));
            // 250 packets at 200 Mbit/s: the queue outgrows `max` before the average does, which follows.
            // What is queued then is gone after 150 ms.
            for number in 0..250 {
                link.arrive(&arrival(number * 40_000, 1000, 0)).unwrap();
            }
            for number in 0..8 {
                link.arrive(&arrival(150_000_000 + pause + number * 1_000_000, 1000, 1))
                    .unwrap();
            }
            let mut totals = link.finish();
            assert!(std::mem::take(&mut totals.flows[0].1).finish(totals.end).dropped > 0);
            std::mem::take(&mut totals.flows[1].1).finish(totals.end).dropped
        };
        assert!(dropped_after(0) > 0);
        assert_eq!(dropped_after(60_000_000_000), 0);
    }

    /// Each packet is a flow of its own, so that its meter tells when it was through.
    #[test]
    fn the_open_loop_drives_by_the_rules() {
        check_driver(Some(RATE), |discipline, arrivals| {
            let mut link = OpenLoop::new(discipline, RATE);
            for (number, packet) in arrivals.iter().enumerate() {
                link.arrive(&arrival(packet.at.nanos(), packet.length, number as u32))
                    .unwrap();
            }
            let totals = link.finish();
            let began = |(packet, (_, meter)): (&fairgate_conformance::Arrival, (u32, Meter))| {
                let delay = meter.finish(totals.end).delay?.max_ns;
                Some(packet.at + (delay - u64::from(packet.length) * 100))
            };
            arrivals.iter().zip(totals.flows).map(began).collect()
        });
    }

    #[test]
    fn a_flow_that_loses_its_slot_is_counted_under_rest() {
        let mut link = open_loop("fifo limit=100", Rate::mbit(1));
        for generation in [0, 0, 1, 1] {
            let mut arrival = arrival(0, 1000, 0);
            arrival.flow.generation = generation;
            link.arrive(&arrival).unwrap();
        }
        let mut totals = link.finish();
        let flow = |generation| FlowSlot { index: 0, generation };
        assert_eq!(totals.take(flow(0)).total_offered().packets, 0);
        assert_eq!(totals.take(flow(1)).total_delivered().packets, 2);
        let rest = totals.take_rest();
        assert_eq!(rest.total_offered().packets, 2);
        assert_eq!(rest.total_delivered().packets, 2);
    }
}
