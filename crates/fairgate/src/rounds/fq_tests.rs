//! Pacing to the nanosecond, and properties for any sequence of packets.

use super::*;
use crate::discipline::Discipline;
use crate::packet::{Ecn, Packet};
use crate::testing::{Driver, in_class};
use core::ops::RangeInclusive;
use proptest::prelude::*;

/// A packet names flow `n` as class `1:n`. At 8 Mbit/s a byte takes a microsecond.
fn paced() -> Config {
    Config {
        flows: 8,
        quantum: 1000,
        initial_quantum: 2000,
        maxrate: Some(Rate::mbit(8)),
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        ..Config::default()
    }
}

fn fq(config: Config) -> Driver<Fq> {
    Driver::new(Fq::node(config, 1).unwrap())
}

fn departing(micros: u64) -> Packet {
    Packet {
        stamp: micros * 1000,
        ..in_class(1, 1000)
    }
}

/// The packets that leave, with the microsecond, if the driver always asks in time.
fn departures(driver: &mut Driver<Fq>) -> Vec<(u64, u64)> {
    let mut now = Time::ZERO;
    let mut seen = Vec::new();
    while driver.root.backlog().packets > 0 {
        match driver.next(now) {
            Some(cookie) => seen.push((cookie, now.nanos() / 1000)),
            None => {
                now = driver
                    .root
                    .watchdog()
                    .expect("a throttled discipline has a watchdog")
            }
        }
    }
    seen
}

fn rejected(change: impl FnOnce(&mut Config)) -> &'static str {
    let mut config = Config::default();
    change(&mut config);
    let error = Fq::node(config, 0).unwrap_err();
    error.parameter().expect("the error names a parameter")
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    assert_eq!(rejected(|config| config.flows = 0), "flows");
    assert_eq!(rejected(|config| config.quantum = 255), "quantum");
    assert_eq!(rejected(|config| config.limit = 0), "limit");
    assert_eq!(rejected(|config| config.flow_limit = 0), "flow_limit");
    assert_eq!(
        rejected(|config| config.initial_quantum = u32::MAX),
        "initial_quantum"
    );
    assert_eq!(rejected(|config| config.horizon = Duration::MAX), "horizon");
}

#[test]
fn a_flow_is_one_cache_line() {
    assert_eq!(size_of::<Flow>(), 64);
}

#[test]
fn after_its_initial_quantum_a_flow_sends_at_its_rate() {
    let mut driver = fq(paced());
    for _ in 0..6 {
        driver.offer(in_class(1, 1000), Time::ZERO);
    }
    // Two leave at once. The second uses up the credit, and then each packet takes a millisecond.
    let expected = [(0, 0), (1, 0), (2, 1000), (3, 2000), (4, 3000), (5, 4000)];
    assert_eq!(departures(&mut driver), expected);
}

#[test]
fn above_the_low_rate_a_small_packet_is_paced_as_a_quantum() {
    let mut driver = fq(Config {
        initial_quantum: 0,
        ..paced()
    });
    for _ in 0..25 {
        driver.offer(in_class(1, 100), Time::ZERO);
    }
    let seen = departures(&mut driver);
    // Ten packets are a quantum; the pause after the tenth lasts one quantum.
    let at = |micros| seen.iter().filter(|seen| seen.1 == micros).count();
    assert_eq!([at(0), at(1000), at(2000)], [10, 10, 5]);
}

#[test]
fn at_a_low_rate_each_packet_is_paced_by_its_length() {
    let mut driver = fq(Config {
        low_rate_threshold: Some(Rate::mbit(8)),
        ..paced()
    });
    for _ in 0..3 {
        driver.offer(in_class(1, 100), Time::ZERO);
    }
    assert_eq!(departures(&mut driver), [(0, 0), (1, 100), (2, 200)]);
}

#[test]
fn a_late_timer_shortens_the_next_pause_by_half_at_most() {
    let mut driver = fq(paced());
    for _ in 0..6 {
        driver.offer(in_class(1, 1000), Time::ZERO);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    assert_eq!(driver.drain(Time::from_micros(1300)), [2]);
    assert_eq!(
        driver.root.watchdog(),
        Some(Time::from_micros(2000)),
        "300 us late, so 300 us less"
    );
    assert_eq!(driver.drain(Time::from_micros(9000)), [3]);
    assert_eq!(driver.root.watchdog(), Some(Time::from_micros(9500)));
}

#[test]
fn flows_are_paced_separately_and_take_turns() {
    let mut driver = fq(Config {
        initial_quantum: 0,
        ..paced()
    });
    for flow in [1, 1, 2, 2] {
        driver.offer(in_class(flow, 1000), Time::ZERO);
    }
    assert_eq!(departures(&mut driver), [(0, 0), (2, 0), (1, 1000), (3, 1000)]);
}

#[test]
fn a_packet_waits_for_its_departure_time_and_other_flows_send() {
    let mut driver = fq(Config {
        maxrate: None,
        ..paced()
    });
    for packet in [departing(700), in_class(2, 1000), departing(200)] {
        driver.offer(packet, Time::ZERO);
    }
    assert_eq!(
        departures(&mut driver),
        [(1, 0), (0, 700), (2, 700)],
        "a flow keeps the order of its packets"
    );
}

#[test]
fn a_packet_beyond_the_horizon_is_dropped_or_leaves_at_the_horizon() {
    let near = Config {
        maxrate: None,
        horizon: Duration::from_micros(500),
        ..paced()
    };
    let mut driver = fq(near.clone());
    assert_eq!(driver.offer(departing(501), Time::ZERO), Verdict::Dropped);
    assert_eq!(driver.returned, [(0, DropReason::BeyondHorizon)]);
    assert_eq!(driver.offer(departing(500), Time::ZERO), Verdict::Queued);
    let mut driver = fq(Config {
        beyond_horizon: BeyondHorizon::Hold,
        ..near
    });
    driver.offer(departing(900), Time::ZERO);
    assert_eq!(departures(&mut driver), [(0, 500)]);
}

#[test]
fn control_traffic_passes_all_flows() {
    let mut driver = fq(paced());
    driver.offer(in_class(1, 1000), Time::ZERO);
    let control = Packet {
        priority: CONTROL,
        ..in_class(1, 1000)
    };
    driver.offer(control, Time::ZERO);
    assert_eq!(driver.drain(Time::ZERO), [1, 0]);
}

#[test]
fn a_flow_that_was_away_gets_credit() {
    let mut driver = fq(paced());
    for _ in 0..2 {
        driver.offer(in_class(1, 1000), Time::ZERO);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 1]);
    for (millis, sent) in [(30, 1), (100, 1), (4000, 2)] {
        let at = Time::from_millis(millis);
        for _ in 0..sent + 1 {
            driver.offer(in_class(1, 1000), at);
        }
        assert_eq!(driver.drain(at).len(), sent, "after {millis} ms");
        let later = driver.root.watchdog().expect("a packet is held back");
        assert_eq!(driver.drain(later).len(), 1);
        assert_eq!(driver.next(later), None);
    }
}

#[test]
fn a_packet_that_is_late_by_more_than_the_threshold_is_marked() {
    let mut driver = fq(Config {
        maxrate: None,
        ce_threshold: Some(Duration::from_micros(100)),
        ..paced()
    });
    let ect = |packet| Packet {
        ecn: Ecn::Ect0,
        ..packet
    };
    let id = driver.pool.insert(ect(departing(1000))).unwrap();
    driver.root.enqueue(id, Time::ZERO, &mut driver.pool);
    assert_eq!(
        driver.root.dequeue(Time::from_micros(1101), &mut driver.pool),
        Some(id)
    );
    assert_eq!(driver.pool[id].ecn, Ecn::Ce);
    let id = driver.pool.insert(ect(departing(2000))).unwrap();
    driver.root.enqueue(id, Time::from_micros(1101), &mut driver.pool);
    assert_eq!(
        driver.root.dequeue(Time::from_micros(2100), &mut driver.pool),
        Some(id)
    );
    assert_eq!(driver.pool[id].ecn, Ecn::Ect0);
}

#[test]
fn lowered_limits_drop_the_newest_packets_of_the_longest_flow() {
    let mut driver = fq(paced());
    for flow in [1, 1, 1, 1, 2] {
        driver.offer(in_class(flow, 1000), Time::ZERO);
    }
    let smaller = Config {
        limit: 2,
        flow_limit: 3,
        ..paced()
    };
    driver.reconfigure(smaller, Time::ZERO);
    let gone: Vec<u64> = driver.returned.iter().map(|returned| returned.0).collect();
    assert_eq!(gone, [3, 2, 1]);
    assert_eq!(driver.drain(Time::ZERO), [0, 4]);
}

/// Asks for packets in time, from one microsecond to another.
fn serve(driver: &mut Driver<Fq>, micros: RangeInclusive<u64>, mut seen: impl FnMut(Time, u64)) {
    let mut at = Time::from_micros(*micros.start());
    loop {
        while let Some(cookie) = driver.next(at) {
            seen(at, cookie);
        }
        match driver.root.watchdog() {
            Some(due) if due <= Time::from_micros(*micros.end()) => at = due,
            _ => break,
        }
    }
}

/// Records the time and length of what each flow sent.
fn record(sent: &mut [Vec<(u64, u64)>], flows: &[(u32, u32)], at: Time, cookie: u64) {
    let (flow, length) = flows[cookie as usize];
    sent[flow as usize].push((at.nanos(), length.into()));
}

proptest! {
    /// If the driver asks in time, no flow exceeds its rate by more than its initial credit.
    #[test]
    fn each_flow_keeps_to_its_rate(
        arrivals in prop::collection::vec((0u64..3000, 1u32..9, 64u32..1515), 1..200),
    ) {
        let config = paced();
        let mut driver = fq(config.clone());
        let mut sent: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 9];
        let mut flows = Vec::new();
        let mut now = 0;
        for (pause, flow, length) in arrivals {
            let start = now;
            now += pause;
            serve(&mut driver, start..=now, |at, cookie| record(&mut sent, &flows, at, cookie));
            flows.push((flow, length));
            driver.offer(in_class(flow, length), Time::from_micros(now));
        }
        serve(&mut driver, now..=u64::MAX / 1000, |at, cookie| record(&mut sent, &flows, at, cookie));
        prop_assert_eq!(driver.root.backlog().packets, 0);
        let burst = u64::from(config.initial_quantum + 2 * config.quantum) + 2 * 1514;
        for sent in &sent {
            for (first, &(start, _)) in sent.iter().enumerate() {
                let mut bytes = 0;
                for &(end, length) in &sent[first..] {
                    bytes += length;
                    // A flow that is away less than three seconds gets at most a quantum per 40 ms away, far
                    // below its rate.
                    let span = end - start;
                    prop_assert!(bytes * 1000 <= burst * 1000 + span, "{bytes} bytes in {span} ns");
                }
            }
        }
    }
}
