//! TUN and TAP devices as a back end: `sys/tun_tap.rs` has the system calls.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::backend::Backend;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::interface::Layer;
use crate::sys::tun_tap::TunTap;

/// Returns what it is called in messages.
pub(crate) fn title(layer: Layer) -> &'static str {
    match layer {
        Layer::Ethernet => "a TAP device",
        Layer::Ip => "a TUN device",
    }
}

/// Frames that the kernel drops for such a device before they reach us are not counted here: `ip -s link`
/// counts them.
impl Backend for TunTap {
    #[inline]
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        TunTap::front(self)
    }

    #[inline]
    fn release(&mut self, _exchange: Option<u32>) {
        TunTap::release(self);
    }

    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        TunTap::send(self, frames)
    }

    /// Such a device may be moved to another network namespace, for example that of a container.
    fn is_elsewhere(&self) -> bool {
        self.is_attached()
    }

    fn receiver(&self) -> BorrowedFd<'_> {
        self.device()
    }
}
