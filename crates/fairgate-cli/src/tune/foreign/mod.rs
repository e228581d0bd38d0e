//! Servers that were made for something else: iperf3 and netperf. They take and send bytes, which fills a
//! direction. Everything else is seen from here: what is delivered, and round trips.

mod answers;
mod handshakes;
mod iperf3;
mod netperf;
mod stop;
mod timed;

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::tune::error::TuneError;
use crate::tune::flood::discard;
use crate::tune::foreign::answers::Answers;
use crate::tune::foreign::handshakes::Gate;
use crate::tune::foreign::stop::Stop;
use crate::tune::foreign::timed::Timed;
use crate::tune::kind::Kind;
use crate::tune::load::{Loaded, delivered, joined, receive, send};
use crate::tune::measured::Direction;
use crate::tune::place::{Named, PATIENCE, Place};
use crate::tune::probes::{Beside, Latest, Probed};
use crate::tune::record::{Record, Side};

/// How long the server may take to be free for the next test. It ends the last one first.
const FREE_AGAIN: Duration = Duration::from_secs(3);
/// A netserver sends for so much longer than the load: connections to it open one after the other.
const LONGER: Duration = Duration::from_secs(10);
/// How long the end of a test may take, whose messages wait behind a full queue.
const LAST: Duration = Duration::from_secs(20);
/// How often a waiting thread looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
/// What an iperf3 server is to send with: see [`flood`](crate::tune::flood::flood).
const CONGESTION: &str = "reno";

/// A server of something else.
pub(crate) struct Foreign {
    pub(crate) place: Place,
    /// A control connection of iperf3 whose test has not begun.
    opened: Mutex<Option<Opened>>,
    /// The congestion control of an iperf3 server before we have named one, if it has said so.
    congestion: Mutex<Option<String>>,
    /// When round trips are measured.
    gate: Gate,
}

/// A control connection of iperf3, and the cookie of its test.
type Opened = (TcpStream, [u8; iperf3::COOKIE]);

/// A test that runs.
struct Running {
    /// Those of netperf end with their test. That of iperf3 ends it.
    controls: Vec<TcpStream>,
    streams: Vec<TcpStream>,
}

impl Foreign {
    /// Connects to a server.
    pub(crate) fn open(named: &Named) -> Result<Foreign, TuneError> {
        let (place, control) = Place::reach(named)?;
        let opened = match place.kind {
            Kind::Iperf3 => Some(greet(control).map_err(|stop| match stop {
                // A server of something else closes the connection, or waits for more.
                Stop::Broken(_) => place.stranger(),
                stop => failed(&place, stop),
            })?),
            Kind::Netperf | Kind::Fairgate => None,
        };
        Ok(Foreign {
            place,
            opened: Mutex::new(opened),
            congestion: Mutex::default(),
            gate: Gate::default(),
        })
    }

    /// Measures round trips until it `is_over`. There are none before the first test and between two.
    pub(crate) fn round_trips(&self, latest: &Latest, is_over: &AtomicBool) -> Vec<Probed> {
        handshakes::measure(&self.place, &self.gate, latest, is_over)
    }

    /// Returns what measuring round trips takes of a direction.
    pub(crate) fn beside(&self) -> Beside {
        let every = handshakes::INTERVAL;
        Beside {
            every,
            a_second: handshakes::PACKETS / every.as_secs_f64(),
            length: handshakes::LENGTH + self.place.ip_header() as f64,
        }
    }

    /// Waits for so long in a test in which nobody sends.
    pub(crate) fn idle(
        &self,
        length: Duration,
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), TuneError> {
        let loaded = self.run(None, 1, length, is_interrupted)?;
        *locked(&self.congestion) = loaded.congestion;
        Ok(())
    }

    /// Loads a direction with so many connections, for so long, if it is not interrupted.
    pub(crate) fn load(
        &self,
        way: Direction,
        connections: u32,
        length: Duration,
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Loaded, TuneError> {
        self.run(Some(way), connections, length, is_interrupted)
    }

    /// Runs a test.
    fn run(
        &self,
        way: Option<Direction>,
        connections: u32,
        length: Duration,
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Loaded, TuneError> {
        let running = match self.place.kind {
            Kind::Netperf => self.begin_netperf(way, connections, length)?,
            Kind::Iperf3 | Kind::Fairgate => self.begin_iperf3(way, connections, length)?,
        };
        let (from, began, record) = (self.place.now(), Instant::now(), Record::begin());
        let is_over = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let (record, is_over) = (&record, &is_over);
            let goes_on = move || began.elapsed() < length && !is_interrupted();
            for stream in &running.streams {
                match way {
                    Some(Direction::Up) => drop(scope.spawn(move || send(stream, record, goes_on))),
                    Some(Direction::Down) => drop(scope.spawn(move || {
                        let mut watched = record.watch(stream, Side::Receiver);
                        receive(stream, || {
                            watched.look(stream);
                            !is_over.load(Ordering::Relaxed)
                        });
                    })),
                    None => {}
                }
            }
            self.gate.open();
            while goes_on() {
                thread::sleep(TICK);
            }
            self.gate.close();
            let ended = self.end(&running, is_interrupted());
            is_over.store(true, Ordering::Relaxed);
            ended
        });
        // What is still queued is not sent, so that what follows finds an idle line.
        for stream in &running.streams {
            let _ = discard(stream);
        }
        Ok(Loaded {
            from,
            bytes: delivered(&record.bins(), length),
            segment: record.segment(),
            congestion: ended?,
            ..Loaded::default()
        })
    }

    /// Ends a test, or gives it up. Returns the congestion control of the server's connections, if it tells.
    fn end(&self, running: &Running, is_interrupted: bool) -> Result<Option<String>, TuneError> {
        let control = running.controls.first();
        let control = control.filter(|_| self.place.kind == Kind::Iperf3);
        match (control, is_interrupted) {
            (Some(control), true) => {
                // If it fails, the server sees the connection end.
                let _ = iperf3::give_up(control);
                Err(TuneError::Interrupted)
            }
            (Some(control), false) => {
                iperf3::end(Timed::of(control, LAST)).map_err(|stop| failed(&self.place, stop))
            }
            (None, true) => Err(TuneError::Interrupted),
            (None, false) => Ok(None),
        }
    }

    fn begin_iperf3(
        &self,
        way: Option<Direction>,
        connections: u32,
        length: Duration,
    ) -> Result<Running, TuneError> {
        let own = locked(&self.congestion).clone();
        let is_reverse = way == Some(Direction::Down);
        let test = |congestion| iperf3::Test {
            connections,
            seconds: length.as_secs_f64().ceil() as u64,
            is_reverse,
            congestion,
        };
        // Servers before 3.19 keep the congestion control that a client has named for all that follow. So the
        // test after a download names theirs again. Systems other than Linux may not have Reno. Such a server
        // closes the connection, or says that it has an error.
        let begun = match is_reverse {
            true => match self.attempt(&test(Some(CONGESTION.to_owned()))) {
                Err(Stop::Broken(_) | Stop::Refused(_)) => self.attempt(&test(own)),
                other => other,
            },
            false => self.attempt(&test(own)),
        };
        begun.map_err(|stop| failed(&self.place, stop))
    }

    fn attempt(&self, test: &iperf3::Test) -> Result<Running, Stop> {
        let opened = locked(&self.opened).take();
        let (control, cookie) = match opened {
            Some(opened) => opened,
            None => self.greet_again()?,
        };
        iperf3::prepare(Timed::of(&control, PATIENCE), test)?;
        let mut streams = Vec::new();
        for _ in 0..test.connections {
            let mut stream = self.place.connect()?;
            stream.write_all(&cookie)?;
            streams.push(stream);
        }
        iperf3::start(Timed::of(&control, PATIENCE))?;
        Ok(Running {
            controls: vec![control],
            streams,
        })
    }

    /// Opens the next test. Until the server has ended the last one it is busy, or does not listen.
    fn greet_again(&self) -> Result<Opened, Stop> {
        let began = Instant::now();
        loop {
            match self.place.connect().map_err(Stop::Broken).and_then(greet) {
                Err(Stop::Busy | Stop::Broken(_)) if began.elapsed() < FREE_AGAIN => {
                    thread::sleep(Duration::from_millis(100));
                }
                other => return other,
            }
        }
    }

    fn begin_netperf(
        &self,
        way: Option<Direction>,
        connections: u32,
        length: Duration,
    ) -> Result<Running, TuneError> {
        let Some(way) = way else {
            return Ok(Running {
                controls: Vec::new(),
                streams: Vec::new(),
            });
        };
        let test = netperf::Test {
            is_reverse: way == Direction::Down,
            seconds: (length + LONGER).as_secs() as u32,
            is_ipv6: self.place.server.is_ipv6(),
        };
        // A server that sends begins at once, so all tests are prepared before the first one begins.
        let (mut controls, mut ports) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            let control = self
                .place
                .connect()
                .map_err(TuneError::system("opening a test"))?;
            ports.push(netperf::prepare(Timed::of(&control, PATIENCE), &test).map_err(
                |stop| match stop {
                    // A server of something else closes the connection, or waits for more.
                    Stop::Broken(_) => self.place.stranger(),
                    stop => failed(&self.place, stop),
                },
            )?);
            controls.push(control);
        }
        let streams = thread::scope(|scope| {
            let connect = |port: u16| {
                let address = SocketAddr::new(self.place.server.ip(), port);
                scope.spawn(move || TcpStream::connect_timeout(&address, PATIENCE))
            };
            let connecting: Vec<_> = ports.into_iter().map(connect).collect();
            connecting.into_iter().map(joined).collect::<io::Result<Vec<_>>>()
        });
        Ok(Running {
            controls,
            streams: streams.map_err(TuneError::system("opening a connection for load"))?,
        })
    }
}

/// The lock is held for a moment only, and what it guards is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the control connection of a whole test with a server that answers with these bytes. Returns whether
/// it went well.
pub(super) fn converse(kind: Kind, is_reverse: bool, answers: &[u8]) -> bool {
    let mut server = Answers::of(answers);
    match kind {
        Kind::Iperf3 | Kind::Fairgate => {
            let test = iperf3::Test {
                connections: 8,
                seconds: 8,
                is_reverse,
                congestion: is_reverse.then(|| CONGESTION.to_owned()),
            };
            iperf3::converse(&mut server, &[0; iperf3::COOKIE], &test).is_ok()
        }
        Kind::Netperf => {
            let test = netperf::Test {
                is_reverse,
                seconds: 8,
                is_ipv6: false,
            };
            netperf::prepare(&mut server, &test).is_ok()
        }
    }
}

/// Opens a test on a control connection of iperf3.
fn greet(control: TcpStream) -> Result<Opened, Stop> {
    let cookie = iperf3::cookie()?;
    iperf3::open(Timed::of(&control, PATIENCE), &cookie)?;
    Ok((control, cookie))
}

fn failed(place: &Place, stop: Stop) -> TuneError {
    match stop {
        Stop::Busy => TuneError::Busy(place.server),
        Stop::Refused(reason) => TuneError::Refused {
            address: place.server,
            reason,
        },
        Stop::Stranger => place.stranger(),
        Stop::Broken(error) if error.kind() == io::ErrorKind::ConnectionRefused => TuneError::Refused {
            address: place.server,
            reason: "it has ended before the last test; start it without `-1`".to_owned(),
        },
        Stop::Broken(error) => TuneError::system("a test of the server's")(error),
    }
}
