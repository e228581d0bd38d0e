//! A TAP device as a back end: `sys/tap.rs` has the system calls.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::backend::Backend;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::tap::Tap;

/// What it is called in messages.
pub(crate) const TITLE: &str = "a TAP device";

/// What one behind which the host's stack is is called in messages.
pub(crate) const HOST_TITLE: &str = "a TAP device with offloads";

/// Frames that the kernel drops for a TAP device before they reach us are not counted here: `ip -s link`
/// counts them.
impl Backend for Tap {
    #[inline]
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        Tap::front(self)
    }

    #[inline]
    fn release(&mut self) {
        Tap::release(self);
    }

    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        Tap::send(self, frames)
    }

    /// A TAP device may be moved to another network namespace, for example that of a container.
    fn is_elsewhere(&self) -> bool {
        self.is_attached()
    }

    fn receiver(&self) -> BorrowedFd<'_> {
        self.device()
    }
}
