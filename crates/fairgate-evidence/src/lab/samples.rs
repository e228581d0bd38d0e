//! What is noted while traffic flows: packets of datagram flows, and the kernel's figures of connections at
//! given times.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fairgate_live::testbed::{TcpFigures, tcp_figures};
use fairgate_run_api::Status;
use fairgate_sim::Scenario;

use crate::lab::machine::Ticks;

/// The beginning of a run, by the clocks of threads and of the kernel's time stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zero {
    pub(crate) instant: Instant,
    /// Nanoseconds since 1970.
    pub(crate) nanos: u64,
}

impl Zero {
    /// The run begins in `wait`.
    pub(crate) fn after(wait: Duration) -> Zero {
        Zero {
            instant: Instant::now() + wait,
            nanos: now_nanos() + wait.as_nanos() as u64,
        }
    }

    /// Returns the time since the beginning of a moment in nanoseconds since 1970.
    pub(crate) fn since(self, nanos: u64) -> u64 {
        nanos.saturating_sub(self.nanos)
    }
}

/// Returns the nanoseconds since 1970, by the clock of the kernel's time stamps.
pub(crate) fn now_nanos() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

/// Tells all threads that the run is over.
#[derive(Debug, Default)]
pub(crate) struct Over(AtomicBool);

impl Over {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps until `at`, or less if the run ends. Returns false if it has ended.
    pub(crate) fn sleep_until(&self, at: Instant) -> bool {
        loop {
            if self.is_set() {
                return false;
            }
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(crate::lab::sockets::TICK));
        }
    }
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it was sent and when it arrived, ns since the beginning.
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    /// The length of the IP packet.
    pub(crate) bytes: u32,
}

/// What is noted of a flow's copy.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// When datagrams were sent, ns since the beginning, with the length of the IP packet.
    pub(crate) sent: Mutex<Vec<(u64, u32)>>,
    pub(crate) arrivals: Mutex<Vec<Arrival>>,
    /// The sending and the receiving end of the connection's data.
    pub(crate) connection: Mutex<Option<[TcpStream; 2]>>,
    /// The ends of transfers and how long they took, ns.
    pub(crate) transfers: Mutex<Vec<(u64, u64)>>,
    /// When the flow ended by itself, ns since the beginning.
    pub(crate) ended: Mutex<Option<u64>>,
    /// Datagrams that left more than 1 ms late.
    pub(crate) late: Mutex<u64>,
}

/// The figures of both ends of a connection.
pub(crate) type Ends = Option<[TcpFigures; 2]>;

impl Notes {
    /// Returns the kernel's figures now. `None` before there is a connection.
    pub(crate) fn figures(&self) -> Ends {
        let connection = self.connection.lock().expect("no thread panics with it");
        let [sender, receiver] = connection.as_ref()?;
        // A connection that was reset has no figures any more.
        Some([tcp_figures(sender).ok()?, tcp_figures(receiver).ok()?])
    }
}

/// All figures at one moment.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Since the beginning, ns.
    pub(crate) at: u64,
    /// By flow.
    pub(crate) connections: Vec<Ends>,
    /// By link.
    pub(crate) links: Vec<Option<Status>>,
    pub(crate) ticks: Ticks,
}

/// Returns the times of samples: the beginning, the end of each interval, the ends of the window, and the
/// end.
pub(crate) fn times(scenario: &Scenario) -> Vec<Duration> {
    let intervals = scenario.duration.as_nanos() / scenario.interval.as_nanos().max(1);
    let mut times: Vec<Duration> = (0..=intervals as u32)
        .map(|interval| scenario.interval * interval)
        .chain([scenario.measure.start, scenario.measure.end, scenario.duration])
        .collect();
    times.sort();
    times.dedup();
    times
}
