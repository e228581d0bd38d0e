use fairgate_run_api::{
    AutorateDirection, AutorateStatus, ChangesStatus, CountStatus, FlowStatus, Losses, NodeStatus,
    PassedByStatus, ProcessorStatus, RoundTripStatus, Sojourn,
};
use proptest::prelude::*;

use super::*;

/// The status of a run at a time, s. Each direction has sent some megabits and held each of its packets for
/// some milliseconds.
pub(crate) fn status(at: f64, sent: [f64; 2], held: f64) -> Status {
    let directions = [("left", "right"), ("right", "left")].into_iter().zip(sent);
    let direction = |((from, to), megabits): ((&str, &str), f64)| {
        let bytes = (megabits * 125_000.0) as u64;
        let count = CountStatus {
            packets: bytes / 1_250,
            bytes,
        };
        let none = CountStatus { packets: 0, bytes: 0 };
        DirectionStatus {
            from: from.to_owned(),
            to: to.to_owned(),
            sent: count,
            rate_bps: 0.0,
            in_line: 0,
            lost: Losses::default(),
            socket_full: 0,
            super_packets: 0,
            passed_by: 0,
            sojourn: Sojourn::default(),
            tree: NodeStatus {
                discipline: "tbf".to_owned(),
                class: None,
                name: None,
                node: None,
                limit_bps: None,
                host: None,
                subscriber: None,
                enqueued: count,
                dequeued: count,
                dropped: none,
                flushed: none,
                backlog: none,
                drops: Default::default(),
                marked: 0,
                overlimits: 0,
                sojourn_s: count.packets as f64 * held / 1e3,
                variables: Default::default(),
                at_s: at,
                classes: Vec::new(),
                class_states: Vec::new(),
                estimated: None,
                estimated_classes: Vec::new(),
            },
            queue: "[queue.tree]\ndiscipline = \"tbf\"\nrate = \"20mbit\"\nburst = \"5kb\"\ninner = { \
                    discipline = \"fq_codel\" }\n"
                .to_owned(),
        }
    };
    Status {
        name: "home".to_owned(),
        pid: 1,
        uptime_s: at,
        isolated: true,
        processor: ProcessorStatus::default(),
        changes: ChangesStatus::default(),
        revision: 0,
        fallback: None,
        autorate: None,
        passed_by: PassedByStatus::default(),
        nat: None,
        directions: directions.map(direction).collect(),
    }
}

/// A flow from left to right whose round trips are these, ms.
pub(crate) fn flow(median: f64, minimum: f64) -> FlowStatus {
    FlowStatus {
        from: "left".to_owned(),
        destination: "192.0.2.1".to_owned(),
        packets: 1_000,
        round_trip_ms: Some(RoundTripStatus {
            latest: median,
            minimum,
            median,
        }),
        ..FlowStatus::default()
    }
}

/// A run that sends so many Mbit/s each way, and holds packets for some ms.
fn reading(sent: [f64; 2], held: f64, flow: FlowStatus) -> RunReading {
    RunReading {
        before: status(10.0, [0.0; 2], 0.0),
        after: status(12.0, sent.map(|rate| rate * 2.0), held),
        flows: FlowsStatus {
            flows: vec![flow],
            ..FlowsStatus::default()
        },
        options: String::new(),
    }
}

fn rate(reading: &RunReading) -> Finding {
    rates(reading).remove(0)
}

#[test]
fn a_queue_behind_the_run_is_found() {
    let found = rate(&reading([9.6, 0.2], 0.1, flow(214.0, 2.0)));
    assert_eq!(found.level, Level::Problem);
    assert!(
        found.seen.contains("9.6 Mbit/s of 20.0 Mbit/s") && found.seen.contains("214 ms"),
        "{}",
        found.seen
    );
    // 95 % of 9.6 Mbit/s.
    assert_eq!(
        found.remedy.unwrap(),
        "fairgate queue --from left change root rate=9120000bit"
    );
}

/// A download fills the line towards the run, and the acknowledgements see it.
#[test]
fn the_loaded_direction_is_named() {
    let found = rate(&reading([0.3, 9.0], 0.1, flow(180.0, 2.0)));
    assert_eq!(found.level, Level::Problem);
    assert!(found.remedy.unwrap().contains("--from right"));
}

#[test]
fn a_queue_of_our_own_is_fine() {
    let found = rate(&reading([19.9, 0.2], 25.0, flow(30.0, 2.0)));
    assert_eq!(found.level, Level::Ok, "{}", found.seen);
}

#[test]
fn without_tcp_nothing_is_claimed() {
    let mut idle = reading([0.0, 0.0], 0.0, FlowStatus::default());
    assert_eq!(rate(&idle).level, Level::Note);
    // A tree without a rate does not shape, so no rate of it can be too high.
    idle = reading([9.6, 0.2], 0.1, flow(214.0, 2.0));
    for direction in &mut idle.before.directions {
        direction.queue = "[queue.tree]\ndiscipline = \"fq_codel\"\n".to_owned();
    }
    assert_ne!(rate(&idle).level, Level::Problem);
}

#[test]
fn a_queue_that_is_always_full_is_noted() {
    let found = rate(&reading([9.6, 0.2], 0.1, flow(214.0, 210.0)));
    assert_eq!(found.level, Level::Note);
    assert!(found.seen.contains("none below 210 ms"), "{}", found.seen);
}

#[test]
fn an_interface_without_room_is_found() {
    let mut full = reading([9.6, 0.2], 0.1, flow(3.0, 2.0));
    full.after.directions[0].socket_full = 40;
    let found = rate(&full);
    assert_eq!(found.level, Level::Warning);
    assert!(
        found.seen.starts_with("right had no room 40 times"),
        "{}",
        found.seen
    );
}

#[test]
fn what_is_lost_or_goes_past_is_found() {
    let mut bad = reading([9.6, 0.2], 0.1, flow(3.0, 2.0));
    bad.before.directions[0].lost.ring_full = 5;
    bad.after.directions[0].lost.ring_full = 5;
    assert_eq!(losses(&bad)[0].level, Level::Note);
    bad.after.directions[0].lost.ring_full = 9;
    assert_eq!(losses(&bad)[0].level, Level::Warning);
    bad.after.directions[1].passed_by = 7;
    bad.after.fallback = Some("it was refused".to_owned());
    let found = judge(&bad);
    let has = |check, level| {
        found
            .iter()
            .any(|finding| finding.check == check && finding.level == level)
    };
    assert!(
        has("bypass", Level::Warning) && has("file", Level::Problem),
        "{found:?}"
    );
}

#[test]
fn a_bucket_below_a_frame_is_found() {
    let mut status = status(1.0, [1.0; 2], 0.0);
    let at = |mtu| {
        vec![InterfaceReading {
            mtu,
            ..InterfaceReading::default()
        }]
    };
    assert_eq!(buckets(&status, &at(1_500))[0].level, Level::Ok);
    assert_eq!(buckets(&status, &at(9_000))[0].level, Level::Problem);
    // It holds a full frame, and not one with a tag.
    for direction in &mut status.directions {
        direction.queue = direction.queue.replace("5kb", "1516b");
    }
    assert_eq!(buckets(&status, &at(1_500))[0].level, Level::Warning);
}

proptest! {
    /// Whatever is measured: a problem is claimed only if round trips are longer than the shortest one by
    /// more than the run itself holds packets.
    #[test]
    fn only_a_queue_elsewhere_is_a_problem(
        sent in 0.0..20.0f64,
        back in 0.0..20.0f64,
        held in 0.0..100.0f64,
        shortest in 0.0..100.0f64,
        longer in 0.0..400.0f64,
    ) {
        let reading = reading([sent, back], held, flow(shortest + longer, shortest));
        for finding in rates(&reading) {
            if finding.level == Level::Problem {
                prop_assert!(longer >= EXCESS - 1e-6 && longer > held, "{}", finding.seen);
            }
        }
    }
}

/// Only a rate that can't fall any more, while round trips grow and not in the tree, is a problem.
#[test]
fn autorate_at_its_least_rate_is_found_while_delay_grows() {
    let judged = |rate_bps: u64, excess_us: f64, held: f64| {
        let mut reading = reading([4.0, 0.2], held, flow(20.0, 20.0));
        reading.after.autorate = Some(AutorateStatus {
            source: "probes".to_owned(),
            baseline_us: Some(15_000.0),
            excess_us: Some(excess_us),
            changes: 9,
            refused: 0,
            longest_pause_us: 0.0,
            directions: vec![AutorateDirection {
                from: "left".to_owned(),
                rate_bps,
                min_bps: 5_000_000,
                base_bps: 20_000_000,
                max_bps: 50_000_000,
                achieved_bps: 4_000_000,
                state: "congested".to_owned(),
            }],
        });
        rate(&reading)
    };
    let stuck = judged(5_000_000, 80_000.0, 1.0);
    assert_eq!(stuck.level, Level::Problem);
    assert!(
        stuck.seen.contains("is at its `min`, 5.0 Mbit/s"),
        "{}",
        stuck.seen
    );
    assert!(stuck.remedy.unwrap().contains("lower `min`"));
    for (what, found) in [
        ("it can fall", judged(5_000_001, 80_000.0, 1.0)),
        ("round trips are short", judged(5_000_000, 19_000.0, 1.0)),
        ("the tree holds the packets", judged(5_000_000, 80_000.0, 60.0)),
    ] {
        assert!(!found.seen.contains("`min`"), "{what}: {}", found.seen);
    }
}
