//! Interfaces that come and go while a bridge runs.
//!
//! The kernel reports that something changed. What changed is then queried, so that late, merged or lost
//! reports do no harm.

use std::sync::Arc;

use fairgate::Time;
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;

use super::{PORTS, Worker, lease};
use crate::clock;
use crate::error::LiveError;
use crate::ethernet::longest_frame;
use crate::fitness;
use crate::notice::Notice;

/// How often a removed interface is looked for, ns. The kernel reports a new interface at once. This is for
/// one that could not be used then, for example because it had an address.
const BETWEEN_ATTEMPTS: u64 = 1_000_000_000;

impl Worker {
    /// Queries both interfaces and does what their changes require. Returns true if longer frames fit now.
    #[cold]
    pub(in crate::bridge) fn check_links(&mut self) -> Result<bool, LiveError> {
        let longest_before = self.mtu();
        let plan = Arc::clone(&self.plan);
        for (side, token) in PORTS.into_iter().enumerate() {
            let was_missing = self.ports[side].is_missing();
            let directions = &mut self.directions;
            let mut lease = || lease(directions, side);
            let port = &mut self.ports[side];
            let is_replaced = port.check(&plan, self.switch.as_ref(), &mut lease, &mut self.notify)?;
            if is_replaced {
                // The old descriptor left the event loop when it was closed.
                self.watch(self.ports[side].receiver(), EpollFlags::EPOLLIN, token)?;
            } else if self.ports[side].is_missing() && !was_missing {
                // A TAP device that was removed reports an error at each wait.
                let _ = self.epoll.delete(self.ports[side].receiver());
            }
        }
        self.follow_host_end();
        let is_incomplete = self.ports.iter().any(|port| port.is_missing());
        self.next_attempt = is_incomplete.then(|| clock::now() + BETWEEN_ATTEMPTS);
        let has_grown = self.mtu() > longest_before;
        if has_grown {
            self.orders.set_mtu(self.mtu());
            let longest = longest_frame(self.mtu());
            for direction in &mut self.directions {
                let failed = LiveError::system("getting memory for longer frames");
                direction.grow(longest).map_err(failed)?;
            }
            if let Err(error) = fitness::check(&self.plan, self.mtu()) {
                for problem in error.problems() {
                    (self.notify)(Notice::TooSmall(problem.clone()));
                }
            }
        }
        Ok(has_grown)
    }

    /// Handles an error of a port: the interface has changed, and the report of that may not be here yet.
    ///
    /// # Errors
    /// Returns an error that no change of an interface causes.
    #[cold]
    pub(in crate::bridge) fn failed(&mut self, side: usize, errno: Errno) -> Result<(), LiveError> {
        match errno {
            // Packet sockets: down, removed. TAP devices: down (EIO), removed (EBADFD, EFAULT).
            Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO | Errno::EIO | Errno::EBADFD | Errno::EFAULT => {
                self.check_links().map(drop)
            }
            errno => {
                let using = format!("using `{}`", self.ports[side].interface.name);
                Err(LiveError::system(using)(errno))
            }
        }
    }

    /// Looks for a removed interface again, if it is time.
    pub(in crate::bridge) fn attempt(&mut self, now: Time) -> Result<(), LiveError> {
        if self.next_attempt.is_some_and(|at| at <= now) {
            self.check_links()?;
        }
        Ok(())
    }
}
