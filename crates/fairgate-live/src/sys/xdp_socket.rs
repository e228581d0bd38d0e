//! One AF_XDP socket: it receives from one queue of an interface, and may send through it.
//!
//! Frames are in memory of ours (the UMEM), in chunks. It is one memory for both interfaces of a run, and for
//! the frame stores of both directions:
//! ```text
//!   [ chunks of the frames from left to right ][ chunks of the frames from right to left ]
//! ```
//! A socket receives into chunks of one direction and sends chunks of the other one. So a frame can stay
//! where it is while it is queued and until the other interface has sent it. A queue may hold it for seconds:
//! the socket gets another chunk in exchange, so that it does not run out of them (`sys/frames.rs`).
//!
//! Each socket registers the memory for itself. Sockets could also share one registration
//! (`XDP_SHARED_UMEM`), but then all of them must move frames in the same way, with copies or without, and
//! live on when an interface is removed.

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;

use crate::sys::chunks::Chunks;
use crate::sys::interface::Interface;
use crate::sys::mapping::Mapping;
use crate::sys::socket::{SEND_BUFFER, get_option, set_level_option, set_socket_option, take_error};
use crate::sys::xdp_ring::{Consumer, ENTRIES_PER_CHUNK, Offsets, Producer, Ring};

/// The lengths of chunks that every kernel takes: a page, or half of it.
const PAGE: usize = 4096;
const HALF_PAGE: usize = PAGE / 2;

/// The bytes that the kernel keeps free in front of a received frame (`XDP_PACKET_HEADROOM`).
const HEAD_ROOM: usize = 256;

/// The bytes behind a frame in which drivers keep `skb_shared_info`, in pages of their own.
const TAIL_ROOM: usize = 320;

/// The longest frame for which native XDP works in all drivers: it fits a page with the two rooms.
pub(crate) const LONGEST_FRAME: usize = PAGE - HEAD_ROOM - TAIL_ROOM;

/// The chunks that one socket receives with. At a million packets per second they bridge a scheduling delay
/// of 4 ms, like the slots of a packet socket's ring.
pub(crate) const RECEIVE_CHUNKS: u32 = 4096;

/// The most chunks that a socket sends at a time. They limit the queue behind ours, which no discipline
/// controls, because a chunk is returned only when the interface has sent its frame: 0.4 MB of full-sized
/// frames, less than the memory of a packet socket ([`SEND_BUFFER`]).
pub(crate) const SEND_CHUNKS: u32 = 256;

/// The entries of the fill ring and of the transmit ring.
const FILL_ENTRIES: u32 = ENTRIES_PER_CHUNK * RECEIVE_CHUNKS;
const SEND_ENTRIES: u32 = ENTRIES_PER_CHUNK * SEND_CHUNKS;

/// After this many released frames the kernel gets chunks for them, if it does not need them before.
const RETURN: u32 = 64;

/// `XDP_MAX_TX_SKB_BUDGET` (linux/if_xdp.h): how many frames one system call sends by copying.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// The bytes in front of a received frame in which a program leaves what it knows about it.
pub(crate) const NOTE: usize = 4;

/// Returns the length of the chunks for frames of up to `longest` bytes.
pub(crate) fn chunk_for(longest: usize) -> usize {
    match longest <= longest_in(HALF_PAGE) {
        true => HALF_PAGE,
        false => PAGE,
    }
}

/// Returns the length of the longest frame that chunks of this length can receive.
pub(crate) fn longest_in(chunk: usize) -> usize {
    LONGEST_FRAME.min(chunk - HEAD_ROOM)
}

/// What the kernel must keep to.
const BOUNDS: &str = "the kernel must keep frames in the chunks that it got for them";

/// How the kernel moves frames between the interface and our memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// The interface reads and writes our memory.
    ZeroCopy,
    /// The kernel copies.
    Copy,
}

impl Transfer {
    fn flag(self) -> u16 {
        match self {
            Transfer::ZeroCopy => libc::XDP_ZEROCOPY,
            Transfer::Copy => libc::XDP_COPY,
        }
    }
}

/// The sending half.
#[derive(Debug)]
struct Sender {
    ring: Producer<libc::xdp_desc>,
    /// The chunks whose frames were not sent yet.
    in_flight: u32,
    /// Whether completions were taken whose places the kernel has not got back.
    has_taken: bool,
}

/// A socket that is bound to a queue.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    /// Closed first, so that the kernel stops using the memory.
    socket: OwnedFd,
    fill: Producer<u64>,
    receive: Consumer<libc::xdp_desc>,
    completion: Consumer<u64>,
    sender: Option<Sender>,
    /// How many frames were released for which the kernel has no other chunk yet.
    released: u32,
    transfer: Transfer,
    /// Where received frames are.
    received: Chunks,
    /// Where frames to send are. Both are in the same memory.
    sent: Chunks,
    _rings: Vec<Mapping>,
}

impl XdpSocket {
    /// Opens a socket for a receive queue of `interface`, with the best transfer of `transfers` that works.
    /// Frames are received into `received` and sent from `sent`, two ranges of one memory. Nothing is
    /// received before a program redirects frames to the socket and before [`XdpSocket::give`]. Returns
    /// `None` if the interface has no such queue.
    pub(crate) fn open(
        interface: &Interface,
        queue: u32,
        sends: bool,
        transfers: &[Transfer],
        [received, sent]: [&Chunks; 2],
    ) -> Result<Option<XdpSocket>, Errno> {
        let socket = xdp_socket()?;
        let memory = received.memory();
        let registration = libc::xdp_umem_reg {
            addr: memory.base().as_ptr().expose_provenance() as u64,
            len: memory.length() as u64,
            chunk_size: received.length() as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&socket, libc::XDP_UMEM_REG, &registration)?;
        // The kernel requires a completion ring also of a socket that does not send.
        let sizes = [
            (libc::XDP_UMEM_FILL_RING, FILL_ENTRIES),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_CHUNKS),
            (libc::XDP_RX_RING, RECEIVE_CHUNKS),
        ];
        for (ring, entries) in sizes {
            set_option(&socket, ring, &entries)?;
        }
        // SAFETY: `xdp_mmap_offsets` consists of integers, for which all-zero is a valid value.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        get_option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets)?;

        let [fill, completion, receive] = [offsets.fr, offsets.cr, offsets.rx].map(offsets_of);
        let mut rings = vec![
            map::<u64>(&socket, fill, FILL_ENTRIES, libc::XDP_UMEM_PGOFF_FILL_RING)?,
            map::<u64>(
                &socket,
                completion,
                SEND_CHUNKS,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING,
            )?,
            map::<libc::xdp_desc>(&socket, receive, RECEIVE_CHUNKS, libc::XDP_PGOFF_RX_RING as u64)?,
        ];
        // SAFETY: the kernel made these rings with the given numbers of entries, keeps to the protocol, and
        // says where their parts are. Entries are integers. The mappings are kept in the same structure.
        let (fill, completion, receive) = unsafe {
            (
                Ring::new(&rings[0], fill, FILL_ENTRIES),
                Ring::new(&rings[1], completion, SEND_CHUNKS),
                Ring::new(&rings[2], receive, RECEIVE_CHUNKS),
            )
        };
        let mut sender = None;
        if sends {
            set_option(&socket, libc::XDP_TX_RING, &SEND_ENTRIES)?;
            set_socket_option(&socket, libc::SO_SNDBUF, &SEND_BUFFER)?;
            // Older kernels send 32 frames by each call.
            let _ = set_option(&socket, XDP_MAX_TX_SKB_BUDGET, &SEND_CHUNKS);
            let offsets = offsets_of(offsets.tx);
            let memory =
                map::<libc::xdp_desc>(&socket, offsets, SEND_ENTRIES, libc::XDP_PGOFF_TX_RING as u64)?;
            sender = Some(Sender {
                // SAFETY: as above.
                ring: Producer::new(unsafe { Ring::new(&memory, offsets, SEND_ENTRIES) }),
                in_flight: 0,
                has_taken: false,
            });
            rings.push(memory);
        }
        let Some(transfer) = bind(&socket, interface, queue, transfers)? else {
            return Ok(None);
        };
        Ok(Some(XdpSocket {
            socket,
            fill: Producer::new(fill),
            receive: Consumer::new(receive),
            completion: Consumer::new(completion),
            sender,
            released: 0,
            transfer,
            received: received.clone(),
            sent: sent.clone(),
            _rings: rings,
        }))
    }

    /// Gives the socket chunks to receive with, at most [`RECEIVE_CHUNKS`].
    pub(crate) fn give(&mut self, numbers: &[u32]) {
        for &number in numbers {
            let is_in = self.fill.push(self.received.address(number));
            assert!(is_in, "the ring has a place for each chunk");
        }
        self.return_chunks();
    }

    /// Returns how frames are moved.
    pub(crate) fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// Returns whether a frame has arrived that was not released. If none has, the kernel gets all released
    /// chunks back.
    #[inline]
    pub(crate) fn has_frame(&mut self) -> bool {
        let has_frame = self.receive.front().is_some();
        if !has_frame && self.released > 0 {
            self.return_chunks();
        }
        has_frame
    }

    /// Returns the oldest frame that was not released, with the [`NOTE`] bytes in front of it.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<(&[u8; NOTE], &[u8])> {
        let descriptor = self.receive.front()?;
        let (number, start) = self.received.chunk_at(descriptor.addr).expect(BOUNDS);
        let before = start.checked_sub(NOTE).expect(BOUNDS);
        // SAFETY: the kernel has given the chunk to us with the descriptor, and does not write to it before
        // `release`, which takes `&mut self` and so ends this borrow. The frame store may adopt the chunk
        // before. It only reads the chunk until `release`: the bridge releases a frame before any frame
        // leaves its tree, and the store writes to frames that leave.
        let bytes = unsafe { self.received.get(number, before, NOTE + descriptor.len as usize) };
        bytes.split_first_chunk()
    }

    /// Releases the frame that [`XdpSocket::front`] returned. Its chunk is used again, or the one in
    /// `exchange` instead.
    #[inline]
    pub(crate) fn release(&mut self, exchange: Option<u32>) {
        let Some(descriptor) = self.receive.front() else {
            return;
        };
        self.receive.take();
        let address = match exchange {
            Some(number) => self.received.address(number),
            None => descriptor.addr & !(self.received.length() as u64 - 1),
        };
        let is_in = self.fill.push(address);
        assert!(is_in, "the fill ring has a place for each chunk");
        self.released += 1;
        if self.released >= RETURN {
            self.return_chunks();
        }
    }

    /// Gives the kernel the chunks for released frames.
    fn return_chunks(&mut self) {
        self.released = 0;
        self.receive.publish();
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // The driver ran out of chunks and waits for a call. If the interface is down it needs none.
            wake_receiver(&self.socket);
        }
    }

    /// Has a frame sent by [`XdpSocket::flush`]. It must be in the memory that the socket sends from, and
    /// nothing may write to it before [`XdpSocket::completed`] returns its chunk. Returns false if too many
    /// frames are on their way already.
    #[inline]
    pub(crate) fn push(&mut self, frame: &[u8]) -> bool {
        let Some(sender) = &mut self.sender else {
            return false;
        };
        if sender.in_flight == SEND_CHUNKS {
            return false;
        }
        sender.in_flight += 1;
        let address = self.sent.address_of(frame);
        let address = address.expect("the frame is in the store of the direction that this socket sends");
        let is_in = sender.ring.push(libc::xdp_desc {
            addr: address,
            len: frame.len() as u32,
            options: 0,
        });
        assert!(is_in, "the ring has a place for each chunk");
        true
    }

    /// Returns the chunk of a frame that was sent, if there is one.
    #[inline]
    pub(crate) fn completed(&mut self) -> Option<u32> {
        let sender = self.sender.as_mut()?;
        let Some(address) = self.completion.front() else {
            // The kernel reads the counter's cache line, so it is written only if there is something new.
            if std::mem::take(&mut sender.has_taken) {
                self.completion.publish();
            }
            return None;
        };
        self.completion.take();
        sender.has_taken = true;
        sender.in_flight -= 1;
        let (number, _) = self.sent.chunk_at(address).expect(BOUNDS);
        Some(number)
    }

    /// Hands all written frames to the interface.
    ///
    /// # Errors
    /// `EAGAIN` if it does not take all of them now: call it again later. `ENETDOWN` or `ENXIO` if it is down
    /// or gone. No frame is lost by that.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        let Some(sender) = &mut self.sender else {
            return Ok(());
        };
        sender.ring.publish();
        let mut pending = sender.ring.pending();
        while pending > 0 && sender.ring.needs_wakeup() {
            let result = wake_sender(&self.socket);
            match (result, self.transfer) {
                // The interface sends on its own now.
                (Ok(()), Transfer::ZeroCopy) => return Ok(()),
                // EBUSY: the interface dropped one frame, and counts it; the others go on.
                (Ok(()) | Err(Errno::EAGAIN | Errno::EBUSY | Errno::ENOBUFS | Errno::EINTR), _) => {}
                (Err(errno), _) => return Err(errno),
            }
            let left = sender.ring.pending();
            if left == pending {
                return Err(Errno::EAGAIN);
            }
            pending = left;
        }
        Ok(())
    }

    /// Returns how many frames the kernel has dropped: no chunk was free, or the frame was longer than one.
    pub(crate) fn dropped(&self) -> u64 {
        // SAFETY: `xdp_statistics` consists of integers, for which all-zero is a valid value.
        let mut statistics: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let read = get_option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS, &mut statistics);
        match read {
            Ok(()) => statistics.rx_dropped + statistics.rx_ring_full,
            Err(_) => 0,
        }
    }

    /// Returns and clears the socket's error: `ENETDOWN` if the interface disappeared.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        take_error(&self.socket)
    }

    /// Returns the socket, for a program's map.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Returns the descriptor that is readable when frames have arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn offsets_of(ring: libc::xdp_ring_offset) -> Offsets {
    Offsets {
        producer: ring.producer as usize,
        consumer: ring.consumer as usize,
        flags: ring.flags as usize,
        entries: ring.desc as usize,
    }
}

fn xdp_socket() -> Result<OwnedFd, Errno> {
    // SAFETY: no pointers are passed. A descriptor that is returned is new, and nobody else owns it.
    unsafe {
        let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        Ok(OwnedFd::from_raw_fd(Errno::result(fd)?))
    }
}

fn map<T>(socket: &OwnedFd, offsets: Offsets, entries: u32, ring: u64) -> Result<Mapping, Errno> {
    let length = NonZeroUsize::new(offsets.bytes::<T>(entries)).expect("a ring has entries");
    Mapping::of(socket, length, ring as i64)
}

/// Binds the socket to a queue by the first of `transfers` that works. Returns `None` if there is no such
/// queue.
fn bind(
    socket: &OwnedFd,
    interface: &Interface,
    queue: u32,
    transfers: &[Transfer],
) -> Result<Option<Transfer>, Errno> {
    let mut refusal = Errno::EINVAL;
    for &transfer in transfers {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: transfer.flag() | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: interface.index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the address is a live `sockaddr_xdp`, and its size is passed.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as u32,
            )
        };
        match Errno::result(result) {
            Ok(_) => return Ok(Some(transfer)),
            // Every interface has a queue 0.
            Err(Errno::EINVAL) if queue > 0 => return Ok(None),
            Err(errno) => refusal = errno,
        }
    }
    Err(refusal)
}

/// Lets the kernel look at the transmit ring.
fn wake_sender(socket: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: nothing is passed but the descriptor. The frames are in the ring.
    let result = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null(),
            0,
        )
    };
    Errno::result(result).map(drop)
}

/// Lets the driver look at the fill ring.
fn wake_receiver(socket: &OwnedFd) {
    // SAFETY: nothing is passed but the descriptor.
    unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
            ptr::null_mut(),
        );
    }
}

fn set_option<T: Copy>(socket: &OwnedFd, name: libc::c_int, value: &T) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_XDP, name, value)
}
