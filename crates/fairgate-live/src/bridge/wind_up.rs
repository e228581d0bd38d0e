//! The end of a run: what is queued leaves before the kernel has its frames back.

use std::thread;
use std::time::Duration;

use super::Bridge;
use super::worker::{RETRY, Worker};
use crate::clock;
use crate::direction::Turn;
use crate::error::LiveError;

/// The longest time that the end may take, ns. An interface that takes nothing must not stop it.
pub(super) const LONGEST: u64 = 100_000_000;

impl Bridge {
    /// Ends forwarding: sends what is queued, at once and unshaped, and then gives the kernel its frames
    /// back. Frames arrive and leave until nothing is queued. So only frames are lost that arrive at the
    /// moment in which the kernel gets them back, and frames that an interface does not take within 100 ms.
    ///
    /// # Errors
    /// Fails if the kernel refuses. It has its frames back then, too.
    pub fn wind_up(&mut self) -> Result<(), LiveError> {
        let end = clock::now() + LONGEST;
        let result = self.empty_all(end);
        self.halt_others();
        self.worker.look_at_bypass(clock::now());
        self.worker.count_passed();
        self.worker.switch = None;
        result.and(self.end_others())
    }
}

impl Worker {
    /// Sends everything until nothing arrives and nothing is left, but not past `end`.
    pub(super) fn empty(&mut self, end: fairgate::Time) -> Result<(), LiveError> {
        loop {
            let now = clock::now();
            let mut is_empty = true;
            for from in 0..2 {
                let may_be_more = self.receive(from, now)?;
                is_empty &= !may_be_more && !self.send_all(from)?;
            }
            if is_empty || now >= end {
                return Ok(());
            }
        }
    }

    /// Sends what a direction holds. Returns whether something is left that may be sent soon.
    fn send_all(&mut self, from: usize) -> Result<bool, LiveError> {
        let to = 1 - from;
        self.directions[from].end_waiting(clock::now());
        if !self.ports[to].can_send() {
            return Ok(false);
        }
        match self.directions[from].send_waiting(&mut self.ports[to]) {
            Ok(Turn::Blocked) => {
                thread::sleep(Duration::from_nanos(RETRY));
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(errno) => self.failed(to, errno).map(|()| true),
        }
    }
}
