//! Against an independent derivation without virtual time, and the literature's examples.

use num_traits::Zero;
use proptest::prelude::*;

use super::*;

/// A byte takes a nanosecond, and that is the tick.
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

/// The definition, step by step in real time: every busy flow is served at `weight / sum of busy weights`, until the
/// next packet arrives or some flow's first packet is through. What every flow has been served is kept at every
/// arrival, to be compared as well.
struct Slow {
    finishes: Vec<Exact>,
    /// After each arrival: its time, and what each flow had been served.
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
        // Gaps about as long as packets, so that busy periods begin and end.
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
    /// Real finishes and services are those of the definition, to the last digit.
    #[test]
    fn it_is_the_definition((weights, packets) in traffic()) {
        let fluid = fluid(byte_a_nanosecond(), &weights, &packets);
        let slow = slow(&weights, &packets);
        for (packet, expected) in fluid.packets().iter().zip(&slow.finishes) {
            prop_assert_eq!(&packet.finish.reduced(), expected);
        }
        for (at, served) in &slow.service {
            for (flow, expected) in served.iter().enumerate() {
                prop_assert_eq!(&fluid.service(flow as u32, *at).reduced(), expected, "flow {} at {}", flow, at);
            }
        }
    }

    /// What virtual time is for: a packet is in service from its virtual start to its virtual finish, and virtual
    /// time at the moment of its real finish is its virtual finish.
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

    /// A rate at which neither a byte nor a nanosecond is one tick gives the same fractions of a nanosecond.
    #[test]
    fn any_rate_will_do((weights, packets) in traffic(), bits in 1u64..100_000_000_000) {
        let rate = Rate::from_bits_per_second(bits).unwrap();
        let link = Link::new(rate);
        let scale = ratio(8_000_000_000, bits);
        // Everything at time 0: then finishes scale with the time that a byte takes.
        let at_once: Vec<Packet> = packets.iter().map(|packet| Packet { at: 0, ..*packet }).collect();
        let there = fluid(rate, &weights, &at_once);
        let here = fluid(byte_a_nanosecond(), &weights, &at_once);
        for (there, here) in there.packets().iter().zip(here.packets()) {
            prop_assert_eq!(there.finish_nanos(&link), here.finish.reduced() * &scale);
        }
    }
}

/// Bennett & Zhang 1996, Figure 1: flow 1 has half the link and sends eleven packets at time 0, ten others have a
/// twentieth each and send one. Packets take 1 (here 1000 ticks).
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

/// A flow that comes while another is busy slows it down; virtual time grows at the rate of one over the busy sum.
#[test]
fn virtual_time_bends_when_flows_come_and_go() {
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
    // Flow 0 alone until 4; then a third of the link, beside flow 1, until that is through at 4 + 3 * 3 / 2.
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

/// Ten thousand packets of flows that come and go within one busy period: the case in which denominators grow.
#[test]
fn ten_thousand_packets_are_no_burden() {
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
        "only {bits:?} bits: this is not the case in question"
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
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
    assert_eq!(gps.arrive(late, 0, 1), Ok(1), "a refusal changes nothing");
}
