//! The stages of a measurement: the path, the idle line, each direction under load, packets of several
//! lengths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate::cake::Line;

use crate::tune::error::TuneError;
use crate::tune::estimate::{self, Framing};
use crate::tune::far::Far;
use crate::tune::load::{Loaded, joined};
use crate::tune::measured::{Delays, Direction, Figures, Measured, NotMeasured, OverTime};
use crate::tune::probes::{self, Answer, Beside, INTERVAL, Latest, Probed};
use crate::tune::record::Segment;
use crate::tune::session::Session;
use crate::tune::wire::BIN;

/// How long the idle line is probed.
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

/// A full packet of most paths, bytes.
const COMMON: u32 = 1500;
/// Headers of a TCP segment behind that of IP, bytes: with timestamps, as all common systems send them.
const TCP_HEADER: u32 = 32;
/// The header of a frame, bytes.
const ETHERNET: f64 = 14.0;

/// What is not measured with a server that was made for something else.
const NO_MTU: NotMeasured = NotMeasured {
    key: "mtu",
    figure: "the longest packet that passes",
    why: "only `fairgate tune --serve` answers packets of a wanted length",
};
const NO_FRAMING: NotMeasured = NotMeasured {
    key: "framing",
    figure: "framing",
    why: "only `fairgate tune --serve` answers packets of several lengths; `--line` names the kind of line",
};
const NO_RPM: NotMeasured = NotMeasured {
    key: "rpm",
    figure: "responsiveness",
    why: "only `fairgate tune --serve` answers questions, and says what its connections wait",
};

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

/// A direction under load, and until when that was, since the beginning.
struct Load {
    way: Direction,
    loaded: Loaded,
    until: Duration,
}

/// Measures a line. `reached` is told of each stage. It is given up if it `is_interrupted`.
pub(crate) fn measure(
    far: &Far,
    settings: Settings,
    reached: &(dyn Fn(Stage) + Sync),
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, TuneError> {
    reached(Stage::Path);
    let mtu = far.mtu()?;
    let latest = Latest::default();
    let is_over = AtomicBool::new(false);
    let stages = || {
        reached(Stage::Idle);
        let begun = far.place().now();
        match far {
            Far::Own(_) => wait(IDLE, is_interrupted)?,
            Far::Foreign(foreign) => foreign.idle(IDLE, is_interrupted)?,
        }
        let idle = begun..far.place().now();
        let mut loads = Vec::new();
        for way in [Direction::Down, Direction::Up] {
            reached(Stage::Load(way));
            let loaded = far.load(way, settings.connections, settings.load, is_interrupted)?;
            let until = loaded.from + settings.load;
            loads.push(Load { way, loaded, until });
            await_empty(&latest, matches!(far, Far::Own(_)), is_interrupted)?;
        }
        Ok((idle, loads))
    };
    let (result, probed) = thread::scope(|scope| {
        let probed = scope.spawn(|| far.probe(&latest, &is_over));
        let result = stages();
        is_over.store(true, Ordering::Relaxed);
        (result, joined(probed))
    });
    let (probed, (idle, loads)) = (probed?, result?);
    let ip_header = far.place().ip_header() as u32;
    let segments = loads.iter().filter_map(|load| load.loaded.segment);
    let counted = segments.map(|segment| segment.length + ip_header).max();
    let raw = Raw {
        is_ours: matches!(far, Far::Own(_)),
        ip_header,
        beside: far.beside(),
        packet: mtu.or(counted).unwrap_or(COMMON),
        probed,
        idle,
    };
    let mut directions = Vec::new();
    for load in &loads {
        directions.push(raw.direction(load)?);
    }
    let [mut down, mut up] = <[Figures; 2]>::try_from(directions).expect("two were loaded");
    let slower = down.capacity_bps.min(up.capacity_bps);
    let framings = match (settings.framing, far) {
        (FramingSource::Line(line), _) => [Some(Framing::of(line)); 2],
        (FramingSource::Delays, Far::Own(session)) if slower < FASTEST_CELLS_BPS => {
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
        (FramingSource::Delays | FramingSource::Earlier, _) => [None; 2],
    };
    for (direction, framing) in [&mut down, &mut up].into_iter().zip(framings) {
        direction.framing = framing;
        direction.line_bps = raw.line(direction.capacity_bps, framing);
    }
    let round_trips = raw.window(raw.idle.clone()).filter_map(|probe| probe.answer);
    let round_trips = round_trips
        .map(|answer| answer.round_trip() as f64 / 1e6)
        .collect();
    let downloads = loads.iter().filter(|load| load.way == Direction::Down);
    let congestion_down = downloads.map(|load| &load.loaded.congestion).next();
    let nothing = || {
        let sent = raw.window(raw.idle.clone()).count() as u64;
        match far {
            Far::Own(_) => TuneError::NoProbes { sent },
            Far::Foreign(_) => TuneError::NoRoundTrips { sent },
        }
    };
    Ok(Measured {
        server: far.place().name(),
        connections: settings.connections,
        load_s: settings.load.as_secs_f64(),
        mtu,
        packet: raw.packet,
        one_way: raw.is_ours,
        not_measured: match raw.is_ours {
            true => Vec::new(),
            false => not_measured(settings.framing),
        },
        congestion_down: congestion_down.cloned().flatten(),
        round_trip_ms: Delays::of(round_trips).ok_or_else(nothing)?,
        down,
        up,
    })
}

/// Returns what is not measured with a server that was made for something else.
fn not_measured(framing: FramingSource) -> Vec<NotMeasured> {
    match framing {
        FramingSource::Line(_) => vec![NO_MTU, NO_RPM],
        FramingSource::Delays | FramingSource::Earlier => vec![NO_MTU, NO_FRAMING, NO_RPM],
    }
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

/// Waits until the queue of a load has drained. If it `is_probed` meanwhile, a probe says so. If not, it
/// takes as long as the last probe has waited.
fn await_empty(latest: &Latest, is_probed: bool, is_interrupted: &dyn Fn() -> bool) -> Result<(), TuneError> {
    let began = Instant::now();
    wait(2 * INTERVAL, is_interrupted)?;
    let is_full = |excess: Duration| excess > EMPTY && (is_probed || began.elapsed() < excess);
    while latest.excess().is_none_or(is_full) && began.elapsed() < DRAINING {
        wait(INTERVAL, is_interrupted)?;
    }
    Ok(())
}

type Window = std::ops::Range<Duration>;

/// What a measurement has, before it is judged.
struct Raw {
    /// Whether the server is one of ours.
    is_ours: bool,
    /// The header of an IP packet, bytes.
    ip_header: u32,
    beside: Beside,
    /// A full IP packet of the load, bytes.
    packet: u32,
    probed: Vec<Probed>,
    idle: Window,
}

impl Raw {
    fn window(&self, window: Window) -> impl Iterator<Item = Probed> + Clone {
        self.probed
            .iter()
            .copied()
            .filter(move |probe| window.contains(&probe.sent))
    }

    fn direction(&self, load: &Load) -> Result<Figures, TuneError> {
        let delay = |probe: &Probed| Some(probe.answer?.delay(load.way));
        let least = self.probed.iter().filter_map(delay).min().unwrap_or(0);
        let waited = |probe: &Probed| Some(delay(probe)?.saturating_sub(least) as f64 / 1e6);
        let delays = |window: &Window| {
            let waited = self.window(window.clone()).filter_map(|probe| waited(&probe));
            Delays::of(waited.collect())
        };
        let loaded =
            load.loaded.from + FILLING.min(load.until.saturating_sub(load.loaded.from) / 2)..load.until;
        let nothing = || TuneError::Nothing {
            direction: load.way.name(),
            seconds: (load.until - load.loaded.from).as_secs_f64(),
        };
        let capacity = estimate::capacity(&load.loaded.bytes, BIN)
            .filter(|capacity| capacity.rate > 0.0)
            .ok_or_else(nothing)?;
        let bps = |payload: f64| self.packets(payload, load.loaded.segment);
        // A probe in each.
        let bins = (self.beside.every.as_nanos() / BIN.as_nanos()).max(2) as usize;
        let interval = BIN * bins as u32;
        let rate_bps = load.loaded.bytes.chunks_exact(bins).map(|bytes| {
            let bytes: f64 = bytes.iter().map(|&bytes| bytes as f64).sum();
            bps(bytes / interval.as_secs_f64())
        });
        let rate_bps: Vec<f64> = rate_bps.collect();
        let delay_ms = (0..rate_bps.len() as u32).map(|index| {
            let begin = load.loaded.from + interval * index;
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
            rpm: self.is_ours.then(|| {
                let Loaded {
                    opened,
                    answered,
                    own,
                    ..
                } = &load.loaded;
                estimate::responsiveness(opened, answered, own)
            }),
            over_time: OverTime {
                interval_s: interval.as_secs_f64(),
                delay_ms: delay_ms.collect(),
                rate_bps,
            },
        })
    }

    /// Converts payload of TCP, bytes per second, to all IP packets, bits per second. Segments are full ones,
    /// and probes pass beside them.
    fn packets(&self, payload: f64, counted: Option<Segment>) -> f64 {
        let full = Segment {
            payload: self.packet.saturating_sub(self.ip_header + TCP_HEADER).max(1),
            length: self.packet - self.ip_header,
        };
        let segment = counted.unwrap_or(full);
        let packet = f64::from(segment.length + self.ip_header);
        let beside = self.beside.length * self.beside.a_second;
        (payload / f64::from(segment.payload) * packet + beside) * 8.0
    }

    /// Returns what the line sends for IP packets, bits per second.
    fn line(&self, packets: f64, framing: Option<Framing>) -> f64 {
        let on_line = |length: f64| match framing {
            Some(framing) => framing.count(length as u64) as f64,
            None => length + ETHERNET,
        };
        let Beside { a_second, length, .. } = self.beside;
        let full = f64::from(self.packet);
        let segments = (packets / 8.0 - length * a_second).max(0.0) / full;
        (segments * on_line(full) + a_second * on_line(length)) * 8.0
    }
}

/// Returns the share of probes, or of their answers, that were lost in a direction: the server says how many
/// had reached it when it answered. If it says nothing, both together count for the direction.
fn loss(probed: impl Iterator<Item = Probed> + Clone, way: Direction) -> f64 {
    let share = |lost: u64, of: u64| lost as f64 / of.max(1) as f64;
    let counted = |(number, probe): (usize, Probed)| match probe.answer? {
        Answer::OneWay { count, .. } => Some((number as u64, count)),
        Answer::RoundTrip(_) => None,
    };
    let mut counts = probed.clone().enumerate().filter_map(counted);
    let Some(first) = counts.next() else {
        let lost = probed.clone().filter(|probe| probe.answer.is_none()).count();
        return share(lost as u64, probed.count() as u64);
    };
    let (mut last, mut answers) = (first, 0u64);
    for count in counts {
        (last, answers) = (count, answers + 1);
    }
    let (sent, arrived) = (last.0 - first.0, last.1.saturating_sub(first.1));
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
                .map(|answer| answer.delay(way));
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
                let answer = Answer::OneWay { up: 0, down: 0, count };
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
    fn round_trips_are_lost_in_the_loaded_direction() {
        let probed =
            [Some(Answer::RoundTrip(7)), None, Some(Answer::RoundTrip(8)), None].map(|answer| Probed {
                sent: Duration::ZERO,
                length: 0,
                answer,
            });
        for way in [Direction::Up, Direction::Down] {
            assert_eq!(loss(probed.into_iter(), way), 0.5);
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
