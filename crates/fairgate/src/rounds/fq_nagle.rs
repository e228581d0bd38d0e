//! Fair queueing as Nagle proposed it (RFC 970, 1985): a first-in first-out queue for each flow, and one
//! packet of each flow per round. It was the first fair queueing, and is the baseline for the others.
//!
//! It is fair in packets, not in bytes: of two backlogged flows, one with packets three times as long gets
//! three times the bytes. If all packets have one length, flows share equally, to within a packet.
//!
//! A flow that becomes active goes to the end of the active list. A packet that was lost (dropped by a
//! class's inner discipline) costs its flow the turn. There are no weights. Non-goal: fairness with packets
//! of different length; see [`drr`](super::drr).

use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::rounds::ring::Ring;
use crate::scheduler::{Head, Holds, Scheduler, classes, flows};
use crate::time::Time;

/// The scheduler. It stores only the order of the flows.
#[derive(Debug)]
pub struct FqNagle {
    active: Ring,
    flows: usize,
}

impl Scheduler for FqNagle {
    const NAME: &'static str = "fq_nagle";
    const READS_HEADS: bool = false;
    type Share = ();
    type Settings = ();
    type Flow = ();

    fn new((): &(), _origin: u64) -> Result<FqNagle, ConfigError> {
        Ok(FqNagle {
            active: Ring::new(),
            flows: 0,
        })
    }

    fn add_flow(&mut self, (): &()) -> Result<(), ConfigError> {
        self.flows += 1;
        self.active.make_room(self.flows);
        Ok(())
    }

    fn change_share(&mut self, (): &mut (), (): &()) {}

    #[inline]
    fn activate<F: Holds<State = ()>>(&mut self, _flows: &mut [F], flow: u32, _head: Head, _now: Time) {
        self.active.push_back(flow);
    }

    #[inline]
    fn select<F: Holds<State = ()>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        self.active.front()
    }

    #[inline(always)]
    fn upcoming<F: Holds<State = ()>>(&self, flows: &[F], _flow: u32) -> u32 {
        self.active.upcoming(flows)
    }

    #[inline]
    fn update<F: Holds<State = ()>>(
        &mut self,
        _flows: &mut [F],
        flow: u32,
        _sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        match next {
            Some(_) => self.active.rotate(flow),
            None => self.active.pop_front(),
        }
    }

    fn clear<F: Holds<State = ()>>(&mut self, _flows: &mut [F]) {
        self.active.clear();
    }
}

/// The parameters over hashed flows as users set them.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<FqNagle>>] = &[flows::flows(), flows::limit()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<FqNagle> = flows::describe_with::<FqNagle>(
    About {
        name: FqNagle::NAME,
        family: Family::Rounds,
        summary: "Packet by packet round robin over hashed flows (Nagle 1985)",
        when: "To compare with the first fair queueing, which is unfair if packets differ in length.",
        children: Children::None,
    },
    PARAMETERS,
    |flat| Ok(flat.config),
)
.with_memory(|flat| 45 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<FqNagle> = classes::describe::<FqNagle>(
    About {
        name: FqNagle::NAME,
        family: Family::Rounds,
        summary: "Packet by packet round robin over classes, each with any discipline inside",
        when: "To compare with the first fair queueing, which is unfair if packets differ in length.",
        children: Children::Classes,
    },
    &[],
    &[],
);

crate::scheduler::node!(FqNagle);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;
    use crate::scheduler::{Flows, flows};
    use crate::testing::{Driver, in_class};
    use proptest::prelude::*;

    fn fq_nagle() -> Driver<Flows<FqNagle>> {
        let config = flows::ConfigOf::<FqNagle> {
            flows: 6,
            classifier: Classifier {
                handle: 1,
                ..Classifier::default()
            },
            ..flows::Config::default()
        };
        Driver::new(Flows::node(config, 0).unwrap())
    }

    #[test]
    fn shares_are_unfair_if_packets_differ_in_length() {
        let mut driver = fq_nagle();
        let lengths = [1500, 500];
        for _ in 0..20 {
            for (flow, length) in (1..).zip(lengths) {
                driver.offer(in_class(flow, length), Time::ZERO);
            }
        }
        let mut bytes = [0; 2];
        for _ in 0..20 {
            let flow = driver.next(Time::ZERO).unwrap() as usize % 2;
            bytes[flow] += lengths[flow];
        }
        assert_eq!(bytes, [15_000, 5_000]);
    }

    proptest! {
        /// Compares with a deque of active flows; lengths have no effect.
        #[test]
        fn equals_an_exact_model(
            operations in prop::collection::vec((any::<bool>(), 0usize..6, 1u32..2000), 1..300),
        ) {
            use alloc::collections::VecDeque;
            let mut driver = fq_nagle();
            let mut queues: [VecDeque<u64>; 6] = Default::default();
            let mut active: VecDeque<usize> = VecDeque::new();
            let mut offered = 0;
            for (arrives, flow, length) in operations {
                if arrives {
                    driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                    if queues[flow].is_empty() {
                        active.push_back(flow);
                    }
                    queues[flow].push_back(offered);
                    offered += 1;
                    continue;
                }
                let expected = active.pop_front().and_then(|flow| {
                    let sent = queues[flow].pop_front();
                    if !queues[flow].is_empty() {
                        active.push_back(flow);
                    }
                    sent
                });
                prop_assert_eq!(driver.next(Time::ZERO), expected);
            }
        }
    }
}
