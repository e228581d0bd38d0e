//! A class a host: so many classes alike (a [`Template`]), given to hosts as their packets come.
//!
//! ```text
//!   packet -> what counts of it, masked -> keyed hash -> table -> class of its host
//!                                                        not in: the class that was used longest ago and holds no packets
//!                                                                none: the overflow class
//! ```
//!
//! The classes are there from the start, for the packet path allocates nothing; a host that has been quiet loses its class to
//! a new one only when that is needed.
//!
//! Invariants: a class is of one host at a time, and changes hands only while it is empty, so no packet ever moves between
//! classes. No host's packets are reordered: one that has packets in the overflow class goes on sending there until that was
//! seen empty. Hosts are known by all 64 bits of a keyed hash: who doesn't know the key can't make two of them meet.
//!
//! Not meant to: set classes aside for hosts (filters do that), or remember a host that lost its class.

mod ages;
mod by;
mod table;
mod template;

use alloc::vec::Vec;
use core::fmt;

use crate::discipline::Discipline;
use crate::pool::{PacketId, Pool};
use crate::stats::Statistics;

pub use by::{AddressMask, Host, HostBy};
use table::HostTable;
pub use template::{Template, Templates};

/// Gives the discipline of the class at a place.
pub(crate) type Discover<'f, 'd> = &'f dyn Fn(usize) -> &'d dyn Discipline;

/// Whose packets a class holds.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// Those that are sent there, whosever.
    Anyone,
    /// Nobody's: it is made from a template, and no host has it.
    Free,
    /// One host's.
    Host(Tenant<'a>),
}

/// A host that has a class. Shown as people write it: `192.0.2.7`.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    by: &'a HostBy,
    host: &'a Host,
    before: &'a Statistics,
}

impl Tenant<'_> {
    /// The host.
    pub fn host(&self) -> &Host {
        self.host
    }

    /// What the books of the class say of this host: without those who had the class before.
    pub fn statistics(&self, of_class: &Statistics) -> Statistics {
        of_class.since(self.before)
    }
}

impl fmt::Display for Tenant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by.show(self.host, f)
    }
}

/// All hosts that have classes of a discipline. Classes are known by their place in its array.
pub(crate) struct Hosts {
    /// By rising place.
    tables: Vec<HostTable>,
    seed: u64,
}

impl Hosts {
    /// Nobody has a class yet. The templates were checked; `place` gives the places of their classes.
    pub(crate) fn new(templates: &Templates, place: impl Fn(u16) -> usize) -> Hosts {
        let table = |template| HostTable::new(template, templates.seed, &place);
        Hosts {
            tables: templates.list.iter().map(table).collect(),
            seed: templates.seed,
        }
    }

    /// The same after a change of parameters: who has a class keeps it, if it is still there.
    pub(crate) fn changed(&self, templates: &Templates, place: impl Fn(u16) -> usize) -> Hosts {
        let templates = Templates {
            list: templates.list.clone(),
            seed: self.seed,
        };
        let mut hosts = Hosts::new(&templates, place);
        for table in &mut hosts.tables {
            self.tables.iter().for_each(|old| table.follow(old));
        }
        hosts
    }

    /// The class that a packet goes to which was sent to the class at `place`: of a template, that of its host.
    #[inline]
    pub(crate) fn place(
        &mut self,
        place: usize,
        id: PacketId,
        pool: &Pool,
        discover: Discover<'_, '_>,
    ) -> usize {
        match self.tables.is_empty() {
            true => place,
            false => self.place_of_host(place, id, pool, discover),
        }
    }

    /// Out of line, so that a discipline without templates keeps its registers.
    #[inline(never)]
    fn place_of_host(
        &mut self,
        place: usize,
        id: PacketId,
        pool: &Pool,
        discover: Discover<'_, '_>,
    ) -> usize {
        match self.table_of(place) {
            Some(table) => self.tables[table].place(id, pool, discover),
            None => place,
        }
    }

    /// Whose packets the class at `place` holds.
    pub(crate) fn holder(&self, place: usize) -> Holder<'_> {
        match self.table_of(place) {
            Some(table) => self.tables[table].holder(place),
            None => Holder::Anyone,
        }
    }

    /// The discipline of the class at `place` is another one, whose books are new.
    pub(crate) fn replaced(&mut self, place: usize) {
        if let Some(table) = self.table_of(place) {
            self.tables[table].replaced(place);
        }
    }

    #[inline]
    fn table_of(&self, place: usize) -> Option<usize> {
        let behind = self.tables.partition_point(|table| table.first <= place);
        let table = behind.checked_sub(1)?;
        (place < self.tables[table].end()).then_some(table)
    }
}

#[cfg(test)]
mod tests;
