//! Sends recorded bursts of TCP packets through cake, and expects that its filter of acknowledgements lets
//! the same ones through as a Linux kernel's (`tests/data/kernel-acks`).

use std::time::Duration;

use fairgate::cake::{AckFilter, Config, Isolation, Tins};
use fairgate::flow::{LinkType, dissect};
use fairgate::{Arrival, Cake, FlowHasher, Link, Next, Rate, Time};

const RECORDED: &str = include_str!("../../../../tests/data/kernel-acks/cases.txt");

#[derive(Default)]
struct Case {
    frames: Vec<Vec<u8>>,
    /// By filter: the numbers of the packets that left.
    left: Vec<(AckFilter, Vec<u64>)>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in RECORDED.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "case" {
            cases.push(Case::default());
            continue;
        }
        let case = cases.last_mut().expect("a file begins with a case");
        let numbers = || {
            rest.split(' ')
                .map(|number| number.parse().expect("a number"))
                .collect()
        };
        match word {
            "frame" => case.frames.push(hexadecimal(rest)),
            "ack-filter" => case.left.push((AckFilter::On, numbers())),
            "ack-filter-aggressive" => case.left.push((AckFilter::Aggressive, numbers())),
            _ => panic!("unknown line: {line}"),
        }
    }
    cases
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Returns the numbers of the packets that leave. The first one leaves before the others arrive.
fn left(frames: &[Vec<u8>], ack_filter: AckFilter) -> Vec<u64> {
    let config = Config {
        bandwidth: Rate::from_bits_per_second(30_000).ok(),
        tins: Tins::Besteffort,
        isolation: Isolation::Flowblind,
        rtt: Duration::from_secs(3600),
        ack_filter,
        ..Config::default()
    };
    let cake = Cake::node(config, 1).expect("the parameters are valid");
    let mut link: Link<u64> = Link::new(cake, 64);
    assert!(link.needs().acknowledgements);
    let hasher = FlowHasher::new([1, 2]);
    let mut now = Time::ZERO;
    let mut left = Vec::new();
    for (frame, number) in frames.iter().zip(1..) {
        let headers = dissect(frame, LinkType::Ethernet);
        let packet = headers.packet(frame.len() as u32, &hasher);
        let arrival = Arrival {
            acknowledgement: headers.acknowledgement(frame),
            ..Arrival::from((packet, headers.key))
        };
        link.enqueue(arrival, number, now).expect("there is room");
        while link.take_dropped().is_some() {}
        if number == 1 {
            left.extend(link.dequeue(now).packet().map(|departure| departure.payload));
        }
        now += 1000;
    }
    loop {
        match link.dequeue(now) {
            Next::Packet(departure) => left.push(departure.payload),
            Next::Wait(until) => now = until,
            Next::Idle => return left,
        }
    }
}

#[test]
fn the_filter_lets_the_same_packets_through_as_linux() {
    let cases = cases();
    assert_eq!(cases.len(), 50);
    let mut filtered = 0;
    for (number, case) in cases.iter().enumerate() {
        assert_eq!(case.left.len(), 2, "case {number}");
        for (filter, expected) in &case.left {
            assert_eq!(
                left(&case.frames, *filter),
                *expected,
                "case {number}, {filter:?}"
            );
            filtered += case.frames.len() - expected.len();
        }
    }
    assert!(filtered > 100, "the test means nothing without drops: {filtered}");
}
