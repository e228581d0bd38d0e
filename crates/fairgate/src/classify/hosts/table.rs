//! The classes of one template, and the hosts that have them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ages::Ages;
use super::{Discover, Holder, Tenant};
use crate::classify::{Host, HostBy, Template};
use crate::flow::Sip;
use crate::pool::{PacketId, Pool};
use crate::stats::Statistics;
use crate::structures::{FlowTable, Identity};

/// The maximum number of classes that a new host's packet examines. If so many less recently used classes all
/// hold packets, an idle class after them is not found. The limit keeps the cost of a packet independent of
/// the number of classes.
pub(super) const LOOKS: u32 = 16;

/// The host that has a class.
#[derive(Clone, Debug, Default)]
struct Occupant {
    /// [`Identity::NONE`] if no host has the class.
    identity: Identity,
    host: Host,
    /// The statistics of the class when it was assigned to the host.
    before: Statistics,
}

#[derive(Debug)]
pub(super) struct HostTable {
    /// The index of the template's first class among the discipline's classes.
    pub(super) first: usize,
    overflow: usize,
    by: HostBy,
    /// What hashes hosts, with its key.
    hasher: Sip,
    /// The classes by host, counted from the template's first.
    classes: FlowTable,
    ages: Ages,
    occupants: Box<[Occupant]>,
    /// Counts how often the overflow class was seen empty when a host without a class sent a packet.
    period: u64,
    /// By the hash of a host without a class: the period in which it, or another host with this hash, last
    /// sent to the overflow class.
    overflowed: Box<[u64]>,
    class: u32,
    overflow_class: u32,
}

impl HostTable {
    /// Creates the table of a template that was checked. `place` returns the indices of its classes.
    pub(super) fn new(template: &Template, seed: u64, place: impl Fn(u32) -> usize) -> HostTable {
        let count = template.count;
        HostTable {
            first: place(template.class),
            overflow: place(template.overflow),
            by: template.by,
            hasher: Sip::new([seed, !seed]),
            classes: FlowTable::new(count, seed),
            ages: Ages::new(count),
            occupants: vec![Occupant::default(); count as usize].into(),
            period: 1,
            overflowed: vec![0; (4 * count as usize).next_power_of_two()].into(),
            class: template.class,
            overflow_class: template.overflow,
        }
    }

    /// Returns the index after the last class.
    pub(super) fn end(&self) -> usize {
        self.first + self.occupants.len()
    }

    /// Returns the index of the packet's class.
    #[inline]
    pub(super) fn place(&mut self, id: PacketId, pool: &Pool, discover: Discover<'_, '_>) -> usize {
        let Some(host) = self.by.host(&pool[id], pool.headers(id)) else {
            return self.overflow;
        };
        let identity = self.classes.identity(self.by.hash(&host, self.hasher));
        match self.classes.find(identity) {
            Some(class) => {
                self.ages.renew(class);
                self.first + class as usize
            }
            None => self.admit(host, identity, discover),
        }
    }

    /// Assigns a class to a host that has none. While packets of the host may be queued in the overflow
    /// class, the host stays there, so that its packets are not reordered.
    #[cold]
    fn admit(&mut self, host: Host, identity: Identity, discover: Discover<'_, '_>) -> usize {
        if discover(self.overflow).is_empty() {
            self.period += 1;
        }
        let bucket = self.bucket(identity);
        let may_be_queued = self.overflowed[bucket] == self.period;
        let idle = if may_be_queued { None } else { self.idle(discover) };
        let Some(class) = idle else {
            self.overflowed[bucket] = self.period;
            return self.overflow;
        };
        let place = self.first + class as usize;
        self.give(class, host, identity, discover(place).statistics());
        place
    }

    /// Returns the least recently used class that holds no packets. A class that holds packets counts as used
    /// now.
    fn idle(&mut self, discover: Discover<'_, '_>) -> Option<u32> {
        for _ in 0..LOOKS.min(self.occupants.len() as u32) {
            let oldest = self.ages.oldest();
            if discover(self.first + oldest as usize).is_empty() {
                return Some(oldest);
            }
            self.ages.renew(oldest);
        }
        None
    }

    fn bucket(&self, identity: Identity) -> usize {
        identity.low_bits() as usize & (self.overflowed.len() - 1)
    }

    fn give(&mut self, class: u32, host: Host, identity: Identity, before: Statistics) {
        let occupant = &mut self.occupants[class as usize];
        self.classes.remove(occupant.identity);
        self.classes.insert_at(identity, class);
        *occupant = Occupant {
            identity,
            host,
            before,
        };
        self.ages.renew(class);
    }

    #[cfg(test)]
    pub(super) fn bucket_of(&self, host: &Host) -> usize {
        self.bucket(self.classes.identity(self.by.hash(host, self.hasher)))
    }

    pub(super) fn holder(&self, place: usize) -> Holder<'_> {
        let occupant = &self.occupants[place - self.first];
        match occupant.identity {
            Identity::NONE => Holder::Free,
            _ => Holder::Host(Tenant {
                by: &self.by,
                host: &occupant.host,
                before: &occupant.before,
            }),
        }
    }

    /// Records that the class at index `place` has a new discipline, whose statistics start at zero.
    pub(super) fn replaced(&mut self, place: usize) {
        self.occupants[place - self.first].before = Statistics::default();
    }

    /// Takes over the hosts of the same template from before a change. A host whose class no longer exists is
    /// new. If other fields identify hosts now, all hosts are new.
    pub(super) fn follow(&mut self, old: &HostTable) {
        if self.class != old.class {
            return;
        }
        if self.by == old.by {
            let kept = old
                .ages
                .iter()
                .filter(|&class| class < self.occupants.len() as u32);
            for class in kept.collect::<Vec<_>>() {
                let occupant = &old.occupants[class as usize];
                if occupant.identity != Identity::NONE {
                    self.give(class, occupant.host, occupant.identity, occupant.before.clone());
                }
            }
        }
        self.period = old.period;
        let is_same = self.by == old.by && self.overflow_class == old.overflow_class;
        match is_same && self.overflowed.len() == old.overflowed.len() {
            true => self.overflowed.copy_from_slice(&old.overflowed),
            // Every host without a class may have packets in the overflow class.
            false => self.overflowed.fill(self.period),
        }
    }
}
