//! Compares sqf and lqf with a simple scan, and tests what their sources say about them.

use alloc::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::discipline::{Discipline, Inspect};
use crate::flow::FlowHash;
use crate::implicit::lqf::{Longest, Lqf};
use crate::implicit::sqf::{Shortest, Sqf};
use crate::packet::Packet;
use crate::testing::Driver;

fn of_flow(flow: u64, length: u32) -> Packet {
    Packet {
        flow: FlowHash::from_raw(flow),
        ..Packet::of_length(length)
    }
}

fn driver<O: Order>(config: Config) -> Driver<ByBacklog<O>> {
    Driver::new(ByBacklog::node(config, 1).unwrap())
}

fn offer<O: Order>(driver: &mut Driver<ByBacklog<O>>, flow: u64, length: u32) -> Verdict {
    driver.offer(of_flow(flow, length), Time::ZERO)
}

/// The definition: a queue for each flow, and a scan of all queues for each choice.
struct Naive {
    config: Config,
    longest_first: bool,
    flows: Vec<NaiveFlow>,
    steps: u64,
    offered: u64,
}

#[derive(Clone, Default)]
struct NaiveFlow {
    /// Cookies and lengths of the packets.
    packets: VecDeque<(u64, u32)>,
    changed: u64,
}

impl NaiveFlow {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|(_, length)| u64::from(*length)).sum()
    }
}

impl Naive {
    fn new(config: Config, longest_first: bool, flows: usize) -> Naive {
        Naive {
            config,
            longest_first,
            flows: vec![NaiveFlow::default(); flows],
            steps: 0,
            offered: 0,
        }
    }

    /// Returns the flow to serve: of the flows with the least bytes, or with the most, the one that reached
    /// them first.
    fn served(&self) -> Option<usize> {
        let active = (0..self.flows.len()).filter(|&flow| !self.flows[flow].packets.is_empty());
        active.min_by_key(|&flow| {
            let bytes = self.flows[flow].bytes() as i64;
            (
                if self.longest_first { -bytes } else { bytes },
                self.flows[flow].changed,
            )
        })
    }

    /// Whether no flow has more bytes. If the longest flow is also the one to serve, no flow reached as many
    /// bytes sooner.
    fn may_be_victim(&self, flow: usize) -> bool {
        if self.longest_first {
            return self.served() == Some(flow);
        }
        let bytes = self.flows[flow].bytes();
        !self.flows[flow].packets.is_empty() && self.flows.iter().all(|other| other.bytes() <= bytes)
    }

    fn change(&mut self, flow: usize) -> &mut VecDeque<(u64, u32)> {
        self.steps += 1;
        self.flows[flow].changed = self.steps;
        &mut self.flows[flow].packets
    }

    /// Returns the cookies of the dropped packets and the reasons. `returned` says which of several longest
    /// flows lost a packet.
    fn enqueue(
        &mut self,
        flow: usize,
        length: u32,
        returned: &[(u64, DropReason)],
    ) -> Vec<(u64, DropReason)> {
        let cookie = self.offered;
        self.offered += 1;
        let limit_bytes = self.config.limit_bytes.unwrap_or(u64::MAX);
        if u64::from(length) > limit_bytes {
            return vec![(cookie, DropReason::QueueLimit)];
        }
        let active = self.flows.iter().filter(|flow| !flow.packets.is_empty()).count() as u32;
        if self.flows[flow].packets.is_empty() && active == self.config.positions() {
            return vec![(cookie, DropReason::NoFreeFlow)];
        }
        self.change(flow).push_back((cookie, length));
        let mut dropped = Vec::new();
        loop {
            let packets: usize = self.flows.iter().map(|flow| flow.packets.len()).sum();
            let bytes: u64 = self.flows.iter().map(NaiveFlow::bytes).sum();
            if packets <= self.config.limit as usize && bytes <= limit_bytes {
                return dropped;
            }
            let drop_from = self.config.drop_from;
            let paying = |packets: &VecDeque<(u64, u32)>| match drop_from {
                DropFrom::Head => packets.front().copied(),
                DropFrom::Tail => packets.back().copied(),
            };
            let holds = |flow: &usize| {
                let cookie = paying(&self.flows[*flow].packets).map(|(cookie, _)| cookie);
                cookie.is_some() && cookie == returned.get(dropped.len()).map(|(cookie, _)| *cookie)
            };
            let Some(victim) = (0..self.flows.len())
                .find(holds)
                .filter(|&flow| self.may_be_victim(flow))
            else {
                return dropped;
            };
            let packets = self.change(victim);
            let (cookie, _) = paying(packets).expect("the victim isn't empty");
            packets.retain(|(other, _)| *other != cookie);
            dropped.push((cookie, DropReason::LongestFlow));
        }
    }

    fn dequeue(&mut self) -> Option<u64> {
        let flow = self.served()?;
        self.change(flow).pop_front().map(|(cookie, _)| cookie)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Offer(u8, u32),
    Next,
}

/// Few different lengths, so that flows are often equal.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![Just(0u32), Just(100), Just(200), Just(1500), 0u32..3000];
    let step = prop_oneof![
        4 => (0u8..12, length).prop_map(|(flow, length)| Step::Offer(flow, length)),
        3 => Just(Step::Next),
    ];
    // 256 cases with this many steps, for sqf and for lqf: two million steps.
    prop::collection::vec(step, 3500..4500)
}

fn configs() -> impl Strategy<Value = Config> {
    (
        prop_oneof![1u32..5, 1u32..60],
        prop::option::of(1u64..20_000),
        prop_oneof![Just(DropFrom::Head), Just(DropFrom::Tail)],
        prop::option::weighted(0.2, 1u32..14),
    )
        .prop_map(|(limit, limit_bytes, drop_from, flows)| Config {
            limit,
            limit_bytes,
            drop_from,
            flows,
            ..Config::default()
        })
}

fn follows_the_scan<O: Order>(config: Config, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut driver = driver::<O>(config.clone());
    let mut naive = Naive::new(config, O::LONGEST_FIRST, 12);
    for step in steps {
        match *step {
            Step::Offer(flow, length) => {
                offer(&mut driver, flow.into(), length);
                let dropped = naive.enqueue(flow.into(), length, &driver.returned);
                prop_assert_eq!(&driver.returned, &dropped);
            }
            Step::Next => prop_assert_eq!(driver.next(Time::ZERO), naive.dequeue()),
        }
    }
    Ok(())
}

proptest! {
    /// Checks every choice of a flow to serve and of a flow to drop from. Scales with `PROPTEST_CASES`.
    #[test]
    fn choices_are_the_same_as_by_a_scan(config in configs(), steps in steps()) {
        follows_the_scan::<Shortest>(config.clone(), &steps)?;
        follows_the_scan::<Longest>(config, &steps)?;
    }
}

#[test]
fn hot_state_of_a_flow_is_half_a_cache_line() {
    assert_eq!(core::mem::size_of::<Flow>(), 32);
}

#[test]
fn the_shortest_flow_in_bytes_is_served() {
    let mut driver = driver::<Shortest>(Config::default());
    for (flow, length) in [(1, 1500), (2, 400), (2, 400), (2, 400)] {
        offer(&mut driver, flow, length);
    }
    assert_eq!(driver.drain(Time::ZERO), [1, 2, 3, 0]);
}

#[test]
fn equal_flows_are_served_in_the_order_in_which_they_became_equal() {
    let mut driver = driver::<Shortest>(Config::default());
    for flow in [1, 2, 3] {
        offer(&mut driver, flow, 1000);
    }
    offer(&mut driver, 1, 1000);
    // 2 and 3 have 1000 bytes, 2 for longer. Then 1 shrinks to 1000 bytes.
    assert_eq!(driver.drain(Time::ZERO), [1, 2, 0, 3]);
}

/// The paper's Figure 2: a packet of the longest queue is dropped, whichever packet arrives.
#[test]
fn above_the_limit_the_flow_with_the_most_bytes_loses_a_packet() {
    for (drop_from, victim) in [(DropFrom::Head, 0), (DropFrom::Tail, 1)] {
        let mut driver = driver::<Shortest>(Config {
            limit: 4,
            drop_from,
            ..Config::default()
        });
        for (flow, length) in [(1, 1500), (1, 1500), (2, 200), (2, 200)] {
            assert_eq!(offer(&mut driver, flow, length), Verdict::Queued);
        }
        assert_eq!(offer(&mut driver, 3, 200), Verdict::Queued);
        assert_eq!(driver.returned, [(victim, DropReason::LongestFlow)]);
        assert_eq!(offer(&mut driver, 1, 1500), Verdict::Congested);
        assert_eq!(driver.root.backlog().packets, 4);
    }
}

#[test]
fn a_limit_in_bytes_drops_several_packets_and_rejects_one_that_can_never_fit() {
    let mut driver = driver::<Shortest>(Config {
        limit_bytes: Some(1000),
        ..Config::default()
    });
    for _ in 0..5 {
        offer(&mut driver, 1, 200);
    }
    assert_eq!(offer(&mut driver, 2, 500), Verdict::Queued);
    assert_eq!(driver.returned.len(), 3);
    assert_eq!(offer(&mut driver, 3, 1001), Verdict::Dropped);
    assert_eq!(driver.returned, [(8 - 2, DropReason::QueueLimit)]);
}

/// Section IV-A: a stream with less than `limit / (flows + 1)` packets is served at once, whatever its share
/// of the link.
#[test]
fn a_stream_below_its_share_of_the_buffer_is_served_at_once_and_loses_nothing() {
    const STREAM: u64 = 100;
    let mut driver = driver::<Shortest>(Config::default());
    let mut streamed = 0;
    let mut bulk = 0;
    for round in 0..200 {
        // Nine connections keep the buffer full. At 200 / 10 packets the stream loses its priority.
        for _ in 0..40 {
            let packet = Packet {
                flow: FlowHash::from_raw(bulk % 9),
                ..Packet::of_length(1250)
            };
            bulk += 1;
            driver.offer(packet, Time::ZERO);
        }
        let lost = driver.root.statistics().dropped.packets;
        let burst = 1 + round % 19;
        for _ in 0..burst {
            offer(&mut driver, STREAM, 1250);
            streamed += 1;
        }
        for _ in 0..burst {
            let id = driver
                .root
                .dequeue(Time::ZERO, &mut driver.pool)
                .expect("a full buffer");
            assert_eq!(
                driver.pool.release(id).flow,
                FlowHash::from_raw(STREAM),
                "round {round}"
            );
            streamed -= 1;
        }
        assert!(
            round < 5 || driver.root.statistics().dropped.packets == lost + burst,
            "the buffer is full"
        );
    }
    assert_eq!(streamed, 0);
}

/// Nine connections fill the buffer of 200 packets. A stream sends 30 packets at once, which is more than its
/// part of the buffer, 20, but only 75 of 1000 packets, which is less than its share, 100. Returns how many
/// of its packets were lost, and how many were not sent before all others.
fn bursts_of_a_stream(credit: u32) -> [u64; 2] {
    const STREAM: u64 = 100;
    let mut driver = driver::<Shortest>(Config {
        credit,
        ..Config::default()
    });
    let mut sent = Sent::default();
    (0..200).for_each(|packet| sent.offer(&mut driver, packet % 9));
    let mut late = 0;
    for round in 0..50 {
        (0..30).for_each(|_| sent.offer(&mut driver, STREAM));
        for departure in 0..400 {
            let flow = sent.next(&mut driver);
            late += u64::from((flow == STREAM) != (departure < 30));
            // A connection sends again, or fills the place of a packet that it lost.
            sent.offer(&mut driver, if flow == STREAM { departure % 9 } else { flow });
        }
        if round == 0 {
            // Not counted: the connections are new, too, and have full credit.
            late = 0;
            sent.lost.clear();
        }
    }
    [
        sent.lost.iter().filter(|flow| **flow == STREAM).count() as u64,
        late,
    ]
}

/// The flows of packets.
#[derive(Default)]
struct Sent {
    /// By cookie.
    flow_of: Vec<u64>,
    /// The flows of lost packets.
    lost: Vec<u64>,
}

impl Sent {
    fn offer(&mut self, driver: &mut Driver<Sqf>, flow: u64) {
        self.flow_of.push(flow);
        offer(driver, flow, 1000);
        let lost = driver
            .returned
            .iter()
            .map(|(cookie, _)| self.flow_of[*cookie as usize]);
        self.lost.extend(lost);
    }

    fn next(&mut self, driver: &mut Driver<Sqf>) -> u64 {
        self.flow_of[driver.next(Time::ZERO).expect("the buffer isn't empty") as usize]
    }
}

#[test]
fn with_credit_a_burst_keeps_its_priority_while_the_mean_rate_is_below_the_fair_share() {
    assert_eq!(bursts_of_a_stream(40_000), [0, 0]);
    let [_, late] = bursts_of_a_stream(0);
    // A packet that waits is late, and so is the one that leaves in its place.
    assert!(
        late >= 2 * 49,
        "without credit the end of each burst waits: {late}"
    );
}

/// Nine flows always have one packet, and one has fifty. With credit it gets half of its fair share at least,
/// 200 of 4000 packets, less its backlog and the credit. Without credit it gets nothing.
#[test]
fn with_credit_no_flow_starves() {
    const LONG: u64 = 9;
    for (credit, least) in [(0, 0), (20_000, 130)] {
        let mut driver = driver::<Shortest>(Config {
            credit,
            ..Config::default()
        });
        let mut packets = Sent::default();
        (0..LONG)
            .chain([LONG; 50])
            .for_each(|flow| packets.offer(&mut driver, flow));
        let mut sent = 0;
        for _ in 0..4000 {
            let flow = packets.next(&mut driver);
            sent += u64::from(flow == LONG);
            packets.offer(&mut driver, flow);
        }
        assert!(
            sent >= least && (credit > 0 || sent == 0),
            "{sent} with a credit of {credit}"
        );
        assert!(
            sent < 600,
            "{sent}: half of the fair share, not more than the share"
        );
    }
}

proptest! {
    /// With credit every choice is that of a scan by backlog plus mark, and no flow is longer than the victim
    /// by the same measure.
    #[test]
    fn with_credit_choices_are_those_of_a_scan(
        credit in prop_oneof![1u32..5000, 1u32..100_000],
        limit in 1u32..60,
        steps in steps(),
    ) {
        let mut driver = driver::<Shortest>(Config { credit, limit, ..Config::default() });
        // By cookie.
        let mut offered: Vec<(u64, u32)> = Vec::new();
        for step in steps.iter().take(1000) {
            match *step {
                Step::Offer(flow, length) => {
                    offered.push((flow.into(), length));
                    offer(&mut driver, flow.into(), length);
                    if let [(cookie, _)] = driver.returned[..] {
                        let (victim, length) = offered[cookie as usize];
                        let before = size_of_flow(&driver, victim).map(|size| size + u64::from(length));
                        let most = (0..12).filter_map(|flow| size_of_flow(&driver, flow)).max();
                        prop_assert!(before.is_none() || before >= most, "{before:?} {most:?}");
                    }
                }
                Step::Next => {
                    let sizes: Vec<_> = (0..12).map(|flow| size_of_flow(&driver, flow)).collect();
                    if let Some(cookie) = driver.next(Time::ZERO) {
                        let served = sizes[offered[cookie as usize].0 as usize];
                        prop_assert_eq!(served, sizes.into_iter().flatten().min());
                    }
                }
            }
        }
    }
}

/// The rank of a flow with packets: its backlog plus its mark.
fn size_of_flow(driver: &Driver<Sqf>, flow: u64) -> Option<u64> {
    let sqf = driver.root.algorithm();
    let position = sqf.table.find(sqf.table.identity(FlowHash::from_raw(flow)))?;
    Some(sqf.size(position, sqf.flows[position as usize].queue.bytes()))
}

#[test]
fn the_key_defines_the_flows() {
    use crate::flow::FlowKey;
    let mut driver = driver::<Shortest>(Config {
        key: FlowBy::Source,
        ..Config::default()
    });
    let mut offer = |host: u8, port: u16, length: u32| {
        let key = FlowKey::of([10, 0, 0, host].into(), [192, 0, 2, 1].into(), 6, port, 80);
        let cookie = u64::from(port);
        // The driver's hash makes each connection a flow.
        let packet = Packet {
            cookie,
            ..of_flow(cookie, length)
        };
        let id = driver.pool.insert((packet, key)).unwrap();
        driver.root.enqueue(id, Time::ZERO, &mut driver.pool);
    };
    offer(1, 1, 100);
    offer(1, 2, 100);
    offer(2, 3, 150);
    assert_eq!(driver.drain(Time::ZERO), [3, 1, 2]);
}

/// Numbered and hashed flows may share a queue. Nothing else goes wrong.
#[test]
fn numbered_flows_need_no_hash_and_may_share_with_hashed_ones() {
    let mut driver = driver::<Shortest>(Config {
        flows: Some(2),
        ..Config::default()
    });
    let offer_numbered = |driver: &mut Driver<Sqf>, flow: u32, length: u32| {
        let id = driver.pool.insert(Packet::of_length(length)).unwrap();
        let verdict = driver.root.enqueue_flow(flow, id, Time::ZERO, &mut driver.pool);
        while let Some((id, _)) = driver.pool.take_returned() {
            driver.pool.release(id);
        }
        verdict
    };
    assert_eq!(offer_numbered(&mut driver, 1, 300), Verdict::Queued);
    assert_eq!(offer_numbered(&mut driver, 0, 200), Verdict::Queued);
    assert_eq!(offer_numbered(&mut driver, 2, 200), Verdict::Dropped);
    for flow in 7..9 {
        assert_eq!(offer(&mut driver, flow, 100), Verdict::Queued);
    }
    assert_eq!(
        offer(&mut driver, 9, 100),
        Verdict::Dropped,
        "both positions are taken"
    );
    let mut lengths = Vec::new();
    while let Some(id) = driver.root.dequeue(Time::ZERO, &mut driver.pool) {
        lengths.push(driver.pool.release(id).length);
    }
    assert_eq!(lengths, [200, 100, 300, 100]);
    for flow in 9..11 {
        assert_eq!(
            offer(&mut driver, flow, 100),
            Verdict::Queued,
            "all positions are free again"
        );
    }
}

#[test]
fn lqf_serves_and_drops_from_the_longest() {
    let mut driver: Driver<Lqf> = driver(Config {
        limit: 3,
        drop_from: DropFrom::Tail,
        ..Config::default()
    });
    for (flow, length) in [(1, 200), (2, 1500), (2, 1500)] {
        offer(&mut driver, flow, length);
    }
    assert_eq!(offer(&mut driver, 1, 200), Verdict::Queued);
    assert_eq!(driver.returned, [(2, DropReason::LongestFlow)]);
    assert_eq!(driver.drain(Time::ZERO), [1, 0, 3]);
}

#[test]
fn a_change_keeps_packets_in_the_order_of_their_flows() {
    let mut driver: Driver<Sqf> = driver(Config::default());
    for flow in [1, 1, 1, 2] {
        offer(&mut driver, flow, 1000);
    }
    driver.reconfigure(
        Config {
            limit: 3,
            drop_from: DropFrom::Tail,
            ..Config::default()
        },
        Time::ZERO,
    );
    assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
    assert_eq!(driver.drain(Time::ZERO), [3, 0, 1]);
}

#[test]
fn ranges_are_checked() {
    let rejected = |config: Config| Sqf::node(config, 0).unwrap_err().parameter();
    let default = Config::default;
    let limit = |limit| Config { limit, ..default() };
    assert_eq!(rejected(limit(0)), Some("limit"));
    assert_eq!(rejected(limit((1 << 25) + 1)), Some("limit"));
    let flows = |flows| Config {
        flows: Some(flows),
        ..default()
    };
    assert_eq!(rejected(flows(0)), Some("flows"));
    assert_eq!(rejected(flows(MOST_FLOWS + 1)), Some("flows"));
    let credit = |credit| Config { credit, ..default() };
    assert_eq!(rejected(credit(MOST_CREDIT + 1)), Some("credit"));
    let refused = Lqf::node(credit(1), 0).unwrap_err().to_string();
    assert!(
        refused.contains("credit") && refused.contains("longest"),
        "{refused}"
    );
    let bytes = |bytes| Config {
        limit_bytes: Some(bytes),
        ..default()
    };
    assert_eq!(rejected(bytes(0)), Some("limit_bytes"));
    assert_eq!(rejected(bytes(u64::MAX)), Some("limit_bytes"));
}
