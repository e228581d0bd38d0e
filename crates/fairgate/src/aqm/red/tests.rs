use super::*;
use crate::aqm::codel::{self, Codel};
use crate::discipline::Discipline;
use crate::discipline::{Inspect, Reconfigure};
use crate::packet::{Ecn, Packet};
use crate::queues::fifo::{self, Fifo};
use crate::queues::tbf::{self, Tbf};
use crate::queues::token_bucket::Profile;
use crate::testing::{Driver, fifo as fifo_of};
use proptest::prelude::*;

/// With these thresholds 15 and 30 packets of 1000 bytes are queued on average.
fn config() -> Config {
    Config {
        limit: 120_000,
        min: Some(15_000),
        max: Some(30_000),
        burst: Some(20),
        ..Config::default()
    }
}

fn variable<A: Algorithm>(driver: &Driver<A>, wanted: &str) -> i64 {
    let mut found = None;
    driver.root.visit_variables(&mut |name, value| {
        if let Variable::Integer(value) = value
            && name == wanted
        {
            found = Some(value);
        }
    });
    found.expect("the variable exists")
}

fn packet(ecn: Ecn) -> Packet {
    Packet {
        ecn,
        ..Packet::of_length(1000)
    }
}

/// Offers packets until the average is above `max`, and then one more.
fn forced(config: Config, ecn: Ecn) -> (Verdict, u64) {
    let mut driver = Driver::new(Red::node(config, 1).unwrap());
    for _ in 0..60 {
        driver.offer(packet(Ecn::Ect0), Time::ZERO);
    }
    let marked = driver.root.statistics().marked;
    let verdict = driver.offer(packet(ecn), Time::ZERO);
    (verdict, driver.root.statistics().marked - marked)
}

#[test]
fn above_max_packets_are_marked_or_dropped_as_configured() {
    let red = |ecn, harddrop, nodrop| Config {
        // No random drops.
        probability: Probability::ZERO,
        response: Response {
            ecn,
            harddrop,
            nodrop,
        },
        ..config()
    };
    assert_eq!(
        forced(red(false, false, false), Ecn::Ect0),
        (Verdict::Congested, 0)
    );
    assert_eq!(forced(red(true, false, false), Ecn::Ect0), (Verdict::Queued, 1));
    assert_eq!(
        forced(red(true, false, false), Ecn::NotEct),
        (Verdict::Congested, 0)
    );
    assert_eq!(forced(red(true, false, true), Ecn::NotEct), (Verdict::Queued, 0));
    assert_eq!(forced(red(true, true, false), Ecn::Ect0), (Verdict::Congested, 0));
}

#[test]
fn missing_thresholds_are_derived_as_in_tc() {
    let config = Config::default();
    assert_eq!(config.thresholds(), (33_333, 100_000));
    assert_eq!(config.burst(), 55);
    let of_min = Config {
        min: Some(10_000),
        ..config.clone()
    };
    assert_eq!(of_min.thresholds(), (10_000, 30_000));
    let of_max = Config {
        max: Some(60_000),
        ..config
    };
    assert_eq!(of_max.thresholds(), (20_000, 60_000));
}

#[test]
fn values_out_of_range_are_rejected_by_name() {
    let refused = |config: Config| Red::node(config, 1).unwrap_err().parameter();
    let default = Config::default;
    assert_eq!(
        refused(Config {
            avpkt: 0,
            ..default()
        }),
        Some("avpkt")
    );
    assert_eq!(
        refused(Config {
            limit: 0,
            ..default()
        }),
        Some("limit")
    );
    let packets = Config {
        limit_packets: Some(0),
        ..config()
    };
    assert_eq!(refused(packets), Some("limit_packets"));
    assert_eq!(
        refused(Config {
            burst: Some(1),
            ..default()
        }),
        Some("burst")
    );
    let response = Response {
        nodrop: true,
        ..Response::default()
    };
    assert_eq!(
        refused(Config {
            response,
            ..default()
        }),
        Some("nodrop")
    );
}

/// Ten packets of 100 bytes, counted as packets of 1000 bytes: short packets count as much as long ones.
#[test]
fn packets_may_be_counted_instead_of_bytes() {
    let average = |measure| {
        let config = Config { measure, ..config() };
        let mut driver = Driver::new(Red::node(config, 1).unwrap());
        for _ in 0..10 {
            driver.offer(Packet::of_length(100), Time::ZERO);
        }
        variable(&driver, "qavg")
    };
    let ratio = average(Measure::Packets) as f64 / average(Measure::Bytes) as f64;
    assert!((ratio - 10.0).abs() < 0.01, "{ratio}");
}

/// The average of a queue of 10 packets is 10,000 bytes, below the target; then it is 25,000, above the
/// target.
#[test]
fn max_p_adapts_every_half_second() {
    let config = Config {
        adaptive: true,
        response: Response {
            ecn: true,
            ..Response::default()
        },
        ..config()
    };
    let mut driver = Driver::new(Red::node(config, 1).unwrap());
    let mut offered = 0;
    let mut hold = |driver: &mut Driver<Red>, packets: u64, steps: u64| {
        for _ in 0..steps {
            let now = Time::from_millis(offered);
            while driver.root.backlog().packets >= packets {
                driver.next(now);
            }
            driver.offer(packet(Ecn::Ect0), now);
            offered += 1;
        }
    };
    let start = variable(&driver, "max_P");
    hold(&mut driver, 10, 499);
    assert_eq!(variable(&driver, "max_P"), start);
    hold(&mut driver, 10, 502);
    assert_eq!(variable(&driver, "max_P"), start / 10 * 9 / 10 * 9);
    let low = variable(&driver, "max_P");
    hold(&mut driver, 29, 500);
    assert_eq!(variable(&driver, "max_P"), low + low / 4);
}

/// After any time without calls the steps that are due are made, up to the bounds.
#[test]
fn adaptation_steps_are_made_after_a_time_without_packets() {
    let adaptive = Config {
        adaptive: true,
        ..config()
    };
    let after = |seconds| {
        let mut driver = Driver::new(Red::node(adaptive.clone(), 1).unwrap());
        driver.offer(packet(Ecn::NotEct), Time::ZERO);
        driver.offer(packet(Ecn::NotEct), Time::from_secs(seconds));
        variable(&driver, "max_P")
    };
    let start = Probability::ratio(1, 50).parts() as i64;
    let tenths = |steps| (0..steps).fold(start, |parts, _| parts / 10 * 9);
    assert_eq!(after(1), tenths(2));
    assert_eq!(after(2), tenths(4));
    assert_eq!(after(1_000_000), tenths(7), "0.02 * 0.9^7 is below 1 %");
}

#[test]
fn a_change_keeps_the_average_and_drops_the_newest_packets() {
    let mut driver = Driver::new(Red::node(config(), 1).unwrap());
    for _ in 0..10 {
        driver.offer(packet(Ecn::NotEct), Time::ZERO);
    }
    let before = variable(&driver, "qavg");
    let slower = Config {
        burst: Some(40),
        limit: 9_000,
        ..config()
    };
    driver.reconfigure(slower.clone(), Time::ZERO);
    assert_eq!(driver.returned, [(9, DropReason::Reconfigured)]);
    // Wlog 3 and 5: see average.rs.
    let factor = variable(&driver, "qavg") / (before >> 3);
    assert!(
        factor.is_positive() && (factor as u64).is_power_of_two(),
        "{factor}"
    );
    assert_eq!(driver.root.algorithm().config(), slower);
    let refused = Config {
        burst: Some(1),
        ..slower.clone()
    };
    assert!(
        driver
            .root
            .reconfigure(&refused, Time::ZERO, &mut driver.pool)
            .is_err()
    );
    assert_eq!(driver.root.algorithm().config(), slower);
}

/// RED in real numbers, after the paper's figure 17, with `p_a = p_b / (1 - count p_b)` and the same random
/// numbers: at a constant average both mark equally often.
#[test]
fn the_number_of_drops_equals_that_of_the_papers_formula() {
    let config = Config {
        min: Some(5_000),
        max: Some(15_000),
        burst: Some(50),
        probability: Probability::ratio(1, 10),
        ..config()
    };
    let mut driver = Driver::new(Red::node(config, 3).unwrap());
    let scale = f64::from(1u32 << driver.root.algorithm().inner.derived.filter.w_log());
    let (mut offered, mut dropped) = (0, 0);
    let mut random = Random::new(9);
    let (mut count, mut expected) = (-1.0, 0);
    while offered < 200_000 {
        let now = Time::from_millis(offered);
        while driver.root.backlog().packets > 10 {
            driver.next(now);
        }
        let verdict = driver.offer(packet(Ecn::NotEct), now);
        offered += 1;
        dropped += u32::from(verdict == Verdict::Congested);
        // The average is between 10 and 11 packets; its exact value is taken from ours.
        let average = variable(&driver, "qavg") as f64 / scale;
        let p_b = 0.1 * (average - 5_000.0) / 10_000.0;
        if p_b <= 0.0 {
            count = -1.0;
            continue;
        }
        count += 1.0;
        let p_a = if count * p_b < 1.0 {
            p_b / (1.0 - count * p_b)
        } else {
            1.0
        };
        if f64::from(random.bits32()) < p_a * 4_294_967_296.0 {
            expected += 1;
            count = 0.0;
        }
    }
    let ratio = f64::from(dropped) / f64::from(expected);
    assert!((ratio - 1.0).abs() < 0.05, "{dropped} for {expected}");
}

proptest! {
    /// `burst` holds: nothing is dropped in a burst that cannot raise the average to `min`.
    #[test]
    fn a_burst_passes(burst in 20u32..200) {
        let config = Config {
            burst: Some(burst),
            min: Some(15_000),
            max: Some(45_000),
            limit: 1_000_000,
            probability: Probability::ONE,
            ..Config::default()
        };
        let mut driver = Driver::new(Red::node(config, 1).unwrap());
        for _ in 0..burst {
            prop_assert_eq!(driver.offer(packet(Ecn::NotEct), Time::ZERO), Verdict::Queued);
        }
    }

    /// Equal seeds give equal drops, independently of the origin of time.
    #[test]
    fn decisions_depend_on_the_seed_alone(
        seed in any::<u64>(), origin in 0u64..1 << 40, arrivals in prop::collection::vec(0u8..4, 1..300),
    ) {
        let run = |origin: u64| {
        let config = Config {
            probability: Probability::ratio(1, 3),
            adaptive: true,
            gentle: true,
            ..config()
        };
            let mut driver = Driver::new(Red::node(config, seed).unwrap());
            let mut verdicts = Vec::new();
            for (step, &count) in arrivals.iter().enumerate() {
                let now = Time::from_micros(origin) + step as u64 * 10_000_000;
                for _ in 0..count {
                    verdicts.push(driver.offer(packet(Ecn::NotEct), now));
                }
                driver.next(now);
            }
            verdicts
        };
        prop_assert_eq!(run(origin), run(origin + 1));
    }
}

/// A discipline that sends one packet per millisecond.
fn slow() -> Box<dyn Discipline> {
    let config = tbf::Config {
        profile: Profile::new(Rate::mbit(8), 1000),
        limit: Some(tbf::Limit::Bytes(1 << 20)),
    };
    Box::new(Tbf::node(config, None).unwrap())
}

#[test]
fn an_inner_fifo_gives_the_same_result_as_the_own_one() {
    let inside = fifo::Config {
        limit_packets: None,
        limit_bytes: Some(config().limit.into()),
        ..fifo::Config::default()
    };
    let child = Box::new(Fifo::node(inside).unwrap());
    let mut own = Driver::new(Red::node(config(), 5).unwrap());
    let mut over = Driver::new(Queue::over(config(), 5, child).unwrap());
    let mut random = Random::new(9);
    for step in 0..20_000u64 {
        let now = Time::from_micros(step * 100);
        if random.below(100) < 52 {
            assert_eq!(
                own.offer(packet(Ecn::NotEct), now),
                over.offer(packet(Ecn::NotEct), now)
            );
        } else {
            assert_eq!(own.next(now), over.next(now));
        }
        assert_eq!(variable(&own, "qavg"), variable(&over, "qavg"));
    }
    assert_eq!(own.root.statistics(), over.root.statistics());
    assert!(
        own.root.statistics().dropped_for(DropReason::Aqm) > 0,
        "random numbers were drawn"
    );
}

#[test]
fn a_throttled_inner_discipline_is_not_an_idle_queue() {
    let mut driver = Driver::new(Queue::over(config(), 1, slow()).unwrap());
    for _ in 0..10 {
        driver.offer(packet(Ecn::NotEct), Time::ZERO);
    }
    assert_eq!(driver.next(Time::ZERO), Some(0));
    let queued = variable(&driver, "qavg");
    assert_eq!(driver.next(Time::ZERO), None, "the bucket is empty");
    assert_eq!(driver.root.watchdog(), Some(Time::from_millis(1)));
    driver.offer(packet(Ecn::NotEct), Time::from_micros(999));
    assert!(
        variable(&driver, "qavg") > queued,
        "the average rose and did not decrease"
    );
}

#[test]
fn the_inner_discipline_has_the_limits() {
    let limited = Config {
        limit_packets: Some(5),
        ..config()
    };
    let refused = Queue::over(limited.clone(), 1, fifo_of(3)).unwrap_err();
    assert_eq!(refused.parameter(), Some("limit_packets"));
    let mut driver = Driver::new(Queue::over(config(), 1, fifo_of(3)).unwrap());
    for _ in 0..5 {
        driver.offer(packet(Ecn::NotEct), Time::ZERO);
    }
    assert_eq!(driver.root.statistics().dropped_for(DropReason::QueueLimit), 2);
    let mut pool = Pool::with_capacity(1);
    assert!(driver.root.reconfigure(&limited, Time::ZERO, &mut pool).is_err());
    driver.replace_class(INNER, fifo_of(2), Time::ZERO);
    assert_eq!(driver.root.backlog().packets, 2, "the new one has room for two");
    assert_eq!(driver.drain(Time::ZERO), [0, 1]);
}

/// The statistics of red include all drops and marks, those of the inner discipline too.
#[test]
fn drops_and_marks_of_the_inner_discipline_are_counted_separately() {
    let never = Config {
        min: Some(90_000),
        max: Some(110_000),
        burst: Some(200),
        ..config()
    };
    let codel = codel::Config {
        codel: codel::Params {
            ecn: true,
            ..codel::Params::default()
        },
        ..codel::Config::default()
    };
    let run = |config: Config| {
        let child = Box::new(Codel::node(codel.clone()).unwrap());
        let mut driver = Driver::new(Queue::over(config, 1, child).unwrap());
        for step in 0..2000 {
            let ecn = if step % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            let now = Time::from_millis(step);
            driver.offer(packet(ecn), now);
            if step % 32 != 0 {
                driver.next(now);
            }
        }
        let statistics = driver.root.statistics();
        let by_aqm = statistics.dropped_for(DropReason::Aqm) as i64;
        (
            [variable(&driver, "early"), variable(&driver, "marked")],
            [by_aqm, statistics.marked as i64],
        )
    };
    let (own, all) = run(never);
    assert_eq!(own, [0, 0], "below `min` red does nothing");
    assert!(all.iter().all(|&count| count > 0), "{all:?} are codel's");
    let (own, all) = run(config());
    assert!(own[0] > 0 && own[0] < all[0], "{own:?} of {all:?}");
    let mut alone = Driver::new(Red::node(config(), 1).unwrap());
    for _ in 0..60 {
        alone.offer(packet(Ecn::NotEct), Time::ZERO);
    }
    let early = alone.root.statistics().dropped_for(DropReason::Aqm);
    assert_eq!(variable(&alone, "early"), early as i64);
}
