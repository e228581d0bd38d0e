//! What a discipline knows of a packet. The packet's bytes stay with the driver, who finds them again by the cookie.

use core::fmt;

use crate::flow::FlowHash;
use crate::time::Time;

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be told by a drop.
    #[default]
    NotEct = 0,
    /// ECN-capable, and by RFC 9331 a request for low-latency (L4S) treatment.
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two low bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether a mark may stand in for a drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// A class of a classful discipline, as tc writes it: `major:minor`, both hexadecimal. The major number is the
/// handle of the discipline that the class belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// No class has been chosen yet.
    pub const NONE: ClassId = ClassId(0);

    /// The class `major:minor`.
    pub const fn new(major: u16, minor: u16) -> ClassId {
        ClassId((major as u32) << 16 | minor as u32)
    }

    /// The handle of the discipline.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The class within the discipline.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.major(), self.minor())
    }
}

impl fmt::Debug for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a packet came back undelivered. Counted at every node that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was at its limit of packets or bytes; the arriving packet was refused.
    QueueLimit,
    /// The queue was at its limit; the oldest packet made room.
    HeadDrop,
    /// The whole discipline was at its limit; the flow with most queued paid.
    LongestFlow,
    /// The flow was at its own limit.
    FlowLimit,
    /// More flows at once than there are places for.
    NoFreeFlow,
    /// The limit of memory was reached; the flow with most queued paid.
    MemoryLimit,
    /// Active queue management told the sender to slow down.
    Aqm,
    /// The packet belongs to no class.
    NoClass,
    /// Longer than the token bucket is deep: it could never be sent.
    LargerThanBurst,
    /// Longer than any packet that the scheduler can give a time stamp.
    LargerThanMaximum,
    /// Its flow is new, and admission control lets no new flows in while the link is congested.
    NotAdmitted,
    /// It may not leave before a time that lies too far ahead.
    BeyondHorizon,
    /// It exceeded the rate that a policer lets pass.
    Policed,
    /// A change of configuration left no place for it.
    Reconfigured,
    /// The queue was flushed. The only reason that does not count as a drop.
    Flushed,
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = DropReason::Flushed as usize + 1;

    /// All of them, in the order of their numbers.
    pub const ALL: [DropReason; DropReason::COUNT] = [
        DropReason::QueueLimit,
        DropReason::HeadDrop,
        DropReason::LongestFlow,
        DropReason::FlowLimit,
        DropReason::NoFreeFlow,
        DropReason::MemoryLimit,
        DropReason::Aqm,
        DropReason::NoClass,
        DropReason::LargerThanBurst,
        DropReason::LargerThanMaximum,
        DropReason::NotAdmitted,
        DropReason::BeyondHorizon,
        DropReason::Policed,
        DropReason::Reconfigured,
        DropReason::Flushed,
    ];

    /// The name in statistics and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueLimit => "queue_limit",
            DropReason::HeadDrop => "head_drop",
            DropReason::LongestFlow => "longest_flow",
            DropReason::FlowLimit => "flow_limit",
            DropReason::NoFreeFlow => "no_free_flow",
            DropReason::MemoryLimit => "memory_limit",
            DropReason::Aqm => "aqm",
            DropReason::NoClass => "no_class",
            DropReason::LargerThanBurst => "larger_than_burst",
            DropReason::LargerThanMaximum => "larger_than_maximum",
            DropReason::NotAdmitted => "not_admitted",
            DropReason::BeyondHorizon => "beyond_horizon",
            DropReason::Policed => "policed",
            DropReason::Reconfigured => "reconfigured",
            DropReason::Flushed => "flushed",
        }
    }
}

/// Where a packet is in its [`Pool`](crate::pool::Pool): the pool's and the queues' own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotState {
    /// Successor in the queue that holds the packet.
    pub(crate) next: u32,
    /// Predecessor in that queue.
    pub(crate) previous: u32,
    /// The length of the successor, so that whoever takes this packet out need not touch the next one's line.
    pub(crate) next_length: u32,
}

impl SlotState {
    pub(crate) const NEW: SlotState = SlotState {
        next: 0,
        previous: 0,
        next_length: 0,
    };

    /// The packet behind this one is in slot `next`, `length` bytes long.
    #[inline]
    pub(crate) fn set_successor(&mut self, next: u32, length: u32) {
        self.next = next;
        self.next_length = length;
    }
}

/// What the [`Pool`](crate::pool::Pool) notes of a slot. From above: whether it holds a packet; whether header fields lie
/// beside it; whether its DSCP was changed; 5 bits the reason why the packet was given back.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotFlags(u8);

impl SlotFlags {
    /// Of a slot that is free.
    pub(crate) const FREE: SlotFlags = SlotFlags(0);
    /// Of a packet just put into the slot. Catches a double release in debug builds.
    pub(crate) const LIVE: SlotFlags = SlotFlags(1 << 7);

    const HEADERS: u8 = 1 << 6;
    const REMARKED: u8 = 1 << 5;
    const REASON: u8 = 31;

    #[inline]
    pub(crate) fn is_live(self) -> bool {
        self.0 & SlotFlags::LIVE.0 != 0
    }

    #[inline]
    pub(crate) fn has_headers(self) -> bool {
        self.0 & SlotFlags::HEADERS != 0
    }

    #[inline]
    pub(crate) fn set_has_headers(&mut self) {
        self.0 |= SlotFlags::HEADERS;
    }

    #[inline]
    pub(crate) fn set_remarked(&mut self) {
        self.0 |= SlotFlags::REMARKED;
    }

    pub(crate) fn reason(self) -> DropReason {
        DropReason::ALL[(self.0 & SlotFlags::REASON) as usize]
    }

    pub(crate) fn set_reason(&mut self, reason: DropReason) {
        self.0 = self.0 & !SlotFlags::REASON | reason as u8;
    }
}

/// All reasons fit into their bits.
const _: () = assert!(DropReason::COUNT <= SlotFlags::REASON as usize + 1);

/// A packet's descriptor: one cache line, written by the driver, read by disciplines.
///
/// ```
/// use fairgate::{Packet, Ecn};
/// let packet = Packet { cookie: 7, ecn: Ecn::Ect0, ..Packet::of_length(1514) };
/// assert_eq!(packet.length, 1514);
/// assert_eq!(core::mem::size_of::<Packet>(), 64);
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// Where the packet is. Starts as `SlotState::default()`.
    pub slot: SlotState,
    /// Bytes on the wire: what schedulers and shapers count.
    pub length: u32,
    /// Bytes of memory that the packet occupies at the driver, for limits on memory (Linux: `truesize`).
    pub memory: u32,
    /// When the packet was enqueued. Written by the discipline.
    pub enqueued_at: Time,
    /// A time stamp. As the driver hands the packet in: when it may leave at the earliest, ns, or 0 for at once; `fq` heeds that. A scheduler that
    /// holds packets in queues of its own may write its own there; it leaves 0 behind.
    pub stamp: u64,
    /// Keyed hash of the packet's flow.
    pub flow: FlowHash,
    /// The driver's own: frame number, buffer address, simulator packet.
    pub cookie: u64,
    /// The class that the driver chose, if it did. Wins over filters where its major number is the discipline's handle.
    pub class: ClassId,
    /// Firewall mark or any other number of the driver's for filters to match.
    pub mark: u32,
    /// Priority, 0 to 15 (Linux: `skb->priority`), an index into a priomap.
    pub priority: u8,
    /// The six DSCP bits.
    pub dscp: u8,
    /// The ECN bits; a discipline may turn them into [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The pool's own. Starts as `SlotFlags::default()`.
    pub flags: SlotFlags,
}

impl Packet {
    /// Whether a discipline gave it another [`dscp`](Packet::dscp), which the driver has to write into its bytes.
    #[inline]
    pub fn is_remarked(&self) -> bool {
        self.flags.0 & SlotFlags::REMARKED != 0
    }

    /// A packet of `length` bytes with nothing else known of it.
    pub const fn of_length(length: u32) -> Packet {
        Packet {
            slot: SlotState::NEW,
            length,
            memory: length,
            enqueued_at: Time::ZERO,
            stamp: 0,
            flow: FlowHash::NONE,
            cookie: 0,
            class: ClassId::NONE,
            mark: 0,
            priority: 0,
            dscp: 0,
            ecn: Ecn::NotEct,
            flags: SlotFlags::FREE,
        }
    }

    /// The traffic class byte: DSCP and ECN.
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }
}
