//! What a medium counts.
//!
//! Time is counted when a transmission ends. [`Medium::counters`](super::Medium::counters) corrects the busy
//! time for the transmission that is going on, so that utilisation is exact.

/// One direction between the access point and a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectionCounters {
    /// Time of its exchanges, from their first frame to the end of the acknowledgement, ns. Without
    /// collisions.
    pub(crate) airtime: u64,
    /// PPDUs that were transmitted without a collision.
    pub(crate) ppdus: u64,
    /// MPDUs in these PPDUs.
    pub(crate) mpdus: u64,
    /// MPDUs, also in collisions, that had been transmitted before.
    pub(crate) retries: u64,
    /// MPDUs that arrived damaged.
    pub(crate) damaged: u64,
    /// PPDUs that collided.
    pub(crate) collided: u64,
    /// Packets delivered.
    pub(crate) delivered: u64,
    /// Packets given up after the last repetition.
    pub(crate) lost: u64,
    /// Sum over all packets delivered of the time from the discipline to the receiver, ns.
    pub(crate) delay: u128,
}

/// A medium as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MediumCounters {
    /// Time during which the channel was busy: transmissions, interframe spaces between them, collisions, ns.
    pub(crate) busy: u64,
    /// Part of it in collisions, ns.
    pub(crate) collision: u64,
    /// Collisions of two or more PPDUs.
    pub(crate) collisions: u64,
    /// Times that two categories of the same member were due in the same slot.
    pub(crate) internal_collisions: u64,
    /// Transmit opportunities that began without a collision.
    pub(crate) opportunities: u64,
}

impl DirectionCounters {
    pub(crate) fn since(&self, earlier: &DirectionCounters) -> DirectionCounters {
        DirectionCounters {
            airtime: self.airtime - earlier.airtime,
            ppdus: self.ppdus - earlier.ppdus,
            mpdus: self.mpdus - earlier.mpdus,
            retries: self.retries - earlier.retries,
            damaged: self.damaged - earlier.damaged,
            collided: self.collided - earlier.collided,
            delivered: self.delivered - earlier.delivered,
            lost: self.lost - earlier.lost,
            delay: self.delay - earlier.delay,
        }
    }
}

impl MediumCounters {
    pub(crate) fn since(&self, earlier: &MediumCounters) -> MediumCounters {
        MediumCounters {
            busy: self.busy - earlier.busy,
            collision: self.collision - earlier.collision,
            collisions: self.collisions - earlier.collisions,
            internal_collisions: self.internal_collisions - earlier.internal_collisions,
            opportunities: self.opportunities - earlier.opportunities,
        }
    }
}
