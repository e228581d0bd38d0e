//! Divides the frames that arrive at an interface among the sockets of the workers: PACKET_FANOUT of
//! packet(7).
//!
//! Flows are divided by the kernel's own flow hash. Fragments have no ports for it: they are divided
//! by their addresses, so that those of a datagram stay together. Hosts are divided by a program that hashes
//! an address; frames without one go to worker 0.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use fairgate_config::ShardBy;
use nix::errno::Errno;

use crate::sys::fanout::{self, Division};

/// The sockets of an interface among which frames are divided. If the interface is replaced by another one of
/// its name, a new group is made.
pub(crate) struct Fanout {
    division: Division,
    group: Mutex<Option<Group>>,
}

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
            },
            group: Mutex::new(None),
        }
    }

    /// Makes a group of this socket, which is bound to this interface. Worker 0 does it.
    pub(crate) fn found(&self, socket: &OwnedFd, interface: u32) -> Result<(), Errno> {
        let id = fanout::found(socket, self.division)?;
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
            Some(group) if group.interface == interface => fanout::join(socket, self.division, group.id),
            _ => Err(Errno::ENODEV),
        }
    }
}

impl std::fmt::Debug for Fanout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fanout").finish_non_exhaustive()
    }
}
