//! Compares QFQ with its definition, and checks invariants under millions of random operations.

use super::*;
use crate::timestamps::MAX_WEIGHT;
use alloc::collections::VecDeque;
use proptest::prelude::*;

const NOW: Time = Time::ZERO;

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
    qfq: Qfq,
    flows: Vec<Flow>,
    queues: Vec<VecDeque<u32>>,
    packets: u64,
}

impl Bench {
    fn new(shares: &[Share], slope: Slope, origin: u64) -> Bench {
        let mut qfq = Qfq::new(&Settings { slope }, origin).unwrap();
        Bench {
            flows: shares.iter().map(|share| qfq.add_flow(share).unwrap()).collect(),
            queues: vec![VecDeque::new(); shares.len()],
            qfq,
            packets: 0,
        }
    }

    fn head(length: u32) -> Head {
        Head { length, stamp: 0 }
    }

    fn arrive(&mut self, flow: u32, length: u32) {
        let queue = &mut self.queues[flow as usize];
        queue.push_back(length);
        self.packets += 1;
        if queue.len() == 1 {
            self.qfq.activate(&mut self.flows, flow, Bench::head(length), NOW);
        }
    }

    /// Sends a packet.
    fn serve(&mut self) -> Option<(u32, u32)> {
        let Some(flow) = self.qfq.select(&mut self.flows, NOW) else {
            assert_eq!(self.packets, 0, "a backlogged scheduler selects a flow");
            return None;
        };
        assert_eq!(
            self.qfq.select(&mut self.flows, NOW),
            Some(flow),
            "selected again"
        );
        let queue = &mut self.queues[flow as usize];
        let sent = queue.pop_front().expect("the selected flow is busy");
        self.packets -= 1;
        let next = queue.front().map(|&length| Bench::head(length));
        self.qfq.update(&mut self.flows, flow, sent, next, NOW);
        Some((flow, sent))
    }

    /// The first packet of the selected flow was dropped.
    fn vanish(&mut self) -> Option<u32> {
        let flow = self.qfq.select(&mut self.flows, NOW)?;
        let queue = &mut self.queues[flow as usize];
        let _ = queue.pop_front();
        self.packets -= 1;
        let next = queue.front().map(|&length| Bench::head(length));
        self.qfq.update(&mut self.flows, flow, 0, next, NOW);
        Some(flow)
    }

    fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.packets = 0;
        self.qfq.clear(&mut self.flows);
    }

    /// Checks every flow, which is too slow after each operation.
    fn check_flows(&self) {
        let busy: u32 = (0..self.flows.len())
            .filter(|&flow| !self.queues[flow].is_empty())
            .map(|flow| self.flows[flow].weight)
            .sum();
        for (flow, queue) in self.flows.iter().zip(&self.queues) {
            assert_eq!(flow.is_busy, !queue.is_empty());
        }
        if self.qfq.slope == Slope::Live {
            assert_eq!(
                self.qfq.live.sum(),
                busy + self.qfq.live.leaving(),
                "the sum is that of the flows that count"
            );
        }
    }
}

/// The algorithm as it is defined: each decision looks at all flows, in integers that don't wrap.
struct Model {
    now: i128,
    flows: Vec<ModelFlow>,
    /// The weights of flows that became idle, and when they stop counting.
    leaving: Vec<(usize, i128, u32)>,
    slope: Slope,
    insertions: u64,
}

#[derive(Clone)]
struct ModelFlow {
    share: Share,
    next_share: Option<Share>,
    start: i128,
    /// Its position in the order of insertions. None if it is idle.
    inserted: Option<u64>,
}

impl ModelFlow {
    fn per_byte(&self) -> i128 {
        (1i128 << 30).div_euclid(i128::from(self.share.weight))
            + i128::from((1i128 << 30) % i128::from(self.share.weight) != 0)
    }

    /// log2 of sigma.
    fn shift(&self) -> u32 {
        let span = i128::from(self.share.max_packet) * self.per_byte();
        (22..).find(|&shift| 1i128 << shift >= span).unwrap()
    }

    fn rounded(&self) -> i128 {
        (self.start >> self.shift()) << self.shift()
    }
}

impl Model {
    fn new(shares: &[Share], slope: Slope, origin: u64) -> Model {
        let flow = |share: &Share| ModelFlow {
            share: *share,
            next_share: None,
            start: origin.into(),
            inserted: None,
        };
        Model {
            now: origin.into(),
            flows: shares.iter().map(flow).collect(),
            leaving: Vec::new(),
            slope,
            insertions: 0,
        }
    }

    /// Returns the start and finish of the group with slots of 2^shift.
    fn group(&self, shift: u32) -> Option<(i128, i128)> {
        let busy = self
            .flows
            .iter()
            .filter(|flow| flow.inserted.is_some() && flow.shift() == shift);
        let start = busy.map(ModelFlow::rounded).min()?;
        Some((start, start + (2 << shift)))
    }

    fn eligible(&self) -> impl Iterator<Item = (i128, u32)> {
        (22..48).filter_map(|shift| {
            let (start, finish) = self.group(shift)?;
            (start <= self.now).then_some((finish, shift))
        })
    }

    fn insert(&mut self, flow: usize) {
        let shift = self.flows[flow].shift();
        let slot = |time: i128| time >> shift;
        let start = self.flows[flow].start;
        if !(start > self.now && slot(start) <= slot(self.now) + 1) {
            // The lowest eligible group above that no other group blocks has the least finish.
            let above = self.eligible().filter(|&(_, other)| other > shift).min();
            self.flows[flow].start = above.map_or(self.now, |(finish, _)| finish.min(self.now));
        }
        self.insertions += 1;
        self.flows[flow].inserted = Some(self.insertions);
    }

    fn arrive(&mut self, flow: usize) {
        if self.flows[flow].inserted.is_none() {
            self.leaving.retain(|&(of, ..)| of != flow);
            self.insert(flow);
        }
    }

    fn select(&mut self) -> Option<usize> {
        let first = (22..48).filter_map(|shift| self.group(shift)).min()?.0;
        self.now = self.now.max(first);
        let (finish, shift) = self.eligible().min().unwrap();
        let slot = finish - (2 << shift);
        (0..self.flows.len())
            .filter(|&flow| self.flows[flow].shift() == shift && self.flows[flow].rounded() == slot)
            .filter(|&flow| self.flows[flow].inserted.is_some())
            .max_by_key(|&flow| self.flows[flow].inserted)
    }

    fn sum(&self) -> u32 {
        let counts = |flow: &&ModelFlow| flow.inserted.is_some() || self.slope == Slope::Configured;
        let weight = |flow: &ModelFlow| match (self.slope, flow.next_share) {
            (Slope::Configured, Some(next)) => next.weight,
            _ => flow.share.weight,
        };
        let leaving = self.leaving.iter().filter(|leaving| leaving.1 > self.now);
        self.flows.iter().filter(counts).map(weight).sum::<u32>()
            + leaving.map(|leaving| leaving.2).sum::<u32>()
    }

    /// Returns the sum of all weights, whether they count or not.
    fn all(&self) -> u32 {
        let weight = |flow: &ModelFlow| flow.next_share.unwrap_or(flow.share).weight;
        self.flows.iter().map(weight).sum()
    }

    /// Returns how far V advances for `sent` bytes: by the live sum up to the first finish, by the sum of all
    /// after it.
    fn step(&self, sent: u32) -> i128 {
        let by = |sum: u32| (i128::from(sent) * ((1 << 46) / i128::from(sum))) >> 16;
        let groups = (22..48).filter_map(|shift| self.group(shift));
        match groups.map(|(_, finish)| finish - self.now).min() {
            Some(ahead) if self.sum() < self.all() => by(self.sum()).min(ahead).max(by(self.all())),
            _ => by(self.sum()),
        }
    }

    /// Updates flow `flow`, which was selected and sent `sent` bytes.
    fn update(&mut self, flow: usize, sent: u32, is_busy: bool) {
        if sent == 0 && is_busy {
            return;
        }
        self.now += self.step(sent);
        let now = self.now;
        let slot = self.flows[flow].rounded();
        let state = &mut self.flows[flow];
        state.start += i128::from(sent) * state.per_byte();
        let is_raised = sent > state.share.max_packet;
        if is_raised {
            state.share.max_packet = sent;
        }
        let next_share = state.next_share.take();
        if !is_busy || next_share.is_some() {
            let due = ((state.start >> state.shift()) + 1) << state.shift();
            if state.start > now && self.slope == Slope::Live {
                // With another share it comes back as another flow.
                let of = if next_share.is_some() { usize::MAX } else { flow };
                self.leaving.push((of, due, state.share.weight));
            }
        }
        state.share = next_share.unwrap_or(state.share);
        if !is_busy {
            state.inserted = None;
        } else if is_raised || next_share.is_some() {
            state.inserted = None;
            self.insert(flow);
        } else if state.rounded() != slot {
            self.insertions += 1;
            self.flows[flow].inserted = Some(self.insertions);
        }
    }

    fn change_share(&mut self, flow: usize, share: Share) {
        let state = &mut self.flows[flow];
        if state.inserted.is_some() {
            state.next_share = Some(share);
        } else {
            state.share = share;
            for leaving in self.leaving.iter_mut().filter(|leaving| leaving.0 == flow) {
                leaving.0 = usize::MAX;
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Arrive { flow: usize, length: u32 },
    Serve,
    Vanish,
    Change { flow: usize, share: Share },
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(1),
        1u32..20,
        (0u32..=16).prop_map(|bit| 1 << bit),
        1..=MAX_WEIGHT
    ]
}

fn share() -> impl Strategy<Value = Share> {
    (weight(), prop_oneof![Just(1500), 400u32..3000])
        .prop_map(|(weight, max_packet)| Share { weight, max_packet })
}

fn operation(flows: usize) -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..flows, prop_oneof![Just(1500), 100u32..1501])
            .prop_map(|(flow, length)| Operation::Arrive { flow, length }),
        1 => (0..flows, 100u32..9000).prop_map(|(flow, length)| Operation::Arrive { flow, length }),
        6 => Just(Operation::Serve),
        1 => Just(Operation::Vanish),
        1 => (0..flows, share()).prop_map(|(flow, share)| Operation::Change { flow, share }),
    ]
}

fn slope() -> impl Strategy<Value = Slope> {
    prop_oneof![Just(Slope::Live), Just(Slope::Configured)]
}

/// Starts of virtual time. Some are so close before the wrap that it comes soon.
fn origin() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        any::<u64>(),
        (0u64..1 << 45).prop_map(|before| 0u64.wrapping_sub(before))
    ]
}

proptest! {
    /// Compares each selected flow and each V.
    #[test]
    fn every_choice_follows_the_definition(
        shares in prop::collection::vec(share(), 1..12),
        slope in slope(),
        origin in origin(),
        operations in prop::collection::vec(operation(12), 1..400),
    ) {
        let mut bench = Bench::new(&shares, slope, origin);
        let mut model = Model::new(&shares, slope, origin);
        for operation in operations {
            match operation {
                Operation::Arrive { flow, length } => {
                    let flow = flow % shares.len();
                    bench.arrive(flow as u32, length);
                    model.arrive(flow);
                }
                Operation::Serve => {
                    let expected = model.select();
                    let served = bench.serve();
                    prop_assert_eq!(served.map(|(flow, _)| flow as usize), expected);
                    if let Some((flow, sent)) = served {
                        let is_busy = !bench.queues[flow as usize].is_empty();
                        model.update(flow as usize, sent, is_busy);
                    }
                }
                Operation::Vanish => {
                    let expected = model.select();
                    let flow = bench.vanish();
                    prop_assert_eq!(flow.map(|flow| flow as usize), expected);
                    if let Some(flow) = expected {
                        model.update(flow, 0, !bench.queues[flow].is_empty());
                    }
                }
                Operation::Change { flow, share } => {
                    let flow = flow % shares.len();
                    let total: u32 = bench.flows.iter().map(|flow| flow.weight.max(flow.next_weight)).sum();
                    prop_assume!(total < 1 << 25);
                    bench.qfq.change_share(&mut bench.flows[flow], &share);
                    model.change_share(flow, share);
                }
            }
            prop_assert_eq!(bench.qfq.groups.now(), model.now as u64);
            if bench.packets > 0 || slope == Slope::Configured {
                prop_assert_eq!(bench.qfq.live.sum(), model.sum());
            }
            bench.check_flows();
        }
    }
}

/// A fast random number generator that is the same on all machines (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// Returns a number below 2^bits. Each order of magnitude is equally frequent.
    fn of_any_size(&mut self, bits: u32) -> u32 {
        let bits = self.below(bits);
        self.below(1 << bits)
    }

    fn share(&mut self, spread: u32) -> Share {
        Share {
            weight: 1 + self.of_any_size(spread + 1),
            max_packet: 64 + self.of_any_size(15),
        }
    }
}

/// Random operations on random flows. All invariants are checked after each.
fn soak(operations: u64, seed: u64) {
    let mut random = Random(seed);
    let mut done = 0;
    while done < operations {
        // Each phase has a random number of flows, random shares and a random load.
        let flows = 1 + random.of_any_size(8);
        let spread = random.below(17);
        let arrivals = 200 + random.below(600);
        let longest = 64 + random.of_any_size(18);
        let changes = random.below(50);
        let slope = if random.below(4) == 0 {
            Slope::Configured
        } else {
            Slope::Live
        };
        let shares: Vec<_> = (0..flows).map(|_| random.share(spread)).collect();
        let before_wrap = random.next() >> random.below(64);
        let mut bench = Bench::new(&shares, slope, 0u64.wrapping_sub(before_wrap));
        for _ in 0..random.below(200_000) {
            done += 1;
            let flow = random.below(flows);
            match random.below(1000) {
                dice if dice < arrivals => {
                    if bench.packets < 4 * u64::from(flows) {
                        bench.arrive(flow, 1 + random.below(longest.min(MAX_PACKET)));
                    }
                }
                dice if dice < 1000 - changes => {
                    let _ = bench.serve();
                }
                999 => bench.clear(),
                dice if dice < 990 => {
                    let share = random.share(spread);
                    bench.qfq.change_share(&mut bench.flows[flow as usize], &share);
                }
                _ => {
                    let _ = bench.vanish();
                }
            }
            bench.qfq.check();
        }
        bench.check_flows();
    }
}

/// Ten million operations take seconds even with debug assertions. For more: PROPTEST_CASES times 100,000.
#[test]
fn invariants_hold_under_random_operations() {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    soak(cases.unwrap_or(100) * 100_000, 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn a_flow_is_40_bytes_and_the_scheduler_below_8_kilobytes() {
    assert_eq!(size_of::<Flow>(), 40);
    assert!(size_of::<Qfq>() < 8192, "{}", size_of::<Qfq>());
}

/// A flow that was idle for more than 2^63 of virtual time: its old finish looks as if it were ahead, and is
/// not used.
#[test]
fn a_flow_that_was_idle_for_half_of_virtual_time_starts_from_now() {
    for sleep in [(1u64 << 63) - 1, (1 << 63) + 5, u64::MAX - (1 << 40), u64::MAX] {
        let share = Share {
            weight: 1,
            max_packet: 1500,
        };
        let mut bench = Bench::new(&[share; 2], Slope::Live, 0);
        bench.arrive(0, 1500);
        assert_eq!(bench.serve(), Some((0, 1500)));
        let wanted = bench.qfq.groups.now().wrapping_add(sleep);
        let mut left = sleep;
        while left > 0 {
            // The same as packets of the other flow.
            let step = left.min(1 << 47);
            let old = bench.qfq.groups.now();
            bench.qfq.groups.pass(step);
            bench.qfq.follow(old);
            left -= step;
        }
        assert_eq!(bench.qfq.groups.now(), wanted);
        assert_eq!(bench.qfq.live.sum(), 0, "the idle flow has stopped counting");
        bench.arrive(1, 1500);
        bench.arrive(0, 1500);
        bench.check_flows();
        assert_eq!(bench.flows[0].start, wanted);
        assert!(bench.serve().is_some() && bench.serve().is_some());
        bench.check_flows();
    }
}

#[test]
fn shares_out_of_range_are_rejected() {
    let rejected = |weight: u32, max_packet: u32, flows: usize| {
        let mut qfq = Qfq::new(&Settings::default(), 0).unwrap();
        let share = Share { weight, max_packet };
        (0..flows)
            .find_map(|_| qfq.add_flow(&share).err())
            .and_then(|error| error.parameter())
    };
    assert_eq!(rejected(0, 1500, 1), Some("weight"));
    assert_eq!(rejected(MAX_WEIGHT + 1, 1500, 1), Some("weight"));
    assert_eq!(rejected(MAX_WEIGHT, 1500, 1025), Some("weight"), "the sum");
    assert_eq!(rejected(1, 0, 1), Some("max_packet"));
    assert_eq!(rejected(1, MAX_PACKET + 1, 1), Some("max_packet"));
    assert_eq!(rejected(MAX_WEIGHT, MAX_PACKET, 1024), None);
}

/// One packet of 9000 bytes moves V by more slots of the short flows' group than the ring has.
#[test]
fn a_flow_after_a_much_longer_packet_starts_at_the_end_of_the_ring() {
    let share = |max_packet| Share {
        weight: 1,
        max_packet,
    };
    let mut bench = Bench::new(&[share(16), share(16), share(9000)], Slope::Configured, 0);
    for (flow, length) in [(0, 16), (0, 16), (2, 9000)] {
        bench.arrive(flow, length);
    }
    assert_eq!(bench.serve(), Some((0, 16)));
    assert_eq!(bench.serve(), Some((2, 9000)), "flow 0 is a slot ahead of V");
    bench.arrive(1, 16);
    let slot = 16 * ONE;
    assert!(bench.qfq.groups.now() > 180 * slot);
    assert_eq!(bench.flows[0].start, slot);
    assert_eq!(bench.flows[1].start, (1 + 62) * slot);
    assert_eq!(bench.serve(), Some((0, 16)));
    assert_eq!(bench.serve(), Some((1, 16)));
    bench.check_flows();
}

#[test]
fn a_packet_that_is_too_long_raises_the_flows_maximum() {
    let share = Share {
        weight: 1,
        max_packet: 100,
    };
    let mut bench = Bench::new(&[share; 2], Slope::Live, 0);
    let group = bench.flows[0].group;
    bench.arrive(0, 1000);
    bench.arrive(0, 50);
    assert_eq!(bench.serve(), Some((0, 1000)));
    assert_eq!(bench.flows[0].max_packet, 1000);
    assert_eq!(bench.flows[0].group, group + 3);
    assert_eq!(bench.serve(), Some((0, 50)));
    bench.check_flows();
}
