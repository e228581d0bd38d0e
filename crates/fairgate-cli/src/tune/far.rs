//! The other end of a measurement, whichever program it is, and what can be seen with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::tune::error::TuneError;
use crate::tune::foreign::Foreign;
use crate::tune::kind::Kind;
use crate::tune::load::{Loaded, load};
use crate::tune::measured::Direction;
use crate::tune::path;
use crate::tune::place::{Named, Place};
use crate::tune::probes::{self, Beside, INTERVAL, Latest, Probed};
use crate::tune::session::Session;
use crate::tune::wire::PROBE;

pub(crate) enum Far {
    /// A `fairgate tune --serve`.
    Own(Session),
    Foreign(Foreign),
}

impl Far {
    /// Opens a measurement.
    pub(crate) fn open(named: &Named) -> Result<Far, TuneError> {
        match named.kind {
            Kind::Fairgate => Session::open(named).map(Far::Own),
            Kind::Iperf3 | Kind::Netperf => Foreign::open(named).map(Far::Foreign),
        }
    }

    /// Returns where it is.
    pub(crate) fn place(&self) -> &Place {
        match self {
            Far::Own(session) => &session.place,
            Far::Foreign(foreign) => &foreign.place,
        }
    }

    /// Returns the longest IP packet that passes in both directions, bytes. `None` if only a server of ours
    /// could tell.
    pub(super) fn mtu(&self) -> Result<Option<u32>, TuneError> {
        match self {
            Far::Own(session) => match path::mtu(session)? {
                Some(mtu) => Ok(Some(mtu)),
                None => Err(TuneError::NoProbes { sent: 3 }),
            },
            Far::Foreign(_) => Ok(None),
        }
    }

    /// Probes the line until it `is_over`.
    pub(super) fn probe(&self, latest: &Latest, is_over: &AtomicBool) -> Result<Vec<Probed>, TuneError> {
        match self {
            Far::Own(session) => probes::send(session, latest, || {
                (!is_over.load(Ordering::Relaxed)).then_some((INTERVAL, PROBE))
            }),
            Far::Foreign(foreign) => Ok(foreign.round_trips(latest, is_over)),
        }
    }

    /// Returns what passes beside a load.
    pub(super) fn beside(&self) -> Beside {
        match self {
            Far::Own(session) => Beside {
                every: INTERVAL,
                a_second: 1.0 / INTERVAL.as_secs_f64(),
                length: (PROBE + session.headers()) as f64,
            },
            Far::Foreign(foreign) => foreign.beside(),
        }
    }

    /// Loads a direction with so many connections, for so long, if it is not interrupted.
    pub(super) fn load(
        &self,
        way: Direction,
        connections: u32,
        length: Duration,
        is_interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Loaded, TuneError> {
        match self {
            Far::Own(session) => load(session, way, connections, length, is_interrupted),
            Far::Foreign(foreign) => foreign.load(way, connections, length, is_interrupted),
        }
    }
}
