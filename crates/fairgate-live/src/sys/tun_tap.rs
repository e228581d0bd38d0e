//! TUN and TAP devices: an interface whose other end is this process. A TAP device carries Ethernet frames, a
//! TUN device IP packets.
//!
//! Each system call transfers one frame, with a virtio header in front. If this process asks for offloads,
//! the kernel's stack leaves checksums and the cutting of super-packets to it.
//!
//! Packets of a TUN device get an Ethernet header here, with zeros for addresses, so that the rest of the
//! data plane knows frames only. A discipline counts its 14 bytes, as it does at the Ethernet interface that
//! such packets usually leave by.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;

use crate::ethernet;
use crate::offload::{VNET_HEADER, VnetHeader};
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::interface::{Interface, Layer, control_socket, ioctl, name_in, request, set_offloads};

/// The longest frame that an MTU of 65535 allows.
const LONGEST: usize = 64 * 1024 + 64;

/// The offloads that are asked for: checksums, TCP segmentation with and without ECN, and UDP segmentation
/// (Linux 6.2).
const TCP_OFFLOADS: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP_OFFLOADS: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// The frames that the kernel keeps until this process reads them.
const QUEUE: libc::c_int = 4096;

/// Returns the flag of a device that carries frames, TAP, or IP packets, TUN.
fn flag(layer: Layer) -> libc::c_int {
    match layer {
        Layer::Ethernet => libc::IFF_TAP,
        Layer::Ip => libc::IFF_TUN,
    }
}

/// An open device. A device that was created here is removed on drop.
#[derive(Debug)]
pub(crate) struct TunTap {
    device: File,
    layer: Layer,
    header: [u8; VNET_HEADER],
    /// A frame. The Ethernet header of a TUN device stays at its front.
    buffer: Vec<u8>,
    /// The length of the frame in the buffer, until it is released.
    filled: Option<usize>,
}

impl TunTap {
    /// Creates the device `name`, or uses a persistent one, and enables it.
    pub(crate) fn open(name: &str, layer: Layer) -> Result<TunTap, Errno> {
        let device = TunTap::attach(name, layer)?.0;
        // The offloads of a persistent device would stay, and the next program may not know them.
        if !device.is_persistent()? {
            device.ask_for_offloads()?;
        }
        Interface::set_up(name)?;
        Ok(device)
    }

    /// Creates a device for frames of the kernel's own stack. `pattern` has a `%d` for a free number. Returns
    /// the device, which is down, and its name.
    pub(crate) fn for_host(pattern: &str, layer: Layer, mtu: usize) -> Result<(TunTap, String), Errno> {
        let (device, name) = TunTap::attach(pattern, layer)?;
        device.ask_for_offloads()?;
        let control = control_socket()?;
        let mut request = request(&name).ok_or(Errno::EINVAL)?;
        request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
        ioctl(&control, libc::SIOCSIFMTU as libc::Ioctl, &mut request)?;
        request.ifr_ifru.ifru_metric = QUEUE;
        ioctl(&control, libc::SIOCSIFTXQLEN as libc::Ioctl, &mut request)?;
        Ok((device, name))
    }

    fn attach(name: &str, layer: Layer) -> Result<(TunTap, String), Errno> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(errno)?;
        let mut request = request(name).ok_or(Errno::EINVAL)?;
        request.ifr_ifru.ifru_flags = (flag(layer) | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
        ioctl(&device, libc::TUNSETIFF, &mut request)?;
        let device = TunTap {
            device,
            layer,
            header: [0; VNET_HEADER],
            buffer: vec![0; ethernet::HEADER + LONGEST],
            filled: None,
        };
        Ok((device, name_in(&request)))
    }

    fn ask_for_offloads(&self) -> Result<(), Errno> {
        let offload = |offloads| set_offloads(&self.device, offloads);
        offload(TCP_OFFLOADS | UDP_OFFLOADS).or_else(|_| offload(TCP_OFFLOADS))
    }

    /// Returns whether the device stays when no process has it open.
    fn is_persistent(&self) -> Result<bool, Errno> {
        // The name is an output here; any valid one will do.
        let mut request = request("any").ok_or(Errno::EINVAL)?;
        ioctl(&self.device, libc::TUNGETIFF, &mut request)?;
        Ok(crate::sys::interface::flags_in(&request) & libc::IFF_PERSIST as i16 != 0)
    }

    /// Returns the oldest frame that was not released yet.
    pub(crate) fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        let missing = self.layer.missing();
        let length = match self.filled {
            Some(length) => length,
            None => {
                let frame = &mut self.buffer[missing..];
                let mut parts = [IoSliceMut::new(&mut self.header), IoSliceMut::new(frame)];
                match self.device.read_vectored(&mut parts) {
                    Ok(length) => {
                        // The virtio header is always there.
                        let length = missing + length.saturating_sub(VNET_HEADER);
                        if self.layer == Layer::Ip {
                            let protocol = ethernet::protocol_of_ip(self.buffer[missing]);
                            self.buffer[missing - 2..missing].copy_from_slice(&protocol.to_be_bytes());
                        }
                        *self.filled.insert(length)
                    }
                    Err(error) => {
                        return match errno(error) {
                            Errno::EAGAIN | Errno::EINTR => Ok(None),
                            errno => Err(errno),
                        };
                    }
                }
            }
        };
        Ok(Some(Received {
            bytes: &self.buffer[..length],
            length,
            tag: None,
            offload: VnetHeader::parse(&self.header).behind(missing as u16),
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
                // Frames are complete by then: the virtio header is zero.
                let parts = [
                    IoSlice::new(&[0; VNET_HEADER]),
                    IoSlice::new(&frame.bytes[self.layer.missing()..]),
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
        self.is_persistent().is_ok()
    }

    /// Returns the descriptor. It is readable when frames have arrived and writable when there is room.
    pub(crate) fn device(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
