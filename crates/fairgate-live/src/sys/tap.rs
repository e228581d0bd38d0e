//! TAP devices: an Ethernet interface whose other end is this process.
//!
//! Each system call transfers one frame. The kernel completes checksums and cuts super-packets before it
//! delivers frames, unless a device has a virtio header in front of each frame and asks for offloads.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;

use crate::offload::{VNET_HEADER, VnetHeader};
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::interface::{Interface, control_socket, ioctl, name_in, request, set_offloads};

/// The longest frame that an MTU of 65535 allows.
const LONGEST: usize = 64 * 1024 + 64;

/// The offloads of a device with a header: checksums, TCP segmentation with and without ECN, and UDP
/// segmentation (Linux 6.2).
const TCP_OFFLOADS: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP_OFFLOADS: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// The frames that the kernel keeps until this process reads them.
const QUEUE: libc::c_int = 4096;

/// An open device. A device that was created here is removed on drop.
#[derive(Debug)]
pub(crate) struct Tap {
    device: File,
    /// The bytes of the virtio header in front of each frame: none, or [`VNET_HEADER`].
    header: usize,
    buffer: Vec<u8>,
    /// The length of the frame and its header in the buffer, until it is released.
    filled: Option<usize>,
}

impl Tap {
    /// Creates the device `name`, or uses a persistent one, and enables it.
    pub(crate) fn open(name: &str) -> Result<Tap, Errno> {
        let (tap, _) = Tap::attach(name, 0)?;
        Interface::set_up(name)?;
        Ok(tap)
    }

    /// Creates a device for frames of the kernel's own stack. The stack leaves checksums and cutting to this
    /// process. `pattern` has a `%d` for a free number. Returns the device, which is down, and its name.
    pub(crate) fn for_host(pattern: &str, mtu: usize) -> Result<(Tap, String), Errno> {
        let (tap, name) = Tap::attach(pattern, libc::IFF_VNET_HDR)?;
        let offload = |offloads| set_offloads(&tap.device, offloads);
        offload(TCP_OFFLOADS | UDP_OFFLOADS).or_else(|_| offload(TCP_OFFLOADS))?;
        let control = control_socket()?;
        let mut request = request(&name).ok_or(Errno::EINVAL)?;
        request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
        ioctl(&control, libc::SIOCSIFMTU, &mut request)?;
        request.ifr_ifru.ifru_metric = QUEUE;
        ioctl(&control, libc::SIOCSIFTXQLEN, &mut request)?;
        Ok((tap, name))
    }

    fn attach(name: &str, flags: libc::c_int) -> Result<(Tap, String), Errno> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(errno)?;
        let mut request = request(name).ok_or(Errno::EINVAL)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | flags) as i16;
        ioctl(&device, libc::TUNSETIFF, &mut request)?;
        let tap = Tap {
            device,
            header: if flags & libc::IFF_VNET_HDR == 0 {
                0
            } else {
                VNET_HEADER
            },
            buffer: vec![0; LONGEST],
            filled: None,
        };
        Ok((tap, name_in(&request)))
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
            bytes: &self.buffer[self.header..length],
            length: length - self.header,
            tag: None,
            offload: match self.header {
                0 => VnetHeader::default(),
                _ => VnetHeader::parse(&self.buffer[..self.header]),
            },
        }))
    }

    /// Releases the frame.
    pub(crate) fn release(&mut self) {
        self.filled = None;
    }

    /// Sends frames until one fails. Returns how many were sent, and the error of the next one.
    pub(crate) fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = Outgoing<'a>>,
    ) -> (usize, Result<(), Errno>) {
        let mut sent = 0;
        for frame in frames {
            loop {
                // Frames are complete by then: the header is zero.
                let parts = [
                    IoSlice::new(&[0; VNET_HEADER][..self.header]),
                    IoSlice::new(frame.bytes),
                ];
                match self.device.write_vectored(&parts).map_err(errno) {
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
