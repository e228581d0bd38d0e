//! One end of the bridge: an interface and the back end that receives from it and sends to it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;

use crate::attach::Attachment;
use crate::backend::{self, Backend, BackendKind, Choice, Device};
use crate::config::End;
use crate::error::LiveError;
use crate::received::Received;
use crate::sys::interface::{Interface, Unusable, control_socket};
use crate::sys::tap::Tap;
use crate::vlan::Tag;

/// How often, and at which interval, an interface that went down is checked for being removed. This takes at
/// most a fifth of a second, when the run ends anyway.
const REMOVAL_CHECKS: u32 = 20;
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);

/// One end of the bridge.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) interface: Interface,
    device: Device,
    choice: Choice,
    /// A socket to query the interface. It stays in the interface's network namespace, which this thread may
    /// have left.
    control: OwnedFd,
    /// Whether a program at the interface's hook adds VLAN tags for us.
    pushes_tags: bool,
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

    /// Starts receiving. `wanted` is the back end that the configuration names for existing interfaces.
    pub(crate) fn open(
        interface: Interface,
        tap: Option<Tap>,
        wanted: Option<BackendKind>,
        attachment: &Attachment,
    ) -> Result<Port, LiveError> {
        let (device, backend, reason) = match tap {
            Some(tap) => (
                Device::Tap(tap),
                backend::tap::TITLE,
                "the configuration names it",
            ),
            None => match backend::choose(wanted) {
                (BackendKind::Packet, reason) => {
                    let sockets = backend::packet::open(&interface)?;
                    (Device::Packet(Box::new(sockets)), backend::packet::TITLE, reason)
                }
            },
        };
        let control = control_socket().map_err(LiveError::system("opening a control socket"))?;
        let choice = Choice {
            interface: interface.name.clone(),
            backend,
            reason,
        };
        Ok(Port {
            interface,
            device,
            choice,
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
        self.device.front()
    }

    /// Releases the frame that [`Port::front`] returned.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.device.release();
    }

    /// Sends some of `frames`. Returns how many were sent, and the error of the next one.
    #[inline]
    pub(crate) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> (usize, Result<(), Errno>) {
        self.device.send(frames)
    }

    /// Sends a frame that [`Port::send`] rejected as too long, if only its VLAN tag makes it too long.
    pub(crate) fn send_tagged(&mut self, frame: &[u8]) -> Result<(), Errno> {
        match Tag::of(frame) {
            Some(tag) if self.pushes_tags => self.device.send_tagged(frame, tag),
            _ => Err(Errno::EMSGSIZE),
        }
    }

    /// Returns the number of frames that the kernel dropped because this process was too slow.
    pub(crate) fn missed(&mut self) -> u64 {
        self.device.missed()
    }

    /// Returns and clears an error that the kernel reported asynchronously.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        self.device.take_error()
    }

    /// Returns the descriptor that becomes readable when frames arrive.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.device.receiver()
    }

    /// Returns the back end, and why it was chosen.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
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
