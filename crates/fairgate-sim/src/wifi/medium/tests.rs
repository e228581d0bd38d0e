//! Exact times, shares and losses of a medium, and what holds for any traffic.

use super::*;
use crate::wifi::phy::{Radio, Standard};
use crate::wifi::rate::Errors;
use proptest::prelude::*;

const RADIO: Radio = Radio {
    standard: Standard::Ac,
    width: 80,
    streams: 1,
    guard_interval: 800,
};

fn settings() -> Settings {
    Settings {
        timing: Timing::ofdm(),
        limits: AggregateLimits {
            frames: 64,
            bytes: 1 << 20,
            duration: 5_484_000,
        },
        window: 64,
        parameters: CategoryParameters::EDCA,
        countdown: Countdown::AtBoundary,
        retries: Some(7),
        rts_from: None,
        queue_limit: 100,
    }
}

fn medium(settings: Settings, stations: usize, errors: Errors) -> Medium<u32> {
    let rate = StationRate::new(&RADIO, 9, errors).unwrap();
    Medium::new(settings, vec![rate; stations])
}

fn stream() -> Stream {
    Stream::new(1, "test", "medium")
}

const DOWN: AirDirection = AirDirection {
    station: 0,
    is_down: true,
};

fn run(medium: &mut Medium<u32>, random: &mut Stream) -> Vec<(u64, u32, Fate)> {
    let (mut all, mut left) = (Vec::new(), Vec::new());
    while let Some(now) = medium.next() {
        medium.advance(now, random, &mut left);
        all.extend(left.drain(..).map(|frame| (now.nanos(), frame.id, frame.fate)));
    }
    all
}

/// One packet on an idle channel: AIFS of best effort is 16 + 3 x 9 µs, and the PPDU takes 40 µs and 8
/// symbols.
#[test]
fn a_single_packet_takes_aifs_and_its_ppdu() {
    let mut random = stream();
    let mut medium = medium(settings(), 1, Errors::NONE);
    medium.offer(DOWN, AccessCategory::BestEffort, 5, 1500, Time::ZERO, &mut random);
    let end = 43_000 + 72_000;
    assert_eq!(run(&mut medium, &mut random), [(end, 5, Fate::Delivered)]);
    // The exchange ends SIFS and an acknowledgement later.
    let now = Time::from_nanos(end + 16_000 + 28_000);
    assert_eq!(medium.counters(now).busy, 72_000 + 16_000 + 28_000);
    assert_eq!(medium.counters(Time::from_nanos(end)).busy, 72_000);
    assert_eq!(medium.directions()[DOWN.index()].airtime, 116_000);
}

/// Offers frames 0 to `count - 1` of best effort to the first station, all at the beginning.
fn offer(medium: &mut Medium<u32>, count: u32, random: &mut Stream) {
    for id in 0..count {
        medium.offer(DOWN, AccessCategory::BestEffort, id, 1500, Time::ZERO, random);
    }
}

/// 64 frames of 1544 bytes are 790,550 bits and 507 symbols of 4 µs: 2068 µs, which fits into the
/// transmit opportunity of 2528 µs. What is left of it, 2528 - 2068 - 16 - 32 - 16 = 396 µs, holds
/// another 8 frames: 396 - 48 - 40 are 308 µs, that is 77 symbols and 15,012 bytes, or 9 frames.
#[test]
fn a_transmit_opportunity_is_filled_and_not_exceeded() {
    let mut random = stream();
    let mut medium = medium(settings(), 1, Errors::NONE);
    offer(&mut medium, 80, &mut random);
    let times: Vec<u64> = run(&mut medium, &mut random)
        .iter()
        .map(|frame| frame.0)
        .collect();
    let count = |time| times.iter().filter(|&&other| other == time).count();
    let first = 43_000 + 2_068_000;
    let second =
        first + 16_000 + 32_000 + 16_000 + 40_000 + 4_000 * u64::from(9u32 * 1544 * 8 + 22).div_ceil(1560);
    assert_eq!((count(first), count(second)), (64, 9));
    assert!(second + 48_000 <= 43_000 + 2_528_000);
    assert_eq!(medium.counters(Time::from_secs(1)).opportunities, 2);
}

#[test]
fn with_dcf_every_opportunity_has_one_ppdu() {
    let mut random = stream();
    let settings = Settings {
        parameters: [CategoryParameters::DCF; 4],
        countdown: Countdown::AfterSlot,
        limits: AggregateLimits {
            frames: 1,
            ..settings().limits
        },
        ..settings()
    };
    let mut medium = medium(settings, 1, Errors::NONE);
    offer(&mut medium, 10, &mut random);
    run(&mut medium, &mut random);
    let down = medium.directions()[DOWN.index()];
    assert_eq!((down.ppdus, down.mpdus, down.delivered), (10, 10, 10));
    assert_eq!(medium.counters(Time::from_secs(1)).opportunities, 10);
}

/// The access point serves its stations in turn.
#[test]
fn stations_have_turns() {
    let mut random = stream();
    let mut medium = medium(settings(), 3, Errors::NONE);
    for id in 0..90 {
        let direction = AirDirection {
            station: id / 30,
            is_down: true,
        };
        medium.offer(
            direction,
            AccessCategory::Voice,
            id,
            1500,
            Time::ZERO,
            &mut random,
        );
    }
    let order: Vec<u32> = run(&mut medium, &mut random)
        .iter()
        .map(|frame| frame.1 / 30)
        .collect();
    let mut stations = order.clone();
    stations.dedup();
    assert_eq!(stations[..3], [0, 1, 2]);
    assert_eq!(order.len(), 90);
}

/// Voice and background of the same member in the same slot: voice goes first, without a collision on
/// air.
#[test]
fn the_higher_category_wins_inside_a_member() {
    let mut random = stream();
    let parameters = [CategoryParameters::EDCA[3]; 4];
    let mut medium = medium(
        Settings {
            parameters,
            ..settings()
        },
        1,
        Errors::NONE,
    );
    medium.offer(DOWN, AccessCategory::Background, 0, 100, Time::ZERO, &mut random);
    medium.offer(DOWN, AccessCategory::Voice, 1, 100, Time::ZERO, &mut random);
    let order: Vec<u32> = run(&mut medium, &mut random)
        .iter()
        .map(|frame| frame.1)
        .collect();
    assert_eq!(order, [1, 0]);
    let counters = medium.counters(Time::from_secs(1));
    assert_eq!((counters.internal_collisions, counters.collisions), (1, 0));
}

#[test]
fn a_full_queue_has_no_room_until_frames_have_arrived() {
    let mut random = stream();
    let mut medium = medium(
        Settings {
            queue_limit: 2,
            ..settings()
        },
        2,
        Errors::NONE,
    );
    for id in 0..2 {
        assert!(medium.has_room(0));
        medium.offer(
            DOWN,
            AccessCategory::BestEffort,
            id,
            1500,
            Time::ZERO,
            &mut random,
        );
    }
    assert!(!medium.has_room(0) && medium.has_room(1));
    run(&mut medium, &mut random);
    assert!(medium.has_room(0));
    assert_eq!(medium.ended(), [0]);
}

fn errors(of_any_mpdu: f64) -> Errors {
    Errors {
        log_success_per_bit: 0.0,
        of_any_mpdu,
    }
}

/// With a probability of 0.5 of damage and 7 repetitions, a frame is lost with 0.5^8.
#[test]
fn losses_follow_from_errors_and_repetitions() {
    let mut random = stream();
    let mut medium = medium(
        Settings {
            queue_limit: u32::MAX,
            ..settings()
        },
        1,
        errors(0.5),
    );
    let frames = 200_000;
    offer(&mut medium, frames, &mut random);
    let lost = run(&mut medium, &mut random)
        .iter()
        .filter(|frame| frame.2 == Fate::Lost)
        .count();
    let expected = f64::from(frames) / 256.0;
    assert!(
        (lost as f64 - expected).abs() < 5.0 * expected.sqrt(),
        "{lost}, expected {expected}"
    );
    let down = medium.directions()[DOWN.index()];
    let attempts = down.mpdus as f64 / f64::from(frames);
    // Sum of 0.5^k for k from 0 to 7.
    assert!((attempts - 255.0 / 128.0).abs() < 0.02, "{attempts}");
    assert_eq!(down.retries, down.mpdus - u64::from(frames));
}

#[derive(Clone, Debug)]
struct Offer {
    after: u64,
    direction: AirDirection,
    category: AccessCategory,
    length: u32,
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let category = prop_oneof![
        Just(AccessCategory::Background),
        Just(AccessCategory::BestEffort),
        Just(AccessCategory::Video),
        Just(AccessCategory::Voice)
    ];
    let offer = (0u64..300_000, 0u32..4, any::<bool>(), category, 40u32..1500).prop_map(
        |(after, station, is_down, category, length)| Offer {
            after,
            direction: AirDirection { station, is_down },
            category,
            length,
        },
    );
    prop::collection::vec(offer, 1..200)
}

proptest! {
    /// Every frame leaves exactly once; those of a direction and category in order; the busy time is that
    /// of the exchanges and collisions, and never more than the time that has passed.
    #[test]
    fn nothing_gets_lost_or_reordered(
        offers in offers(),
        damage in prop_oneof![Just(0.0), Just(0.3)],
        retries in prop_oneof![Just(None), Just(Some(0)), Just(Some(7))],
        rts_from in prop_oneof![Just(None), Just(Some(1000))],
        countdown in prop_oneof![Just(Countdown::AfterSlot), Just(Countdown::AtBoundary)],
    ) {
        let mut random = stream();
        let settings = Settings { retries, rts_from, countdown, queue_limit: u32::MAX, ..settings() };
        let mut medium = medium(settings, 4, errors(damage));
        let (mut left, mut order) = (Vec::new(), Vec::new());
        let (mut time, mut now) = (Time::ZERO, Time::ZERO);
        for (id, offer) in offers.iter().enumerate() {
            time += offer.after;
            while let Some(due) = medium.next().filter(|&due| due <= time) {
                prop_assert!(due >= now);
                now = due;
                medium.advance(now, &mut random, &mut left);
                order.extend(left.drain(..).map(|frame| (frame.id, frame.fate)));
                prop_assert!(medium.counters(now).busy <= now.nanos());
            }
            medium.offer(offer.direction, offer.category, id as u32, offer.length, time, &mut random);
        }
        for (_, id, fate) in run(&mut medium, &mut random) {
            order.push((id, fate));
        }
        let mut ids: Vec<u32> = order.iter().map(|&(id, _)| id).collect();
        for direction in 0..8usize {
            for category in 0..4 {
                let of_queue: Vec<u32> = ids.iter().copied().filter(|&id| {
                    let offer = &offers[id as usize];
                    offer.direction.index() == direction && offer.category.index() == category
                }).collect();
                prop_assert!(of_queue.is_sorted());
            }
        }
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..offers.len() as u32).collect::<Vec<_>>());
        let counters = medium.counters(Time::from_secs(1000));
        let sum = |field: fn(&DirectionCounters) -> u64| medium.directions().iter().map(field).sum::<u64>();
        prop_assert_eq!(counters.busy, counters.collision + sum(|direction| direction.airtime));
        let lost = order.iter().filter(|(_, fate)| *fate == Fate::Lost).count() as u64;
        prop_assert_eq!(lost, sum(|direction| direction.lost));
        prop_assert!(retries.is_some() || lost == 0);
    }
}
