//! AF_XDP sockets as a back end: `sys/xdp_socket.rs` has the system calls.
//!
//! ```text
//!   program  redirects received frames to the sockets
//!   btf      the number of a kernel function that the program calls
//! ```
//!
//! There is one socket for each receive queue, and one transmit ring, that of the first queue: frames leave
//! in the order of the disciplines. All sockets of a run have their frames in the memory of the frame stores,
//! so this process copies none of them, except frames whose VLAN tag has to be put back.
//!
//! An XDP program sees a frame before the kernel has made a packet of it. Three things that the kernel keeps
//! beside a frame are not in it, so each has to be dealt with:
//!
//! * **Partial checksums** are recognised by their value (`offload/partial.rs`). Only frames that the kernel
//!   copies can have one; others come from a wire.
//! * **VLAN tags** that the interface takes out of frames. The other end of a veth pair does. The program
//!   asks the driver for the tag, and notes it. Other interfaces must leave tags in frames (`rxvlan off`).
//! * **Super-packets** would be too long, and nothing would say how to cut them. veth turns segmentation
//!   offload of its other end off while a program is attached, and hardware merges nothing before a program
//!   runs. Other virtual interfaces carry super-packets, so they are refused.
//!
//! Only native XDP is used, which runs in the driver. The kernel's generic XDP runs after the kernel has made
//! a packet of the frame. That saves nothing over a packet socket, and loses tags and super-packets.

mod btf;
mod program;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use crate::attach::{Switch, kind_of, mark_of};
use crate::backend::Backend;
use crate::error::LiveError;
use crate::ethernet;
use crate::offload::VnetHeader;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::batch::BATCH;
use crate::sys::bpf::SocketMap;
use crate::sys::chunks::Chunks;
use crate::sys::frames::FrameStore;
use crate::sys::interface::{Interface, queues_of, strips_tags};
use crate::sys::socket::Tagger;
use crate::sys::xdp_socket::{self, RECEIVE_CHUNKS, SEND_CHUNKS, Transfer, XdpSocket};
use crate::vlan::Tag;

/// The bytes of a frame beside the payload that the MTU limits: a frame may have two VLAN tags.
const AROUND_PAYLOAD: usize = ethernet::HEADER + 2 * Tag::BYTES;

/// The largest MTU.
const MOST_MTU: usize = xdp_socket::LONGEST_FRAME - AROUND_PAYLOAD;

/// More receive queues than any interface has.
const MOST_QUEUES: u32 = 1024;

/// How long to wait until the kernel has freed a queue.
const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// AF_XDP sockets on all receive queues of one interface.
#[derive(Debug)]
pub(crate) struct Xdp {
    /// The attached program. Dropped first, so that the kernel has its frames back.
    _link: OwnedFd,
    map: SocketMap,
    /// Empty if the interface is gone.
    queues: Vec<XdpSocket>,
    /// The queue of the next frame.
    current: usize,
    /// The length of the longest frame that fits a chunk.
    longest: usize,
    /// Readable when a frame has arrived at any queue.
    arrivals: Epoll,
    /// Keeps the interface promiscuous, too.
    tagger: Tagger,
    mtu: usize,
    notes_tags: bool,
    /// How the kernel moves frames.
    transfer: Transfer,
}

impl Xdp {
    /// Returns what it is called in messages.
    pub(crate) fn title(&self) -> &'static str {
        match self.transfer {
            Transfer::ZeroCopy => "AF_XDP without copies",
            Transfer::Copy => "AF_XDP with copies",
        }
    }

    /// Returns why it is used in this way, as a phrase after "because".
    pub(crate) fn reason(&self) -> &'static str {
        match self.transfer {
            Transfer::ZeroCopy => "the configuration names it, and the driver can use our memory",
            Transfer::Copy => "the configuration names it, but the driver can't use our memory",
        }
    }
}

/// The chunks of frame stores that the sockets of one interface use.
#[derive(Debug)]
pub(crate) struct Lease {
    /// The store of received frames.
    received: Chunks,
    /// Its chunks to receive with.
    receiving: Vec<u32>,
    /// The store of the frames to send.
    sent: Chunks,
}

impl Lease {
    /// Returns what an interface uses of the stores of the frames that it receives and of those that it
    /// sends. It must have no sockets. Returns `None` if no sockets use the stores.
    pub(crate) fn of(received: &FrameStore, sent: &mut FrameStore) -> Option<Lease> {
        if !received.is_shared() {
            return None;
        }
        sent.take_all_back();
        Some(Lease {
            received: received.chunks().clone(),
            receiving: received.receiving(),
            sent: sent.chunks().clone(),
        })
    }
}

/// Returns the bytes of memory per frame at an MTU.
pub(crate) fn chunk_for(mtu: usize) -> usize {
    xdp_socket::chunk_for(mtu + AROUND_PAYLOAD)
}

/// Returns the number of chunks that the sockets of an interface receive with.
pub(crate) fn receiving_chunks(interface: &Interface) -> Result<u32, LiveError> {
    let query = LiveError::system(format!("querying the queues of `{}`", interface.name));
    let queues = queues_of(&interface.name).map_err(query)?;
    Ok(queues.clamp(1, MOST_QUEUES) * RECEIVE_CHUNKS)
}

/// Makes the stores of both directions, for `frames` frames each at this MTU. `receiving` are the chunks that
/// the left and the right interface receive with.
///
/// # Errors
/// Fails if there is not enough memory.
pub(crate) fn frame_stores(frames: u32, mtu: usize, receiving: [u32; 2]) -> Result<[FrameStore; 2], Errno> {
    let counts = receiving.map(|receiving| frames.checked_add(receiving + SEND_CHUNKS));
    let [Some(left), Some(right)] = counts else {
        return Err(Errno::ENOMEM);
    };
    let [left, right] = Chunks::side_by_side([left, right], chunk_for(mtu))?;
    Ok([
        FrameStore::shared(left, frames, receiving[0]),
        FrameStore::shared(right, frames, receiving[1]),
    ])
}

/// Attaches the program and opens the sockets. Frames are received from [`Backend::start`] on.
pub(crate) fn prepare(
    interface: &Interface,
    switch: Option<&Switch>,
    lease: &Lease,
) -> Result<Xdp, LiveError> {
    let name = &interface.name;
    let longest = xdp_socket::longest_in(lease.received.length());
    if interface.mtu > MOST_MTU {
        return Err(refused(
            name,
            format!(
                "its MTU is {}, but a frame must fit a page of memory",
                interface.mtu
            ),
            format!("lower it: `ip link set {name} mtu {MOST_MTU}`"),
        ));
    } else if interface.mtu + AROUND_PAYLOAD > longest {
        // Only an interface that comes back.
        return Err(refused(
            name,
            format!(
                "its MTU is {}, but the memory of this run was made for shorter frames",
                interface.mtu
            ),
            format!(
                "lower it: `ip link set {name} mtu {}`, or start the run again",
                longest - AROUND_PAYLOAD
            ),
        ));
    }
    let tag_function = tag_function(interface)?;
    let failed = || LiveError::system(format!("opening AF_XDP sockets on `{name}`"));
    let map = SocketMap::new(MOST_QUEUES).map_err(failed())?;
    let link = program::attach(interface.index, switch, &map, tag_function)
        .map_err(|errno| not_attached(interface, errno))?;
    let mut queues = open_queues(interface, lease)?;
    // An interface that comes back may have more queues.
    let share = (lease.receiving.len() / queues.len()).min(RECEIVE_CHUNKS as usize);
    for (queue, numbers) in queues.iter_mut().zip(lease.receiving.chunks_exact(share)) {
        queue.give(numbers);
    }
    let transfer = queues[0].transfer();
    let arrivals = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed())?;
    for queue in &queues {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        arrivals.add(queue.descriptor(), event).map_err(failed())?;
    }
    Ok(Xdp {
        _link: link,
        map,
        queues,
        current: 0,
        longest,
        arrivals,
        tagger: Tagger::promiscuous(interface).map_err(failed())?,
        mtu: interface.mtu,
        notes_tags: tag_function.is_some(),
        transfer,
    })
}

/// Returns the number of the kernel function that returns VLAN tags, if it is needed.
///
/// # Errors
/// Fails if tags or super-packets of this interface would be lost.
fn tag_function(interface: &Interface) -> Result<Option<i32>, LiveError> {
    let name = &interface.name;
    match kind_of(interface)?.as_deref() {
        Some("veth") => match btf::kernel_function(program::TAG_FUNCTION) {
            Some(number) => Ok(Some(number)),
            None => Err(refused(
                name,
                "this kernel does not tell programs the VLAN tags that a veth device keeps beside frames",
                "use Linux 6.8 or later with BTF (CONFIG_DEBUG_INFO_BTF)",
            )),
        },
        Some(kind) => Err(refused(
            name,
            format!("packets that a `{kind}` device merges, and VLAN tags that it takes out, would be lost"),
            "use an interface of the hardware, or a veth device",
        )),
        None => {
            let query = LiveError::system(format!("querying the offloads of `{name}`"));
            match strips_tags(name).map_err(query)? {
                true => Err(refused(
                    name,
                    "it takes VLAN tags out of received frames, and they would be lost",
                    format!("let it leave them there: `ethtool -K {name} rxvlan off`"),
                )),
                false => Ok(None),
            }
        }
    }
}

fn open_queues(interface: &Interface, lease: &Lease) -> Result<Vec<XdpSocket>, LiveError> {
    let chunks = [&lease.received, &lease.sent];
    let mut queues: Vec<XdpSocket> = Vec::new();
    for queue in 0..MOST_QUEUES {
        let transfers = match queues.first() {
            None => &[Transfer::ZeroCopy, Transfer::Copy][..],
            // All queues as the first one.
            Some(first) => &[first.transfer()],
        };
        let mut result = XdpSocket::open(interface, queue, queue == 0, transfers, chunks);
        // The kernel frees the queue of a socket some time after the socket was closed, for example by a run
        // that was killed a moment ago.
        let start = Instant::now();
        while matches!(result, Err(Errno::EBUSY)) && start.elapsed() < PATIENCE {
            thread::sleep(BETWEEN_ATTEMPTS);
            result = XdpSocket::open(interface, queue, queue == 0, transfers, chunks);
        }
        match result {
            Ok(Some(socket)) => queues.push(socket),
            Ok(None) => return Ok(queues),
            Err(errno) => return Err(not_opened(interface, queue, errno)),
        }
    }
    Ok(queues)
}

fn refused(interface: &str, reason: impl Into<String>, remedy: impl Into<String>) -> LiveError {
    LiveError::NoXdp {
        interface: interface.to_owned(),
        reason: reason.into(),
        remedy: remedy.into(),
    }
}

fn not_attached(interface: &Interface, errno: Errno) -> LiveError {
    let name = &interface.name;
    match errno {
        Errno::EOPNOTSUPP => refused(
            name,
            "its driver has no native XDP",
            "use an interface whose driver has it",
        ),
        Errno::EBUSY | Errno::EEXIST => refused(
            name,
            "another XDP program is attached to it",
            format!("detach that one: `ip link set dev {name} xdp off`"),
        ),
        Errno::ERANGE => refused(
            name,
            "the MTU of its other end is too large for XDP",
            format!("lower it there to {MOST_MTU}"),
        ),
        Errno::ENOSPC => refused(
            name,
            "it has fewer receive queues than its other end has transmit queues",
            format!("give it more: `ethtool -L {name} rx COUNT`"),
        ),
        errno => LiveError::bpf(format!("attaching an XDP program to `{name}`"))(errno),
    }
}

fn not_opened(interface: &Interface, queue: u32, errno: Errno) -> LiveError {
    let name = &interface.name;
    match errno {
        Errno::ENOBUFS => refused(
            name,
            "this process may not lock enough memory for the frames",
            "give it the capability cap_ipc_lock, or a higher limit: `ulimit -l unlimited`",
        ),
        Errno::EBUSY => refused(
            name,
            format!("another process has an AF_XDP socket on its queue {queue}"),
            "stop that process",
        ),
        errno => LiveError::system(format!("opening an AF_XDP socket on `{name}`"))(errno),
    }
}

/// Returns whether an interface with this MTU sends a frame. The driver would drop a longer one without a
/// word. As packet sockets do, this allows a customer's VLAN tag on top of the MTU.
#[inline]
fn may_send(frame: &[u8], mtu: usize) -> bool {
    let most = mtu + ethernet::HEADER;
    let is_within = frame.len() <= most
        || (frame.len() <= most + Tag::BYTES && Tag::of(frame).is_some_and(|tag| tag.tpid == Tag::CUSTOMER));
    is_within && frame.len() <= xdp_socket::LONGEST_FRAME
}

impl Backend for Xdp {
    /// The program finds the sockets from now on.
    fn start(&mut self) -> Result<(), Errno> {
        for (queue, socket) in self.queues.iter().enumerate() {
            self.map.insert(queue as u32, socket.socket())?;
        }
        Ok(())
    }

    #[inline]
    fn front(&mut self) -> Result<Option<Received<'_>>, Errno> {
        let mut empty = 0;
        loop {
            if empty == self.queues.len() {
                return Ok(None);
            }
            if self.queues[self.current].has_frame() {
                break;
            }
            empty += 1;
            self.go_on();
        }
        let Some((note, bytes)) = self.queues[self.current].front() else {
            return Ok(None);
        };
        Ok(Some(Received {
            bytes,
            length: bytes.len(),
            tag: match self.notes_tags {
                true => program::tag_of(note),
                false => None,
            },
            offload: match self.transfer {
                Transfer::Copy => VnetHeader::recognise(bytes),
                Transfer::ZeroCopy => VnetHeader::default(),
            },
        }))
    }

    #[inline]
    fn release(&mut self, exchange: Option<u32>) {
        self.queues[self.current].release(exchange);
        self.go_on();
    }

    fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> (usize, Result<(), Errno>) {
        let Some(queue) = self.queues.first_mut() else {
            return (0, Err(Errno::ENETDOWN));
        };
        let (mut sent, mut result) = (0, Ok(()));
        for frame in frames.take(BATCH) {
            if frame.bytes.len() < ethernet::HEADER {
                result = Err(Errno::EINVAL);
            } else if !may_send(frame.bytes, self.mtu) {
                result = Err(Errno::EMSGSIZE);
            } else if !queue.push(frame.bytes) {
                result = Err(Errno::EAGAIN);
            }
            if result.is_err() {
                break;
            }
            sent += 1;
        }
        // What is in the ring will be sent, so it counts, but a later call must flush the rest.
        let flushed = queue.flush();
        (sent, result.and(flushed))
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    #[inline]
    fn completed(&mut self) -> Option<u32> {
        self.queues.first_mut()?.completed()
    }

    fn send_tagged(&mut self, frame: &[u8], tag: Tag) -> Result<(), Errno> {
        self.tagger.send(frame, mark_of(tag))
    }

    fn missed(&mut self) -> u64 {
        self.queues.iter().map(XdpSocket::dropped).sum()
    }

    fn take_error(&self) -> Option<Errno> {
        self.queues.iter().find_map(XdpSocket::take_error)
    }

    fn follow_mtu(&mut self, mtu: usize) -> Result<(), usize> {
        self.mtu = mtu;
        match mtu + AROUND_PAYLOAD <= self.longest {
            true => Ok(()),
            false => Err(self.longest - AROUND_PAYLOAD),
        }
    }

    fn close(&mut self) {
        self.queues.clear();
    }

    fn receiver(&self) -> BorrowedFd<'_> {
        self.arrivals.0.as_fd()
    }
}

impl Xdp {
    /// Goes to the next queue, so that a busy one does not keep the others waiting.
    #[inline]
    fn go_on(&mut self) {
        self.current += 1;
        if self.current == self.queues.len() {
            self.current = 0;
        }
    }
}
