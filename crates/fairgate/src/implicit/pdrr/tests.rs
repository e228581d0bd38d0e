//! Compares PDRR with Table 1, and tests what the paper says about it.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use core::time::Duration;

use super::*;
use crate::classify::Classifier;
use crate::discipline::{Discipline, Inspect};
use crate::packet::{ClassId, Packet};
use crate::rate::Rate;
use crate::testing::Driver;

fn of_flow(flow: u64, length: u32) -> Packet {
    Packet {
        flow: FlowHash::from_raw(flow),
        // Its class has the number of the flow. It counts if there are quanta for classes.
        class: ClassId::new(1, flow as u16),
        ..Packet::of_length(length)
    }
}

fn driver(config: Config) -> Driver<Pdrr> {
    Driver::new(Pdrr::node(config, 1).unwrap())
}

fn offer(driver: &mut Driver<Pdrr>, flow: u64, length: u32) -> Verdict {
    driver.offer(of_flow(flow, length), Time::ZERO)
}

/// A packet: its cookie and length.
type Known = (u64, u32);

#[derive(Default)]
struct Active {
    queue: VecDeque<Known>,
    deficit: i64,
    byte_count: u64,
}

/// Table 1 with a list that is searched.
struct Table1 {
    config: Config,
    priority: VecDeque<Known>,
    /// AFL without the flow that is served.
    afl: VecDeque<u64>,
    serving: Option<u64>,
    active: HashMap<u64, Active>,
    offered: u64,
}

impl Table1 {
    fn new(config: Config) -> Table1 {
        Table1 {
            config,
            priority: VecDeque::new(),
            afl: VecDeque::new(),
            serving: None,
            active: HashMap::new(),
            offered: 0,
        }
    }

    fn quantum(&self, flow: u64) -> u32 {
        let of_class = (flow as usize)
            .checked_sub(1)
            .and_then(|class| self.config.quanta.get(class));
        of_class.copied().unwrap_or(self.config.quantum)
    }

    fn queued(&self) -> usize {
        self.priority.len() + self.active.values().map(|flow| flow.queue.len()).sum::<usize>()
    }

    /// Returns the dropped packets and the reasons. `returned` says which of several longest flows lost a
    /// packet.
    fn enqueue(&mut self, flow: u64, length: u32, returned: &[(u64, DropReason)]) -> Vec<(u64, DropReason)> {
        let cookie = self.offered;
        self.offered += 1;
        let mut dropped = Vec::new();
        if self.queued() == self.config.limit as usize {
            let bytes = |flow: &Active| {
                flow.queue
                    .iter()
                    .map(|(_, length)| u64::from(*length))
                    .sum::<u64>()
            };
            let most = self
                .active
                .values()
                .filter(|flow| !flow.queue.is_empty())
                .map(bytes)
                .max();
            let Some(most) = most else {
                return vec![(cookie, DropReason::QueueLimit)];
            };
            let paid = returned.first().map(|(cookie, _)| *cookie);
            let victim = self
                .active
                .values_mut()
                .find(|flow| paid.is_some() && flow.queue.front().map(|(cookie, _)| *cookie) == paid);
            if let Some(victim) = victim.filter(|flow| bytes(flow) == most) {
                dropped.push((victim.queue.pop_front().unwrap().0, DropReason::LongestFlow));
            }
        }
        if self.queued() == 0 {
            self.afl.clear();
            self.active.clear();
            self.serving = None;
        }
        let (packet, quantum) = ((cookie, length), self.quantum(flow));
        if let Some(known) = self.active.get_mut(&flow) {
            known.byte_count += u64::from(length);
            if known.byte_count <= u64::from(quantum) {
                known.deficit -= i64::from(length);
                self.priority.push_back(packet);
            } else {
                known.queue.push_back(packet);
            }
            return dropped;
        }
        self.priority.push_back(packet);
        if self.active.len() < self.config.afl as usize {
            self.afl.push_back(flow);
            let new = Active {
                queue: VecDeque::new(),
                deficit: -i64::from(length),
                byte_count: length.into(),
            };
            self.active.insert(flow, new);
        }
        dropped
    }

    /// Ends the turn of the served flow if it can't send.
    fn settle(&mut self) {
        let Some(flow) = self.serving else { return };
        let known = &self.active[&flow];
        match known.queue.front() {
            None => {
                self.active.remove(&flow);
                self.serving = None;
            }
            Some((_, length)) if i64::from(*length) > known.deficit => {
                self.afl.push_back(flow);
                self.serving = None;
            }
            Some(_) => {}
        }
    }

    fn dequeue(&mut self) -> Option<u64> {
        self.settle();
        if let Some((cookie, _)) = self.priority.pop_front() {
            return Some(cookie);
        }
        if self.queued() == 0 {
            return None;
        }
        loop {
            if let Some(flow) = self.serving {
                let known = self.active.get_mut(&flow).unwrap();
                let (cookie, length) = known.queue.pop_front().unwrap();
                known.deficit -= i64::from(length);
                return Some(cookie);
            }
            let head = self.afl.pop_front().expect("a flow with packets is in AFL");
            if self.active[&head].queue.is_empty() {
                self.active.remove(&head);
                continue;
            }
            let quantum = self.quantum(head);
            self.active.get_mut(&head).unwrap().deficit += i64::from(quantum);
            self.serving = Some(head);
            self.settle();
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Offer(u8, u32),
    Next,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![Just(0u32), Just(100), Just(500), Just(1500), 0u32..4000];
    let step = prop_oneof![
        4 => (0u8..12, length).prop_map(|(flow, length)| Step::Offer(flow, length)),
        3 => Just(Step::Next),
    ];
    prop::collection::vec(step, 1000..2000)
}

proptest! {
    /// Compares every departure and every drop. The fictitious flow of the measurements changes nothing.
    #[test]
    fn departures_are_the_same_as_in_table_1(
        limit in prop_oneof![1u32..5, 1u32..60],
        afl in 1u32..14,
        quantum in 64u32..4000,
        quanta in prop::collection::vec(64u32..4000, 0..5),
        rate in prop::option::of(Just(Rate::mbit(10))),
        steps in steps(),
    ) {
        let classifier = Classifier { handle: 1, ..Classifier::default() };
        let config = Config { limit, afl, quantum, quanta, classifier, rate, ..Config::default() };
        let mut driver = driver(config.clone());
        let mut model = Table1::new(config);
        for step in steps {
            match step {
                Step::Offer(flow, length) => {
                    offer(&mut driver, flow.into(), length);
                    let dropped = model.enqueue(flow.into(), length, &driver.returned);
                    prop_assert_eq!(&driver.returned, &dropped);
                }
                Step::Next => prop_assert_eq!(driver.next(Time::ZERO), model.dequeue()),
            }
        }
    }
}

#[test]
fn hot_state_of_a_flow_is_a_cache_line() {
    assert_eq!(core::mem::size_of::<Flow>(), 64);
}

#[test]
fn a_flow_has_priority_for_its_first_quantum_and_is_then_served_in_rounds() {
    let mut driver = driver(Config {
        quantum: 1000,
        ..Config::default()
    });
    for _ in 0..3 {
        offer(&mut driver, 1, 500);
    }
    offer(&mut driver, 2, 500);
    // Two packets of 1 and the packet of 2 have priority. After that, 1 has 0 bytes left in the round for its
    // third packet.
    assert_eq!(driver.drain(Time::ZERO), [0, 1, 3, 2]);
}

#[test]
fn bytes_sent_with_priority_are_subtracted_from_the_first_turn() {
    let mut driver = driver(Config {
        quantum: 1000,
        ..Config::default()
    });
    for flow in [1, 1, 1, 2, 2, 2] {
        offer(&mut driver, flow, 800);
    }
    // Each has sent 800 bytes with priority. It has 200 left in its first turn, then 1200, then 1400.
    assert_eq!(driver.drain(Time::ZERO), [0, 3, 1, 4, 2, 5]);
}

#[test]
fn with_the_list_full_new_flows_have_priority_without_an_entry() {
    let mut driver = driver(Config {
        afl: 1,
        quantum: 100,
        ..Config::default()
    });
    for (flow, length) in [(1, 100), (1, 100), (2, 100), (2, 100), (3, 100)] {
        assert_eq!(offer(&mut driver, flow, length), Verdict::Queued);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 2, 3, 4, 1]);
}

#[test]
fn a_full_buffer_drops_the_head_of_the_longest_queue_and_no_priority_packet() {
    let mut driver = driver(Config {
        limit: 4,
        quantum: 100,
        ..Config::default()
    });
    for (flow, length) in [(1, 100), (1, 300), (2, 100), (2, 100)] {
        assert_eq!(offer(&mut driver, flow, length), Verdict::Queued);
    }
    assert_eq!(offer(&mut driver, 3, 100), Verdict::Queued);
    assert_eq!(driver.returned, [(1, DropReason::LongestFlow)]);
    assert_eq!(offer(&mut driver, 2, 100), Verdict::Congested);
    assert_eq!(driver.returned, [(3, DropReason::LongestFlow)]);
    assert_eq!(offer(&mut driver, 4, 100), Verdict::Queued);
    assert_eq!(driver.returned, [(5, DropReason::LongestFlow)]);
    assert_eq!(offer(&mut driver, 5, 100), Verdict::Dropped);
    assert_eq!(driver.returned, [(7, DropReason::QueueLimit)]);
    assert_eq!(driver.drain(Time::ZERO), [0, 2, 4, 6]);
}

/// A link of 8 Mbit/s, 1000 bytes per millisecond, packet by packet.
struct Link {
    driver: Driver<Pdrr>,
    /// The flow and the arrival time of each packet.
    offered: Vec<(u64, Time)>,
    now: Time,
    free_at: Time,
    /// The flow of each packet sent, and its wait in nanoseconds after the end of the arrival.
    sent: Vec<(u64, u64)>,
    blocked: Vec<u64>,
    most_active: i64,
}

impl Link {
    const RATE: Rate = Rate::mbit(8);

    fn new(config: Config) -> Link {
        Link {
            driver: driver(Config {
                rate: Some(Link::RATE),
                ..config
            }),
            offered: Vec::new(),
            now: Time::ZERO,
            free_at: Time::ZERO,
            sent: Vec::new(),
            blocked: Vec::new(),
            most_active: 0,
        }
    }

    fn run_until(&mut self, now: Time) {
        while self.free_at <= now {
            let at = self.free_at;
            let Some(id) = self.driver.root.dequeue(at, &mut self.driver.pool) else {
                break;
            };
            let packet = self.driver.pool.release(id);
            let (flow, came) = self.offered[packet.cookie as usize];
            self.sent.push((flow, at - came));
            self.free_at = at + Link::RATE.transmission_nanos(packet.length.into());
        }
        self.now = now;
        self.free_at = self.free_at.max(now);
        self.most_active = self.most_active.max(self.variable("active_flows"));
    }

    fn offer(&mut self, flow: u64, length: u32, at: Time) {
        self.run_until(at);
        self.offered.push((flow, at));
        self.driver.offer(of_flow(flow, length), at);
        for (cookie, reason) in core::mem::take(&mut self.driver.returned) {
            if reason == DropReason::NotAdmitted {
                self.blocked.push(self.offered[cookie as usize].0);
            }
        }
    }

    fn variable(&self, wanted: &str) -> i64 {
        let mut found = None;
        self.driver.root.visit_variables(&mut |name, value| {
            if let (true, Variable::Integer(value)) = (name == wanted, value) {
                found = Some(value);
            }
        });
        found.expect("there is such a variable")
    }
}

/// Returns packets of 1000 bytes of each of `flows` at its interval in ms, in the order of time, up to `end`
/// ms.
fn arrivals(flows: &[(u64, u64, u64)], end: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for &(flow, first, interval) in flows {
        all.extend((first..end).step_by(interval as usize).map(|at| (at, flow)));
    }
    all.sort_unstable();
    all
}

/// Section 4.3: nine flows that always have packets, and one flow with an eighth of their fair rate.
#[test]
fn a_flow_below_the_fair_rate_waits_for_one_packet_at_most() {
    let mut link = Link::new(Config {
        quantum: 1000,
        ..Config::default()
    });
    let mut flows: Vec<_> = (0..9).map(|flow| (flow, 0, 5)).collect();
    flows.push((100, 3, 80));
    for (at, flow) in arrivals(&flows, 10_000) {
        link.offer(flow, 1000, Time::from_millis(at));
    }
    // Its first packet arrives in the burst of the first packets of all flows.
    let waits: Vec<u64> = link
        .sent
        .iter()
        .filter(|(flow, _)| *flow == 100)
        .map(|(_, wait)| *wait)
        .skip(1)
        .collect();
    assert!(waits.len() > 100);
    assert!(
        waits.iter().all(|wait| *wait <= 1_000_000),
        "{:?}",
        waits.iter().max()
    );
    let of_others = link
        .sent
        .iter()
        .filter(|(flow, _)| *flow != 100)
        .map(|(_, wait)| *wait);
    assert!(of_others.max() > Some(100_000_000), "the others queue");
    // Of each 10 ms, nine flows get 9 ms and the slow flow a tenth of one: 8 Mbit/s * (1 - 1/80) / 9.
    let fair = link.variable("fair_rate");
    assert!((860_000..900_000).contains(&fair), "fair rate {fair}");
    let priority = link.variable("priority_rate");
    assert!((90_000..110_000).contains(&priority), "priority load {priority}");
}

/// Section 4.2: of ten thousand flows in progress at a load of 0.9, no more than a few hundred are ever in
/// AFL.
#[test]
fn the_active_flow_list_stays_small() {
    let mut link = Link::new(Config::default());
    let mut random = 1u64;
    let mut nanos = 0;
    for _ in 0..100_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The gap is uniform from 0 to twice the mean gap between packets.
        nanos += ((random >> 33) * 2_222_222) >> 31;
        let flow = (random >> 20) % 10_000;
        link.offer(flow, 1000, Time::from_nanos(nanos));
    }
    assert!(
        (2..500).contains(&link.most_active),
        "{} flows in AFL",
        link.most_active
    );
    let waits = link.sent.iter().map(|(_, wait)| *wait);
    assert!(waits.max() < Some(500_000_000));
}

/// Section 5: new flows arrive all the time. With admission control the fair rate stays near its threshold.
#[test]
fn admission_control_keeps_the_fair_rate_and_blocks_no_known_flow() {
    let threshold = Rate::from_bits_per_second(400_000).unwrap();
    let mut fair_rates = Vec::new();
    for admission in [
        None,
        Some(Admission {
            fair_rate: Some(threshold),
            ..Admission::default()
        }),
    ] {
        let mut link = Link::new(Config {
            quantum: 1000,
            admission: admission.clone(),
            ..Config::default()
        });
        // A new flow every 500 ms, each with packets for half of the link.
        let flows: Vec<_> = (0..100).map(|flow| (flow, 500 * flow, 20)).collect();
        for (at, flow) in arrivals(&flows, 50_000) {
            link.offer(flow, 1000, Time::from_millis(at));
        }
        fair_rates.push(link.variable("fair_rate"));
        if admission.is_some() {
            assert!(!link.blocked.is_empty());
            assert!(
                link.blocked.iter().all(|flow| *flow >= 15),
                "known flows were blocked"
            );
            let first = link.blocked[0];
            assert!(link.sent.iter().any(|(flow, _)| *flow == first - 1));
        } else {
            assert!(link.blocked.is_empty());
        }
    }
    assert!(
        fair_rates[0] < 150_000,
        "without admission control: {fair_rates:?}"
    );
    assert!(fair_rates[1] > 300_000, "with admission control: {fair_rates:?}");
}

#[test]
fn numbered_flows_need_no_hash() {
    let mut driver = driver(Config {
        afl: 2,
        quantum: 100,
        ..Config::default()
    });
    let mut verdicts = Vec::new();
    for flow in [0, 0, 1, 2, 1] {
        let id = driver
            .pool
            .insert(Packet {
                cookie: verdicts.len() as u64,
                ..Packet::of_length(100)
            })
            .unwrap();
        verdicts.push(driver.root.enqueue_flow(flow, id, Time::ZERO, &mut driver.pool));
    }
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Dropped)
            .count(),
        1
    );
    let (rejected, reason) = driver.pool.take_returned().unwrap();
    assert_eq!(reason, DropReason::NoFreeFlow);
    driver.pool.release(rejected);
    assert_eq!(driver.drain(Time::ZERO), [0, 2, 1, 4]);
}

#[test]
fn a_change_keeps_packets_in_the_order_of_their_flows() {
    let mut driver = driver(Config::default());
    for flow in [1, 1, 1, 2] {
        offer(&mut driver, flow, 1500);
    }
    let config = Config {
        limit: 3,
        ..Config::default()
    };
    driver.reconfigure(config, Time::ZERO);
    // Enqueued again: 0 and 3 have priority, 1 does not, and for 2 the head of its flow's queue is dropped.
    assert_eq!(driver.returned, [(1, DropReason::Reconfigured)]);
    assert_eq!(driver.drain(Time::ZERO), [0, 3, 2]);
}

#[test]
fn ranges_are_checked() {
    let rejected = |config: Config| Pdrr::node(config, 0).unwrap_err().parameter();
    let default = Config::default;
    assert_eq!(
        rejected(Config {
            limit: 0,
            ..default()
        }),
        Some("limit")
    );
    assert_eq!(rejected(Config { afl: 0, ..default() }), Some("afl"));
    assert_eq!(
        rejected(Config {
            quantum: 63,
            ..default()
        }),
        Some("quantum")
    );
    let admission = |admission| Config {
        rate: Some(Rate::mbit(1)),
        admission: Some(admission),
        ..default()
    };
    let without_rate = Config {
        rate: None,
        ..admission(Admission::default())
    };
    assert_eq!(rejected(without_rate), Some("admission"));
    let load = Admission {
        priority_load: 0,
        ..Admission::default()
    };
    assert_eq!(rejected(admission(load)), Some("priority_load"));
    let timeout = Admission {
        idle_timeout: Duration::ZERO,
        ..Admission::default()
    };
    assert_eq!(rejected(admission(timeout)), Some("idle_timeout"));
    let flows = Admission {
        flows_in_progress: 0,
        ..Admission::default()
    };
    assert_eq!(rejected(admission(flows)), Some("flows_in_progress"));
}
