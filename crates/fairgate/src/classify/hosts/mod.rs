//! A class per host: a number of equal classes (a [`Template`]), assigned to hosts when their packets arrive.
//!
//! ```text
//!   packet -> fields that identify the host, masked -> keyed hash -> table -> class of its host
//!                                                     not found: the least recently used class without
//!                                                     packets
//!                                                                if there is none: the overflow class
//! ```
//!
//! The classes exist from the start, because the packet path does not allocate. A quiet host loses its class
//! only when a new host needs one.
//!
//! Invariants: a class belongs to one host at a time, and is reassigned only while it is empty. So packets
//! never move between classes, and no host's packets are reordered. A host with packets in the overflow class
//! stays there until that class was seen empty. Hosts are identified by all 64 bits of a keyed hash. An
//! attacker who does not know the key can't make two of them collide.
//!
//! Not supported: reserving classes for hosts (filters do that), and remembering a host that lost its class.

mod ages;
mod by;
mod holder;
mod table;
mod template;

use alloc::vec::Vec;

use crate::discipline::Discipline;
use crate::pool::{PacketId, Pool};

pub use by::{AddressMask, Host, HostBy};
pub use holder::{Holder, Tenant};
use table::HostTable;
pub use template::{Template, Templates};

/// Returns the discipline of the class at an index.
pub(crate) type Discover<'f, 'd> = &'f dyn Fn(usize) -> &'d dyn Discipline;

/// All hosts with classes of a discipline. Classes are identified by their index in the discipline's array.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The tables by ascending index.
    tables: Vec<HostTable>,
    seed: u64,
}

impl Hosts {
    /// Creates the tables, without any hosts. The templates must be checked. `place` returns the indices of
    /// their classes.
    pub(crate) fn new(templates: &Templates, place: impl Fn(u32) -> usize) -> Hosts {
        let table = |template| HostTable::new(template, templates.seed, &place);
        Hosts {
            tables: templates.list.iter().map(table).collect(),
            seed: templates.seed,
        }
    }

    /// Returns the tables after a change of parameters. A host keeps its class, if the class still exists.
    pub(crate) fn changed(&self, templates: &Templates, place: impl Fn(u32) -> usize) -> Hosts {
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

    /// Returns the index of the packet's class. `place` is the index of the class that the classifier chose.
    /// If it was made from a template, the result is the class of the packet's host.
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

    // Not inlined, so that a discipline without templates keeps its registers.
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

    /// Returns the owner of the packets in the class at index `place`.
    pub(crate) fn holder(&self, place: usize) -> Holder<'_> {
        match self.table_of(place) {
            Some(table) => self.tables[table].holder(place),
            None => Holder::Anyone,
        }
    }

    /// Records that the class at index `place` has a new discipline, whose statistics start at zero.
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
