//! Datagrams with timestamps, which the server answers: the delay of each direction.
//!
//! The two clocks are not set to each other. A delay in one direction is therefore only known up to a
//! constant, and its least value stands for an empty line.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::tune::error::TuneError;
use crate::tune::measured::Direction;
use crate::tune::session::Session;
use crate::tune::wire::{LONGEST_PROBE, PROBE, Probe};

/// The time between two of them.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// How long answers of the last probes are waited for.
const LAST: Duration = Duration::from_secs(2);

/// What probes take of a direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// The time between two probes.
    pub(crate) every: Duration,
    /// IP packets a second, and their length, bytes.
    pub(crate) a_second: f64,
    pub(crate) length: f64,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    /// When, since the beginning of the measurement.
    pub(crate) sent: Duration,
    /// The length of its IP packet, and of its answer's, bytes.
    pub(crate) length: usize,
    pub(crate) answer: Option<Answer>,
}

/// What an answer says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// The server has a clock, and counts.
    OneWay {
        /// The delay up, ns, up to a constant: the server's clock less ours.
        up: i64,
        /// The delay down, ns, up to a constant: our clock less the server's.
        down: i64,
        /// How many probes had reached the server.
        count: u64,
    },
    /// It took so long, ns.
    RoundTrip(i64),
}

impl Answer {
    /// Returns the round trip without the time at the server, ns.
    pub(crate) fn round_trip(&self) -> i64 {
        match *self {
            Answer::OneWay { up, down, .. } => up.saturating_add(down),
            Answer::RoundTrip(time) => time,
        }
    }

    /// Returns the delay of a direction, ns, up to a constant. A round trip counts for the direction that is
    /// loaded meanwhile.
    pub(crate) fn delay(&self, way: Direction) -> i64 {
        match (*self, way) {
            (Answer::OneWay { down, .. }, Direction::Down) => down,
            (Answer::OneWay { up, .. }, Direction::Up) => up,
            (Answer::RoundTrip(time), _) => time,
        }
    }
}

/// The round trips of the probes so far, for who waits until a queue is empty.
#[derive(Debug)]
pub(crate) struct Latest {
    least: AtomicU64,
    latest: AtomicU64,
}

impl Default for Latest {
    fn default() -> Latest {
        Latest {
            least: AtomicU64::new(u64::MAX),
            latest: AtomicU64::new(u64::MAX),
        }
    }
}

impl Latest {
    pub(super) fn note(&self, round_trip: i64) {
        let round_trip = round_trip.max(0) as u64;
        self.least.fetch_min(round_trip, Ordering::Relaxed);
        self.latest.store(round_trip, Ordering::Relaxed);
    }

    /// Returns what the last answered probe has waited longer than the shortest one. `None` without answers.
    pub(crate) fn excess(&self) -> Option<Duration> {
        let least = self.least.load(Ordering::Relaxed);
        let latest = self.latest.load(Ordering::Relaxed);
        (latest != u64::MAX).then(|| Duration::from_nanos(latest.saturating_sub(least)))
    }
}

/// Sends probes as long as `next` returns how long after the last one, and in which length, bytes of UDP
/// payload, the next one is to be sent. Returns all of them, in their order.
pub(crate) fn send(
    session: &Session,
    latest: &Latest,
    mut next: impl FnMut() -> Option<(Duration, usize)>,
) -> Result<Vec<Probed>, TuneError> {
    let socket = session.probes()?;
    let mut probed: Vec<Probed> = Vec::new();
    let mut datagram = [0; LONGEST_PROBE];
    let mut due = session.place.now();
    let mut waiting = next();
    loop {
        let now = session.place.now();
        match waiting {
            Some((after, length)) if due + after <= now => {
                // A probe that is late does not make those behind it come in a burst.
                due = if now > due + 2 * after { now } else { due + after };
                let length = length.clamp(PROBE, LONGEST_PROBE);
                let sent = session.place.now();
                let probe = Probe {
                    token: session.token,
                    number: probed.len() as u32,
                    answer: length as u32,
                    sent: sent.as_nanos() as u64,
                    ..Probe::default()
                };
                probe.write(&mut datagram);
                probed.push(Probed {
                    sent,
                    length: length + session.headers(),
                    answer: None,
                });
                // What can't be sent is a probe without an answer.
                let _ = socket.send(&datagram[..length]);
                waiting = next();
            }
            Some((after, _)) => receive(session, &socket, due + after - now, &mut probed, latest)?,
            None if now >= due + LAST || probed.iter().all(|probe| probe.answer.is_some()) => break,
            None => receive(session, &socket, due + LAST - now, &mut probed, latest)?,
        }
    }
    match probed.iter().any(|probe| probe.answer.is_some()) {
        true => Ok(probed),
        false => Err(TuneError::NoProbes {
            sent: probed.len() as u64,
        }),
    }
}

/// Waits for an answer, for so long at most.
fn receive(
    session: &Session,
    socket: &UdpSocket,
    patience: Duration,
    probed: &mut [Probed],
    latest: &Latest,
) -> Result<(), TuneError> {
    socket
        .set_read_timeout(Some(patience.max(Duration::from_micros(1))))
        .map_err(TuneError::system("waiting for probes"))?;
    let mut bytes = [0; LONGEST_PROBE];
    let received = match socket.recv(&mut bytes) {
        Ok(received) => received,
        Err(error) => {
            // The server's machine says that nobody listens there, at once and again.
            if error.kind() == ErrorKind::ConnectionRefused {
                thread::sleep(Duration::from_millis(1));
            }
            return Ok(());
        }
    };
    let now = session.place.now().as_nanos() as i64;
    let Some(probe) = Probe::read(&bytes[..received]).filter(|probe| probe.token == session.token) else {
        return Ok(());
    };
    // The number is of this sender only, and the first answer counts.
    if let Some(sent) = probed.get_mut(probe.number as usize)
        && sent.answer.is_none()
        && sent.sent.as_nanos() as u64 == probe.sent
    {
        let answer = Answer::OneWay {
            up: (probe.received as i64).wrapping_sub(probe.sent as i64),
            down: now.wrapping_sub(probe.answered as i64),
            count: probe.count,
        };
        latest.note(answer.round_trip());
        sent.answer = Some(answer);
    }
    Ok(())
}
