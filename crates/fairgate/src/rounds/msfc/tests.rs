//! Tests of the discipline as a whole.

use super::*;
use crate::aqm::codel::Params;
use crate::classify::{Filter, Masked, Match, Outcome};
use crate::discipline::{Discipline, Reconfigure};
use crate::flow::FlowHash;
use crate::packet::Packet;
use crate::packet::{ClassId, DropReason};
use crate::testing::Driver;
use core::time::Duration;
use proptest::prelude::*;

/// Classes by priority: priority `p` is class `p`.
fn by_number(prios: u8) -> Config {
    let mut map = [0; 16];
    for (priority, class) in map.iter_mut().enumerate() {
        *class = (priority as u8).min(prios - 1);
    }
    Config {
        prios,
        class_by: ClassBy::Priority(map),
        ..Config::default()
    }
}

fn packet(class: u8, flow: u64, length: u32) -> Packet {
    Packet {
        priority: class,
        flow: FlowHash::from_raw(flow.wrapping_mul(0x5851_f42d_4c95_7f2d)),
        ..Packet::of_length(length)
    }
}

fn rejected(change: impl FnOnce(&mut Config)) -> ConfigError {
    let mut config = Config::default();
    change(&mut config);
    Msfc::node(config, 0).unwrap_err()
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    assert_eq!(rejected(|config| config.prios = 0).parameter(), Some("prios"));
    assert_eq!(rejected(|config| config.prios = 17).parameter(), Some("prios"));
    assert_eq!(
        rejected(|config| config.ratio = u32::MAX).parameter(),
        Some("ratio")
    );
    assert_eq!(rejected(|config| config.ratio = 0).parameter(), Some("ratio"));
    assert_eq!(rejected(|config| config.ratio = 1000).parameter(), Some("ratio"));
    assert_eq!(rejected(|config| config.prios = 2).parameter(), Some("class_by"));
    assert_eq!(rejected(|config| config.flows = 0).parameter(), Some("flows"));
    assert_eq!(
        rejected(|config| config.flows = 1 << 20).parameter(),
        Some("flows")
    );
    assert_eq!(rejected(|config| config.limit = 0).parameter(), Some("limit"));
    let dangling = rejected(|config| config.classifier.default = Some(4));
    assert!(matches!(dangling, ConfigError::NoSuchClass { .. }));
}

#[test]
fn the_packet_then_a_filter_then_the_field_determines_the_class() {
    let mut config = Config::default();
    config.classifier.handle = 0x10;
    let filter = Filter {
        condition: Match {
            mark: Some(Masked::<u32>::exactly(9)),
            ..Match::default()
        },
        outcome: Outcome::Class(1),
        ..Filter::default()
    };
    config.classifier.filters = vec![filter].into();
    let mut pool = Pool::with_capacity(1);
    let msfc = Msfc::node(config, 0).unwrap();
    let mut class_of = |change: fn(&mut Packet)| {
        let mut packet = Packet::of_length(100);
        packet.dscp = 46;
        change(&mut packet);
        let id = pool.insert(packet).unwrap();
        let named = msfc.algorithm().config.classifier.classify_again(id, &pool);
        let class = msfc.algorithm().class_of(named, id, &pool);
        pool.release(id);
        class
    };
    assert_eq!(class_of(|_| {}), 2);
    assert_eq!(class_of(|packet| packet.dscp = 8), 0);
    assert_eq!(class_of(|packet| packet.dscp = 0), 1);
    assert_eq!(class_of(|packet| packet.mark = 9), 0);
    assert_eq!(
        class_of(|packet| (packet.mark, packet.class) = (9, ClassId::new(0x10, 2))),
        1
    );
    assert_eq!(class_of(|packet| packet.class = ClassId::new(0x10, 4)), 2);
}

/// The overflow drops the only packet of the class that has the turn: the same call continues with the next
/// class.
#[test]
fn an_emptied_class_is_skipped() {
    let config = Config {
        limit: 4,
        ..by_number(2)
    };
    let mut driver = Driver::new(Msfc::node(config, 0).unwrap());
    driver.offer(packet(1, 1, 1500), Time::ZERO);
    driver.offer(packet(1, 1, 1500), Time::ZERO);
    assert_eq!(driver.next(Time::ZERO), Some(0));
    for _ in 0..4 {
        driver.offer(packet(0, 1, 100), Time::ZERO);
    }
    assert_eq!(driver.returned, [(1, DropReason::LongestFlow)]);
    assert_eq!(driver.next(Time::ZERO), Some(2));
    assert_eq!(driver.root.algorithm().classes.backlogged(), 1);
}

#[test]
fn a_change_of_the_classes_keeps_the_packets() {
    let mut driver = Driver::new(Msfc::node(by_number(3), 0).unwrap());
    for class in [0, 1, 2, 2] {
        driver.offer(packet(class, 5, 500), Time::ZERO);
    }
    let none = Config {
        prios: 0,
        ..by_number(3)
    };
    assert!(
        driver
            .root
            .reconfigure(&none, Time::ZERO, &mut driver.pool)
            .is_err()
    );
    driver.reconfigure(by_number(2), Time::ZERO);
    assert_eq!(driver.root.backlog().packets, 4);
    let shorter = Config {
        limit: 3,
        ..by_number(2)
    };
    driver.reconfigure(shorter, Time::ZERO);
    assert_eq!(driver.returned, [(1, DropReason::Reconfigured)]);
    assert_eq!(driver.drain(Time::ZERO).len(), 3);
}

proptest! {
    /// Backlogged classes share 1 : r : r^2 with any number of flows in each: after any number of packets two
    /// classes are within a turn and two packets of their shares.
    #[test]
    fn classes_share_by_the_ratio_with_any_number_of_flows(
        ratio in 1u32..5,
        flows in prop::collection::vec(1u64..40, 2..5),
        lengths in prop::collection::vec(40u32..1515, 1..50),
    ) {
        let prios = flows.len() as u8;
        let config = Config { ratio, ..by_number(prios) };
        let mut driver = Driver::new(Msfc::node(config, 3).unwrap());
        // By cookie.
        let mut offered: Vec<(u8, u32)> = Vec::new();
        let offer = |driver: &mut Driver<Msfc>, offered: &mut Vec<(u8, u32)>, class: u8| {
            let number = offered.len();
            let length = lengths[number % lengths.len()];
            offered.push((class, length));
            let flow = number as u64 % flows[usize::from(class)];
            driver.offer(packet(class, flow, length), Time::ZERO);
        };
        for class in 0..prios {
            for _ in 0..200 {
                offer(&mut driver, &mut offered, class);
            }
        }
        let weights: Vec<u64> = (0..prios).map(|class| u64::from(ratio).pow(class.into())).collect();
        let mut sent = vec![0u64; flows.len()];
        for _ in 0..2000 {
            let (class, length) = offered[driver.next(Time::ZERO).unwrap() as usize];
            sent[usize::from(class)] += u64::from(length);
            offer(&mut driver, &mut offered, class);
            // Bytes divided by the class's weight are equal for all classes.
            let turns: Vec<u64> = sent.iter().zip(&weights).map(|(sent, weight)| sent / weight).collect();
            let spread = turns.iter().max().unwrap() - turns.iter().min().unwrap();
            prop_assert!(spread <= 1514 + 2 * 1514, "{:?} in units of {:?}", turns, weights);
        }
    }

    /// With a flow-aware ratio flows share 1 : r : r^2 by their classes, with any number of flows in each: at
    /// any time two flows are within a turn of their class and a turn of the flow of their shares.
    #[test]
    fn flows_share_by_a_flow_aware_ratio(
        ratio in 1u32..5,
        numbers in prop::collection::vec(1usize..20, 2..4),
        lengths in prop::collection::vec(40u32..1515, 1..50),
    ) {
        let flows = flows_of(&numbers);
        let config = Config { ratio, flow_aware: true, ..by_number(numbers.len() as u8) };
        let mut backlog = Backlog::new(config, &flows, &lengths);
        for _ in 0..3000 {
            backlog.step();
            let weight = |class: u8| u64::from(ratio).pow(class.into());
            let turns = backlog.sent.iter().zip(&flows).map(|(sent, flow)| sent / weight(flow.0));
            let (least, most) = (turns.clone().min().unwrap(), turns.max().unwrap());
            prop_assert!(most - least <= 6 * 1514, "{:?} of {:?}", backlog.sent, flows);
        }
    }

    /// Flows that rise and sink keep their packets in order, and lose packets only to CoDel.
    #[test]
    fn packets_of_a_flow_that_changes_its_class_stay_in_order(
        flow_aware in any::<bool>(),
        steps in prop::collection::vec((0u64..6, 0u64..9, 0u64..60, any::<bool>()), 50..400),
    ) {
        let config = Config {
            flow_aware,
            auto_priority: Some(AutoPriority { interval: Duration::from_millis(50), drops: 1 }),
            codel: Params {
                target: Duration::from_millis(1),
                interval: Duration::from_millis(5),
                ..Params::default()
            },
            ..by_number(3)
        };
        let mut driver = Driver::new(Msfc::node(config, 5).unwrap());
        let (mut now, mut offered) = (Time::ZERO, Vec::new());
        let mut latest = [None; 6];
        for (flow, count, wait, leaves) in steps {
            for _ in 0..count {
                offered.push(flow);
                driver.offer(packet(1, flow + 1, 1000), now);
            }
            now += wait * 100_000;
            if leaves && let Some(cookie) = driver.next(now) {
                let latest = &mut latest[offered[cookie as usize] as usize];
                prop_assert!(*latest < Some(cookie), "{cookie} after {latest:?}");
                *latest = Some(cookie);
            }
        }
    }
}

/// Flows with their own queues, `numbers[p]` in class `p`: class, and the number of the raw hash.
fn flows_of(numbers: &[usize]) -> Vec<(u8, u64)> {
    let mut flows = Vec::new();
    for (class, &number) in (0..).zip(numbers) {
        let mut buckets = Vec::new();
        for candidate in 1.. {
            if buckets.len() == number {
                break;
            }
            let bucket = packet(class, candidate, 0)
                .flow
                .bucket(SEED, Config::default().flows);
            if !buckets.contains(&bucket) {
                buckets.push(bucket);
                flows.push((class, candidate));
            }
        }
    }
    flows
}

const SEED: u64 = 3;

/// Flows that always have packets queued: after each packet that leaves, another one of its flow is enqueued.
struct Backlog<'a> {
    driver: Driver<Msfc>,
    flows: &'a [(u8, u64)],
    lengths: &'a [u32],
    /// Flow and length, by cookie.
    offered: Vec<(usize, u32)>,
    /// Bytes of each flow.
    sent: Vec<u64>,
}

impl<'a> Backlog<'a> {
    fn new(config: Config, flows: &'a [(u8, u64)], lengths: &'a [u32]) -> Backlog<'a> {
        let mut backlog = Backlog {
            driver: Driver::new(Msfc::node(config, SEED).unwrap()),
            flows,
            lengths,
            offered: Vec::new(),
            sent: vec![0; flows.len()],
        };
        for flow in (0..flows.len()).chain(0..flows.len()) {
            backlog.offer(flow);
        }
        backlog
    }

    fn offer(&mut self, flow: usize) {
        let length = self.lengths[self.offered.len() % self.lengths.len()];
        self.offered.push((flow, length));
        let (class, number) = self.flows[flow];
        self.driver.offer(packet(class, number, length), Time::ZERO);
    }

    fn step(&mut self) {
        let (flow, length) = self.offered[self.driver.next(Time::ZERO).unwrap() as usize];
        self.sent[flow] += u64::from(length);
        self.offer(flow);
    }
}

/// Section 3.3 of the thesis: few flows in the lowest class, most flows in the class above. With the thesis's
/// ratio each of the few gets five times as much as each of the many; with a flow-aware ratio it gets half as
/// much.
#[test]
fn a_flow_aware_ratio_fixes_the_traffic_distribution_caveat() {
    let flows = flows_of(&[2, 20]);
    let shares = |flow_aware| {
        let config = Config {
            flow_aware,
            ..by_number(2)
        };
        let mut backlog = Backlog::new(config, &flows, &[1000]);
        (0..42_000).for_each(|_| backlog.step());
        backlog.sent.iter().map(|sent| sent / 1000).collect::<Vec<_>>()
    };
    let near = |sent: u64, expected: u64| sent.abs_diff(expected) <= 10;
    let (plain, aware) = (shares(false), shares(true));
    assert!(plain[..2].iter().all(|&sent| near(sent, 7000)), "{plain:?}");
    assert!(plain[2..].iter().all(|&sent| near(sent, 1400)), "{plain:?}");
    assert!(aware[..2].iter().all(|&sent| near(sent, 1000)), "{aware:?}");
    assert!(aware[2..].iter().all(|&sent| near(sent, 2000)), "{aware:?}");
}

/// A turn of a class with many flows is scaled down, so that a packet of another class need not wait for all
/// of them.
#[test]
fn a_class_with_many_flows_does_not_occupy_the_link() {
    let flows = flows_of(&[100, 0, 1]);
    let config = Config {
        flow_aware: true,
        ..by_number(3)
    };
    let mut backlog = Backlog::new(config, &flows[..100], &[1500]);
    for step in 0..500 {
        backlog.step();
        if step % 50 == 0 {
            let call = backlog.offered.len() as u64;
            backlog.offered.push((0, 0));
            backlog.driver.offer(packet(2, flows[100].1, 200), Time::ZERO);
            let before = (0..).find(|_| {
                let next = backlog.driver.next(Time::ZERO).unwrap();
                let (flow, _) = backlog.offered[next as usize];
                if next != call {
                    backlog.offer(flow);
                }
                next == call
            });
            assert!(before <= Some(3), "{before:?} packets were sent before it");
        }
    }
}

/// Of two unmarked flows the one with a standing queue sinks and the other rises, and they share by their
/// classes.
#[test]
fn flows_find_their_classes_by_behaviour() {
    let config = Config {
        auto_priority: Some(AutoPriority {
            interval: Duration::from_millis(500),
            drops: 2,
        }),
        ..Config::default()
    };
    let mut driver = Driver::new(Msfc::node(config, SEED).unwrap());
    let flows = flows_of(&[0, 2]);
    // The link sends a packet per millisecond. Flow 0 keeps 30 queued, and flow 1 sends one each 10 ms.
    let mut bulk = 0;
    let mut offered = Vec::new();
    for millis in 0..3000 {
        let now = Time::from_millis(millis);
        let calls = u64::from(millis % 10 == 0);
        for flow in core::iter::repeat_n(0, 30 - bulk).chain((0..calls).map(|_| 1)) {
            offered.push(flow);
            driver.offer(packet(1, flows[flow].1, 1000), now);
        }
        let sent = driver.next(now).map(|cookie| offered[cookie as usize]);
        bulk = 30 - driver.returned.len() - usize::from(sent == Some(0));
    }
    let mut classes = [0; 2];
    let msfc = driver.root.algorithm();
    for (class, flow) in classes.iter_mut().zip(&flows) {
        let bucket = packet(1, flow.1, 0).flow.bucket(SEED, msfc.flows.count());
        *class = msfc.behaviour.as_ref().unwrap().class(bucket);
    }
    assert_eq!(classes, [0, 2]);
}

#[test]
fn a_change_of_parameters_keeps_the_classes_of_flows() {
    let auto = |drops| Config {
        auto_priority: Some(AutoPriority {
            drops,
            ..AutoPriority::default()
        }),
        ..Config::default()
    };
    let mut driver = Driver::new(Msfc::node(auto(2), SEED).unwrap());
    let class = |driver: &Driver<Msfc>| {
        let msfc = driver.root.algorithm();
        let flow = packet(1, 1, 0).flow.bucket(SEED, msfc.flows.count());
        msfc.behaviour.as_ref().map(|behaviour| behaviour.class(flow))
    };
    for seconds in [0, 6] {
        driver.offer(packet(1, 1, 1000), Time::from_secs(seconds));
        assert!(driver.next(Time::from_secs(seconds)).is_some());
    }
    assert_eq!(class(&driver), Some(2), "calm for more than 5 s");
    driver.offer(packet(1, 1, 1000), Time::from_secs(7));
    driver.reconfigure(auto(3), Time::from_secs(7));
    assert_eq!(class(&driver), Some(2));
    driver.reconfigure(Config::default(), Time::from_secs(7));
    assert_eq!(class(&driver), None);
    driver.reconfigure(auto(3), Time::from_secs(7));
    assert_eq!(class(&driver), Some(1), "all flows start again");
    assert_eq!(driver.drain(Time::from_secs(7)).len(), 1);
}
