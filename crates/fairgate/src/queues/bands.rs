//! Bands in strict priority, and the choice of a band: what `prio` and `ets` have in common.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::{ClassMap, Classifier};
use crate::discipline::{Class, Discipline, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::time::Time;

/// One bit for each band.
pub(crate) const MOST_BANDS: usize = 64;

/// Checks how many bands there are.
pub(crate) fn check_number(bands: usize) -> Result<(), ConfigError> {
    if (1..=MOST_BANDS).contains(&bands) {
        return Ok(());
    }
    Err(ConfigError::conflict(
        "bands",
        bands,
        format!("1 to {MOST_BANDS}"),
        "merge bands, or nest one discipline in another",
    ))
}

/// Checks that a priomap and a classifier name only bands that there are.
pub(crate) fn check_placing(
    priomap: &[u8; 16],
    classifier: &Classifier,
    bands: usize,
    discipline: &'static str,
) -> Result<(), ConfigError> {
    if let Some(band) = priomap.iter().find(|&&band| usize::from(band) >= bands) {
        return Err(ConfigError::conflict(
            "priomap",
            band,
            format!("16 bands from 0 to {}", bands - 1),
            "name only bands that there are, or add bands",
        ));
    }
    ClassMap::new(1..=bands as u16)?.check(classifier, discipline)
}

/// The band for a packet, counted from 0: the class that it names, the first filter that matches, the classifier's
/// default, the priomap's entry for its priority. A class that does not exist is where priority 0 goes.
#[inline]
pub(crate) fn choose(
    priomap: &[u8; 16],
    classifier: &Classifier,
    bands: usize,
    id: PacketId,
    pool: &Pool,
) -> usize {
    let by_priority = |priority: u8| usize::from(priomap[usize::from(priority & 15)]);
    match classifier.classify(id, pool) {
        None => by_priority(pool[id].priority),
        Some(minor) => place(minor, bands).unwrap_or_else(|| by_priority(0)),
    }
}

/// The place of class `minor` among `bands` bands.
#[inline]
pub(crate) fn place(minor: u16, bands: usize) -> Option<usize> {
    usize::from(minor).checked_sub(1).filter(|&place| place < bands)
}

/// Shows bands as the classes 1, 2, 3 ...
pub(crate) fn visit<'a>(bands: impl Iterator<Item = &'a dyn Discipline>, visit: &mut dyn FnMut(Class<'_>)) {
    for (minor, discipline) in (1..).zip(bands) {
        visit(Class::new(minor, discipline));
    }
}

/// Disciplines of which the first that has something to send goes first: at most [`MOST_BANDS`].
///
/// A bitmap remembers which may hold packets; a bit is set by an enqueue and cleared when the band is found empty, so
/// that a band may lose packets on its own account (CoDel inside, a flush) without telling. A band that withholds its
/// packets (a shaper inside) is passed over.
pub(crate) struct StrictBands {
    pub(crate) bands: Vec<Box<dyn Discipline>>,
    /// Bit b is set if band b may hold packets.
    occupied: u64,
}

impl StrictBands {
    /// The highest priority first.
    pub(crate) fn new(bands: Vec<Box<dyn Discipline>>) -> StrictBands {
        StrictBands { bands, occupied: 0 }
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, band: usize, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.occupied |= 1 << band;
        self.bands[band].enqueue(id, now, pool)
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        for place in places(self.occupied) {
            let band = &mut self.bands[place];
            let next = band.dequeue(now, pool);
            if next.is_some() {
                return next;
            }
            if band.backlog().packets == 0 {
                self.occupied &= !(1 << place);
            }
        }
        None
    }

    pub(crate) fn drain(&mut self, pool: &mut Pool, into: &mut PacketQueue) {
        for band in &mut self.bands {
            band.drain(pool, into);
        }
        self.occupied = 0;
    }

    /// When the first of the bands that withhold can be asked again.
    pub(crate) fn watchdog(&self) -> Option<Time> {
        places(self.occupied)
            .filter_map(|place| self.bands[place].watchdog())
            .min()
    }

    /// Band `band` was replaced, and may hold packets.
    pub(crate) fn replaced(&mut self, band: usize) {
        self.occupied |= 1 << band;
    }
}

/// The places of the bits that are set, lowest first.
#[inline]
fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}
