//! Bands and the choice of a packet's band. `prio`, `ets` and `mq` share this module.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::classify::{ClassMap, Classifier, Filtered};
use crate::discipline::{Class, Discipline, Verdict};
use crate::error::ConfigError;
use crate::pool::{PacketId, PacketQueue, Pool};
use crate::time::Time;

/// The largest number of bands: [`Bands`] has one bit of a `u64` for each.
pub(crate) const MOST_BANDS: usize = 64;

/// Checks the number of bands.
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

/// Checks that a priomap and a classifier name only existing bands.
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
            "name only existing bands, or add bands",
        ));
    }
    check_classifier(classifier, bands, discipline)
}

/// Checks that a classifier names only existing bands.
pub(crate) fn check_classifier(
    classifier: &Classifier,
    bands: usize,
    discipline: &'static str,
) -> Result<(), ConfigError> {
    ClassMap::new(1..=bands as u32)?.check(classifier, discipline)
}

/// Returns the band of a packet, counted from 0. It is the first of these that exists: the class that the
/// packet names, the class of the first filter that matches, the classifier's default, the priomap's entry
/// for the packet's priority. A packet whose class does not exist goes to the band of priority 0.
///
/// # Errors
/// If a filter drops the packet.
#[inline]
pub(crate) fn choose(
    priomap: &[u8; 16],
    classifier: &mut Classifier,
    bands: usize,
    id: PacketId,
    now: Time,
    pool: &mut Pool,
) -> Result<usize, Filtered> {
    match classifier.classifies_nothing() {
        true => Ok(by_priority(priomap, pool[id].priority)),
        false => choose_by_class(priomap, classifier, bands, id, now, pool),
    }
}

// Not inlined, so that bands without classes keep their registers.
#[inline(never)]
fn choose_by_class(
    priomap: &[u8; 16],
    classifier: &mut Classifier,
    bands: usize,
    id: PacketId,
    now: Time,
    pool: &mut Pool,
) -> Result<usize, Filtered> {
    Ok(match classifier.classify(id, now, pool)? {
        None => by_priority(priomap, pool[id].priority),
        Some(minor) => index_of(minor, bands).unwrap_or_else(|| by_priority(priomap, 0)),
    })
}

#[inline]
fn by_priority(priomap: &[u8; 16], priority: u8) -> usize {
    usize::from(priomap[usize::from(priority & 15)])
}

/// Returns the index of class `minor` among `bands` bands.
#[inline]
pub(crate) fn index_of(minor: u32, bands: usize) -> Option<usize> {
    (minor as usize).checked_sub(1).filter(|&index| index < bands)
}

/// Visits the bands as classes 1, 2, 3, ...
pub(crate) fn visit<'a>(bands: impl Iterator<Item = &'a dyn Discipline>, visit: &mut dyn FnMut(Class<'_>)) {
    for (minor, discipline) in (1..).zip(bands) {
        visit(Class::new(minor, discipline));
    }
}

/// At most [`MOST_BANDS`] disciplines, in strict priority or in turn.
///
/// A bitmap records which bands may hold packets. An enqueue sets the band's bit. The bit is cleared when a
/// dequeue finds the band empty. So a band may lose packets without notice (CoDel inside, a flush). A
/// throttled band (a shaper inside) is skipped.
#[derive(Debug)]
pub(crate) struct Bands {
    pub(crate) bands: Vec<Box<dyn Discipline>>,
    /// Bit b is set if band b may hold packets.
    occupied: u64,
}

impl Bands {
    /// Bands without packets, the highest priority first.
    pub(crate) fn new(bands: Vec<Box<dyn Discipline>>) -> Bands {
        Bands { bands, occupied: 0 }
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, band: usize, id: PacketId, now: Time, pool: &mut Pool) -> Verdict {
        self.occupied |= 1 << band;
        self.bands[band].enqueue(id, now, pool)
    }

    /// Takes a packet from the first band that has one to send.
    #[inline]
    pub(crate) fn dequeue(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        self.dequeue_from(0, now, pool).map(|(_, next)| next)
    }

    /// Takes a packet from the first band that has one to send, counted from band `first` on. Returns the
    /// band, too.
    #[inline]
    pub(crate) fn dequeue_from(
        &mut self,
        first: usize,
        now: Time,
        pool: &mut Pool,
    ) -> Option<(usize, PacketId)> {
        for after in bits(self.occupied.rotate_right(first as u32)) {
            let index = (first + after) % MOST_BANDS;
            let band = &mut self.bands[index];
            if let Some(next) = band.dequeue(now, pool) {
                return Some((index, next));
            }
            if band.is_empty() {
                self.occupied &= !(1 << index);
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

    /// The earliest watchdog of the throttled bands.
    pub(crate) fn watchdog(&self) -> Option<Time> {
        bits(self.occupied)
            .filter_map(|index| self.bands[index].watchdog())
            .min()
    }

    /// Notes that band `band` was replaced and may hold packets.
    pub(crate) fn replaced(&mut self, band: usize) {
        self.occupied |= 1 << band;
    }
}

/// The positions of the set bits, lowest first.
#[inline]
fn bits(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(lowest)
    })
}
