//! AF_PACKET sockets as a back end: `sys/socket.rs` has the system calls.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::attach::mark_of;
use crate::backend::Backend;
use crate::error::LiveError;
use crate::ethernet;
use crate::fanout::Fanout;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::socket::{PacketSocket, RING_SLOTS, Receive};
use crate::vlan::Tag;

/// What it is called in messages.
pub(crate) const TITLE: &str = "packet sockets (AF_PACKET)";

/// Opens the sockets. Frames are received from [`PacketSocket::start`] on: all of them, or those that a group
/// of sockets gives to this one.
pub(crate) fn prepare(
    interface: &Interface,
    receive: Receive,
    member: Option<Member<'_>>,
) -> Result<PacketSocket, LiveError> {
    let layout = Layout::new(ethernet::longest_frame(interface.mtu), RING_SLOTS).ok_or_else(|| {
        LiveError::MtuTooLarge {
            interface: interface.name.clone(),
            mtu: interface.mtu,
            most: Layout::LONGEST_FRAME - ethernet::HEADER - Tag::BYTES,
        }
    })?;
    let failed = LiveError::system(format!("opening packet sockets on `{}`", interface.name));
    let mut socket = PacketSocket::prepare(interface, layout, receive).map_err(failed)?;
    if let Some(Member { fanout, is_first }) = member {
        let binding = || LiveError::system(format!("dividing the frames of `{}`", interface.name));
        let receiver = socket.bind_closed().map_err(binding())?;
        let entered = match is_first {
            true => fanout.found(receiver, interface.index),
            false => fanout.join(receiver, interface.index),
        };
        entered.map_err(|errno| match errno {
            Errno::ENODEV => LiveError::NoInterface {
                interface: interface.name.clone(),
            },
            Errno::EINVAL => LiveError::NoFanout {
                interface: interface.name.clone(),
            },
            errno => binding()(errno),
        })?;
    }
    Ok(socket)
}

/// The membership of a socket in the group of the workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'f> {
    /// The group.
    pub(crate) fanout: &'f Fanout,
    /// Whether this socket makes the group.
    pub(crate) is_first: bool,
}

impl Backend for PacketSocket {
    fn start(&mut self) -> Result<(), Errno> {
        PacketSocket::start(self)
    }

    #[inline]
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        Ok(PacketSocket::front(self))
    }

    #[inline]
    fn release(&mut self, _exchange: Option<u32>) {
        PacketSocket::release(self);
    }

    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        PacketSocket::send(self, frames)
    }

    fn send_tagged(&mut self, frame: &[u8], tag: Tag) -> Result<(), Errno> {
        PacketSocket::send_tagged(self, frame, mark_of(tag))
    }

    fn missed(&mut self) -> u64 {
        PacketSocket::missed(self)
    }

    fn take_error(&self) -> Option<Errno> {
        PacketSocket::take_error(self)
    }

    fn receiver(&self) -> BorrowedFd<'_> {
        PacketSocket::receiver(self)
    }
}
