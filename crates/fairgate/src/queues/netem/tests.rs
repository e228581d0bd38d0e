use core::time::Duration;

use super::*;
use crate::aqm::codel::{self, Codel};
use crate::classify::Classifier;
use crate::discipline::{Algorithm, Inspect};
use crate::packet::{Ecn, Packet};
use crate::probability::Probability;
use crate::queues::tbf::{self, Tbf};
use crate::rate::Rate;
use crate::scheduler::classes::{self, Classes};
use crate::testing::{Driver, fifo};
use crate::timestamps::Weight;
use crate::timestamps::wf2q_plus::Wf2qPlus;
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;

fn emulator(config: Config) -> Driver<Netem> {
    Driver::new(Netem::node(config, 1, None).unwrap())
}

fn delayed(millis: u64) -> Config {
    Config {
        delay: Duration::from_millis(millis),
        ..Config::default()
    }
}

fn chance(of_whole: u32, whole: u32) -> Chance {
    Chance {
        probability: Probability::ratio(of_whole, whole),
        correlation: Probability::ZERO,
    }
}

/// When packets leave if the driver asks in time: cookies and times in ns.
fn departures(driver: &mut Driver<Netem>, mut now: Time) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    while driver.root.backlog().packets > 0 {
        match driver.next(now) {
            Some(cookie) => left.push((cookie, now.nanos())),
            None if driver.root.backlog().packets == 0 => break,
            None => now = driver.root.watchdog().expect("a time to ask again"),
        }
    }
    left
}

#[test]
fn packets_leave_after_the_delay() {
    let mut driver = emulator(delayed(20));
    for millis in [0, 1, 5] {
        driver.offer(Packet::of_length(100), Time::from_millis(millis));
    }
    assert_eq!(
        departures(&mut driver, Time::from_millis(5)),
        [(0, 20 * MILLI), (1, 21 * MILLI), (2, 25 * MILLI)]
    );
}

#[test]
fn packets_beyond_the_limit_are_dropped() {
    let mut driver = emulator(Config {
        limit: 2,
        ..delayed(20)
    });
    for _ in 0..3 {
        driver.offer(Packet::of_length(100), Time::ZERO);
    }
    assert_eq!(driver.returned, [(2, DropReason::QueueLimit)]);
    driver.reconfigure(
        Config {
            limit: 1,
            ..delayed(20)
        },
        Time::ZERO,
    );
    assert_eq!(driver.returned, [(1, DropReason::Reconfigured)]);
}

#[test]
fn lost_packets_are_drops_and_ecn_marks_instead() {
    let all = Loss::Random {
        probability: Probability::ONE,
        correlation: Probability::ZERO,
    };
    let capable = Packet {
        ecn: Ecn::Ect0,
        ..Packet::of_length(100)
    };
    let mut driver = emulator(Config {
        loss: all,
        ..Config::default()
    });
    assert_eq!(driver.offer(capable, Time::ZERO), Verdict::Dropped);
    assert_eq!(driver.returned, [(0, DropReason::Lost)]);
    let mut driver = emulator(Config {
        loss: all,
        ecn: true,
        ..Config::default()
    });
    assert_eq!(driver.offer(capable, Time::ZERO), Verdict::Queued);
    assert_eq!(driver.offer(Packet::of_length(100), Time::ZERO), Verdict::Dropped);
    assert_eq!(driver.root.statistics().marked, 1);
}

/// The driver enqueues the copies. They are counted like other packets, and are not copied again.
#[test]
fn a_duplicate_is_a_packet_of_its_own() {
    let mut driver = emulator(Config {
        duplicate: chance(1, 1),
        ..delayed(20)
    });
    driver.offer(Packet::of_length(100), Time::ZERO);
    let variable = |driver: &Driver<Netem>, wanted| {
        let mut found = None;
        driver.root.visit_variables(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        found
    };
    assert_eq!(variable(&driver, "not_duplicated"), Some(Variable::Integer(1)));
    driver.pool.allow_copies();
    let id = driver.pool.insert(Packet::of_length(100)).unwrap();
    driver.root.enqueue(id, Time::ZERO, &mut driver.pool);
    let copied = driver.pool.take_copy().expect("a copy");
    assert_eq!(copied.original, id);
    driver.root.enqueue(copied.copy, Time::ZERO, &mut driver.pool);
    assert_eq!(driver.pool.take_copy(), None);
    assert_eq!(variable(&driver, "duplicated"), Some(Variable::Integer(1)));
    let statistics = driver.root.statistics();
    assert_eq!((statistics.enqueued.packets, statistics.enqueued.bytes), (3, 300));
    assert_eq!(departures(&mut driver, Time::ZERO).len(), 3);
}

/// As in Linux: a packet that is doubled and lost arrives once.
#[test]
fn a_packet_that_is_doubled_and_lost_arrives_once() {
    let mut driver = emulator(Config {
        duplicate: chance(1, 1),
        loss: Loss::Random {
            probability: Probability::ONE,
            correlation: Probability::ZERO,
        },
        ..Config::default()
    });
    driver.pool.allow_copies();
    assert_eq!(driver.offer(Packet::of_length(100), Time::ZERO), Verdict::Queued);
    assert!(!driver.pool.has_copies());
}

#[test]
fn a_corrupted_packet_has_a_bit_to_flip() {
    let mut driver = emulator(Config {
        corrupt: chance(1, 2),
        ..Config::default()
    });
    let mut first_half = 0;
    let mut corrupted = 0;
    for number in 0..4000u64 {
        let packet = Packet {
            cookie: number,
            ..Packet::of_length(100)
        };
        let id = driver.pool.insert(packet).unwrap();
        driver
            .root
            .enqueue(id, Time::from_nanos(number), &mut driver.pool);
        let left = driver
            .root
            .dequeue(Time::from_nanos(number), &mut driver.pool)
            .unwrap();
        let slot = driver.pool.release(left);
        assert_eq!(slot.is_corrupted(), slot.corrupted_bit(100).is_some());
        if let Some(bit) = slot.corrupted_bit(100) {
            assert!(bit < 800);
            corrupted += 1;
            first_half += u32::from(bit < 400);
        }
    }
    assert!((1850..2150).contains(&corrupted), "{corrupted}");
    assert!(
        (f64::from(first_half) / f64::from(corrupted) - 0.5).abs() < 0.05,
        "{first_half} of {corrupted}"
    );
}

/// `gap 5 delay 10ms`: every fifth packet is sent at once (netem's manual page).
#[test]
fn every_packet_at_the_end_of_a_gap_overtakes() {
    let mut driver = emulator(Config {
        reorder: Reorder {
            gap: 5,
            chance: chance(1, 1),
        },
        ..delayed(10)
    });
    for _ in 0..12 {
        driver.offer(Packet::of_length(100), Time::ZERO);
    }
    let left: Vec<u64> = departures(&mut driver, Time::ZERO)
        .iter()
        .map(|left| left.0)
        .collect();
    assert_eq!(left, [4, 9, 0, 1, 2, 3, 5, 6, 7, 8, 10, 11]);
}

#[test]
fn packets_are_sent_one_after_the_other_at_a_rate() {
    let link = LinkRate {
        rate: Rate::mbit(8),
        packet_overhead: -14,
        cell_size: 48,
        cell_overhead: 5,
    };
    let mut driver = emulator(Config {
        rate: Some(link),
        ..delayed(1)
    });
    for _ in 0..3 {
        driver.offer(Packet::of_length(1014), Time::ZERO);
    }
    // 1000 bytes are 21 cells of 53 bytes: 1113 bytes of one microsecond each.
    let times: Vec<u64> = departures(&mut driver, Time::ZERO)
        .iter()
        .map(|left| left.1)
        .collect();
    let near = |time: u64, expected: u64| time <= expected && expected - time < 10;
    assert!(
        times
            .iter()
            .zip([2_113_000, 3_226_000, 4_339_000])
            .all(|(time, expected)| near(*time, expected)),
        "{times:?}"
    );
}

#[test]
fn packets_leave_together_in_slots() {
    let mut driver = emulator(Config {
        slots: Some(SlotConfig {
            gap: SlotGap::Between(Duration::from_millis(10), Duration::from_millis(10)),
            packets: 3,
            bytes: i32::MAX as u32,
        }),
        ..Config::default()
    });
    for _ in 0..8 {
        driver.offer(Packet::of_length(100), Time::from_millis(1));
    }
    let times: Vec<u64> = departures(&mut driver, Time::from_millis(1))
        .iter()
        .map(|left| left.1 / MILLI)
        .collect();
    assert_eq!(times, [11, 11, 11, 21, 21, 21, 31, 31]);
}

/// The inner discipline sees only the time that packets wait there. The statistics see all of it.
#[test]
fn an_inner_discipline_measures_its_own_queue() {
    let codel = Codel::node(codel::Config::default()).unwrap();
    let mut driver = Driver::new(Netem::node(delayed(200), 1, Some(Box::new(codel))).unwrap());
    for millis in 0..2000 {
        let now = Time::from_millis(millis);
        driver.offer(Packet::of_length(1000), now);
        let left = driver.next(now);
        assert_eq!(left, millis.checked_sub(200));
    }
    let statistics = driver.root.statistics();
    assert_eq!(statistics.dropped.packets, 0);
    let sojourn = statistics.mean_sojourn().expect("packets left");
    assert!((sojourn - 200e6).abs() < 2048.0, "{sojourn}");
}

#[test]
fn an_inner_discipline_drops_and_shapes() {
    let shaper = crate::queues::tbf::Tbf::node(
        crate::queues::tbf::Config {
            profile: crate::queues::token_bucket::Profile::new(Rate::mbit(8), 1000),
            limit: None,
        },
        Some(fifo(3)),
    );
    let mut driver = Driver::new(Netem::node(delayed(10), 1, Some(Box::new(shaper.unwrap()))).unwrap());
    for _ in 0..6 {
        driver.offer(Packet::of_length(1000), Time::ZERO);
    }
    let left = departures(&mut driver, Time::ZERO);
    assert_eq!(left, [(0, 10 * MILLI), (1, 11 * MILLI), (2, 12 * MILLI)]);
    assert_eq!(driver.root.statistics().dropped_for(DropReason::QueueLimit), 3);
}

#[test]
fn contradictions_are_rejected() {
    let parameter = |config: Config| Netem::node(config, 1, None).unwrap_err().parameter();
    let unvaried = Config {
        shape: Shape::Normal,
        ..delayed(1)
    };
    assert_eq!(parameter(unvaried), Some("distribution"));
    let certain = Config {
        ecn: true,
        ..delayed(1)
    };
    assert_eq!(parameter(certain), Some("ecn"));
    let table = Config {
        shape: Shape::Table,
        ..delayed(1)
    };
    assert_eq!(parameter(table), Some("table"));
    let unused = Config {
        table: vec![1],
        ..delayed(1)
    };
    assert_eq!(parameter(unused), Some("distribution"));
    let at_once = Config {
        reorder: Reorder {
            gap: 1,
            chance: chance(1, 2),
        },
        ..Config::default()
    };
    assert_eq!(parameter(at_once), Some("delay"));
    let slots = Config {
        slots: Some(SlotConfig {
            gap: SlotGap::Between(Duration::from_millis(2), Duration::from_millis(1)),
            packets: 1,
            bytes: 1,
        }),
        ..Config::default()
    };
    assert_eq!(parameter(slots), Some("slot_max"));
    assert_eq!(
        parameter(Config {
            limit: 0,
            ..delayed(1)
        }),
        Some("limit")
    );
}

proptest! {
    /// Compares with a model in plain arithmetic, which draws the same random numbers: the times at which
    /// packets leave, and the order by time.
    #[test]
    fn times_and_order_are_those_of_the_model(
        delay in 0u64..3_000,
        jitter in 0u64..3_000,
        rate in prop::option::of(1u64..100),
        arrivals in prop::collection::vec((0u64..500, 1u32..2000), 1..200),
        seed: u64,
    ) {
        let config = Config {
            delay: Duration::from_nanos(delay),
            jitter: Duration::from_nanos(jitter),
            rate: rate.map(|mbit| LinkRate {
                rate: Rate::mbit(8 * mbit),
                packet_overhead: 0,
                cell_size: 0,
                cell_overhead: 0,
            }),
            ..Config::default()
        };
        let mut driver = Driver::new(Netem::node(config, seed, None).unwrap());
        let mut random = Random::new(seed);
        // The first number of each of the four correlated sources.
        (0..4).for_each(|_| _ = random.bits32());
        let mut now = 0;
        let mut expected: Vec<u64> = Vec::new();
        for &(pause, length) in &arrivals {
            now += pause;
            driver.offer(Packet::of_length(length), Time::from_nanos(now));
            let drawn = match jitter {
                0 => 0,
                _ => ((u64::from(random.bits32()) * 2 * jitter) >> 32) as i64 - jitter as i64,
            };
            let mut time = (now as i64 + delay as i64 + drawn).max(0) as u64;
            if let Some(mbit) = rate {
                let meter = Rate::mbit(8 * mbit).meter();
                time = expected.iter().copied().max().unwrap_or(0).max(time) + meter.nanos(length.into());
            }
            expected.push(time);
        }
        let left = departures(&mut driver, Time::from_nanos(now));
        let mut order: Vec<u64> = left.iter().map(|(cookie, _)| expected[*cookie as usize]).collect();
        prop_assert!(order.is_sorted(), "{:?}", order);
        for (cookie, at) in left {
            prop_assert_eq!(at, expected[cookie as usize].max(now));
        }
        expected.sort_unstable();
        order.sort_unstable();
        prop_assert_eq!(order, expected);
    }
}

/// Returns the scheduler, over one class. It looks at the class's first packet when the class becomes
/// active.
fn looking_at(class: Box<dyn Discipline>) -> Box<dyn Discipline> {
    let config = classes::Config {
        classifier: Classifier {
            handle: 1,
            default: Some(1),
            ..Classifier::default()
        },
        classes: vec![classes::ClassConfig {
            minor: 1,
            share: Weight(1),
        }],
        templates: Default::default(),
        settings: (),
    };
    Box::new(Classes::<Wf2qPlus>::node(config, vec![class]).unwrap())
}

fn over(config: Config, inner: Box<dyn Discipline>) -> Box<dyn Discipline> {
    Box::new(Netem::node(config, 1, Some(inner)).unwrap())
}

/// The time of a packet's first arrival, when it is dequeued at `now`.
fn arrival_of_next<A: Algorithm>(driver: &mut Driver<A>, now: Time) -> Time {
    let id = driver.root.dequeue(now, &mut driver.pool).expect("it is due");
    driver.pool.release(id).enqueued_at
}

#[test]
fn a_packet_that_moves_into_an_emulator_and_is_looked_at_keeps_its_arrival() {
    let config = tbf::Config {
        limit: None,
        ..tbf::Config::of_rate(Rate::mbit(1))
    };
    let mut driver = Driver::new(Tbf::node(config, Some(fifo(10))).unwrap());
    driver.offer(Packet::of_length(100), Time::from_millis(1));
    let within = looking_at(over(
        delayed(0),
        Box::new(Netem::node(delayed(10), 1, None).unwrap()),
    ));
    driver.replace_class(1, within, Time::from_millis(5));
    assert_eq!(
        arrival_of_next(&mut driver, Time::from_millis(15)),
        Time::from_millis(1)
    );
}

/// The packet is in a class of an emulator, which remembers its arrival, and moves into another emulator,
/// from which it is taken at once.
#[test]
fn a_packet_that_moves_between_emulators_keeps_its_first_arrival() {
    let inner = Box::new(Netem::node(delayed(50), 1, None).unwrap());
    let mut driver = Driver::new(Netem::node(delayed(2), 1, Some(inner)).unwrap());
    driver.offer(Packet::of_length(100), Time::from_millis(1));
    assert_eq!(
        driver.next(Time::from_millis(3)),
        None,
        "it is handed to the class"
    );
    driver.replace_class(1, looking_at(over(delayed(0), fifo(10))), Time::from_millis(5));
    assert_eq!(
        arrival_of_next(&mut driver, Time::from_millis(5)),
        Time::from_millis(1)
    );
}
