//! Compares with the definitions, by trying every interval.

use fairgate::{Rate, Time};
use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;
use crate::gps::{Fluid, Gps};
use crate::tick_scale::TickScale;
use crate::{Exact, Fraction};

fn rate() -> Rate {
    // Two ticks a nanosecond, one a byte.
    Rate::mbit(16_000)
}

/// Returns the service of a flow until `ticks`.
fn served(schedule: &Schedule, flow: u32, ticks: u64) -> i128 {
    let of = |sent: &Sent| i128::from(sent.finish.min(ticks).saturating_sub(sent.start));
    schedule.of_flow(flow).map(of).sum()
}

/// Returns the work of the link until `ticks`.
fn work(schedule: &Schedule, ticks: u64) -> i128 {
    (0..schedule.flows())
        .map(|flow| served(schedule, flow, ticks))
        .sum()
}

/// Whether the flow has a packet queued at all times from `from` to `until`, by the definition. This is
/// checked at the beginning, and after every packet that is dequeued before the end.
fn is_backlogged(schedule: &Schedule, flow: u32, from: u64, until: u64) -> bool {
    let queued_after = |ticks: u64| {
        let queued = |sent: &Sent| sent.arrival <= ticks && ticks < sent.start;
        schedule.of_flow(flow).any(queued)
    };
    let queued_before = |ticks: u64| {
        let queued = |sent: &Sent| sent.arrival <= ticks && ticks <= sent.start;
        schedule.of_flow(flow).any(queued)
    };
    let taken = schedule.of_flow(flow).map(|sent| sent.start);
    queued_before(from)
        && queued_before(until)
        && taken
            .filter(|start| (from..until).contains(start))
            .all(queued_after)
}

/// Returns every time at which one of the functions may change its slope.
fn moments(schedule: &Schedule) -> Vec<u64> {
    let mut all: Vec<u64> = schedule
        .sent()
        .iter()
        .flat_map(|sent| [sent.arrival, sent.start, sent.finish])
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn intervals(schedule: &Schedule) -> impl Iterator<Item = (u64, u64)> {
    let moments = moments(schedule);
    let pairs = (0..moments.len()).flat_map(|i| (i..moments.len()).map(move |j| (i, j)));
    pairs
        .map(|(i, j)| (moments[i], moments[j]))
        .collect::<Vec<_>>()
        .into_iter()
}

fn slow_b_wfi(schedule: &Schedule, weights: &Weights, flow: u32) -> BWfi {
    let bytes = |ticks: i128| Measure::new(ticks, schedule.tick_scale().ticks_per_byte().into());
    let short = |from: u64, until: u64| {
        let due = bytes(work(schedule, until) - work(schedule, from)) * weights.share(flow);
        due - bytes(served(schedule, flow, until) - served(schedule, flow, from))
    };
    let zero = Measure::from_integer(0);
    let anywhere = intervals(schedule)
        .filter(|&(from, until)| is_backlogged(schedule, flow, from, until))
        .map(|(from, until)| short(from, until));
    // Intervals until the finish of a packet, with the flow backlogged until the packet's start.
    let at_finish = schedule.of_flow(flow).flat_map(|packet| {
        moments(schedule)
            .into_iter()
            .filter(|&from| from <= packet.start && is_backlogged(schedule, flow, from, packet.start))
            .map(|from| short(from, packet.finish))
    });
    BWfi {
        anywhere: anywhere.fold(zero, Measure::max),
        at_finish: at_finish.fold(zero, Measure::max),
    }
}

fn slow_t_wfi(schedule: &Schedule, weights: &Weights, flow: u32) -> Option<Measure> {
    let nanos = |ticks: i128| Measure::new(ticks, schedule.tick_scale().ticks_per_nano().into());
    let of = |packet: &Sent| {
        let arrived: i128 = schedule
            .of_flow(flow)
            .filter(|other| other.number <= packet.number)
            .map(|other| i128::from(other.work()))
            .sum();
        let backlog = arrived - served(schedule, flow, packet.arrival);
        nanos(i128::from(packet.finish) - i128::from(packet.arrival)) - nanos(backlog) / weights.share(flow)
    };
    schedule.of_flow(flow).map(of).max()
}

fn slow_relative_fairness(schedule: &Schedule, weights: &Weights, one: u32, other: u32) -> Measure {
    let normalised = |flow: u32, from: u64, until: u64| {
        let ticks = served(schedule, flow, until) - served(schedule, flow, from);
        Measure::new(ticks, schedule.tick_scale().ticks_per_byte().into()) / weights.share(flow)
    };
    intervals(schedule)
        .filter(|&(from, until)| {
            [one, other]
                .iter()
                .all(|&flow| is_backlogged(schedule, flow, from, until))
        })
        .map(|(from, until)| {
            let difference = normalised(one, from, until) - normalised(other, from, until);
            difference.max(-difference)
        })
        .fold(Measure::from_integer(0), Measure::max)
}

/// A schedule without a discipline: the next packet sent is a random queued one, and sometimes the link
/// pauses.
#[derive(Clone, Debug)]
struct Case {
    weights: Weights,
    schedule: Schedule,
    fluid: Fluid,
}

fn case() -> impl Strategy<Value = Case> {
    let packet = (prop_oneof![Just(0u64), 0u64..30], 0u32..3, 1u32..30);
    let weights = prop::collection::vec(1u32..20, 3);
    let choices = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            prop_oneof![9 => Just(0u64), 1 => 1u64..50],
        ),
        24,
    );
    let packets = prop::collection::vec(packet, 1..24);
    (weights, packets, choices).prop_map(|(weights, packets, choices)| {
        let tick_scale = TickScale::new(rate());
        let mut gps = Gps::new(rate(), &weights).unwrap();
        let (mut at, mut waiting, mut schedule) = (0, Vec::new(), Schedule::empty(tick_scale, 3));
        for (number, &(gap, flow, length)) in packets.iter().enumerate() {
            at += gap;
            gps.arrive(Time::from_nanos(at), flow, length).unwrap();
            waiting.push((number as u32, flow, length, at * tick_scale.ticks_per_nano()));
        }
        let mut now = 0;
        for (choice, pause) in choices.into_iter().take(packets.len()) {
            now = waiting
                .iter()
                .map(|packet| packet.3)
                .min()
                .unwrap()
                .max(now + pause);
            let here: Vec<usize> = (0..waiting.len()).filter(|&i| waiting[i].3 <= now).collect();
            let (number, flow, length, arrival) = waiting.remove(here[choice.index(here.len())]);
            let finish = now + tick_scale.work(length.into()).unwrap();
            schedule.push(Sent {
                number,
                flow,
                length,
                arrival,
                start: now,
                finish,
            });
            now = finish;
        }
        Case {
            weights: Weights::new(weights),
            schedule,
            fluid: gps.finish(),
        }
    })
}

proptest! {
    #[test]
    fn running_extremes_equal_those_over_all_intervals(case in case()) {
        let Case { weights, schedule, .. } = &case;
        for flow in 0..3 {
            prop_assert_eq!(b_wfi(schedule, weights, flow), slow_b_wfi(schedule, weights, flow));
            prop_assert_eq!(t_wfi(schedule, weights, flow), slow_t_wfi(schedule, weights, flow));
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let fast = relative_fairness(schedule, weights, one, other);
            prop_assert_eq!(fast, relative_fairness(schedule, weights, other, one));
            prop_assert_eq!(fast, slow_relative_fairness(schedule, weights, one, other));
        }
    }

    /// No lead at any event is above the one found.
    #[test]
    fn the_lag_is_the_worst_over_all_events(case in case()) {
        let Case { schedule, fluid, .. } = &case;
        for flow in 0..3 {
            let Some(lag) = Lag::of_flow(schedule, fluid, flow) else {
                prop_assert_eq!(schedule.of_flow(flow).len(), 0);
                continue;
            };
            // A byte is one tick.
            let lead = |ticks: u64| {
                let served = BigInt::from(served(schedule, flow, ticks));
                Exact::from_integer(served) - fluid.service(flow, ticks).reduced()
            };
            let after_some = moments(schedule).into_iter().map(lead).max().unwrap();
            prop_assert_eq!(after_some, lag.lead.reduced().max(Exact::from_integer(0.into())));
            let late = |sent: &Sent| {
                let finish = &fluid.packets()[sent.number as usize].finish;
                (Fraction::whole(sent.finish).reduced() - finish.reduced()) / Exact::from_integer(2.into())
            };
            prop_assert_eq!(lag.delay.reduced(), schedule.of_flow(flow).map(late).max().unwrap());
        }
    }
}

/// Two flows of equal weight. The first sends its two packets, and then the second sends its two.
#[test]
fn a_small_schedule_by_hand() {
    let tick_scale = TickScale::new(Rate::mbit(8000));
    let mut schedule = Schedule::empty(tick_scale, 2);
    for (index, flow) in [0, 0, 1, 1].into_iter().enumerate() {
        let start = 100 * index as u64;
        schedule.push(Sent {
            number: index as u32,
            flow,
            length: 100,
            arrival: 0,
            start,
            finish: start + 100,
        });
    }
    let weights = Weights::equal(2);
    // Flow 1 waits for 200 bytes, and half of them was its share. Flow 0 never waits.
    let whole = Measure::from_integer;
    let of = |flow| b_wfi(&schedule, &weights, flow);
    assert_eq!((of(1).anywhere, of(1).at_finish), (whole(100), whole(50)));
    assert_eq!((of(0).anywhere, of(0).at_finish), (whole(0), whole(0)));
    // The packets of flow 1 are finished at 300 and 400. With half of the link they would be finished at 200
    // and 400.
    assert_eq!(t_wfi(&schedule, &weights, 1), Some(Measure::from_integer(100)));
    assert_eq!(t_wfi(&schedule, &weights, 0), Some(Measure::from_integer(-100)));
    // Both have packets queued for the first 100 ns. One sends 100 bytes and the other none, at half a share
    // each.
    assert_eq!(
        relative_fairness(&schedule, &weights, 0, 1),
        Measure::from_integer(200)
    );
}
