//! The classes of one template, and the hosts that have them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use siphasher::sip::SipHasher13;

use super::ages::Ages;
use super::{Discover, Holder, Tenant};
use crate::classify::{Host, HostBy, Template};
use crate::pool::{PacketId, Pool};
use crate::stats::Statistics;
use crate::structures::{FlowTable, Identity};

/// How many classes a new host's packet looks at. A class behind so many that were used longer ago and all still hold packets
/// is not found: with a bound the cost of a packet does not grow with the number of classes, whoever sends it.
pub(super) const LOOKS: u32 = 16;

/// Who has a class.
#[derive(Clone, Debug, Default)]
struct Occupant {
    /// [`Identity::NONE`] where nobody has it.
    identity: Identity,
    host: Host,
    /// The books of the class when the host was given it.
    before: Statistics,
}

pub(super) struct HostTable {
    /// The place of the template's first class among the discipline's.
    pub(super) first: usize,
    overflow: usize,
    by: HostBy,
    hasher: SipHasher13,
    /// Classes by their hosts, counted from the template's first.
    classes: FlowTable,
    ages: Ages,
    occupants: Box<[Occupant]>,
    /// Counts how often the overflow class was seen empty when a host without a class came.
    period: u64,
    /// By the hash of a host without a class: the period in which it, or another with this hash, last sent to the overflow class.
    overflowed: Box<[u64]>,
    class: u16,
    overflow_class: u16,
}

impl HostTable {
    /// Of a template that was checked; `place` gives the places of its classes.
    pub(super) fn new(template: &Template, seed: u64, place: impl Fn(u16) -> usize) -> HostTable {
        let count = u32::from(template.count);
        HostTable {
            first: place(template.class),
            overflow: place(template.overflow),
            by: template.by,
            hasher: SipHasher13::new_with_keys(seed, !seed),
            classes: FlowTable::new(count, seed),
            ages: Ages::new(count),
            occupants: vec![Occupant::default(); count as usize].into(),
            period: 1,
            overflowed: vec![0; (4 * count as usize).next_power_of_two()].into(),
            class: template.class,
            overflow_class: template.overflow,
        }
    }

    /// One behind the place of the last class.
    pub(super) fn end(&self) -> usize {
        self.first + self.occupants.len()
    }

    /// The place of the class that a packet goes to.
    #[inline]
    pub(super) fn place(&mut self, id: PacketId, pool: &Pool, discover: Discover<'_, '_>) -> usize {
        let Some(host) = self.by.host(&pool[id], pool.headers(id)) else {
            return self.overflow;
        };
        let identity = self.classes.identity(self.by.hash(&host, &self.hasher));
        match self.classes.find(identity) {
            Some(class) => {
                self.ages.renew(class);
                self.first + class as usize
            }
            None => self.admit(host, identity, discover),
        }
    }

    /// A host that has no class is given one. But as long as packets of its may wait in the overflow class it goes there, so
    /// that they are not overtaken.
    #[cold]
    fn admit(&mut self, host: Host, identity: Identity, discover: Discover<'_, '_>) -> usize {
        if discover(self.overflow).backlog().packets == 0 {
            self.period += 1;
        }
        let bucket = self.bucket(identity);
        let may_wait = self.overflowed[bucket] == self.period;
        let idle = if may_wait { None } else { self.idle(discover) };
        let Some(class) = idle else {
            self.overflowed[bucket] = self.period;
            return self.overflow;
        };
        let place = self.first + class as usize;
        self.give(class, host, identity, discover(place).statistics());
        place
    }

    /// The class that was used longest ago of those that hold no packets. One that still holds some is in use now.
    fn idle(&mut self, discover: Discover<'_, '_>) -> Option<u32> {
        for _ in 0..LOOKS.min(self.occupants.len() as u32) {
            let oldest = self.ages.oldest();
            if discover(self.first + oldest as usize).backlog().packets == 0 {
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
        self.bucket(self.classes.identity(self.by.hash(host, &self.hasher)))
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

    /// The discipline of the class at `place` is another one, whose books are new.
    pub(super) fn replaced(&mut self, place: usize) {
        self.occupants[place - self.first].before = Statistics::default();
    }

    /// Takes over the hosts of the same template before a change. Those whose class is no more are new, and so are all if
    /// hosts are told apart by something else.
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
            // Whoever has no class may have packets in the overflow class.
            false => self.overflowed.fill(self.period),
        }
    }
}
