//! Compares with an independent derivation without virtual time, and with the literature's examples.

use num_traits::Zero;
use proptest::prelude::*;

use super::*;

/// Returns the rate at which a byte takes a nanosecond, and both are one tick.
fn byte_a_nanosecond() -> Rate {
    Rate::mbit(8000)
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: u64,
    flow: u32,
    length: u32,
}

fn fluid(rate: Rate, weights: &[u32], packets: &[Packet]) -> Fluid {
    let mut gps = Gps::new(rate, weights).unwrap();
    for packet in packets {
        gps.arrive(Time::from_nanos(packet.at), packet.flow, packet.length)
            .unwrap();
    }
    gps.finish()
}

fn whole(number: u64) -> Exact {
    Exact::from_integer(number.into())
}

fn ratio(numerator: u64, denominator: u64) -> Exact {
    Exact::new(numerator.into(), denominator.into())
}

/// The result of the definition, computed step by step in real time. Every busy flow is served at `weight /
/// sum of busy weights` until the next packet arrives or the first packet of a flow is finished. The service
/// of every flow is recorded at every arrival for comparison.
struct Slow {
    finishes: Vec<Exact>,
    /// After each arrival: its time, and the service of each flow until then.
    service: Vec<(u64, Vec<Exact>)>,
}

fn slow(weights: &[u32], packets: &[Packet]) -> Slow {
    let mut finishes = vec![Exact::zero(); packets.len()];
    let mut queues: Vec<VecDeque<(usize, Exact)>> = vec![VecDeque::new(); weights.len()];
    let mut served = vec![Exact::zero(); weights.len()];
    let mut service = Vec::new();
    let (mut now, mut next) = (Exact::zero(), 0);
    loop {
        let busy: Vec<usize> = (0..weights.len())
            .filter(|&flow| !queues[flow].is_empty())
            .collect();
        let sum: u64 = busy.iter().map(|&flow| u64::from(weights[flow])).sum();
        let rate = |flow: usize| ratio(weights[flow].into(), sum);
        let through = busy
            .iter()
            .map(|&flow| &now + &queues[flow][0].1 / rate(flow))
            .min();
        let arrival = packets.get(next).map(|packet| whole(packet.at));
        let Some(event) = through.iter().chain(&arrival).min().cloned() else {
            return Slow { finishes, service };
        };
        let elapsed = &event - &now;
        for &flow in &busy {
            let work = &elapsed * rate(flow);
            served[flow] += &work;
            queues[flow][0].1 -= work;
            if queues[flow][0].1.is_zero() {
                let (number, _) = queues[flow].pop_front().unwrap();
                finishes[number] = event.clone();
            }
        }
        if arrival == Some(event.clone()) {
            let packet = packets[next];
            queues[packet.flow as usize].push_back((next, whole(packet.length.into())));
            service.push((packet.at, served.clone()));
            next += 1;
        }
        now = event;
    }
}

fn traffic() -> impl Strategy<Value = (Vec<u32>, Vec<Packet>)> {
    let weights = prop::collection::vec(prop_oneof![1u32..10, 1u32..1000], 1..6);
    weights.prop_flat_map(|weights| {
        let flows = weights.len() as u32;
        // Gaps are about as long as packets, so that busy periods begin and end.
        let packet = (prop_oneof![Just(0u64), 0u64..40, 0u64..300], 0..flows, 1u32..100);
        let packets = prop::collection::vec(packet, 1..60).prop_map(|steps| {
            let mut at = 0;
            let mut packet = |(gap, flow, length)| {
                at += gap;
                Packet { at, flow, length }
            };
            steps.into_iter().map(&mut packet).collect::<Vec<_>>()
        });
        (Just(weights), packets)
    })
}

proptest! {
    /// Real finishes and services equal those of the definition exactly.
    #[test]
    fn it_equals_the_definition((weights, packets) in traffic()) {
        let fluid = fluid(byte_a_nanosecond(), &weights, &packets);
        let slow = slow(&weights, &packets);
        for (packet, expected) in fluid.packets().iter().zip(&slow.finishes) {
            prop_assert_eq!(&packet.finish.reduced(), expected);
        }
        for (at, served) in &slow.service {
            for (flow, expected) in served.iter().enumerate() {
                let service = fluid.service(flow as u32, *at).reduced();
                prop_assert_eq!(&service, expected, "flow {} at {}", flow, at);
            }
        }
    }

    /// A packet is in service from its virtual start to its virtual finish. At its real finish, virtual time
    /// equals its virtual finish.
    #[test]
    fn stamps_are_virtual_times((weights, packets) in traffic()) {
        let fluid = fluid(byte_a_nanosecond(), &weights, &packets);
        let mut previous: Vec<Option<&FluidPacket>> = vec![None; weights.len()];
        for packet in fluid.packets() {
            let now = fluid.virtual_time(packet.arrival);
            prop_assert_eq!(now.busy_period, packet.busy_period);
            let before = previous[packet.flow as usize].replace(packet);
            let start = match before {
                Some(before) if before.busy_period == packet.busy_period =>
                    now.value.reduced().max(before.virtual_finish.reduced()),
                _ => now.value.reduced(),
            };
            let weight = u64::from(weights[packet.flow as usize]);
            prop_assert_eq!(packet.virtual_finish.reduced(), start + ratio(packet.work, weight));
            if packet.finish.reduced().is_integer() {
                let finish = packet.finish.floor().to_u64().unwrap();
                let then = fluid.virtual_time(finish);
                if then.busy_period == packet.busy_period {
                    prop_assert_eq!(then.value.reduced(), packet.virtual_finish.reduced());
                }
            }
        }
    }

    /// At a rate where neither a byte nor a nanosecond is one tick, finishes are the same fractions of a
    /// nanosecond.
    #[test]
    fn any_rate_is_exact((weights, packets) in traffic(), bits in 1u64..100_000_000_000) {
        let rate = Rate::from_bits_per_second(bits).unwrap();
        let tick_scale = TickScale::new(rate);
        let scale = ratio(8_000_000_000, bits);
        // All packets arrive at time 0, so finishes scale with the time that a byte takes.
        let at_once: Vec<Packet> = packets.iter().map(|packet| Packet { at: 0, ..*packet }).collect();
        let there = fluid(rate, &weights, &at_once);
        let here = fluid(byte_a_nanosecond(), &weights, &at_once);
        for (there, here) in there.packets().iter().zip(here.packets()) {
            prop_assert_eq!(there.finish_nanos(&tick_scale), here.finish.reduced() * &scale);
        }
    }
}

/// Bennett & Zhang 1996, Figure 1: flow 1 has half of the link and sends eleven packets at time 0. Ten other
/// flows have a twentieth each and send one packet. Packets take 1 (here 1000 ticks).
#[test]
fn the_example_of_worst_case_fairness() {
    let mut weights = vec![10];
    weights.resize(11, 1);
    let packet = |flow| Packet {
        at: 0,
        flow,
        length: 1000,
    };
    let packets: Vec<Packet> = (0..11).map(|_| packet(0)).chain((1..11).map(packet)).collect();
    let fluid = fluid(byte_a_nanosecond(), &weights, &packets);
    let finishes: Vec<Exact> = fluid
        .packets()
        .iter()
        .map(|packet| packet.finish.reduced() / whole(1000))
        .collect();
    let first: Vec<Exact> = (1..=10).map(|turn| whole(2 * turn)).chain([whole(21)]).collect();
    assert_eq!(finishes[..11], first);
    assert!(finishes[11..].iter().all(|finish| *finish == whole(20)));
}

/// A flow that becomes busy slows down the other one. Virtual time grows at one over the sum of the busy
/// weights.
#[test]
fn virtual_time_changes_its_slope_when_flows_become_busy_or_idle() {
    let packets = [
        Packet {
            at: 0,
            flow: 0,
            length: 10,
        },
        Packet {
            at: 4,
            flow: 1,
            length: 3,
        },
        Packet {
            at: 100,
            flow: 1,
            length: 5,
        },
    ];
    let fluid = fluid(byte_a_nanosecond(), &[1, 2], &packets);
    // Flow 0 is alone until 4. Then it has a third of the link, until flow 1 is finished at 4 + 3 * 3 / 2.
    assert_eq!(fluid.packets()[1].finish.reduced(), ratio(17, 2));
    assert_eq!(fluid.packets()[0].finish.reduced(), whole(13));
    let at = |ticks| {
        let now = fluid.virtual_time(ticks);
        (now.busy_period, now.value.reduced())
    };
    assert_eq!(at(0), (1, Exact::zero()));
    assert_eq!(at(4), (1, whole(4)));
    assert_eq!(at(7), (1, whole(5)));
    assert_eq!(at(9), (1, whole(6)));
    assert_eq!(at(50), (1, whole(10)));
    assert_eq!(at(101), (2, ratio(1, 2)));
    assert_eq!(fluid.service(0, 7).reduced(), whole(5));
    assert_eq!(fluid.service(1, 7).reduced(), whole(2));
    assert_eq!(fluid.service(1, 1000).reduced(), whole(8));
}

/// Ten thousand packets within one busy period, in which flows become busy and idle. Denominators grow in
/// this case.
#[test]
fn ten_thousand_packets_in_one_busy_period_are_exact() {
    let weights: Vec<u32> = (0..64).map(|flow| 1 + flow * 7 % 61).collect();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut at = 0;
    let packets: Vec<Packet> = (0..10_000)
        .map(|_| {
            at += random(900);
            Packet {
                at,
                flow: random(64) as u32,
                length: 1 + random(1000) as u32,
            }
        })
        .collect();
    let fluid = fluid(byte_a_nanosecond(), &weights, &packets);
    let total: u64 = packets.iter().map(|packet| u64::from(packet.length)).sum();
    let served = (0..64).fold(Exact::zero(), |sum, flow| {
        sum + fluid.service(flow, 1 << 40).reduced()
    });
    assert_eq!(served, whole(total));
    let bits = fluid.packets().iter().map(|packet| packet.finish.bits()).max();
    assert!(
        bits > Some(10_000),
        "only {bits:?} bits: denominators did not grow as this test needs"
    );
}

#[test]
fn bad_weights_and_arrivals_are_rejected() {
    let rate = byte_a_nanosecond();
    assert_eq!(
        Gps::new(rate, &[1, 0]).unwrap_err(),
        GpsError::WeightZero { flow: 1 }
    );
    let mut gps = Gps::new(rate, &[1]).unwrap();
    let (early, late) = (Time::from_nanos(4), Time::from_nanos(5));
    assert_eq!(gps.arrive(late, 0, 1), Ok(0));
    assert_eq!(
        gps.arrive(late, 1, 1),
        Err(GpsError::NoSuchFlow { flow: 1, flows: 1 })
    );
    assert_eq!(gps.arrive(late, 0, 0), Err(GpsError::LengthZero { flow: 0 }));
    assert_eq!(
        gps.arrive(early, 0, 1),
        Err(GpsError::NotInOrder {
            at: early,
            previous: late
        })
    );
    assert_eq!(
        gps.arrive(Time::MAX, 0, 1),
        Err(GpsError::TooLate { at: Time::MAX })
    );
    assert_eq!(
        gps.arrive(late, 0, 1),
        Ok(1),
        "a rejected arrival changes nothing"
    );
}
