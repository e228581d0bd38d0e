//! AF_PACKET sockets on one interface: a mapped ring to receive from, and a plain socket to send by in batches.
//!
//! The receiving socket carries a virtio header in front of each frame. The sending one needs none, because frames are
//! complete by then. A third one sends the few frames that are too long by their VLAN tag. Everything that is set here
//! lives and dies with the sockets, promiscuous mode included, so that even a killed process leaves the interface as it
//! was.

use std::io::IoSlice;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};

use crate::offload::VNET_HEADER;
use crate::sys::interface::Interface;
use crate::sys::layout::Layout;
use crate::sys::ring::{Received, Ring};
use crate::vlan::Tag;

/// Slots of a receive ring. At a million packets a second, 4 ms of a scheduler's hiccup.
pub(crate) const RING_SLOTS: usize = 4096;

/// Frames longer than a slot wait whole in the receive queue; so many bytes of them. Enough for the super-packets of
/// a few milliseconds at 10 Gb/s.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;

/// Socket memory of frames on their way out. It bounds what waits behind our queue where no scheduler sees it.
const SEND_BUFFER: libc::c_int = 512 << 10;

/// A super-packet with all its headers ("BIG TCP" allows longer ones, which nobody sends unasked).
const LONGEST_SUPER_PACKET: usize = 128 << 10;

/// Most frames handed to the kernel by one system call.
pub(crate) const BATCH: usize = 64;

/// Memory mapped from a socket, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    base: NonNull<libc::c_void>,
    length: NonZeroUsize,
}

// SAFETY: a mapping isn't tied to the thread that made it.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `mmap` with this length, and the ring that points into it is dropped with
        // the same `PacketSocket`, which hands out no reference that could outlive it.
        unsafe { libc::munmap(self.base.as_ptr(), self.length.get()) };
    }
}

/// Both sockets of an interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    ring: Ring,
    _mapping: Mapping,
    receiver: OwnedFd,
    sender: OwnedFd,
    batch: Batch,
    /// A frame longer than its slot is read to here.
    scratch: Vec<u8>,
    /// Bytes of the frame in `scratch`, until it is released.
    filled: Option<usize>,
    /// For frames that are too long with their tag.
    tagger: OwnedFd,
    missed: u64,
}

impl PacketSocket {
    /// Opens the sockets. Frames arrive from now on.
    pub(crate) fn open(interface: &Interface, layout: Layout) -> Result<PacketSocket, Errno> {
        // Protocol 0: nothing is received before `bind` says from where.
        let receiver = packet_socket(0)?;
        set_option(&receiver, libc::PACKET_VERSION, &TPACKET_V2)?;
        set_option(&receiver, libc::PACKET_VNET_HDR, &1)?;
        set_option(&receiver, libc::PACKET_IGNORE_OUTGOING, &1)?;
        set_option(&receiver, libc::PACKET_COPY_THRESH, &1)?;
        set_socket_option(&receiver, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
        let request = libc::tpacket_req {
            tp_block_size: layout.block as u32,
            tp_block_nr: layout.blocks() as u32,
            tp_frame_size: layout.slot as u32,
            tp_frame_nr: layout.slots as u32,
        };
        set_option(&receiver, libc::PACKET_RX_RING, &request)?;
        let mapping = map(&receiver, layout)?;
        // SAFETY: the mapping spans the layout, is aligned to a page, filled by the kernel under the protocol that
        // `Ring::new` asks for, and kept in the same structure as the ring.
        let ring = unsafe { Ring::new(mapping.base.cast(), layout) };
        bind(&receiver, interface, libc::ETH_P_ALL as u16)?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface.index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&receiver, libc::PACKET_ADD_MEMBERSHIP, &membership)?;

        let sender = packet_socket(0)?;
        // Straight to the driver: another queue behind ours would hold what ours has scheduled.
        set_option(&sender, libc::PACKET_QDISC_BYPASS, &1)?;
        set_socket_option(&sender, libc::SO_SNDBUF, &SEND_BUFFER)?;
        bind(&sender, interface, 0)?;

        // Through the queue of the interface, for the hook is in front of it.
        let tagger = packet_socket(0)?;
        set_socket_option(&tagger, libc::SO_SNDBUF, &SEND_BUFFER)?;
        bind(&tagger, interface, 0)?;
        Ok(PacketSocket {
            ring,
            _mapping: mapping,
            receiver,
            sender,
            batch: Batch::new(),
            scratch: vec![0; LONGEST_SUPER_PACKET],
            filled: None,
            tagger,
            missed: 0,
        })
    }

    /// The oldest frame not yet released.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Received<'_>> {
        let received = self.ring.front()?;
        if !received.copied {
            return Some(received);
        }
        // The whole frame, behind the same virtio header that the slot holds. Frames and slots pair up in order.
        let length = match self.filled {
            Some(length) => length,
            None => match receive(&self.receiver, &mut self.scratch) {
                Ok(length) => *self.filled.insert(length),
                // Impossible by the kernel's order of doing things; then the frame counts as truncated.
                Err(_) => return Some(received),
            },
        };
        let end = length.clamp(VNET_HEADER, self.scratch.len());
        Some(Received {
            bytes: &self.scratch[VNET_HEADER..end],
            ..received
        })
    }

    /// Hands the slot of [`PacketSocket::front`] back.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.filled = None;
        self.ring.release();
    }

    /// Hands frames to the kernel until all, or [`BATCH`], are sent or one can't be. Returns how many were sent, and
    /// what was wrong with the next one.
    pub(crate) fn send<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>) -> (usize, Result<(), Errno>) {
        self.batch.send(&self.sender, frames)
    }

    /// Sends a frame without its outermost tag, under a mark by which a program at the interface's hook pushes the tag
    /// again (`attach/isolation.rs`).
    ///
    /// A packet socket takes frames of 4 bytes over the MTU if these are an 802.1Q tag (`packet_extra_vlan_len_allowed`).
    /// Frames of that length with a service tag, and those of 8 bytes over it with two tags, go this way: a tag that is
    /// pushed does not count, as it does not in a bridge.
    pub(crate) fn send_tagged(&mut self, frame: &[u8], mark: u32) -> Result<(), Errno> {
        set_socket_option(&self.tagger, libc::SO_MARK, &(mark as libc::c_int))?;
        let (addresses, rest) = frame.split_at(Tag::POSITION);
        let parts = [IoSlice::new(addresses), IoSlice::new(&rest[Tag::BYTES..])];
        loop {
            match sendmsg::<()>(self.tagger.as_raw_fd(), &parts, &[], MsgFlags::MSG_DONTWAIT, None) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Frames that found the ring full, since the socket was opened.
    pub(crate) fn missed(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        // Reading resets the kernel's count.
        if get_option(
            &self.receiver,
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            &mut statistics,
        )
        .is_ok()
        {
            self.missed += u64::from(statistics.tp_drops);
        }
        self.missed
    }

    /// What made the socket report an error, and clears it: `ENETDOWN` if the interface went down or away.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        let mut error: libc::c_int = 0;
        match get_option(&self.receiver, libc::SOL_SOCKET, libc::SO_ERROR, &mut error) {
            Ok(()) if error != 0 => Some(Errno::from_raw(error)),
            Ok(()) => None,
            Err(errno) => Some(errno),
        }
    }

    /// Readable when frames have arrived.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// The arguments of `sendmmsg`, allocated once.
#[derive(Debug)]
struct Batch {
    vectors: Box<[libc::iovec; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers within are written and used inside one call of `send` and mean nothing outside of it.
unsafe impl Send for Batch {}

impl Batch {
    fn new() -> Batch {
        let vector = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: `mmsghdr` is integers and pointers, for which all-zero is a value.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Batch {
            vectors: Box::new([vector; BATCH]),
            messages: Box::new([message; BATCH]),
        }
    }

    fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> (usize, Result<(), Errno>) {
        let mut count = 0;
        let places = self.vectors.iter_mut().zip(self.messages.iter_mut());
        for (frame, (vector, message)) in frames.zip(places) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let mut sent = 0;
        while sent < count {
            // SAFETY: messages `sent..count` were filled above with pointers to vectors, which point to frames that
            // live for 'a, beyond this call. The kernel reads frames and writes `msg_len` only.
            let result = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.messages[sent..].as_mut_ptr(),
                    (count - sent) as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            match Errno::result(result) {
                Ok(more) => sent += more as usize,
                Err(Errno::EINTR) => {}
                Err(errno) => return (sent, Err(errno)),
            }
        }
        (sent, Ok(()))
    }
}

const TPACKET_V2: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;

fn packet_socket(protocol: u16) -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed; a descriptor that is returned is new and nobody else's.
    unsafe {
        let fd = Errno::result(libc::socket(libc::AF_PACKET, kind, i32::from(protocol.to_be())))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> Result<(), Errno> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a live `sockaddr_ll`, and its size is what is passed.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    Errno::result(result).map(drop)
}

fn map(socket: &OwnedFd, layout: Layout) -> Result<Mapping, Errno> {
    let length = NonZeroUsize::new(layout.bytes()).expect("a ring has at least one block");
    // SAFETY: a new mapping at an address of the kernel's choice; it invalidates no memory of ours.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length.get(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    Ok(Mapping {
        base: NonNull::new(base).expect("mmap without MAP_FIXED never maps page zero"),
        length,
    })
}

fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`; with MSG_TRUNC it returns the whole length.
    let result = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            into.as_mut_ptr().cast(),
            into.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    Errno::result(result).map(|length| length as usize)
}

fn set_option<T: Copy>(socket: &OwnedFd, name: libc::c_int, value: &T) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_PACKET, name, value)
}

fn set_socket_option(socket: &OwnedFd, name: libc::c_int, value: &libc::c_int) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_SOCKET, name, value)
}

fn set_level_option<T: Copy>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a live value.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    Errno::result(result).map(drop)
}

/// `T` is one of the kernel's structures of plain integers.
fn get_option<T: Copy>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> Result<(), Errno> {
    let mut length = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `length` bytes to a live value; every caller's `T` is made of integers, for
    // which all bit patterns are values.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    Errno::result(result).map(drop)
}
