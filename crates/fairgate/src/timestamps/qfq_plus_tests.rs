//! Tests of shares, budgets and the wrap. `fairgate-evidence` compares the order with the kernel's traces.

use super::*;
use crate::Verdict;
use crate::scheduler::Flows;
use crate::testing::{Driver, in_class};
use crate::timestamps::MAX_WEIGHT;
use crate::timestamps::groups::floor;
use crate::timestamps::testing::{of_shares, starting_at};
use alloc::collections::VecDeque;
use proptest::prelude::*;

fn qfq_plus(shares: &[Share], origin: u64) -> Driver<Flows<QfqPlus>> {
    starting_at(of_shares::<QfqPlus>(shares.iter().copied()), origin)
}

fn share(weight: u32, max_packet: u32) -> Share {
    Share { weight, max_packet }
}

#[test]
fn an_aggregate_is_a_cache_line_and_a_flow_is_a_quarter_of_one() {
    assert_eq!(size_of::<Flow>(), 16);
    assert_eq!(size_of::<Aggregate>(), 64);
}

#[test]
fn flows_of_equal_share_take_turns_packet_by_packet() {
    let mut driver = qfq_plus(&[share(1, 1000); 3], 0);
    for flow in [1, 1, 1, 2, 2, 2, 3, 3] {
        assert_eq!(driver.offer(in_class(flow, 1000), Time::ZERO), Verdict::Queued);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 3, 6, 1, 4, 7, 2, 5]);
}

#[test]
fn a_packet_longer_than_configured_is_sent() {
    let mut driver = qfq_plus(&[share(1, 100), share(7, 100)], 0);
    for (flow, length) in [(1, 100), (2, 9000), (1, 5000), (2, 100)] {
        driver.offer(in_class(flow, length), Time::ZERO);
    }
    let mut sent = driver.drain(Time::ZERO);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2, 3]);
}

#[test]
fn shares_out_of_range_are_rejected() {
    let rejected = |share: Share| {
        let mut scheduler = QfqPlus::new(&(), 0).unwrap();
        scheduler.add_flow(&share).unwrap_err().parameter()
    };
    assert_eq!(rejected(share(0, 1500)), Some("weight"));
    assert_eq!(rejected(share(1, 0)), Some("max_packet"));
    assert_eq!(rejected(share(1, MAX_PACKET + 1)), Some("max_packet"));
}

/// The flow is still counted in its aggregate, so it must not be counted twice.
#[test]
fn a_flow_whose_share_is_changed_and_changed_back_is_counted_once() {
    let (first, second) = (share(1, 1500), share(2, 1500));
    let mut scheduler = QfqPlus::new(&(), 0).unwrap();
    let mut flow = scheduler.add_flow(&first).unwrap();
    for changed in [second, first, second, first] {
        scheduler.change_share(&mut flow, &changed);
    }
    assert_eq!(flow.next_aggregate, NONE);
    assert_eq!(scheduler.aggregates[flow.aggregate as usize].flows, 1);
}

proptest! {
    /// While two flows are busy, their service, each divided by its weight, differs by at most a few budgets
    /// of their aggregates, on both sides of the wrap of virtual time.
    #[test]
    fn busy_flows_share_by_weight(
        weights in prop::collection::vec(1u32..20, 2..20),
        lengths in prop::collection::vec(1u32..1515, 40),
        before_wrap in prop::option::of(0u64..ONE * 5000),
    ) {
        let shares: Vec<_> = weights.iter().map(|&weight| share(weight, 1514)).collect();
        let mut driver = qfq_plus(&shares, before_wrap.map_or(0, |before| 0u64.wrapping_sub(before)));
        let mut lengths = lengths.iter().cycle();
        let mut offered = Vec::new();
        let mut served = vec![0f64; weights.len()];
        let mut next = 0;
        for step in 0..2000 {
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
                    // sigma is below twice the time of a longest packet. By the theorem of the relative
                    // fairness of QFQ, each side has three slots and a budget of the aggregate.
                    let inverses = 1.0 / f64::from(weights[a]) + 1.0 / f64::from(weights[b]);
                    let bound = (6.0 + 2.0) * 1514.0 * inverses;
                    prop_assert!((of_a - of_b).abs() <= bound + 1.0, "{served:?} at weights {weights:?}");
                }
            }
        }
    }
}

impl Holds for Flow {
    type State = Flow;

    fn state(&self) -> &Flow {
        self
    }

    fn state_mut(&mut self) -> &mut Flow {
        self
    }
}

/// A scheduler with queues of packet lengths.
struct Bench {
    scheduler: QfqPlus,
    flows: Vec<Flow>,
    queues: Vec<VecDeque<u32>>,
}

#[derive(Clone, Debug)]
enum Operation {
    Arrive { flow: usize, length: u32 },
    Serve,
    Vanish,
    Change { flow: usize, share: Share },
    Clear,
}

impl Bench {
    fn new(shares: &[Share], origin: u64) -> Bench {
        let mut scheduler = QfqPlus::new(&(), origin).unwrap();
        Bench {
            flows: shares
                .iter()
                .map(|share| scheduler.add_flow(share).unwrap())
                .collect(),
            queues: vec![VecDeque::new(); shares.len()],
            scheduler,
        }
    }

    fn head(queue: &VecDeque<u32>) -> Option<Head> {
        queue.front().map(|&length| Head { length, stamp: 0 })
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Arrive { flow, length } => {
                let flow = flow % self.flows.len();
                let queue = &mut self.queues[flow];
                queue.push_back(length);
                if let (1, Some(head)) = (queue.len(), Bench::head(queue)) {
                    self.scheduler
                        .activate(&mut self.flows, flow as u32, head, Time::ZERO);
                }
            }
            Operation::Serve => self.take(true),
            // The first packet of the selected flow was dropped.
            Operation::Vanish => self.take(false),
            Operation::Change { flow, share } => {
                let flow = flow % self.flows.len();
                self.scheduler.change_share(&mut self.flows[flow], &share);
            }
            Operation::Clear => {
                self.queues.iter_mut().for_each(VecDeque::clear);
                self.scheduler.clear(&mut self.flows);
            }
        }
    }

    fn take(&mut self, is_sent: bool) {
        let Some(flow) = self.scheduler.select(&mut self.flows, Time::ZERO) else {
            assert!(
                self.queues.iter().all(VecDeque::is_empty),
                "there are packets, but no flow is selected"
            );
            return;
        };
        assert_eq!(
            self.scheduler.select(&mut self.flows, Time::ZERO),
            Some(flow),
            "selected again"
        );
        let queue = &mut self.queues[flow as usize];
        let length = queue.pop_front().expect("the selected flow is busy");
        let next = Bench::head(queue);
        let sent = if is_sent { length } else { 0 };
        self.scheduler
            .update(&mut self.flows, flow, sent, next, Time::ZERO);
    }

    /// Checks the invariants of the module documentation for all flows and aggregates.
    fn check(&self) {
        let scheduler = &self.scheduler;
        let of = |index: u32| &scheduler.aggregates[index as usize];
        let mut members = vec![0; scheduler.aggregates.len()];
        let mut busy = vec![Vec::new(); scheduler.aggregates.len()];
        for (number, (flow, queue)) in self.flows.iter().zip(&self.queues).enumerate() {
            members[flow.aggregate as usize] += 1;
            if flow.next_aggregate != NONE {
                members[flow.next_aggregate as usize] += 1;
            }
            if let Some(&head) = queue.front() {
                assert_eq!(flow.head, head);
                assert!(head <= flow.deficit && head <= of(flow.aggregate).max_packet);
                busy[flow.aggregate as usize].push(number as u32);
            }
        }
        for (index, aggregate) in scheduler.aggregates.iter().enumerate() {
            assert_eq!(u32::from(aggregate.flows), members[index]);
            let round = (0..aggregate.len).map(|place| aggregate.first + place);
            let mut listed: Vec<u32> = round
                .map(|place| aggregate.busy[usize::from(place) % MOST_FLOWS])
                .collect();
            listed.sort_unstable();
            assert_eq!(listed, busy[index], "its list contains its busy flows");
        }
        let mut placed: Vec<u32> = Vec::new();
        for (index, group, slot) in scheduler.groups.entries(|index| of(index).next) {
            assert_eq!((of(index).group, floor(of(index).time, group)), (group, slot));
            placed.push(index);
        }
        placed.sort_unstable();
        let wanted = |&index: &u32| !busy[index as usize].is_empty() && index != scheduler.in_service;
        let expected: Vec<u32> = (0..busy.len() as u32).filter(wanted).collect();
        assert_eq!(
            placed, expected,
            "each busy aggregate that is not in service is in one slot"
        );
        assert!(scheduler.in_service != NONE || placed.is_empty());
    }
}

fn any_share() -> impl Strategy<Value = Share> {
    // Few different shares, so that flows share aggregates.
    let weight = prop_oneof![4 => 1u32..4, 1 => Just(100), 1 => Just(MAX_WEIGHT)];
    (weight, prop_oneof![Just(100), Just(1500), Just(9000)])
        .prop_map(|(weight, longest)| share(weight, longest))
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        240 => (0usize..40, 1u32..1501).prop_map(|(flow, length)| Operation::Arrive { flow, length }),
        20 => (0usize..40, 1u32..=MAX_PACKET).prop_map(|(flow, length)| Operation::Arrive { flow, length }),
        240 => Just(Operation::Serve),
        20 => Just(Operation::Vanish),
        20 => (0usize..40, any_share()).prop_map(|(flow, share)| Operation::Change { flow, share }),
        1 => Just(Operation::Clear),
    ]
}

proptest! {
    /// After each operation each busy aggregate has one position, deficits and budgets are large enough, and
    /// all groups are in order.
    #[test]
    fn invariants_hold_under_random_operations(
        shares in prop::collection::vec(any_share(), 1..40),
        origin in prop_oneof![
            Just(0),
            any::<u64>(),
            (0u64..1 << 45).prop_map(|before| 0u64.wrapping_sub(before)),
        ],
        operations in prop::collection::vec(operation(), 1..400),
    ) {
        let mut bench = Bench::new(&shares, origin);
        for operation in operations {
            bench.apply(&operation);
            bench.check();
        }
    }
}
