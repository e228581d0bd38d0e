//! One side of the bump: an interface by its packet sockets, or a TAP device.

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

/// How often, and how far apart, an interface that went down is looked at to see whether it is being removed: a fifth of
/// a second in all, while the run ends.
const REMOVAL_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// An end of the wire.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) interface: Interface,
    device: Device,
    /// To ask about the interface: this thread may be in another network namespace by then.
    control: OwnedFd,
    /// Whether a program at the interface's hook pushes tags for us.
    pushes_tags: bool,
}

#[derive(Debug)]
enum Device {
    // Boxed, so that a port that is a TAP device does not carry the room for a packet socket.
    Packet(Box<PacketSocket>),
    Tap(Tap),
}

/// The longest frame at an MTU: header, and a VLAN tag that the kernel leaves inside.
pub(crate) fn longest_frame_at(mtu: usize) -> usize {
    mtu + ETHERNET_HEADER + Tag::BYTES
}

/// The longest frame of an interface.
pub(crate) fn longest_frame(interface: &Interface) -> usize {
    longest_frame_at(interface.mtu)
}

impl Port {
    /// Finds the interface, or creates the TAP device. Nothing is received yet.
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

    /// Starts to receive.
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

    /// Looks whether the interface takes longer frames than it did. True if so.
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

    /// The oldest frame not yet released.
    #[inline]
    pub(crate) fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        match &mut self.device {
            Device::Packet(socket) => Ok(socket.front()),
            Device::Tap(tap) => tap.front(),
        }
    }

    /// Makes room for the next frame after [`Port::front`] showed one.
    #[inline]
    pub(crate) fn release(&mut self) {
        match &mut self.device {
            Device::Packet(socket) => socket.release(),
            Device::Tap(tap) => tap.release(),
        }
    }

    /// Sends some of `frames`. Returns how many left, and what was wrong with the one after those.
    pub(crate) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> (usize, Result<(), Errno>) {
        match &mut self.device {
            Device::Packet(socket) => socket.send(frames),
            Device::Tap(tap) => tap.send(frames),
        }
    }

    /// Sends a frame that [`Port::send`] found too long, if its tag is all that makes it so.
    pub(crate) fn send_tagged(&mut self, frame: &[u8]) -> Result<(), Errno> {
        match (&mut self.device, Tag::of(frame)) {
            (Device::Packet(socket), Some(tag)) if self.pushes_tags => {
                socket.send_tagged(frame, mark_of(tag))
            }
            _ => Err(Errno::EMSGSIZE),
        }
    }

    /// Frames that the kernel could not hand over because we were too slow.
    pub(crate) fn missed(&mut self) -> u64 {
        match &mut self.device {
            Device::Packet(socket) => socket.missed(),
            // A TAP device's queue drops on the kernel's side, where `ip -s link` counts it.
            Device::Tap(_) => 0,
        }
    }

    /// An error that the kernel reported beside any call, and clears it.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        match &self.device {
            Device::Packet(socket) => socket.take_error(),
            Device::Tap(_) => None,
        }
    }

    /// What becomes readable when frames arrive.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Packet(socket) => socket.receiver(),
            Device::Tap(tap) => tap.device(),
        }
    }

    /// Puts a system call's error on this port into words.
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

    /// What has become of the interface. One that is being removed goes down first, so that a look right after the
    /// error would take a removal for a going down.
    fn fate(&self) -> &'static str {
        for _ in 0..REMOVAL_LOOKS {
            match Interface::lookup_by(&self.control, &self.interface.name) {
                Ok(now) if now.index == self.interface.index => return "went down and came back",
                Err(Unusable::Down) => thread::sleep(BETWEEN_LOOKS),
                _ => return "disappeared",
            }
        }
        "went down"
    }
}
