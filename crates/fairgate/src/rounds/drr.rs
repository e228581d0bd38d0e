//! Deficit round robin (Shreedhar & Varghese 1996) over hashed flows, through
//! [`Flows`](crate::scheduler::Flows). [`drr_classes`](super::drr_classes) is the same over classes with
//! inner disciplines. Users see one discipline, which is classful if it has classes.
//!
//! The active list holds the backlogged flows. The first flow sends while the length of its first packet does
//! not exceed its deficit. Then it gets its quantum and moves to the end, as soon as the last packet of its
//! turn is taken. The rest of the deficit is carried over to its next turn, and is lost when the flow becomes
//! empty. Unlike plain round robin this is fair in bytes for all packet lengths. The cost per packet is
//! constant if the quantum is at least the longest packet.
//!
//! A flow's state is its *credit*: the deficit minus the length of its first packet. It may send if the
//! credit is not negative, and after the packet the deficit equals that credit. A flow that becomes active
//! starts with one quantum at the end of the list, as in Linux.
//!
//! Why classes do not use [`Classes<Drr>`](crate::scheduler::Classes): that tells the scheduler about a
//! class's next packet as soon as the packet before it left. So an inner AQM decides, and an inner prio
//! chooses, up to a round too early. Linux's `drr` looks at a class when its turn has come. It ends the turn
//! when it is asked for the next packet: a class that becomes active in between goes before the class whose
//! turn ends there, and after it here.

use core::ops::RangeInclusive;

use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter, Unit, check_ranges};
use crate::rounds::ring::Ring;
use crate::scheduler::{Entitlement, Head, Holds, MAX_PACKET, Scheduler, flows};
use crate::time::Time;

/// The bytes that a flow may send in a round, 64 to 2^30. The cost per packet is constant if it is at least
/// the longest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum(
    /// Bytes.
    pub u32,
);

/// One full Ethernet frame, as in fq_codel.
impl Default for Quantum {
    fn default() -> Quantum {
        Quantum(1514)
    }
}

/// Parameters of the flat discipline.
pub type Config = flows::ConfigOf<Drr>;

/// The range of a quantum, bytes. A packet may take as many rounds as its length divided by the quantum.
pub(crate) const QUANTA: RangeInclusive<u64> = 64..=1 << 30;

fn check_quantum(quantum: u32) -> Result<(), ConfigError> {
    const QUANTUM: &[Parameter<u32>] = &[Parameter::new(
        "quantum",
        Unit::Bytes,
        QUANTA,
        "",
        |quantum, _| quantum,
    )];
    check_ranges(QUANTUM, &mut { quantum })
}

/// The state of a flow: 8 bytes, so that it and its queue take half a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The bytes that the flow may still send in this round, minus the length of its first packet. Undefined
    /// when idle.
    credit: i32,
    quantum: u32,
}

/// A credit can hold the largest quantum and the longest packet.
const _: () = assert!((1 << 30) + (MAX_PACKET as i64) < i32::MAX as i64);

/// The scheduler.
#[derive(Debug)]
pub struct Drr {
    active: Ring,
    flows: usize,
}

impl Scheduler for Drr {
    const NAME: &'static str = "drr";
    const SHARES: &'static str = "quanta";
    type Share = Quantum;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), _origin: u64) -> Result<Drr, ConfigError> {
        Ok(Drr {
            active: Ring::new(),
            flows: 0,
        })
    }

    fn add_flow(&mut self, &Quantum(quantum): &Quantum) -> Result<Flow, ConfigError> {
        check_quantum(quantum)?;
        self.flows += 1;
        self.active.make_room(self.flows);
        Ok(Flow { credit: 0, quantum })
    }

    fn change_share(&mut self, flow: &mut Flow, &Quantum(quantum): &Quantum) {
        flow.quantum = quantum;
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        let flow = flows[index as usize].state_mut();
        flow.credit = flow.quantum as i32 - head.length as i32;
        self.active.push_back(index);
    }

    fn select<F: Holds<State = Flow>>(&mut self, flows: &mut [F], _now: Time) -> Option<u32> {
        loop {
            let index = self.active.front()?;
            let flow = flows[index as usize].state_mut();
            if flow.credit >= 0 {
                return Some(index);
            }
            flow.credit += flow.quantum as i32;
            self.active.rotate(index);
        }
    }

    #[inline(always)]
    fn ready<F: Holds<State = Flow>>(&mut self, flows: &mut [F], _now: Time) -> Option<u32> {
        let index = self.active.front()?;
        (flows[index as usize].state().credit >= 0).then_some(index)
    }

    #[inline(always)]
    fn upcoming<F: Holds<State = Flow>>(&self, flows: &[F], _flow: u32) -> u32 {
        self.active.upcoming(flows)
    }

    /// A packet that was lost is charged as if it had been sent.
    #[inline(always)]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        flows: &mut [F],
        index: u32,
        _sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        let Some(head) = next else {
            return self.active.pop_front();
        };
        let flow = flows[index as usize].state_mut();
        let mut credit = flow.credit - head.length as i32;
        if credit < 0 {
            // The turn ends here and not at the next look at the flow, so that no other cache line is read.
            credit += flow.quantum as i32;
            self.active.rotate(index);
        }
        flow.credit = credit;
    }

    fn clear<F: Holds<State = Flow>>(&mut self, _flows: &mut [F]) {
        self.active.clear();
    }
}

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Drr>>] = &[
    flows::flows(),
    flows::limit(),
    Parameter::new(
        "quantum",
        Unit::Bytes,
        QUANTA,
        "The bytes that a flow may send in a round: at least the longest packet for constant cost.",
        |flat, _| &mut flat.config.share.0,
    ),
    Parameter::new(
        "quanta",
        Unit::Numbers(4096),
        QUANTA,
        "The quanta of the first flows, which filters name; the other flows have the common quantum.",
        |flat, _| &mut flat.amounts,
    ),
];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Drr> = flows::describe::<Drr>(
    About {
        name: Drr::NAME,
        family: Family::Rounds,
        summary: "Deficit round robin over hashed flows",
        when: "For exactly fair shares in bytes at the lowest cost, if delay does not matter much.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 45 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

impl Entitlement for Quantum {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

crate::scheduler::node!(Drr, has its Config);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;
    use crate::discipline::{Algorithm, Verdict};
    use crate::packet::DropReason;
    use crate::scheduler::Flows;
    use crate::testing::{Driver, in_class};
    use proptest::prelude::*;

    fn drr(quanta: &[u32], limit: u32) -> Driver<Flows<Drr>> {
        let config = Config {
            flows: 64,
            limit,
            shares: quanta.iter().copied().map(Quantum).collect(),
            classifier: Classifier {
                handle: 1,
                ..Classifier::default()
            },
            ..Config::default()
        };
        Driver::new(Flows::node(config, 1).unwrap())
    }

    fn offer(driver: &mut Driver<Flows<Drr>>, flow: u32, length: u32) -> Verdict {
        driver.offer(in_class(flow, length), Time::ZERO)
    }

    #[test]
    fn shares_are_fair_in_bytes_for_all_packet_lengths() {
        let mut driver = drr(&[1000, 1000], 100);
        for _ in 0..2 {
            offer(&mut driver, 1, 1000);
        }
        for _ in 0..4 {
            offer(&mut driver, 2, 500);
        }
        assert_eq!(driver.drain(Time::ZERO), [0, 2, 3, 1, 4, 5]);
    }

    #[test]
    fn a_flow_that_becomes_empty_loses_its_deficit() {
        let mut driver = drr(&[1000, 1000], 100);
        offer(&mut driver, 1, 100);
        assert_eq!(driver.drain(Time::ZERO), [0]);
        for _ in 0..2 {
            offer(&mut driver, 1, 600);
            offer(&mut driver, 2, 600);
        }
        // With the 900 bytes left, flow 1 would send both of its packets in one turn.
        assert_eq!(driver.drain(Time::ZERO), [1, 2, 3, 4]);
    }

    #[test]
    fn over_the_limit_the_longest_flow_loses_a_packet() {
        let mut driver = drr(&[], 3);
        for _ in 0..3 {
            assert_eq!(offer(&mut driver, 1, 100), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 2, 100), Verdict::Queued);
        assert_eq!(driver.returned, [(2, DropReason::LongestFlow)]);
        assert_eq!(offer(&mut driver, 1, 100), Verdict::Congested);
        assert_eq!(driver.returned, [(4, DropReason::LongestFlow)]);
        assert_eq!(driver.drain(Time::ZERO), [0, 1, 3]);
    }

    #[test]
    fn a_flow_that_lost_its_last_packet_is_served_again() {
        let mut driver = drr(&[], 1);
        offer(&mut driver, 1, 100);
        // Flow 2 was the last to reach length 1: it loses the packet just offered.
        assert_eq!(offer(&mut driver, 2, 100), Verdict::Congested);
        assert_eq!(driver.drain(Time::ZERO), [0]);
        offer(&mut driver, 2, 100);
        assert_eq!(driver.drain(Time::ZERO), [2]);
    }

    #[test]
    fn a_change_keeps_the_order_of_each_flow() {
        let mut driver = drr(&[], 100);
        for flow in [1, 1, 1, 2] {
            offer(&mut driver, flow, 1500);
        }
        let mut config = driver.root.algorithm().config();
        (config.limit, config.flows) = (3, 2);
        driver.reconfigure(config, Time::ZERO);
        assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
        assert_eq!(driver.drain(Time::ZERO), [0, 3, 1]);
    }

    #[test]
    fn ranges_are_checked() {
        let rejected = |config: Config| Flows::<Drr>::node(config, 0).unwrap_err().parameter();
        let default = Config::default;
        for quantum in [63, (1 << 30) + 1] {
            let share = Quantum(quantum);
            assert_eq!(rejected(Config { share, ..default() }), Some("quantum"));
        }
        for flows in [0, flows::MAX_FLOWS + 1] {
            assert_eq!(rejected(Config { flows, ..default() }), Some("flows"));
        }
        assert_eq!(
            rejected(Config {
                limit: 0,
                ..default()
            }),
            Some("limit")
        );
    }

    #[test]
    fn a_lost_packet_is_charged() {
        struct State(Flow);
        impl Holds for State {
            type State = Flow;
            fn state(&self) -> &Flow {
                &self.0
            }
            fn state_mut(&mut self) -> &mut Flow {
                &mut self.0
            }
        }
        let head = |length| Head { length, stamp: 0 };
        let mut drr = Drr::new(&(), 0).unwrap();
        let mut flows: Vec<State> = (0..2)
            .map(|_| State(drr.add_flow(&Quantum(1000)).unwrap()))
            .collect();
        for flow in 0..2 {
            drr.activate(&mut flows, flow, head(100), Time::ZERO);
        }
        assert_eq!(drr.select(&mut flows, Time::ZERO), Some(0));
        drr.update(&mut flows, 0, 0, Some(head(900)), Time::ZERO);
        assert_eq!(drr.select(&mut flows, Time::ZERO), Some(0));
        drr.update(&mut flows, 0, 0, Some(head(1)), Time::ZERO);
        assert_eq!(drr.select(&mut flows, Time::ZERO), Some(1));
        drr.update(&mut flows, 1, 100, None, Time::ZERO);
        assert_eq!(drr.select(&mut flows, Time::ZERO), Some(0));
    }

    proptest! {
        /// Shreedhar & Varghese as written in the paper: a list of flows, with a deficit for each.
        #[test]
        fn equals_an_exact_model(
            quanta in prop::collection::vec(64u32..3000, 1..6),
            operations in prop::collection::vec((any::<bool>(), 0usize..6, 1u32..2000), 1..300),
        ) {
            use alloc::collections::VecDeque;
            let mut driver = drr(&quanta, 1000);
            let mut queues: Vec<VecDeque<(u64, u32)>> = vec![VecDeque::new(); quanta.len()];
            let mut active: VecDeque<(usize, u32)> = VecDeque::new();
            let mut offered = 0;
            for (arrives, number, length) in operations {
                if arrives {
                    let flow = number % quanta.len();
                    offer(&mut driver, flow as u32 + 1, length);
                    if queues[flow].is_empty() {
                        active.push_back((flow, quanta[flow]));
                    }
                    queues[flow].push_back((offered, length));
                    offered += 1;
                    continue;
                }
                let expected = loop {
                    let Some((flow, deficit)) = active.pop_front() else { break None };
                    let (cookie, length) = queues[flow][0];
                    if length <= deficit {
                        queues[flow].pop_front();
                        let left = deficit - length;
                        match queues[flow].front() {
                            Some((_, next)) if *next <= left => active.push_front((flow, left)),
                            Some(_) => active.push_back((flow, left + quanta[flow])),
                            None => {}
                        }
                        break Some(cookie);
                    }
                    active.push_back((flow, deficit + quanta[flow]));
                };
                prop_assert_eq!(driver.next(Time::ZERO), expected);
            }
        }
    }
}
