//! AF_PACKET sockets on one interface: one with a mapped ring to receive, and plain ones to send in batches.
//!
//! The receiving and the sending socket have a virtio header in front of each frame. Frames to be sent are
//! complete, except for segments that are joined (`sys/batch.rs`). A third socket sends the few frames that
//! are too long because of their VLAN tag. All settings made here, including promiscuous mode, end with the
//! sockets. Even a killed process therefore leaves the interface unchanged.

use std::io::IoSlice;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};

use crate::ethernet;
use crate::offload::VNET_HEADER;
use crate::outgoing::Outgoing;
use crate::received::Received;
use crate::sys::batch::{Batch, address_of};
use crate::sys::interface::{Interface, Layer};
use crate::sys::layout::Layout;
use crate::sys::mapping::Mapping;
use crate::sys::ring::{Filled, Ring};
use crate::vlan::Tag;

/// The slots of a receive ring. At a million packets per second they bridge a scheduling delay of 4 ms.
pub(crate) const RING_SLOTS: usize = 4096;

/// Frames longer than a slot are kept whole in the receive queue. This is its size in bytes: enough for the
/// super-packets of a few milliseconds at 10 Gb/s.
const RECEIVE_BUFFER: libc::c_int = 16 << 20;

/// The socket memory for frames being sent, bytes. It limits the queue behind ours, which no discipline
/// controls.
pub(super) const SEND_BUFFER: libc::c_int = 512 << 10;

/// The longest super-packet with all its headers. ("BIG TCP" allows longer ones, but only if it is
/// configured.)
const LONGEST_SUPER_PACKET: usize = 128 << 10;

/// Which frames a socket receives.
#[derive(Debug)]
pub(crate) enum Receive {
    /// All, also those for other hosts (promiscuous mode).
    All,
    /// Those that the interface receives anyway, without those that this program skips.
    Chosen(OwnedFd),
    /// None.
    Nothing,
}

/// The sockets of one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    ring: Ring,
    _mapping: Mapping,
    receiver: OwnedFd,
    interface: Interface,
    receive: Receive,
    /// Whether it is bound and closed: it receives nothing until it is opened.
    is_closed: bool,
    sender: OwnedFd,
    batch: Batch,
    /// The buffer for a frame that is longer than its slot.
    scratch: Vec<u8>,
    /// The length of the frame in `scratch`, until it is released.
    filled: Option<usize>,
    tagger: Tagger,
    missed: u64,
}

impl PacketSocket {
    /// Opens the sockets, and receives all frames from now on.
    pub(crate) fn open(interface: &Interface, layout: Layout) -> Result<PacketSocket, Errno> {
        let socket = PacketSocket::prepare(interface, layout, Receive::All)?;
        socket.start()?;
        Ok(socket)
    }

    /// Begins to receive. This takes microseconds, because everything else is prepared.
    pub(crate) fn start(&self) -> Result<(), Errno> {
        match &self.receive {
            Receive::Nothing => Ok(()),
            Receive::Chosen(program) if self.is_closed => set_program(&self.receiver, program),
            Receive::All if self.is_closed => open(&self.receiver),
            _ => bind(&self.receiver, &self.interface, libc::ETH_P_ALL as u16),
        }
    }

    /// Binds the receiving socket, which skips all frames until [`PacketSocket::start`]. Only a bound socket
    /// can become a member of a group (`sys/fanout.rs`), and until then it would receive what belongs to
    /// others.
    pub(crate) fn bind_closed(&mut self) -> Result<&OwnedFd, Errno> {
        set_filter(&self.receiver, &mut [instruction(RETURN, 0, 0, 0)])?;
        bind(&self.receiver, &self.interface, libc::ETH_P_ALL as u16)?;
        self.is_closed = true;
        Ok(&self.receiver)
    }

    /// Opens the sockets. Nothing is received before [`PacketSocket::start`].
    pub(crate) fn prepare(
        interface: &Interface,
        layout: Layout,
        receive: Receive,
    ) -> Result<PacketSocket, Errno> {
        // Protocol 0: nothing is received before `bind` selects the interface.
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
        let length = NonZeroUsize::new(layout.bytes()).expect("a ring has at least one block");
        let mapping = Mapping::of(&receiver, length, 0)?;
        // SAFETY: the mapping spans the layout, is aligned to a page, is filled by the kernel under the
        // protocol that `Ring::new` requires, and is kept in the same structure as the ring.
        let ring = unsafe { Ring::new(mapping.base(), layout) };
        match &receive {
            Receive::All => make_promiscuous(&receiver, interface)?,
            Receive::Chosen(program) => set_program(&receiver, program)?,
            Receive::Nothing => {}
        }

        let sender = match interface.layer {
            Layer::Ethernet => packet_socket(0)?,
            // The protocol of a packet without a header is in its address.
            Layer::Ip => packet_socket_of(libc::SOCK_DGRAM, 0)?,
        };
        // Bypass the interface's qdisc: a second queue behind ours would delay the frames that ours has
        // scheduled.
        set_option(&sender, libc::PACKET_QDISC_BYPASS, &1)?;
        if interface.layer == Layer::Ethernet {
            set_option(&sender, libc::PACKET_VNET_HDR, &1)?;
        }
        set_socket_option(&sender, libc::SO_SNDBUF, &SEND_BUFFER)?;
        bind(&sender, interface, 0)?;

        Ok(PacketSocket {
            ring,
            _mapping: mapping,
            receiver,
            interface: interface.clone(),
            receive,
            is_closed: false,
            sender,
            batch: Batch::new(interface),
            scratch: vec![0; LONGEST_SUPER_PACKET],
            filled: None,
            tagger: Tagger::open(interface)?,
            missed: 0,
        })
    }

    /// Returns the oldest frame that was not released yet.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Received<'_>> {
        if self.interface.layer == Layer::Ip {
            return self.front_of_ip();
        }
        let Filled { received, is_copied } = self.ring.front()?;
        if !is_copied {
            return Some(received);
        }
        // The whole frame has the same virtio header as the slot. Frames and slots have the same order.
        let length = match self.filled {
            Some(length) => length,
            None => match receive(&self.receiver, &mut self.scratch) {
                Ok(length) => *self.filled.insert(length),
                // The kernel's order of operations makes this impossible. If it happens, the frame counts as
                // truncated.
                Err(_) => return Some(received),
            },
        };
        let end = length.clamp(VNET_HEADER, self.scratch.len());
        Some(Received {
            bytes: &self.scratch[VNET_HEADER..end],
            ..received
        })
    }

    /// Does the same for an interface that carries IP packets. They get an Ethernet header, with zeros for
    /// addresses, in a buffer.
    fn front_of_ip(&mut self) -> Option<Received<'_>> {
        let missing = Layer::Ip.missing();
        let Filled { received, is_copied } = self.ring.front()?;
        let end = match self.filled {
            Some(end) => end,
            None => {
                let end = match is_copied {
                    true => {
                        let begin = missing - VNET_HEADER;
                        receive(&self.receiver, &mut self.scratch[begin..]).map(|length| begin + length)
                    }
                    false => {
                        // A slot is shorter than the buffer.
                        let end = missing + received.bytes.len();
                        self.scratch[missing..end].copy_from_slice(received.bytes);
                        Ok(end)
                    }
                };
                // What can't be received counts as truncated.
                let end = end.unwrap_or(missing).clamp(missing, self.scratch.len());
                let protocol = ethernet::protocol_of_ip(self.scratch[missing]);
                self.scratch[..missing].fill(0);
                self.scratch[missing - 2..missing].copy_from_slice(&protocol.to_be_bytes());
                *self.filled.insert(end)
            }
        };
        Some(Received {
            bytes: &self.scratch[..end],
            length: missing + received.length,
            tag: None,
            offload: received.offload.behind(missing as u16),
        })
    }

    /// Returns the slot of [`PacketSocket::front`] to the kernel.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.filled = None;
        self.ring.release();
    }

    /// Sends frames until all, or [`BATCH`], are sent or one fails. Returns how many were sent, and the error
    /// of the next one.
    pub(crate) fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = Outgoing<'a>>,
    ) -> (usize, Result<(), Errno>) {
        self.batch.send(&self.sender, frames)
    }

    /// Sends a frame as [`Tagger::send`] does.
    pub(crate) fn send_tagged(&mut self, frame: &[u8], mark: u32) -> Result<(), Errno> {
        self.tagger.send(frame, mark)
    }

    /// Returns the number of frames dropped because the ring was full, since the socket was opened.
    pub(crate) fn missed(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        // Reading resets the kernel's counter.
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

    /// Returns and clears the socket's error: `ENETDOWN` if the interface went down or disappeared.
    pub(crate) fn take_error(&self) -> Option<Errno> {
        take_error(&self.receiver)
    }

    /// Returns the descriptor that is readable when frames have arrived.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// A socket for frames that are too long because of their tag. It receives nothing.
#[derive(Debug)]
pub(crate) struct Tagger {
    socket: OwnedFd,
}

impl Tagger {
    /// Opens the socket.
    pub(crate) fn open(interface: &Interface) -> Result<Tagger, Errno> {
        // This socket uses the interface's qdisc, because the hook is in front of it.
        let socket = packet_socket(0)?;
        set_socket_option(&socket, libc::SO_SNDBUF, &SEND_BUFFER)?;
        bind(&socket, interface, 0)?;
        Ok(Tagger { socket })
    }

    /// Opens the socket, and lets the interface receive frames for other hosts as long as it is open.
    pub(crate) fn promiscuous(interface: &Interface) -> Result<Tagger, Errno> {
        let tagger = Tagger::open(interface)?;
        make_promiscuous(&tagger.socket, interface)?;
        Ok(tagger)
    }

    /// Sends a frame without its outermost tag, and with a socket mark. A program at the interface's hook
    /// uses the mark to add the tag again (`attach/hooks.rs`).
    ///
    /// A packet socket accepts frames of 4 bytes over the MTU if these bytes are an 802.1Q tag
    /// (`packet_extra_vlan_len_allowed`). Frames of that length with a service tag, and frames of 8 bytes
    /// over the MTU with two tags, need this function. A tag that the program adds does not count towards the
    /// MTU; in the kernel's bridge it does not count either.
    pub(crate) fn send(&self, frame: &[u8], mark: u32) -> Result<(), Errno> {
        set_socket_option(&self.socket, libc::SO_MARK, &(mark as libc::c_int))?;
        let (addresses, rest) = frame.split_at(Tag::POSITION);
        let parts = [IoSlice::new(addresses), IoSlice::new(&rest[Tag::BYTES..])];
        loop {
            match sendmsg::<()>(self.socket.as_raw_fd(), &parts, &[], MsgFlags::MSG_DONTWAIT, None) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

const TPACKET_V2: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;

fn packet_socket(protocol: u16) -> Result<OwnedFd, Errno> {
    packet_socket_of(libc::SOCK_RAW, protocol)
}

/// Opens a socket for frames with their header (`SOCK_RAW`), or for what is behind it (`SOCK_DGRAM`).
fn packet_socket_of(kind: libc::c_int, protocol: u16) -> Result<OwnedFd, Errno> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed. A descriptor that is returned is new, and nobody else owns it.
    unsafe {
        let fd = Errno::result(libc::socket(libc::AF_PACKET, kind, i32::from(protocol.to_be())))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> Result<(), Errno> {
    let address = address_of(interface, protocol);
    // SAFETY: the address is a live `sockaddr_ll`, and its size is passed.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    Errno::result(result).map(drop)
}

/// Lets the interface receive frames for other hosts as long as the socket is open.
fn make_promiscuous(socket: &OwnedFd, interface: &Interface) -> Result<(), Errno> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Sets the socket's program (`sys/bpf.rs`), in place of its filter.
fn set_program(socket: &OwnedFd, program: &OwnedFd) -> Result<(), Errno> {
    set_socket_option(socket, libc::SO_ATTACH_BPF, &program.as_raw_fd())
}

/// Ends a program; its constant is the number of bytes to keep of the frame.
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// An instruction of classic BPF.
pub(super) fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// A program of classic BPF, as the kernel takes it.
pub(super) fn program_of(instructions: &mut [libc::sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog {
        len: instructions.len() as u16,
        filter: instructions.as_mut_ptr(),
    }
}

/// Sets the socket's filter, in place of another one.
fn set_filter(socket: &OwnedFd, instructions: &mut [libc::sock_filter]) -> Result<(), Errno> {
    let program = program_of(instructions);
    // The kernel copies the program during the call.
    set_level_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Removes the socket's filter.
fn open(socket: &OwnedFd) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
}

fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`; with MSG_TRUNC it returns the full
    // length.
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

pub(super) fn set_option<T: Copy>(socket: &OwnedFd, name: libc::c_int, value: &T) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_PACKET, name, value)
}

pub(super) fn set_socket_option(
    socket: &OwnedFd,
    name: libc::c_int,
    value: &libc::c_int,
) -> Result<(), Errno> {
    set_level_option(socket, libc::SOL_SOCKET, name, value)
}

pub(super) fn set_level_option<T: Copy>(
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

/// Returns and clears a socket's error.
pub(super) fn take_error(socket: &OwnedFd) -> Option<Errno> {
    let mut error: libc::c_int = 0;
    match get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut error) {
        Ok(()) if error != 0 => Some(Errno::from_raw(error)),
        Ok(()) => None,
        Err(errno) => Some(errno),
    }
}

/// Reads an option. `T` is one of the kernel's structures of integers.
pub(super) fn get_option<T: Copy>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> Result<(), Errno> {
    let mut length = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `length` bytes to a live value. Every caller's `T` consists of
    // integers, for which all bit patterns are valid.
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
