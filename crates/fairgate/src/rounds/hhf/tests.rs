use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::discipline::Inspect;
use crate::flow::FlowHash;
use crate::packet::Packet;
use crate::structures::random::mixed;
use crate::testing::Driver;

fn of_flow(flow: u64, length: u32) -> Packet {
    Packet {
        flow: FlowHash::from_raw(mixed(flow)),
        ..Packet::of_length(length)
    }
}

fn variable(driver: &Driver<Hhf>, wanted: &str) -> i64 {
    let mut found = None;
    driver.root.visit_variables(&mut |name, value| {
        if let (true, Variable::Integer(value)) = (name == wanted, value) {
            found = Some(value);
        }
    });
    found.expect("the variable exists")
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    let rejected = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Hhf::node(config, 0).unwrap_err().parameter()
    };
    assert_eq!(rejected(|config| config.limit = 0), Some("limit"));
    assert_eq!(rejected(|config| config.quantum = 255), Some("quantum"));
    assert_eq!(rejected(|config| config.hh_limit = 2049), Some("hh_limit"));
    assert_eq!(rejected(|config| config.non_hh_weight = 0), Some("non_hh_weight"));
}

/// The rules over plain lists (sch_hhf.c), for few flows, whose counters are exact: flows do not collide.
struct Model {
    config: Config,
    /// Heavy and light: cookie, flow, length, and how many light packets must have left before.
    queues: [VecDeque<(u64, u64, u32, u64)>; 2],
    arrived: [u64; 2],
    deficits: [i64; 2],
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// By flow: bytes since the reset; the last time and the last packet of a heavy flow, and the barrier.
    bytes: BTreeMap<u64, u64>,
    heavy: BTreeMap<u64, (u64, u64, u64)>,
    reset: Option<u64>,
}

impl Model {
    fn new(config: Config) -> Model {
        Model {
            config,
            queues: Default::default(),
            arrived: [0; 2],
            deficits: [0; 2],
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: BTreeMap::new(),
            heavy: BTreeMap::new(),
            reset: None,
        }
    }

    fn left(&self, bucket: usize) -> u64 {
        self.arrived[bucket] - self.queues[bucket].len() as u64
    }

    fn quantum(&self, bucket: usize) -> i64 {
        i64::from(self.config.quantum) * [1, i64::from(self.config.non_hh_weight)][bucket]
    }

    /// Returns the packet that is dropped, if one is.
    fn enqueue(&mut self, cookie: u64, flow: u64, length: u32, now: u64) -> Option<u64> {
        if now - *self.reset.get_or_insert(now) > self.config.reset_timeout.as_nanos() as u64 {
            self.bytes.clear();
            self.reset = Some(now);
        }
        let timeout = self.config.evict_timeout.as_nanos() as u64;
        let heavy_left = self.left(0);
        let is_live = |(seen, last, _): &(u64, u64, u64)| now - seen <= timeout || *last > heavy_left;
        let known = self.heavy.get(&flow).copied().filter(is_live);
        let sent = self.bytes.entry(flow).or_default();
        let becomes = known.is_none() && *sent + u64::from(length) > self.config.admit_bytes.into();
        let bucket = usize::from(known.is_none() && !becomes);
        let barrier = known.map_or(self.arrived[1], |(.., barrier)| barrier);
        if bucket == 1 {
            *sent += u64::from(length);
        } else {
            self.heavy.insert(flow, (now, self.arrived[0] + 1, barrier));
        }
        self.arrived[bucket] += 1;
        let barrier = if bucket == 0 { barrier } else { 0 };
        self.queues[bucket].push_back((cookie, flow, length, barrier));
        if !self.new.contains(&bucket) && !self.old.contains(&bucket) {
            self.deficits[bucket] = self.quantum(bucket);
            match bucket {
                0 => self.old.push_back(0),
                _ => self.new.push_back(1),
            }
        }
        let queued = self.queues.iter().map(VecDeque::len).sum::<usize>();
        if queued > self.config.limit as usize {
            let from = usize::from(self.queues[0].is_empty());
            return self.queues[from].pop_front().map(|(cookie, ..)| cookie);
        }
        None
    }

    fn dequeue(&mut self) -> Option<u64> {
        loop {
            let is_new = !self.new.is_empty();
            let bucket = *self.new.front().or(self.old.front())?;
            let leave = |model: &mut Model| match is_new {
                true => model.new.pop_front(),
                false => model.old.pop_front(),
            };
            if self.deficits[bucket] <= 0 {
                self.deficits[bucket] += self.quantum(bucket);
                leave(self);
                self.old.push_back(bucket);
                continue;
            }
            let light_left = self.left(1);
            let waits = |queue: &VecDeque<(u64, u64, u32, u64)>| {
                queue.front().is_some_and(|(.., barrier)| *barrier > light_left)
            };
            let from = if bucket == 0 && waits(&self.queues[0]) {
                1
            } else {
                bucket
            };
            match self.queues[from].pop_front() {
                Some((cookie, _, length, _)) => {
                    self.deficits[from] -= i64::from(length);
                    return Some(cookie);
                }
                None => {
                    leave(self);
                    if is_new && !self.old.is_empty() {
                        self.old.push_back(bucket);
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn departures_and_drops_equal_those_of_the_model(
        numbers in (1u32..40, 256u32..3000, 0u32..8000, 1u32..5),
        times in (1u64..30_000_000, 1u64..30_000_000),
        operations in prop::collection::vec((0u8..5, 0u64..4, 40u32..1600, 0u64..2_000_000), 0..400),
    ) {
        let (limit, quantum, admit_bytes, non_hh_weight) = numbers;
        let config = Config {
            limit,
            quantum,
            admit_bytes,
            non_hh_weight,
            reset_timeout: Duration::from_nanos(times.0),
            evict_timeout: Duration::from_nanos(times.1),
            ..Config::default()
        };
        let mut driver = Driver::new(Hhf::node(config.clone(), 5).unwrap());
        let mut model = Model::new(config);
        let (mut now, mut cookie) = (0, 0);
        let mut flows = Vec::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (operation, flow, length, pause) in operations {
            now += pause;
            if operation < 2 {
                let sent = driver.next(Time::from_nanos(now));
                prop_assert_eq!(sent, model.dequeue());
                if let Some(sent) = sent {
                    let before = last.insert(flows[sent as usize], sent);
                    prop_assert!(before.is_none_or(|before| before < sent), "flows keep their order");
                }
                continue;
            }
            flows.push(flow);
            driver.offer(of_flow(flow, length), Time::from_nanos(now));
            let dropped = driver.returned.first().map(|(cookie, _)| *cookie);
            prop_assert_eq!(dropped, model.enqueue(cookie, flow, length, now));
            cookie += 1;
        }
    }
}

/// A bulk flow fills the queue, and short transfers pass it: of a backlog of both, light flows get two
/// thirds.
#[test]
fn light_flows_have_twice_the_share() {
    let config = Config {
        admit_bytes: 20_000,
        limit: 2000,
        ..Config::default()
    };
    let mut driver = Driver::new(Hhf::node(config, 3).unwrap());
    let mut flows = Vec::new();
    for number in 0..600u64 {
        // Sixty light flows of five packets each, between those of the heavy flow.
        for flow in [1000, number / 10]
            .into_iter()
            .take(1 + usize::from(number % 2 == 0))
        {
            flows.push(flow);
            driver.offer(of_flow(flow, 1000), Time::ZERO);
        }
    }
    assert_eq!((variable(&driver, "tot_hh"), variable(&driver, "cur_hh")), (1, 1));
    let first: Vec<u64> = (0..300).filter_map(|_| driver.next(Time::ZERO)).collect();
    let heavy = first
        .iter()
        .filter(|cookie| flows[**cookie as usize] == 1000)
        .count();
    assert!((100..130).contains(&heavy), "{heavy} of 300");
}

#[test]
fn a_full_table_leaves_flows_with_the_light_ones() {
    let config = Config {
        admit_bytes: 0,
        hh_limit: 2,
        ..Config::default()
    };
    let mut driver = Driver::new(Hhf::node(config, 3).unwrap());
    for flow in 0..5 {
        driver.offer(of_flow(flow, 100), Time::ZERO);
    }
    assert_eq!(variable(&driver, "cur_hh"), 2);
    assert_eq!(variable(&driver, "hh_overlimit"), 3);
}

/// Above the limit heavy flows lose packets, however many light ones there are.
#[test]
fn heavy_flows_pay_for_the_limit() {
    let config = Config {
        admit_bytes: 10_000,
        limit: 50,
        ..Config::default()
    };
    let mut driver = Driver::new(Hhf::node(config, 3).unwrap());
    let mut flows = Vec::new();
    for number in 0..400u64 {
        let flow = if number % 4 == 0 { number } else { 1_000_000 };
        flows.push(flow);
        driver.offer(of_flow(flow, 1000), Time::ZERO);
        for (cookie, reason) in driver.returned.clone() {
            assert_eq!(reason, DropReason::HeadDrop);
            assert_eq!(flows[cookie as usize], 1_000_000);
        }
        if number % 2 == 0 {
            driver.next(Time::ZERO);
        }
    }
    assert!(variable(&driver, "drop_overlimit") > 50);
}
