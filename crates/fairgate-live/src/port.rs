//! One end of the bridge: an interface with its packet sockets, or a TAP device.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;

use crate::attach::{Attachment, mark_of};
use crate::config::End;
use crate::error::LiveError;
use crate::sys::interface::{Interface, Unusable, control_socket};
use crate::sys::layout::Layout;
use crate::sys::ring::Received;
use crate::sys::socket::{PacketSocket, RING_SLOTS};
use crate::sys::tap::Tap;
use crate::vlan::Tag;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// How often, and at which interval, an interface that went down is checked for being removed. This takes at
/// most a fifth of a second, when the run ends anyway.
const REMOVAL_CHECKS: u32 = 20;
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);

/// One end of the bridge.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) interface: Interface,
    device: Device,
    /// A socket to query the interface. It stays in the interface's network namespace, which this thread may
    /// have left.
    control: OwnedFd,
    /// Whether a program at the interface's hook adds VLAN tags for us.
    pushes_tags: bool,
}

#[derive(Debug)]
enum Device {
    // Boxed, because a packet socket is much larger than a TAP device.
    Packet(Box<PacketSocket>),
    Tap(Tap),
}

/// Returns the length of the longest frame at an MTU: with the header, and with a VLAN tag that the kernel
/// leaves in the frame.
pub(crate) fn longest_frame_at(mtu: usize) -> usize {
    mtu + ETHERNET_HEADER + Tag::BYTES
}

/// Returns the length of the longest frame of an interface.
pub(crate) fn longest_frame(interface: &Interface) -> usize {
    longest_frame_at(interface.mtu)
}

impl Port {
    /// Finds the interface, or creates the TAP device. Does not receive yet.
    pub(crate) fn find(end: &End) -> Result<(Interface, Option<Tap>), LiveError> {
        let (name, tap) = match end {
            End::Interface(name) => (name, None),
            End::Tap(name) => {
                let create = LiveError::system(format!("creating the TAP device `{name}`"));
                (name, Some(Tap::open(name).map_err(create)?))
            }
        };
        let interface = Interface::lookup(name).map_err(LiveError::unusable(name))?;
        Ok((interface, tap))
    }

    /// Starts receiving.
    pub(crate) fn open(
        interface: Interface,
        tap: Option<Tap>,
        attachment: &Attachment,
    ) -> Result<Port, LiveError> {
        let device = match tap {
            Some(tap) => Device::Tap(tap),
            None => {
                let layout = Layout::new(longest_frame(&interface), RING_SLOTS).ok_or_else(|| {
                    LiveError::MtuTooLarge {
                        interface: interface.name.clone(),
                        mtu: interface.mtu,
                        most: Layout::LONGEST_FRAME - ETHERNET_HEADER - Tag::BYTES,
                    }
                })?;
                let open = LiveError::system(format!("opening packet sockets on `{}`", interface.name));
                Device::Packet(Box::new(PacketSocket::open(&interface, layout).map_err(open)?))
            }
        };
        let control = control_socket().map_err(LiveError::system("opening a control socket"))?;
        Ok(Port {
            interface,
            device,
            control,
            pushes_tags: attachment.is_isolated(),
        })
    }

    /// Checks whether the interface's MTU was raised. If so, stores the new MTU and returns true.
    pub(crate) fn has_grown(&mut self) -> bool {
        let now = Interface::lookup_by(&self.control, &self.interface.name);
        let mtu = now.map_or(0, |now| {
            if now.index == self.interface.index {
                now.mtu
            } else {
                0
            }
        });
        let has_grown = mtu > self.interface.mtu;
        if has_grown {
            self.interface.mtu = mtu;
        }
        has_grown
    }

    /// Returns the oldest frame that was not released yet.
    #[inline]
    pub(crate) fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        match &mut self.device {
            Device::Packet(socket) => Ok(socket.front()),
            Device::Tap(tap) => tap.front(),
        }
    }

    /// Releases the frame that [`Port::front`] returned.
    #[inline]
    pub(crate) fn release(&mut self) {
        match &mut self.device {
            Device::Packet(socket) => socket.release(),
            Device::Tap(tap) => tap.release(),
        }
    }

    /// Sends some of `frames`. Returns how many were sent, and the error of the next one.
    pub(crate) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> (usize, Result<(), Errno>) {
        match &mut self.device {
            Device::Packet(socket) => socket.send(frames),
            Device::Tap(tap) => tap.send(frames),
        }
    }

    /// Sends a frame that [`Port::send`] rejected as too long, if only its VLAN tag makes it too long.
    pub(crate) fn send_tagged(&mut self, frame: &[u8]) -> Result<(), Errno> {
        match (&mut self.device, Tag::of(frame)) {
            (Device::Packet(socket), Some(tag)) if self.pushes_tags => {
                socket.send_tagged(frame, mark_of(tag))
            }
            _ => Err(Errno::EMSGSIZE),
        }
    }

    /// Returns the number of frames that the kernel dropped because this process was too slow.
    pub(crate) fn missed(&mut self) -> u64 {
        match &mut self.device {
            Device::Packet(socket) => socket.missed(),
            // The kernel drops frames for a TAP device before they reach us. `ip -s link` counts them.
            Device::Tap(_) => 0,
        }
    }

    /// Returns and clears an error that the kernel reported asynchronously.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        match &self.device {
            Device::Packet(socket) => socket.take_error(),
            Device::Tap(_) => None,
        }
    }

    /// Returns the descriptor that becomes readable when frames arrive.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Packet(socket) => socket.receiver(),
            Device::Tap(tap) => tap.device(),
        }
    }

    /// Converts a system call's error on this port.
    pub(crate) fn describe(&self, errno: Errno, ends: [&str; 2]) -> LiveError {
        let interface = self.interface.name.clone();
        match errno {
            Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO | Errno::EBADFD => LiveError::Lost {
                what: self.fate(),
                interface,
                left: ends[0].to_string(),
                right: ends[1].to_string(),
            },
            errno => LiveError::system(format!("using `{interface}`"))(errno),
        }
    }

    /// Finds out what happened to the interface. An interface that is being removed goes down first. A single
    /// check right after the error would therefore report a removal as "went down".
    fn fate(&self) -> &'static str {
        for _ in 0..REMOVAL_CHECKS {
            match Interface::lookup_by(&self.control, &self.interface.name) {
                Ok(now) if now.index == self.interface.index => return "went down and came back",
                Err(Unusable::Down) => thread::sleep(BETWEEN_CHECKS),
                _ => return "disappeared",
            }
        }
        "went down"
    }
}
