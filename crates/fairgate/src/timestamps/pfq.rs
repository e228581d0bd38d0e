//! Priority fair queueing (Kortebi, Oueslati and Roberts 2004, "Cross-protect: implicit service
//! differentiation and admission control"): fair queueing in which flows that send little do not wait.
//!
//! It is based on start-time fair queueing (Goyal, Vin and Cheng 1996): a packet's start time is `S = max(V,
//! F)`, where F is the finish time of the packet before it in its flow, and `F = S + length / weight`. The
//! packet with the least start time goes first. V is the start time of the packet in service. In addition,
//! packets of flows that have sent less than `quantum` bytes since they became active go to the head of the
//! schedule. Among these packets the first to arrive goes first. So voice, a first request and the start of a
//! transfer go first without classification, and longer flows are served fairly.
//!
//! A flow is *active* while `F > V`: while it has packets queued, and after that until what it sent would
//! have been sent at its fair rate. An inactive flow becomes active with its next packet, and its count of
//! bytes restarts. When nothing is queued, no flow is active: V is then the greatest of all finish times.
//! Packets at the head count for F like all others, so they improve a flow's delay and not its throughput.
//!
//! The packets of a flow leave in the order of their arrival. Once a flow has used its quantum, none of its
//! packets goes to the head until it is inactive, and it is active while any of its packets is queued.
//!
//! ```text
//!   stamp   bit 0: 1 at the head, 0 otherwise;   bits 63 to 1: order of arrival at the head, or start time
//!   urgent  flows whose first packet goes to the head, by order of arrival
//!   others  the other busy flows, by start time
//! ```
//!
//! Invariants: V does not change while `urgent` is not empty. F of a busy flow is above V. No start time in
//! `others` is below V.
//!
//! Resolution and wrap: the unit of time is 2^-30 byte. V and F have 128 bits, a stamp has the low 63 bits. A
//! stamp is at most 2^61 ahead of V. Beyond 2 GiB of backlog in one flow of weight 1 the order among flows is
//! no longer exact.
//!
//! **Flows** are told apart by their whole five-tuple, as in the paper, up to `flows` of them. If all queues
//! have packets, a further flow shares one. A flow without packets makes room for a new one; it is then
//! forgotten, also if it is active. With `exact = false` flows are hashed into the queues, as in the other
//! schedulers. Then a call that shares a queue with a download has the download's delay.
//!
//! Deviations: flows have weights (in the paper they are equal). Every queue may be active, so the list of
//! active flows has no limit of its own. Above the limit on packets the longest flow loses its newest packet,
//! not its oldest. The paper's admission control is a separate discipline. There is no classful form, because
//! start times belong to packets.

use super::parameters::weights;
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Lens, Parameter, Unit, check_ranges};
use crate::scheduler::{Head, Holds, Scheduler, flows};
use crate::structures::Heap;
use crate::time::Time;
use crate::timestamps::inverse;
use crate::timestamps::{Long, Weight, WeightSum, time_of};

/// The largest distance of a stamp ahead of V.
const AHEAD: u128 = 1 << 61;

/// Is set in stamps of packets that go to the head.
const URGENT: u64 = 1;

/// The parameters of the scheduler as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The bytes that a flow may send at the head of the schedule before it is treated like all others, 1 to
    /// 2^30. The packet that exceeds it still goes to the head.
    pub quantum: u32,
    /// Whether flows are told apart by their whole hash. If not, they are hashed into the queues.
    pub exact: bool,
}

/// The paper's value: one packet of the largest size. Flows are exact, as in the paper.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            quantum: 1514,
            exact: true,
        }
    }
}

/// The state of a flow: 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The finish time of its last packet.
    finish: Long,
    /// The inverse of its weight, with 62 fraction bits.
    per_byte: u64,
    weight: u32,
    /// The bytes sent at the head since it became active.
    urgent_bytes: u32,
}

/// The scheduler.
#[derive(Debug)]
pub struct Pfq {
    /// Virtual time.
    now: u128,
    /// The greatest finish time.
    latest: u128,
    /// The number of packets that went to the head, which gives their order.
    arrivals: u64,
    /// The flows whose first packet goes to the head, by arrival.
    urgent: Heap,
    /// The other busy flows, by start time.
    others: Heap,
    quantum: u32,
    flows: usize,
    weights: WeightSum,
}

impl Pfq {
    /// Returns the heap for a flow whose first packet has this stamp.
    #[inline]
    fn heap(&mut self, stamp: u64) -> &mut Heap {
        if stamp & URGENT == 0 {
            &mut self.others
        } else {
            &mut self.urgent
        }
    }

    /// Sets V for the packet with this stamp in `others`, which is now in service.
    #[inline]
    fn set_now(&mut self, stamp: u64) {
        // The stamp has one bit less than the low half of V. It is not behind V.
        let ahead = stamp.wrapping_sub((self.now as u64) << 1) >> 1;
        self.now += u128::from(ahead);
    }
}

impl Scheduler for Pfq {
    const NAME: &'static str = "pfq";
    const STAMPS: bool = true;
    const CAN_SEPARATE: bool = true;
    type Share = Weight;
    type Settings = Settings;
    type Flow = Flow;

    fn new(settings: &Settings, origin: u64) -> Result<Pfq, ConfigError> {
        let quantum = [quantum(|settings: &mut Settings, _| &mut settings.quantum)];
        check_ranges(&quantum, &mut settings.clone())?;
        Ok(Pfq {
            now: origin.into(),
            latest: origin.into(),
            arrivals: origin >> 1,
            urgent: Heap::new(),
            others: Heap::new(),
            quantum: settings.quantum,
            flows: 0,
            weights: WeightSum::default(),
        })
    }

    fn add_flow(&mut self, &Weight(weight): &Weight) -> Result<Flow, ConfigError> {
        self.weights.add(weight)?;
        self.flows += 1;
        self.urgent.make_room(self.flows);
        self.others.make_room(self.flows);
        Ok(Flow {
            finish: Long::of(self.now),
            per_byte: inverse::inverse(weight),
            weight,
            urgent_bytes: 0,
        })
    }

    fn change_share(&mut self, flow: &mut Flow, &Weight(weight): &Weight) {
        self.weights.change(flow.weight, weight);
        flow.weight = weight;
        flow.per_byte = inverse::inverse(weight);
    }

    #[inline]
    fn stamp<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, length: u32, _now: Time) -> u64 {
        let flow = flows[index as usize].state_mut();
        let mut start = flow.finish.get();
        if start <= self.now {
            start = self.now;
            flow.urgent_bytes = 0;
        }
        let finish = start + u128::from(time_of(length, flow.per_byte));
        flow.finish = Long::of(finish);
        self.latest = self.latest.max(finish);
        if flow.urgent_bytes < self.quantum {
            flow.urgent_bytes += length;
            self.arrivals += 1;
            return self.arrivals << 1 | URGENT;
        }
        (start.min(self.now + AHEAD) as u64) << 1
    }

    #[inline]
    fn stolen<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        // `latest` still includes the packet. This only makes V larger when all flows are inactive, which is
        // when `latest` is used.
        let flow = flows[index as usize].state_mut();
        let taken = u128::from(time_of(head.length, flow.per_byte));
        flow.finish = Long::of(flow.finish.get().saturating_sub(taken));
        if head.stamp & URGENT != 0 {
            flow.urgent_bytes = flow.urgent_bytes.saturating_sub(head.length);
        }
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], index: u32, head: Head, _now: Time) {
        self.heap(head.stamp).push(head.stamp, index);
    }

    #[inline]
    fn select<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        let first = self.urgent.first().or_else(|| self.others.first())?;
        Some(first.flow)
    }

    #[inline]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        _flows: &mut [F],
        index: u32,
        sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        let served = if self.urgent.is_empty() {
            if let Some(first) = self.others.first()
                && sent > 0
            {
                self.set_now(first.key);
            }
            &mut self.others
        } else {
            &mut self.urgent
        };
        served.pop();
        if let Some(head) = next {
            self.heap(head.stamp).push(head.stamp, index);
        } else if self.urgent.is_empty() && self.others.is_empty() {
            self.now = self.now.max(self.latest);
        }
    }

    fn clear<F: Holds<State = Flow>>(&mut self, _flows: &mut [F]) {
        self.urgent.clear();
        self.others.clear();
        self.now = self.now.max(self.latest);
    }

    fn separates(settings: &Settings) -> bool {
        settings.exact
    }

    /// A flow is active until virtual time reaches its finish time.
    #[inline]
    fn remembers(&self, flow: &Flow) -> bool {
        flow.finish.get() > self.now
    }

    fn forget(&self, flow: &mut Flow) {
        flow.finish = Long::of(self.now);
        flow.urgent_bytes = 0;
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit("virtual_time", Variable::Integer((self.now >> 30) as i64));
    }
}

const fn quantum<S>(field: Lens<S>) -> Parameter<S> {
    Parameter::new(
        "quantum",
        Unit::Bytes,
        1..=1 << 30,
        "Bytes that a flow may send before all others after it became active.",
        field,
    )
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Pfq>>] = &[
    flows::flows(),
    flows::limit(),
    weights(),
    quantum(|flat, _| &mut flat.config.settings.quantum),
    Parameter::word(
        "exact",
        Unit::Flag,
        "Whether flows are told apart by their whole five-tuple. If not, they are hashed into the queues, \
         and some share one.",
        |flat, _| &mut flat.config.settings.exact,
    ),
];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Pfq> = flows::describe::<Pfq>(
    About {
        name: Pfq::NAME,
        family: Family::Timestamps,
        summary: "Priority fair queueing (Kortebi et al. 2004): flows that send little go first, the \
            others share",
        when: "For voice and short transfers without marking; pdrr does the same at lower cost. With \
            exact = false a call can share the queue of a download.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| {
    let separate = match flat.config.settings.exact {
        true => flows::allocated_to_separate(flat.config.flows),
        false => 0,
    };
    112 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit) + separate
});

crate::scheduler::node!(Pfq);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Discipline;
    use crate::discipline::Inspect;
    use crate::scheduler::{Flows, flows};
    use crate::testing::{Driver, in_class};
    use crate::timestamps::testing::{of_shares, starting_at};
    use proptest::prelude::*;

    fn pfq(weights: &[u32], quantum: u32, limit: u32, origin: u64) -> Driver<Flows<Pfq>> {
        let config = flows::ConfigOf::<Pfq> {
            limit,
            settings: Settings {
                quantum,
                ..Settings::default()
            },
            ..of_shares::<Pfq>(weights.iter().copied().map(Weight))
        };
        starting_at(config, origin)
    }

    /// Packets of a call and of downloads, as many flows as there are queues. Hashed, some flows share a
    /// queue; exact, none does. Returns the packets that went before the call's.
    fn ahead_of_a_call(exact: bool, seed: u64) -> usize {
        let config = Config {
            flows: 16,
            settings: Settings {
                exact,
                ..Settings::default()
            },
            ..Config::default()
        };
        let mut driver = Driver::new(Pfq::node(config, seed).unwrap());
        let of_flow = |flow: u64, length| crate::Packet {
            flow: crate::FlowHash::from_raw(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ..crate::Packet::of_length(length)
        };
        for packet in 0..150 {
            driver.offer(of_flow(1 + packet % 15, 1500), Time::ZERO);
        }
        // The downloads have used their quanta, which takes two packets.
        for _ in 0..30 {
            let _ = driver.next(Time::ZERO);
        }
        driver.offer(of_flow(0, 200), Time::ZERO);
        let order = driver.drain(Time::ZERO);
        order.iter().position(|cookie| *cookie == 150).unwrap()
    }

    #[test]
    fn a_call_never_shares_the_queue_of_a_download_if_flows_are_exact() {
        assert!((0..50).all(|seed| ahead_of_a_call(true, seed) == 0));
        assert!((0..50).any(|seed| ahead_of_a_call(false, seed) > 50));
    }

    #[test]
    fn more_flows_than_queues_share_and_idle_flows_make_room() {
        let config = Config {
            flows: 2,
            ..Config::default()
        };
        let mut driver = Driver::new(Pfq::node(config, 1).unwrap());
        let offer = |driver: &mut Driver<Flows<Pfq>>, flow: u64| {
            let packet = crate::Packet {
                flow: crate::FlowHash::from_raw(flow),
                ..crate::Packet::of_length(1000)
            };
            driver.offer(packet, Time::ZERO);
        };
        let active = |driver: &Driver<Flows<Pfq>>| {
            let mut active = None;
            driver.root.visit_variables(&mut |name, value| {
                if let ("active_flows", Variable::Integer(flows)) = (name, value) {
                    active = Some(flows);
                }
            });
            active
        };
        (0..5).for_each(|flow| offer(&mut driver, flow));
        assert_eq!(active(&driver), Some(2), "five flows share two queues");
        assert_eq!(driver.drain(Time::ZERO).len(), 5);
        for flow in 10..30 {
            offer(&mut driver, flow);
            offer(&mut driver, flow + 1);
            assert_eq!(active(&driver), Some(2), "{flow}: each has its own");
            assert_eq!(driver.drain(Time::ZERO).len(), 2);
        }
    }

    #[test]
    fn a_flow_that_sends_little_overtakes_flows_that_send_much() {
        let mut driver = pfq(&[1, 1], 1500, 100, 0);
        for _ in 0..5 {
            driver.offer(in_class(1, 1000), Time::ZERO);
        }
        // The first two go to the head: 1000 bytes are less than the quantum.
        assert_eq!(
            [driver.next(Time::ZERO), driver.next(Time::ZERO)],
            [Some(0), Some(1)]
        );
        assert_eq!(driver.next(Time::ZERO), Some(2));
        driver.offer(in_class(2, 200), Time::ZERO);
        assert_eq!(driver.next(Time::ZERO), Some(5), "the new flow's packet");
        assert_eq!(driver.drain(Time::ZERO), [3, 4]);
    }

    #[test]
    fn a_quantum_of_0_is_rejected() {
        let config = flows::ConfigOf::<Pfq> {
            settings: Settings {
                quantum: 0,
                ..Settings::default()
            },
            ..flows::Config::default()
        };
        assert_eq!(
            Flows::<Pfq>::node(config, 0).unwrap_err().parameter(),
            Some("quantum")
        );
    }

    /// The paper's algorithm as it is written: one list of packets, and a list of active flows that is
    /// searched when virtual time changes. Times are bytes at weight 64 and exact.
    #[derive(Default)]
    struct Paper {
        quantum: u32,
        now: u64,
        /// Number, flow, length and start time of a packet, and whether it goes to the head.
        list: Vec<(u64, usize, u32, u64, bool)>,
        /// The finish time and the bytes at the head of each active flow.
        active: Vec<Option<(u64, u32)>>,
    }

    impl Paper {
        fn arrive(&mut self, number: u64, flow: usize, length: u32, weight: u32) {
            let (start, bytes) = self.active[flow].unwrap_or((self.now, 0));
            let finish = start + u64::from(length) * u64::from(64 / weight);
            let is_urgent = bytes < self.quantum;
            self.active[flow] = Some((finish, if is_urgent { bytes + length } else { bytes }));
            self.list.push((number, flow, length, start, is_urgent));
        }

        fn depart(&mut self) -> Option<u64> {
            let place = self.list.iter().position(|packet| packet.4).or_else(|| {
                (0..self.list.len()).min_by_key(|&place| (self.list[place].3, self.list[place].1))
            })?;
            let (number, _, _, start, is_urgent) = self.list.remove(place);
            if !is_urgent {
                self.now = start;
            }
            let gone = |active: &Option<(u64, u32)>| active.is_some_and(|(finish, _)| finish <= self.now);
            for active in &mut self.active {
                if self.list.is_empty() || gone(active) {
                    *active = None;
                }
            }
            Some(number)
        }
    }

    proptest! {
        /// Compares every departure with the paper's algorithm, for any start of virtual time.
        #[test]
        fn packets_leave_as_in_the_paper(
            weights in prop::collection::vec((0u32..7).prop_map(|power| 1 << power), 4),
            quantum in 1u32..4000,
            before_wrap in prop::option::of(0u64..1 << 45),
            operations in prop::collection::vec(prop::option::of((0usize..4, 40u32..1515)), 0..400),
        ) {
            let origin = before_wrap.map_or(0, |before| 0u64.wrapping_sub(before));
            let mut driver = pfq(&weights, quantum, 10_000, origin);
            let mut paper = Paper { quantum, active: vec![None; 4], ..Paper::default() };
            let mut number = 0;
            for operation in operations {
                if let Some((flow, length)) = operation {
                    driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                    paper.arrive(number, flow, length, weights[flow]);
                    number += 1;
                } else {
                    prop_assert_eq!(driver.next(Time::ZERO), paper.depart());
                }
            }
        }

        /// A packet dropped by the limit has no effect: everything continues as if it had never come.
        #[test]
        fn a_stolen_packet_has_no_effect(
            quantum in 1u32..4000,
            operations in prop::collection::vec((0usize..4, 40u32..1515), 0..100),
        ) {
            let mut drivers = [pfq(&[1; 4], quantum, 6, 0), pfq(&[1; 4], quantum, 10_000, 0)];
            // Lengths in order of arrival. A packet that has left is 0.
            let mut queued: Vec<(usize, u32)> = Vec::new();
            for (flow, length) in operations {
                let longest = (0..4).max_by_key(|&of| queued.iter().filter(|packet| packet.0 == of).count());
                if queued.len() < 6 {
                    drivers.iter_mut().for_each(|driver| {
                        driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                    });
                    queued.push((flow, length));
                } else {
                    // One more packet of the longest flow, which then loses this packet.
                    let flow = longest.unwrap();
                    drivers[0].offer(in_class(flow as u32 + 1, length), Time::ZERO);
                    prop_assert_eq!(drivers[0].returned.len(), 1);
                    for _ in 0..3 {
                        let lengths = drivers.each_mut().map(|driver| {
                            let id = driver.root.dequeue(Time::ZERO, &mut driver.pool).unwrap();
                            let packet = driver.pool.release(id);
                            (packet.class, packet.length)
                        });
                        prop_assert_eq!(lengths[0], lengths[1]);
                        let flow = usize::from(lengths[0].0.minor()) - 1;
                        let place = queued.iter().position(|packet| packet.0 == flow).unwrap();
                        queued.remove(place);
                    }
                }
            }
        }
    }
}
