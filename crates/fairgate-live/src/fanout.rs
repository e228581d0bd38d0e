//! Divides the frames that arrive at an interface among the sockets of the workers: PACKET_FANOUT of
//! packet(7).
//!
//! Flows are divided by the kernel's own flow hash. Fragments have no ports for it: they are divided
//! by their addresses, so that those of a datagram stay together. Hosts are divided by a program that hashes
//! an address, and classes by one that looks the address up in a table; frames without one go to worker 0.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use fairgate::sharding::{self, Side};
use fairgate_config::ShardBy;
use nix::errno::Errno;

use crate::sys::fanout::{self, Division};
use crate::sys::prefix_table::PrefixTable;

/// The sockets of an interface among which frames are divided. If the interface is replaced by another one of
/// its name, a new group is made.
pub(crate) struct Fanout {
    division: Division,
    group: Mutex<Option<Group>>,
    /// The prefixes that the table has, each with its worker.
    known: Mutex<Known>,
}

/// The workers of prefixes, by address and length.
type Known = BTreeMap<(IpAddr, u8), u32>;

#[derive(Clone, Copy)]
struct Group {
    interface: u32,
    id: u16,
}

impl Fanout {
    /// `seed` keeps outsiders from aiming at a worker.
    pub(crate) fn new(by: ShardBy, seed: u64) -> Fanout {
        // An odd factor maps no two addresses to one number.
        let factor = (seed as u32) | 1;
        Fanout {
            division: match by {
                ShardBy::Flow => Division::Flows,
                ShardBy::Source => Division::Sources(factor),
                ShardBy::Destination => Division::Destinations(factor),
                // The direction has no tree: frames pass as they come.
                ShardBy::Class => Division::Flows,
            },
            group: Mutex::new(None),
            known: Mutex::default(),
        }
    }

    /// Divides frames by classes.
    ///
    /// # Errors
    /// If the kernel has no such tables, or no memory for one.
    pub(crate) fn of_classes(division: &sharding::Division) -> Result<Fanout, Errno> {
        let table = PrefixTable::new()?;
        let fanout = Fanout {
            division: match division.side() {
                Side::Source => Division::SourcesOf(Arc::new(table)),
                Side::Destination => Division::DestinationsOf(Arc::new(table)),
            },
            group: Mutex::new(None),
            known: Mutex::default(),
        };
        fanout.follow(division)?;
        Ok(fanout)
    }

    /// Divides frames by these classes from now on. The kernel looks at the table for each frame, so there is
    /// no moment without one.
    ///
    /// # Errors
    /// `EPERM` before Linux 5.19, without privileges, if `kernel.unprivileged_bpf_disabled` is set.
    pub(crate) fn follow(&self, division: &sharding::Division) -> Result<(), Errno> {
        let (Division::SourcesOf(table) | Division::DestinationsOf(table)) = &self.division else {
            return Ok(());
        };
        let mut wanted = Known::new();
        for (prefix, worker) in division.prefixes() {
            // The first of equal prefixes decides.
            wanted
                .entry((prefix.address(), prefix.length()))
                .or_insert(worker as u32);
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (prefix, worker) in &wanted {
            if known.get(prefix) != Some(worker) {
                table.set(*prefix, *worker)?;
                known.insert(*prefix, *worker);
            }
        }
        let gone: Vec<(IpAddr, u8)> = known
            .keys()
            .filter(|prefix| !wanted.contains_key(prefix))
            .copied()
            .collect();
        for prefix in gone {
            table.remove(prefix)?;
            known.remove(&prefix);
        }
        Ok(())
    }

    /// Makes a group of this socket, which is bound to this interface. Worker 0 does it.
    pub(crate) fn found(&self, socket: &OwnedFd, interface: u32) -> Result<(), Errno> {
        let id = fanout::found(socket, &self.division)?;
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = Some(Group { interface, id });
        Ok(())
    }

    /// Adds a socket to the group.
    ///
    /// # Errors
    /// `ENODEV` if worker 0 does not have the interface.
    pub(crate) fn join(&self, socket: &OwnedFd, interface: u32) -> Result<(), Errno> {
        let group = *self.group.lock().unwrap_or_else(PoisonError::into_inner);
        match group {
            Some(group) if group.interface == interface => fanout::join(socket, &self.division, group.id),
            _ => Err(Errno::ENODEV),
        }
    }
}

impl std::fmt::Debug for Fanout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fanout").finish_non_exhaustive()
    }
}
