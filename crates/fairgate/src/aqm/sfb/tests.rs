use alloc::collections::VecDeque;
use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::classify::{Filter, Match, Outcome};
use crate::discipline::Inspect;
use crate::packet::{Ecn, Packet};
use crate::probability::Probability;
use crate::testing::Driver;

fn sfb(config: Config) -> Driver<Sfb> {
    Driver::new(Sfb::node(config, 1).unwrap())
}

fn of_flow(flow: u64) -> Packet {
    Packet {
        flow: FlowHash::from_raw(mixed(flow)),
        ..Packet::of_length(1000)
    }
}

fn variable(driver: &Driver<Sfb>, wanted: &str) -> i64 {
    let mut found = None;
    driver.root.visit_variables(&mut |name, value| {
        if let (true, Variable::Integer(value)) = (name == wanted, value) {
            found = Some(value);
        }
    });
    found.expect("the variable exists")
}

/// tc's formulas, and the numbers that it prints for its defaults.
#[test]
fn parameters_are_derived_as_in_tc() {
    let derived = |max, target| {
        let config = Config {
            max,
            target,
            ..Config::default()
        };
        (config.most_of_flow(), config.packets_of_bin())
    };
    assert_eq!(derived(None, None), (25, 20));
    assert_eq!(derived(None, Some(10)), (12, 10));
    assert_eq!(derived(Some(40), None), (40, 32));
    assert_eq!(derived(Some(10), Some(20)), (10, 20));
    assert_eq!(Config::default().increments(), [33, 3]);
    let certain = Config {
        increment: Probability::ONE,
        decrement: Probability::ZERO,
        ..Config::default()
    };
    assert_eq!(certain.increments(), [65_535, 0]);
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    let rejected = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Sfb::node(config, 0).unwrap_err().parameter()
    };
    assert_eq!(rejected(|config| config.limit = 0), Some("limit"));
    assert_eq!(rejected(|config| config.max = Some(0)), Some("max"));
    assert_eq!(rejected(|config| config.target = Some(65_536)), Some("target"));
}

/// The rules, written down over plain lists (sch_sfb.c, `sfb_enqueue` and `sfb_dequeue`).
struct Model {
    config: Config,
    queue: VecDeque<(u64, [Option<u32>; 2])>,
    packets: [[[u64; 16]; 8]; 2],
    probability: [[[i64; 16]; 8]; 2],
    salts: [u64; 2],
    slot: usize,
    warm: bool,
    rehashed: Option<u64>,
    tokens: u64,
    filled: Option<u64>,
    random: Random,
}

impl Model {
    fn new(config: Config, seed: u64) -> Model {
        let mut random = Random::new(seed);
        Model {
            tokens: config.penalty_burst.into(),
            config,
            queue: VecDeque::new(),
            packets: [[[0; 16]; 8]; 2],
            probability: [[[0; 16]; 8]; 2],
            salts: [random.bits(), random.bits()],
            slot: 0,
            warm: false,
            rehashed: None,
            filled: None,
            random,
        }
    }

    fn cells(hash: u32) -> Vec<(usize, usize)> {
        let digits = format!("{hash:08x}");
        let nibble = |digit: char| digit.to_digit(16).unwrap() as usize;
        digits.chars().rev().map(nibble).enumerate().collect()
    }

    fn learn(&mut self, slot: usize, hash: u32) -> (u64, i64) {
        let [increment, decrement] = self.config.increments().map(i64::from);
        let mut least = (u64::MAX, i64::MAX);
        for (level, bin) in Model::cells(hash) {
            let (packets, p) = (
                self.packets[slot][level][bin],
                &mut self.probability[slot][level][bin],
            );
            match packets {
                0 => *p = (*p - decrement).max(0),
                _ if packets >= self.config.packets_of_bin().into() => *p = (*p + increment).min(65_535),
                _ => {}
            }
            least = (least.0.min(packets), least.1.min(*p));
        }
        least
    }

    /// Returns what becomes of a packet: queued and marked, or the reason of its drop.
    fn enqueue(&mut self, cookie: u64, flow: FlowHash, ecn: Ecn, now: u64) -> Result<bool, DropReason> {
        if self.queue.len() as u64 >= self.config.limit.into() {
            return Err(DropReason::QueueLimit);
        }
        let [interval, warmup] = [self.config.rehash, self.config.warmup].map(|time| time.as_nanos() as u64);
        let since = *self.rehashed.get_or_insert(now);
        if interval > 0 && now > since + interval {
            self.salts[self.slot] = self.random.bits();
            self.slot = 1 - self.slot;
            self.warm = false;
            self.rehashed = Some(now);
        } else if interval > 0 && warmup > 0 && now + warmup > since + interval && now > since {
            self.warm = true;
        }
        let hash = |slot: usize, model: &Model| ((flow.salted(model.salts[slot]) >> 32) as u32).max(1);
        let (slot, other) = (self.slot, 1 - self.slot);
        let mut hashes = [None; 2];
        hashes[slot] = Some(hash(slot, self));
        let (packets, p) = self.learn(slot, hashes[slot].unwrap());
        if packets >= self.config.most_of_flow().into() {
            return Err(DropReason::FlowLimit);
        }
        let mut is_marked = false;
        if p >= 65_535 {
            if self.warm {
                hashes[other] = Some(hash(other, self));
                self.learn(other, hashes[other].unwrap());
            }
            let [rate, burst] = [self.config.penalty_rate, self.config.penalty_burst].map(u64::from);
            if rate == 0 || burst == 0 {
                return Err(DropReason::Policed);
            }
            let filled = *self.filled.get_or_insert(now);
            if self.tokens == 0 {
                let micros = ((now - filled) / 1000).min(10_000_000);
                self.tokens = (micros * rate / 1_000_000).min(burst);
                self.filled = Some(now);
            }
            if self.tokens == 0 {
                return Err(DropReason::Policed);
            }
            self.tokens -= 1;
        } else {
            let r = i64::from(self.random.bits32() & 0xffff);
            if r < p {
                if r < (p - 32_767).max(0) * 2 || !ecn.is_capable() {
                    return Err(DropReason::Aqm);
                }
                is_marked = ecn != Ecn::Ce;
            }
        }
        self.count(hashes, |packets| packets + 1);
        self.queue.push_back((cookie, hashes));
        Ok(is_marked)
    }

    fn count(&mut self, hashes: [Option<u32>; 2], change: fn(u64) -> u64) {
        for (slot, hash) in hashes.into_iter().enumerate() {
            for (level, bin) in hash.map(Model::cells).into_iter().flatten() {
                let packets = &mut self.packets[slot][level][bin];
                *packets = change(*packets);
            }
        }
    }

    fn dequeue(&mut self) -> Option<u64> {
        let (cookie, hashes) = self.queue.pop_front()?;
        self.count(hashes, |packets| packets.saturating_sub(1));
        Some(cookie)
    }
}

proptest! {
    /// Every decision equals that of the model, and empty queues have empty bins.
    #[test]
    fn decisions_equal_those_of_the_model(
        numbers in (1u32..60, 1u32..20, 1u32..20, 0u32..200, 0u32..5),
        steps in (0u64..1 << 31, 0u64..1 << 28),
        times in (0u64..50_000_000, 0u64..20_000_000),
        operations in prop::collection::vec((0u8..5, 0u64..6, 0u8..4, 0u64..2_000_000), 0..400),
        seed in any::<u64>(),
    ) {
        let (limit, max, target, penalty_rate, penalty_burst) = numbers;
        let config = Config {
            limit,
            max: Some(max),
            target: Some(target),
            increment: Probability::from_parts(steps.0),
            decrement: Probability::from_parts(steps.1),
            penalty_rate,
            penalty_burst,
            rehash: Duration::from_nanos(times.0),
            warmup: Duration::from_nanos(times.1),
            classifier: Default::default(),
        };
        let mut driver = Driver::new(Sfb::node(config.clone(), seed).unwrap());
        let mut model = Model::new(config, seed);
        let (mut now, mut cookie) = (0, 0);
        for (operation, flow, ecn, pause) in operations {
            now += pause;
            if operation == 0 {
                prop_assert_eq!(driver.next(Time::from_nanos(now)), model.dequeue());
                continue;
            }
            let packet = Packet { ecn: Ecn::from_bits(ecn), ..of_flow(flow) };
            let before = driver.root.statistics().marked;
            driver.offer(packet, Time::from_nanos(now));
            let expected = model.enqueue(cookie, packet.flow, packet.ecn, now);
            cookie += 1;
            let dropped = driver.returned.first().map(|(_, reason)| *reason);
            prop_assert_eq!(dropped, expected.err());
            let marked = driver.root.statistics().marked - before;
            // A packet is marked before it is found to be dropped never.
            prop_assert_eq!(marked == 1, expected == Ok(true));
        }
        while let Some(cookie) = model.dequeue() {
            prop_assert_eq!(driver.next(Time::from_nanos(now)), Some(cookie));
        }
        prop_assert_eq!(variable(&driver, "maxqlen"), 0);
    }
}

/// A flow of 10,000 packets/s on a link of 1000 packets/s that ignores drops, beside one of 100 packets/s.
/// The latter loses nothing, and the former comes into the penalty box.
#[test]
fn a_flow_that_does_not_react_is_held_back() {
    let mut driver = sfb(Config {
        increment: Probability::ratio(5, 1000),
        ..Config::default()
    });
    let mut flows = Vec::new();
    let mut sent = [0u32; 2];
    for step in 0..20_000u64 {
        let now = Time::from_micros(500 * step);
        if step % 20 == 0 {
            flows.push(1);
            driver.offer(of_flow(2), now);
        }
        flows.extend([0; 5]);
        for _ in 0..5 {
            driver.offer(of_flow(1), now);
        }
        if step % 2 == 0
            && let Some(cookie) = driver.next(now)
        {
            sent[flows[cookie as usize]] += 1;
        }
    }
    assert!(sent[1] >= 995, "{sent:?} of 1000 packets of the light flow");
    let statistics = driver.root.statistics();
    assert!(statistics.dropped_for(DropReason::Policed) > 0, "{statistics:?}");
}

/// Flows that keep few packets queued are neither marked nor dropped.
#[test]
fn short_queues_are_left_alone() {
    let mut driver = sfb(Config::default());
    for step in 0..10_000u64 {
        let now = Time::from_millis(step);
        driver.offer(of_flow(step % 7), now);
        driver.offer(of_flow(step % 11), now);
        driver.next(now);
        driver.next(now);
    }
    let statistics = driver.root.statistics();
    assert_eq!((statistics.dropped.packets, statistics.marked), (0, 0));
}

/// With filters, a class is a flow, and a packet that no filter takes is dropped, as in Linux.
#[test]
fn filters_choose_flows() {
    let filter = |dscp, class| Filter {
        condition: Match {
            dscp: Some(dscp..=dscp),
            ..Match::default()
        },
        outcome: Outcome::Class(class),
        ..Filter::default()
    };
    let mut config = Config {
        max: Some(3),
        target: Some(60),
        ..Config::default()
    };
    config.classifier.filters = vec![filter(10, 1), filter(20, 1), filter(30, 2)].into();
    let mut driver = sfb(config);
    let of_dscp = |dscp| Packet {
        dscp,
        ..of_flow(dscp.into())
    };
    let offer = |driver: &mut Driver<Sfb>, dscp| {
        driver.offer(of_dscp(dscp), Time::ZERO);
        driver.returned.first().map(|(_, reason)| *reason)
    };
    assert_eq!(offer(&mut driver, 40), Some(DropReason::NoClass));
    for dscp in [10, 20, 10] {
        assert_eq!(offer(&mut driver, dscp), None);
    }
    assert_eq!(offer(&mut driver, 20), Some(DropReason::FlowLimit));
    assert_eq!(offer(&mut driver, 30), None);
}

#[test]
fn a_change_of_parameters_keeps_packets() {
    let mut driver = sfb(Config::default());
    for flow in 0..20 {
        driver.offer(of_flow(flow), Time::ZERO);
    }
    let lower = Config {
        limit: 15,
        ..Config::default()
    };
    driver.reconfigure(lower, Time::ZERO);
    assert!(
        driver
            .returned
            .iter()
            .all(|(_, reason)| *reason == DropReason::Reconfigured)
    );
    assert_eq!(driver.drain(Time::ZERO), (0..15).collect::<Vec<_>>());
    assert_eq!(variable(&driver, "maxqlen"), 0);
}
