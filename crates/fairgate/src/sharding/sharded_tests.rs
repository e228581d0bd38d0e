//! Shares of flows in shards, beside the shares that one tree gives.

use alloc::collections::BTreeSet;

use super::*;
use crate::flow::FlowHash;
use crate::packet::Packet;
use crate::queues::tbf::{self, Tbf};
use crate::queues::token_bucket::Profile;
use crate::rounds::cake::{self, Cake, Isolation, Tins};
use crate::rounds::fq_codel::{self, FqCodel};
use crate::sharding::census::Census;
use crate::testing::Driver;
use proptest::prelude::*;

const RATE: Rate = Rate::mbit(100);
/// Bytes per second.
const LINE: f64 = 12_500_000.0;
const LENGTH: u32 = 1000;

fn limit(rate: Rate) -> Limit {
    Limit {
        rate,
        burst: 20_000,
        lengths: Lengths::LinkLayer(LinkLayer::NONE),
    }
}

/// The queues of a tree: so many that few flows share one.
const QUEUES: u32 = 65_536;

/// Returns a fair tree. Its seed, the number of its shard, is the salt by which flows get their queues.
fn fair_tree(rate: Rate, seed: u64) -> Box<dyn Discipline> {
    let config = fq_codel::Config {
        flows: QUEUES,
        ..fq_codel::Config::default()
    };
    let inner = FqCodel::node(config, seed).unwrap();
    let config = tbf::Config {
        profile: Profile::new(rate, 20_000),
        limit: None,
    };
    Box::new(Tbf::node(config, Some(Box::new(inner))).unwrap())
}

fn sharded(workers: u64) -> Node<Sharded> {
    let config = Config {
        limit: limit(RATE),
        key: Key::Flows(FlowBy::FiveTuple),
    };
    let trees = (0..workers).map(|number| fair_tree(RATE, number)).collect();
    Sharded::node(config, trees, 1).unwrap()
}

/// What a flow sends.
#[derive(Clone, Copy, Debug)]
enum Sends {
    /// It always has packets.
    Always,
    /// A packet every so many ns.
    Every(u64),
}

/// A flow of a shard, from a time on and up to another one, ns.
#[derive(Clone, Copy, Debug)]
struct Flow {
    shard: u32,
    sends: Sends,
    active: (u64, u64),
}

fn always(shard: u32) -> Flow {
    Flow {
        shard,
        sends: Sends::Always,
        active: (0, u64::MAX),
    }
}

/// Returns a hash for each flow, which belongs to the flow's shard. No two flows of a shard share a bucket of
/// the census, which would count them once, or a queue of `fair_tree`, which would send them as one.
fn hashes(flows: &[Flow], shards: u32) -> Vec<FlowHash> {
    let mut random = crate::structures::Random::new(1);
    let (mut counted, mut queued) = (BTreeSet::new(), BTreeSet::new());
    let mut hash_in = |shard: u32| loop {
        let hash = FlowHash::from_raw(random.bits());
        if hash.bucket(SALT, shards) == shard
            && counted.insert((shard, Census::place(hash)))
            && queued.insert((shard, hash.bucket(shard.into(), QUEUES)))
        {
            return hash;
        }
    };
    flows.iter().map(|flow| hash_in(flow.shard)).collect()
}

/// The bytes that each flow sends from `from` until `until`, ns, over a line that is much faster than the
/// shards.
fn sent(root: Node<Sharded>, flows: &[Flow], from: u64, until: u64) -> Vec<u64> {
    let shards = root.algorithm().shards.len() as u32;
    let mut driver = Driver::new(root);
    let hashes = hashes(flows, shards);
    let mut owners: Vec<usize> = Vec::new();
    let mut bytes = vec![0; flows.len()];
    let mut queued = vec![0u32; flows.len()];
    let mut next_turn: Vec<u64> = flows.iter().map(|flow| flow.active.0).collect();
    let mut now = 0;
    while now < until {
        for (number, flow) in flows.iter().enumerate() {
            let is_active = (flow.active.0..flow.active.1).contains(&now);
            let offer = |queued: &mut u32, owners: &mut Vec<usize>, driver: &mut Driver<Sharded>| {
                let packet = Packet {
                    flow: hashes[number],
                    ..Packet::of_length(LENGTH)
                };
                owners.push(number);
                *queued += 1;
                driver.offer(packet, Time::from_nanos(now));
                for (cookie, _) in &driver.returned {
                    assert_eq!(
                        owners[*cookie as usize], number,
                        "only the newest is dropped here"
                    );
                }
                *queued -= driver.returned.len() as u32;
            };
            match flow.sends {
                Sends::Always if is_active => {
                    while queued[number] < 8 {
                        offer(&mut queued[number], &mut owners, &mut driver);
                    }
                    next_turn[number] = u64::MAX;
                }
                Sends::Every(gap) if is_active && next_turn[number] <= now => {
                    offer(&mut queued[number], &mut owners, &mut driver);
                    next_turn[number] += gap;
                }
                _ => {}
            }
        }
        let next = driver.next(Time::from_nanos(now));
        for (cookie, _) in &driver.returned {
            queued[owners[*cookie as usize]] -= 1;
        }
        if let Some(cookie) = next {
            let owner = owners[cookie as usize];
            queued[owner] -= 1;
            bytes[owner] += if now >= from { u64::from(LENGTH) } else { 0 };
            continue;
        }
        let due = driver.root.watchdog().map_or(u64::MAX, Time::nanos);
        let turn = next_turn
            .iter()
            .copied()
            .filter(|turn| *turn > now)
            .min()
            .unwrap_or(u64::MAX);
        now = due.min(turn).max(now + 1);
    }
    bytes
}

/// Checks that each flow's rate is within `percent` % of `expected`, in bytes per second.
#[track_caller]
fn check(bytes: &[u64], seconds: f64, expected: &[f64], percent: f64) {
    for (number, (bytes, expected)) in bytes.iter().zip(expected).enumerate() {
        let rate = *bytes as f64 / seconds;
        let error = (rate / expected - 1.0) * 100.0;
        assert!(
            error.abs() <= percent,
            "flow {number} is {error:+.2} % off: {rate} instead of {expected}"
        );
    }
    let total: u64 = bytes.iter().sum();
    let expected: f64 = expected.iter().sum();
    let error = (total as f64 / seconds / expected - 1.0) * 100.0;
    assert!(error.abs() <= 0.5, "the total is {error:+.2} % off");
}

const SECOND: u64 = 1_000_000_000;

/// Backlogged flows get equal rates, however unequally they are spread.
#[test]
fn skewed_flows_get_equal_rates() {
    for (workers, counts) in [
        (2, vec![1, 1]),
        (2, vec![1, 9]),
        (2, vec![1, 40]),
        (4, vec![1, 2, 3, 14]),
        (4, vec![5, 0, 0, 0]),
        (8, vec![1, 0, 7, 0, 2, 2, 30, 1]),
    ] {
        let flows: Vec<Flow> = (0..)
            .zip(&counts)
            .flat_map(|(shard, count)| vec![always(shard); *count])
            .collect();
        let bytes = sent(sharded(workers), &flows, SECOND / 5, 2 * SECOND);
        check(&bytes, 1.8, &vec![LINE / flows.len() as f64; flows.len()], 3.0);
    }
}

/// Light flows get what they ask for, and the others share the rest equally.
#[test]
fn light_flows_beside_backlogged_ones() {
    // 10 flows of 0.5 MB/s in shard 0 with one backlogged flow; three backlogged ones in shard 1.
    let light = Flow {
        sends: Sends::Every(2_000_000),
        ..always(0)
    };
    let flows = [vec![light; 10], vec![always(0)], vec![always(1); 3]].concat();
    let bytes = sent(sharded(2), &flows, SECOND / 5, SECOND * 11 / 5);
    let heavy = (LINE - 5_000_000.0) / 4.0;
    let expected = [vec![500_000.0; 10], vec![heavy; 4]].concat();
    check(&bytes, 2.0, &expected, 3.0);
}

/// A flow that asks for nearly its part gets what it asks for. The others of its shard gain nothing by it.
#[test]
fn a_flow_may_send_nearly_its_part() {
    for percent in [40, 60, 70, 80, 90, 95] {
        // Seven flows, three of them in shard 0.
        let rate = LINE / 7.0 * f64::from(percent) / 100.0;
        let light = Flow {
            sends: Sends::Every((f64::from(LENGTH) * 1e9 / rate) as u64),
            ..always(0)
        };
        let flows = [vec![light], vec![always(0); 2], vec![always(1); 4]].concat();
        let bytes = sent(sharded(2), &flows, SECOND / 2, SECOND * 5 / 2);
        let expected = [vec![rate], vec![(LINE - rate) / 6.0; 6]].concat();
        check(&bytes, 2.0, &expected, 3.0);
    }
}

/// A flow that asks for more than its part gets no more, even if it is alone in its shard and its queue is
/// empty from time to time.
#[test]
fn a_flow_that_asks_for_more_than_its_part_is_held_to_it() {
    // 8 MB/s; its part is 6.25.
    let eager = Flow {
        sends: Sends::Every(125_000),
        ..always(0)
    };
    let bytes = sent(sharded(2), &[eager, always(1)], SECOND / 5, SECOND * 11 / 5);
    check(&bytes, 2.0, &[LINE / 2.0; 2], 3.0);
}

/// When the flows of a shard end, the others have the whole line; when they begin, they have their part. The
/// change takes a few intervals.
#[test]
fn changing_demand_is_followed_within_a_few_intervals() {
    let leaving = Flow {
        active: (0, SECOND),
        ..always(0)
    };
    let coming = Flow {
        active: (SECOND * 3 / 2, u64::MAX),
        ..always(1)
    };
    let flows = [vec![leaving; 4], vec![always(1); 4], vec![coming; 12]].concat();
    let interval = Balancer::new(RATE, 1, 1).interval();
    // The packets that the ending flows have queued last for 3 ms; then 5 intervals.
    let after = SECOND + 3_000_000 + 5 * interval;
    let alone = sent(sharded(2), &flows, after, SECOND * 3 / 2);
    let seconds = (SECOND * 3 / 2 - after) as f64 / 1e9;
    check(&alone[4..8], seconds, &[LINE / 4.0; 4], 3.0);
    let crowded = sent(sharded(2), &flows, SECOND * 3 / 2 + 5 * interval, SECOND * 2);
    let seconds = 0.5 - 5.0 * interval as f64 / 1e9;
    check(&crowded[4..], seconds, &[LINE / 16.0; 16], 3.0);
}

/// Hosts share equally, whatever their flows: cake divides a host's part, and shards are balanced by hosts.
#[test]
fn cake_is_fair_to_hosts_across_shards() {
    let tree = |seed| -> Box<dyn Discipline> {
        let config = cake::Config {
            bandwidth: Some(RATE),
            tins: Tins::Besteffort,
            isolation: Isolation::DestinationHosts,
            ..cake::Config::default()
        };
        Box::new(Cake::node(config, seed).unwrap())
    };
    let config = Config {
        limit: limit(RATE),
        key: Key::Flows(FlowBy::FiveTuple),
    };
    let root = Sharded::node(config, (0..2).map(tree).collect(), 1).unwrap();
    let flows = [vec![always(0)], vec![always(1); 5]].concat();
    let bytes = sent(root, &flows, SECOND / 5, 2 * SECOND);
    check(&bytes, 1.8, &[LINE / 6.0; 6], 3.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Any mixture of backlogged and light flows in up to 6 shards gets the max-min rates.
    #[test]
    fn shares_are_those_of_one_tree(
        workers in 1u32..=6,
        heavy in proptest::collection::vec(0u32..6, 1..20),
        light in proptest::collection::vec((0u32..6, 1u64..100), 0..8),
    ) {
        let mut flows: Vec<Flow> = heavy.iter().map(|shard| always(shard % workers)).collect();
        // Each asks for 1 to 99 % of a part of all flows.
        let part = LINE / (heavy.len() + light.len()) as f64;
        let rates: Vec<f64> = light.iter().map(|(_, percent)| part * *percent as f64 / 100.0).collect();
        flows.extend(light.iter().zip(&rates).map(|((shard, _), rate)| Flow {
            sends: Sends::Every((f64::from(LENGTH) * 1e9 / rate) as u64),
            ..always(shard % workers)
        }));
        let rest = (LINE - rates.iter().sum::<f64>()) / heavy.len() as f64;
        let expected = vec![rest; heavy.len()];
        let bytes = sent(sharded(workers.into()), &flows, SECOND / 2, SECOND * 5 / 2);
        check(&bytes[..heavy.len()], 2.0, &expected, 3.0);
    }
}

#[test]
fn the_number_of_shards_is_limited() {
    let config = Config {
        limit: limit(RATE),
        key: Key::Flows(FlowBy::FiveTuple),
    };
    for count in [0, 65] {
        let trees = (0..count).map(|number| fair_tree(RATE, number)).collect();
        let refused = Sharded::node(config.clone(), trees, 1).err().unwrap();
        assert_eq!(refused.parameter(), Some("workers"));
    }
}

/// A flow stays in its shard, so its packets leave in the order in which they came.
#[test]
fn flows_keep_their_order() {
    let mut driver = Driver::new(sharded(3));
    let flow = |number: u64| FlowHash::from_raw((number % 7).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for number in 0..700 {
        driver.offer(
            Packet {
                flow: flow(number),
                ..Packet::of_length(LENGTH)
            },
            Time::ZERO,
        );
    }
    let mut last = [None; 7];
    let mut now = Time::ZERO;
    let mut left = 700;
    while left > 0 {
        match driver.next(now) {
            Some(cookie) => {
                left -= 1;
                let of_flow = &mut last[(cookie % 7) as usize];
                assert!(of_flow.is_none_or(|before| before < cookie));
                *of_flow = Some(cookie);
            }
            None => now = driver.root.watchdog().expect("packets wait").max(now + 1),
        }
        left -= driver.returned.len();
    }
}
