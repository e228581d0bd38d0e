//! Back ends: how frames get from the kernel to this process, and back.
//!
//! ```text
//!   kind     those that a configuration can name
//!   choice   which back end an interface gets, and why
//!   packet   AF_PACKET sockets on an interface, with a mapped ring to receive
//!   xdp      AF_XDP sockets on an interface, with rings to receive and to send
//!   tun_tap  a TUN or TAP device: the kernel's own stack is at its other end
//! ```
//!
//! A back end is one file here, with an arm in [`Device`]. If it works with existing interfaces, it also has
//! a variant of [`BackendKind`] and a place in [`choose`]. The packet path calls the back end through a
//! `match` on [`Device`], which costs less than a virtual call and lets the calls be inlined.

mod choice;
pub(crate) mod packet;
pub(crate) mod tun_tap;
pub(crate) mod xdp;

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::backend::xdp::Xdp;
use crate::config::Plan;
use crate::error::LiveError;
use crate::ethernet::longest_frame;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::frames::FrameStore;
use crate::sys::interface::Interface;
use crate::sys::socket::PacketSocket;
use crate::sys::tun_tap::TunTap;
use crate::vlan::Tag;

pub use choice::Choice;
pub(crate) use choice::{check, choose};
pub use fairgate_config::run::{BackendKind, UnknownBackend};

/// What a port needs from a back end.
///
/// Received frames are read one by one: [`Backend::front`] shows the oldest frame until [`Backend::release`].
/// So a frame for which there is no room yet stays where it is.
pub(crate) trait Backend {
    /// Begins to receive. This must not take long: no frame is forwarded meanwhile.
    fn start(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns the oldest frame that was not released yet.
    ///
    /// # Errors
    /// Fails if the interface is gone. "No frame" is not an error.
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno>;

    /// Releases the frame that [`Backend::front`] returned. `exchange` is the chunk to receive with instead
    /// of the frame's, if a frame store has adopted that one.
    fn release(&mut self, exchange: Option<u32>);

    /// Sends some of `frames`, in order. Returns how many were sent, and the error of the next one: `EAGAIN`
    /// or `ENOBUFS` if there is no room at the moment, `EMSGSIZE` if it is longer than the MTU.
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>);

    /// Returns whether sent frames are still in use, until [`Backend::completed`] returns their chunks.
    fn keeps_sent(&self) -> bool {
        false
    }

    /// Returns the chunk of a frame that was sent and is not in use any more.
    fn completed(&mut self) -> Option<u32> {
        None
    }

    /// Sends a frame that [`Backend::send`] rejected as too long without its outermost tag, which a program
    /// at the interface's hook adds again.
    fn send_tagged(&mut self, frame: &[u8], tag: Tag) -> Result<(), Errno> {
        let _ = (frame, tag);
        Err(Errno::EMSGSIZE)
    }

    /// Returns the number of frames that the kernel dropped because this process was too slow, since the back
    /// end was opened.
    fn missed(&mut self) -> u64 {
        0
    }

    /// Returns and clears an error that the kernel reported asynchronously.
    fn take_error(&self) -> Option<Errno> {
        None
    }

    /// Follows a change of the interface's MTU.
    ///
    /// # Errors
    /// Fails with the largest MTU that it can follow, if this one is larger. Longer frames are lost then.
    fn follow_mtu(&mut self, mtu: usize) -> Result<(), usize> {
        let _ = mtu;
        Ok(())
    }

    /// Gives up the memory that it shares with frame stores. The interface is gone.
    fn close(&mut self) {}

    /// Returns whether the back end works although its interface is not in this network namespace.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// Returns the descriptor that becomes readable when frames arrive.
    fn receiver(&self) -> BorrowedFd<'_>;
}

/// Returns the bytes of memory per frame at an MTU.
pub(crate) fn chunk_for(backend: Option<BackendKind>, mtu: usize) -> usize {
    match backend {
        Some(BackendKind::Xdp) => xdp::chunk_for(mtu),
        // The kernel's buffers have about the same size.
        Some(BackendKind::Packet | BackendKind::Kernel) | None => FrameStore::chunk_for(longest_frame(mtu)),
    }
}

/// Makes the stores for the frames of both directions. `ends` are the left and the right interface, if they
/// existed before: the plan's back end is for these.
///
/// # Errors
/// Fails if there is not enough memory.
pub(crate) fn frame_stores(
    plan: &Plan,
    mtu: usize,
    ends: [Option<&Interface>; 2],
) -> Result<[FrameStore; 2], LiveError> {
    let failed = || LiveError::system("getting memory for frames");
    match plan.backend {
        Some(BackendKind::Xdp) => {
            let receiving = |end: Option<&Interface>| end.map_or(Ok(0), xdp::receiving_chunks);
            let receiving = [receiving(ends[0])?, receiving(ends[1])?];
            xdp::frame_stores(plan.frames, mtu, receiving).map_err(failed())
        }
        Some(BackendKind::Packet | BackendKind::Kernel) | None => {
            let store = || FrameStore::new(plan.frames, longest_frame(mtu)).map_err(failed());
            Ok([store()?, store()?])
        }
    }
}

/// An open back end.
#[derive(Debug)]
pub(crate) enum Device {
    // Boxed, because sockets are much larger than a TUN device.
    Packet(Box<PacketSocket>),
    Xdp(Box<Xdp>),
    TunTap(TunTap),
}

/// Calls the same function of the back end that a `Device` holds.
macro_rules! forward {
    ($device:expr, $backend:ident => $call:expr) => {
        match $device {
            Device::Packet($backend) => {
                let $backend = &mut **$backend;
                $call
            }
            Device::Xdp($backend) => {
                let $backend = &mut **$backend;
                $call
            }
            Device::TunTap($backend) => $call,
        }
    };
}

impl Backend for Device {
    fn start(&mut self) -> Result<(), Errno> {
        forward!(self, backend => Backend::start(backend))
    }

    #[inline]
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        forward!(self, backend => Backend::front(backend))
    }

    #[inline]
    fn release(&mut self, exchange: Option<u32>) {
        forward!(self, backend => Backend::release(backend, exchange));
    }

    #[inline]
    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        forward!(self, backend => Backend::send(backend, frames))
    }

    #[inline]
    fn keeps_sent(&self) -> bool {
        match self {
            Device::Packet(backend) => Backend::keeps_sent(&**backend),
            Device::Xdp(backend) => Backend::keeps_sent(&**backend),
            Device::TunTap(backend) => Backend::keeps_sent(backend),
        }
    }

    #[inline]
    fn completed(&mut self) -> Option<u32> {
        forward!(self, backend => Backend::completed(backend))
    }

    fn send_tagged(&mut self, frame: &[u8], tag: Tag) -> Result<(), Errno> {
        forward!(self, backend => Backend::send_tagged(backend, frame, tag))
    }

    fn missed(&mut self) -> u64 {
        forward!(self, backend => Backend::missed(backend))
    }

    fn follow_mtu(&mut self, mtu: usize) -> Result<(), usize> {
        forward!(self, backend => Backend::follow_mtu(backend, mtu))
    }

    fn close(&mut self) {
        forward!(self, backend => Backend::close(backend));
    }

    fn take_error(&self) -> Option<Errno> {
        match self {
            Device::Packet(backend) => Backend::take_error(&**backend),
            Device::Xdp(backend) => Backend::take_error(&**backend),
            Device::TunTap(backend) => Backend::take_error(backend),
        }
    }

    fn is_elsewhere(&self) -> bool {
        match self {
            Device::Packet(backend) => Backend::is_elsewhere(&**backend),
            Device::Xdp(backend) => Backend::is_elsewhere(&**backend),
            Device::TunTap(backend) => Backend::is_elsewhere(backend),
        }
    }

    fn receiver(&self) -> BorrowedFd<'_> {
        match self {
            Device::Packet(backend) => Backend::receiver(&**backend),
            Device::Xdp(backend) => Backend::receiver(&**backend),
            Device::TunTap(backend) => Backend::receiver(backend),
        }
    }
}
