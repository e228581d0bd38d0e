//! The promised delay holds: real trees, flows that use their token buckets as badly as they may or send more
//! than that, and cross traffic that never ends.

use std::time::Duration;

use fairgate::{Link, Next, Packet, Rate, Time};
use fairgate_config::{Registry, Spec};
use fairgate_run::reserve::{Excess, Refusal, Reservations, Terms};
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
    /// Sends this many percent of the rate, whatever the buckets have, and this many bytes more than its
    /// longest packet in each fifth packet.
    Flood { percent: u32, longer: u32 },
}

#[derive(Clone, Debug)]
struct Flow {
    terms: Terms,
    how: Use,
    begin: u64,
    sizes: Vec<u32>,
}

/// A packet.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    at: u64,
    /// From 1. 0 and the largest number are cross traffic.
    flow: usize,
    length: u32,
    /// Whether it conforms to the flow's token buckets.
    conforms: bool,
}

/// Tokens are counted in bits times 10^9, so that nothing is rounded.
const UNIT: u128 = 8_000_000_000;

/// A token bucket as it is defined.
struct Bucket {
    rate: u128,
    full: u128,
    tokens: u128,
}

impl Bucket {
    fn new(rate: Rate, bytes: u64) -> Bucket {
        let full = u128::from(bytes) * UNIT;
        Bucket {
            rate: rate.bits_per_second().into(),
            full,
            tokens: full,
        }
    }

    fn fill(&mut self, nanos: u64) {
        self.tokens = (self.tokens + u128::from(nanos) * self.rate).min(self.full);
    }

    /// Returns when there are so many tokens, in nanoseconds from now.
    fn wait(&self, wanted: u128) -> u64 {
        wanted.saturating_sub(self.tokens).div_ceil(self.rate) as u64
    }
}

/// Returns what a flow sends up to `end`.
fn arrivals(number: usize, flow: &Flow, end: u64) -> Vec<Arrival> {
    let terms = &flow.terms;
    let mut buckets = vec![Bucket::new(terms.rate, terms.burst)];
    buckets.extend(terms.peak.map(|peak| Bucket::new(peak, terms.max_packet.into())));
    let mut now = flow.begin;
    let mut sent = Vec::new();
    let later = |buckets: &mut Vec<Bucket>, now: &mut u64, nanos: u64| {
        buckets.iter_mut().for_each(|bucket| bucket.fill(nanos));
        *now += nanos;
    };
    for (place, &size) in flow.sizes.iter().cycle().enumerate() {
        let length = match flow.how {
            Use::Flood { longer, .. } if place % 5 == 4 => size + longer,
            _ => size,
        };
        let needed = u128::from(length.max(terms.min_packet)) * UNIT;
        let wait = match flow.how {
            Use::Flood { .. } => 0,
            Use::InBursts if buckets[0].tokens < needed => buckets[0].wait(buckets[0].full),
            _ => 0,
        };
        later(&mut buckets, &mut now, wait);
        if !matches!(flow.how, Use::Flood { .. }) {
            let wait = buckets.iter().map(|bucket| bucket.wait(needed)).max();
            later(&mut buckets, &mut now, wait.unwrap_or(0));
        }
        if now >= end {
            return sent;
        }
        let conforms = length <= terms.max_packet && buckets.iter().all(|bucket| bucket.tokens >= needed);
        if conforms {
            buckets.iter_mut().for_each(|bucket| bucket.tokens -= needed);
        }
        sent.push(Arrival {
            at: now,
            flow: number,
            length,
            conforms,
        });
        if let Use::Flood { percent, .. } = flow.how {
            let pause = needed * 100 / u128::from(terms.rate.bits_per_second()) / u128::from(percent);
            later(&mut buckets, &mut now, pause as u64);
        }
    }
    unreachable!("sizes are repeated")
}

/// What became of the packets of a flow.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// The longest delay of a packet that conforms.
    longest: Duration,
    /// Lost packets that conform.
    lost: u64,
    /// Excess packets that were sent, and that were dropped.
    excess: [u64; 2],
}

/// Sends all through the tree for one and a half seconds. Returns what became of each flow.
fn outcomes(tree: &Spec, flows: &[Flow], link: Rate, seed: u64) -> Vec<Outcome> {
    outcomes_until(1_500_000_000, tree, flows, link, seed)
}

fn outcomes_until(end: u64, tree: &Spec, flows: &[Flow], link: Rate, seed: u64) -> Vec<Outcome> {
    let mut coming: Vec<Arrival> = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        coming.extend(arrivals(number + 1, flow, end));
    }
    // Cross traffic in both other classes: together more than the link.
    let packet = link.transmission_nanos(LONGEST.into());
    let mut time = seed % packet.max(1);
    while time < end {
        let short = if time.is_multiple_of(3) { 64 } else { LONGEST };
        for (flow, length) in [(0, LONGEST), (usize::MAX, short)] {
            coming.push(Arrival {
                at: time,
                flow,
                length,
                conforms: false,
            });
        }
        time += packet.max(1);
    }
    coming.sort_by_key(|arrival| arrival.at);
    let mut driver: Link<Arrival> = Link::new(tree.build(seed).unwrap(), 300_000);
    let mut outcomes = vec![Outcome::default(); flows.len()];
    let (mut coming, mut due) = (coming.into_iter().peekable(), None::<u64>);
    while let Some(now) = [due, coming.peek().map(|arrival| arrival.at)]
        .into_iter()
        .flatten()
        .min()
    {
        let time = Time::from_nanos(now);
        let mut note = |arrival: Arrival, was_sent: bool| {
            let number = arrival.flow.checked_sub(1);
            let Some(outcome) = number.and_then(|number| outcomes.get_mut(number)) else {
                return;
            };
            match (arrival.conforms, was_sent) {
                (true, true) => outcome.longest = outcome.longest.max(Duration::from_nanos(now - arrival.at)),
                (true, false) => outcome.lost += 1,
                (false, was_sent) => outcome.excess[usize::from(!was_sent)] += 1,
            }
        };
        while let Some(arrival) = coming.next_if(|arrival| arrival.at == now) {
            let dscp = if arrival.flow == usize::MAX {
                63
            } else {
                arrival.flow as u8
            };
            let packet = Packet {
                dscp,
                ..Packet::of_length(arrival.length)
            };
            driver.enqueue(packet, arrival, time).unwrap();
            while let Some(dropped) = driver.take_dropped() {
                note(dropped.payload, false);
            }
        }
        due = loop {
            let next = driver.dequeue(time);
            while let Some(dropped) = driver.take_dropped() {
                note(dropped.payload, false);
            }
            match next {
                Next::Packet(departure) => note(departure.payload, true),
                Next::Wait(until) => break Some(until.nanos()),
                Next::Idle => break None,
            }
        };
        if now > 4 * end {
            break;
        }
    }
    outcomes
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
    // In percent of the token rate: equal to it, a little above it, and far above each link.
    let peak = prop::option::of(prop_oneof![Just(100_u64), 101_u64..400, 400_u64..200_000]);
    let how = prop_oneof![
        Just(Use::AtOnce),
        Just(Use::InBursts),
        (90_u32..500, 0_u32..200).prop_map(|(percent, longer)| Use::Flood { percent, longer }),
    ];
    let excess = prop_oneof![Just(Excess::BestEffort), Just(Excess::Drop)];
    let fractions = prop::collection::vec(1_u32..=16, 1..5);
    let min_packet = prop_oneof![3 => Just(60_u32), 1 => 14_u32..=LONGEST];
    (
        terms,
        (delay, peak, min_packet, excess),
        how,
        0_u64..50_000_000,
        fractions,
    )
        .prop_map(
            |((rate, max_packet, packets), (delay, peak, min_packet, excess), how, begin, fractions)| {
                // The first packet is the longest one, so that the bucket can be emptied by it.
                let shorter = fractions
                    .into_iter()
                    .map(|part| (max_packet * part / 16).max(60).min(max_packet));
                let min_packet = min_packet.min(max_packet);
                let bits = |bits| Rate::from_bits_per_second(bits).unwrap();
                Flow {
                    terms: Terms {
                        rate: bits(rate),
                        burst: u64::from(max_packet) * packets,
                        peak: peak.map(|percent| bits(rate * percent / 100)),
                        min_packet,
                        max_packet,
                        delay: delay.map(Duration::from_micros),
                        filter: String::new(),
                        excess,
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
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

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
        let outcomes = outcomes(&tree, &flows, link, seed);
        for ((outcome, promise), flow) in outcomes.iter().zip(&promises).zip(&flows) {
            let delay = outcome.longest;
            prop_assert_eq!(outcome.lost, 0, "conforming packets were dropped: {:?}", flow);
            prop_assert!(delay <= *promise, "{scheduler}: {delay:?} > {promise:?} for {flow:?}");
            if let Some(wanted) = flow.terms.delay {
                prop_assert!(*promise <= wanted, "{scheduler}: {promise:?} is not {wanted:?}");
            }
            if flow.terms.excess == Excess::Drop {
                prop_assert_eq!(outcome.excess[0], 0, "excess packets were sent: {:?}", flow);
            }
        }
    }
}

/// A promise is worth something: traffic exists that comes near it, and without the reservation the same flow
/// waits much longer. With a peak rate the promise is shorter, and the traffic still comes near it.
#[test]
fn promises_are_not_far_from_what_can_happen() {
    let link = Rate::mbit(10);
    let flow = |peak, millis| Flow {
        terms: Terms {
            rate: Rate::mbit(1),
            burst: 12_000,
            peak,
            min_packet: 60,
            max_packet: 1_200,
            delay: Some(Duration::from_millis(millis)),
            filter: String::new(),
            excess: Excess::BestEffort,
            lifetime: Duration::from_secs(90),
        },
        how: Use::InBursts,
        begin: 10_000_000,
        sizes: vec![1_200],
    };
    for scheduler in SCHEDULERS {
        for (peak, millis) in [(None, 30), (Some(Rate::mbit(6)), 22)] {
            let base = tree(scheduler, link, 1_000);
            let (flows, reserved, promises) = reserve(base.clone(), vec![flow(peak, millis)]);
            assert_eq!(flows.len(), 1, "{scheduler}");
            let (measured, promise) = (outcomes(&reserved, &flows, link, 1)[0].longest, promises[0]);
            assert!(
                measured <= promise && promise <= Duration::from_millis(millis),
                "{scheduler}"
            );
            // With a peak rate less is waited for, and what the scheduler adds is a larger part of the bound.
            let part = if peak.is_some() { 3 } else { 2 };
            assert!(
                measured * part > promise,
                "{scheduler}: {measured:?} of {promise:?}"
            );
            let without = outcomes(&base, &flows, link, 1)[0].longest;
            assert!(
                without > promise * 10,
                "{scheduler}: {without:?} without a reservation"
            );
        }
    }
}

/// Of a flow that sends four times its rate, what conforms has the promised delay. The rest waits among the
/// best effort, or is dropped.
#[test]
fn excess_packets_are_best_effort_or_dropped() {
    let link = Rate::mbit(10);
    for scheduler in SCHEDULERS {
        for excess in [Excess::BestEffort, Excess::Drop] {
            let flow = Flow {
                terms: Terms {
                    rate: Rate::mbit(1),
                    burst: 6_000,
                    peak: Some(Rate::mbit(5)),
                    min_packet: 60,
                    max_packet: 1_200,
                    delay: Some(Duration::from_millis(30)),
                    filter: String::new(),
                    excess,
                    lifetime: Duration::from_secs(90),
                },
                how: Use::Flood {
                    percent: 400,
                    longer: 50,
                },
                begin: 0,
                sizes: vec![1_200, 600],
            };
            let (flows, reserved, promises) = reserve(tree(scheduler, link, 1_000), vec![flow]);
            let came = arrivals(1, &flows[0], 1_500_000_000);
            let beyond = came.iter().filter(|arrival| !arrival.conforms).count() as u64;
            assert!(
                beyond > 500 && came.len() as u64 - beyond > 150,
                "{beyond} of {}",
                came.len()
            );
            let outcome = &outcomes(&reserved, &flows, link, 1)[0];
            assert!(
                outcome.longest <= promises[0] && outcome.lost == 0,
                "{scheduler}: {outcome:?}"
            );
            match excess {
                // Some are still queued at the end.
                Excess::BestEffort => {
                    assert!(outcome.excess[0] > 50 && outcome.excess[1] == 0, "{outcome:?}")
                }
                Excess::Drop => assert_eq!(outcome.excess, [0, beyond], "{scheduler}"),
            }
        }
    }
}

/// A change of one reservation does not fill the buckets of another one: a flow that has emptied its bucket
/// has no second one.
#[test]
fn buckets_stay_as_they_are_when_another_reservation_comes() {
    let registry = Registry::builtin();
    let base = tree("hfsc", Rate::mbit(10), 1);
    let terms = |dscp: u8| Terms {
        rate: Rate::mbit(1),
        burst: 2_000,
        peak: None,
        min_packet: 60,
        max_packet: 1_000,
        delay: None,
        filter: format!("dscp={dscp}"),
        excess: Excess::Drop,
        lifetime: Duration::from_secs(90),
    };
    let (table, one) = Reservations::new(LONGEST)
        .add(&base, &registry, "m", terms(1), Time::ZERO)
        .unwrap();
    let mut driver: Link<()> = Link::new(one.build(1).unwrap(), 100);
    let passed = |driver: &mut Link<()>| {
        let packet = Packet {
            dscp: 1,
            ..Packet::of_length(1_000)
        };
        driver.enqueue(packet, (), Time::ZERO).unwrap();
        driver.take_dropped().is_none()
    };
    assert_eq!([(); 3].map(|()| passed(&mut driver)), [true, true, false]);
    let (mut table, mut running) = (table, one);
    // Its filter comes before that of `m`, and then behind it.
    for name in ["a", "z"] {
        let (with, tree) = table
            .add(&running, &registry, name, terms(2), Time::ZERO)
            .unwrap();
        let change = running.change_to(&tree, 1).unwrap();
        driver.change_root(|root, pool| drop(change.apply(root, Time::ZERO, pool).unwrap()));
        (table, running) = (with, tree);
        assert!(!passed(&mut driver), "after `{name}`");
    }
}

/// A flow that uses all of its tokens for a long time is not later in the end: neither what `hfsc` loses when
/// the flow begins after a pause, nor what it loses by its rounded slopes, adds up.
#[test]
fn promises_hold_for_a_long_time() {
    let flow = |bits: u64, packets: u64, delay: Option<u64>, how: Use, sizes: &[u32]| {
        let max_packet = sizes.iter().copied().max().unwrap();
        Flow {
            terms: Terms {
                rate: Rate::from_bits_per_second(bits).unwrap(),
                burst: packets * u64::from(max_packet),
                peak: None,
                min_packet: 60,
                max_packet,
                delay: delay.map(Duration::from_micros),
                filter: String::new(),
                excess: Excess::Drop,
                lifetime: Duration::from_secs(90),
            },
            how,
            begin: 0,
            sizes: sizes.to_vec(),
        }
    };
    let flood = Use::Flood {
        percent: 175,
        longer: 0,
    };
    let slow = vec![
        flow(217_923, 3, Some(2_000), flood, &[162, 60]),
        flow(239_894, 1, None, Use::AtOnce, &[106, 60]),
    ];
    // The ticks for a byte at this rate have the longest way to the next whole part.
    let fast = vec![flow(90_002_192, 4, None, Use::AtOnce, &[1_514])];
    let cases = [
        (Rate::mbit(16), slow, 20_000_000_000),
        (Rate::mbit(100), fast, 10_000_000_000),
    ];
    for (link, flows, end) in cases {
        for scheduler in SCHEDULERS {
            let (flows, tree, promises) = reserve(tree(scheduler, link, 100), flows.clone());
            assert!(!flows.is_empty(), "{scheduler}");
            for (outcome, promise) in outcomes_until(end, &tree, &flows, link, 1).iter().zip(&promises) {
                assert!(
                    outcome.lost == 0 && outcome.longest <= *promise,
                    "{scheduler}: {outcome:?} {promise:?}"
                );
            }
        }
    }
}
