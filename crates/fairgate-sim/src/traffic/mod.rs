//! Sources of packets: sources of datagrams, and TCP connections with the programs that write to them.
//!
//! ```text
//!   Source
//!     Datagrams    when and how long the next datagram is: pattern, video, recording
//!       Session    what the ends measure with numbered datagrams: RTP media, ping
//!     Connection   both ends of the protocol engine, and a Program that says who writes when and how much
//!     Browser      several connections that load pages together
//! ```
//!
//! A source has one job: it says when to send, and how much. The simulation moves the packets.

mod browser;
mod bursts;
mod connection;
mod datagrams;
mod end;
mod program;
mod recorded;
mod session;
mod video;

pub(crate) use browser::Browser;
pub(crate) use connection::Connection;
pub(crate) use datagrams::{Datagrams, Emitter, PatternSource};
pub(crate) use end::End;
pub(crate) use program::Program;
pub(crate) use recorded::Recorded;
pub use recorded::{RecordedPacket, RecordedTurn};
pub(crate) use session::{Media, Ping, Session};
pub(crate) use video::VideoSource;

use fairgate::Time;

use crate::monitor::{ConnectionMonitor, ConnectionWindow, Phase};
use crate::results::ApplicationResults;
use crate::tcp::SenderCounters;

/// The source of a flow.
pub(crate) enum Source {
    Datagrams(Datagrams),
    Connection(Box<Connection>),
    Browser(Box<Browser>),
}

impl Source {
    /// Returns the TCP connections.
    #[inline]
    pub(crate) fn connections(&mut self) -> &mut [Connection] {
        match self {
            Source::Datagrams(_) => &mut [],
            Source::Connection(connection) => std::slice::from_mut(&mut **connection),
            Source::Browser(browser) => &mut browser.connections,
        }
    }

    /// Prefetches what an end needs for a packet. A browser has too many connections for that.
    #[inline]
    pub(crate) fn prefetch(&self, end: End) {
        if let Source::Connection(connection) = self {
            connection.prefetch(end);
        }
    }

    /// Stops the source of a TCP flow. Sources of datagrams are not asked any more.
    /// Prefetches the segments that an acknowledgement is about.
    #[inline]
    pub(crate) fn prefetch_outstanding(&self) {
        if let Source::Connection(connection) = self {
            connection.sender.prefetch_outstanding();
        }
    }

    pub(crate) fn stop(&mut self) {
        match self {
            Source::Datagrams(_) => {}
            Source::Connection(connection) => connection.stop(),
            Source::Browser(browser) => browser.stop(),
        }
    }

    /// Returns the connections that are there, to be read.
    fn all(&self) -> &[Connection] {
        match self {
            Source::Datagrams(_) => &[],
            Source::Connection(connection) => std::slice::from_ref(&**connection),
            Source::Browser(browser) => &browser.connections,
        }
    }

    /// Returns the counters of all connections together.
    fn counters(&self) -> SenderCounters {
        let counters = self.all().iter().map(Connection::counters);
        counters.fold(SenderCounters::default(), SenderCounters::plus)
    }

    /// Returns the monitor of a TCP flow.
    fn monitor(&mut self) -> Option<&mut ConnectionMonitor> {
        match self {
            Source::Datagrams(_) => None,
            Source::Connection(connection) => Some(&mut connection.monitor),
            Source::Browser(browser) => Some(&mut browser.monitor),
        }
    }

    pub(crate) fn window_opens(&mut self) {
        let counters = self.counters();
        if let Some(monitor) = self.monitor() {
            monitor.window_opens(counters);
        }
    }

    pub(crate) fn window_closes(&mut self) {
        let counters = self.counters();
        if let Some(monitor) = self.monitor() {
            monitor.window_closes(counters);
        }
    }

    /// Returns what a TCP flow measured. It ends in this phase.
    pub(crate) fn finish(&mut self, phase: Phase) -> Option<ConnectionWindow> {
        let counters = self.counters();
        self.monitor().map(|monitor| monitor.finish(phase, counters))
    }

    /// Returns the sum of the congestion windows, segments, and the smoothed round-trip time of the first
    /// connection, µs. `None` for datagrams.
    pub(crate) fn state(&self) -> Option<(u32, Option<u64>)> {
        if let Source::Datagrams(_) = self {
            return None;
        }
        let windows = self
            .all()
            .iter()
            .map(|connection| connection.sender.congestion_window());
        let first = self.all().first();
        Some((
            windows.sum(),
            first.and_then(|connection| connection.sender.smoothed_rtt()),
        ))
    }

    /// Returns when the first connection was established.
    pub(crate) fn established_at(&self) -> Option<Time> {
        self.all().first()?.sender.established_at()
    }

    /// Returns whether everything was written and has arrived. Datagrams are never known to be the last.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Source::Datagrams(_) => false,
            Source::Connection(connection) => connection.is_complete(),
            Source::Browser(browser) => browser.is_complete(),
        }
    }

    /// Returns whether nothing is sent, unless a packet arrives.
    pub(crate) fn is_quiet(&self) -> bool {
        self.all().iter().all(Connection::is_quiet)
    }

    /// Releases the memory that is needed only while packets are outstanding.
    pub(crate) fn release_memory(&mut self) {
        self.connections().iter_mut().for_each(Connection::release_memory);
    }

    /// Returns what the application measured, if it measures anything.
    pub(crate) fn application(&self) -> Option<ApplicationResults> {
        match self {
            Source::Datagrams(datagrams) => datagrams.session().map(Session::results),
            Source::Connection(connection) => connection.program().results(),
            Source::Browser(browser) => Some(browser.results()),
        }
    }
}
