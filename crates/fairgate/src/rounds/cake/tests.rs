//! One test for each property of CAKE.

use alloc::collections::BTreeMap;
use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::discipline::{Discipline, Inspect};
use crate::flow::{FlowHash, FlowKey};
use crate::packet::{DropReason, Ecn, Packet};
use crate::rate::Rate;
use crate::testing::Driver;

/// A large target, so that COBALT does not drop or mark.
fn patient(config: Config) -> Config {
    Config {
        rtt: Duration::from_secs(3000),
        memory_limit: Some(u64::MAX),
        ..config
    }
}

fn cake(config: Config) -> Driver<Cake> {
    Driver::new(Cake::node(config, 1).unwrap())
}

fn of_flow(flow: u64, length: u32) -> Packet {
    Packet {
        flow: FlowHash::from_raw(flow),
        ..Packet::of_length(length)
    }
}

fn of_dscp(dscp: u8) -> Packet {
    Packet {
        dscp,
        ..of_flow(u64::from(dscp), 1000)
    }
}

fn variable(driver: &Driver<Cake>, wanted: &str) -> i64 {
    let mut found = None;
    driver.root.visit_variables(&mut |name, value| match value {
        Variable::Integer(value) if name == wanted => found = Some(value),
        _ => {}
    });
    found.expect("the variable exists")
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    let rejected = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        let error = Cake::node(config, 0).unwrap_err();
        error.parameter().expect("the error names a parameter")
    };
    let slow = |config: &mut Config| config.bandwidth = Rate::from_bits_per_second(8191).ok();
    assert_eq!(rejected(slow), "bandwidth");
    assert_eq!(rejected(|config| config.rtt = Duration::ZERO), "rtt");
    assert_eq!(rejected(|config| config.rtt = Duration::from_secs(3601)), "rtt");
    assert_eq!(rejected(|config| config.memory_limit = Some(0)), "memory_limit");
    assert_eq!(rejected(|config| config.mtu = 63), "mtu");
    assert_eq!(rejected(|config| config.framing.overhead = Some(257)), "overhead");
    assert_eq!(rejected(|config| config.framing.mpu = 257), "mpu");
    assert_eq!(rejected(|config| config.link_header = 257), "link_header");
}

/// Four round trips of the bandwidth, at least 4 MiB, at most 10240 frames.
#[test]
fn memory_follows_from_the_bandwidth() {
    let of = |bandwidth| {
        let config = Config {
            bandwidth,
            ..Config::default()
        };
        config.memory()
    };
    assert_eq!(of(None), 10_240 * 1514);
    assert_eq!(of(Some(Rate::mbit(10))), 4 << 20);
    assert_eq!(of(Some(Rate::mbit(200))), 25_000_000 * 4 / 10);
    assert_eq!(of(Some(Rate::mbit(1000))), 10_240 * 1514);
}

proptest! {
    /// Each packet leaves when the packets before it have had their transmission times, to the nanosecond, at
    /// any times of calls.
    #[test]
    fn packets_leave_when_the_link_is_free(
        kbit in 100u64..1_000_000,
        overhead in prop::option::of(0u16..100),
        cells in prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm]),
        lengths in prop::collection::vec((14u32..1515, 0u64..3_000_000), 1..60),
    ) {
        let rate = Rate::from_bits_per_second(kbit * 1000).unwrap();
        let framing = Framing { overhead, mpu: 64, cells };
        let mut driver = cake(patient(Config {
            bandwidth: Some(rate),
            framing,
            tins: Tins::Besteffort,
            ..Config::default()
        }));
        let mut now = Time::from_secs(1);
        for (length, _) in &lengths {
            driver.offer(of_flow(1, *length), now);
        }
        let mut free = now;
        for (length, lateness) in lengths {
            if free > now {
                prop_assert_eq!(driver.next(Time::from_nanos(free.nanos() - 1).max(now)), None);
                prop_assert_eq!(driver.root.watchdog(), Some(free));
                now = free;
            }
            now += lateness;
            prop_assert!(driver.next(now).is_some());
            free += rate.meter().nanos(framing.on_the_link(length, 14));
        }
    }

    /// The last packet of a flow is never dropped, however late it is.
    #[test]
    fn the_last_packet_of_each_flow_arrives(
        ingress in any::<bool>(),
        flows in prop::collection::vec(0u64..6, 1..200),
    ) {
        let mut driver = cake(Config {
            rtt: Duration::from_micros(100),
            bandwidth: Some(Rate::mbit(1)),
            ingress,
            memory_limit: Some(u64::MAX),
            ..Config::default()
        });
        let mut last = BTreeMap::new();
        for (cookie, flow) in (0..).zip(&flows) {
            driver.offer(of_flow(*flow, 1000), Time::ZERO);
            last.insert(*flow, cookie);
        }
        let mut sent = Vec::new();
        let mut now = Time::ZERO;
        while driver.root.backlog().packets > 0 {
            match driver.next(now) {
                Some(cookie) => sent.push(cookie),
                None => now = driver.root.watchdog().expect("a throttled discipline has a watchdog"),
            }
        }
        for (flow, cookie) in last {
            prop_assert!(sent.contains(&cookie), "{} of flow {}: {:?}", cookie, flow, sent);
        }
    }

    /// With dropped packets counted, the gaps are never longer than one and a half times what was sent.
    #[test]
    fn counted_drops_do_not_stop_the_shaper(counts in prop::collection::vec(1usize..8, 1..40)) {
        let rate = Rate::mbit(8);
        let mut driver = cake(Config {
            rtt: Duration::from_micros(10),
            bandwidth: Some(rate),
            tins: Tins::Besteffort,
            ingress: true,
            memory_limit: Some(u64::MAX),
            ..Config::default()
        });
        let mut now = Time::from_secs(1);
        let mut sent_at = Vec::new();
        for count in counts {
            for _ in 0..count {
                driver.offer(of_flow(1, 1000), now);
            }
            while driver.next(now).is_some() {
                sent_at.push(now);
            }
            now = driver.root.watchdog().unwrap().max(now);
        }
        let span = now.nanos_since(sent_at[0]);
        prop_assert!(span <= sent_at.len() as u64 * 1_500_000, "{} packets in {}", sent_at.len(), span);
    }
}

/// Runs flows with these sources and destinations, all backlogged. Returns the bytes that each flow got of
/// about 2 MB.
fn shares(isolation: Isolation, flows: &[(u8, u8)]) -> Vec<u64> {
    let mut driver = cake(patient(Config {
        isolation,
        tins: Tins::Besteffort,
        ..Config::default()
    }));
    let lengths = [1514, 600, 90];
    let mut offered = vec![0usize; flows.len()];
    let mut offer = |driver: &mut Driver<Cake>, flow: usize| {
        let (source, destination) = flows[flow];
        let length = lengths[offered[flow] % lengths.len()];
        offered[flow] += 1;
        let key = FlowKey::of(
            [10, 0, 0, source].into(),
            [10, 0, 1, destination].into(),
            17,
            flow as u16,
            9,
        );
        let packet = Packet {
            cookie: flow as u64,
            flow: FlowHash::from_raw(flow as u64 + 1),
            ..Packet::of_length(length)
        };
        let id = driver.pool.insert((packet, key)).unwrap();
        driver.root.enqueue(id, Time::ZERO, &mut driver.pool);
    };
    for flow in 0..flows.len() {
        for _ in 0..30 {
            offer(&mut driver, flow);
        }
    }
    let mut bytes = vec![0; flows.len()];
    while bytes.iter().sum::<u64>() < 2_000_000 {
        let id = driver.root.dequeue(Time::ZERO, &mut driver.pool).unwrap();
        let packet = driver.pool.release(id);
        bytes[packet.cookie as usize] += u64::from(packet.length);
        offer(&mut driver, packet.cookie as usize);
    }
    bytes
}

/// The part of flow 0 in percent.
fn part(isolation: Isolation, flows: &[(u8, u8)]) -> f64 {
    let bytes = shares(isolation, flows);
    100.0 * bytes[0] as f64 / bytes.iter().sum::<u64>() as f64
}

#[test]
fn hosts_share_equally_with_any_number_of_flows() {
    // A source with one flow and one with nine, to ten destinations; and the same with both ends exchanged.
    let by_source: Vec<(u8, u8)> = (0..10).map(|flow| (u8::from(flow > 0), flow)).collect();
    let by_destination: Vec<(u8, u8)> = by_source
        .iter()
        .map(|(source, other)| (*other, *source))
        .collect();
    let expected = [
        (Isolation::Flows, 10.0, 10.0),
        (Isolation::Triple, 50.0, 50.0),
        (Isolation::DualSource, 50.0, 10.0),
        (Isolation::DualDestination, 10.0, 50.0),
        (Isolation::SourceHosts, 50.0, 10.0),
        (Isolation::DestinationHosts, 10.0, 50.0),
        (Isolation::Hosts, 10.0, 10.0),
    ];
    for (isolation, of_source, of_destination) in expected {
        let parts = (part(isolation, &by_source), part(isolation, &by_destination));
        assert!(
            (parts.0 - of_source).abs() < 1.0 && (parts.1 - of_destination).abs() < 1.0,
            "{isolation:?}: {parts:?}"
        );
    }
}

#[test]
fn flows_of_one_host_share_the_part_of_the_host() {
    let flows: Vec<(u8, u8)> = (0..10).map(|flow| (u8::from(flow > 2), flow)).collect();
    let bytes = shares(Isolation::Triple, &flows);
    let sum = bytes.iter().sum::<u64>() as f64;
    for (flow, bytes) in bytes.iter().enumerate() {
        let expected = if flow > 2 { 0.5 / 7.0 } else { 0.5 / 3.0 };
        let part = *bytes as f64 / sum;
        assert!(
            (part - expected).abs() < 0.005,
            "flow {flow}: {part} of {expected}"
        );
    }
}

#[test]
fn without_isolation_all_packets_are_in_one_queue() {
    let mut driver = cake(patient(Config {
        isolation: Isolation::Flowblind,
        tins: Tins::Besteffort,
        ..Config::default()
    }));
    for flow in [1, 1, 1, 2, 1, 3] {
        driver.offer(of_flow(flow, 1000), Time::ZERO);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 1, 2, 3, 4, 5]);
}

/// Eight flows of one set of the hash have their own queues; the ninth shares one.
#[test]
fn eight_ways_resolve_collisions() {
    let set = |flow: &u64| Key::new(FlowHash::from_raw(*flow), 1).home / ways::WAYS as u16;
    let of_one_set: Vec<u64> = (1..).filter(|flow| set(flow) == 5).take(9).collect();
    let mut driver = cake(patient(Config {
        isolation: Isolation::Flows,
        tins: Tins::Besteffort,
        ..Config::default()
    }));
    for _ in 0..3 {
        for flow in &of_one_set[..8] {
            driver.offer(of_flow(*flow, 1000), Time::ZERO);
        }
    }
    assert_eq!(variable(&driver, "way_collisions"), 0);
    assert_eq!(variable(&driver, "way_misses"), 8);
    // Each turn is one and a half packets.
    let mut flows: Vec<u64> = (0..16).map(|_| driver.next(Time::ZERO).unwrap() % 8).collect();
    flows.sort_unstable();
    assert!(
        flows
            .chunks(2)
            .enumerate()
            .all(|(flow, pair)| pair == [flow as u64; 2]),
        "{flows:?}"
    );
    driver.offer(of_flow(of_one_set[8], 1000), Time::ZERO);
    assert_eq!(variable(&driver, "way_collisions"), 1);
}

/// The bytes by DSCP from tins that are all backlogged, for two seconds at 8 Mbit/s or 2 MB.
fn tin_shares(bandwidth: Option<Rate>, tins: Tins, dscps: &[u8]) -> BTreeMap<u8, u64> {
    let mut driver = cake(patient(Config {
        bandwidth,
        tins,
        ..Config::default()
    }));
    let mut now = Time::from_secs(1);
    // By cookie.
    let mut offered = Vec::new();
    let offer = |driver: &mut Driver<Cake>, offered: &mut Vec<u8>, dscp, now| {
        offered.push(dscp);
        driver.offer(of_dscp(dscp), now);
    };
    for dscp in dscps.repeat(5) {
        offer(&mut driver, &mut offered, dscp, now);
    }
    let mut sent = BTreeMap::new();
    let mut packets = 0;
    while packets < 2000 {
        match driver.next(now) {
            Some(cookie) => {
                let dscp = offered[cookie as usize];
                *sent.entry(dscp).or_default() += 1000;
                packets += 1;
                offer(&mut driver, &mut offered, dscp, now);
            }
            None => now = driver.root.watchdog().unwrap(),
        }
    }
    sent
}

#[test]
fn tins_get_their_parts_of_the_bandwidth() {
    let rate = Some(Rate::mbit(8));
    let percent = |bandwidth, tins, dscps: &[u8]| -> Vec<f64> {
        let sent = tin_shares(bandwidth, tins, dscps);
        dscps.iter().map(|dscp| sent[dscp] as f64 / 20_000.0).collect()
    };
    let close = |parts: Vec<f64>, expected: &[f64]| {
        let is_close = |(part, expected): (&f64, &f64)| (part - expected).abs() < 0.5;
        assert!(
            parts.iter().zip(expected).all(is_close),
            "{parts:?} of {expected:?}"
        );
    };
    // Best effort, bulk, voice: a sixteenth and a quarter go first, and best effort gets the rest.
    close(percent(rate, Tins::Diffserv3, &[0, 8, 46]), &[68.75, 6.25, 25.0]);
    close(percent(rate, Tins::Diffserv3, &[0, 8]), &[93.75, 6.25]);
    close(
        percent(rate, Tins::Diffserv4, &[0, 8, 26, 46]),
        &[18.75, 6.25, 50.0, 25.0],
    );
    // No other tin needs the rest: the only backlogged tin gets it.
    close(percent(rate, Tins::Diffserv3, &[46]), &[100.0]);
    // By weight: 1024, 64 and 256.
    close(percent(None, Tins::Diffserv3, &[0, 8, 46]), &[76.19, 4.76, 19.05]);
}

#[test]
fn a_packet_of_a_tin_below_its_threshold_goes_first() {
    let mut driver = cake(patient(Config {
        bandwidth: Some(Rate::mbit(8)),
        ..Config::default()
    }));
    for _ in 0..5 {
        driver.offer(of_dscp(0), Time::ZERO);
    }
    assert_eq!(driver.next(Time::ZERO), Some(0));
    driver.offer(of_dscp(46), Time::from_micros(500));
    assert_eq!(driver.next(Time::from_millis(1)), Some(5));
    assert_eq!(driver.next(Time::from_millis(2)), Some(1));
}

#[test]
fn the_mark_decides_before_the_class_and_the_class_before_the_dscp() {
    let mut config = patient(Config {
        bandwidth: Some(Rate::mbit(8)),
        fwmark: 0xf0,
        ..Config::default()
    });
    config.classifier.handle = 1;
    let node = Cake::node(config, 1).unwrap();
    let mut pool = Pool::with_capacity(1);
    let mut tin = |mark, minor, dscp| {
        let packet = Packet {
            mark,
            class: crate::packet::ClassId::new(1, minor),
            dscp,
            ..Packet::of_length(100)
        };
        let id = pool.insert(packet).unwrap();
        let named = node.algorithm().config.classifier.classify_again(id, &pool);
        let tin = node.algorithm().tin_of(named, id, &pool);
        pool.release(id);
        tin
    };
    // 0 is best effort, 1 bulk, 2 voice; users count bulk as 1.
    assert_eq!(tin(0x11, 3, 46), 1);
    assert_eq!(tin(0x30, 1, 0), 2);
    assert_eq!(tin(0x40, 1, 46), 1, "a fourth tin does not exist");
    assert_eq!(tin(0, 2, 46), 0);
    assert_eq!(tin(0, 4, 46), 2);
}

#[test]
fn a_sparse_flow_passes_flows_that_fill_their_queues() {
    let mut driver = cake(patient(Config::default()));
    for flow in [1, 2, 1, 2, 1, 2, 1, 2] {
        driver.offer(of_flow(flow, 1514), Time::ZERO);
    }
    for _ in 0..4 {
        assert!(driver.next(Time::ZERO).is_some());
    }
    driver.offer(of_flow(3, 100), Time::ZERO);
    assert_eq!(driver.next(Time::ZERO), Some(8));
}

#[test]
fn on_overflow_the_longest_queue_of_all_tins_loses_a_packet() {
    let mut driver = cake(Config {
        memory_limit: Some(10_000),
        ..Config::default()
    });
    for _ in 0..6 {
        driver.offer(of_dscp(8), Time::ZERO);
    }
    for _ in 0..4 {
        assert_eq!(driver.offer(of_dscp(46), Time::ZERO), Verdict::Queued);
    }
    assert_eq!(driver.offer(of_dscp(46), Time::ZERO), Verdict::Queued);
    assert_eq!(driver.returned, [(0, DropReason::MemoryLimit)]);
    assert_eq!(driver.offer(of_dscp(8), Time::ZERO), Verdict::Congested);
    assert_eq!(driver.returned, [(1, DropReason::MemoryLimit)]);
    assert_eq!(variable(&driver, "unresponsive_flows"), 1);
    assert_eq!(variable(&driver, "memory_used"), 10_000);
}

/// BLUE's probability decays while the flow sends nothing, and then the flow's entry becomes free.
#[test]
fn the_state_of_an_unresponsive_flow_decays() {
    let mut driver = cake(Config {
        memory_limit: Some(2_500),
        tins: Tins::Besteffort,
        ..Config::default()
    });
    for _ in 0..3 {
        driver.offer(of_flow(1, 1000), Time::from_secs(1));
    }
    assert_eq!(variable(&driver, "unresponsive_flows"), 1);
    let mut now = Time::from_secs(1);
    assert_eq!(driver.drain(now).len(), 2);
    // 1/256 is 16 steps of 1/4096, at most one per target of 5 ms, and each packet updates one flow.
    for _ in 0..60 {
        now += 10_000_000;
        driver.offer(of_flow(2, 100), now);
        assert!(driver.next(now).is_some());
    }
    assert_eq!(variable(&driver, "unresponsive_flows"), 0);
}

#[test]
fn washed_packets_leave_without_a_dscp_but_were_classified_by_it() {
    let mut pool = Pool::with_capacity(2);
    let config = patient(Config {
        bandwidth: Some(Rate::mbit(8)),
        wash: true,
        ..Config::default()
    });
    let mut node = Cake::node(config, 1).unwrap();
    let ids = [0, 46].map(|dscp| pool.insert(of_dscp(dscp)).unwrap());
    for id in ids {
        node.enqueue(id, Time::ZERO, &mut pool);
    }
    assert_eq!(node.dequeue(Time::ZERO, &mut pool), Some(ids[1]));
    assert!(pool[ids[1]].is_remarked() && pool[ids[1]].dscp == 0);
    assert!(!pool[ids[0]].is_remarked());
}

/// 500 packets arrive at once, and one is sent each millisecond. In a queue without signals so far, the first
/// signal comes with the second packet above the target. The next gaps are interval/sqrt(2), interval/sqrt(3)
/// and so on.
#[test]
fn signals_to_a_standing_queue_come_at_a_growing_rate() {
    for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true)] {
        let mut driver = cake(Config {
            tins: Tins::Besteffort,
            ..Config::default()
        });
        let packet = Packet {
            ecn,
            ..of_flow(1, 1000)
        };
        let mut now = Time::from_secs(1);
        let mut signals = Vec::new();
        driver.offer(packet, now);
        assert!(driver.next(now).is_some());
        for _ in 0..500 {
            driver.offer(packet, now);
        }
        for _ in 0..400 {
            let before = driver.pool.marked_total();
            assert!(driver.next(now).is_some());
            if driver.pool.marked_total() > before || !driver.returned.is_empty() {
                assert_eq!(driver.returned.is_empty(), marks);
                signals.push((now.nanos() - 1_000_000_000) / 1_000_000);
            }
            now += 1_000_000;
        }
        let gaps: Vec<u64> = signals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(signals[0], 7);
        assert!(
            gaps[0].abs_diff(71) <= 1 && gaps[1].abs_diff(58) <= 1 && gaps[2].abs_diff(50) <= 1,
            "{gaps:?}"
        );
    }
}

/// What TCP packets acknowledge, for the filter.
mod acknowledgements {
    use super::*;
    use crate::discipline::Inspect;
    use crate::flow::Acknowledgement;

    fn pure(number: u32) -> Acknowledgement {
        Acknowledgement {
            number,
            is_valid: true,
            is_pure: true,
            ..Acknowledgement::default()
        }
    }

    /// Enqueues these packets, 60 bytes each, in one flow. Returns the numbers that leave.
    fn left(ack_filter: AckFilter, packets: &[Acknowledgement]) -> Vec<u32> {
        let mut driver = cake(patient(Config {
            ack_filter,
            ..Config::default()
        }));
        driver.pool.keep(driver.root.needs());
        for acknowledgement in packets {
            let packet = Packet {
                cookie: acknowledgement.number.into(),
                ..of_flow(1, 60)
            };
            let id = driver.pool.insert(packet).expect("there is room");
            driver.pool.set_acknowledgement(id, *acknowledgement);
            driver.root.enqueue(id, Time::ZERO, &mut driver.pool);
            while let Some((id, reason)) = driver.pool.take_returned() {
                assert_eq!(reason, DropReason::RedundantAck);
                driver.pool.release(id);
            }
        }
        let statistics = driver.root.statistics();
        let dropped = statistics.dropped_for(DropReason::RedundantAck);
        let mut left = Vec::new();
        while let Some(id) = driver.root.dequeue(Time::ZERO, &mut driver.pool) {
            left.push(driver.pool.release(id).cookie as u32);
        }
        assert_eq!(left.len() as u64 + dropped, packets.len() as u64);
        left
    }

    #[test]
    fn two_redundant_ones_are_kept_or_one() {
        let packets: Vec<_> = (1..=10).map(pure).collect();
        assert_eq!(left(AckFilter::Off, &packets), (1..=10).collect::<Vec<_>>());
        assert_eq!(left(AckFilter::On, &packets), [9, 10]);
        assert_eq!(left(AckFilter::Aggressive, &packets), [10]);
        // Duplicate acknowledgements stay: a sender counts them.
        let twice = [pure(5), pure(5), pure(5), pure(5)];
        assert_eq!(left(AckFilter::Aggressive, &twice), [5; 4]);
    }

    #[test]
    fn data_and_other_flows_stay() {
        let mut data = pure(2);
        data.is_pure = false;
        let mut foreign = pure(3);
        foreign.ports = [7, 7];
        let packets = [pure(1), data, foreign, pure(4), pure(5), pure(6)];
        assert_eq!(left(AckFilter::On, &packets), [2, 3, 5, 6]);
        // Data acknowledges, too.
        assert_eq!(left(AckFilter::Aggressive, &packets[..3]), [2, 3]);
        assert_eq!(left(AckFilter::Aggressive, &packets), [2, 3, 6]);
    }

    /// The receiver reports marks (ECE): the last one without it stays.
    #[test]
    fn a_change_of_ecn_flags_is_kept() {
        let marked = |number| Acknowledgement {
            ecn_flags: 0x40,
            ..pure(number)
        };
        let packets = [pure(1), pure(2), marked(3), marked(4), marked(5), marked(6)];
        assert_eq!(left(AckFilter::On, &packets), [2, 5, 6]);
        assert_eq!(left(AckFilter::Aggressive, &packets), [2, 6]);
    }

    /// A direct transcription of the rules over a list of packets.
    fn model(filter: AckFilter, packets: &[Acknowledgement]) -> Vec<u32> {
        let mut queue: Vec<Acknowledgement> = Vec::new();
        for newest in packets {
            queue.push(*newest);
            let (older, _) = queue.split_at(queue.len() - 1);
            let of_flow: Vec<usize> = (0..older.len())
                .filter(|i| older[*i].has_flow_of(newest))
                .collect();
            // A run of packets with equal ECN flags is searched alone.
            let mut victim = None;
            let mut run: Vec<usize> = Vec::new();
            let mut flags = None;
            for &i in &of_flow {
                if !run.is_empty() && flags != Some(older[i].ecn_flags) {
                    run.clear();
                }
                if older[i].is_redundant_beside(newest) {
                    if run.is_empty() {
                        flags = Some(older[i].ecn_flags);
                    }
                    run.push(i);
                }
                if run.len() == 2 {
                    victim = Some(run[0]);
                    break;
                }
            }
            let directly_before = run == [older.len().wrapping_sub(1)] && flags == Some(newest.ecn_flags);
            if victim.is_none() && filter == AckFilter::Aggressive && directly_before {
                victim = Some(run[0]);
            }
            if let Some(victim) = victim.filter(|_| newest.is_valid && filter != AckFilter::Off) {
                queue.remove(victim);
            }
        }
        queue.iter().map(|packet| packet.number).collect()
    }

    proptest! {
        #[test]
        fn the_filter_equals_the_model(
            filter in prop::sample::select(vec![AckFilter::Off, AckFilter::On, AckFilter::Aggressive]),
            packets in prop::collection::vec(
                (0u32..20, prop::bool::weighted(0.9), prop::bool::weighted(0.9), 0u16..2, 0u8..2),
                0..30,
            ),
        ) {
            let packets: Vec<Acknowledgement> = packets
                .into_iter()
                .map(|(number, is_pure, is_valid, port, ecn)| Acknowledgement {
                    is_pure: is_pure && is_valid,
                    is_valid,
                    ports: [port, 0],
                    ecn_flags: ecn << 6,
                    ..pure(number)
                })
                .collect();
            prop_assert_eq!(left(filter, &packets), model(filter, &packets));
        }
    }
}

/// A link of 20 Mbit/s delivers what a sender of 30 Mbit/s has sent, and cake behind it follows.
#[test]
fn the_bandwidth_follows_the_link_before_it() {
    let mut driver = cake(patient(Config {
        autorate: true,
        ingress: true,
        tins: Tins::Besteffort,
        ..Config::default()
    }));
    let bandwidth = |driver: &Driver<Cake>| variable(driver, "bandwidth") * 8;
    assert_eq!(bandwidth(&driver), 0, "nothing is known yet");
    // 1250 bytes at 20 Mbit/s, in pairs, as a bottleneck with aggregation delivers them.
    for pair in 0..10_000 {
        let now = Time::from_micros(1000 * pair);
        driver.offer(of_flow(1, 1250), now);
        driver.offer(of_flow(1, 1250), now);
        while driver.next(now).is_some() {}
    }
    let estimate = variable(&driver, "capacity_estimate") * 8;
    assert!((19_000_000..=20_500_000).contains(&estimate), "{estimate}");
    assert!(
        bandwidth(&driver).abs_diff(estimate / 16 * 15) < 100_000,
        "{}",
        bandwidth(&driver)
    );
    // Fifteen sixteenths of the packets fit, and the queue before the bottleneck stays empty.
    assert!(driver.root.backlog().packets > 100);
}

/// What tc shows of a tin.
#[test]
fn tins_count_what_tc_shows() {
    let mut driver = cake(patient(Config {
        bandwidth: Some(Rate::mbit(16)),
        framing: Framing::ETHERNET,
        ..Config::default()
    }));
    driver.offer(of_dscp(0), Time::ZERO);
    driver.offer(of_flow(9, 60), Time::ZERO);
    driver.offer(of_dscp(46), Time::ZERO);
    let mut now = Time::ZERO;
    while driver.root.backlog().packets > 0 {
        now += 1_000_000;
        driver.next(now);
    }
    let mut tins: Vec<(u32, u64, BTreeMap<&str, Variable>)> = Vec::new();
    driver.root.visit_class_states(&mut |tin| {
        let variables = tin.variables.iter().copied().collect();
        tins.push((tin.minor, tin.sent.bytes, variables));
    });
    let minors: Vec<u32> = tins.iter().map(|(minor, ..)| *minor).collect();
    assert_eq!(minors, [1, 2, 3]);
    assert_eq!(
        tins.iter().map(|(_, sent, _)| *sent).collect::<Vec<_>>(),
        [0, 1060, 1000]
    );
    let best_effort = &tins[1].2;
    let expected = [
        ("threshold_rate", 2_000_000),
        ("sent_packets", 2),
        ("sent_bytes", 1060),
        ("max_pkt_len", 1000),
        ("way_misses", 2),
        ("flow_quantum", 488),
        ("drops", 0),
        ("backlog_bytes", 0),
    ];
    for (name, value) in expected {
        assert_eq!(best_effort[name], Variable::Integer(value), "{name}");
    }
    assert!(best_effort["peak_delay"] != Variable::Nanos(0));
    // The IP packets have 46 and 986 bytes.
    assert_eq!(variable(&driver, "min_network_size"), 46);
    assert_eq!(variable(&driver, "max_network_size"), 986);
    assert_eq!(variable(&driver, "min_adj_size"), 84);
    assert_eq!(variable(&driver, "max_adj_size"), 1024);
}

proptest! {
    /// Tins that get their tables with the first packet do what those do that had them before.
    #[test]
    fn tables_may_come_later(
        steps in prop::collection::vec((0u8..5, 0u8..64, 0u64..20), 1..300),
        isolation in prop::sample::select(vec![Isolation::Flows, Isolation::DualSource, Isolation::Triple]),
    ) {
        let config = Config {
            bandwidth: Some(Rate::mbit(10)),
            memory_limit: Some(20_000),
            isolation,
            ..Config::default()
        };
        let driver = |tables| Driver::new(Cake::node_with(config.clone(), 1, tables).unwrap());
        let mut drivers = [driver(Tables::Now), driver(Tables::WhenUsed)];
        let other = Config { isolation: Isolation::Hosts, ..config.clone() };
        let (mut now, mut is_other) = (Time::ZERO, false);
        for (step, dscp, flow) in steps {
            now += 200_000;
            let did = drivers.each_mut().map(|driver| match step {
                0..=2 => {
                    let verdict = driver.offer(Packet { dscp, ..of_flow(flow, 1000) }, now);
                    (Some(verdict), None, driver.returned.clone())
                }
                3 => (None, driver.next(now), driver.returned.clone()),
                _ if flow == 0 => {
                    driver.reconfigure(if is_other { config.clone() } else { other.clone() }, now);
                    (None, None, driver.returned.clone())
                }
                _ => (None, None, Vec::new()),
            });
            is_other ^= step == 4 && flow == 0;
            prop_assert_eq!(&did[0], &did[1]);
        }
    }
}
