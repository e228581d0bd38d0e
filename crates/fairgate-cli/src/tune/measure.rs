//! The stages of a measurement: the path, the idle line, each direction under load, packets of several
//! lengths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate::cake::Line;

use crate::tune::error::TuneError;
use crate::tune::estimate::{self, Framing};
use crate::tune::load::{Loaded, joined, load};
use crate::tune::measured::{Delays, Direction, Figures, Measured, OverTime};
use crate::tune::path;
use crate::tune::probes::{self, Latest, Probed};
use crate::tune::session::Session;
use crate::tune::wire::{BIN, PROBE};

/// The time between two probes, and how long the idle line is probed.
const INTERVAL: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_secs(2);

/// A queue counts as empty again when a probe waits less than this.
const EMPTY: Duration = Duration::from_millis(5);
/// How long an empty queue is waited for. A longer one makes the next stage look worse than it is.
const DRAINING: Duration = Duration::from_secs(10);

/// What is left out at the beginning of a load, where the queue is not full yet.
const FILLING: Duration = Duration::from_secs(1);

/// From this rate on steps of cells are not looked for: they are 14 us, which the timing of a probe hides.
/// No line of ATM is faster.
const FASTEST_CELLS_BPS: f64 = 30e6;
/// How often each length is sent, and how long it may take at most.
const REPEATS: usize = 6;
const LONGEST_FRAMING: Duration = Duration::from_secs(8);
/// The shortest time between packets of several lengths.
const CLOSEST: Duration = Duration::from_millis(4);

/// Headers of a TCP segment behind that of IP, bytes: with timestamps, as all common systems send them.
const TCP_HEADER: u32 = 32;
/// The header of a frame, bytes.
const ETHERNET: f64 = 14.0;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// TCP connections in each direction.
    pub(crate) connections: u32,
    /// How long each direction is loaded.
    pub(crate) load: Duration,
    pub(crate) framing: FramingSource,
}

/// From where it is known what the line makes of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FramingSource {
    /// Delays by length, which show cells of ATM.
    Delays,
    /// The user has named the kind of the line.
    Line(Line),
    /// An earlier measurement.
    Earlier,
}

impl Settings {
    /// Returns about how long a measurement takes.
    pub(crate) fn length(&self) -> Duration {
        let framing = match self.framing {
            FramingSource::Delays => Duration::from_secs(2),
            FramingSource::Line(_) | FramingSource::Earlier => Duration::ZERO,
        };
        IDLE + 2 * self.load + framing + Duration::from_secs(1)
    }
}

/// Where a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Path,
    Idle,
    Load(Direction),
    Framing,
}

/// A direction under load, and when that was, since the beginning.
struct Load {
    way: Direction,
    loaded: Loaded,
    from: Duration,
    until: Duration,
}

/// Measures a line. `reached` is told of each stage. It is given up if it `is_interrupted`.
pub(crate) fn measure(
    session: &Session,
    settings: Settings,
    reached: &(dyn Fn(Stage) + Sync),
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, TuneError> {
    reached(Stage::Path);
    let mtu = path::mtu(session)?.ok_or(TuneError::NoProbes { sent: 3 })?;
    let latest = Latest::default();
    let is_over = AtomicBool::new(false);
    let stages = || {
        reached(Stage::Idle);
        let begun = session.now();
        wait(IDLE, is_interrupted)?;
        let idle = begun..session.now();
        let mut loads = Vec::new();
        for way in [Direction::Down, Direction::Up] {
            reached(Stage::Load(way));
            let from = session.now();
            let loaded = load(session, way, settings.connections, settings.load, is_interrupted)?;
            let until = from + settings.load;
            loads.push(Load {
                way,
                loaded,
                from,
                until,
            });
            await_empty(&latest, is_interrupted)?;
        }
        Ok((idle, loads))
    };
    let (result, probed) = thread::scope(|scope| {
        let probed = scope.spawn(|| {
            let next = || (!is_over.load(Ordering::Relaxed)).then_some((INTERVAL, PROBE));
            probes::send(session, &latest, next)
        });
        let result = stages();
        is_over.store(true, Ordering::Relaxed);
        (result, joined(probed))
    });
    let (probed, (idle, loads)) = (probed?, result?);
    let raw = Raw {
        session,
        mtu,
        probed,
        idle,
    };
    let mut directions = Vec::new();
    for load in &loads {
        directions.push(raw.direction(load)?);
    }
    let [mut down, mut up] = <[Figures; 2]>::try_from(directions).expect("two were loaded");
    let slower = down.capacity_bps.min(up.capacity_bps);
    let framings = match settings.framing {
        FramingSource::Line(line) => [Some(Framing::of(line)); 2],
        FramingSource::Delays if slower < FASTEST_CELLS_BPS => {
            reached(Stage::Framing);
            let found = framings(session, slower, is_interrupted)?;
            // A line of ATM is one in both directions, and the steps of the slower one are the larger ones.
            let of_line = found[0].or(found[1]);
            let of = |framing: Option<Framing>, direction: &Figures| {
                let framing = framing.or(of_line);
                framing.filter(|_| direction.capacity_bps < FASTEST_CELLS_BPS)
            };
            [of(found[0], &down), of(found[1], &up)]
        }
        FramingSource::Delays | FramingSource::Earlier => [None; 2],
    };
    for (direction, framing) in [&mut down, &mut up].into_iter().zip(framings) {
        direction.framing = framing;
        direction.line_bps = raw.line(direction.capacity_bps, framing);
    }
    let round_trips = raw.window(raw.idle.clone()).filter_map(|probe| probe.answer);
    let round_trips = round_trips
        .map(|answer| answer.round_trip() as f64 / 1e6)
        .collect();
    Ok(Measured {
        server: session.server.to_string(),
        connections: settings.connections,
        load_s: settings.load.as_secs_f64(),
        mtu,
        round_trip_ms: Delays::of(round_trips).ok_or(TuneError::NoProbes {
            sent: raw.window(raw.idle.clone()).count() as u64,
        })?,
        down,
        up,
    })
}

/// Waits for so long.
fn wait(length: Duration, is_interrupted: &dyn Fn() -> bool) -> Result<(), TuneError> {
    let began = Instant::now();
    while began.elapsed() < length {
        if is_interrupted() {
            return Err(TuneError::Interrupted);
        }
        thread::sleep(INTERVAL.min(length.saturating_sub(began.elapsed())));
    }
    Ok(())
}

/// Waits until the queue of a load has drained.
fn await_empty(latest: &Latest, is_interrupted: &dyn Fn() -> bool) -> Result<(), TuneError> {
    let began = Instant::now();
    wait(2 * INTERVAL, is_interrupted)?;
    while latest.excess().is_none_or(|excess| excess > EMPTY) && began.elapsed() < DRAINING {
        wait(INTERVAL, is_interrupted)?;
    }
    Ok(())
}

type Window = std::ops::Range<Duration>;

/// What a measurement has, before it is judged.
struct Raw<'a> {
    session: &'a Session,
    mtu: u32,
    probed: Vec<Probed>,
    idle: Window,
}

impl Raw<'_> {
    fn window(&self, window: Window) -> impl Iterator<Item = Probed> + Clone {
        self.probed
            .iter()
            .copied()
            .filter(move |probe| window.contains(&probe.sent))
    }

    fn direction(&self, load: &Load) -> Result<Figures, TuneError> {
        let delay = |probe: &Probed| {
            let answer = probe.answer?;
            Some(match load.way {
                Direction::Down => answer.down,
                Direction::Up => answer.up,
            })
        };
        let least = self.probed.iter().filter_map(delay).min().unwrap_or(0);
        let waited = |probe: &Probed| Some(delay(probe)?.saturating_sub(least) as f64 / 1e6);
        let delays = |window: &Window| {
            let waited = self.window(window.clone()).filter_map(|probe| waited(&probe));
            Delays::of(waited.collect())
        };
        let loaded = load.from + FILLING.min(load.until.saturating_sub(load.from) / 2)..load.until;
        let nothing = || TuneError::Nothing {
            direction: load.way.name(),
            seconds: (load.until - load.from).as_secs_f64(),
        };
        let capacity = estimate::capacity(&load.loaded.bytes, BIN)
            .filter(|capacity| capacity.rate > 0.0)
            .ok_or_else(nothing)?;
        let bps = |payload: f64| self.packets(payload);
        let interval = BIN * 2;
        let rate_bps = load.loaded.bytes.chunks_exact(2);
        let rate_bps = rate_bps.map(|pair| bps((pair[0] as f64 + pair[1] as f64) / interval.as_secs_f64()));
        let rate_bps: Vec<f64> = rate_bps.collect();
        let delay_ms = (0..rate_bps.len() as u32).map(|index| {
            let begin = load.from + interval * index;
            let waited = self
                .window(begin..begin + interval)
                .filter_map(|probe| waited(&probe));
            waited.reduce(f64::max)
        });
        let capacity_bps = bps(capacity.rate);
        Ok(Figures {
            capacity_bps,
            low_bps: bps(capacity.low),
            high_bps: bps(capacity.high),
            varies: capacity.varies,
            line_bps: self.line(capacity_bps, None),
            framing: None,
            idle_ms: delays(&self.idle).unwrap_or_default(),
            // If no probe came through, it is the loss that says so.
            loaded_ms: delays(&loaded).unwrap_or_default(),
            loss_idle: loss(self.window(self.idle.clone()), load.way),
            loss_loaded: loss(self.window(loaded), load.way),
            rpm: estimate::responsiveness(&load.loaded.opened, &load.loaded.answered, &load.loaded.own),
            over_time: OverTime {
                interval_s: interval.as_secs_f64(),
                delay_ms: delay_ms.collect(),
                rate_bps,
            },
        })
    }

    /// Returns the length of the IP packet of a probe, bytes.
    fn probe(&self) -> f64 {
        (PROBE + self.session.headers()) as f64
    }

    /// Converts payload of TCP, bytes per second, to all IP packets, bits per second. Segments are full ones,
    /// and probes pass beside them.
    fn packets(&self, payload: f64) -> f64 {
        let ip_header = self.session.headers() as u32 - 8;
        let in_segment = f64::from(self.mtu.saturating_sub(ip_header + TCP_HEADER).max(1));
        let probes = self.probe() / INTERVAL.as_secs_f64();
        (payload / in_segment * f64::from(self.mtu) + probes) * 8.0
    }

    /// Returns what the line sends for IP packets, bits per second.
    fn line(&self, packets: f64, framing: Option<Framing>) -> f64 {
        let on_line = |length: f64| match framing {
            Some(framing) => framing.count(length as u64) as f64,
            None => length + ETHERNET,
        };
        let a_second = 1.0 / INTERVAL.as_secs_f64();
        let full = f64::from(self.mtu);
        let segments = (packets / 8.0 - self.probe() * a_second).max(0.0) / full;
        (segments * on_line(full) + a_second * on_line(self.probe())) * 8.0
    }
}

/// Returns the share of probes, or of their answers, that were lost in a direction: the server says how many
/// had reached it when it answered.
fn loss(probed: impl Iterator<Item = Probed> + Clone, way: Direction) -> f64 {
    let answered = |(number, probe): (usize, Probed)| Some((number as u64, probe.answer?.count));
    let mut counts = probed.clone().enumerate().filter_map(answered);
    let Some(first) = counts.next() else {
        return if probed.count() == 0 { 0.0 } else { 1.0 };
    };
    let (mut last, mut answers) = (first, 0u64);
    for count in counts {
        (last, answers) = (count, answers + 1);
    }
    let (sent, arrived) = (last.0 - first.0, last.1.saturating_sub(first.1));
    let share = |lost: u64, of: u64| lost as f64 / of.max(1) as f64;
    match way {
        Direction::Up => share(sent.saturating_sub(arrived), sent),
        Direction::Down => share(arrived.saturating_sub(answers), arrived),
    }
}

/// Finds the framing of both directions by packets of several lengths, one after the other.
fn framings(
    session: &Session,
    slowest_bps: f64,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<[Option<Framing>; 2], TuneError> {
    let lengths: Vec<usize> = estimate::lengths()
        .map(|length| length - session.headers())
        .collect();
    let longest = estimate::lengths().max().unwrap_or(0) as f64;
    // Each is gone, with its cells, before the next one comes.
    let alone = Duration::from_secs_f64((longest * 8.0 * 2.5 / slowest_bps.max(1.0)).min(1.0));
    let gap = alone.max(CLOSEST);
    let affordable = LONGEST_FRAMING.as_nanos() / (gap * lengths.len() as u32).as_nanos();
    let repeats = REPEATS.min(affordable.max(1) as usize);
    let mut number = 0;
    let probed = probes::send(session, &Latest::default(), || {
        let goes_on = number < repeats * lengths.len() && !is_interrupted();
        let length = goes_on.then(|| lengths[number % lengths.len()]);
        number += 1;
        length.map(|length| (gap, length))
    })?;
    if is_interrupted() {
        return Err(TuneError::Interrupted);
    }
    Ok([Direction::Down, Direction::Up].map(|way| {
        let least = |length: usize| {
            let of_length = probed.iter().filter(|probe| probe.length == length);
            let delays = of_length
                .filter_map(|probe| probe.answer)
                .map(|answer| match way {
                    Direction::Down => answer.down,
                    Direction::Up => answer.up,
                });
            delays.min().map(|delay| (length, delay))
        };
        let delays: Vec<(usize, i64)> = estimate::lengths().filter_map(least).collect();
        // Only differences count, and those are exact in floating point.
        let base = delays.iter().map(|&(_, delay)| delay).min().unwrap_or(0);
        let relative = |&(length, delay): &(usize, i64)| (length, delay.saturating_sub(base) as f64);
        estimate::framing(&delays.iter().map(relative).collect::<Vec<_>>())
    }))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::tune::probes::Answer;

    proptest! {
        /// Each probe is lost on its way up, or its answer is, or neither.
        #[test]
        fn losses_are_counted_in_their_direction(fates in vec(0u8..10, 2..300)) {
            let mut fates = fates;
            let last = fates.len() - 1;
            (fates[0], fates[last]) = (9, 9);
            let mut count = 0;
            let probed: Vec<Probed> = fates.iter().map(|fate| {
                count += u64::from(*fate != 0);
                let answer = Answer { up: 0, down: 0, count };
                Probed { sent: Duration::ZERO, length: 92, answer: (*fate > 1).then_some(answer) }
            }).collect();
            let of = |lost: u8| fates[1..].iter().filter(|fate| **fate == lost).count() as f64;
            let up = of(0) / last as f64;
            let down = of(1) / (last as f64 - of(0));
            prop_assert!((loss(probed.iter().copied(), Direction::Up) - up).abs() < 1e-9);
            prop_assert!((loss(probed.iter().copied(), Direction::Down) - down).abs() < 1e-9);
        }
    }

    #[test]
    fn a_line_without_answers_has_lost_all() {
        let lost = Probed {
            sent: Duration::ZERO,
            length: 92,
            answer: None,
        };
        assert_eq!(loss([lost; 3].into_iter(), Direction::Up), 1.0);
        assert_eq!(loss([].into_iter(), Direction::Up), 0.0);
    }
}
