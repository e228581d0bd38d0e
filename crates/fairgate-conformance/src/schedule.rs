//! A suite for drivers: the same packets must leave at the same times, whatever drives the discipline.
//!
//! [`check_driver`] sends bursts with pauses to disciplines whose behaviour depends on the driver, and
//! compares when each packet's transmission began with [`reference`], a driver in twenty lines that obeys the
//! rules of
//!
//! No arrival has the time of the end of a transmission: drivers may differ there.

use std::time::Duration;

use fairgate::{Codel, Discipline, Fifo, Packet, Pool, Rate, Red, Tbf, Time, codel, fifo, red, tbf};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A rate at which a byte takes 100 ns: drivers round nothing.
pub const RATE: Rate = Rate::mbit(80);

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Bytes on the link.
    pub length: u32,
}

/// By arrival: when its transmission began. `None` if it was dropped.
pub type Schedule = Vec<Option<Time>>;

/// A discipline's name, and how it is created.
type Subject = (&'static str, fn() -> Box<dyn Discipline>);

/// Disciplines that notice how they are driven.
const DISCIPLINES: [Subject; 4] = [
    // Its average decays from the dequeue on that finds nothing.
    ("red", || {
        let config = red::Config {
            limit: 60_000,
            min: Some(5_000),
            max: Some(15_000),
            burst: Some(10),
            bandwidth: RATE,
            ..red::Config::default()
        };
        Box::new(Red::node(config, 1).expect("these settings are allowed"))
    }),
    // It leaves its dropping state there.
    ("codel", || {
        let codel = codel::Params {
            target: Duration::from_micros(500),
            interval: Duration::from_millis(2),
            ..codel::Params::default()
        };
        let config = codel::Config {
            codel,
            ..codel::Config::default()
        };
        Box::new(Codel::node(config).expect("these settings are allowed"))
    }),
    // It holds packets back and names the time to ask again.
    ("tbf", || {
        let config = tbf::Config {
            limit: Some(tbf::Limit::Latency(5_000_000)),
            ..tbf::Config::of_rate(Rate::mbit(30))
        };
        Box::new(Tbf::node(config, None).expect("these settings are allowed"))
    }),
    ("fifo", || {
        let config = fifo::Config {
            limit_packets: Some(20),
            ..fifo::Config::default()
        };
        Box::new(Fifo::node(config).expect("these settings are allowed"))
    }),
];

/// Compares a driver with the reference. `drive` runs an empty discipline at a link of this rate until all
/// packets have left. Without a rate the link has no transmission time.
///
/// # Panics
/// If a packet leaves at another time than it should, or is dropped and should not be.
pub fn check_driver(rate: Option<Rate>, drive: impl Fn(Box<dyn Discipline>, &[Arrival]) -> Schedule) {
    for (name, make) in DISCIPLINES {
        for seed in 0..4 {
            let arrivals = arrivals(seed);
            let expected = reference(make(), rate, &arrivals, true);
            let found = drive(make(), &arrivals);
            assert_eq!(expected.len(), found.len(), "{name}: a packet is missing");
            for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
                assert_eq!(
                    expected, found,
                    "{name}, seed {seed}, packet {number} of {arrivals:?}"
                );
            }
        }
    }
}

/// Bursts at four times the rate of the link, and pauses of up to 300 ms.
fn arrivals(seed: u64) -> Vec<Arrival> {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut below = |bound: u64| random.next_u64() % bound;
    let mut at = 1_000;
    let mut arrivals = Vec::new();
    for _ in 0..30 {
        at += below(300_000_000);
        for _ in 0..1 + below(120) {
            let length = 40 + below(1_461);
            at += 1 + below(50 * length);
            arrivals.push(Arrival {
                at: Time::from_nanos(at),
                length: length as u32,
            });
        }
    }
    arrivals
}

/// Drives a discipline in the simplest way that obeys the rules. `asks_idle` says whether it asks once more
/// after the last packet.
fn reference(
    mut root: Box<dyn Discipline>,
    rate: Option<Rate>,
    arrivals: &[Arrival],
    asks_idle: bool,
) -> Schedule {
    let mut pool = Pool::with_capacity(4096);
    let mut schedule = vec![None; arrivals.len()];
    let mut coming = arrivals.iter().enumerate().peekable();
    // When the link is free, and when to ask the discipline.
    let (mut free_at, mut ask) = (Time::ZERO, None);
    loop {
        let arrives = coming.peek().map(|(_, arrival)| arrival.at);
        let Some(now) = ask.into_iter().chain(arrives).min() else {
            return schedule;
        };
        if arrives == Some(now) {
            let (number, arrival) = coming.next().expect("it was just seen");
            let packet = Packet {
                cookie: number as u64,
                ..Packet::of_length(arrival.length)
            };
            let id = pool.insert(packet).expect("the disciplines have lower limits");
            root.enqueue(id, now, &mut pool);
            ask = Some(now.max(free_at));
        } else {
            let sent = root.dequeue(now, &mut pool);
            let is_empty = root.backlog().packets == 0;
            ask = match sent {
                Some(id) => {
                    let packet = pool.release(id);
                    schedule[packet.cookie as usize] = Some(now);
                    free_at = now + transmission(packet.length, rate);
                    (asks_idle || !is_empty).then_some(free_at)
                }
                None if is_empty => None,
                None => root.watchdog(),
            };
        }
        while let Some((id, _)) = pool.take_returned() {
            pool.release(id);
        }
    }
}

/// How long a link of this rate transmits a packet, ns.
fn transmission(length: u32, rate: Option<Rate>) -> u64 {
    rate.map_or(0, |rate| {
        u64::from(length) * 8_000_000_000 / rate.bits_per_second()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairgate::{Link, Next};

    /// The library's own driver.
    fn drive(discipline: Box<dyn Discipline>, rate: Option<Rate>, arrivals: &[Arrival]) -> Schedule {
        let mut link: Link<usize> = Link::new(discipline, 4096);
        let mut schedule = vec![None; arrivals.len()];
        let (mut free_at, mut ask) = (Time::ZERO, Time::MAX);
        let mut coming = arrivals.iter().enumerate().peekable();
        loop {
            let arrives = coming.peek().map_or(Time::MAX, |(_, arrival)| arrival.at);
            if arrives.min(ask) == Time::MAX {
                return schedule;
            }
            if arrives <= ask {
                let (number, arrival) = coming.next().expect("it was just seen");
                let packet = Packet::of_length(arrival.length);
                link.enqueue(packet, number, arrives).expect("there are slots");
                ask = arrives.max(free_at);
            } else {
                let now = ask;
                ask = match link.dequeue(now) {
                    Next::Packet(departure) => {
                        schedule[departure.payload] = Some(now);
                        free_at = now + transmission(departure.slot.length, rate);
                        match link.transmits_until(free_at) {
                            true => free_at,
                            // It does not ask again: the link does, when the next packet comes.
                            false => Time::MAX,
                        }
                    }
                    Next::Wait(until) => until,
                    Next::Idle => Time::MAX,
                };
            }
            while link.take_dropped().is_some() {}
        }
    }

    #[test]
    fn the_library_drives_by_the_rules() {
        for rate in [None, Some(RATE)] {
            check_driver(rate, |discipline, arrivals| drive(discipline, rate, arrivals));
        }
    }

    /// The suite would see a driver that does not ask an idle discipline.
    #[test]
    fn a_driver_that_forgets_the_idle_question_is_caught() {
        let differs = DISCIPLINES.map(|(name, make)| {
            let arrivals = arrivals(1);
            let [right, wrong] = [true, false].map(|asks| reference(make(), Some(RATE), &arrivals, asks));
            (name, right != wrong)
        });
        assert!(differs.contains(&("red", true)), "{differs:?}");
    }

    /// Each discipline drops or delays in these arrivals: equal schedules are no accident.
    #[test]
    fn the_arrivals_are_hard() {
        for (name, make) in DISCIPLINES {
            for seed in 0..4 {
                let arrivals = arrivals(seed);
                let schedule = reference(make(), Some(RATE), &arrivals, true);
                let dropped = schedule.iter().filter(|sent| sent.is_none()).count();
                assert!(
                    dropped > 10 && dropped < arrivals.len() / 2,
                    "{name}: {dropped} of {}",
                    arrivals.len()
                );
            }
        }
    }
}
