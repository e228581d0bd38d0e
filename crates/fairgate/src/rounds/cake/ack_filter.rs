//! The filter of acknowledgements: an arriving one makes an older one of its flow redundant, which is dropped
//! (Høiland-Jørgensen, Täht, Morton 2018; `cake_ack_filter` in Linux's sch_cake.c).
//!
//! The oldest redundant one is dropped, and at most one for each that arrives. The filter keeps two redundant
//! ones, or with [`AckFilter::Aggressive`] one, so that a sender that counts acknowledgements still gets
//! some. What redundant means: [`Acknowledgement::is_redundant_beside`].
//!
//! [`Acknowledgement::is_redundant_beside`]: crate::flow::Acknowledgement::is_redundant_beside

use crate::pool::{PacketId, PacketQueue, Pool};

/// Whether redundant acknowledgements are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckFilter {
    /// They are kept.
    #[default]
    Off,
    /// The oldest is dropped if two older ones are redundant beside the newest.
    On,
    /// Also if one is, and the newest follows it directly.
    Aggressive,
}

crate::words!(AckFilter {
    "off" => AckFilter::Off,
    "on" => AckFilter::On,
    "aggressive" => AckFilter::Aggressive,
});

/// Returns the packet that the last packet of the queue makes redundant, if there is one.
pub(super) fn redundant(queue: &PacketQueue, filter: AckFilter, pool: &Pool) -> Option<PacketId> {
    let newest_id = queue.back()?;
    let newest = pool.acknowledgement(newest_id).filter(|newest| newest.is_valid)?;
    // The oldest redundant packet, its ECN flags, and whether no packet came after it so far.
    let mut oldest: Option<(PacketId, u8, bool)> = None;
    let mut is_second = false;
    let found = queue.find_map(pool, |id| {
        if id == newest_id {
            return None;
        }
        if let Some((.., is_last)) = &mut oldest {
            *is_last = false;
        }
        let older = pool
            .acknowledgement(id)
            .filter(|older| older.has_flow_of(newest))?;
        // If the ECN flags change, the packet before the change says something that the one after it does
        // not.
        if oldest.is_some_and(|(_, ecn_flags, _)| ecn_flags != older.ecn_flags) {
            oldest = None;
            is_second = false;
        }
        if !older.is_redundant_beside(newest) {
            return None;
        }
        let (first, ..) = *oldest.get_or_insert((id, older.ecn_flags, true));
        let is_enough = is_second;
        is_second = true;
        is_enough.then_some(first)
    });
    found.or_else(|| {
        let (id, ecn_flags, is_last) = oldest?;
        let may_go = filter == AckFilter::Aggressive && is_last && ecn_flags == newest.ecn_flags;
        may_go.then_some(id)
    })
}
