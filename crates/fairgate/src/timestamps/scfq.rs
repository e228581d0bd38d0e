//! Self-clocked fair queueing (Golestani 1994).
//!
//! A packet's finish time is `F = max(V, F of the packet before it in its flow) + length / weight`. The
//! packet with the least finish time goes first. Virtual time needs no fluid reference: V is the finish time
//! of the packet in service. The only cost is sorting, O(log N).
//!
//! The disadvantage is delay: if all other N - 1 flows are backlogged, a packet may wait for one packet of
//! each. So the worst-case fair index is O(N), as for round robin, although shares are as fair as possible.
//!
//! Invariants: every F of a busy flow is in `[V, V + longest packet / weight]`. This is much less than half
//! of the range of the heap's keys, the low 64 bits of F. An idle flow's F is at most V, because V was F when
//! its last packet was sent. Both have 128 bits, so this holds however long the flow is idle.
//!
//! When the last flow becomes idle, V does not change. From then on the F of all flows are at most V.

use super::parameters::{class_weight, weights};
use crate::discipline::Variable;
use crate::error::ConfigError;
use crate::registry::{About, Children, Family, Parameter};
use crate::scheduler::{Head, Holds, Scheduler, classes, flows};
use crate::structures::Heap;
use crate::time::Time;
use crate::timestamps::inverse;
use crate::timestamps::{Long, ONE, Weight, WeightSum, time_of};

/// The state of a flow: 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The finish time of its first packet, or of its last packet if it is idle.
    finish: Long,
    /// The inverse of its weight, with 62 fraction bits.
    per_byte: u64,
    weight: u32,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scfq {
    /// Virtual time.
    now: u128,
    /// The busy flows by finish time.
    busy: Heap,
    flows: usize,
    weights: WeightSum,
}

impl Flow {
    /// Sets the finish time for a packet that starts at `start`. Returns its low 64 bits.
    #[inline]
    fn begin(&mut self, start: u128, length: u32) -> u64 {
        self.finish = Long::of(start + u128::from(time_of(length, self.per_byte)));
        self.finish.low
    }
}

impl Scheduler for Scfq {
    const NAME: &'static str = "scfq";
    type Share = Weight;
    type Settings = ();
    type Flow = Flow;

    fn new((): &(), origin: u64) -> Result<Scfq, ConfigError> {
        Ok(Scfq {
            now: origin.into(),
            busy: Heap::new(),
            flows: 0,
            weights: WeightSum::default(),
        })
    }

    fn add_flow(&mut self, &Weight(weight): &Weight) -> Result<Flow, ConfigError> {
        self.weights.add(weight)?;
        self.flows += 1;
        self.busy.make_room(self.flows);
        Ok(Flow {
            finish: Long::of(self.now),
            per_byte: inverse::inverse(weight),
            weight,
        })
    }

    fn change_share(&mut self, flow: &mut Flow, &Weight(weight): &Weight) {
        self.weights.change(flow.weight, weight);
        flow.weight = weight;
        flow.per_byte = inverse::inverse(weight);
    }

    #[inline]
    fn activate<F: Holds<State = Flow>>(&mut self, flows: &mut [F], index: u32, head: Head, _now: Time) {
        let flow = flows[index as usize].state_mut();
        let start = flow.finish.get().max(self.now);
        let finish = flow.begin(start, head.length);
        self.busy.push(finish, index);
    }

    #[inline]
    fn select<F: Holds<State = Flow>>(&mut self, _flows: &mut [F], _now: Time) -> Option<u32> {
        self.busy.first().map(|first| first.flow)
    }

    #[inline]
    fn update<F: Holds<State = Flow>>(
        &mut self,
        flows: &mut [F],
        index: u32,
        sent: u32,
        next: Option<Head>,
        _now: Time,
    ) {
        let flow = flows[index as usize].state_mut();
        if sent > 0 {
            self.now = flow.finish.get();
        } else {
            // The packet was dropped without service. Its flow starts again from V.
            flow.finish = Long::of(self.now);
        }
        let Some(head) = next else {
            self.busy.pop();
            return;
        };
        let finish = flow.begin(self.now, head.length);
        self.busy.rekey_first(finish);
    }

    fn clear<F: Holds<State = Flow>>(&mut self, flows: &mut [F]) {
        for flow in flows {
            flow.state_mut().finish = Long::of(self.now);
        }
        self.busy.clear();
    }

    fn visit_variables(&self, visit: &mut dyn FnMut(&'static str, Variable)) {
        visit(
            "virtual_time",
            Variable::Integer((self.now / u128::from(ONE)) as i64),
        );
    }
}

/// The parameters over hashed flows that users can set.
pub const PARAMETERS: &[Parameter<flows::SettingsOf<Scfq>>] = &[flows::flows(), flows::limit(), weights()];

/// The discipline over hashed flows in the registry.
pub static DESCRIPTION: flows::DescriptionOf<Scfq> = flows::describe::<Scfq>(
    About {
        name: Scfq::NAME,
        family: Family::Timestamps,
        summary: "Self-clocked fair queueing (Golestani 1994): fair shares by time stamps, at little cost",
        when: "As a simple baseline of fair queueing; for low delay use qfq or wf2q_plus.",
        children: Children::None,
    },
    PARAMETERS,
)
.with_memory(|flat| 16_000 + 90 * u64::from(flat.config.flows) + 4 * u64::from(flat.config.limit));

/// The discipline over classes in the registry.
pub static CLASSFUL: classes::DescriptionOf<Scfq> = classes::describe::<Scfq>(
    About {
        name: Scfq::NAME,
        family: Family::Timestamps,
        summary: "Self-clocked fair queueing over classes, each with a weight and any discipline inside",
        when: "To share a link in given proportions; for low delay use qfq or wf2q_plus.",
        children: Children::Classes,
    },
    &[],
    &[class_weight()],
)
.with_memory(|_| 16_000);

crate::scheduler::node!(Scfq);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::scheduler::{Flows, flows};
    use crate::testing::{Driver, in_class};
    use crate::timestamps::testing::{of_shares, starting_at};
    use proptest::prelude::*;

    fn scfq(weights: &[u32], origin: u64) -> Driver<Flows<Scfq>> {
        starting_at(of_shares::<Scfq>(weights.iter().copied().map(Weight)), origin)
    }

    #[test]
    fn the_least_finish_time_goes_first() {
        let mut driver = scfq(&[1, 2], 0);
        for (flow, length) in [(1, 1000), (1, 1000), (2, 1000), (2, 1000), (2, 1000)] {
            assert_eq!(driver.offer(in_class(flow, length), Time::ZERO), Verdict::Queued);
        }
        // Finish times: 1000, 2000 and 500, 1000, 1500. Among equals the lower flow number goes first.
        assert_eq!(driver.drain(Time::ZERO), [2, 0, 3, 4, 1]);
    }

    #[test]
    fn weights_out_of_range_are_rejected() {
        let rejected = |weights: &[u32]| {
            let config = flows::ConfigOf::<Scfq> {
                flows: 2000,
                ..of_shares::<Scfq>(weights.iter().copied().map(Weight))
            };
            Flows::<Scfq>::node(config, 0).unwrap_err().parameter()
        };
        assert_eq!(rejected(&[0]), Some("weight"));
        assert_eq!(rejected(&[(1 << 16) + 1]), Some("weight"));
        assert_eq!(rejected(&[1 << 16; 1024]), Some("weight"), "the sum");
    }

    proptest! {
        /// Golestani 1994, theorem 1: while two flows are busy, their service, each divided by its weight,
        /// differs by at most one longest packet of each. This is the same on both sides of the wrap of
        /// virtual time.
        #[test]
        fn busy_flows_share_by_weight(
            weights in prop::collection::vec(1u32..100, 2..6),
            lengths in prop::collection::vec(1u32..1515, 40),
            before_wrap in prop::option::of(0u64..ONE * 5000),
        ) {
            let origin = before_wrap.map_or(0, |before| 0u64.wrapping_sub(before));
            let mut driver = scfq(&weights, origin);
            let mut lengths = lengths.iter().cycle();
            let mut offered = Vec::new();
            let mut next = 0;
            let mut served = vec![0f64; weights.len()];
            for step in 0..200 {
                // Two packets of each flow are always queued, so all flows stay busy.
                let all = || (0..weights.len()).chain(0..weights.len()).collect();
                let arriving = if step == 0 { all() } else { vec![next] };
                for flow in arriving {
                    let length = *lengths.next().unwrap();
                    offered.push((flow, length));
                    driver.offer(in_class(flow as u32 + 1, length), Time::ZERO);
                }
                let (flow, length) = offered[driver.next(Time::ZERO).unwrap() as usize];
                next = flow;
                served[flow] += f64::from(length) / f64::from(weights[flow]);
                for (a, &of_a) in served.iter().enumerate() {
                    for (b, &of_b) in served.iter().enumerate() {
                        let bound = 1514.0 / f64::from(weights[a]) + 1514.0 / f64::from(weights[b]);
                        let difference = (of_a - of_b).abs();
                        prop_assert!(difference <= bound + 1e-3, "{served:?} at weights {weights:?}");
                    }
                }
            }
        }
    }
}
