//! Sends many frames by one system call (`sendmmsg`).
//!
//! Each message begins with a virtio header. It is empty for a frame that is complete. Segments of one
//! super-packet that follow one another are one message: common headers, and the payload of each segment from
//! where it is (`offload/join.rs`).

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use arrayvec::ArrayVec;
use nix::errno::Errno;

use crate::ethernet;
use crate::offload::{LONGEST_HEADERS, VNET_HEADER};
use crate::outgoing::Outgoing;
use crate::sys::interface::{Interface, Layer};

/// The maximum number of frames passed to the kernel by one system call. A super-packet of 64 KiB has 43
/// full segments, and only segments of one call can be joined again. With calls of 64 frames, super-packets
/// of 64 KB left in packets of 38 KB, in the mean.
pub(crate) const BATCH: usize = 256;

/// How many frames are sent alone before joined segments are tried again: the interface may have been full
/// and not unable, and its abilities can be changed.
const ALONE: usize = 1 << 16;

/// The virtio header of a frame that is complete.
static COMPLETE: [u8; VNET_HEADER] = [0; VNET_HEADER];

/// The arguments of `sendmmsg`. They are allocated once.
#[derive(Debug)]
pub(super) struct Batch {
    /// A single frame has two vectors. Joined segments have two, and one for each segment.
    vectors: Box<[libc::iovec; 2 * BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
    /// The frames in each message.
    counts: [usize; BATCH],
    /// The headers of messages with joined segments.
    vnet_headers: Box<[[u8; VNET_HEADER]; BATCH]>,
    headers: Box<[[u8; LONGEST_HEADERS]; BATCH]>,
    /// How many more frames are sent alone, because the kernel refused joined segments.
    alone: usize,
    /// What the interface carries.
    layer: Layer,
    /// Where IPv4 and IPv6 packets go, at an interface that carries them without a header.
    addresses: Box<[libc::sockaddr_ll; 2]>,
}

/// Returns the address of packets of a protocol at an interface.
pub(super) fn address_of(interface: &Interface, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

// SAFETY: `send` writes and uses the pointers within one call. They are not used outside of it.
unsafe impl Send for Batch {}

impl Batch {
    pub(super) fn new(interface: &Interface) -> Batch {
        let vector = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: `mmsghdr` consists of integers and pointers, for which all-zero is a valid value.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Batch {
            vectors: Box::new([vector; 2 * BATCH]),
            messages: Box::new([message; BATCH]),
            counts: [0; BATCH],
            vnet_headers: Box::new([COMPLETE; BATCH]),
            headers: Box::new([[0; LONGEST_HEADERS]; BATCH]),
            alone: 0,
            layer: interface.layer,
            addresses: Box::new(
                [libc::ETH_P_IP, libc::ETH_P_IPV6].map(|it| address_of(interface, it as u16)),
            ),
        }
    }

    /// Sends frames through a packet socket until all, or [`BATCH`], are sent or one fails. The socket has
    /// `PACKET_VNET_HDR` if the interface has Ethernet headers. Returns how many frames were sent, and the
    /// error of the next one.
    pub(super) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        all: impl Iterator<Item = Outgoing<'a>>,
    ) -> (usize, Result<(), Errno>) {
        // `collect` would move ten kilobytes, of which most calls need a few bytes.
        let mut frames = ArrayVec::<Outgoing<'a>, BATCH>::new();
        frames.extend(all.take(BATCH));
        let count = frames.len();
        self.alone = self.alone.saturating_sub(count);
        let mut sent = 0;
        while sent < count {
            let messages = self.prepare(&frames[sent..]);
            let (done, result) = self.hand_over(socket, messages);
            sent += self.counts[..done].iter().sum::<usize>();
            match result {
                Ok(()) => {}
                // Without the interface's queue, the kernel does not cut super-packets for an interface that
                // can't (`__dev_direct_xmit`), and says ENOBUFS as if it were full. It takes their segments.
                Err(Errno::ENOBUFS | Errno::EINVAL | Errno::EMSGSIZE | Errno::EIO)
                    if self.counts[done] > 1 =>
                {
                    self.alone = ALONE;
                }
                Err(errno) => return (sent, Err(errno)),
            }
        }
        (sent, Ok(()))
    }

    /// Fills the messages for frames. Returns how many messages there are.
    fn prepare(&mut self, frames: &[Outgoing<'_>]) -> usize {
        let (mut rest, mut messages, mut vectors) = (frames, 0, 0);
        while let Some(first) = rest.first() {
            let pairs = rest.windows(2);
            // Without Ethernet there is no virtio header (`PACKET_VNET_HDR` needs `SOCK_RAW`), and so nothing
            // is joined.
            let following = match self.alone {
                0 if self.layer == Layer::Ethernet => {
                    pairs.take_while(|pair| pair[0].is_continued_by(&pair[1])).count()
                }
                _ => 0,
            };
            let (run, later) = rest.split_at(following + 1);
            rest = later;
            let begin = vectors;
            let mut add = |bytes: &[u8]| {
                self.vectors[vectors] = libc::iovec {
                    iov_base: bytes.as_ptr().cast_mut().cast(),
                    iov_len: bytes.len(),
                };
                vectors += 1;
            };
            match (first.part, run) {
                (Some(part), [_, .., last]) => {
                    let length = part.headers();
                    let payload = run.iter().map(|frame| frame.bytes.len() - length).sum();
                    self.vnet_headers[messages] = part.vnet_header();
                    let headers = &mut self.headers[messages];
                    part.write_headers(first.bytes, last.bytes, payload, headers);
                    add(&self.vnet_headers[messages]);
                    add(&headers[..length]);
                    run.iter().for_each(|frame| add(&frame.bytes[length..]));
                }
                _ => {
                    if self.layer == Layer::Ethernet {
                        add(&COMPLETE);
                    }
                    add(&first.bytes[self.layer.missing()..]);
                }
            }
            let header = &mut self.messages[messages].msg_hdr;
            if self.layer == Layer::Ip {
                let is_ipv6 =
                    ethernet::protocol_of_ip(first.bytes[ethernet::HEADER]) == libc::ETH_P_IPV6 as u16;
                header.msg_name = (&raw mut self.addresses[usize::from(is_ipv6)]).cast();
                header.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            }
            header.msg_iov = &raw mut self.vectors[begin];
            // The types of C libraries differ.
            header.msg_iovlen = (vectors - begin) as _;
            self.counts[messages] = run.len();
            messages += 1;
        }
        messages
    }

    /// Hands messages to the kernel. Returns how many it took, and the error of the next one.
    fn hand_over(&mut self, socket: &OwnedFd, messages: usize) -> (usize, Result<(), Errno>) {
        let mut done = 0;
        while done < messages {
            // SAFETY: `prepare` filled messages `done..messages` with pointers to vectors of this structure.
            // The vectors point to a static, to headers in this structure, and to frames that `send` borrows
            // during this call; names point to addresses in this structure. The kernel reads all of them and
            // writes only `msg_len`.
            let result = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.messages[done..].as_mut_ptr(),
                    (messages - done) as u32,
                    libc::MSG_DONTWAIT as _,
                )
            };
            match Errno::result(result) {
                Ok(more) => done += more as usize,
                Err(Errno::EINTR) => {}
                Err(errno) => return (done, Err(errno)),
            }
        }
        (done, Ok(()))
    }
}
