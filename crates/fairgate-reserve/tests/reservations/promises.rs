//! The promised delay holds: real trees, flows that use their token buckets as badly as they may, and cross
//! traffic that never ends.

use std::time::Duration;

use fairgate::{Link, Next, Packet, Rate, Time};
use fairgate_config::{Registry, Spec};
use fairgate_reserve::{Refusal, Reservations, Terms};
use proptest::prelude::*;

/// The longest packet of the link, bytes.
const LONGEST: u32 = 1514;

/// A scheduler, as the text of a tree with two classes that are not reserved.
fn tree(scheduler: &str, link: Rate, first: u32) -> Spec {
    let bits = link.bits_per_second();
    let classes = match scheduler {
        "hfsc" => format!("1 ls={bits}bit / fifo limit=100000; 2 ls=1mbit rt=100kbit / fifo limit=100000"),
        _ => format!("1 weight={first} / fifo limit=100000; 2 weight=7 / fifo limit=100000"),
    };
    let text = format!("tbf rate={bits}bit burst={LONGEST}b / {scheduler} default=1 {{ {classes} }}");
    Spec::inline(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// What a flow does with its tokens.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// Sends as soon as it has tokens for a packet.
    AtOnce,
    /// Waits until the bucket is full, and empties it.
    InBursts,
}

#[derive(Clone, Debug)]
struct Flow {
    terms: Terms,
    how: Use,
    begin: u64,
    sizes: Vec<u32>,
}

/// A packet: arrival, flow (0 for cross traffic), length.
type Arrival = (u64, usize, u32);

/// Returns what a flow sends up to `end`. It conforms to its bucket.
fn arrivals(number: usize, flow: &Flow, end: u64) -> Vec<Arrival> {
    // Tokens are counted in bits times 10^9, so that nothing is rounded.
    let unit = 8_000_000_000_u128;
    let (rate, full) = (
        u128::from(flow.terms.rate.bits_per_second()),
        u128::from(flow.terms.burst) * unit,
    );
    let (mut tokens, mut now) = (full, flow.begin);
    let mut sent = Vec::new();
    for &size in flow.sizes.iter().cycle() {
        let needed = u128::from(size) * unit;
        if tokens < needed {
            let wanted = match flow.how {
                Use::AtOnce => needed,
                Use::InBursts => full,
            };
            let wait = (wanted - tokens).div_ceil(rate);
            tokens = (tokens + wait * rate).min(full);
            now += wait as u64;
        }
        if now >= end {
            return sent;
        }
        tokens -= needed;
        sent.push((now, number, size));
    }
    sent
}

/// Sends all through the tree. Returns the longest delay of each flow, and how many packets of reserved flows
/// were lost.
fn longest_delays(tree: &Spec, flows: &[Flow], link: Rate, seed: u64) -> (Vec<Duration>, u64) {
    let end = 1_500_000_000;
    let mut coming: Vec<Arrival> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        coming.extend(arrivals(number + 1, flow, end));
    }
    // Cross traffic in both other classes: together more than the link.
    let packet = link.transmission_nanos(LONGEST.into());
    let mut time = seed % packet.max(1);
    while time < end {
        coming.push((time, 0, LONGEST));
        coming.push((
            time,
            usize::MAX,
            if time.is_multiple_of(3) { 64 } else { LONGEST },
        ));
        time += packet.max(1);
    }
    coming.sort_by_key(|&(at, ..)| at);
    let mut driver: Link<(u64, usize)> = Link::new(tree.build(seed).unwrap(), 300_000);
    let mut delays = vec![Duration::ZERO; flows.len()];
    let mut lost = 0;
    let (mut coming, mut due) = (coming.into_iter().peekable(), None::<u64>);
    while let Some(now) = [due, coming.peek().map(|&(at, ..)| at)]
        .into_iter()
        .flatten()
        .min()
    {
        let time = Time::from_nanos(now);
        while let Some((at, flow, length)) = coming.next_if(|&(at, ..)| at == now) {
            let dscp = if flow == usize::MAX { 63 } else { flow as u8 };
            let packet = Packet {
                dscp,
                ..Packet::of_length(length)
            };
            driver.enqueue(packet, (at, flow), time).unwrap();
        }
        due = loop {
            let next = driver.dequeue(time);
            while let Some(dropped) = driver.take_dropped() {
                let (_, flow) = dropped.payload;
                lost += u64::from((1..=flows.len()).contains(&flow));
            }
            match next {
                Next::Packet(departure) => {
                    let (at, flow) = departure.payload;
                    if let Some(longest) = flow.checked_sub(1).and_then(|flow| delays.get_mut(flow)) {
                        *longest = (*longest).max(Duration::from_nanos(now - at));
                    }
                }
                Next::Wait(until) => break Some(until.nanos()),
                Next::Idle => break None,
            }
        };
        if now > 4 * end {
            break;
        }
    }
    (delays, lost)
}

/// Reserves what can be reserved. Returns the flows whose reservations were admitted, with the tree and the
/// promises.
fn reserve(tree: Spec, flows: Vec<Flow>) -> (Vec<Flow>, Spec, Vec<Duration>) {
    let registry = Registry::builtin();
    let cross = "filter add in=1 class=2 dscp=63";
    let mut tree = tree.edited(cross, &registry).unwrap();
    let mut table = Reservations::new(LONGEST);
    let mut admitted: Vec<Flow> = Vec::new();
    for mut flow in flows {
        flow.terms.filter = format!("dscp={}", admitted.len() + 1);
        let name = format!("flow{}", admitted.len() + 1);
        match table.add(&tree, &registry, &name, flow.terms.clone(), Time::ZERO) {
            Ok(changed) => {
                (table, tree) = changed;
                admitted.push(flow);
            }
            Err(
                Refusal::Capacity { .. } | Refusal::Delay { .. } | Refusal::TooShort { .. } | Refusal::Others,
            ) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let promise = |number: usize| table.get(&format!("flow{}", number + 1)).unwrap().grant.delay;
    let promises = (0..admitted.len()).map(promise).collect();
    (admitted, tree, promises)
}

fn flow() -> impl Strategy<Value = Flow> {
    let terms = (50_000_u64..6_000_000, 64_u32..=LONGEST, 1_u64..12);
    let delay = prop::option::of(2_000_u64..200_000);
    let how = prop_oneof![Just(Use::AtOnce), Just(Use::InBursts)];
    let fractions = prop::collection::vec(1_u32..=16, 1..5);
    (terms, delay, how, 0_u64..50_000_000, fractions).prop_map(
        |((rate, max_packet, packets), delay, how, begin, fractions)| {
            // The first packet is the longest one, so that the bucket can be emptied by it.
            let shorter = fractions
                .into_iter()
                .map(|part| (max_packet * part / 16).max(60).min(max_packet));
            Flow {
                terms: Terms {
                    rate: Rate::from_bits_per_second(rate).unwrap(),
                    burst: u64::from(max_packet) * packets,
                    max_packet,
                    delay: delay.map(Duration::from_micros),
                    filter: String::new(),
                    lifetime: Duration::from_secs(90),
                },
                how,
                begin,
                sizes: [max_packet].into_iter().chain(shorter).collect(),
            }
        },
    )
}

const SCHEDULERS: [&str; 6] = ["hfsc", "wf2q_plus", "qfq", "s_kps", "gfq", "scfq"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_promise_is_broken(
        scheduler in prop::sample::select(&SCHEDULERS[..]),
        megabits in 2_u64..30,
        first in 50_u32..2_000,
        flows in prop::collection::vec(flow(), 1..6),
        seed: u64,
    ) {
        let link = Rate::mbit(megabits);
        let (flows, tree, promises) = reserve(tree(scheduler, link, first), flows);
        let (delays, lost) = longest_delays(&tree, &flows, link, seed);
        prop_assert_eq!(lost, 0, "packets of reserved flows were dropped");
        for ((delay, promise), flow) in delays.iter().zip(&promises).zip(&flows) {
            prop_assert!(delay <= promise, "{scheduler}: {delay:?} > {promise:?} for {flow:?}");
            if let Some(wanted) = flow.terms.delay {
                prop_assert!(*promise <= wanted, "{scheduler}: {promise:?} is not {wanted:?}");
            }
        }
    }
}

/// A promise is worth something: traffic exists that comes near it, and without the reservation the same flow
/// waits much longer.
#[test]
fn promises_are_not_far_from_what_can_happen() {
    let link = Rate::mbit(10);
    let flow = Flow {
        terms: Terms {
            rate: Rate::mbit(1),
            burst: 12_000,
            max_packet: 1_200,
            delay: Some(Duration::from_millis(30)),
            filter: String::new(),
            lifetime: Duration::from_secs(90),
        },
        how: Use::InBursts,
        begin: 10_000_000,
        sizes: vec![1_200],
    };
    for scheduler in SCHEDULERS {
        let base = tree(scheduler, link, 1_000);
        let (flows, reserved, promises) = reserve(base.clone(), vec![flow.clone()]);
        assert_eq!(flows.len(), 1, "{scheduler}");
        let (delays, _) = longest_delays(&reserved, &flows, link, 1);
        let (measured, promise) = (delays[0], promises[0]);
        assert!(
            measured <= promise && promise <= Duration::from_millis(30),
            "{scheduler}"
        );
        assert!(measured * 2 > promise, "{scheduler}: {measured:?} of {promise:?}");
        let (without, _) = longest_delays(&base, &flows, link, 1);
        assert!(
            without[0] > promise * 10,
            "{scheduler}: {without:?} without a reservation"
        );
    }
}
