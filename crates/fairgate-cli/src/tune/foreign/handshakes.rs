//! Round trips to a server that answers no probes of ours: how long TCP connections to its port take to open.
//!
//! The server's kernel answers them, whatever its program does. The time is what our kernel has measured, by
//! timestamps. If nothing comes for a second, both kernels send again. If our segment was lost, a connection
//! has taken that second longer than the round trip. If the server's was lost, the second is in the measured
//! time, too, but not in the times of connections beside it. Both count as lost probes.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_live::testbed::{TcpFigures, tcp_figures};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};

use crate::tune::flood::discard;
use crate::tune::kind::Kind;
use crate::tune::place::Place;
use crate::tune::probes::{Answer, Latest, Probed};

/// The time between two of them. Their packets have places in queues that count packets, of which slow lines
/// have few.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// The packets of one in a direction, and their mean length without the header of IP, bytes.
pub(super) const PACKETS: f64 = 3.5;
pub(super) const LENGTH: f64 = 33.0;

/// A connection that took so much longer than its round trip, or than one beside it, had lost a segment: half
/// of the time after which a kernel sends again.
const LOST: Duration = Duration::from_millis(500);
/// Connections that began within this time are beside one another. Queues grow less than [`LOST`] in it.
const BESIDE: Duration = Duration::from_millis(450);
/// After this time a connection is given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread waits at once.
const TICK: Duration = Duration::from_millis(10);

/// When connections may be opened. An iperf3 server takes the first one that comes between two tests for
/// that of a client, and so none may be on its way then.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<Passing>);

#[derive(Debug, Default)]
struct Passing {
    is_open: bool,
    /// Connections that are on their way.
    number: usize,
}

impl Gate {
    fn locked(&self) -> MutexGuard<'_, Passing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self) {
        self.locked().is_open = true;
    }

    /// Closes it, and waits until nothing is on its way.
    pub(super) fn close(&self) {
        self.locked().is_open = false;
        let began = Instant::now();
        while self.locked().number > 0 && began.elapsed() < PATIENCE + TICK {
            thread::sleep(TICK);
        }
    }
}

/// A connection on its way.
struct Passenger {
    number: usize,
    stream: TcpStream,
    is_open: bool,
}

/// Opens connections until it `is_over`, and closes them again. Returns all of them, in their order.
pub(super) fn measure(place: &Place, gate: &Gate, latest: &Latest, is_over: &AtomicBool) -> Vec<Probed> {
    let mut probed: Vec<Probed> = Vec::new();
    let mut passengers: Vec<Passenger> = Vec::new();
    let mut sent_again = Vec::new();
    let mut due = place.now();
    while !is_over.load(Ordering::Relaxed) {
        let now = place.now();
        if now >= due {
            // One that is late does not make those behind it come in a burst.
            due = if now > due + 2 * INTERVAL { now } else { due } + INTERVAL;
            let mut passing = gate.locked();
            if passing.is_open {
                let sent = place.now();
                // What can't be sent is a probe without an answer.
                if let Ok(stream) = begin(place) {
                    passengers.push(Passenger {
                        number: probed.len(),
                        stream,
                        is_open: false,
                    });
                }
                probed.push(Probed {
                    sent,
                    length: 0,
                    answer: None,
                });
            }
            passing.number = passengers.len();
        }
        let ready = wait(&passengers, due.saturating_sub(place.now()).min(TICK));
        let mut index = 0;
        passengers.retain_mut(|passenger| {
            let is_ready = ready[index];
            index += 1;
            let sent = probed[passenger.number].sent;
            let took = place.now() - sent;
            if is_ready && !passenger.is_open {
                let figures = opened(&passenger.stream);
                let answer = figures.and_then(|figures| answer(&figures, took));
                if let Some(answer) = answer {
                    latest.note(answer.round_trip());
                }
                probed[passenger.number].answer = answer;
                if figures.is_some_and(|figures| figures.retransmissions > 0) {
                    sent_again.push(passenger.number);
                }
                passenger.is_open = true;
                // An iperf3 server says that it is busy, and some end a test if that fails.
                return place.kind == Kind::Iperf3 && figures.is_some();
            }
            !is_ready && took < PATIENCE
        });
        gate.locked().number = passengers.len();
    }
    gate.locked().number = 0;
    discard_lost(&mut probed, &sent_again);
    probed
}

/// Discards the times of connections that had lost the server's segment. `sent_again` are the numbers of
/// those whose own segment our kernel has sent twice, as it does if nothing comes for a second.
fn discard_lost(probed: &mut [Probed], sent_again: &[usize]) {
    let time = |probe: &Probed| probe.answer.map(|answer| answer.round_trip());
    let once: Vec<(Duration, i64)> = (0..probed.len())
        .filter(|number| !sent_again.contains(number))
        .filter_map(|number| Some((probed[number].sent, time(&probed[number])?)))
        .collect();
    for &number in sent_again {
        let probe = &mut probed[number];
        let beside = once
            .iter()
            .filter(|(sent, _)| sent.abs_diff(probe.sent) <= BESIDE);
        // Without any the queue itself holds more than a second.
        let longest = beside.map(|&(_, time)| time).max();
        if let (Some(took), Some(longest)) = (time(probe), longest)
            && took.saturating_sub(longest) > LOST.as_nanos() as i64
        {
            probe.answer = None;
        }
    }
}

/// Returns what the kernel says of a connection that has opened. `None` if it was refused.
fn opened(stream: &TcpStream) -> Option<TcpFigures> {
    stream.peer_addr().ok()?;
    tcp_figures(stream).ok()
}

/// Returns the round trip of a connection that took so long to open. `None` if it had lost its segment.
fn answer(figures: &TcpFigures, took: Duration) -> Option<Answer> {
    let round_trip = Duration::from_micros(figures.rtt_us.into());
    // A busy machine looks late, and has lost nothing.
    let is_lost = figures.retransmissions > 0 && took.saturating_sub(round_trip) >= LOST;
    let is_measured = !round_trip.is_zero() && !is_lost;
    is_measured.then_some(Answer::RoundTrip(round_trip.as_nanos() as i64))
}

/// Begins to open a connection.
fn begin(place: &Place) -> Result<TcpStream, Errno> {
    let server = place.server;
    let family = match server {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(family, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(server)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {
            let stream = TcpStream::from(socket);
            // An iperf3 server has closed it before, so that one packet ends it here. A netserver waits for
            // its end, which must be sent again if it is lost.
            if place.kind == Kind::Iperf3 {
                let _ = discard(&stream);
            }
            Ok(stream)
        }
        Err(errno) => Err(errno),
    }
}

/// Waits for any of them, for so long. Returns which have opened, or were answered.
fn wait(passengers: &[Passenger], patience: Duration) -> Vec<bool> {
    let events = |passenger: &Passenger| match passenger.is_open {
        true => PollFlags::POLLIN,
        false => PollFlags::POLLOUT,
    };
    let mut waiting: Vec<PollFd> = passengers
        .iter()
        .map(|passenger| PollFd::new(passenger.stream.as_fd(), events(passenger)))
        .collect();
    let timeout = PollTimeout::try_from(patience + Duration::from_millis(1)).unwrap_or(PollTimeout::ZERO);
    match poll(&mut waiting, timeout) {
        Ok(_) => waiting
            .iter()
            .map(|waiting| waiting.any() == Some(true))
            .collect(),
        Err(_) => vec![false; passengers.len()],
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    proptest! {
        /// Round trips of up to a second, of which some have lost the server's segment: those and no others
        /// are discarded. If the queue itself holds more, every segment is sent twice, and all count.
        #[test]
        fn lost_answers_are_told_from_a_deep_queue(
            base in 1i64..400, slope in -3i64..4, lost in vec(prop::bool::weighted(0.1), 100), is_deep: bool
        ) {
            let lost: Vec<bool> = lost.into_iter().map(|lost| lost && !is_deep).collect();
            let mut probed: Vec<Probed> = lost
                .iter()
                .enumerate()
                .map(|(number, &is_lost)| {
                    let waited = base + slope.max(0) * number as i64 + if is_deep { 1000 } else { 0 };
                    let time = waited + if is_lost { 1000 } else { 0 };
                    Probed {
                        sent: INTERVAL * number as u32,
                        length: 0,
                        answer: Some(Answer::RoundTrip(time * MS)),
                    }
                })
                .collect();
            let again: Vec<usize> = (0..100).filter(|&number| is_deep || lost[number]).collect();
            // One with none beside it that was answered at once can't be told. At both ends there are fewer.
            let beside = |number: usize| &lost[number.saturating_sub(2)..(number + 3).min(lost.len())];
            prop_assume!((0..lost.len()).all(|number| !lost[number] || beside(number).contains(&false)));
            discard_lost(&mut probed, &again);
            let discarded: Vec<bool> = probed.iter().map(|probe| probe.answer.is_none()).collect();
            prop_assert_eq!(discarded, lost);
        }
    }

    #[test]
    fn a_connection_that_was_sent_again_is_lost_unless_the_round_trip_is_that_long() {
        let time = |rtt_us: u32, retransmissions: u32, took_ms: u64| {
            let figures = TcpFigures {
                rtt_us,
                retransmissions,
                ..TcpFigures::default()
            };
            answer(&figures, Duration::from_millis(took_ms)).map(|answer| answer.round_trip() / MS)
        };
        assert_eq!(time(20_000, 0, 20), Some(20));
        // This machine has looked late.
        assert_eq!(time(20_000, 0, 900), Some(20));
        // Ours was lost.
        assert_eq!(time(20_000, 1, 1020), None);
        // The queue holds more than a second.
        assert_eq!(time(1_400_000, 1, 1400), Some(1400));
        // The kernel could not tell which of both was answered.
        assert_eq!(time(0, 1, 1020), None);
    }
}
