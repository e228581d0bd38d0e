//! TAP devices: an Ethernet interface whose other end is this process.
//!
//! Unless offloads are requested by `TUNSETOFFLOAD`, the kernel completes checksums and cuts super-packets
//! before it delivers frames. Each system call transfers one frame.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;

use crate::offload::VnetHeader;
use crate::received::Received;
use crate::sys::interface::{Interface, ioctl, request};

/// The longest frame that an MTU of 65535 allows.
const LONGEST: usize = 64 * 1024 + 64;

/// An open device. A device that was created here is removed on drop.
#[derive(Debug)]
pub(crate) struct Tap {
    device: File,
    buffer: Vec<u8>,
    /// The length of the frame in the buffer, until it is released.
    filled: Option<usize>,
}

impl Tap {
    /// Creates the device `name`, or uses a persistent one, and enables it.
    pub(crate) fn open(name: &str) -> Result<Tap, Errno> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(errno)?;
        let mut request = request(name).ok_or(Errno::EINVAL)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        ioctl(&device, libc::TUNSETIFF, &mut request)?;
        Interface::set_up(name)?;
        Ok(Tap {
            device,
            buffer: vec![0; LONGEST],
            filled: None,
        })
    }

    /// Returns the oldest frame that was not released yet.
    pub(crate) fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        let length = match self.filled {
            Some(length) => length,
            None => match self.device.read(&mut self.buffer) {
                Ok(length) => *self.filled.insert(length),
                Err(error) => {
                    return match errno(error) {
                        Errno::EAGAIN | Errno::EINTR => Ok(None),
                        errno => Err(errno),
                    };
                }
            },
        };
        Ok(Some(Received {
            bytes: &self.buffer[..length],
            length,
            tag: None,
            offload: VnetHeader::default(),
        }))
    }

    /// Releases the frame.
    pub(crate) fn release(&mut self) {
        self.filled = None;
    }

    /// Sends frames until one fails. Returns how many were sent, and the error of the next one.
    pub(crate) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> (usize, Result<(), Errno>) {
        let mut sent = 0;
        for frame in frames {
            loop {
                match self.device.write(frame).map_err(errno) {
                    Ok(_) => break sent += 1,
                    Err(Errno::EINTR) => {}
                    Err(errno) => return (sent, Err(errno)),
                }
            }
        }
        (sent, Ok(()))
    }

    /// Returns whether the device exists, in whatever network namespace.
    pub(crate) fn is_attached(&self) -> bool {
        // The name is an output here; any valid one will do.
        request("any").is_some_and(|mut request| ioctl(&self.device, libc::TUNGETIFF, &mut request).is_ok())
    }

    /// Returns the descriptor. It is readable when frames have arrived and writable when there is room.
    pub(crate) fn device(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
